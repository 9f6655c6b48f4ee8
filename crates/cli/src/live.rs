// SPDX-License-Identifier: Apache-2.0
//! A driver and its streams, with rates from one sample to the next, for the live views.
//!
//! Contract: each [`Sampler::take`] takes the driver and yields one [`Sample`]. Rates are those since the sample before; the first
//! sample has none. A sampler is for one driver.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use taran_core::counters::CountersReader;
use taran_protocol::counter::{SystemCounter, type_id};

use crate::attach::Attached;
use crate::backlog::{Backlog, Samples};
use crate::loss;

/// System counters that the views sum up.
const TOTALS: [SystemCounter; 5] = [
    SystemCounter::BytesSent,
    SystemCounter::BytesReceived,
    SystemCounter::NaksSent,
    SystemCounter::RetransmitsSent,
    SystemCounter::Errors,
];

/// The driver and its streams at one time.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Sample {
    pub(crate) directory: String,
    pub(crate) pid: i64,
    /// Number of clients.
    pub(crate) clients: usize,
    pub(crate) errors: i64,
    pub(crate) sent_bytes_per_second: Option<f64>,
    pub(crate) received_bytes_per_second: Option<f64>,
    pub(crate) naks_per_second: Option<f64>,
    pub(crate) retransmits_per_second: Option<f64>,
    pub(crate) streams: Vec<StreamRow>,
}

/// A stream at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct StreamRow {
    #[serde(flatten)]
    pub(crate) backlog: Backlog,
    /// Bytes per second, of the publisher if it is here, else of what arrives.
    pub(crate) rate: Option<f64>,
    /// Bytes by which the slowest part of this driver is behind.
    pub(crate) lag: i64,
    pub(crate) naks_per_second: Option<f64>,
    /// Bytes in the loss report.
    pub(crate) lost: i64,
}

impl StreamRow {
    /// Returns the limit of the publication as text; empty without a publication.
    pub(crate) fn limit(&self) -> String {
        let limit = self.backlog.limited_by.as_ref();
        limit.map(ToString::to_string).unwrap_or_default()
    }
}

/// Identity of a stream within a driver: session id, stream id, channel.
pub(crate) type StreamId = (i32, i32, String);

/// Takes samples of a driver.
pub(crate) struct Sampler {
    backlogs: Samples,
    before: Option<Before>,
}

/// Values of the sample before.
struct Before {
    time: Instant,
    totals: [i64; TOTALS.len()],
    streams: HashMap<StreamId, Progress>,
}

/// Values of a stream that rates are made from.
#[derive(Clone, Copy)]
struct Progress {
    position: Option<i64>,
    naks: i64,
}

impl Sampler {
    pub(crate) fn new() -> Self {
        Self {
            backlogs: Samples::new(),
            before: None,
        }
    }

    pub(crate) fn take(&mut self, attached: &Attached) -> Sample {
        let time = Instant::now();
        let counters = attached.counters();
        let totals = TOTALS.map(|counter| counters.value(counter.id()).unwrap_or(0));
        let lost = loss::bytes_lost(&attached.directory);
        let before = self.before.take();
        let elapsed = before
            .as_ref()
            .map(|before| time.duration_since(before.time));
        let mut progress = HashMap::new();
        let streams = self.backlogs.take(attached).into_iter().map(|backlog| {
            let now = Progress::of(&backlog);
            let id = id(&backlog);
            let then = before.as_ref().and_then(|before| before.streams.get(&id));
            let row = StreamRow {
                rate: now
                    .position
                    .and_then(|now| rate(then?.position, now, elapsed)),
                naks_per_second: rate(then.map(|then| then.naks), now.naks, elapsed),
                lag: lag(&backlog),
                lost: lost.get(&(id.0, id.1)).copied().unwrap_or(0),
                backlog,
            };
            progress.insert(id, now);
            row
        });
        let streams = streams.collect();
        let total = |index: usize| {
            let then = before.as_ref().map(|before| before.totals[index]);
            rate(then, totals[index], elapsed)
        };
        let sample = Sample {
            directory: attached.directory.display().to_string(),
            pid: attached.pid(),
            clients: clients(&counters),
            errors: totals[4],
            sent_bytes_per_second: total(0),
            received_bytes_per_second: total(1),
            naks_per_second: total(2),
            retransmits_per_second: total(3),
            streams,
        };
        self.before = Some(Before {
            time,
            totals,
            streams: progress,
        });
        sample
    }
}

impl Progress {
    fn of(backlog: &Backlog) -> Self {
        let received = backlog.sender.as_ref().map_or(0, |part| part.naks_received);
        let sent = backlog.receiver.as_ref().map_or(0, |part| part.naks_sent);
        Self {
            position: position(backlog),
            naks: received.saturating_add(sent),
        }
    }
}

/// Returns the identity of a stream.
pub(crate) fn id(backlog: &Backlog) -> StreamId {
    (
        backlog.session_id,
        backlog.stream_id,
        backlog.channel.clone(),
    )
}

/// Returns the position that shows the progress of a stream.
fn position(backlog: &Backlog) -> Option<i64> {
    let published = backlog.publisher.as_ref().map(|part| part.position);
    let received = backlog.receiver.as_ref().map(|part| part.high_water_mark);
    let consumed = backlog.subscribers.iter().map(|part| part.position).max();
    published.or(received).or(consumed)
}

/// Returns the bytes by which the slowest part is behind: sender, receiver with a gap, or subscriber.
fn lag(backlog: &Backlog) -> i64 {
    let unsent = backlog.sender.as_ref().map_or(0, |part| part.backlog);
    let gap = backlog
        .receiver
        .as_ref()
        .map_or(0, |part| part.high_water_mark.saturating_sub(part.position));
    let unread = backlog.subscribers.iter().map(|part| part.backlog).max();
    unsent.max(gap).max(unread.unwrap_or(0))
}

fn clients(counters: &CountersReader) -> usize {
    let mut clients = 0;
    counters.for_each(|meta| clients += usize::from(meta.type_id == type_id::CLIENT_HEARTBEAT));
    clients
}

/// Returns the change per second. Values of other processes may do anything; one that falls has begun anew.
pub(crate) fn rate(before: Option<i64>, now: i64, elapsed: Option<Duration>) -> Option<f64> {
    let elapsed = elapsed?.as_secs_f64();
    let change = now.saturating_sub(before?).max(0);
    (elapsed > 0.0).then(|| change as f64 / elapsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_the_change_per_second() {
        let half = Some(Duration::from_millis(500));
        assert_eq!(rate(Some(100), 150, half), Some(100.0));
        assert_eq!(rate(Some(150), 100, half), Some(0.0));
        assert_eq!(
            rate(Some(i64::MIN), i64::MAX, half),
            Some(i64::MAX as f64 * 2.0)
        );
        assert_eq!(rate(None, 1, half), None);
        assert_eq!(rate(Some(1), 1, Some(Duration::ZERO)), None);
    }
}
