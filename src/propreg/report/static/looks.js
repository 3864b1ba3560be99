// What a series looks like: a color and a shape by its key, the same in every panel and in the legend.

const LOOKS = {
  'preg-reference': { color: 0, shape: 'circle' },
  'preg-paper': { color: 1, shape: 'square' },
  'laplacian-mean': { color: 2, shape: 'triangle' },
  'laplacian-sum': { color: 3, shape: 'cross' },
  'laplacian-official': { color: 4, shape: 'diamond' },
  label_smoothing: { color: 5, shape: 'plus' },
  'confidence_penalty-paper': { color: 3, shape: 'star' },
  plain: { color: 6, shape: 'ring' },
  gcn: { color: 0, shape: 'circle' },
  gat: { color: 2, shape: 'triangle' },
  mlp: { color: 5, shape: 'square' },
  'depth-2': { color: 6, shape: '2' },
  'depth-3': { color: 4, shape: '3' },
  'depth-4': { color: 3, shape: '4' },
  test: { color: 0, shape: 'circle' },
  val: { color: 1, shape: 'square' },
  chosen: { color: 0, shape: 'circle' },
  silhouette: { color: 1, shape: 'circle' },
  'scale-free': { color: 0, shape: 'triangle' },
  both: { color: 6, shape: 'circle' },
  fixed: { color: 0, shape: 'circle' },
  broken: { color: 2, shape: 'triangle' },
  neither: { color: 7, shape: 'cross' },
  paper: { color: 6, shape: 'diamond' },
};
const ARM = [0.5, 1.35];
const TURN = Math.SQRT1_2;
const PLUS = [
  [-ARM[0], -ARM[1]],
  [ARM[0], -ARM[1]],
  [ARM[0], -ARM[0]],
  [ARM[1], -ARM[0]],
  [ARM[1], ARM[0]],
  [ARM[0], ARM[0]],
  [ARM[0], ARM[1]],
  [-ARM[0], ARM[1]],
  [-ARM[0], ARM[0]],
  [-ARM[1], ARM[0]],
  [-ARM[1], -ARM[0]],
  [-ARM[0], -ARM[0]],
];
// Corners of shapes of size 1 around 0; the others are circles, or a digit in one.
const CORNERS = {
  square: [[-0.95, -0.95], [0.95, -0.95], [0.95, 0.95], [-0.95, 0.95]],
  triangle: [[0, -1.2], [1.15, 0.85], [-1.15, 0.85]],
  cross: PLUS.map(([x, y]) => [(x - y) * TURN, (x + y) * TURN]),
  diamond: [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
  plus: PLUS,
  star: Array.from({ length: 10 }, (_, i) => {
    const [far, angle] = [i % 2 ? 0.62 : 1.5, (i * Math.PI) / 5];
    return [far * Math.sin(angle), -far * Math.cos(angle)];
  }),
  up: [[0, -1], [1.3, 0.9], [-1.3, 0.9]],
  down: [[0, 1], [1.3, -0.9], [-1.3, -0.9]],
}; // up and down say that a point lies outside: no series has them
const SHAPES = ['circle', 'square', 'triangle', 'cross', 'diamond', 'plus', 'star', 'ring'];
const DASHED = new Set(['val', 'plain']); // told apart without color, also where lines cross
const TINTS = 8;

// The looks of a figure's series and levels, by key. One that has none of its own gets what the figure leaves free.
function looksOf(panels) {
  const ours = (key) => key.replace(/^paper:/, '');
  const all = panels.flatMap((panel) => [...(panel.series || []), ...(panel.levels || [])]);
  const keys = [...new Set(all.map((each) => ours(each.key)))];
  const own = (key) =>
    key.startsWith('class-')
      ? { color: Number(key.slice(6)) % TINTS || 0, shape: 'circle' }
      : Object.hasOwn(LOOKS, key) && LOOKS[key];
  const found = new Map(keys.filter(own).map((key) => [key, own(key)]));
  const free = (name, choice) =>
    choice.find((each) => ![...found.values()].some((look) => look[name] === each)) ??
    choice[found.size % choice.length];
  for (const key of keys.filter((each) => !own(each)))
    found.set(key, { color: free('color', [...Array(TINTS).keys()]), shape: free('shape', SHAPES) });
  return (key) => {
    const { color, shape } = found.get(ours(key));
    const paper = key === 'paper' || key.startsWith('paper:');
    return { color: `c${color}`, shape: paper ? 'diamond' : shape, hollow: paper || shape === 'ring' };
  };
}

function shapeAt({ shape, hollow }, x, y, size) {
  const marks = { class: hollow ? 'point hollow' : 'point', 'data-shape': shape };
  const circle = (r, more) => drawn('circle', { ...more, cx: x, cy: y, r });
  if (/^\d$/.test(shape)) {
    const digit = drawn('text', { class: 'digit', x, y: y + 3, 'text-anchor': 'middle' }, shape);
    return drawn('g', { 'data-shape': shape }, circle(6, { class: 'point hollow' }), digit);
  }
  if (!Object.hasOwn(CORNERS, shape)) return circle(size, marks);
  const corners = CORNERS[shape].map(([dx, dy]) => `${(x + size * dx).toFixed(2)} ${(y + size * dy).toFixed(2)}`);
  return drawn('path', { ...marks, d: `M${corners.join('L')}Z` });
}
