// A figure: one legend for its panels, the panels, and the same numbers as a table for those who prefer reading.

function mountFigure(holder, figure, options = {}) {
  const hidden = new Set();
  const redraw = [];
  const panels = figure.panels.filter((panel) => !panel.empty);
  const looks = looksOf(panels);
  const legend = makeLegend(panels, looks, hidden, () => redraw.forEach((draw) => draw()));
  const grid = element('div', { class: `panels columns-${Math.min(4, figure.columns || 1)}` });
  holder.replaceChildren(legend, grid);
  for (const panel of figure.panels) {
    const box = element('div', { class: 'panel' });
    if (panel.title) box.append(element('h3', { class: 'panel-title' }, panel.title));
    grid.append(box);
    if (panel.empty) box.append(element('p', { class: 'nothing' }, panel.empty));
    else if ((panel.table || []).length) box.append(tableOf(panel));
    else redraw.push(mountChart(box, panel, { looks, hidden, ...options }));
    if (panel.empty || (panel.table || []).length) continue;
    if ((panel.notes || []).length) box.append(element('p', { class: 'y-label' }, panel.notes.join('; ')));
    if (panel.y_label && !(panel.y_names || []).length)
      box.querySelector('.plot').before(element('p', { class: 'y-label' }, panel.y_label));
  }
  if (panels.some((panel) => (panel.series || []).some((each) => each.kind !== 'cloud')))
    holder.append(numbersOf(panels));
}

// A panel that is a table: the first of its rows is the head.
function tableOf(panel) {
  const [head, ...rows] = panel.table;
  return plainTable(panel.title, head, rows, { class: 'hidden' });
}

// The same as the listing of the page's template.
function listingOf({ title, head, rows }) {
  return plainTable(title, head, rows, {}, { class: 'listing' });
}

function plainTable(title, head, rows, caption, settings = {}) {
  return scroller(
    `${title}, a table`,
    element(
      'table',
      settings,
      element('caption', caption, title),
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          head.map((text) => (text ? element('th', { scope: 'col' }, text) : element('td'))),
        ),
      ),
      element(
        'tbody',
        {},
        rows.map((row) =>
          element(
            'tr',
            {},
            row.map((text, i) => element(i ? 'td' : 'th', i ? {} : { scope: 'row' }, text)),
          ),
        ),
      ),
    ),
  );
}

function makeLegend(panels, looks, hidden, redraw) {
  const list = element('ul', { class: 'legend', 'aria-label': 'Legend: each button shows or hides a series' });
  const seen = new Set();
  for (const panel of panels) {
    (panel.series || []).forEach((series) => {
      if (seen.has(series.key) || !series.x.some((value) => value !== null)) return;
      seen.add(series.key);
      const button = element(
        'button',
        { type: 'button', 'aria-pressed': 'true', class: looks(series.key).color, 'data-key': series.key },
        swatch(series, looks(series.key)),
        series.label,
      );
      button.addEventListener('click', () => {
        const off = !hidden.has(series.key);
        if (off) hidden.add(series.key);
        else hidden.delete(series.key);
        button.setAttribute('aria-pressed', String(!off));
        redraw();
      });
      list.append(element('li', {}, button));
    });
  }
  for (const level of panels.flatMap((panel) => panel.levels || [])) {
    if (!level.label || seen.has(level.label) || (level.axis === 'x' && !level.bare)) continue;
    seen.add(level.label);
    const line = drawn(
      'svg',
      { class: 'swatch', width: 26, height: 12, 'aria-hidden': 'true' },
      drawn('line', { class: level.source === 'paper' ? 'dotted' : 'dashed', x1: 1, x2: 25, y1: 6, y2: 6 }),
    );
    list.append(element('li', { class: `level ${looks(level.key).color}` }, line, level.label));
  }
  return list;
}

function swatch(series, look) {
  const svg = drawn('svg', { class: 'swatch', width: 26, height: 12, 'aria-hidden': 'true' });
  if ((series.kind || 'line') === 'line')
    svg.append(drawn('line', { class: DASHED.has(series.key) ? 'line dashed' : 'line', x1: 1, x2: 25, y1: 6, y2: 6 }));
  if (series.kind !== 'line' || series.x.length <= MANY) svg.append(shapeAt(look, 13, 6, 4));
  return svg;
}

function numbersOf(panels) {
  const inside = element('div');
  const details = element(
    'details',
    { class: 'numbers' },
    element('summary', {}, panels.length > 1 ? 'These pictures as a table' : 'This picture as a table'),
    inside,
  );
  details.addEventListener('toggle', () => {
    if (!details.open || inside.firstChild) return;
    const rows = panels.flatMap((panel) =>
      (panel.series || []).flatMap((series) => series.x.map((x, i) => ({ panel, series, i, x, y: series.y[i] }))),
    );
    const usable = rows.filter((row) => row.x !== null && row.y !== null && row.series.kind !== 'cloud');
    const flat = (row) => (row.panel.y_names || []).length > 0;
    const ends = (row) =>
      (flat(row) ? [row.series.x_low, row.series.x_high] : [row.series.low, row.series.high]).map((each) =>
        each && each.length ? each[row.i] : null,
      );
    const table = makeTable(
      'All points of the pictures above',
      [
        { name: 'picture', value: (row) => row.panel.title || '' },
        { name: 'series', value: (row) => row.series.label },
        {
          name: 'at',
          kind: 'number',
          value: (row) => (flat(row) ? row.y : row.x),
          show: (row) => (flat(row) ? row.panel.y_names[row.y] : strength(Number(row.x.toPrecision(4)))),
        },
        {
          name: 'value',
          kind: 'number',
          value: (row) => (flat(row) ? row.x : row.y),
          show: (row) => decimals(flat(row) ? row.x : row.y, 3),
        },
        {
          name: 'interval',
          value: (row) =>
            ends(row)[0] === null || ends(row)[0] === undefined
              ? ''
              : `${decimals(ends(row)[0], 3)} to ${decimals(ends(row)[1], 3)}`,
        },
      ],
      usable,
    );
    inside.append(scroller('All points of the pictures', table));
  });
  return details;
}

// Pictures are drawn when they come near the screen: a page with thirty charts opens as fast as one with three. Near
// means below the page's head: one that grew above it would push away the section that a link has just led to.
function whenNear(node, draw) {
  const seen = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      draw();
    },
    { rootMargin: '-120px 0px 600px 0px' },
  );
  seen.observe(node);
}
