// SPDX-License-Identifier: Apache-2.0
// Streams of all drivers as rows, their states, filter and order.

import { shortDirectory } from './format.js';

/** Time without progress from which on a limiting subscriber is stuck. The same as in the list of what needs attention. */
const STUCK_MS = 2000;

/** States of a stream, worst first: rank, sign and word. The sign tells them apart without colours. */
export const STATES = {
  stuck: { rank: 0, sign: '▲', word: 'stuck' },
  limited: { rank: 1, sign: '◆', word: 'limited' },
  lossy: { rank: 2, sign: '◆', word: 'loss' },
  moving: { rank: 3, sign: '●', word: 'moving' },
  idle: { rank: 4, sign: '○', word: 'idle' },
  alone: { rank: 5, sign: '○', word: 'no receiver' },
  ended: { rank: 6, sign: '×', word: 'ended' },
};

export const ORDERS = ['rate', 'lag', 'naks', 'lost', 'stream'];
export const ORDER_NAMES = { rate: 'rate', lag: 'lag', naks: 'NAKs', lost: 'loss', stream: 'stream' };

function stateOf(driver, stream) {
  if (driver.state.kind !== 'alive') {
    return 'ended';
  }
  const kind = stream.limited_by?.kind;
  if (kind === 'subscriber' && (stream.limited_by.still_ms ?? 0) >= STUCK_MS) {
    return 'stuck';
  }
  if (kind !== undefined && kind !== 'publisher' && kind !== 'no_receiver') {
    return 'limited';
  }
  if (stream.naks_per_second > 0) {
    return 'lossy';
  }
  if (kind === 'no_receiver') {
    return 'alone';
  }
  return stream.rate > 0 ? 'moving' : 'idle';
}

function clientName(names, id) {
  return names.get(id) || `client ${id}`;
}

/** Samples whose mean orders the streams. */
const SMOOTHED = 10;

/** The mean of the last values in steps of a fifth, so that streams of about the same rate keep their places. */
function smoothed(series) {
  const last = series.slice(-SMOOTHED).filter((value) => value !== null);
  const mean = last.reduce((sum, value) => sum + value, 0) / Math.max(1, last.length);
  return mean < 0.05 ? 0 : 100 + Math.round(Math.log(mean) / Math.log(1.2));
}

/**
 * Gives each row its stream: rows of one driver with the same ids, and rows of several drivers if the stream is sent over the
 * network. A publication and its subscriptions may name their channel in different words, and a spy names it as a spy.
 */
function join(rows) {
  const localKey = ({ index, stream }) => `${index}/${stream.session_id}/${stream.stream_id}`;
  const isSent = new Set(rows.filter(({ stream }) => stream.sender !== null || stream.receiver !== null).map(localKey));
  const groups = new Map();
  for (const row of rows) {
    const key = localKey(row);
    row.group = isSent.has(key) ? `${row.stream.session_id}/${row.stream.stream_id}` : key;
    const group = groups.get(row.group) ?? { from: new Set(), to: new Set(), isSent: false, limit: null };
    groups.set(row.group, group);
    if (row.publisher !== null) {
      group.from.add(row.publisher.name);
    }
    row.subscribers.forEach(({ name }) => group.to.add(name));
    group.isSent ||= row.stream.sender !== null && row.state !== 'alone';
    group.limit ??= row.stream.limited_by?.text ?? null;
  }
  for (const row of rows) {
    const { from, to, isSent: goesOn, limit } = groups.get(row.group);
    row.from = from.size > 0 ? [...from].join(', ') : 'other machines';
    row.to = to.size > 0 ? [...to].join(', ') : goesOn ? 'other machines' : 'no subscriber';
    row.limit = limit ?? 'its publisher is on another machine';
  }
  return rows;
}

/** Makes the rows of a sample. */
export function rowsOf(sample, feed) {
  return join(sample.drivers.flatMap((driver, index) => {
    const names = new Map(driver.clients.map((client) => [client.client_id, client.name]));
    return driver.streams.map((stream) => {
      const publisher = stream.publisher && {
        id: stream.publisher.client_id,
        name: clientName(names, stream.publisher.client_id),
      };
      const subscribers = stream.subscribers.map((subscriber) => ({
        id: subscriber.client_id,
        name: clientName(names, subscriber.client_id),
        registration: subscriber.registration_id,
        backlog: subscriber.backlog,
        position: subscriber.position,
      }));
      const people = [publisher?.name ?? '', ...subscribers.map((subscriber) => subscriber.name)];
      const haystack = [stream.channel, stream.stream_id, stream.session_id, driver.directory, stream.limited_by?.text ?? '', ...people]
        .join(' ').toLowerCase();
      const series = feed.stream(stream.id);
      const weights = { rate: smoothed(series.rate), lag: smoothed(series.lag), naks: smoothed(series.naks), lost: stream.lost };
      return { id: stream.id, weights, driver, index, stream, publisher, subscribers, haystack, state: stateOf(driver, stream), place: shortDirectory(driver.directory) };
    });
  }));
}

/** Returns the rows that pass the filter, in order. Each word of the filter has to be found. */
export function select(rows, { filter, nonzero, order }) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const selected = rows.filter((row) => words.every((word) => row.haystack.includes(word))
    && (!nonzero || row.stream.rate > 0 || row.stream.lag > 0));
  const byIds = (a, b) => a.stream.stream_id - b.stream.stream_id || a.index - b.index || a.id - b.id;
  return selected.sort((a, b) => {
    if (order === 'stream') {
      return byIds(a, b);
    }
    return b.weights[order] - a.weights[order] || byIds(a, b);
  });
}
