// SPDX-License-Identifier: Apache-2.0
// Attention, drivers, errors, recordings, members.

import { byId, h, keyed, set, text, toggle } from './dom.js';
import { bytes, duration, events, grouped, number, rate, shortChannel, shortDirectory, time } from './format.js';
import { drawSparkline, sparkline } from './charts.js';

const SEVERITIES = { critical: ['▲', 'critical'], warning: ['◆', 'warning'], notice: ['○', 'notice'] };

const DRIVER_STATES = {
  alive: ['●', 'alive', 'good'],
  shut_down: ['×', 'shut down', 'bad'],
  dead: ['▲', 'dead', 'bad'],
  silent: ['▲', 'silent', 'bad'],
  absent: ['○', 'no driver', 'bad'],
  starting: ['◆', 'starting', 'warn'],
  foreign: ['▲', 'other version', 'bad'],
  unreadable: ['▲', 'unreadable', 'bad'],
};

function copyButton(code) {
  // Only where the page is loaded over TLS or from this machine.
  if (navigator.clipboard === undefined) {
    return null;
  }
  const button = h('button', { type: 'button', class: 'quiet copy', title: 'Copy the command' }, 'copy');
  button.addEventListener('click', async (event) => {
    event.stopPropagation();
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = 'copied';
    } catch {
      button.textContent = 'not allowed';
    }
    setTimeout(() => { button.textContent = 'copy'; }, 1500);
  });
  return button;
}

export function drawAttention(sample, onSelect) {
  const several = sample.drivers.length > 1;
  const entries = sample.attention;
  keyed(byId('attention'), entries, (entry) => `${entry.cause}/${entry.driver}/${entry.stream}/${entry.stream === null ? entry.command : ''}`, () => {
    const code = h('code', {});
    const message = h('span', { class: 'message' });
    const item = h('li', {},
      h('span', { class: 'sign', 'aria-hidden': 'true' }), h('span', { class: 'word' }),
      message,
      h('span', { class: 'command' }, code, copyButton(code)));
    item.parts = { code, message };
    item.addEventListener('click', () => {
      if (item.stream !== null) {
        onSelect(item.stream);
      }
    });
    return item;
  }, (item, entry) => {
    const [sign, word] = SEVERITIES[entry.severity];
    set(item, 'data-severity', entry.severity);
    item.stream = entry.stream;
    item.classList.toggle('link', entry.stream !== null);
    text(item.children[0], sign);
    text(item.children[1], word);
    const place = several ? `${shortDirectory(sample.drivers[entry.driver].directory)}: ` : '';
    text(item.parts.message, `${place}${entry.text}`);
    text(item.parts.code, entry.command);
  });
  const count = entries.length;
  text(byId('attention-count'), count === 0 ? '' : count);
  const empty = byId('attention-empty');
  toggle(empty, 'hidden', count > 0);
  text(empty, 'Nothing needs attention: all drivers are alive, no publication is held back, nothing is lost.');
}

export function drawDrivers(sample, feed) {
  keyed(byId('drivers'), sample.drivers, (driver) => driver.directory, () => {
    const parts = {
      pill: h('span', { class: 'pill' }, h('span', { class: 'sign', 'aria-hidden': 'true' }), h('span', { class: 'word' })),
      directory: h('span', { class: 'mono directory' }),
      identity: h('p', { class: 'identity faint' }),
      state: h('p', { class: 'reason' }),
      spark: sparkline(260, 40, ['received', 'sent']),
      facts: h('dl', { class: 'figures' }),
    };
    const card = h('article', { class: 'driver panel' },
      h('div', { class: 'card-head' }, parts.directory, parts.pill),
      parts.identity, parts.state, parts.facts, parts.spark);
    card.parts = parts;
    return card;
  }, (card, driver) => refreshDriver(card, driver, sample, feed));
}

function refreshDriver(card, driver, sample, feed) {
  const { pill, directory, identity, state, spark, facts } = card.parts;
  const [sign, word, weight] = DRIVER_STATES[driver.state.kind];
  const index = sample.drivers.indexOf(driver);
  const isAlive = driver.state.kind === 'alive';
  set(card, 'data-weight', weight);
  text(pill.children[0], sign);
  text(pill.children[1], word);
  text(directory, driver.directory);
  text(identity, driver.info === null ? 'nothing to read'
    : `pid ${driver.info.pid}, ${driver.info.software || 'version unknown'}, started ${time(driver.info.start_ms, sample.time_ms)}`);
  toggle(state, 'hidden', isAlive);
  const since = driver.state.since_ms;
  text(state, isAlive ? '' : `Since ${time(since, sample.time_ms)} (${duration(sample.time_ms - since)}): ${driver.state.text}`);
  toggle(facts, 'hidden', driver.info === null);
  spark.classList.toggle('gone', driver.info === null);
  const { totals } = driver;
  const list = [
    ['sent', rate(totals.sent), 'sent'],
    ['received', rate(totals.received), 'received'],
    ['NAKs/s', events(totals.naks), totals.naks > 0 ? 'warn' : ''],
    ['resent/s', events(totals.retransmits), totals.retransmits > 0 ? 'warn' : ''],
    ['errors', number(totals.errors), totals.errors > 0 ? 'warn' : ''],
    ['clients', driver.clients.length, ''],
    ['streams', driver.streams.length + driver.streams_omitted, ''],
  ];
  keyed(facts, list, ([name]) => name, ([name]) => h('div', {}, h('dt', {}, name), h('dd', { class: 'mono' })), (item, [, value, kind]) => {
    text(item.children[1], value);
    set(item, 'class', kind);
  });
  const series = feed.driver(index);
  drawSparkline(spark, feed.history.length, series.received, series.sent);
}

export function drawErrors(sample) {
  const several = sample.drivers.length > 1;
  const list = sample.drivers.flatMap((driver) => driver.errors.map((error) => ({ driver, error })));
  list.sort((a, b) => b.error.last_observation_ms - a.error.last_observation_ms);
  keyed(byId('errors'), list, ({ driver, error }) => `${driver.directory}/${error.first_observation_ms}/${error.error}`, () => h('li', {},
    h('time', { class: 'mono' }), h('span', { class: 'times mono faint' }), h('span', { class: 'message' })), (item, { driver, error }) => {
    text(item.children[0], time(error.last_observation_ms, sample.time_ms));
    text(item.children[1], error.observations > 1 ? `${grouped(error.observations)}×` : '');
    text(item.children[2], several ? `${shortDirectory(driver.directory)}: ${error.error}` : error.error);
  });
  const omitted = sample.drivers.reduce((sum, driver) => sum + driver.errors_omitted, 0);
  text(byId('errors-count'), list.length === 0 ? '' : list.length + omitted);
  toggle(byId('errors'), 'hidden', list.length === 0);
  toggle(byId('errors-empty'), 'hidden', list.length > 0);
}

function table(parent, headings) {
  if (parent.firstChild === null) {
    const body = h('tbody', {});
    parent.append(h('div', { class: 'panel table-panel' }, h('table', {},
      h('thead', {}, h('tr', {}, headings.map(([name, kind]) => h('th', { scope: 'col', class: kind }, name)))), body)));
    parent.body = body;
  }
  return parent.body;
}

function fillRows(body, rows, keyOf, cellsOf, kinds) {
  keyed(body, rows, keyOf, () => h('tr', {}, kinds.map(([, kind]) => h('td', { class: kind }))), (line, row) => {
    cellsOf(row).forEach((value, index) => text(line.children[index], value));
  });
}

const RECORDING_COLUMNS = [['Recording', 'num'], ['Stream', 'num'], ['Channel', 'mono grow'], ['Source', 'mono'], ['Position', 'num'], ['Rate', 'num']];

export function drawRecordings(sample) {
  const archives = sample.drivers.flatMap((driver) => driver.archives.map((archive) => ({ driver, archive })));
  keyed(byId('recordings'), archives, ({ driver, archive }) => `${driver.directory}/${archive.archive_id}`, () => h('article', {},
    h('p', { class: 'caption' }), h('div', {})), (element, { driver, archive }) => {
    const facts = [`archive ${archive.archive_id} on ${driver.directory}`, `${archive.recording_sessions} recording`, `${archive.replay_sessions} replaying`,
      `${archive.control_sessions} control sessions`, `written ${rate(archive.written)}`, `read ${rate(archive.read)}`, `${archive.errors} errors`];
    if (archive.held > 0) {
      facts.push(`▲ ${archive.held} held back by a full disk`);
    }
    if (archive.damaged > 0) {
      facts.push(`▲ ${archive.damaged} damaged`);
    }
    text(element.children[0], facts.join('  ·  '));
    const body = table(element.children[1], RECORDING_COLUMNS);
    toggle(element.children[1], 'hidden', archive.recordings.length === 0);
    fillRows(body, archive.recordings, (recording) => recording.recording_id, (recording) => [recording.recording_id, recording.stream_id,
      shortChannel(recording.channel), recording.source, grouped(recording.position), rate(recording.rate)], RECORDING_COLUMNS);
  });
  const count = archives.reduce((sum, { archive }) => sum + archive.recordings.length + archive.recordings_omitted, 0);
  text(byId('recordings-count'), archives.length === 0 ? '' : count);
  toggle(byId('recordings-empty'), 'hidden', archives.length > 0);
}

const MEMBER_COLUMNS = [['Cluster', 'num'], ['Role', 'role'], ['State', ''], ['Driver', 'mono grow'], ['Term', 'num'], ['Commit', 'num'], ['Behind', 'num'], ['Elections', 'num'], ['Snapshots', 'num'], ['Timed out', 'num'], ['Errors', 'num']];

export function drawMembers(sample) {
  const members = sample.drivers.flatMap((driver) => driver.members.map((member) => ({ driver, member })));
  const highest = new Map();
  for (const { member } of members) {
    highest.set(member.cluster_id, Math.max(highest.get(member.cluster_id) ?? 0, member.commit ?? 0));
  }
  members.sort((a, b) => a.member.cluster_id - b.member.cluster_id);
  const parent = byId('members');
  const body = table(parent, MEMBER_COLUMNS);
  const roles = ({ member }) => (member.elects ? '◆ election' : member.leads ? '★ leader' : member.role);
  fillRows(body, members, ({ driver, member }) => `${driver.directory}/${member.cluster_id}`, (entry) => [entry.member.cluster_id, roles(entry), entry.member.state,
    entry.driver.directory, grouped(entry.member.term), grouped(entry.member.commit),
    entry.member.commit === null ? '–' : bytes(highest.get(entry.member.cluster_id) - entry.member.commit),
    grouped(entry.member.elections), grouped(entry.member.snapshots), grouped(entry.member.timed_out_clients), grouped(entry.member.errors)], MEMBER_COLUMNS);
  toggle(parent, 'hidden', members.length === 0);
  text(byId('members-count'), members.length === 0 ? '' : members.length);
  toggle(byId('members-empty'), 'hidden', members.length > 0);
}

export function drawSummary(sample) {
  const alive = sample.drivers.filter((driver) => driver.state.kind === 'alive').length;
  const critical = sample.attention.filter((entry) => entry.severity === 'critical').length;
  const warnings = sample.attention.filter((entry) => entry.severity === 'warning').length;
  const parts = [`${alive} of ${sample.drivers.length} ${sample.drivers.length === 1 ? 'driver' : 'drivers'} alive`];
  if (critical > 0) {
    parts.push(`▲ ${critical} critical`);
  }
  if (warnings > 0) {
    parts.push(`◆ ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}`);
  }
  const element = byId('summary');
  text(element, parts.join('  ·  '));
  set(element, 'data-weight', critical > 0 ? 'bad' : warnings > 0 ? 'warn' : 'good');
  const sign = critical > 0 ? `▲ ${critical} ` : warnings > 0 ? `◆ ${warnings} ` : '';
  const title = `${sign}Taran console`;
  if (document.title !== title) {
    document.title = title;
  }
}
