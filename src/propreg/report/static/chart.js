// A chart: draws a panel at the width it has, and gives the values of its points to pointer, finger and keyboard.

const NUMBERS = {
  series: [],
  levels: [],
  x_ticks: [],
  y_names: [],
  notes: [],
  x_view: null,
  y_view: null,
  x_scale: 'linear',
  empty: '',
};
const LISTS = { low: [], high: [], x_low: [], x_high: [], runs: [], notes: [], of: 0, kind: 'line' };

// Draws `panel` into `holder`; series whose key is in `hidden` are left out. Returns a function that draws again.
function mountChart(holder, given, { looks, hidden = new Set(), onPick = null }) {
  const panel = { ...NUMBERS, ...given, series: (given.series || []).map((each) => ({ ...LISTS, ...each })) };
  const read = element('output', { class: 'readout', 'aria-live': 'polite' });
  const tip = element('div', { class: 'tip', 'aria-hidden': 'true', hidden: true });
  const keys = panel.series.some((each) => each.kind === 'cloud')
    ? 'Arrow keys walk through the nodes.'
    : 'Arrow keys walk through its points.';
  const plot = element('div', {
    class: 'plot',
    tabindex: 0,
    role: 'application',
    'aria-roledescription': 'chart',
    'aria-label': `${panel.title || panel.y_label || 'Chart'}. ${panel.y_label ? `${panel.y_label} against ${panel.x_label}. ` : ''}${keys}`,
  });
  holder.append(plot, tip, read);
  let shown = [];
  let current = null;

  const draw = () => {
    const width = Math.max(220, Math.floor(plot.clientWidth || 320));
    const picture = paint(panel, width, hidden, looks);
    shown = picture.shown;
    current = null;
    tip.hidden = true;
    plot.replaceChildren(picture.svg);
  };
  const light = (hit, speak) => {
    current = hit;
    plot.querySelectorAll('.here, .crosshair').forEach((each) => each.remove());
    tip.hidden = !hit;
    if (!hit) return;
    const others = together(panel, shown, hit);
    if (others.length) {
      const [y1, y2] = shown.frame;
      plot.firstChild.append(drawn('line', { class: 'crosshair', x1: hit.px, x2: hit.px, y1, y2 }));
    }
    plot.firstChild.append(drawn('circle', { class: 'here', cx: hit.px, cy: hit.py, r: 7 }));
    const words = describe(panel, hit);
    for (const other of others) words.lines.push(`${other.series.label}: ${describe(panel, other).value}`);
    tip.replaceChildren(element('strong', {}, words.head), ...words.lines.map((line) => element('span', {}, line)));
    const wide = plot.clientWidth;
    const left = Math.min(Math.max(hit.px - tip.offsetWidth / 2, 0), Math.max(0, wide - tip.offsetWidth));
    tip.style.left = `${left}px`;
    tip.style.top = hit.py - tip.offsetHeight - 14 < 0 ? `${hit.py + 14}px` : `${hit.py - tip.offsetHeight - 14}px`;
    if (speak) read.textContent = [words.head, ...words.lines].join(', ');
  };
  const nearest = (event) => {
    const box = plot.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    for (const hit of shown) {
      const apart = (hit.px - px) ** 2 + (hit.py - py) ** 2;
      if (!best || apart < best.apart) best = { apart, hit };
    }
    return best && best.apart < 48 ** 2 ? best.hit : null;
  };
  plot.addEventListener('pointermove', (event) => light(nearest(event), false));
  plot.addEventListener('pointerleave', () => {
    if (document.activeElement !== plot) light(null, false);
  });
  plot.addEventListener('blur', () => light(null, false));
  plot.addEventListener('click', (event) => {
    const hit = nearest(event);
    light(hit, true);
    if (hit && onPick) onPick(hit.series, hit.i);
  });
  plot.addEventListener('keydown', (event) => {
    const next = step(shown, current, event.key);
    if (event.key === 'Enter' && current && onPick) onPick(current.series, current.i);
    if (event.key === 'Escape' && current) {
      event.preventDefault();
      light(null, false);
    }
    if (!next) return;
    event.preventDefault();
    light(next, true);
  });
  let before = 0;
  new ResizeObserver(() => {
    if (plot.clientWidth !== before) draw();
    before = plot.clientWidth;
  }).observe(plot);
  return draw;
}

// The next point for a key: along the series, or the nearest in x of the next series.
function step(shown, current, key) {
  if (!shown.length || !['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'].includes(key)) return null;
  if (!current) return shown[0];
  const mine = shown.filter((hit) => hit.series === current.series);
  const at = mine.indexOf(current);
  if (key === 'Home') return mine[0];
  if (key === 'End') return mine[mine.length - 1];
  if (key === 'ArrowRight') return mine[Math.min(at + 1, mine.length - 1)];
  if (key === 'ArrowLeft') return mine[Math.max(at - 1, 0)];
  const all = [...new Set(shown.map((hit) => hit.series))];
  const other = all[(all.indexOf(current.series) + (key === 'ArrowDown' ? 1 : all.length - 1)) % all.length];
  const theirs = shown.filter((hit) => hit.series === other);
  return theirs.reduce((best, hit) => (Math.abs(hit.px - current.px) < Math.abs(best.px - current.px) ? hit : best));
}

function paint(panel, width, hidden, looks) {
  const cloud = panel.series.some((each) => each.kind === 'cloud');
  const visible = panel.series.filter((each) => !hidden.has(each.key));
  const names = panel.y_names.length;
  // Series side by side where the axis has names; the paper's value shares the row of ours.
  const slots = [...new Set(panel.series.map((each) => each.key.replace(/^paper:/, '')))];
  const rows = Math.max(1, slots.length);
  const above = panel.levels.filter((each) => each.axis === 'x' && !each.bare).length;
  const height = cloud
    ? Math.min(width, 380)
    : names
      ? 56 + names * Math.max(30, rows * 9)
      : Math.round(Math.min(340, Math.max(230, width * 0.62)));
  const longest = Math.max(0, ...panel.y_names.map((each) => each.length));
  const box = cloud
    ? { left: 6, right: width - 6, top: 6, bottom: height - 6 }
    : {
        left: names ? Math.min(longest * 6.6 + 18, width * 0.4) : 44,
        right: width - 14,
        top: 10 + 17 * above,
        bottom: height - 44,
      };
  const log = panel.x_scale === 'log';
  const across = panel.levels.filter((each) => each.axis === 'x').map((each) => each.value);
  const up = panel.levels.filter((each) => each.axis !== 'x').flatMap((each) => [each.value, each.low, each.high]);
  const [x0, x1] = extent(
    panel.x_view,
    [...panel.series.flatMap((s) => [...s.x, ...s.x_low, ...s.x_high]), ...across],
    log,
    names ? 0.06 : 0.03,
  );
  const [y0, y1] = extent(panel.y_view, [...panel.series.flatMap((s) => [...s.y, ...s.low, ...s.high]), ...up], false);
  const x = makeScale(x0, x1, box.left, box.right, log);
  const y = names ? makeScale(-0.5, names - 0.5, box.top, box.bottom) : makeScale(y0, y1, box.bottom, box.top);
  const svg = drawn('svg', {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    'aria-hidden': 'true',
    focusable: 'false',
  });
  if (!cloud) frame(svg, panel, box, x, y);
  let row = 0;
  panel.levels.forEach((level) => {
    drawLevel(svg, level, looks(level.key), x, y, box, row);
    if (level.axis === 'x' && !level.bare) row += 1;
  });
  const shown = [];
  const room = names ? Math.min(10, ((box.bottom - box.top) / names - 8) / rows) : 0;
  const area = { x, y, box, clip: clipTo(svg, box), crowd: new Map() };
  panel.series.forEach((series) => {
    if (!visible.includes(series)) return;
    const offset = names ? (slots.indexOf(series.key.replace(/^paper:/, '')) - (rows - 1) / 2) * room : 0;
    for (const p of drawSeries(svg, series, looks(series.key), area, offset)) shown.push({ ...p, series });
  });
  shown.frame = [box.top, box.bottom];
  return { svg, shown };
}

// The points of other lines at the same place: a few are worth reading beside each other.
function together(panel, shown, hit) {
  if (panel.y_names.length || hit.series.kind !== 'line') return [];
  const beside = shown.filter((each) => each.series !== hit.series && Math.abs(each.px - hit.px) < 0.5);
  return beside.length <= 6 ? beside : [];
}

// What a point says.
function describe(panel, { series, i }) {
  if (series.kind === 'cloud') {
    if (series.notes[i]) return { head: series.label, lines: [series.notes[i]] };
    return { head: series.nodes ? `node ${series.nodes[i]}` : series.label, lines: [series.label] };
  }
  const lines = [];
  const value = (v) =>
    panel.places === undefined ? decimals(v, Math.abs(v) >= 10 ? 2 : 3) : decimals(v, panel.places);
  const between = (low, high) =>
    low !== null && low !== undefined && high !== null ? ` (${value(low)} to ${value(high)})` : '';
  if (panel.y_names.length) {
    lines.push(`${panel.y_names[series.y[i]]}: ${value(series.x[i])}${between(series.x_low[i], series.x_high[i])}`);
  } else {
    lines.push(`${panel.x_label} ${strength(Number(series.x[i].toPrecision(4)))}`);
    lines.push(`${panel.y_label} ${value(series.y[i])}${between(series.low[i], series.high[i])}`);
  }
  const said = panel.y_names.length ? '' : `${value(series.y[i])}${between(series.low[i], series.high[i])}`;
  if (series.notes[i]) lines.push(series.notes[i]);
  if (series.of && series.runs.length) lines.push(`${series.runs[i]} of ${series.of} runs`);
  return { head: series.label, lines, value: said };
}
