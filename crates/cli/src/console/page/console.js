// SPDX-License-Identifier: Apache-2.0
// The page: takes samples from the feed and draws all parts.

import { Feed } from './feed.js';
import { MAX_STREAMS, drawGraph } from './graph.js';
import { Streams } from './streams.js';
import { byId, set, text, toggle } from './dom.js';
import { drawAttention, drawDrivers, drawErrors, drawMembers, drawRecordings, drawSummary } from './panels.js';
import { listen } from './keys.js';
import { rowsOf } from './model.js';
import { time } from './format.js';

const CONNECTION = {
  connecting: 'connecting',
  live: 'live',
  reconnecting: 'console does not answer: connecting again',
};

function drawFlow(sample) {
  const { rows } = streams;
  const several = sample.drivers.length > 1;
  toggle(byId('flow-section'), 'hidden', streams.all.length === 0);
  const drawn = Math.min(rows.length, MAX_STREAMS);
  text(byId('flow-note'), rows.length > drawn ? `the first ${drawn} of ${rows.length} streams by ${streams.orderName()}; filter to see others` : '');
  drawGraph(byId('flow'), rows, several, (id) => streams.show(id));
}

function draw() {
  const { sample } = feed;
  if (sample === null) {
    return;
  }
  drawSummary(sample);
  drawAttention(sample, (id) => streams.show(id));
  drawDrivers(sample, feed);
  streams.severalDrivers = sample.drivers.length > 1;
  streams.update(rowsOf(sample, feed));
  drawFlow(sample);
  drawErrors(sample);
  drawRecordings(sample);
  drawMembers(sample);
  text(byId('clock'), time(sample.time_ms, sample.time_ms));
}

function showConnection(state) {
  const element = byId('connection');
  set(element, 'data-state', state);
  text(element, CONNECTION[state]);
  document.body.classList.toggle('stale', state === 'reconnecting');
}

const feed = new Feed(draw, showConnection);
const streams = new Streams(feed, () => feed.sample !== null && drawFlow(feed.sample));

listen(streams, {
  a: () => {
    const entry = feed.sample?.attention.find(({ stream }) => stream !== null);
    if (entry !== undefined) {
      streams.show(entry.stream);
    }
  },
});

addEventListener('resize', () => feed.sample !== null && drawFlow(feed.sample));
