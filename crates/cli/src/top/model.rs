//! Contents of the screen: the driver and its streams, with rates from one sample to the next.
//!
//! Contract: each [`Sampler::take`] yields one [`Sample`]. Rates are those since the sample before; the first sample has none.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use taran_core::counters::CountersReader;
use taran_protocol::counter::{SystemCounter, type_id};

use crate::attach::Attached;
use crate::backlog::{Backlog, Samples};
use crate::loss;
use crate::streams::model;

/// System counters that the screen sums up.
const TOTALS: [SystemCounter; 5] = [
    SystemCounter::BytesSent,
    SystemCounter::BytesReceived,
    SystemCounter::NaksSent,
    SystemCounter::RetransmitsSent,
    SystemCounter::Errors,
];

/// The driver and its streams at one time.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) directory: String,
    pub(super) pid: i64,
    pub(super) clients: usize,
    pub(super) errors: i64,
    pub(super) sent_bytes_per_second: Option<f64>,
    pub(super) received_bytes_per_second: Option<f64>,
    pub(super) naks_per_second: Option<f64>,
    pub(super) retransmits_per_second: Option<f64>,
    pub(super) streams: Vec<StreamRow>,
}

/// A stream at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StreamRow {
    pub(super) stream_id: i32,
    pub(super) session_id: i32,
    pub(super) channel: String,
    /// Bytes per second, of the publisher if it is here, else of what arrives.
    pub(super) rate: Option<f64>,
    /// Bytes by which the slowest part of this driver is behind.
    pub(super) lag: i64,
    pub(super) naks_per_second: Option<f64>,
    /// Bytes in the loss report.
    pub(super) lost: i64,
    /// Limit of the publication as text; empty without a publication.
    pub(super) limit: String,
}

/// Identity of a stream within a driver.
type StreamId = (i32, i32, String);

/// Takes samples of a driver.
pub(super) struct Sampler<'a> {
    attached: &'a Attached,
    backlogs: Samples<'a>,
    before: Option<Before>,
}

/// Values of the sample before.
struct Before {
    time: Instant,
    totals: [i64; TOTALS.len()],
    positions: HashMap<StreamId, i64>,
    naks: HashMap<StreamId, i64>,
}

impl<'a> Sampler<'a> {
    pub(super) fn of(attached: &'a Attached) -> Self {
        Self {
            attached,
            backlogs: Samples::of(attached),
            before: None,
        }
    }

    pub(super) fn take(&mut self) -> Sample {
        let time = Instant::now();
        let counters = self.attached.counters();
        let totals = TOTALS.map(|counter| counters.value(counter.id()).unwrap_or(0));
        let naks = naks(&counters);
        let lost = loss::bytes_lost(&self.attached.directory);
        let backlogs = self.backlogs.take();
        let positions: HashMap<StreamId, i64> = backlogs
            .iter()
            .filter_map(|backlog| Some((id(backlog), position(backlog)?)))
            .collect();

        let before = self.before.as_ref();
        let elapsed = before.map(|before| time.duration_since(before.time));
        let total = |index: usize| rate(before.map(|b| b.totals[index]), totals[index], elapsed);
        let streams = backlogs.iter().map(|backlog| {
            let id = id(backlog);
            let since = |now: &HashMap<StreamId, i64>, then: Option<&HashMap<StreamId, i64>>| {
                let now = *now.get(&id)?;
                rate(then?.get(&id).copied(), now, elapsed)
            };
            StreamRow {
                rate: since(&positions, before.map(|before| &before.positions)),
                naks_per_second: since(&naks, before.map(|before| &before.naks)),
                lag: lag(backlog),
                lost: lost.get(&(id.0, id.1)).copied().unwrap_or(0),
                limit: backlog
                    .limited_by
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                stream_id: backlog.stream_id,
                session_id: backlog.session_id,
                channel: backlog.channel.clone(),
            }
        });
        let sample = Sample {
            directory: self.attached.directory.display().to_string(),
            pid: self.attached.pid(),
            clients: clients(&counters),
            errors: totals[4],
            sent_bytes_per_second: total(0),
            received_bytes_per_second: total(1),
            naks_per_second: total(2),
            retransmits_per_second: total(3),
            streams: streams.collect(),
        };
        self.before = Some(Before {
            time,
            totals,
            positions,
            naks,
        });
        sample
    }
}

fn id(backlog: &Backlog) -> StreamId {
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

/// Returns the NAKs that were sent and received for each stream.
fn naks(counters: &CountersReader) -> HashMap<StreamId, i64> {
    let of_stream = |stream: model::Stream| {
        let naks = [type_id::SENDER_NAKS_RECEIVED, type_id::RECEIVER_NAKS_SENT]
            .iter()
            .flat_map(|&type_id| stream.of_type(type_id))
            .fold(0_i64, |sum, counter| sum.saturating_add(counter.value));
        ((stream.session_id, stream.stream_id, stream.channel), naks)
    };
    model::collect(counters)
        .into_iter()
        .map(of_stream)
        .collect()
}

fn clients(counters: &CountersReader) -> usize {
    let mut clients = 0;
    counters.for_each(|meta| clients += usize::from(meta.type_id == type_id::CLIENT_HEARTBEAT));
    clients
}

/// Returns the change per second. Values of other processes may do anything; one that falls has begun anew.
fn rate(before: Option<i64>, now: i64, elapsed: Option<Duration>) -> Option<f64> {
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
