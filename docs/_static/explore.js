// The front page's graph with a slider: recorded predictions for each strength. Without scripts its picture stays.

document.addEventListener('DOMContentLoaded', () => {
  const data = document.getElementById('explore-data');
  const picture = document.querySelector('img[src$="explore.svg"]');
  if (!data || !picture) return;
  const found = JSON.parse(data.textContent);
  const colors = ['#0072b2', '#e69f00', '#009e73'];
  const labeled = new Set(found.labeled);

  const node = (name, attributes, parent) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  };
  const drawing = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  drawing.setAttribute('viewBox', '-1.1 -1.1 2.2 2.2');
  drawing.setAttribute('role', 'img');
  for (const [a, b] of found.edges) {
    const [[x1, y1], [x2, y2]] = [found.places[a], found.places[b]];
    node('line', { x1, y1, x2, y2, class: 'edge' }, drawing);
  }
  const circles = found.places.map(([cx, cy], i) => {
    node('circle', { cx, cy, r: 0.045, class: 'ground' }, drawing);
    const circle = node('circle', { cx, cy, r: 0.045, class: labeled.has(i) ? 'labeled' : 'unlabeled' }, drawing);
    node('title', {}, circle);
    return circle;
  });

  const slider = document.createElement('input');
  Object.assign(slider, { type: 'range', min: 0, max: found.strengths.length - 1, value: 0, id: 'explore-mu' });
  const label = document.createElement('label');
  label.htmlFor = slider.id;
  label.textContent = 'Strength μ';
  const told = document.createElement('output');
  told.htmlFor = slider.id;
  const names = ['blue', 'orange', 'green'];

  const show = () => {
    const rows = found.percent[Number(slider.value)];
    let right = 0;
    rows.forEach((row, i) => {
      const best = row.indexOf(Math.max(...row));
      if (!labeled.has(i) && best === found.classes[i]) right += 1;
      circles[i].style.fill = colors[best];
      circles[i].style.fillOpacity = Math.max(0.15, (row[best] / 100 - 1 / 3) * 1.5);
      circles[i].firstChild.textContent =
        `${names[best]} ${row[best]}%, is ${names[found.classes[i]]}${labeled.has(i) ? ', labeled' : ''}`;
    });
    const mu = found.strengths[Number(slider.value)];
    const of = rows.length - labeled.size;
    told.textContent = `μ = ${mu}: ${right} of ${of} nodes without a label are right`;
    slider.setAttribute('aria-valuetext', told.textContent);
    drawing.setAttribute('aria-label', `The graph, each node in the color of its predicted class. ${told.textContent}`);
  };
  slider.addEventListener('input', show);
  show();

  const box = document.createElement('div');
  box.className = 'explore';
  box.append(label, slider, told, drawing);
  (picture.closest('.picture') ?? picture).replaceWith(box);
});
