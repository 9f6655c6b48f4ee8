// SPDX-License-Identifier: Apache-2.0
// Numbers and times as texts.

const PREFIXES = [['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3]];

function scaled(value) {
  for (const [prefix, scale] of PREFIXES) {
    if (value >= scale * 0.9995) {
      return [(value / scale).toFixed(1), prefix];
    }
  }
  return [value.toFixed(0), ''];
}

/** 950, 1.2k, 3.4M. A dash for what is not known. */
export function number(value) {
  return value === null || value === undefined ? '–' : scaled(value).join('');
}

/** 950 B/s, 1.2 MB/s. */
export function rate(value) {
  if (value === null || value === undefined) {
    return '–';
  }
  const [text, prefix] = scaled(value);
  return `${text} ${prefix}B/s`;
}

/** 950 B, 1.2 MB. */
export function bytes(value) {
  if (value === null || value === undefined) {
    return '–';
  }
  const [text, prefix] = scaled(value);
  return `${text} ${prefix}B`;
}

/** Events per second: one decimal below ten. */
export function events(value) {
  if (value === null || value === undefined) {
    return '–';
  }
  return value > 0 && value < 10 ? value.toFixed(1) : number(value);
}

export function grouped(value) {
  return value === null || value === undefined ? '–' : value.toLocaleString('en-US');
}

/** 4 s, 12 min, 3 h, 5 d. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) {
    return `${seconds} s`;
  }
  if (seconds < 7200) {
    return `${Math.round(seconds / 60)} min`;
  }
  if (seconds < 48 * 3600) {
    return `${Math.round(seconds / 3600)} h`;
  }
  return `${Math.round(seconds / 86400)} d`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const DAY = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit' });

/** Local time, with the date if that is not today's. */
export function time(milliseconds, now) {
  const date = new Date(milliseconds);
  if (!Number.isFinite(date.getTime())) {
    return String(milliseconds);
  }
  const day = DAY.format(date);
  const clock = CLOCK.format(date);
  return day === DAY.format(new Date(now)) ? clock : `${day} ${clock}`;
}

/** The end of a path that tells drivers apart. */
export function shortDirectory(directory) {
  return directory.split('/').filter(Boolean).pop() ?? directory;
}

/** The start of a text that has room, with an ellipsis if it is cut. */
export function cut(text, length) {
  return text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`;
}

/** A channel without what all channels share. */
export function shortChannel(channel) {
  return channel.replace(/^aeron:/, '').replace(/^udp\?endpoint=/, 'udp ').replace(/^ipc\?/, 'ipc ');
}
