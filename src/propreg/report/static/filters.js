// The filters act on every table of the page: rows by model, method and pick, columns or rows by dataset.

const FILTERS = ['dataset', 'model', 'method', 'pick', 'variants'];
const AT_FIRST = { pick: 'validation', variants: 'few' };

function wanted() {
  return Object.fromEntries(FILTERS.map((name) => [name, document.getElementById(`filter-${name}`).value]));
}

function keeps(row, filter) {
  const { dataset, model, method, pick } = row.dataset;
  return (
    (filter.variants !== 'few' || filter.method || !('variant' in row.dataset)) &&
    (!filter.model || model === filter.model) &&
    (!filter.method || method === filter.method) &&
    (!filter.dataset || !dataset || dataset === filter.dataset) &&
    (!filter.pick || pick === 'none' || pick === 'fixed' || pick === filter.pick)
  );
}

function applyFilters(table) {
  const filter = wanted();
  const heads = [...table.tHead.rows[0].cells];
  const columns = heads.map(
    (head) => !filter.dataset || !head.dataset.dataset || head.dataset.dataset === filter.dataset,
  );
  heads.forEach((head, i) => {
    head.hidden = !columns[i];
  });
  const none =
    columns.some((shown, i) => shown && heads[i].dataset.dataset) === false &&
    heads.some((head) => head.dataset.dataset);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    row.hidden = none || !keeps(row, filter);
    if (row.hidden) continue;
    shown += 1;
    [...row.cells].forEach((cell, i) => {
      cell.hidden = !columns[i];
    });
  }
  markGroups(table);
  const nothing = table.closest('.scroll').nextElementSibling;
  if (nothing && nothing.classList.contains('nothing')) nothing.hidden = shown > 0;
  table.closest('.scroll').hidden = shown === 0;
  return shown;
}

// A thicker line where the model changes, as far as rows are shown.
function markGroups(table) {
  let before = null;
  for (const row of table.tBodies[0].rows) {
    if (row.hidden) continue;
    row.classList.toggle('first', row.dataset.model !== before);
    before = row.dataset.model;
  }
}

function everyTable() {
  return [...document.querySelectorAll('table.wide, table.list')];
}

function setUpFilters() {
  const form = document.getElementById('filters');
  const update = () => {
    const rows = everyTable().reduce((sum, table) => sum + applyFilters(table), 0);
    const filter = wanted();
    form.querySelector('button').disabled = FILTERS.every(
      (name) => filter[name] === (AT_FIRST[name] || ''),
    );
    return rows;
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', () => announce(`${update()} rows shown.`));
  form.addEventListener('reset', () => setTimeout(() => announce(`${update()} rows shown.`)));
  update();
}
