// What is behind a cell of a table: its numbers, the curve against μ, and the runs.

async function openDetails(id, pick) {
  const dialog = document.getElementById('details');
  const body = dialog.querySelector('.body');
  const title = dialog.querySelector('h2');
  title.textContent = 'Reading the runs …';
  body.replaceChildren();
  dialog.showModal();
  dialog.scrollTop = 0;
  try {
    fillDetails(title, body, await allRuns(), Number(id), pick);
  } catch (error) {
    title.textContent = 'The runs cannot be shown';
    body.replaceChildren(element('p', {}, error.message));
  }
}

function fillDetails(title, body, data, id, pick) {
  const line = data.lines[id];
  const dataset = data.names.dataset[line.dataset] || line.dataset;
  const model = data.names.model[line.model] || line.model;
  title.replaceChildren(
    line.family === 'plain' ? `${model}, ` : `${model} with `,
    named(line.label),
    ' on ',
    named(dataset),
  );
  const of = (selection) => line.rows.find((row) => row.selection === selection) || null;
  const row = of(pick) || line.rows[0];
  const picked = of('validation') ? of('validation').strength : null;
  const best = of('test') ? of('test').strength : null;
  body.append(factsOf(line, row), ...wordsOf(line, row, model).map((text) => element('p', {}, text)));
  const holder = element('div');
  const chosen = row.strength === null || row.strength === undefined ? line.mus[0] : row.strength;
  if (line.family !== 'plain' && line.mus.length > 1) {
    const panel = curveOf(line, data.grids, picked, best);
    body.append(element('h3', {}, panel.title));
    if (panel.series[0].y.some((value) => value !== null)) {
      const chart = element('div');
      body.append(element('p', { class: 'quiet' }, curveWords(line, picked, best)), chart);
      mountFigure(
        chart,
        { panels: [{ ...panel, title: '' }], columns: 1 },
        {
          onPick: (_, i) => {
            select.value = String(i);
            showRuns(true);
          },
        },
      );
    } else {
      body.append(
        element(
          'p',
          { class: 'nothing' },
          `No strength has all its runs: ${row.runs || 0} of ${line.of} runs recorded.`,
        ),
      );
    }
  }
  const select = element(
    'select',
    { id: 'which-mu' },
    line.mus.map((mu, i) =>
      element(
        'option',
        { value: i, selected: mu === chosen },
        `μ = ${strength(mu)}${mu === picked ? ', picked on validation' : ''}${mu === best ? ', best on test' : ''}`,
      ),
    ),
  );
  const showRuns = (speak) => {
    const i = Number(select.value);
    holder.replaceChildren(...runsTable(line, data.grids[line.grids[i]], data.grids[line.plain], line.mus[i]));
    if (speak) announce(`Runs at μ = ${strength(line.mus[i])}.`);
  };
  select.addEventListener('change', () => showRuns(true));
  body.append(element('h3', {}, 'The runs'));
  if (line.family !== 'plain') body.append(element('p', {}, element('label', { for: 'which-mu' }, 'Runs at '), select));
  body.append(holder, commandsOf(line, row));
  showRuns(false);
}

function factsOf(line, row) {
  const list = element('dl', { class: 'facts' });
  const fact = (name, ...value) =>
    list.append(element('div', {}, element('dt', {}, name), element('dd', {}, ...value)));
  const score = scoreOf(line);
  const shown = (value, sign = false) => decimals(value, score.digits, sign);
  if (row.mean === undefined) {
    fact('Recorded', `${row.runs || 0} of ${line.of} runs`);
  } else {
    fact(`Test ${score.name}`, `${shown(row.mean)} ± ${shown(row.std)}${score.unit}`);
    fact('95 % interval', `${shown(row.low)} to ${shown(row.high)}`);
  }
  if (row.paper_mean !== undefined) fact('The paper', `${shown(row.paper_mean)} ± ${shown(row.paper_std)}${score.unit}`);
  if (row.apart) fact('Against plain', `${shown(row.apart[0], true)}${score.points}`);
  if (row.mean !== undefined && row.verdict) fact('Verdict', row.verdict);
  if (row.mean !== undefined && line.family !== 'plain') fact('Strength', `μ = ${strength(row.strength)}`);
  return list;
}

const VERDICT_WORDS = {
  reproduced: 'The paper’s number is reproduced: the 95 % interval of the difference lies within ±MARGIN.',
  higher: 'Ours is significantly higher than the paper’s number.',
  lower: 'Ours is significantly lower than the paper’s number.',
  inconclusive: 'Inconclusive against the paper’s number: the seeds vary too much.',
};

const ON_TEST =
  'This μ was picked on the test accuracy that is shown here: the difference is optimistic; ignore its p-value.';

function wordsOf(line, row, model) {
  if (row.mean === undefined) {
    return [
      `Incomplete: ${row.runs || 0} of ${line.of} runs are recorded. Picking a strength from a part of the grid would be a different choice.`,
    ];
  }
  const words = [];
  const score = scoreOf(line);
  const shown = (value, sign = false) => decimals(value, score.digits, sign);
  if (row.apart) {
    const [mean, low, high] = row.apart;
    const sure = row.against_plain === 'inconclusive' ? 'inconclusive' : `significantly ${row.against_plain}`;
    words.push(
      `On the same splits and seeds it is ${shown(Math.abs(mean))}${score.points} ${mean < 0 ? score.worse : score.better} the plain ${model} (95 % interval ${shown(low, true)} to ${shown(high, true)}): ${sure}. It is better in ${Math.round(100 * (row.won || 0))} % of the paired runs; the paired t test over the ${line.units} gives p = ${decimals(row.p_value, 3)}. A difference is significant if p < 0.05, that is if its 95 % interval excludes 0.`,
    );
    if (row.selection === 'test') words.push(ON_TEST);
  } else if (line.family !== 'plain') {
    words.push(
      'No difference: the plain model’s runs on the same splits and seeds are incomplete.',
    );
  }
  if (row.verdict) words.push((VERDICT_WORDS[row.verdict] || row.verdict).replace('MARGIN', `${score.margin}${score.points}`));
  if (row.gain_verdict) words.push(`Its gain over the plain model, against the gain that the paper prints: ${row.gain_verdict}.`);
  if (row.failed) words.push(`${row.failed} of these runs ended in NaN; they count with their best epoch before.`);
  return words;
}

function runsTable(line, grid, plain, mu) {
  const runs = runsOf(grid);
  const base = runsOf(plain);
  const score = scoreOf(line);
  const apart = (run) => {
    const other = base.find((each) => each.split === run.split && each.seed === run.seed);
    return run.test === null || !other || other.test === null ? null : score.sign * (run.test - other.test);
  };
  const recorded = runs.filter((run) => run.test !== null).length;
  const number = (name, value, show) => ({ name, kind: 'number', value, show });
  const columns = [
    number('split', (run) => run.split),
    number('seed', (run) => run.seed),
    number(
      `validation${score.unit}`,
      (run) => run.val,
      (run) => decimals(run.val, score.digits),
    ),
    number(
      `test${score.unit}`,
      (run) => run.test,
      (run) => (run.test === null ? 'missing' : decimals(run.test, score.digits)),
    ),
    ...(line.family === 'plain' ? [] : [number('against plain', apart, (run) => decimals(apart(run), score.digits, true))]),
    number(
      'epoch',
      (run) => run.epoch,
      (run) =>
        run.failed === null ? String(run.epoch === null ? '' : run.epoch) : `${run.epoch} (NaN at ${run.failed})`,
    ),
    { name: 'key', value: (run) => run.key, show: (run) => element('code', { title: run.key }, run.key.slice(0, 12)) },
  ];
  const caption = `${recorded} of ${runs.length} runs recorded${line.family === 'plain' ? '' : ` at μ = ${strength(mu)}`}`;
  return [scroller(caption, makeTable(caption, columns, runs))];
}

function commandsOf(line, row) {
  const only = `dataset=${line.dataset},model=${line.model},method=${line.method}`;
  const command =
    row.mean === undefined
      ? `propreg reproduce ${line.experiment} --only ${only}`
      : `propreg table ${line.experiment} --runs ${line.dataset}/${line.model}/${line.method}`;
  const words = row.mean === undefined ? 'Train the missing runs: ' : 'The same runs as text: ';
  return element(
    'p',
    { class: 'quiet' },
    words,
    element('code', {}, command),
    row.mean === undefined ? '' : '; propreg rerun KEY trains one of them again.',
  );
}

function setUpDetails() {
  const dialog = document.getElementById('details');
  dialog.querySelector('.close').addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.addEventListener('click', (event) => {
    const place = event.target.closest('button.place');
    if (place) openDetails(place.dataset.line, place.dataset.pick);
  });
}
