// SPDX-License-Identifier: Apache-2.0
//! The streams of one driver as its counters and logs show them, updated by each [`Streams::refresh`].
//!
//! Counters are freed and their ids reused: [`Streams::rescan_counters`] compares the table with what is known, so that
//! a stream is tracked from the first refresh after its creation. Call it after each conductor duty cycle that did
//! work. Refresh after each duty cycle of a receiver, and after those of other agents that did work, so that checkers
//! see the state at each change.

use std::collections::BTreeSet;
use std::path::PathBuf;

use taran_core::counters::{Counter, CounterState, CountersReader};
use taran_core::memory::{MemoryStorage, Storage};
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::log::{LogBuffers, LogSpec};
use taran_protocol::position::align32;

/// Type ids of counters that are stream positions.
const POSITIONS: [i32; 7] = [
    type_id::PUBLISHER_LIMIT,
    type_id::SENDER_POSITION,
    type_id::SENDER_LIMIT,
    type_id::PUBLISHER_POSITION,
    type_id::RECEIVER_HIGH_WATER_MARK,
    type_id::RECEIVER_POSITION,
    type_id::SUBSCRIBER_POSITION,
];

/// The streams of one driver.
#[derive(Debug)]
pub struct Streams {
    reader: CountersReader,
    storage: MemoryStorage,
    directory: PathBuf,
    /// Counters beyond the system counters.
    table: Vec<Entry>,
    positions: Vec<Position>,
    streams: Vec<Stream>,
    modes: SendModes,
    /// Session and stream ids that two publications had at the same time. Frames do not tell which one they are of.
    ambiguous: BTreeSet<(i32, i32)>,
    /// True if anything is known to have changed since the last refresh.
    is_dirty: bool,
}

/// State of a counter id.
#[derive(Debug)]
struct Entry {
    state: CounterState,
    registration_id: i64,
    /// The counter, if the id is allocated.
    counter: Option<Counter>,
}

/// Send modes in use since the start, which weaken the checks of counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendModes {
    /// A publication with several destinations.
    pub destinations: bool,
    /// A subscription with several sources.
    pub sources: bool,
    /// A response publication, whose receiver announces itself first.
    pub responses: bool,
    /// A publication with spies, which may move its position over data that was not sent.
    pub spies: bool,
}

impl SendModes {
    /// Derives the modes from the channel in an endpoint's counter label.
    fn record(&mut self, type_id: i32, label: &str) {
        match type_id {
            type_id::SEND_CHANNEL_STATUS => {
                self.destinations |= has_destinations(label);
                self.responses |= label.contains("control-mode=response");
            }
            type_id::RECEIVE_CHANNEL_STATUS => {
                self.sources |= label.contains("control-mode=manual");
            }
            _ => {}
        }
    }
}

/// A position counter.
#[derive(Debug)]
pub struct Position {
    counter: Counter,
    /// Type id of the counter.
    pub type_id: i32,
    registration_id: i64,
    reference_id: i64,
    /// True if a subscriber position is tethered.
    pub is_tethered: bool,
    /// True if the receiver certainly knows of the subscriber.
    is_known_to_receiver: bool,
    /// Value at the last refresh.
    pub value: i64,
    /// Value at the previous refresh, or at the first one.
    pub previous: i64,
}

/// A publication or an image; positions are indices into [`Streams::positions`].
#[derive(Debug, Default)]
pub struct Stream {
    id: i64,
    /// Publication: publisher limit.
    pub publisher_limit: Option<usize>,
    /// Publication: publisher position, as last set by the conductor.
    pub publisher: Option<usize>,
    /// Network publication: sender position.
    pub sender: Option<usize>,
    /// Network publication: sender limit.
    pub sender_limit: Option<usize>,
    /// Image: high-water mark of received data.
    pub high_water: Option<usize>,
    /// Image: rebuild position.
    pub receiver: Option<usize>,
    /// Subscriber positions, including spies.
    pub consumers: Vec<usize>,
    /// True if there was ever a subscriber position.
    pub was_consumed: bool,
    /// Publication: whether it has several destinations.
    pub has_destinations: bool,
    /// Lower bound of the furthest position of the slowest subscriber.
    pub consumed: i64,
    /// The log, while it exists.
    pub log: Option<Log>,
}

/// The log of a stream.
#[derive(Debug)]
pub struct Log {
    /// Terms and metadata.
    pub buffers: LogBuffers,
    /// Publication window in bytes.
    pub publication_window: i64,
    /// Log bytes of the longest message.
    pub longest: i64,
    /// Published position at the last refresh.
    pub published: i64,
    /// Published position at the previous refresh.
    pub previous_published: i64,
}

impl Log {
    fn open(storage: &MemoryStorage, path: &std::path::Path) -> Option<Self> {
        let region = storage.open(path).ok()?;
        let (spec, buffers) = (LogSpec::of(&region).ok()?, LogBuffers::open(&region).ok()?);
        let published = buffers.producer_position();
        Some(Self {
            publication_window: i64::from(spec.publication_window),
            longest: longest(buffers.max_message_length(), buffers.max_payload_length()),
            published,
            previous_published: published,
            buffers,
        })
    }
}

/// Returns the log bytes of a message of `message` bytes in fragments of `payload` bytes with headers.
fn longest(message: i32, payload: i32) -> i64 {
    const HEADER: i32 = 32;
    let last = match message % payload {
        0 => 0,
        rest => align32(rest + HEADER),
    };
    i64::from(message / payload) * i64::from(payload + HEADER) + i64::from(last)
}

impl Streams {
    /// Creates the view of the driver with these counters and files.
    #[must_use]
    pub fn new(reader: CountersReader, storage: MemoryStorage, directory: PathBuf) -> Self {
        Self {
            reader,
            storage,
            directory,
            table: Vec::new(),
            positions: Vec::new(),
            streams: Vec::new(),
            modes: SendModes::default(),
            ambiguous: BTreeSet::new(),
            is_dirty: true,
        }
    }

    /// Detects allocated and freed counters. Must be followed by a refresh.
    pub fn rescan_counters(&mut self) {
        if self.table_has_changed() {
            self.scan();
            self.is_dirty = true;
        }
    }

    /// Reads all positions. Returns false if nothing changed since the previous refresh, so that earlier checks still
    /// hold.
    pub fn refresh(&mut self) -> bool {
        let mut has_changed = std::mem::take(&mut self.is_dirty);
        for position in &mut self.positions {
            position.previous = std::mem::replace(&mut position.value, position.counter.get());
            has_changed |= position.value != position.previous;
        }
        for stream in &mut self.streams {
            if let Some(log) = &mut stream.log {
                let published = log.buffers.producer_position();
                log.previous_published = std::mem::replace(&mut log.published, published);
                has_changed |= log.published != log.previous_published;
            } else {
                has_changed = true;
            }
        }
        if has_changed {
            self.update_streams();
        }
        has_changed
    }

    /// Updates the derived fields of each stream.
    fn update_streams(&mut self) {
        let mut has_new_log = false;
        for stream in &mut self.streams {
            let all = || stream.consumers.iter().map(|at| &self.positions[*at]);
            // A new subscriber may be behind the window that the receiver advertises on behalf of the subscribers it
            // knows.
            let any_known = all().any(|consumer| consumer.is_known_to_receiver);
            let consumers = || all().filter(move |it| it.is_known_to_receiver || !any_known);
            let tethered = consumers().filter(|consumer| consumer.is_tethered);
            // An untethered subscriber may or may not count.
            let slowest = tethered.map(|consumer| consumer.value).min();
            let slowest = slowest.or_else(|| consumers().map(|consumer| consumer.value).max());
            stream.consumed = stream.consumed.max(slowest.unwrap_or_default());
            if stream.log.is_none() {
                let folder = match stream.high_water {
                    Some(_) => "images",
                    None => "publications",
                };
                let file = format!("{folder}/{}.logbuffer", stream.id);
                stream.log = Log::open(&self.storage, &self.directory.join(file));
                has_new_log |= stream.log.is_some();
            }
        }
        if has_new_log {
            self.find_ambiguous();
        }
    }

    /// Takes note of publications with the same session and stream ids.
    fn find_ambiguous(&mut self) {
        let mut seen = BTreeSet::new();
        let sent = self.streams.iter().filter(|stream| stream.sender.is_some());
        for log in sent.filter_map(|stream| stream.log.as_ref()) {
            let key = (log.buffers.session_id(), log.buffers.stream_id());
            if !seen.insert(key) {
                self.ambiguous.insert(key);
            }
        }
    }

    /// Returns true if another publication had the session and stream ids of this one at the same time.
    #[must_use]
    pub fn is_ambiguous(&self, stream: &Stream) -> bool {
        let log = stream.log.as_ref().map(|log| &log.buffers);
        log.is_some_and(|log| {
            self.ambiguous
                .contains(&(log.session_id(), log.stream_id()))
        })
    }

    /// Marks all subscribers as known: the receiver had no work, so it has processed all commands of the conductor.
    pub fn mark_all_known(&mut self) {
        for position in &mut self.positions {
            self.is_dirty |= !position.is_known_to_receiver;
            position.is_known_to_receiver = true;
        }
    }

    /// Returns all positions of all streams.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Returns all streams.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Returns the send modes seen.
    #[must_use]
    pub fn modes(&self) -> SendModes {
        self.modes
    }

    /// Returns the position at an index of a stream.
    #[must_use]
    pub fn at(&self, index: Option<usize>) -> Option<&Position> {
        index.map(|index| &self.positions[index])
    }

    /// Returns label and values of a position.
    #[must_use]
    pub fn describe(&self, position: &Position) -> String {
        let id = position.counter.id();
        let label = self.reader.label(id).map(|label| label.to_string());
        let Position {
            value, previous, ..
        } = position;
        format!(
            "counter {id} ({}) at {value} (before: {previous})",
            label.unwrap_or_default()
        )
    }

    /// Returns the ids beyond those of the system counters.
    fn ids(&self) -> std::ops::RangeInclusive<i32> {
        SystemCounter::ALL.len() as i32..=self.reader.max_id()
    }

    fn entry(&self, id: i32) -> Entry {
        let counter = self.reader.counter(id);
        let registration_id = counter.as_ref().map(Counter::registration_id);
        Entry {
            state: self.reader.state(id),
            registration_id: registration_id.unwrap_or_default(),
            counter,
        }
    }

    fn table_has_changed(&self) -> bool {
        let mut known = self.table.iter();
        for id in self.ids() {
            let state = self.reader.state(id);
            let Some(known) = known.next() else {
                return state != CounterState::Unused;
            };
            let now = known.counter.as_ref().map(Counter::registration_id);
            if state != known.state || now.unwrap_or_default() != known.registration_id {
                return true;
            }
        }
        false
    }

    fn scan(&mut self) {
        let known = std::mem::take(&mut self.positions);
        let mut previous = std::mem::take(&mut self.streams);
        self.table.clear();
        for id in self.ids() {
            let entry = self.entry(id);
            if entry.state == CounterState::Unused {
                break;
            }
            let is_in_use = entry.state == CounterState::Allocated;
            self.table.push(entry);
            if is_in_use {
                self.add_counter(id, &known);
            }
        }
        for index in 0..self.positions.len() {
            let position = &self.positions[index];
            let (type_id, id) = (position.type_id, position.stream());
            let known = self.streams.iter().position(|stream| stream.id == id);
            let at = known.unwrap_or(self.streams.len());
            if known.is_none() {
                self.streams.push(Stream {
                    id,
                    ..Stream::default()
                });
            }
            let stream = &mut self.streams[at];
            let slot = match type_id {
                type_id::PUBLISHER_LIMIT => &mut stream.publisher_limit,
                type_id::PUBLISHER_POSITION => &mut stream.publisher,
                type_id::SENDER_POSITION => &mut stream.sender,
                type_id::SENDER_LIMIT => &mut stream.sender_limit,
                type_id::RECEIVER_HIGH_WATER_MARK => &mut stream.high_water,
                type_id::RECEIVER_POSITION => &mut stream.receiver,
                _ => {
                    stream.consumers.push(index);
                    continue;
                }
            };
            *slot = Some(index);
        }
        for stream in &mut self.streams {
            if let Some(previous) = previous
                .iter_mut()
                .find(|previous| previous.id == stream.id)
            {
                stream.consumed = previous.consumed;
                stream.log = previous.log.take();
                stream.was_consumed = previous.was_consumed;
            }
            stream.was_consumed |= !stream.consumers.is_empty();
            self.modes.spies |= stream.was_consumed && stream.sender.is_some();
            if let Some(sender) = stream.sender {
                let label = self.reader.label(self.positions[sender].counter.id());
                let label = label.map(|label| label.to_string());
                stream.has_destinations = label.is_some_and(|label| has_destinations(&label));
            }
        }
    }

    fn add_counter(&mut self, id: i32, known: &[Position]) {
        let Some(type_id) = self.reader.type_id(id) else {
            return;
        };
        let label = || self.reader.label(id).map(|label| label.to_string());
        if !POSITIONS.contains(&type_id) {
            self.modes.record(type_id, &label().unwrap_or_default());
            return;
        }
        let Some(counter) = self.reader.counter(id) else {
            return;
        };
        let (registration_id, reference_id) = (counter.registration_id(), counter.reference_id());
        let known = known
            .iter()
            .find(|known| known.counter.id() == id && known.registration_id == registration_id);
        let value = known.map_or_else(|| counter.get(), |known| known.value);
        let is_known_to_receiver = known.is_some_and(|known| known.is_known_to_receiver);
        let label = label();
        self.positions.push(Position {
            is_tethered: !label.is_some_and(|label| label.contains("tether=false")),
            is_known_to_receiver,
            type_id,
            registration_id,
            reference_id,
            value,
            previous: value,
            counter,
        });
    }
}

/// Returns true if the channel in this text has several destinations.
fn has_destinations(text: &str) -> bool {
    ["control-mode=manual", "control-mode=dynamic"]
        .iter()
        .any(|mode| text.contains(mode))
}

impl Position {
    /// Returns the counter.
    pub(crate) fn counter(&self) -> &Counter {
        &self.counter
    }

    /// Returns the id shared by the counters of a stream: that of the publication or image.
    fn stream(&self) -> i64 {
        if self.type_id == type_id::SUBSCRIBER_POSITION {
            self.reference_id
        } else {
            self.registration_id
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use taran_core::counters::{CounterSpec, CounterTable};
    use taran_core::memory::{CreateOptions, Region};
    use taran_protocol::log::{ExclusiveAppender, LogKind};

    use super::*;

    pub(in crate::check) const TERM: i64 = 64 * 1024;

    /// A driver without agents; the test sets its counters.
    pub(in crate::check) struct FakeDriver {
        pub(in crate::check) table: CounterTable,
        pub(in crate::check) storage: MemoryStorage,
        pub(in crate::check) streams: Streams,
    }

    impl FakeDriver {
        pub(in crate::check) fn new() -> Self {
            let (metadata, values) = (Region::anonymous(512 * 80), Region::anonymous(128 * 80));
            let mut table = CounterTable::new(metadata.unwrap(), values.unwrap(), Duration::ZERO);
            for _ in SystemCounter::ALL {
                table.allocate_with(&CounterSpec::default(), 0).unwrap();
            }
            let storage = MemoryStorage::new();
            for folder in ["/a/images", "/a/publications"] {
                storage.create_dir_all(folder.as_ref()).unwrap();
            }
            let streams = Streams::new(table.reader(), storage.clone(), "/a".into());
            Self {
                table,
                storage,
                streams,
            }
        }

        /// Returns true if anything changed. Checkers run only then.
        pub(in crate::check) fn refresh(&mut self) -> bool {
            self.streams.rescan_counters();
            self.streams.refresh()
        }

        pub(in crate::check) fn counter(&mut self, type_id: i32, stream: i64) -> Counter {
            self.labelled(type_id, stream, "")
        }

        pub(in crate::check) fn labelled(
            &mut self,
            type_id: i32,
            stream: i64,
            label: &str,
        ) -> Counter {
            let spec = CounterSpec {
                type_id,
                registration_id: stream,
                label,
                ..CounterSpec::default()
            };
            self.table.allocate_with(&spec, 0).unwrap()
        }

        pub(in crate::check) fn subscriber(&mut self, stream: i64, label: &str) -> Counter {
            let spec = CounterSpec {
                type_id: type_id::SUBSCRIBER_POSITION,
                registration_id: 1000 + stream,
                reference_id: stream,
                label,
                ..CounterSpec::default()
            };
            self.table.allocate_with(&spec, 0).unwrap()
        }

        /// Creates a log with a publication window of half a term.
        pub(in crate::check) fn log(&self, kind: LogKind, stream: i64) -> LogBuffers {
            let folder = if kind == LogKind::Image {
                "images"
            } else {
                "publications"
            };
            let mut spec = LogSpec::new(kind, 1, 2, 3, TERM as i32);
            if kind != LogKind::Image {
                spec.publication_window = TERM as i32 / 2;
            }
            let path = format!("/a/{folder}/{stream}.logbuffer");
            let length = spec.file_length() as u64;
            let region = self
                .storage
                .create(path.as_ref(), length, CreateOptions::default())
                .unwrap();
            LogBuffers::create(&region, &spec, 0).unwrap()
        }
    }

    #[test]
    fn refresh_reports_each_change_once() {
        let mut driver = FakeDriver::new();
        let limit = driver.counter(type_id::PUBLISHER_LIMIT, 7);
        let mut log = ExclusiveAppender::new(driver.log(LogKind::Exclusive, 7)).unwrap();
        let expect_once = |driver: &mut FakeDriver, what: &str| {
            assert!(driver.refresh(), "{what}");
            assert!(!driver.refresh(), "{what}");
        };
        expect_once(&mut driver, "a stream");
        limit.set(64);
        expect_once(&mut driver, "a position");
        log.append(&[1; 32], None).unwrap();
        expect_once(&mut driver, "a message");
        driver.subscriber(7, "");
        expect_once(&mut driver, "a counter");
        driver.streams.mark_all_known();
        expect_once(&mut driver, "a subscriber known to the receiver");
        driver.streams.mark_all_known();
        assert!(!driver.refresh(), "no new subscriber");
        driver.counter(type_id::PUBLISHER_LIMIT, 8);
        for _ in 0..2 {
            assert!(driver.refresh(), "a log that does not exist yet");
        }
        driver.log(LogKind::Exclusive, 8);
        expect_once(&mut driver, "a log");
    }

    #[test]
    fn publications_with_the_same_ids_are_ambiguous_also_after_one_of_them() {
        let mut driver = FakeDriver::new();
        let first = driver.counter(type_id::SENDER_POSITION, 7);
        driver.log(LogKind::Exclusive, 7);
        driver.refresh();
        let are_ambiguous = |driver: &FakeDriver| {
            let streams = driver.streams.streams().iter();
            streams
                .map(|stream| driver.streams.is_ambiguous(stream))
                .collect::<Vec<_>>()
        };
        assert_eq!(are_ambiguous(&driver), [false]);
        driver.counter(type_id::SENDER_POSITION, 8);
        driver.log(LogKind::Exclusive, 8);
        driver.refresh();
        assert_eq!(are_ambiguous(&driver), [true, true]);
        driver.table.free(first.id(), 0);
        driver.refresh();
        assert_eq!(are_ambiguous(&driver), [true]);
    }

    #[test]
    fn stream_is_tracked_from_creation_to_removal() {
        let mut driver = FakeDriver::new();
        driver.refresh();
        assert!(driver.streams.streams().is_empty());
        let limit = driver.counter(type_id::PUBLISHER_LIMIT, 7);
        driver.subscriber(7, "sub-pos: aeron:ipc?tether=false");
        driver.log(LogKind::Exclusive, 7);
        limit.set(64);
        driver.refresh();
        let [stream] = driver.streams.streams() else {
            panic!("{:?}", driver.streams.streams());
        };
        let log = stream.log.as_ref().unwrap();
        assert_eq!(log.publication_window, TERM / 2);
        assert_eq!(log.longest, 5 * 1408 + 1344);
        let found = driver.streams.at(stream.publisher_limit).unwrap();
        assert_eq!(found.value, 64);
        assert!(
            !driver
                .streams
                .at(Some(stream.consumers[0]))
                .unwrap()
                .is_tethered
        );
        limit.set(96);
        driver.refresh();
        let found = &driver.streams.positions()[0];
        assert_eq!((found.previous, found.value), (64, 96));
        driver.table.free(limit.id(), 0);
        let again = driver.counter(type_id::PUBLISHER_LIMIT, 8);
        assert_eq!(again.id(), limit.id());
        driver.refresh();
        let found = &driver.streams.positions()[0];
        assert_eq!((found.previous, found.value), (0, 0));
    }
}
