// What is drawn inside a chart's frame: bands, lines, points with interval bars, clouds, and reference lines.

const COLOURS = {
  'preg-reference': 0,
  gcn: 0,
  chosen: 0,
  test: 0,
  'preg-paper': 1,
  val: 1,
  silhouette: 1,
  'scale-free': 0,
  'laplacian-mean': 2,
  gat: 2,
  'laplacian-sum': 3,
  'laplacian-official': 4,
  label_smoothing: 5,
  mlp: 5,
  'confidence_penalty-paper': 3,
  plain: 6,
  'depth-2': 6,
  'depth-3': 4,
  'depth-4': 3,
  paper: 6,
};

function colourOf(key, order) {
  const name = key.startsWith('paper:') ? key.slice(6) : key;
  if (name.startsWith('class-')) return `c${Number(name.slice(6)) % 8 || 0}`;
  return `c${Object.hasOwn(COLOURS, name) ? COLOURS[name] : order % 8}`;
}

// Shapes tell series apart where colours do not.
function shapeAt(shape, x, y, size) {
  const r = size;
  if (shape === 'diamond')
    return drawn('path', {
      d: `M${x} ${y - r * 1.25}L${x + r * 1.25} ${y}L${x} ${y + r * 1.25}L${x - r * 1.25} ${y}Z`,
    });
  if (shape === 'square') return drawn('rect', { x: x - r * 0.9, y: y - r * 0.9, width: r * 1.8, height: r * 1.8 });
  if (shape === 'triangle')
    return drawn('path', { d: `M${x} ${y - r * 1.15}L${x + r * 1.1} ${y + r * 0.85}L${x - r * 1.1} ${y + r * 0.85}Z` });
  return drawn('circle', { cx: x, cy: y, r });
}

const DASHED = new Set(['val', 'plain']); // told apart without colour, also where lines cross
const MANY = 30;
const SHAPES = ['circle', 'square', 'triangle', 'diamond'];

function shapeOf(series, order) {
  return series.key.startsWith('paper') ? 'diamond' : SHAPES[order % SHAPES.length];
}

// Draws one series and returns the points that can be pointed at.
function drawSeries(svg, series, order, x, y, box, offset) {
  const group = drawn('g', {
    class: `series ${colourOf(series.key, order)}${series.key.startsWith('paper') ? ' hollow' : ''}`,
  });
  svg.append(group);
  const inside = (value) => Math.min(Math.max(value, box.top), box.bottom);
  const points = [];
  series.x.forEach((value, i) => {
    if (value === null || series.y[i] === null || (x.log && value <= 0)) return;
    const at = y(series.y[i]) + offset;
    points.push({ i, px: x(value), py: inside(at), below: at > box.bottom + 1 });
  });
  if (series.kind === 'cloud') {
    group.append(
      drawn('path', { class: 'cloud', d: points.map((p) => `M${p.px.toFixed(1)} ${p.py.toFixed(1)}h0`).join('') }),
    );
    return points;
  }
  if (series.kind === 'line') {
    for (const run of unbroken(points)) {
      const banded = run.filter((p) => series.low.length && series.low[p.i] !== null && series.high[p.i] !== null);
      if (banded.length > 1) {
        const upper = banded.map((p) => `${p.px} ${inside(y(series.high[p.i]))}`);
        const lower = banded.map((p) => `${p.px} ${inside(y(series.low[p.i]))}`).reverse();
        group.append(drawn('path', { class: 'band', d: `M${[...upper, ...lower].join('L')}Z` }));
      }
      group.append(
        drawn('path', {
          class: `line${DASHED.has(series.key) ? ' dashed' : ''}`,
          d: `M${run.map((p) => `${p.px} ${p.py}`).join('L')}`,
        }),
      );
    }
  }
  for (const p of points) {
    if (series.kind === 'points') bars(group, series, p, x, y, inside);
    if (series.kind === 'line' && points.length > MANY && !p.below) continue; // a rope of beads is no line
    const shape = shapeAt(p.below ? 'triangle' : shapeOf(series, order), p.px, p.py, series.kind === 'line' ? 3 : 4);
    if (p.below) shape.setAttribute('transform', `rotate(180 ${p.px} ${p.py})`);
    shape.setAttribute('class', 'point');
    group.append(shape);
  }
  return points;
}

function unbroken(points) {
  const runs = [];
  points.forEach((p, n) => {
    if (n && p.i === points[n - 1].i + 1) runs[runs.length - 1].push(p);
    else runs.push([p]);
  });
  return runs;
}

function bars(group, series, p, x, y, inside) {
  const bar = (x1, y1, x2, y2) => group.append(drawn('line', { class: 'bar', x1, y1, x2, y2 }));
  if (series.low.length && series.low[p.i] !== null)
    bar(p.px, inside(y(series.low[p.i])), p.px, inside(y(series.high[p.i])));
  if (series.x_low.length && series.x_low[p.i] !== null) bar(x(series.x_low[p.i]), p.py, x(series.x_high[p.i]), p.py);
}

function drawLevel(svg, level, order, x, y, box, row) {
  const style = level.source === 'paper' ? 'dotted' : 'dashed';
  const group = drawn('g', { class: `level ${colourOf(level.key, order)}` });
  svg.append(group);
  if (level.axis === 'x') {
    const at = x(level.value);
    group.append(drawn('line', { class: style, x1: at, x2: at, y1: box.top, y2: box.bottom }));
    if (!level.bare) {
      const left = at > (box.left + box.right) / 2;
      group.append(
        drawn('text', { class: 'mark', x: at, y: 13 + 16 * row, 'text-anchor': left ? 'end' : 'start' }, level.label),
      );
    }
    return;
  }
  const at = y(level.value);
  if (at < box.top - 1 || at > box.bottom + 1) return;
  if (level.low !== null && level.low !== undefined && level.high !== null && level.high !== undefined) {
    const top = Math.max(y(level.high), box.top);
    const height = Math.max(0, Math.min(y(level.low), box.bottom) - top);
    group.append(drawn('rect', { class: 'band', x: box.left, width: box.right - box.left, y: top, height }));
  }
  group.append(drawn('line', { class: style, x1: box.left, x2: box.right, y1: at, y2: at }));
}
