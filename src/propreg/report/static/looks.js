// What a series looks like: a colour and a shape by its key, the same in every panel and in the legend.

const LOOKS = {
  'preg-reference': { colour: 0, shape: 'circle' },
  'preg-paper': { colour: 1, shape: 'square' },
  'laplacian-mean': { colour: 2, shape: 'triangle' },
  'laplacian-sum': { colour: 3, shape: 'cross' },
  'laplacian-official': { colour: 4, shape: 'diamond' },
  label_smoothing: { colour: 5, shape: 'plus' },
  'confidence_penalty-paper': { colour: 3, shape: 'star' },
  plain: { colour: 6, shape: 'ring' },
  gcn: { colour: 0, shape: 'circle' },
  gat: { colour: 2, shape: 'triangle' },
  mlp: { colour: 5, shape: 'square' },
  'depth-2': { colour: 6, shape: '2' },
  'depth-3': { colour: 4, shape: '3' },
  'depth-4': { colour: 3, shape: '4' },
  test: { colour: 0, shape: 'circle' },
  val: { colour: 1, shape: 'square' },
  chosen: { colour: 0, shape: 'circle' },
  silhouette: { colour: 1, shape: 'circle' },
  'scale-free': { colour: 0, shape: 'triangle' },
  paper: { colour: 6, shape: 'diamond' },
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
const DASHED = new Set(['val', 'plain']); // told apart without colour, also where lines cross
const TINTS = 8;

// The looks of a figure's series and levels, by key. One that has none of its own gets what the figure leaves free.
function looksOf(panels) {
  const ours = (key) => key.replace(/^paper:/, '');
  const all = panels.flatMap((panel) => [...(panel.series || []), ...(panel.levels || [])]);
  const keys = [...new Set(all.map((each) => ours(each.key)))];
  const own = (key) =>
    key.startsWith('class-')
      ? { colour: Number(key.slice(6)) % TINTS || 0, shape: 'circle' }
      : Object.hasOwn(LOOKS, key) && LOOKS[key];
  const found = new Map(keys.filter(own).map((key) => [key, own(key)]));
  const free = (name, choice) =>
    choice.find((each) => ![...found.values()].some((look) => look[name] === each)) ??
    choice[found.size % choice.length];
  for (const key of keys.filter((each) => !own(each)))
    found.set(key, { colour: free('colour', [...Array(TINTS).keys()]), shape: free('shape', SHAPES) });
  return (key) => {
    const { colour, shape } = found.get(ours(key));
    const paper = key === 'paper' || key.startsWith('paper:');
    return { colour: `c${colour}`, shape: paper ? 'diamond' : shape, hollow: paper || shape === 'ring' };
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
