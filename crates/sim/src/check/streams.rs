//! What one driver's counters and logs say of its streams, read anew with each [`Streams::look`].
//!
//! Counters come and go, and ids are given away again: [`Streams::look_for_counters`] compares the table with what is
//! known, so that a stream is watched from the first look after it was made. It has to follow each turn of a conductor
//! that did anything. For what checkers have to know of the moment of a change, a look has to follow each turn of a
//! receiver, and each of others that did anything.

use std::path::PathBuf;

use taran_core::counters::{Counter, CounterState, CountersReader};
use taran_core::memory::{MemoryStorage, Storage};
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::log::{LogBuffers, LogSpec};
use taran_protocol::position::align32;

/// Counters of these types are positions of a stream.
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
    /// Each counter behind the system counters.
    table: Vec<Entry>,
    positions: Vec<Position>,
    streams: Vec<Stream>,
    ways: Ways,
    /// Whether it is known of anything that it changed since the last look.
    is_news: bool,
}

/// What an id was given to.
#[derive(Debug)]
struct Entry {
    state: CounterState,
    registration_id: i64,
    /// If it is in use.
    counter: Option<Counter>,
}

/// Ways of sending one thing to several, or to whoever asked, that there ever were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// A publication that is sent to several destinations.
    pub destinations: bool,
    /// A subscription that answers several sources.
    pub sources: bool,
    /// Publications whose receiver has to show itself first.
    pub answers: bool,
    /// Publications that were ever spied on: spies may move them over what was not sent.
    pub spies: bool,
}

impl Ways {
    /// A counter of an endpoint says which channel that is of.
    fn learn(&mut self, type_id: i32, label: &str) {
        match type_id {
            type_id::SEND_CHANNEL_STATUS => {
                self.destinations |= has_destinations(label);
                self.answers |= label.contains("control-mode=response");
            }
            type_id::RECEIVE_CHANNEL_STATUS => {
                self.sources |= label.contains("control-mode=manual");
            }
            _ => {}
        }
    }
}

/// A counter that is a position.
#[derive(Debug)]
pub struct Position {
    counter: Counter,
    /// What kind of position it is.
    pub type_id: i32,
    registration_id: i64,
    reference_id: i64,
    /// Whether a subscriber holds the stream back.
    pub is_tethered: bool,
    /// Whether the receiver knows of a subscriber for certain.
    is_settled: bool,
    /// Its value.
    pub value: i64,
    /// Its value at the look before, or at the first one.
    pub before: i64,
}

/// A publication or an image: where its positions are among [`Streams::positions`].
#[derive(Debug, Default)]
pub struct Stream {
    id: i64,
    /// Publications: up to where may be published.
    pub publisher_limit: Option<usize>,
    /// Publications: up to where was published, as the conductor last saw it.
    pub publisher: Option<usize>,
    /// Network publications: up to where was sent.
    pub sender: Option<usize>,
    /// Network publications: up to where may be sent.
    pub sender_limit: Option<usize>,
    /// Images: the end of what arrived.
    pub high_water: Option<usize>,
    /// Images: up to where everything arrived.
    pub receiver: Option<usize>,
    /// Subscribers, spies included.
    pub consumers: Vec<usize>,
    /// Whether it ever had one.
    pub was_consumed: bool,
    /// Publications: whether it is sent to several destinations.
    pub has_destinations: bool,
    /// The furthest that the slowest subscriber ever was, for all that is known.
    pub consumed: i64,
    /// Its log, while there is one.
    pub log: Option<Log>,
}

/// The log of a stream.
#[derive(Debug)]
pub struct Log {
    /// Terms and metadata.
    pub buffers: LogBuffers,
    /// How far a publisher may be ahead of its consumers.
    pub publication_window: i64,
    /// What the longest message takes in it.
    pub longest: i64,
    /// Up to where was published.
    pub published: i64,
    /// The same at the look before.
    pub published_before: i64,
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
            published_before: published,
            buffers,
        })
    }
}

/// A message of `message` bytes in fragments of `payload` bytes, each with its header.
fn longest(message: i32, payload: i32) -> i64 {
    const HEADER: i32 = 32;
    let last = match message % payload {
        0 => 0,
        rest => align32(rest + HEADER),
    };
    i64::from(message / payload) * i64::from(payload + HEADER) + i64::from(last)
}

impl Streams {
    /// The streams of the driver with these counters and files.
    #[must_use]
    pub fn new(reader: CountersReader, storage: MemoryStorage, directory: PathBuf) -> Self {
        Self {
            reader,
            storage,
            directory,
            table: Vec::new(),
            positions: Vec::new(),
            streams: Vec::new(),
            ways: Ways::default(),
            is_news: true,
        }
    }

    /// Finds counters that came and went. To be followed by a look.
    pub fn look_for_counters(&mut self) {
        if self.has_changed() {
            self.scan();
            self.is_news = true;
        }
    }

    /// Reads everything anew. False if it is as it was at the look before: what held then, holds.
    pub fn look(&mut self) -> bool {
        let mut has_changed = std::mem::take(&mut self.is_news);
        for position in &mut self.positions {
            position.before = std::mem::replace(&mut position.value, position.counter.get());
            has_changed |= position.value != position.before;
        }
        for stream in &mut self.streams {
            if let Some(log) = &mut stream.log {
                let published = log.buffers.producer_position();
                log.published_before = std::mem::replace(&mut log.published, published);
                has_changed |= log.published != log.published_before;
            } else {
                has_changed = true;
            }
        }
        if has_changed {
            self.hold_together();
        }
        has_changed
    }

    /// What follows for each stream from its positions.
    fn hold_together(&mut self) {
        for stream in &mut self.streams {
            let all = || stream.consumers.iter().map(|at| &self.positions[*at]);
            // Whoever has just joined may be behind what is told on behalf of those whom the receiver knows.
            let any_settled = all().any(|consumer| consumer.is_settled);
            let consumers = || all().filter(move |it| it.is_settled || !any_settled);
            let tethered = consumers().filter(|consumer| consumer.is_tethered);
            // Who is not tethered may count, or not.
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
            }
        }
    }

    /// The receiver had nothing to do, so that it has taken all that the conductor told it.
    pub fn settle(&mut self) {
        for position in &mut self.positions {
            self.is_news |= !position.is_settled;
            position.is_settled = true;
        }
    }

    /// All positions of all streams.
    #[must_use]
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// All streams.
    #[must_use]
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// In which ways was sent.
    #[must_use]
    pub fn ways(&self) -> Ways {
        self.ways
    }

    /// The position at an index that a stream has.
    #[must_use]
    pub fn at(&self, index: Option<usize>) -> Option<&Position> {
        index.map(|index| &self.positions[index])
    }

    /// Name and value of a position.
    #[must_use]
    pub fn describe(&self, position: &Position) -> String {
        let id = position.counter.id();
        let label = self.reader.label(id).map(|label| label.to_string());
        let Position { value, before, .. } = position;
        format!(
            "counter {id} ({}) at {value} (before: {before})",
            label.unwrap_or_default()
        )
    }

    /// Ids behind those of the system counters.
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

    fn has_changed(&self) -> bool {
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
        let mut before = std::mem::take(&mut self.streams);
        self.table.clear();
        for id in self.ids() {
            let entry = self.entry(id);
            if entry.state == CounterState::Unused {
                break;
            }
            let is_in_use = entry.state == CounterState::Allocated;
            self.table.push(entry);
            if is_in_use {
                self.add(id, &known);
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
            let place = match type_id {
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
            *place = Some(index);
        }
        for stream in &mut self.streams {
            if let Some(before) = before.iter_mut().find(|before| before.id == stream.id) {
                stream.consumed = before.consumed;
                stream.log = before.log.take();
                stream.was_consumed = before.was_consumed;
            }
            stream.was_consumed |= !stream.consumers.is_empty();
            self.ways.spies |= stream.was_consumed && stream.sender.is_some();
            if let Some(sender) = stream.sender {
                let label = self.reader.label(self.positions[sender].counter.id());
                let label = label.map(|label| label.to_string());
                stream.has_destinations = label.is_some_and(|label| has_destinations(&label));
            }
        }
    }

    fn add(&mut self, id: i32, known: &[Position]) {
        let Some(type_id) = self.reader.type_id(id) else {
            return;
        };
        let label = || self.reader.label(id).map(|label| label.to_string());
        if !POSITIONS.contains(&type_id) {
            self.ways.learn(type_id, &label().unwrap_or_default());
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
        let is_settled = known.is_some_and(|known| known.is_settled);
        let label = label();
        self.positions.push(Position {
            is_tethered: !label.is_some_and(|label| label.contains("tether=false")),
            is_settled,
            type_id,
            registration_id,
            reference_id,
            value,
            before: value,
            counter,
        });
    }
}

/// Whether a channel in this text is sent to several destinations.
fn has_destinations(text: &str) -> bool {
    ["control-mode=manual", "control-mode=dynamic"]
        .iter()
        .any(|mode| text.contains(mode))
}

impl Position {
    /// What a stream's counters have in common: the id of the publication or the image.
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

    /// A driver that does nothing but what the test does.
    pub(in crate::check) struct Scene {
        pub(in crate::check) table: CounterTable,
        pub(in crate::check) storage: MemoryStorage,
        pub(in crate::check) streams: Streams,
    }

    impl Scene {
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

        /// Whether anything changed. Checkers look only then.
        pub(in crate::check) fn look(&mut self) -> bool {
            self.streams.look_for_counters();
            self.streams.look()
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

        /// A log with a publication window of half a term.
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
    fn whatever_changes_is_noticed_once() {
        let mut scene = Scene::new();
        let limit = scene.counter(type_id::PUBLISHER_LIMIT, 7);
        let mut log = ExclusiveAppender::new(scene.log(LogKind::Exclusive, 7)).unwrap();
        let expect_once = |scene: &mut Scene, what: &str| {
            assert!(scene.look(), "{what}");
            assert!(!scene.look(), "{what}");
        };
        expect_once(&mut scene, "a stream");
        limit.set(64);
        expect_once(&mut scene, "a position");
        log.append(&[1; 32], None).unwrap();
        expect_once(&mut scene, "a message");
        scene.subscriber(7, "");
        expect_once(&mut scene, "a counter");
        scene.streams.settle();
        expect_once(&mut scene, "somebody whom the receiver knows");
        scene.streams.settle();
        assert!(!scene.look(), "nobody new");
        scene.counter(type_id::PUBLISHER_LIMIT, 8);
        for _ in 0..2 {
            assert!(scene.look(), "a log that is awaited");
        }
        scene.log(LogKind::Exclusive, 8);
        expect_once(&mut scene, "a log");
    }

    #[test]
    fn a_stream_is_watched_from_the_look_after_it_was_made_until_it_is_gone() {
        let mut scene = Scene::new();
        scene.look();
        assert!(scene.streams.streams().is_empty());
        let limit = scene.counter(type_id::PUBLISHER_LIMIT, 7);
        scene.subscriber(7, "sub-pos: aeron:ipc?tether=false");
        scene.log(LogKind::Exclusive, 7);
        limit.set(64);
        scene.look();
        let [stream] = scene.streams.streams() else {
            panic!("{:?}", scene.streams.streams());
        };
        let log = stream.log.as_ref().unwrap();
        assert_eq!(log.publication_window, TERM / 2);
        assert_eq!(log.longest, 5 * 1408 + 1344);
        let found = scene.streams.at(stream.publisher_limit).unwrap();
        assert_eq!(found.value, 64);
        assert!(
            !scene
                .streams
                .at(Some(stream.consumers[0]))
                .unwrap()
                .is_tethered
        );
        limit.set(96);
        scene.look();
        let found = &scene.streams.positions()[0];
        assert_eq!((found.before, found.value), (64, 96));
        scene.table.free(limit.id(), 0);
        let again = scene.counter(type_id::PUBLISHER_LIMIT, 8);
        assert_eq!(again.id(), limit.id());
        scene.look();
        let found = &scene.streams.positions()[0];
        assert_eq!((found.before, found.value), (0, 0));
    }
}
