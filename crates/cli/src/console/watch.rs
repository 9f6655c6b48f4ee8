// SPDX-License-Identifier: Apache-2.0
//! The drivers that the console watches.
//!
//! Contract: each [`Watches::observe`] looks at every driver once and yields the [`View`]. It waits for none: a driver that is
//! missing, has ended or cannot be read is a state. One that has been restarted replaces the one before, with new streams.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::CountersReader;
use taran_protocol::counter::{ChannelKey, HeartbeatKey, SystemCounter, type_id};

use super::archives::Archives;
use super::attention;
use super::members;
use super::state::{State, StateKind};
use super::view::{Client, Driver, FailedChannel, Info, Stream, Totals, View};
use crate::attach::{self, Attached, Target};
use crate::client_label::ClientLabel;
use crate::error_log;
use crate::live::{self, Sampler, StreamId};
use crate::streams::model::channel;

/// Streams of a driver that are sent: the first ones, and those that need attention.
const MAX_STREAMS: usize = 1_000;
/// Clients of a driver that are sent.
const MAX_CLIENTS: usize = 1_000;
/// Errors of a driver that are sent.
const MAX_ERRORS: usize = 50;
/// Channels in error that are sent.
const MAX_CHANNELS: usize = 50;
/// Value of a channel status counter for a channel in error.
const CHANNEL_ERRORED: i64 = -1;
/// Age of a heartbeat from which on the file is opened again, because a new driver may have replaced it. Taran's drivers send one
/// each millisecond, official ones each second.
const SUSPECT_HEARTBEAT_AGE_MS: i64 = 2_000;

/// All drivers.
pub(super) struct Watches {
    watches: Vec<Watch>,
    next_stream_id: u64,
}

/// A driver.
struct Watch {
    target: Target,
    directory: PathBuf,
    attached: Option<Attachment>,
    state: Option<State>,
}

/// A driver whose file is mapped, and what is known from earlier samples.
struct Attachment {
    attached: Attached,
    sampler: Sampler,
    archives: Archives,
    stream_ids: HashMap<StreamId, u64>,
}

impl Watches {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        let watch = |target: Target| Watch {
            directory: attach::directory(&target).unwrap_or_default(),
            target,
            attached: None,
            state: None,
        };
        Self {
            watches: targets.into_iter().map(watch).collect(),
            next_stream_id: 0,
        }
    }

    pub(super) fn observe(&mut self) -> View {
        let time_ms = SystemClock::new().now().epoch_millis;
        let mut drivers = Vec::new();
        for watch in &mut self.watches {
            drivers.push(watch.observe(time_ms, &mut self.next_stream_id));
        }
        let attention = attention::of(&drivers, time_ms);
        let needed = attention.iter().filter_map(|entry| entry.stream).collect();
        for driver in &mut drivers {
            shorten(driver, &needed, MAX_STREAMS);
        }
        View {
            time_ms,
            attention,
            drivers,
        }
    }
}

impl Watch {
    fn observe(&mut self, now_ms: i64, next_stream_id: &mut u64) -> Driver {
        let state = self.attach(now_ms).after(self.state.as_ref());
        self.state = Some(state.clone());
        let mut driver = Driver {
            directory: self.directory.display().to_string(),
            state,
            info: None,
            totals: Totals::default(),
            clients: Vec::new(),
            streams: Vec::new(),
            streams_omitted: 0,
            errors: Vec::new(),
            errors_omitted: 0,
            channels: Vec::new(),
            archives: Vec::new(),
            members: Vec::new(),
        };
        if let Some(attachment) = &mut self.attached {
            attachment.fill(&mut driver, next_stream_id);
        }
        driver
    }

    /// Maps the file of the driver, if it is new, and returns the state.
    fn attach(&mut self, now_ms: i64) -> State {
        if let Some(Attachment { attached, .. }) = &self.attached {
            let state = State::of(attached, now_ms);
            let is_suspect = state.kind != StateKind::Alive
                || attached
                    .heartbeat_age_ms()
                    .is_none_or(|age| age > SUSPECT_HEARTBEAT_AGE_MS);
            if !is_suspect {
                return state;
            }
            match Attached::open(&self.target) {
                Ok(new) if identity(&new) != identity(attached) => self.replace(new, now_ms),
                // The same driver, or none: its last values stay.
                _ => state,
            }
        } else {
            match Attached::open(&self.target) {
                Ok(new) => self.replace(new, now_ms),
                Err(error) => State::of_error(&error, now_ms),
            }
        }
    }

    fn replace(&mut self, attached: Attached, now_ms: i64) -> State {
        let state = State::of(&attached, now_ms);
        self.attached = Some(Attachment {
            attached,
            sampler: Sampler::new(),
            archives: Archives::default(),
            stream_ids: HashMap::new(),
        });
        state
    }
}

/// Shortens the streams of a driver to `max`. Those that are needed stay.
fn shorten(driver: &mut Driver, needed: &HashSet<u64>, max: usize) {
    driver.streams_omitted = driver.streams.len().saturating_sub(max);
    let is_needed = |stream: &Stream| needed.contains(&stream.id);
    let needed_here = driver.streams.iter().filter(|stream| is_needed(stream));
    let mut room = max.saturating_sub(needed_here.count());
    driver.streams.retain(|stream| {
        let is_first = !is_needed(stream) && room > 0;
        room -= usize::from(is_first);
        is_first || is_needed(stream)
    });
}

/// Returns what differs between a driver and the next one of its directory.
fn identity(attached: &Attached) -> (i64, i64) {
    (attached.pid(), attached.cnc.spec().start_timestamp_ms)
}

impl Attachment {
    fn fill(&mut self, driver: &mut Driver, next_stream_id: &mut u64) {
        let counters = self.attached.counters();
        let sample = self.sampler.take(&self.attached);
        driver.info = Some(info(&self.attached, &counters));
        driver.totals = Totals {
            sent: sample.sent_bytes_per_second,
            received: sample.received_bytes_per_second,
            naks: sample.naks_per_second,
            retransmits: sample.retransmits_per_second,
            errors: sample.errors,
        };
        let mut present = HashSet::new();
        for row in sample.streams {
            let identity = live::id(&row.backlog);
            let id = *self.stream_ids.entry(identity.clone()).or_insert_with(|| {
                *next_stream_id += 1;
                *next_stream_id
            });
            present.insert(identity);
            driver.streams.push(Stream { id, row });
        }
        self.stream_ids
            .retain(|identity, _| present.contains(identity));
        let mut errors = error_log::read(&self.attached.cnc.error_log);
        errors.sort_by_key(|error| std::cmp::Reverse(error.last_observation_ms));
        driver.errors_omitted = errors.len().saturating_sub(MAX_ERRORS);
        errors.truncate(MAX_ERRORS);
        driver.errors = errors;
        collect(&counters, driver);
        driver.archives = self.archives.take(&counters);
        driver.members = members::collect(&counters);
    }
}

fn info(attached: &Attached, counters: &CountersReader) -> Info {
    let software = counters
        .label(SystemCounter::AeronVersion.id())
        .and_then(|label| Some(label.as_str().split_once(": ")?.1.to_owned()));
    Info {
        pid: attached.pid(),
        software: software.unwrap_or_default(),
        cnc_version: attached.version().to_string(),
        start_ms: attached.cnc.spec().start_timestamp_ms,
        heartbeat_age_ms: attached.heartbeat_age_ms(),
    }
}

/// Collects clients, and channels in error.
fn collect(counters: &CountersReader, driver: &mut Driver) {
    counters.for_each(|meta| {
        let Some(value) = counters.value(meta.id) else {
            return;
        };
        match meta.type_id {
            type_id::CLIENT_HEARTBEAT if driver.clients.len() < MAX_CLIENTS => {
                let label = ClientLabel::parse(meta.label.as_str());
                if let Some(key) = HeartbeatKey::decode(&meta.key) {
                    driver.clients.push(Client {
                        client_id: key.client_id,
                        name: label.name.to_owned(),
                        version: label.version.to_owned(),
                        heartbeat_ms: value,
                    });
                }
            }
            type_id::SEND_CHANNEL_STATUS | type_id::RECEIVE_CHANNEL_STATUS
                if value == CHANNEL_ERRORED && driver.channels.len() < MAX_CHANNELS =>
            {
                if let Some(key) = ChannelKey::decode(&meta.key) {
                    let name = meta.label.as_str().split(':').next().unwrap_or("");
                    driver.channels.push(FailedChannel {
                        name: name.to_owned(),
                        channel: channel(meta, &key.channel),
                    });
                }
            }
            _ => {}
        }
    });
    driver.clients.sort_by_key(|client| client.client_id);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::time::Duration;

    /// Returns the view of a directory that does not exist.
    pub(in crate::console) fn absent() -> Driver {
        let target = Target {
            aeron_dir: Some("/dev/shm/there-is-no-such-directory".into()),
            timeout: Duration::ZERO,
        };
        let mut view = Watches::new(vec![target]).observe();
        view.drivers.remove(0)
    }

    #[test]
    fn shorten_keeps_the_first_streams_and_those_needed() {
        let mut driver = absent();
        let stream = |id| Stream {
            id,
            row: live::StreamRow::default(),
        };
        driver.streams = (1..=6).map(stream).collect();
        shorten(&mut driver, &HashSet::from([2, 6, 99]), 4);
        let ids: Vec<u64> = driver.streams.iter().map(|stream| stream.id).collect();
        assert_eq!(ids, [1, 2, 3, 6]);
        assert_eq!(driver.streams_omitted, 2);
        shorten(&mut driver, &HashSet::new(), 4);
        assert_eq!((driver.streams.len(), driver.streams_omitted), (4, 0));
    }

    #[test]
    fn observe_of_missing_directory_tells_the_remedy() {
        let driver = absent();
        assert_eq!(driver.state.kind, StateKind::Absent);
        assert_eq!(
            driver.state.text,
            "no driver is running: /dev/shm/there-is-no-such-directory/cnc.dat does not exist. Start one with 'taran driver', \
             or give the directory of a running one with --aeron-dir or AERON_DIR"
        );
        assert!(driver.info.is_none() && driver.streams.is_empty());
    }
}
