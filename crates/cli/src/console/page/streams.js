// SPDX-License-Identifier: Apache-2.0
// The table of streams, with the details of the selected one.

import { byId, h, keyed, set, text, toggle } from './dom.js';
import { bytes, duration, events, grouped, number, rate } from './format.js';
import { chart, drawChart, drawSparkline, sparkline } from './charts.js';
import { ORDER_NAMES, ORDERS, STATES, select } from './model.js';

/** Rows that are shown at first. */
const PAGE = 250;
const SPARK_SLOTS = 60;

const COLUMNS = [
  { name: 'State', order: null, kind: 'state' },
  { name: 'Stream', order: 'stream', kind: 'stream' },
  { name: 'Rate', order: 'rate', kind: 'num rate' },
  { name: 'Last minute', order: null, kind: 'history' },
  { name: 'Lag', order: 'lag', kind: 'num lag' },
  { name: 'NAKs/s', order: 'naks', kind: 'num naks' },
  { name: 'Lost', order: 'lost', kind: 'num lost' },
  { name: 'Limited by', order: null, kind: 'limit' },
];

/** Time for which the order of the rows stays after a selection. */
const HELD_MS = 10_000;

/** Returns the rows in the order that they had before, then those that are new. */
function hold(rows, before) {
  if (before.length === 0) {
    return rows;
  }
  const places = new Map(before.map((row, index) => [row.id, index]));
  const place = (row) => places.get(row.id) ?? before.length;
  return rows.sort((a, b) => place(a) - place(b));
}

export class Streams {
  constructor(feed, onFilter) {
    this.feed = feed;
    this.onFilter = onFilter;
    this.table = byId('streams');
    this.options = { filter: '', nonzero: false, order: 'rate' };
    this.selected = null;
    this.open = null;
    this.limit = PAGE;
    this.heldUntil = 0;
    this.rows = [];
    this.all = [];
    byId('streams-head').append(...COLUMNS.map((column) => this.heading(column)));
    byId('filter').addEventListener('input', (event) => this.setOption('filter', event.target.value));
    byId('nonzero').addEventListener('change', (event) => this.setOption('nonzero', event.target.checked));
  }

  heading(column) {
    const cell = h('th', { scope: 'col', class: column.kind });
    if (column.order === null) {
      cell.append(column.name);
    } else {
      cell.order = column.order;
      cell.append(h('button', { type: 'button', onclick: () => this.setOption('order', column.order) }, column.name));
    }
    return cell;
  }

  setOption(name, value) {
    this.options[name] = value;
    this.limit = PAGE;
    this.heldUntil = 0;
    byId('nonzero').checked = this.options.nonzero;
    this.update(this.all);
    this.onFilter();
  }

  nextOrder() {
    const at = ORDERS.indexOf(this.options.order);
    this.setOption('order', ORDERS[(at + 1) % ORDERS.length]);
  }

  /** Shows these rows. */
  update(all) {
    this.all = all;
    const held = Date.now() < this.heldUntil ? this.rows : [];
    this.rows = hold(select(all, this.options), held);
    for (const cell of byId('streams-head').children) {
      if (cell.order !== undefined) {
        set(cell, 'aria-sort', cell.order !== this.options.order ? 'none' : cell.order === 'stream' ? 'ascending' : 'descending');
      }
    }
    const shown = this.rows.slice(0, this.limit);
    keyed(this.table, [{ id: 'head' }, ...shown], (row) => row.id, (row) => this.create(row), (element, row) => this.refresh(element, row));
    text(byId('streams-count'), this.rows.length === all.length ? all.length : `${this.rows.length} of ${all.length}`);
    this.showRest(shown.length);
  }

  showRest(shown) {
    const empty = byId('streams-empty');
    toggle(empty, 'hidden', this.rows.length > 0);
    toggle(this.table, 'hidden', this.rows.length === 0);
    text(empty, this.all.length === 0
      ? 'No streams: no application has a publication with a subscriber, or a subscription with a publisher.'
      : 'No stream passes the filter. Esc in the filter shows all.');
    const more = byId('streams-more');
    const omitted = this.all.length > 0 ? [...new Set(this.all.map((row) => row.driver))].reduce((sum, driver) => sum + driver.streams_omitted, 0) : 0;
    const hidden = this.rows.length - shown;
    toggle(more, 'hidden', hidden + omitted === 0);
    if (hidden + omitted > 0) {
      const parts = [];
      if (hidden > 0) {
        parts.push(`${hidden} more streams in this order. `, h('button', { type: 'button', onclick: () => this.showAll() }, 'Show all'));
      }
      if (omitted > 0) {
        parts.push(` The console leaves out ${omitted} streams beyond the first 1,000 of a driver: see 'taran streams'.`);
      }
      more.replaceChildren(...parts);
    }
  }

  showAll() {
    this.limit = Number.POSITIVE_INFINITY;
    this.update(this.all);
  }

  create(row) {
    if (row.id === 'head') {
      return this.table.tHead;
    }
    const cells = {};
    const line = h('tr', { class: 'stream', id: `stream-${row.id}`, onclick: () => this.choose(row.id) });
    for (const column of COLUMNS) {
      const cell = h('td', { class: column.kind });
      cells[column.kind.split(' ').pop()] = cell;
      line.append(cell);
    }
    cells.state.append(h('span', { class: 'sign', 'aria-hidden': 'true' }), h('span', { class: 'word' }));
    cells.stream.append(
      h('div', { class: 'ids' }, h('strong', { class: 'mono' }), ' ', h('span', { class: 'channel mono' })),
      h('div', { class: 'who faint' }));
    cells.limit.append(h('div', {}));
    cells.history.append(sparkline(110, 22, ['flow']));
    const body = h('tbody', { class: 'row' }, line);
    body.cells = cells;
    body.line = line;
    return body;
  }

  refresh(element, row) {
    if (row.id === 'head') {
      return;
    }
    const { cells, line } = element;
    const { stream } = row;
    const state = STATES[row.state];
    set(line, 'data-state', row.state);
    set(line, 'aria-selected', String(row.id === this.selected));
    text(cells.state.children[0], state.sign);
    text(cells.state.children[1], state.word);
    text(cells.stream.querySelector('strong'), stream.stream_id);
    const channel = cells.stream.querySelector('.channel');
    text(channel, stream.channel);
    set(channel, 'title', `${stream.channel}, session ${stream.session_id}`);
    const place = this.severalDrivers ? `, ${row.place}` : '';
    text(cells.stream.querySelector('.who'), `${row.from} → ${row.to}${place}`);
    text(cells.rate, rate(stream.rate));
    text(cells.lag, bytes(stream.lag));
    text(cells.naks, events(stream.naks_per_second));
    text(cells.lost, bytes(stream.lost));
    text(cells.limit.firstChild, row.limit);
    drawSparkline(cells.history.firstChild, SPARK_SLOTS, this.feed.stream(row.id).rate);
    this.refreshDetails(element, row);
  }

  refreshDetails(element, row) {
    const isOpen = row.id === this.open;
    if (isOpen && element.details === undefined) {
      element.details = details();
      element.append(element.details);
    } else if (!isOpen && element.details !== undefined) {
      element.details.remove();
      element.details = undefined;
    }
    set(element.line, 'aria-expanded', String(isOpen));
    if (isOpen) {
      drawDetails(element.details, row, this.feed);
    }
  }

  /** Selects a row by a click: its details open or close. */
  choose(id) {
    this.holdOrder();
    this.selected = id;
    this.open = this.open === id ? null : id;
    this.update(this.all);
  }

  /** Selects a row from elsewhere on the page and shows its details. */
  show(id) {
    if (!this.rows.some((row) => row.id === id)) {
      this.options = { ...this.options, filter: '', nonzero: false };
      byId('filter').value = '';
      byId('nonzero').checked = false;
      this.limit = Number.POSITIVE_INFINITY;
      this.onFilter();
    }
    this.selected = id;
    this.open = id;
    this.update(this.all);
    this.reveal();
  }

  /** Moves the selection by a number of rows. */
  move(by) {
    const shown = this.rows.slice(0, this.limit);
    if (shown.length === 0) {
      return;
    }
    this.holdOrder();
    const at = shown.findIndex((row) => row.id === this.selected);
    const next = at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(shown.length - 1, Math.max(0, at + by));
    this.selected = shown[next].id;
    if (this.open !== null) {
      this.open = this.selected;
    }
    this.update(this.all);
    this.reveal();
  }

  /** Keeps the order for a while, so that no row moves away under the cursor. */
  holdOrder() {
    this.heldUntil = Date.now() + HELD_MS;
  }

  toggleDetails() {
    if (this.selected !== null) {
      this.choose(this.selected);
      this.reveal();
    }
  }

  reveal() {
    byId(`stream-${this.selected}`)?.scrollIntoView({ block: 'nearest' });
  }

  orderName() {
    return ORDER_NAMES[this.options.order];
  }
}

function details() {
  const charts = [chart('Rate', 'flow'), chart('Lag', 'lag'), chart('NAKs per second', 'naks')];
  const facts = h('dl', { class: 'facts' });
  const command = h('code', {});
  const row = h('tr', { class: 'details' },
    h('td', { colspan: COLUMNS.length },
      h('div', { class: 'charts' }, charts),
      facts,
      h('p', { class: 'command' }, 'More: ', command)));
  row.parts = { charts, facts, command };
  return row;
}

function drawDetails(element, row, feed) {
  const { charts, facts, command } = element.parts;
  const { stream, driver } = row;
  const slots = feed.history.length;
  const span = duration(slots * feed.history.interval_ms);
  const series = feed.stream(row.id);
  drawChart(charts[0], series.rate, slots, rate, span);
  drawChart(charts[1], series.lag, slots, bytes, span);
  drawChart(charts[2], series.naks, slots, events, span);
  const list = [['channel', stream.channel], ['session', stream.session_id]];
  if (stream.publisher) {
    list.push(['publisher', `${row.publisher.name}, at ${grouped(stream.publisher.position)}, ${number(stream.publisher.window)} bytes before back-pressure`]);
  }
  if (stream.sender) {
    list.push(['sender', `${number(stream.sender.backlog)} bytes to send, window ${number(stream.sender.window)} bytes, ${grouped(stream.sender.naks_received)} NAKs received`]);
  }
  if (stream.receiver) {
    const gap = Math.max(0, stream.receiver.high_water_mark - stream.receiver.position);
    list.push(['receiver', `at ${grouped(stream.receiver.position)}, ${gap === 0 ? 'no gap' : `gap of ${number(gap)} bytes`}, ${grouped(stream.receiver.naks_sent)} NAKs sent`]);
  }
  for (const subscriber of row.subscribers) {
    list.push([`subscriber ${subscriber.registration}`, `${subscriber.name}, ${grouped(subscriber.backlog)} bytes behind`]);
  }
  list.push(['limit', row.limit]);
  keyed(facts, list.flatMap(([name, value], index) => [{ key: `t${index}`, tag: 'dt', value: name }, { key: `d${index}`, tag: 'dd', value }]),
    (item) => item.key, (item) => h(item.tag, item.tag === 'dd' ? { class: 'mono' } : {}), (item, { value }) => text(item, value));
  text(command, `taran backlog -w -d ${driver.directory}`);
}
