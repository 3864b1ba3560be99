// In the head, so that a chosen theme is there before the first paint. Storage may be forbidden: then the choice is
// kept for as long as the page is open.
(() => {
  'use strict';
  const KEY = 'propreg-theme';
  const root = document.documentElement;
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  try {
    chosen = localStorage.getItem(KEY);
  } catch {
    /* forbidden */
  }
  if (chosen === 'dark' || chosen === 'light') root.dataset.theme = chosen;
  root.classList.add('js');

  const dark = () => (root.dataset.theme || (system.matches ? 'dark' : 'light')) === 'dark';
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    const show = () => button.setAttribute('aria-pressed', String(dark()));
    button.hidden = false;
    button.addEventListener('click', () => {
      root.dataset.theme = dark() ? 'light' : 'dark';
      try {
        localStorage.setItem(KEY, root.dataset.theme);
      } catch {
        /* forbidden */
      }
      show();
    });
    system.addEventListener('change', show);
    show();
  });
})();
