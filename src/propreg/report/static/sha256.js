// SHA-256 of a text as 64 hexadecimal digits: the key of a run is that of its canonical JSON. The browser's own is not
// there on every address a page can be opened from, and this is needed for a few dozen short texts at a time.

const SHA = (() => {
  const fraction = (value) => ((value - Math.floor(value)) * 2 ** 32) | 0;
  const roots = [];
  const rounds = [];
  for (let n = 2; rounds.length < 64; n += 1) {
    let prime = true;
    for (let d = 2; d * d <= n; d += 1) if (n % d === 0) prime = false;
    if (!prime) continue;
    if (roots.length < 8) roots.push(fraction(n ** (1 / 2)));
    rounds.push(fraction(n ** (1 / 3)));
  }
  return { roots, rounds };
})();

function sha256(text) {
  const bytes = new TextEncoder().encode(text);
  const length = (((bytes.length + 8) >> 6) + 1) * 64;
  const padded = new Uint8Array(length);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(length - 4, bytes.length << 3);
  const state = [...SHA.roots];
  const words = new Int32Array(64);
  const turn = (value, by) => (value >>> by) | (value << (32 - by));
  for (let start = 0; start < length; start += 64) {
    for (let i = 0; i < 64; i += 1) {
      if (i < 16) {
        words[i] = view.getInt32(start + 4 * i);
        continue;
      }
      const a = words[i - 15];
      const b = words[i - 2];
      const low = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3);
      const high = turn(b, 17) ^ turn(b, 19) ^ (b >>> 10);
      words[i] = (words[i - 16] + low + words[i - 7] + high) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i += 1) {
      const choose = (e & f) ^ (~e & g);
      const most = (a & b) ^ (a & c) ^ (b & c);
      const first = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choose + SHA.rounds[i] + words[i]) | 0;
      const second = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + most) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => {
      state[i] = (state[i] + value) | 0;
    });
  }
  return state.map((value) => (value >>> 0).toString(16).padStart(8, '0')).join('');
}
