// While the run trains, the page is loaded again every few seconds: it may fetch nothing by itself.

function keepLoading(button) {
  let waiting = setTimeout(() => location.reload(), 1000 * Number(button.dataset.seconds));
  const pause = () => {
    clearTimeout(waiting);
    waiting = null;
    button.textContent = 'Resume updates';
  };
  button.hidden = false;
  button.addEventListener('click', () => (waiting === null ? location.reload() : pause()));
  // Loading again takes the keyboard's place on the page away.
  document.addEventListener('focusin', (event) => event.target.matches(':focus-visible') && pause());
}

const liveButton = document.getElementById('live');
if (liveButton) keepLoading(liveButton);
