// SPDX-License-Identifier: Apache-2.0
// The stream of samples, with reconnection, and the values of the last minutes.

const RETRY_MS = 2000;

/** Follows the console. `onChange` is called after each change of the samples, `onState` with the state of the connection. */
export class Feed {
  constructor(onChange, onState) {
    this.onChange = onChange;
    this.onState = onState;
    this.sample = null;
    this.history = null;
    this.source = null;
    this.timer = null;
    this.received = 0;
    this.patience = 1;
    document.addEventListener('visibilitychange', () => this.followVisibility());
    setInterval(() => this.checkSilence(), 1000);
    this.followVisibility();
  }

  /** A page that is not seen does not take one of the few connections that browsers allow. */
  followVisibility() {
    if (document.hidden) {
      this.close();
    } else if (this.source === null) {
      this.open();
    }
  }

  open() {
    this.close();
    this.onState(this.sample === null ? 'connecting' : 'reconnecting');
    const source = new EventSource('/events');
    this.source = source;
    this.received = Date.now();
    source.addEventListener('history', (event) => {
      this.history = JSON.parse(event.data);
    });
    source.addEventListener('sample', (event) => this.take(JSON.parse(event.data)));
    source.addEventListener('error', () => {
      if (source !== this.source) {
        return;
      }
      this.onState('reconnecting');
      // A refusal ends the source; what the browser tries again by itself does not need this.
      if (source.readyState === EventSource.CLOSED) {
        this.close();
        this.retryLater();
      }
    });
  }

  close() {
    clearTimeout(this.timer);
    this.timer = null;
    this.source?.close();
    this.source = null;
  }

  retryLater() {
    this.timer = setTimeout(() => {
      // The token may have changed: the page then asks for it.
      fetch('/state.json').then((response) => {
        if (response.status === 401) {
          location.reload();
        } else {
          this.open();
        }
      }, () => this.retryLater());
    }, RETRY_MS);
  }

  /** Opens a connection without samples anew, because its other end may have gone. On a slow network a new one needs longer, so the
      limit doubles until a sample arrives. */
  checkSilence() {
    const limit = (3 * (this.history?.interval_ms ?? 1000) + 4000) * this.patience;
    if (this.source !== null && Date.now() - this.received > limit) {
      this.patience = Math.min(2 * this.patience, 64);
      this.open();
    }
  }

  take(sample) {
    this.received = Date.now();
    this.patience = 1;
    const isFirst = this.sample === null || this.history.taken !== true;
    // The history that precedes the first sample of a connection contains it.
    if (!isFirst) {
      this.append(sample);
    }
    this.history.taken = true;
    this.sample = sample;
    this.onState('live');
    this.onChange();
  }

  append(sample) {
    const { length, times, drivers } = this.history;
    const push = (series, value) => {
      series.push(value);
      if (series.length > length) {
        series.shift();
      }
    };
    push(times, sample.time_ms);
    const streams = {};
    sample.drivers.forEach((driver, index) => {
      push(drivers[index].sent, driver.totals.sent);
      push(drivers[index].received, driver.totals.received);
      push(drivers[index].naks, driver.totals.naks);
      for (const stream of driver.streams) {
        const series = this.history.streams[stream.id] ?? { rate: [], lag: [], naks: [] };
        push(series.rate, stream.rate);
        push(series.lag, stream.lag);
        push(series.naks, stream.naks_per_second);
        streams[stream.id] = series;
      }
    });
    this.history.streams = streams;
  }

  /** The series of a stream. */
  stream(id) {
    return this.history?.streams[id] ?? { rate: [], lag: [], naks: [] };
  }

  driver(index) {
    return this.history?.drivers[index] ?? { sent: [], received: [], naks: [] };
  }
}
