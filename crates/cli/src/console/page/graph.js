// SPDX-License-Identifier: Apache-2.0
// Who publishes to whom: publishers on the left, streams in the middle, subscribers on the right. The layout follows from the
// streams alone, so that the same streams are drawn in the same way.

import { cut, rate, shortChannel } from './format.js';
import { s, set } from './dom.js';
import { STATES } from './model.js';

/** Streams that are drawn; more would not be readable. */
export const MAX_STREAMS = 24;

/** Height of a node and the gap below it; those of many nodes have one line. */
const TALL = { node: 38, gap: 10 };
const FLAT = { node: 22, gap: 6 };
/** Nodes of a column up to which they are tall. */
const MAX_TALL = 10;
const CHARACTER = 6.9;

function nodesOf(rows) {
  const streams = new Map();
  for (const row of rows) {
    const key = row.group;
    const node = streams.get(key) ?? { key, rows: [], from: new Map(), to: new Map(), hasPublisher: false, hasReceiver: false };
    streams.set(key, node);
    node.rows.push(row);
    if (row.publisher !== null) {
      node.hasPublisher = true;
      node.from.set(`c${row.index}/${row.publisher.id}`, { name: row.publisher.name, place: row.place });
    }
    node.hasReceiver ||= row.stream.receiver !== null;
    for (const subscriber of row.subscribers) {
      node.to.set(`c${row.index}/${subscriber.id}`, { name: subscriber.name, place: row.place });
    }
  }
  for (const node of streams.values()) {
    if (!node.hasPublisher) {
      node.from.set('network', { name: 'other machines', place: 'from the network' });
    }
    const isSent = node.rows.some((row) => row.stream.sender !== null && row.stream.limited_by?.kind !== 'no_receiver');
    if (isSent && !node.hasReceiver) {
      node.to.set('network', { name: 'other machines', place: 'over the network' });
    }
  }
  return [...streams.values()];
}

/** The nodes of a side, ordered by the middle of their streams. */
function side(streams, of) {
  const nodes = new Map();
  streams.forEach((stream, index) => {
    for (const [key, client] of stream[of]) {
      const node = nodes.get(key) ?? { key, ...client, places: [] };
      node.places.push(index);
      nodes.set(key, node);
    }
  });
  const middle = (node) => node.places.reduce((sum, place) => sum + place, 0) / node.places.length;
  return [...nodes.values()].sort((a, b) => middle(a) - middle(b) || (a.key < b.key ? -1 : 1));
}

function worst(node) {
  return node.rows.map((row) => row.state).sort((a, b) => STATES[a].rank - STATES[b].rank)[0];
}

/** Places nodes of a column evenly over the height. */
function spread(nodes, height, size) {
  const total = nodes.length * (size.node + size.gap) - size.gap;
  const start = (height - total) / 2;
  nodes.forEach((node, index) => {
    node.y = start + index * (size.node + size.gap);
    node.middle = node.y + size.node / 2;
  });
}

function box(kind, x, width, node, size, lines, title) {
  const room = Math.floor((width - 20) / CHARACTER);
  const shown = size === FLAT ? [lines.join('  ')] : lines;
  const group = s('g', { class: `node ${kind}`, transform: `translate(${x} ${node.y})` },
    s('title', {}, title),
    s('rect', { width, height: size.node, rx: 6 }));
  shown.forEach((line, index) => {
    group.append(s('text', { x: 12, y: (size === FLAT ? 15 : 16) + index * 14, class: index === 0 ? 'name' : 'detail' }, cut(line, room)));
  });
  return group;
}

function edge(x1, y1, x2, y2, state, weight, title) {
  const bend = (x2 - x1) / 2;
  return s('path', {
    class: `edge ${state}`,
    d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
    'stroke-width': weight,
  }, s('title', {}, title));
}

/** Width of an edge: a pixel more for each power of ten above a kilobyte per second. */
function weight(bytesPerSecond) {
  return bytesPerSecond > 0 ? (1.2 + Math.max(0, Math.log10(bytesPerSecond) - 3) * 0.8).toFixed(1) : 1.2;
}

/** Draws the rows into the element, which is cleared. */
export function drawGraph(element, rows, severalDrivers, onSelect) {
  const streams = nodesOf(rows.slice(0, MAX_STREAMS));
  const left = side(streams, 'from');
  const right = side(streams, 'to');
  const width = Math.max(300, element.clientWidth - 2);
  const isNarrow = width < 620;
  const pad = isNarrow ? 6 : 16;
  const outer = isNarrow ? (width - 2 * pad) * 0.28 : Math.min(230, (width - 2 * pad) * 0.24);
  const inner = isNarrow ? (width - 2 * pad) * 0.3 : Math.min(400, (width - 2 * pad) * 0.34);
  const middle = (width - inner) / 2;
  const end = width - pad - outer;
  const longest = Math.max(streams.length, left.length, right.length, 1);
  const size = longest > MAX_TALL ? FLAT : TALL;
  const height = longest * (size.node + size.gap) - size.gap;
  for (const column of [streams, left, right]) {
    spread(column, height, size);
  }
  const svg = s('svg', { width, height: height + 2 * pad, viewBox: `0 ${-pad} ${width} ${height + 2 * pad}`, role: 'img' });
  set(svg, 'aria-label', `${left.length} publishers, ${streams.length} streams, ${right.length} subscribers`);
  const leftBy = new Map(left.map((node) => [node.key, node]));
  const rightBy = new Map(right.map((node) => [node.key, node]));
  const edges = s('g', {});
  const nodes = s('g', {});
  for (const node of streams) {
    const { stream } = node.rows.find((row) => row.publisher !== null) ?? node.rows[0];
    const state = worst(node);
    const flow = Math.max(...node.rows.map((row) => row.stream.rate ?? 0));
    const y = node.middle;
    const told = `${stream.stream_id} ${stream.channel}: ${rate(flow)}, ${STATES[state].word}`;
    for (const key of node.from.keys()) {
      edges.append(edge(pad + outer, leftBy.get(key).middle, middle, y, flow > 0 ? 'moving' : state === 'ended' ? 'ended' : 'idle', weight(flow), told));
    }
    const limiting = new Set(node.rows.filter((row) => row.stream.limited_by?.subscriber)
      .map((row) => `c${row.index}/${row.stream.limited_by.subscriber.client_id}`));
    for (const key of node.to.keys()) {
      const isCause = limiting.has(key) && (state === 'stuck' || state === 'limited');
      const kind = isCause ? state : flow > 0 ? 'moving' : state === 'ended' ? 'ended' : 'idle';
      edges.append(edge(middle + inner, y, end, rightBy.get(key).middle, kind, weight(flow), told));
    }
    const verdict = node.rows.map((row) => row.stream.limited_by?.text).find(Boolean);
    const group = box(`stream ${state}`, middle, inner, node, size,
      isNarrow ? [`${STATES[state].sign} ${stream.stream_id}`, rate(flow)]
        : [`${STATES[state].sign} ${stream.stream_id}  ${shortChannel(stream.channel)}`, `${rate(flow)}  ${STATES[state].word}`],
      [told, verdict].filter(Boolean).join('\n'));
    group.addEventListener('click', () => onSelect(node.rows[0].id));
    nodes.append(group);
  }
  const clientBox = (node, x) => box('client', x, outer, node, size, severalDrivers || node.key === 'network' ? [node.name, node.place] : [node.name, `${node.places.length} ${node.places.length === 1 ? 'stream' : 'streams'}`],
    `${node.name}\n${node.place}`);
  left.forEach((node) => nodes.append(clientBox(node, pad)));
  right.forEach((node) => nodes.append(clientBox(node, end)));
  svg.append(edges, nodes);
  element.replaceChildren(svg);
}
