// SPDX-License-Identifier: Apache-2.0
//! Pages of logs are reserved as streams proceed. While the file system is full, publishers wait; no process writes to
//! pages that are not reserved: the memory storage of these tests kills it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use taran_core::memory::{CreateOptions, MemoryStorage, Storage};
use taran_net::SocketSpec;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{DataHeader, Frame, FrameType, IntoBytes, Setup};
use taran_protocol::log::{AppendError, ExclusiveAppender, LogBuffers, SharedAppender};

use super::LISTENING;
use crate::fixture::{DriverFixture, Ready};
use crate::image_events::{Available, available, unavailable};
use crate::memory_network::TestSocket;

const MIB: u64 = 1 << 20;
const TERM: i64 = 4 << 20;
/// Metadata of a log.
const METADATA: u64 = 4_096;
/// The part of the next term that is reserved with a term.
const NEXT: u64 = 64 * 1024;
const SECOND: Duration = Duration::from_secs(1);

const CHANNELS: [&str; 4] = [
    "aeron:ipc?term-length=4m",
    "aeron:ipc?term-length=4m|sparse=true",
    "aeron:udp?endpoint=localhost:40123|term-length=4m|ssc=true",
    "aeron:ipc?term-length=4m|init-term-id=-7|term-id=-2|term-offset=4128768",
];

enum Appender {
    Shared(SharedAppender),
    Exclusive(ExclusiveAppender),
}

/// A publication with a local subscriber.
struct Stream {
    driver: DriverFixture,
    storage: MemoryStorage,
    publication: Ready,
    image: Available,
    log: LogBuffers,
    appender: Appender,
}

impl Stream {
    fn new(channel: &str, is_exclusive: bool, options: &[(&str, &str)]) -> Self {
        let storage = MemoryStorage::new();
        let mut driver = DriverFixture::in_storage(storage.clone(), options);
        let client = driver.client();
        let publication = if is_exclusive {
            driver.add_exclusive(client, channel, 10).unwrap()
        } else {
            driver.add_publication(client, channel, 10).unwrap()
        };
        let subscribed = if channel.starts_with("aeron:ipc") {
            "aeron:ipc"
        } else {
            "aeron-spy:aeron:udp?endpoint=localhost:40123"
        };
        driver.messages();
        driver.send(&taran_protocol::command::Command::AddSubscription {
            client_id: client,
            correlation_id: driver.id(),
            stream_id: 10,
            channel: subscribed,
        });
        driver.settle();
        let image = available(&driver.messages()).remove(0);
        let log = driver.log(&publication.log);
        let appender = if is_exclusive {
            Appender::Exclusive(ExclusiveAppender::new(log.clone()).unwrap())
        } else {
            Appender::Shared(SharedAppender::new(log.clone()))
        };
        Self {
            driver,
            storage,
            publication,
            image,
            log,
            appender,
        }
    }

    fn limit(&self) -> i64 {
        self.driver.value(self.publication.limit_counter_id)
    }

    fn append(&mut self, message: &[u8]) -> Result<i64, AppendError> {
        match &mut self.appender {
            Appender::Exclusive(appender) => appender.append(message, None),
            Appender::Shared(appender) => match appender.tail() {
                Some(tail) => appender.append(tail, message, None),
                None => Err(AppendError::AdminAction),
            },
        }
    }

    /// Publishes messages of the maximum length up to the limit, consumes them, and lets a moment pass.
    fn step(&mut self) -> i64 {
        let message = vec![0xAB; self.log.max_message_length() as usize];
        while self.log.producer_position() < self.limit() {
            let _ = self.append(&message);
        }
        let position = self.log.producer_position();
        self.driver.set(self.image.position_counter_id, position);
        self.driver.run_for(Duration::from_millis(20));
        position
    }
}

#[test]
fn publication_reserves_its_first_term_only() {
    for (channel, term_length) in [
        ("aeron:ipc?term-length=64m", 64 * MIB),
        (
            "aeron:udp?endpoint=localhost:40123|term-length=16m",
            16 * MIB,
        ),
        ("aeron:ipc?term-length=1g|sparse=true", 1024 * MIB),
    ] {
        for is_exclusive in [false, true] {
            let storage = MemoryStorage::new();
            let mut driver = DriverFixture::in_storage(storage.clone(), &[]);
            let before = storage.reserved();
            let client = driver.client();
            if is_exclusive {
                driver.add_exclusive(client, channel, 10).unwrap();
            } else {
                driver.add_publication(client, channel, 10).unwrap();
            }
            driver.run_for(SECOND);
            assert_eq!(storage.reserved() - before, term_length + NEXT + METADATA);
        }
    }
}

#[test]
fn publication_with_sparse_false_reserves_the_whole_log() {
    let storage = MemoryStorage::new();
    let mut driver = DriverFixture::in_storage(storage.clone(), &[]);
    let before = storage.reserved();
    let client = driver.client();
    let channel = "aeron:ipc?term-length=16m|sparse=false";
    driver.add_publication(client, channel, 10).unwrap();
    assert_eq!(storage.reserved() - before, 48 * MIB + METADATA);
}

#[test]
fn publisher_waits_while_the_next_term_cannot_be_reserved() {
    for checks in ["true", "false"] {
        for channel in CHANNELS {
            for is_exclusive in [false, true] {
                let options = [("aeron.perform.storage.checks", checks)];
                let mut stream = Stream::new(channel, is_exclusive, &options);
                let start = stream.log.producer_position();
                // All that is reserved at creation can be used.
                let full = stream.storage.reserved();
                stream.storage.set_capacity(Some(full + 1000));
                for _ in 0..20 {
                    stream.step();
                }
                let when = format!("{channel} {is_exclusive}");
                let stopped = stream.limit();
                assert_eq!(stopped % TERM, 0, "{when}: limit {stopped}");
                assert!(stopped > start && stopped <= start + 2 * TERM, "{when}");
                assert_eq!(stream.storage.reserved(), full, "{when}");
                let errors = stream.driver.errors();
                let code = format!("{}", ErrorCode::StorageSpace.code());
                let log = 3 * TERM as u64 + METADATA;
                let missing = log - first(start);
                let needed = format!("needed={missing} available=1000 ");
                let size = format!(
                    "remount,size={}m",
                    (full + 1000 + missing - 1000).div_ceil(MIB)
                );
                for part in [&needed, "back-pressured", &size, "stream=10", &code] {
                    assert!(errors[0].0.contains(part), "{when}: {part}: {errors:?}");
                }
                assert_eq!(errors.len(), 1, "{when}: one record per shortage");
                stream.driver.run_for(2 * SECOND);
                assert_eq!(stream.limit(), stopped, "{when}");

                stream.storage.set_capacity(None);
                stream.driver.run_for(2 * SECOND);
                assert!(stream.limit() > stopped, "{when}: recovers");
                let errors = stream.driver.errors();
                assert!(
                    errors[1].0.contains("has space again"),
                    "{when}: {errors:?}"
                );
                assert_eq!(errors.len(), 2, "{when}: {errors:?}");
                while stream.log.producer_position() < start + 7 * TERM {
                    stream.step();
                }
                assert_eq!(
                    stream.storage.reserved() - full + first(start),
                    log,
                    "{when}"
                );
            }
        }
    }
}

/// Returns the bytes that are reserved for a log whose stream starts at `start`.
fn first(start: i64) -> u64 {
    let offset = start % TERM;
    let begin = offset - offset % NEXT as i64;
    let terms = if offset + TERM / 2 > TERM { 2 } else { 1 };
    (terms * TERM - begin) as u64 + NEXT + METADATA
}

/// Pages of another file with the same name do not help: without the check the publisher would be killed.
#[test]
fn publisher_of_replaced_log_file_waits_at_the_end_of_its_pages() {
    let mut stream = Stream::new("aeron:ipc?term-length=4m", true, &[]);
    let (path, len) = (
        Path::new(&stream.publication.log),
        3 * TERM as u64 + METADATA,
    );
    stream.storage.remove(path).unwrap();
    stream
        .storage
        .create(path, len, CreateOptions::SPARSE)
        .unwrap();
    for _ in 0..20 {
        stream.step();
    }
    stream.driver.run_for(SECOND);
    assert_eq!(stream.limit(), TERM);
    let errors = stream.driver.errors();
    assert!(errors[0].0.contains("has replaced it"), "{errors:?}");
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn next_term_is_reserved_before_the_limit_needs_it() {
    for channel in CHANNELS {
        let mut stream = Stream::new(channel, true, &[]);
        let mut position = stream.log.producer_position();
        let end = position + 8 * TERM;
        while position < end {
            let _ = stream.append(&[7; 60_000]);
            position = stream.log.producer_position();
            stream
                .driver
                .set(stream.image.position_counter_id, position);
            stream.driver.duty_cycle();
            stream.driver.duty_cycle();
            let window = stream.limit() - position;
            // The limit is raised in steps of an eighth of the window.
            assert!(
                window >= TERM / 2 * 7 / 8 - 60_064,
                "{channel}: {window} at {position}"
            );
        }
    }
}

#[test]
fn claims_beyond_the_limit_stay_within_reserved_pages() {
    let mut stream = Stream::new("aeron:ipc?term-length=4m", false, &[]);
    stream.storage.set_capacity(Some(stream.storage.reserved()));
    let Appender::Shared(appender) = &stream.appender else {
        unreachable!("it is shared");
    };
    // Each publisher has compared the same tail with the limit before any of them appends.
    let publishers = vec![appender.tail().unwrap(); 40];
    let message = vec![1; stream.log.max_message_length() as usize];
    let appended = publishers
        .into_iter()
        .filter(|tail| appender.append(*tail, &message, None).is_ok());
    assert_eq!(appended.count(), 7, "the term is full");
    assert_eq!(stream.log.producer_position(), TERM);
    stream.driver.set(stream.image.position_counter_id, TERM);
    stream.driver.run_for(SECOND);
    assert_eq!(stream.limit(), TERM);
}

const PORT: u16 = 40_200;
const MTU: i64 = 1_408;

fn source() -> SocketAddr {
    "127.0.0.1:9".parse().unwrap()
}

/// An image of a stream with long terms, and what the test sends to it.
struct Received {
    driver: DriverFixture,
    storage: MemoryStorage,
    image: Available,
    log: LogBuffers,
    before: u64,
    /// Bytes that are reserved for the image before it has received anything.
    created: u64,
    term_length: i64,
    start: i64,
    sender: TestSocket,
}

impl Received {
    fn new(subscribe: &str, term_length: i64, start: i64) -> Self {
        let storage = MemoryStorage::new();
        let mut driver = DriverFixture::in_storage(storage.clone(), &[]);
        let client = driver.client();
        driver.add_subscription(client, subscribe, 10).unwrap();
        let sender = TestSocket::open(&driver.network, &SocketSpec::bound(source()));
        let before = storage.reserved();
        driver.messages();
        let setup = Setup {
            header: Setup::header(0),
            term_offset: ((start % term_length) as i32).into(),
            session_id: 77.into(),
            stream_id: 10.into(),
            initial_term_id: 5.into(),
            active_term_id: ((start / term_length) as i32 + 5).into(),
            term_length: (term_length as i32).into(),
            mtu: (MTU as i32).into(),
            ttl: 0.into(),
        };
        driver.network.deliver(source(), PORT, setup.as_bytes());
        driver.settle();
        let image = available(&driver.messages()).remove(0);
        let log = driver.log(&image.log);
        let created = storage.reserved() - before;
        Self {
            driver,
            storage,
            image,
            log,
            before,
            created,
            term_length,
            start,
            sender,
        }
    }

    fn reserved(&self) -> u64 {
        self.storage.reserved() - self.before
    }

    /// Delivers a frame at a position.
    fn send(&mut self, position: i64) {
        let (term, offset) = (position / self.term_length, position % self.term_length);
        let mut header = DataHeader::heartbeat(0xC0, 77, 10, 5 + term as i32, offset as i32);
        header.header.frame_length = (MTU as i32).into();
        let mut datagram = header.as_bytes().to_vec();
        datagram.resize(MTU as usize, 0xAB);
        self.driver.network.deliver(source(), PORT, &datagram);
    }

    /// Delivers a heartbeat at a position.
    fn send_heartbeat(&mut self, position: i64) {
        let (term, offset) = (position / self.term_length, position % self.term_length);
        let heartbeat = DataHeader::heartbeat(0xC0, 77, 10, 5 + term as i32, offset as i32);
        self.driver
            .network
            .deliver(source(), PORT, heartbeat.as_bytes());
    }

    /// Delivers padding from a position to the end of its term.
    fn send_padding(&mut self, position: i64) {
        let to_end = self.term_length - position % self.term_length;
        self.send_padding_of(position, to_end);
    }

    fn send_padding_of(&mut self, position: i64, length: i64) {
        let (term, offset) = (position / self.term_length, position % self.term_length);
        let mut header = DataHeader::heartbeat(0xC0, 77, 10, 5 + term as i32, offset as i32);
        header.header.frame_length = (length as i32).into();
        header.header.frame_type = FrameType::PAD.0.into();
        self.driver
            .network
            .deliver(source(), PORT, header.as_bytes());
    }

    /// Returns the positions that were NAKed since the last call of this or of `window_end`.
    fn naks(&mut self) -> Vec<i64> {
        let sent = self.sender.take();
        self.naks_in(&sent)
    }

    fn naks_in(&self, sent: &[Vec<u8>]) -> Vec<i64> {
        let naks = sent
            .iter()
            .filter_map(|datagram| match Frame::parse(datagram) {
                Ok(Frame::Nak(nak)) => {
                    let term = i64::from(nak.term_id.get() - 5) * self.term_length;
                    Some(term + i64::from(nak.term_offset.get()))
                }
                _ => None,
            });
        naks.collect()
    }

    /// Acts as the sender of padding, the first copy of which was lost: announces its end each 100 ms, for `heartbeats`
    /// times, and retransmits it when it is NAKed. The subscriber consumes what arrives. Returns the end of the window.
    fn exchange_padding(&mut self, position: i64, length: i64, heartbeats: u32) -> Option<i64> {
        let mut window_end = None;
        for _ in 0..heartbeats {
            self.send_heartbeat(position + length);
            self.driver.run_for(SECOND / 10);
            let sent = self.sender.take();
            window_end = self.window_end_in(&sent).or(window_end);
            if self.naks_in(&sent).contains(&position) {
                self.send_padding_of(position, length);
            }
            // What has not arrived does not count as consumed.
            self.driver
                .set(self.image.position_counter_id, position + length);
        }
        window_end
    }

    /// Returns the end of the window in the last status message.
    fn window_end(&mut self) -> Option<i64> {
        let sent = self.sender.take();
        self.window_end_in(&sent)
    }

    fn window_end_in(&self, sent: &[Vec<u8>]) -> Option<i64> {
        let mut ends = sent
            .iter()
            .filter_map(|datagram| match Frame::parse(datagram) {
                Ok(Frame::StatusMessage(status)) => {
                    let status = status.message;
                    let term = i64::from(status.consumption_term_id.get() - 5) * self.term_length;
                    let offset = i64::from(status.consumption_term_offset.get());
                    Some(term + offset + i64::from(status.receiver_window.get()))
                }
                _ => None,
            });
        ends.next_back()
    }

    /// Sends what the window allows, consumes it, and returns the position.
    fn step(&mut self, window_end: &mut i64, from: i64) -> i64 {
        let mut position = from;
        let frame = (MTU + 31) / 32 * 32;
        while position + frame <= *window_end
            && position / self.term_length == (position + frame - 1) / self.term_length
        {
            self.send(position);
            position += frame;
            self.driver.duty_cycle();
        }
        self.driver.set(self.image.position_counter_id, position);
        self.driver.run_for(Duration::from_millis(250));
        *window_end = self.window_end().unwrap_or(*window_end);
        position
    }
}

#[test]
fn image_reserves_a_megabyte_until_data_arrives() {
    for (subscribe, term_length, expected) in [
        (LISTENING.to_owned(), 1 << 30, MIB),
        (
            format!("{LISTENING}|rcv-wnd=4m|so-rcvbuf=64m"),
            1 << 30,
            4 * MIB + NEXT,
        ),
        (
            format!("{LISTENING}|rcv-wnd=64m|so-rcvbuf=64m"),
            1 << 30,
            16 * MIB,
        ),
        (LISTENING.to_owned(), 64 * 1024, 3 * 64 * 1024),
    ] {
        let mut received = Received::new(&subscribe, term_length, 0);
        assert_eq!(received.reserved(), expected + METADATA, "{subscribe}");
        // Heartbeats do not need pages.
        for _ in 0..20 {
            let mut heartbeat = DataHeader::heartbeat(0xC0, 77, 10, 5, 0);
            heartbeat.header.frame_length = 0.into();
            received
                .driver
                .network
                .deliver(source(), PORT, heartbeat.as_bytes());
            received.driver.run_for(SECOND / 2);
        }
        assert_eq!(received.reserved(), expected + METADATA, "{subscribe}");
        let window_end = received.window_end().unwrap();
        assert!(window_end < expected as i64, "{subscribe}: {window_end}");
        received.send(0);
        received.driver.run_for(SECOND);
        assert!(received.reserved() >= expected + METADATA);
        let window = received.window_end().unwrap();
        assert!(window >= window_end, "{subscribe}: {window}");
    }
}

#[test]
fn frames_with_forged_positions_reserve_no_pages() {
    let term_length = 1 << 30;
    let far = [2 * term_length, term_length / 2 - 2_048, 3 << 20, 900 << 10];
    let mut received = Received::new(LISTENING, term_length, 0);
    for position in far {
        received.send_heartbeat(position);
        received.send(position);
        received.driver.run_for(SECOND);
        assert_eq!(received.reserved(), received.created, "at {position}");
    }
    // A NAK asked for padding: it can be as long as a message, but only one of these frames answers the NAK.
    for _ in 0..100 {
        received.send_padding(0);
        received.driver.duty_cycle();
    }
    received.driver.run_for(SECOND);
    assert!(received.reserved() < 48 * MIB, "{}", received.reserved());
}

#[test]
fn padding_before_any_other_frame_reserves_no_pages() {
    let mut received = Received::new(LISTENING, 1 << 30, 0);
    for _ in 0..100 {
        received.send_padding(0);
        received.driver.run_for(SECOND / 10);
    }
    assert_eq!(received.reserved(), received.created);
}

#[test]
fn padding_of_a_whole_term_reserves_its_term_and_64_mib() {
    let mut received = Received::new(LISTENING, 1 << 30, 0);
    let window_end = received.exchange_padding(0, 1 << 30, 150);
    assert_eq!(window_end, Some((1 << 30) + 128 * 1024));
    let reserved = received.reserved();
    assert!(reserved < (1024 + 65) * MIB, "{reserved}");
}

#[test]
fn padding_of_a_whole_term_is_received_by_retransmissions() {
    let mut received = Received::new(LISTENING, TERM, 0);
    let window_end = received.exchange_padding(0, TERM, 30);
    assert_eq!(window_end, Some(TERM + 128 * 1024));
}

/// The image waits for longer than its liveness timeout.
#[test]
fn image_outlives_a_shortage_of_pages() {
    let term_length = 16 * MIB as i64;
    for (parameters, padding) in [
        ("", 3 * MIB as i64 / 2),
        ("", term_length),
        ("|reliable=false", 3 * MIB as i64 / 2),
    ] {
        let mut received = Received::new(&format!("{LISTENING}{parameters}"), term_length, 0);
        let full = received.storage.reserved();
        received.storage.set_capacity(Some(full + 1000));
        let when = format!("{parameters} {padding}");
        received.exchange_padding(0, padding, 150);
        let messages = received.driver.messages();
        assert!(unavailable(&messages).is_empty(), "{when}");
        assert_eq!(received.storage.reserved(), full, "{when}");
        received.storage.set_capacity(None);
        let window_end = received.exchange_padding(0, padding, 60);
        assert_eq!(window_end, Some(padding + 128 * 1024), "{when}");
        let messages = received.driver.messages();
        assert!(unavailable(&messages).is_empty(), "{when}");
    }
}

#[test]
fn lost_padding_beyond_the_reserved_pages_is_requested_again() {
    // An aborted claim at the start of the stream, longer than what is reserved for an image without data.
    let (term_length, padding) = (16 * MIB as i64, 3 * MIB as i64 / 2);
    let mut received = Received::new(LISTENING, term_length, 0);
    received.naks();
    let mut naks_in_second = Vec::new();
    for _ in 0..3 {
        let mut naks = 0;
        for _ in 0..10 {
            received.send_heartbeat(padding);
            received.driver.run_for(SECOND / 10);
            for position in received.naks() {
                assert_eq!(position, 0);
                received.send_padding_of(0, padding);
                naks += 1;
            }
        }
        naks_in_second.push(naks);
    }
    assert!(naks_in_second[0] > 0);
    assert_eq!(naks_in_second[2], 0, "it has arrived: {naks_in_second:?}");
    received
        .driver
        .set(received.image.position_counter_id, padding);
    received.driver.run_for(SECOND);
    assert_eq!(received.window_end(), Some(padding + 128 * 1024));
    assert!(received.reserved() < 4 * MIB, "{}", received.reserved());
}

#[test]
fn unreliable_image_fills_no_gap_beyond_the_reserved_pages() {
    let subscribe = format!("{LISTENING}|reliable=false");
    let mut received = Received::new(&subscribe, 16 * MIB as i64, 0);
    let created = received.reserved();
    for _ in 0..20 {
        received.send_heartbeat(3 * MIB as i64 / 2);
        received.driver.run_for(SECOND / 10);
    }
    assert_eq!(received.reserved(), created);
}

#[test]
fn image_with_sparse_false_reserves_the_whole_log() {
    let received = Received::new(&format!("{LISTENING}|sparse=false"), 4 << 20, 0);
    assert_eq!(received.reserved(), 12 * MIB + METADATA);
}

#[test]
fn sender_waits_while_pages_of_the_image_cannot_be_reserved() {
    for start in [0, 5 * TERM + TERM - 1_408 * 32] {
        let mut received = Received::new(LISTENING, TERM, start);
        let full = received.storage.reserved();
        received.storage.set_capacity(Some(full + 1000));
        received.driver.run_for(SECOND);
        let mut window_end = received.window_end().unwrap();
        assert_eq!(window_end, start + 128 * 1024);
        let mut position = start;
        for _ in 0..30 {
            position = received.step(&mut window_end, position);
        }
        let reserved_end = received.start - received.start % NEXT as i64 + MIB as i64 + NEXT as i64;
        assert!(window_end < reserved_end, "{window_end}");
        assert!(
            window_end > position && window_end - position < 1_408,
            "all of it is used"
        );
        // A sender that ignores the window.
        for ahead in 0..200 {
            received.send(position + ahead * 65_536 / 32 * 32);
            received.driver.duty_cycle();
        }
        received.driver.run_for(SECOND);
        assert_eq!(received.storage.reserved(), full);
        let errors = received.driver.errors();
        // An eighth of the file system is kept for publications.
        let kept = (full + 1000) / 8;
        let of_log = 3 * TERM as u64 + METADATA - received.created;
        for part in [
            &format!("needed={} available=1000 ", of_log + kept),
            &format!("{kept} bytes of it are kept for publications"),
            "aeron.low.file.store.warning.threshold",
            "receive window of stream=10 session-id=77",
            "does not advance",
        ] {
            assert!(errors[0].0.contains(part), "{part}: {errors:?}");
        }
        assert_eq!(errors.len(), 1, "one record per shortage: {errors:?}");

        received.storage.set_capacity(None);
        received.driver.run_for(2 * SECOND);
        let errors = received.driver.errors();
        assert!(errors[1].0.contains("has space again"), "{errors:?}");
        assert_eq!(errors.len(), 2, "{errors:?}");
        window_end = received.window_end().unwrap();
        let from = position;
        while position < from + TERM / 2 && position % TERM < TERM - 2 * MTU {
            let before = position;
            position = received.step(&mut window_end, position);
            assert!(position > before, "recovers: {position} {window_end}");
        }
        assert!(received.log.term_length() > 0);
    }
}
