// SPDX-License-Identifier: Apache-2.0
// Keys and the buttons that do the same.

import { byId } from './dom.js';

const THEMES = ['system', 'light', 'dark'];

function applyTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId('theme').textContent = { system: '◐ auto', light: '○ light', dark: '● dark' }[theme];
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  try {
    localStorage.setItem('taran-theme', theme);
  } catch {
    // A browser without storage forgets it.
  }
  applyTheme(theme);
}

function storedTheme() {
  try {
    const stored = localStorage.getItem('taran-theme');
    return THEMES.includes(stored) ? stored : 'system';
  } catch {
    return 'system';
  }
}

/** Makes keys and buttons work. `actions` has a function for each key that is not about the page itself. */
export function listen(streams, actions) {
  const filter = byId('filter');
  const help = byId('help');
  applyTheme(storedTheme());
  byId('theme').addEventListener('click', nextTheme);
  byId('help-button').addEventListener('click', () => help.showModal());

  filter.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      filter.value = '';
      streams.setOption('filter', '');
      filter.blur();
    } else if (event.key === 'Enter') {
      filter.blur();
      streams.move(0);
    }
  });

  const keys = {
    '/': () => filter.focus(),
    '?': () => help.showModal(),
    j: () => streams.move(1),
    k: () => streams.move(-1),
    ArrowDown: () => streams.move(1),
    ArrowUp: () => streams.move(-1),
    Enter: () => streams.toggleDetails(),
    s: () => streams.nextOrder(),
    n: () => streams.setOption('nonzero', !streams.options.nonzero),
    t: nextTheme,
    ...actions,
  };

  document.addEventListener('keydown', (event) => {
    const { target } = event;
    const isTyped = target.matches('input:not([type=checkbox]), textarea, select');
    const isButton = target.matches('button, summary, a') && (event.key === 'Enter' || event.key === ' ');
    if (isTyped || isButton || help.open || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    // The graph scrolls by its own arrows.
    if (target.id === 'flow' && event.key.startsWith('Arrow')) {
      return;
    }
    const action = keys[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  });
}
