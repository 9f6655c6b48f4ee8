// SPDX-License-Identifier: Apache-2.0
// Charts of series whose last value is the latest one.

import { h, s, set, text } from './dom.js';

/** Points of a line in a box; values that are not known interrupt it. */
function path(values, slots, width, height, top) {
  const step = width / Math.max(1, slots - 1);
  const start = slots - values.length;
  let commands = '';
  let pen = 'M';
  values.forEach((value, index) => {
    if (value === null) {
      pen = 'M';
      return;
    }
    const x = ((start + index) * step).toFixed(1);
    const y = (height - 1 - (value / top) * (height - 3)).toFixed(1);
    commands += `${pen}${x} ${y}`;
    pen = 'L';
  });
  return commands;
}

function highest(...series) {
  return series.flat().reduce((top, value) => Math.max(top, value ?? 0), 0);
}

/** A small line without axes. */
export function sparkline(width, height, lines) {
  const svg = s('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  for (const line of lines) {
    svg.append(s('path', { class: `line ${line}` }));
  }
  svg.chart = { width, height };
  return svg;
}

/** Draws the last `slots` values of each series. All have one scale. */
export function drawSparkline(svg, slots, ...series) {
  const { width, height } = svg.chart;
  const shown = series.map((values) => values.slice(-slots));
  const top = highest(...shown) || 1;
  shown.forEach((values, index) => {
    set(svg.children[index], 'd', path(values, slots, width, height, top) || 'M0 0');
  });
}

/** A chart with its title, its latest and its highest value. */
export function chart(title, kind) {
  const width = 320;
  const height = 84;
  const figure = h('figure', { class: 'chart' },
    h('figcaption', {}, h('span', {}, title), h('span', { class: 'mono latest' }), h('span', { class: 'mono faint top' })));
  const svg = s('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title },
    s('path', { class: 'grid', d: `M0 1H${width}M0 ${height / 2}H${width}M0 ${height - 1}H${width}` }),
    s('path', { class: `area ${kind}` }),
    s('path', { class: `line ${kind}` }));
  const axis = h('div', { class: 'axis faint' }, h('span', { class: 'from' }), h('span', {}, 'now'));
  figure.append(svg, axis);
  figure.chart = { width, height, svg };
  return figure;
}

/** Draws the series. `format` makes texts of values, `span` is the time of all slots as a text. */
export function drawChart(figure, values, slots, format, span) {
  const { width, height, svg } = figure.chart;
  const top = highest(values) || 1;
  const line = path(values, slots, width, height, top);
  set(svg.children[2], 'd', line || 'M0 0');
  const step = width / Math.max(1, slots - 1);
  const first = (Math.max(0, slots - values.length + Math.max(0, values.findIndex((value) => value !== null))) * step).toFixed(1);
  const isWhole = line.lastIndexOf('M') === 0;
  set(svg.children[1], 'd', line && isWhole ? `${line}L${width} ${height}L${first} ${height}Z` : 'M0 0');
  text(figure.querySelector('.latest'), format(values.at(-1) ?? null));
  text(figure.querySelector('.top'), `max ${format(highest(values))}`);
  text(figure.querySelector('.from'), `−${span}`);
}
