// SPDX-License-Identifier: Apache-2.0
//! Retention: purges segments, or whole recordings, by the rules of the configuration.

use std::collections::HashMap;

use taran_archive_client::protocol::{ErrorCode, NULL_VALUE};

use super::ConductorCore;
use super::request::Requester;
use super::time_index::LookupFor;
use crate::counters::type_id;
use crate::files::{Bound, TimeEntry};
use crate::retention::{Extent, RetentionRule};

/// The requester of what the archive does by itself: there is no such session.
const NO_REQUESTER: Requester = Requester {
    session_id: NULL_VALUE,
    correlation_id: NULL_VALUE,
};

/// Time for which a consumer may be missing before the error log says so, in nanoseconds: it may start later than the archive.
const CONSUMER_TIMEOUT_NS: i64 = 60_000_000_000;

/// A consumer that was not seen since the archive started.
#[derive(Clone, Copy, Debug)]
struct MissingConsumer {
    since_ns: i64,
    is_logged: bool,
}

/// Progress of retention over the recordings, one per duty cycle.
#[derive(Debug, Default)]
pub(super) struct Retention {
    /// Time of the next pass.
    next_ns: i64,
    /// Id from which a pass goes on; `None` between passes.
    cursor: Option<i64>,
    /// True while the time index of a recording is searched.
    is_looking: bool,
    /// Positions of consumers seen last, by recording and name.
    consumers: HashMap<(i64, String), i64>,
    /// Consumers that a recording misses, by name.
    missing: HashMap<(i64, String), MissingConsumer>,
}

impl ConductorCore {
    pub(super) fn poll_retention(&mut self) -> usize {
        if self.config.retention.is_empty() || self.retention.is_looking {
            return 0;
        }
        let now_ns = self.now.nanos;
        let from = match self.retention.cursor {
            Some(from) => from,
            None if now_ns >= self.retention.next_ns => 0,
            None => return 0,
        };
        let Some(recording_id) = self
            .catalog
            .recordings(from)
            .next()
            .map(|found| found.recording_id)
        else {
            self.retention.cursor = None;
            self.retention.next_ns = now_ns.saturating_add(self.config.retention_interval_ns);
            return 0;
        };
        self.retention.cursor = Some(recording_id + 1);
        self.examine(recording_id);
        1
    }

    fn rule_of(&self, recording_id: i64) -> Option<RetentionRule> {
        let found = self.catalog.get(recording_id)?;
        let channel = &found.texts.original_channel;
        RetentionRule::of(
            &self.config.retention,
            recording_id,
            found.stream_id,
            channel,
        )
        .cloned()
    }

    fn examine(&mut self, recording_id: i64) {
        let Some(rule) = self.rule_of(recording_id) else {
            return;
        };
        match rule.age_ms() {
            Some(age_ms) if self.is_clock_steady(age_ms) => {
                self.retention.is_looking = true;
                let time_ms = self.now.epoch_millis.saturating_sub(age_ms);
                let bound = Bound::Before {
                    time_ms,
                    position: i64::MAX,
                };
                self.look_up(recording_id, bound, LookupFor::Retention);
            }
            _ => self.retain(&rule, recording_id, None),
        }
    }

    /// Returns true if the wall clock was not set forward for so long: before, ages that it tells are too high.
    fn is_clock_steady(&self, age_ms: i64) -> bool {
        self.clock_steps.steady_ms(self.now) >= age_ms
    }

    /// Goes on when the position before which all is too old is known.
    pub(super) fn on_age_found(&mut self, recording_id: i64, found: Option<TimeEntry>) {
        self.retention.is_looking = false;
        if let Some(rule) = self.rule_of(recording_id) {
            self.retain(&rule, recording_id, found.map(|found| found.position));
        }
    }

    fn retain(&mut self, rule: &RetentionRule, recording_id: i64, old: Option<i64>) {
        let consumed = self.consumed_position(rule, recording_id);
        let Some(found) = self.catalog.get(recording_id) else {
            return;
        };
        let (stop, stopped_ms) = (found.stop_position, found.stop_timestamp);
        let Ok(layout) = found.layout() else { return };
        let replayed = self.lowest_replay_position(recording_id);
        let extent = Extent {
            layout,
            end: self.recorded_position(recording_id).unwrap_or(stop),
            old,
            used: replayed.into_iter().chain(consumed).min(),
        };
        if extent.end == NULL_VALUE || self.check_no_deletion(recording_id).is_err() {
            return;
        }
        let is_consumed = consumed.is_none_or(|position| position >= stop);
        let is_old = rule.age_ms().is_some_and(|age_ms| {
            self.is_clock_steady(age_ms)
                && stopped_ms != NULL_VALUE
                && stopped_ms < self.now.epoch_millis.saturating_sub(age_ms)
        });
        let is_unused = stop != NULL_VALUE
            && self.check_unused(recording_id).is_ok()
            && !self.is_destination(recording_id);
        let done = if is_old && is_unused && is_consumed {
            self.purge_recording(recording_id, NO_REQUESTER)
        } else if let Some(start) = rule.new_start(&extent) {
            self.purge_segments(recording_id, start, NO_REQUESTER)
        } else {
            return;
        };
        match done {
            Ok(()) => {
                self.counters.purged.increment();
            }
            Err(refusal) => {
                let text = format!("retention of recording {recording_id}: {}", refusal.text);
                self.log(ErrorCode::Generic, &text);
            }
        }
    }

    /// Returns the lowest position of the rule's consumers: counters of these names, with the recording id before the name
    /// in their key. A consumer that is gone counts with its last position, one that was never seen with 0.
    fn consumed_position(&mut self, rule: &RetentionRule, recording_id: i64) -> Option<i64> {
        if rule.consumers().is_empty() {
            return None;
        }
        let counters = self.client.counters();
        let positions = &mut self.retention.consumers;
        counters.for_each(|meta| {
            if meta.type_id != type_id::CONSUMER_POSITION
                || meta.key[..8] != recording_id.to_le_bytes()
            {
                return;
            }
            let name = &meta.key[8..];
            let length = name
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(name.len());
            if let (Ok(name), Some(position)) = (
                std::str::from_utf8(&name[..length]),
                counters.value(meta.id),
            ) {
                positions.insert((recording_id, name.to_owned()), position);
            }
        });
        let (mut lowest, mut missing) = (None, Vec::new());
        for name in rule.consumers() {
            let position = positions.get(&(recording_id, name.clone())).copied();
            if position.is_none() {
                let since = MissingConsumer {
                    since_ns: self.now.nanos,
                    is_logged: false,
                };
                let key = (recording_id, name.clone());
                let found = self.retention.missing.entry(key).or_insert(since);
                let waited_ns = self.now.nanos.saturating_sub(found.since_ns);
                if !found.is_logged && waited_ns >= CONSUMER_TIMEOUT_NS {
                    found.is_logged = true;
                    missing.push(name);
                }
            }
            let position = position.unwrap_or(0);
            lowest = Some(lowest.map_or(position, |lowest: i64| lowest.min(position)));
        }
        for name in missing {
            let text = format!(
                "retention of recording {recording_id}: the consumer {name} was not seen since the archive started, and nothing \
                 is purged before it is"
            );
            self.log(ErrorCode::Generic, &text);
        }
        lowest
    }
}
