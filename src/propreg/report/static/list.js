// A section as a list: every number of a place in a column of its own. Made when it is first asked for.

function listRows(data, section) {
  return data.lines.flatMap((line, id) =>
    line.experiment === section ? line.rows.map((row) => ({ id, line, row })) : [],
  );
}

function makeList(data, section, title) {
  const apart = (each, i) => (each.row.apart ? each.row.apart[i] : null);
  const number = (name, value, show) => ({ name, kind: 'number', value, show });
  const shown = (each, value, sign = false) => decimals(value, scoreOf(each.line).digits, sign);
  const missing = (each) => each.row.mean === undefined;
  const columns = [
    {
      name: 'method',
      value: (each) => each.line.label,
      show: (each) =>
        element(
          'button',
          { type: 'button', class: 'place plain', 'data-line': each.id, 'data-pick': each.row.selection },
          named(each.line.label),
        ),
    },
    { name: 'model', value: (each) => data.names.model[each.line.model] || each.line.model },
    { name: 'dataset', value: (each) => data.names.dataset[each.line.dataset] || each.line.dataset },
    {
      name: 'μ',
      kind: 'number',
      value: (each) => (each.row.selection === 'none' ? null : each.row.strength),
      show: (each) => (each.row.selection === 'none' || each.row.strength === null ? '' : strength(each.row.strength)),
    },
    { name: 'picked on', value: (each) => (each.row.selection === 'none' ? '' : each.row.selection) },
    number(
      'accuracy',
      (each) => each.row.mean,
      (each) => (missing(each) ? '' : `${shown(each, each.row.mean)} ± ${shown(each, each.row.std)}`),
    ),
    number(
      '95 % interval',
      (each) => each.row.low,
      (each) => (missing(each) ? '' : `${shown(each, each.row.low)} to ${shown(each, each.row.high)}`),
    ),
    number(
      'paper',
      (each) => each.row.paper_mean,
      (each) =>
        each.row.paper_mean === undefined ? '' : `${shown(each, each.row.paper_mean)} ± ${shown(each, each.row.paper_std)}`,
    ),
    {
      name: 'verdict',
      value: (each) =>
        missing(each) ? `${each.row.runs || 0} of ${each.line.of} runs recorded` : each.row.verdict || '',
    },
    number(
      'against plain',
      (each) => apart(each, 0),
      (each) => shown(each, apart(each, 0), true),
    ),
    number(
      'its interval',
      (each) => apart(each, 1),
      (each) => (each.row.apart ? `${shown(each, apart(each, 1), true)} to ${shown(each, apart(each, 2), true)}` : ''),
    ),
    number(
      'p',
      (each) => each.row.p_value,
      (each) => decimals(each.row.p_value, 3),
    ),
    number(
      'won',
      (each) => each.row.won,
      (each) => (each.row.won === undefined ? '' : `${Math.round(100 * each.row.won)} %`),
    ),
    { name: 'on the gain', value: (each) => each.row.gain_verdict || '' },
  ];
  const table = makeTable(`${title}: every number`, columns, listRows(data, section), {
    attributes: (each) => ({
      'data-model': each.line.model,
      'data-method': each.line.family,
      'data-dataset': each.line.dataset,
      'data-pick': each.row.selection,
    }),
    after: () => markGroups(table),
  });
  table.classList.add('list');
  return table;
}

async function showList(holder, section, title) {
  try {
    const table = makeList(await allRuns(), section, title);
    holder.replaceChildren(
      scroller(`${title}: every number`, table),
      element('p', { class: 'nothing', hidden: true }, 'Nothing in this table matches the filters.'),
    );
    applyFilters(table);
  } catch (error) {
    holder.replaceChildren(element('p', { class: 'nothing' }, error.message));
  }
}
