// Elements are made with textContent only: whatever a name holds, it stays text.

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== '') node.append(child);
  }
  return node;
}

// A name from data: isolated, so that right-to-left text cannot reorder its surroundings.
function named(text) {
  return element('bdi', {}, text);
}

function decimals(value, places = 2, sign = false) {
  if (value === null || value === undefined) return '';
  const text = Math.abs(value).toFixed(places);
  if (Number(text) === 0) return text;
  return (value < 0 ? '−' : sign ? '+' : '') + text;
}

// As few digits as tell a strength: 0.45, 3 × 10⁻⁵.
function strength(value) {
  if (value === 0 || (Math.abs(value) >= 0.001 && Math.abs(value) < 1e5)) return String(Number(value.toPrecision(6)));
  return power(value);
}

// A number as a power of ten: 3 × 10⁻⁵.
function power(value) {
  const [digits, raised] = value.toExponential().split('e');
  return `${digits === '1' ? '' : `${digits} × `}10${[...raised.replace('+', '')].map((c) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[c] || '⁻').join('')}`;
}

// Said by screen readers without moving the focus. While a dialog is open, everything outside of it is silent.
function announce(text) {
  const place = document.querySelector('dialog[open] [role=status]') || document.getElementById('said');
  place.textContent = '';
  requestAnimationFrame(() => {
    place.textContent = text;
  });
}
