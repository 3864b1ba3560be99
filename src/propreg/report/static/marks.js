// What is drawn inside a chart's frame: bands, lines, points with interval bars, clouds, and reference lines.

const MANY = 30;
const ROOM = 9; // pixels between marks of points that lie outside at one place
let clips = 0;

// Lines and bands keep their true course where they leave the axis, and are cut off there.
function clipTo(svg, box) {
  clips += 1;
  const id = `clip-${clips}`;
  const air = 1.5; // a line along the edge keeps its width
  const size = { width: box.right - box.left + 2 * air, height: box.bottom - box.top + 2 * air };
  const rect = drawn('rect', { x: box.left - air, y: box.top - air, ...size });
  svg.append(drawn('defs', {}, drawn('clipPath', { id }, rect)));
  return `url(#${id})`;
}

// Draws one series and returns the points that can be pointed at. `area` has the scales, the frame, its clip, and how
// many marks already stand at a place of its edge.
function drawSeries(svg, series, look, area, offset) {
  const { x, y, box, clip, crowd } = area;
  const group = drawn('g', { class: `series ${look.color}`, 'data-key': series.key });
  const cut = drawn('g', { 'clip-path': clip });
  svg.append(group);
  const points = [];
  series.x.forEach((value, i) => {
    if (value === null || series.y[i] === null || (x.log && value <= 0)) return;
    const at = y(series.y[i]) + offset;
    points.push({ i, px: x(value), at, py: at, out: at > box.bottom + 1 ? 'down' : at < box.top - 1 ? 'up' : '' });
  });
  if (series.kind === 'cloud') {
    group.append(
      drawn('path', { class: 'cloud', d: points.map((p) => `M${p.px.toFixed(1)} ${p.at.toFixed(1)}h0`).join('') }),
    );
    return points;
  }
  group.append(cut);
  if (series.kind === 'line') for (const run of unbroken(points)) drawLine(cut, series, run, x, y);
  if (series.kind === 'points') for (const p of points) bars(cut, series, p, x, y);
  for (const p of points) {
    if (p.out) p.py = atEdge(p, box, crowd);
    else if (series.kind === 'line' && points.length > MANY) continue; // a rope of beads is no line
    const mark = p.out ? { shape: p.out, hollow: false } : look;
    group.append(shapeAt(mark, p.px, p.py, series.kind === 'line' && !p.out ? 3 : 4));
  }
  return points;
}

function drawLine(group, series, run, x, y) {
  const known = run.filter((p) => series.low.length && series.low[p.i] !== null && series.high[p.i] !== null);
  if (series.x_low.length) {
    for (const p of run) bars(group, series, p, x, y, 'bar faint'); // both are measured: a band has no meaning there
  } else if (known.length > 1) {
    const upper = known.map((p) => `${p.px} ${y(series.high[p.i])}`);
    const lower = known.map((p) => `${p.px} ${y(series.low[p.i])}`).reverse();
    group.append(drawn('path', { class: 'band', d: `M${[...upper, ...lower].join('L')}Z` }));
  } else if (run.length === 1) bars(group, series, run[0], x, y); // a band needs two places
  group.append(
    drawn('path', {
      class: `line${DASHED.has(series.key) ? ' dashed' : ''}`,
      d: `M${run.map((p) => `${p.px} ${p.at}`).join('L')}`,
    }),
  );
}

// Where the mark of a point outside stands: at the edge, on those that are there already.
function atEdge(p, box, crowd) {
  const place = `${p.out} ${Math.round(p.px)}`;
  const before = crowd.get(place) || 0;
  crowd.set(place, before + 1);
  return p.out === 'down' ? box.bottom - 4 - ROOM * before : box.top + 4 + ROOM * before;
}

function unbroken(points) {
  const runs = [];
  points.forEach((p, n) => {
    if (n && p.i === points[n - 1].i + 1) runs[runs.length - 1].push(p);
    else runs.push([p]);
  });
  return runs;
}

function bars(group, series, p, x, y, style = 'bar') {
  const bar = (x1, y1, x2, y2) => group.append(drawn('line', { class: style, x1, y1, x2, y2 }));
  if (series.low.length && series.low[p.i] !== null) bar(p.px, y(series.low[p.i]), p.px, y(series.high[p.i]));
  if (series.x_low.length && series.x_low[p.i] !== null) bar(x(series.x_low[p.i]), p.at, x(series.x_high[p.i]), p.at);
}

function drawLevel(svg, level, look, x, y, box, row) {
  const style = level.source === 'paper' ? 'dotted' : 'dashed';
  const group = drawn('g', { class: `level ${look.color}` });
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
