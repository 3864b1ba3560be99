// Accuracy against the strength, as a chart and as words.

function curveOf(line, grids, picked, best) {
  const sums = line.grids.map((place) => grids[place].sum || null);
  const at = (i) => sums.map((sum) => (sum ? sum[i] : null));
  const plain = grids[line.plain].sum;
  const range = line.mus[line.mus.length - 1] / line.mus[0];
  const levels = [];
  if (plain)
    levels.push({
      key: 'plain',
      label: `plain model, ${decimals(plain[0])} %`,
      value: plain[0],
      low: plain[1],
      high: plain[2],
    });
  if (picked !== null)
    levels.push({ key: 'chosen', label: `picked on validation: μ = ${strength(picked)}`, value: picked, axis: 'x' });
  if (best !== null && best !== picked)
    levels.push({ key: 'laplacian-mean', label: `best on test: μ = ${strength(best)}`, value: best, axis: 'x' });
  return {
    title: 'Accuracy against the strength μ',
    x_label: 'strength μ',
    y_label: 'accuracy in %',
    x_scale: range > 150 ? 'log' : 'linear',
    x_view: range > 150 ? null : [0, Math.max(1, line.mus[line.mus.length - 1])],
    places: 2,
    levels,
    series: [
      { key: 'test', label: 'test accuracy, mean and 95 % interval', x: line.mus, y: at(0), low: at(1), high: at(2) },
      { key: 'val', label: 'validation accuracy, mean', x: line.mus, y: at(3) },
    ],
  };
}

function curveWords(picked, best) {
  const words = [
    'Each point is the mean of all runs at one strength. The solid line is test accuracy, its band the 95 % interval of the mean; the dashed line is validation accuracy, the only one that may choose.',
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
