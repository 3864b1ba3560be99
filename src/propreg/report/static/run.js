// The page of a run: its figures and its runs.

const run = readJson('run');

for (const holder of document.querySelectorAll('[data-figure]')) {
  const [charts, figure] = [holder.querySelector('.charts'), run.figures[holder.dataset.figure]];
  whenNear(holder, () => {
    mountFigure(charts, figure);
    takeaway(charts, figure);
  });
}

function showRuns(place) {
  const per = (values, s, e) => values[place][s][e];
  const rows = run.splits.flatMap((split, s) =>
    Array.from({ length: run.seeds }, (_, e) => ({
      split,
      seed: e,
      val: per(run.val, s, e),
      test: per(run.test, s, e),
      epochs: per(run.epochs, s, e),
      plain: run.test[0][s][e],
    })),
  );
  const apart = (row) => (row.test === null || row.plain === null ? null : run.sign * (row.test - row.plain));
  const places = run.fraction ? 2 : 4;
  const number = (name, value, show) => ({ name, kind: 'number', value, show });
  const columns = [
    { name: 'split', value: (row) => row.split, show: (row) => named(row.split) },
    number('seed', (row) => row.seed),
    number(
      `validation${run.fraction ? ' %' : ''}`,
      (row) => row.val,
      (row) => decimals(row.val, places),
    ),
    number(
      `test${run.fraction ? ' %' : ''}`,
      (row) => row.test,
      (row) => (row.test === null ? (run.finished ? 'failed' : 'not finished') : decimals(row.test, places)),
    ),
    ...(place ? [number('against plain', apart, (row) => decimals(apart(row), places, true))] : []),
    number(
      'epochs',
      (row) => row.epochs,
      (row) => (row.epochs === null ? '' : String(row.epochs)),
    ),
  ];
  const done = rows.filter((row) => row.test !== null).length;
  const caption = `${done} of ${rows.length} runs finished at μ = ${strength(run.mus[place])}`;
  document.getElementById('run-table').replaceChildren(scroller(caption, makeTable(caption, columns, rows)));
  return caption;
}

function listRuns() {
  const which = document.getElementById('which-mu');
  run.mus.forEach((mu, i) =>
    which.append(
      element(
        'option',
        { value: i, selected: mu === run.mu },
        `μ = ${strength(mu)}${mu === 0 ? ', plain' : ''}${mu === run.mu ? ', picked' : ''}`,
      ),
    ),
  );
  which.addEventListener('change', () => announce(showRuns(Number(which.value))));
  showRuns(run.mus.indexOf(run.mu));
}

if (run.listed) listRuns();
setUpContents();
