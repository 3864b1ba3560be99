// Accuracy against the strength, as a chart and as words.

function curveOf(line, grids, picked, best) {
  const sums = line.grids.map((place) => grids[place].sum || null);
  const at = (i) => sums.map((sum) => (sum ? sum[i] : null));
  const plain = grids[line.plain].sum;
  const range = line.mus[line.mus.length - 1] / line.mus[0];
  const levels = [];
  const score = scoreOf(line);
  if (plain)
    levels.push({
      key: 'plain',
      label: `plain model, ${decimals(plain[0], score.digits)}${score.unit}`,
      value: plain[0],
      low: plain[1],
      high: plain[2],
    });
  if (picked !== null)
    levels.push({ key: 'chosen', label: `picked on validation: μ = ${strength(picked)}`, value: picked, axis: 'x' });
  if (best !== null && best !== picked)
    levels.push({ key: 'laplacian-mean', label: `best on test: μ = ${strength(best)}`, value: best, axis: 'x' });
  return {
    title: `${score.name === 'accuracy' ? 'Accuracy' : score.name} against the strength μ`,
    x_label: 'strength μ',
    y_label: `${score.name}${score.unit && ' in %'}`,
    x_scale: range > 150 ? 'log' : 'linear',
    x_view: range > 150 ? null : [0, Math.max(1, line.mus[line.mus.length - 1])],
    places: score.digits,
    levels,
    series: [
      { key: 'test', label: `test ${score.name}, mean and 95 % interval`, x: line.mus, y: at(0), low: at(1), high: at(2) },
      { key: 'val', label: `validation ${score.name}, mean`, x: line.mus, y: at(3) },
    ],
  };
}

function curveWords(line, picked, best) {
  const { name } = scoreOf(line);
  const words = [
    `Each point is the mean of all runs at one strength. The solid line is test ${name}, its band the 95 % interval of the mean; the dashed line is validation ${name}, the only one that may choose.`,
  ];
  if (picked !== null && best !== null) {
    words.push(
      picked === best
        ? 'Here validation picks the very strength that is best on test.'
        : 'The strength that is best on test is marked too: nobody can know it in advance, but published numbers often look as if they were picked that way.',
    );
  }
  words.push('Click a point, or press Enter on it, to list its runs.');
  return words.join(' ');
}
