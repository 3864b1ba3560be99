// Scales, ticks and the frame of a chart. A scale maps a value to a place in pixels.

function makeScale(low, high, from, to, log = false) {
  const map = log ? Math.log10 : (value) => value;
  const [a, b] = [map(low), map(high)];
  const span = b - a || 1;
  const scale = (value) => from + ((map(value) - a) / span) * (to - from);
  scale.low = low;
  scale.high = high;
  scale.log = log;
  return scale;
}

// Round values inside a range, about as many as asked for; powers of ten where the scale is logarithmic.
function ticksOf(scale, wanted) {
  const found = [];
  if (scale.log) {
    const powers = [Math.ceil(Math.log10(scale.low) - 1e-9), Math.floor(Math.log10(scale.high) + 1e-9)];
    const step = Math.max(1, Math.ceil((powers[1] - powers[0] + 1) / wanted));
    for (let power = powers[0]; power <= powers[1]; power += step) found.push(Number(`1e${power}`));
    return found;
  }
  const count = (each) => Math.floor(scale.high / each + 1e-9) - Math.ceil(scale.low / each - 1e-9) + 1;
  const unit = 10 ** (Math.floor(Math.log10(scale.high - scale.low)) - 1);
  const step = [1, 2, 5, 10, 20, 50, 100].map((each) => each * unit).find((each) => count(each) <= wanted);
  for (let i = Math.ceil(scale.low / step - 1e-9); i * step <= scale.high + step * 1e-9; i += 1) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

// Labels of ticks, written alike: on a logarithmic axis either all as powers of ten or none.
function tickTexts(ticks, log) {
  const powers = log && ticks.some((tick) => /10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]/.test(strength(tick)));
  return ticks.map((tick) => (powers ? power(tick) : strength(tick).replace('-', '−')));
}

function known(values) {
  return values.filter((value) => value !== null && value !== undefined && Number.isFinite(value));
}

// The ends of an axis: those of the view where one is given, else all that is drawn and a little air.
function extent(view, values, log, air = 0.06) {
  if (view) return [view[0], view[1]];
  const usable = known(values).filter((value) => !log || value > 0);
  if (!usable.length) return [0, 1];
  // Not Math.min(...usable): a long list is more arguments than a call may have.
  const low = usable.reduce((a, b) => Math.min(a, b));
  const high = usable.reduce((a, b) => Math.max(a, b));
  if (log) return [low / 1.3, high * 1.3];
  const room = (high - low || Math.abs(high) * 0.02 || 1) * air;
  return [low - room, high + room];
}

function frame(svg, panel, box, x, y) {
  const wide = box.right - box.left;
  const across = panel.x_ticks.length ? panel.x_ticks : ticksOf(x, Math.max(3, Math.min(6, Math.floor(wide / 48))));
  const texts = tickTexts(across, x.log);
  let lastEnd = -Infinity;
  for (const [i, tick] of across.entries()) {
    const at = x(tick);
    if (at < box.left - 0.5 || at > box.right + 0.5) continue;
    svg.append(drawn('line', { class: 'grid', x1: at, x2: at, y1: box.top, y2: box.bottom }));
    const text = texts[i];
    const half = text.length * 3.4;
    if (at - half < lastEnd) continue; // labels that would touch are left out
    lastEnd = at + half + 6;
    svg.append(drawn('text', { class: 'tick', x: at, y: box.bottom + 17, 'text-anchor': 'middle' }, text));
  }
  if (panel.y_names.length) {
    panel.y_names.forEach((name, i) => {
      svg.append(drawn('text', { class: 'tick name', x: box.left - 10, y: y(i) + 4, 'text-anchor': 'end' }, name));
      if (i) {
        const between = (y(i) + y(i - 1)) / 2;
        svg.append(drawn('line', { class: 'grid', x1: box.left, x2: box.right, y1: between, y2: between }));
      }
    });
  } else {
    // Labels 26 pixels apart can be read, and a low picture needs as many as that: one tick is no axis.
    for (const tick of ticksOf(y, Math.max(3, Math.min(7, Math.floor((box.bottom - box.top) / 26))))) {
      svg.append(drawn('line', { class: 'grid', x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
      const text = strength(tick).replace('-', '−');
      svg.append(drawn('text', { class: 'tick', x: box.left - 8, y: y(tick) + 4, 'text-anchor': 'end' }, text));
    }
  }
  svg.append(drawn('line', { class: 'axis', x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  const middle = (box.left + box.right) / 2;
  svg.append(drawn('text', { class: 'label', x: middle, y: box.bottom + 35, 'text-anchor': 'middle' }, panel.x_label));
}
