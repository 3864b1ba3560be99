// What the page carries: small JSON as it is, the runs gzipped in base 64 and unpacked when they are first asked for.

function readJson(id) {
  const place = document.getElementById(id);
  return place ? JSON.parse(place.textContent) : null;
}

let unpacking = null;

function allRuns() {
  unpacking = unpacking || unpack(document.getElementById('runs').textContent);
  return unpacking;
}

async function unpack(text) {
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('This browser cannot unpack the runs inside the page: a browser from 2023 or later can.');
  }
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

// What the scores of a line are called, and how they are written.
function scoreOf(line) {
  return line.score || { name: 'accuracy', digits: 2, unit: ' %', points: ' points', sign: 1, margin: 1, worse: 'below', better: 'above' };
}

// The runs of a grid, one object each, in the order of splits and seeds; those that are missing say so.
function runsOf(grid) {
  const size = (name, i) => (Array.isArray(grid[name]) ? grid[name][i] : grid[name]);
  const found = [];
  grid.splits.forEach((split, s) =>
    grid.seeds.forEach((seed, e) => {
      const i = s * grid.seeds.length + e;
      const known = grid.test !== undefined && grid.test[i] !== null;
      found.push({
        split,
        seed,
        val: known ? (100 * grid.val[i]) / size('val_of', i) : null,
        test: known ? (100 * grid.test[i]) / size('test_of', i) : null,
        epoch: known ? grid.epoch[i] : null,
        failed: grid.failed && grid.failed[i] !== undefined ? grid.failed[i] : null,
        key: sha256(`{"cell":${grid.cell},"seed":${seed},"split":${split}}`),
      });
    }),
  );
  return found;
}
