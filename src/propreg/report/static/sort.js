// Tables whose head cells hold buttons: a click or Enter sorts, a second one turns the order round.

function makeSortable(table, after = () => {}) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector('button');
    if (!button) return;
    button.addEventListener('click', () => {
      const numeric = head.dataset.kind === 'number';
      // Numbers are asked for with the largest first, words from A to Z.
      const order =
        { ascending: 'descending', descending: 'ascending' }[head.getAttribute('aria-sort')] ||
        (numeric ? 'descending' : 'ascending');
      heads.forEach((each) => each.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', order);
      sortRows(table.tBodies[0], column, numeric, order === 'ascending' ? 1 : -1);
      announce(`Sorted by ${head.dataset.name || button.textContent.trim()}, ${order}.`);
      after();
    });
  });
}

function sortRows(body, column, numeric, direction) {
  const keyed = [...body.rows].map((row, i) => ({ row, i, key: sortKey(row.cells[column], numeric) }));
  keyed.sort((a, b) => {
    // What is not known comes last in both orders.
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.i - b.i;
    const apart = numeric ? a.key - b.key : a.key.localeCompare(b.key, 'en', { numeric: true });
    return direction * apart || a.i - b.i;
  });
  body.append(...keyed.map((each) => each.row));
}

function sortKey(cell, numeric) {
  const text = cell.dataset.sort !== undefined ? cell.dataset.sort : cell.textContent.trim();
  if (text === '') return null;
  return numeric ? Number(text) : text;
}

// A table from columns {name, kind, value: row → number or text, show: row → nodes or text} and rows of data.
function makeTable(caption, columns, rows, { attributes = () => ({}), after = () => {} } = {}) {
  const head = element(
    'tr',
    {},
    columns.map((column) =>
      element(
        'th',
        {
          scope: 'col',
          'data-kind': column.kind || 'text',
          'data-name': column.name,
          class: column.kind === 'number' ? 'number' : null,
        },
        element('button', { type: 'button', class: 'sort' }, column.name),
      ),
    ),
  );
  const body = element(
    'tbody',
    {},
    rows.map((row) =>
      element(
        'tr',
        attributes(row),
        columns.map((column, i) => {
          const value = column.value(row);
          const sort = value === null || value === undefined ? '' : value;
          const settings = { 'data-sort': sort, class: column.kind === 'number' ? 'number' : null };
          if (i === 0) settings.scope = 'row';
          return element(i === 0 ? 'th' : 'td', settings, column.show ? column.show(row) : String(sort));
        }),
      ),
    ),
  );
  const table = element('table', {}, element('caption', {}, caption), element('thead', {}, head), body);
  makeSortable(table, after);
  return table;
}

// A box that scrolls sideways must be reachable with the keyboard.
function scroller(label, ...children) {
  return element('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, ...children);
}
