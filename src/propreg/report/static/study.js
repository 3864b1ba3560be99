// The study's page: tables, their filters and lists, details, and figures.

function setUpChoices() {
  for (const group of document.querySelectorAll('[data-switch]')) {
    const show = () => {
      const value = group.querySelector('input:checked').value;
      for (const part of document.querySelectorAll(`[data-shown-by="${group.dataset.switch}"]`)) {
        part.hidden = part.dataset.value !== value;
        if (!part.hidden && part.dataset.list && !part.firstElementChild)
          showList(part, part.dataset.list, part.dataset.title);
      }
    };
    group.addEventListener('change', show);
    show();
  }
  for (const details of document.querySelectorAll('details[data-list]')) {
    details.addEventListener('toggle', () => {
      const holder = details.querySelector('.list-holder');
      if (details.open && !holder.firstElementChild) showList(holder, details.dataset.list, details.dataset.title);
    });
  }
}

function setUpFigures() {
  const figures = readJson('figures');
  for (const holder of document.querySelectorAll('[data-figure]')) {
    const mine = figures[holder.dataset.figure];
    const which = document.querySelector(`select[data-of="${holder.dataset.figure}"]`);
    const draw = () => {
      const figure = which ? mine[Number(which.value)] : mine[0];
      mountFigure(holder.querySelector('.charts'), figure);
      if (!which) return;
      holder.querySelector('.listings')?.replaceChildren(...figure.listings.map(listingOf));
      const lacking = holder.querySelector('.lacking');
      lacking.hidden = !figure.missing.length;
      lacking.textContent = `Not recorded: ${figure.missing.join('; ')}.`;
    };
    if (which) which.addEventListener('change', draw);
    whenNear(holder, draw);
  }
}

for (const table of document.querySelectorAll('table.wide')) makeSortable(table, () => markGroups(table));
setUpContents();
setUpFilters();
setUpChoices();
setUpDetails();
setUpFigures();
