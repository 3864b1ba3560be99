// What can be taken away: pictures as files, recipes through the clipboard, addresses of sections.

const DRAWN = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linecap', 'opacity', 'font', 'text-anchor'];

// A picture that keeps its looks outside of this page: every style of the page becomes an attribute.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((each) => [each, ...each.querySelectorAll('*')]);
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of DRAWN) to[i].style.setProperty(name, style.getPropertyValue(name));
    to[i].removeAttribute('class');
  });
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}

function download(name, blob) {
  const link = element('a', { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function saveSvg(svg, name) {
  download(`${name}.svg`, new Blob([standalone(svg)], { type: 'image/svg+xml' }));
}

function savePng(svg, name) {
  const image = new Image();
  image.onload = () => {
    const canvas = element('canvas', { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(`${name}.png`, blob), 'image/png');
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
}

function saveCsv(panels, name) {
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const lines = ['picture,series,x,y,low,high,note'];
  for (const panel of panels) {
    for (const series of panel.series || []) {
      const flat = (panel.y_names || []).length > 0;
      const [low, high] = flat ? [series.x_low, series.x_high] : [series.low, series.high];
      series.x.forEach((x, i) => {
        const y = flat ? panel.y_names[series.y[i]] : series.y[i];
        const cells = [panel.title, series.label, x, y, (low || [])[i], (high || [])[i], (series.notes || [])[i]];
        lines.push(cells.map((cell) => quoted(String(cell ?? ''))).join(','));
      });
    }
  }
  download(`${name}.csv`, new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' }));
}

// The buttons below a figure. A figure of several panels saves each as a file of its own.
function takeaway(holder, figure) {
  const panels = figure.panels.filter((panel) => !panel.empty && !(panel.table || []).length);
  if (!panels.length) return;
  const pictures = () => [...holder.querySelectorAll('.plot > svg')];
  const names = (i) => (pictures().length > 1 ? `${figure.name}-${i + 1}` : figure.name);
  const button = (text, act) => element('button', { type: 'button', class: 'small-button', onclick: act }, text);
  holder.append(
    element(
      'p',
      { class: 'takeaway' },
      'Save as ',
      button('SVG', () => pictures().forEach((svg, i) => saveSvg(svg, names(i)))),
      button('PNG', () => pictures().forEach((svg, i) => savePng(svg, names(i)))),
      button('CSV', () => saveCsv(panels, figure.name)),
    ),
  );
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = element('textarea', { class: 'hidden' });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
}

for (const block of document.querySelectorAll('pre.copied')) {
  const button = element('button', { type: 'button', class: 'small-button' }, 'Copy');
  button.addEventListener('click', async () => {
    await copy(block.textContent);
    button.textContent = 'Copied';
    announce('Copied.');
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 2000);
  });
  const frame = element('div', { class: 'copy-frame' });
  block.replaceWith(frame);
  frame.append(block, button);
}

for (const section of document.querySelectorAll('main section[id]')) {
  const title = section.querySelector('h1, h2');
  if (title) title.append(element('a', { class: 'anchor', href: `#${section.id}`, 'aria-label': `Link to: ${title.textContent}` }, '#'));
}
