// SPDX-License-Identifier: Apache-2.0
//! Direct receive yields the same log contents as receiving into a batch.

use proptest::prelude::*;
use taran_protocol::log::LogKind;

use super::*;

const TERM: i32 = 1 << 20;
/// Join position; terms end in the middle of segment runs.
const JOIN: i64 = TERM as i64 - 160_000;
const OTHER_SESSION: i32 = SESSION + 1;
/// Length of a datagram of four frames.
const DATAGRAM: i64 = 1280;

/// Receiver with a large image, on a socket that supports direct receive or does not.
struct StreamFixture {
    fixture: ReceiverFixture,
    geometry: TermGeometry,
    /// Sender position.
    sent: i64,
}

impl StreamFixture {
    fn new(receives_parts: bool) -> Self {
        let socket = FakeSocket::default();
        if receives_parts {
            socket.set_receives_parts();
        }
        let own = socket.clone();
        let mut fixture =
            ReceiverFixture::with(move |spec| spec.transports[0].transport = Box::new(own));
        fixture.socket = socket;
        fixture.log = log_of(LogKind::Image, TERM, 0);
        fixture.shared = Arc::new(ImageShared::new(JOIN, TERM / 2));
        let log = fixture.log.clone();
        fixture.connect(|spec| {
            spec.log = log;
            spec.join_position = JOIN;
            spec.congestion_control = Box::new(StaticWindow::new(TERM / 2));
        });
        for counter in [
            &fixture.subscriber,
            &fixture.high_water_mark,
            &fixture.rebuild_position,
        ] {
            counter.set(JOIN);
        }
        fixture.cycle();
        Self {
            geometry: fixture.log.geometry(),
            fixture,
            sent: JOIN,
        }
    }

    fn run_of(&self, session_id: i32, position: i64, datagrams: i64) -> Vec<u8> {
        let mut run = Vec::new();
        for index in 0..datagrams {
            let at = position + index * DATAGRAM;
            let left = i64::from(TERM) - at % i64::from(TERM);
            // What does not fit before the end of the term becomes padding.
            let lengths: &[i32] = if left < DATAGRAM {
                &[-(left as i32)]
            } else {
                &[320; 4]
            };
            run.extend(data_in(self.geometry, session_id, STREAM, at, lengths));
            if left <= DATAGRAM {
                break;
            }
        }
        run
    }

    /// Returns one datagram of each of ten other streams.
    fn datagrams_of_others(&self) -> Vec<u8> {
        (0..10)
            .flat_map(|number| self.run_of(OTHER_SESSION + number, self.sent, 1))
            .collect()
    }

    fn arrive(&mut self, bytes: &[u8]) {
        self.fixture.socket.arrive_batch(bytes, DATAGRAM as usize);
    }

    /// Sends the next datagrams of the stream.
    fn send_run(&mut self, datagrams: i64) {
        let run = self.run_of(SESSION, self.sent, datagrams);
        let end = self.sent + datagrams * DATAGRAM;
        let next_term = (self.sent / i64::from(TERM) + 1) * i64::from(TERM);
        self.sent = end.min(next_term);
        self.arrive(&run);
    }

    /// Runs duty cycles until the socket is empty.
    fn drain(&mut self) {
        while !self.fixture.socket.is_drained() {
            self.fixture.cycle();
        }
    }

    /// Lets the subscriber consume everything, and the conductor free it.
    fn consume(&mut self) {
        let rebuilt = self.fixture.rebuild_position.get();
        self.fixture.subscriber.set(rebuilt);
        self.fixture.shared.conductor_free_position(rebuilt);
        self.fixture.now_ns += MS;
        self.fixture.cycle();
    }

    /// Returns the bytes that a subscriber can read in the last two terms.
    fn readable(&self) -> Vec<u8> {
        let rebuilt = self.fixture.rebuild_position.get();
        let mut at = JOIN.max(rebuilt - 2 * i64::from(TERM));
        let mut bytes = Vec::new();
        while at < rebuilt {
            let in_term = i64::from(TERM) - at % i64::from(TERM);
            let length = in_term.min(rebuilt - at);
            bytes.extend(self.fixture.log_bytes(at, length as usize));
            at += length;
        }
        bytes
    }

    fn observed(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let counters = &self.fixture.counters;
        (
            (
                self.fixture.high_water_mark.get(),
                self.fixture.rebuild_position.get(),
            ),
            counters.bytes_received.get(),
            counters.invalid_packets.get(),
            counters.over_runs.get(),
            counters.under_runs.get(),
            counters.heartbeats_received.get(),
            self.fixture.frame_at(self.fixture.rebuild_position.get()),
        )
    }
}

#[test]
fn fast_stream_is_received_directly() {
    let mut fast = StreamFixture::new(true);
    let mut plain = StreamFixture::new(false);
    for _ in 0..80 {
        for fixture in [&mut fast, &mut plain] {
            fixture.send_run(40);
            fixture.fixture.cycle();
            fixture.consume();
        }
    }
    assert_eq!(fast.fixture.rebuild_position.get(), fast.sent);
    assert_eq!(fast.readable(), plain.readable());
    assert_eq!(fast.observed(), plain.observed());
    // All but the first runs and those at a term end.
    let in_parts = fast.fixture.socket.received_in_parts();
    assert!((60..76).contains(&in_parts), "{in_parts} of 80");
    assert_eq!(plain.fixture.socket.received_in_parts(), 0);
}

#[test]
fn foreign_datagram_in_predicted_run_is_not_inserted() {
    let mut fast = StreamFixture::new(true);
    for _ in 0..8 {
        fast.send_run(20);
        fast.drain();
    }
    let before = (
        fast.fixture.rebuild_position.get(),
        fast.fixture.socket.received_in_parts(),
    );
    let mut run = fast.run_of(SESSION, fast.sent, 10);
    let foreign = fast.run_of(OTHER_SESSION, fast.sent + 5 * DATAGRAM, 1);
    let middle = 5 * DATAGRAM as usize;
    run[middle..middle + foreign.len()].copy_from_slice(&foreign);
    fast.arrive(&run);
    fast.fixture.cycle();
    assert_eq!(fast.fixture.rebuild_position.get(), before.0 + 5 * DATAGRAM);
    assert_eq!(fast.fixture.high_water_mark.get(), before.0 + 10 * DATAGRAM);
    assert_eq!(fast.fixture.socket.received_in_parts(), before.1 + 1);
}

#[test]
fn poll_direct_receive_is_limited_in_bytes() {
    let mut fast = StreamFixture::new(true);
    for _ in 0..6 {
        fast.send_run(50);
        fast.fixture.cycle();
    }
    fast.consume();
    let (before, in_parts) = (
        fast.fixture.rebuild_position.get(),
        fast.fixture.socket.received_in_parts(),
    );
    for _ in 0..5 {
        fast.send_run(50);
    }
    // A second receive call is made only if the last poll received more than one run.
    for received in [1, 3, 5] {
        fast.fixture.cycle();
        assert_eq!(
            fast.fixture.rebuild_position.get() - before,
            received * 50 * DATAGRAM
        );
    }
    assert_eq!(fast.fixture.socket.received_in_parts() - in_parts, 5);
}

#[test]
fn single_run_per_cycle_causes_few_empty_receive_calls() {
    let mut fast = StreamFixture::new(true);
    // Advance to a term with enough room.
    while fast.sent < i64::from(TERM) + 80_000 {
        fast.send_run(10);
        fast.fixture.cycle();
    }
    let before = fast.fixture.socket.receive_calls();
    for _ in 0..10 {
        fast.send_run(10);
        fast.fixture.cycle();
    }
    assert_eq!(fast.fixture.socket.receive_calls() - before, 15);
}

#[test]
fn direct_receive_does_not_overwrite_unread_data() {
    let mut fast = StreamFixture::new(true);
    let limit = JOIN + 3 * i64::from(TERM);
    let mut sent = 0;
    while fast.sent + 80 * DATAGRAM < limit {
        fast.send_run(40);
        fast.drain();
        sent += 1;
        // The window opens, but nothing is freed, as if another subscriber still read where the stream began.
        fast.fixture
            .subscriber
            .set(fast.fixture.rebuild_position.get());
        fast.fixture.now_ns += MS;
        fast.fixture.cycle();
    }
    assert!(fast.fixture.socket.received_in_parts() > sent / 2);
    let unread = fast.fixture.log_bytes(JOIN, 150_000);
    let in_parts = fast.fixture.socket.received_in_parts();
    for _ in 0..8 {
        fast.send_run(40);
        fast.drain();
    }
    assert_eq!(fast.fixture.log_bytes(JOIN, 150_000), unread);
    assert!(
        fast.fixture.rebuild_position.get() < limit && fast.fixture.counters.over_runs.get() > 0
    );
    assert!(fast.fixture.socket.received_in_parts() <= in_parts + 2);
}

#[test]
fn long_padding_at_term_end_is_received_directly() {
    let mut fast = StreamFixture::new(true);
    for _ in 0..3 {
        fast.send_run(20);
        fast.drain();
    }
    while i64::from(TERM) - fast.sent % i64::from(TERM) < 300_000 {
        fast.send_run(20);
        fast.drain();
        fast.consume();
    }
    let in_parts = fast.fixture.socket.received_in_parts();
    let at = fast.sent + 20 * DATAGRAM;
    let left = i64::from(TERM) - at % i64::from(TERM);
    let mut run = fast.run_of(SESSION, fast.sent, 20);
    run.extend(data_in(
        fast.geometry,
        SESSION,
        STREAM,
        at,
        &[-(left as i32)],
    ));
    fast.arrive(&run);
    fast.drain();
    assert_eq!(fast.fixture.socket.received_in_parts(), in_parts + 1);
    assert_eq!(fast.fixture.rebuild_position.get(), at + left);
    assert_eq!(fast.fixture.frame_at(at), Some(left as i32));
    assert_eq!(fast.fixture.frame_at(at + left), None);
}

#[test]
fn receive_error_resets_prediction() {
    let mut fast = StreamFixture::new(true);
    for _ in 0..8 {
        fast.send_run(20);
        fast.drain();
    }
    let in_parts = fast.fixture.socket.received_in_parts();
    fast.fixture.socket.set_broken(true);
    fast.fixture.cycle();
    fast.fixture.socket.set_broken(false);
    fast.send_run(20);
    fast.drain();
    assert_eq!(fast.fixture.rebuild_position.get(), fast.sent);
    assert_eq!(fast.fixture.socket.received_in_parts(), in_parts);
}

#[test]
fn removed_image_is_not_predicted() {
    let mut fast = StreamFixture::new(true);
    for _ in 0..8 {
        fast.send_run(20);
        fast.drain();
    }
    let in_parts = fast.fixture.socket.received_in_parts();
    fast.fixture.command(ReceiverCommand::RemoveImage {
        endpoint: ENDPOINT,
        image: IMAGE,
    });
    let before = fast.fixture.rebuild_position.get();
    fast.send_run(20);
    fast.drain();
    assert_eq!(fast.fixture.rebuild_position.get(), before);
    assert_eq!(fast.fixture.socket.received_in_parts(), in_parts);
}

#[test]
fn short_datagrams_are_received_in_batches() {
    let mut fast = StreamFixture::new(true);
    for _ in 0..8 {
        fast.send_run(40);
        fast.fixture.cycle();
    }
    let socket = fast.fixture.socket.clone();
    let before = (socket.received_in_parts(), socket.receive_calls());
    for _ in 0..40 {
        fast.send_run(1);
    }
    fast.drain();
    assert_eq!(fast.fixture.rebuild_position.get(), fast.sent);
    let in_parts = socket.received_in_parts() - before.0;
    let calls = socket.receive_calls() - before.1;
    assert!(in_parts <= 3 && calls <= 10, "{in_parts} of {calls} calls");
}

#[test]
fn fewer_runs_of_other_streams_keep_prediction() {
    let mut fast = StreamFixture::new(true);
    let several = fast.datagrams_of_others();
    let mut before = 0;
    for round in 0..40 {
        fast.arrive(&several);
        fast.drain();
        if round == 8 {
            before = fast.fixture.socket.received_in_parts();
        }
        fast.send_run(20);
        fast.drain();
        fast.consume();
    }
    assert_eq!(fast.fixture.rebuild_position.get(), fast.sent);
    // Both streams have one run in each round; those at a term end are not received directly.
    let in_parts = fast.fixture.socket.received_in_parts() - before;
    assert!((56..=64).contains(&in_parts), "{in_parts} of 64");
}

#[test]
fn more_runs_of_other_streams_suppress_prediction() {
    let mut fast = StreamFixture::new(true);
    let several = fast.datagrams_of_others();
    for _ in 0..40 {
        fast.send_run(20);
        fast.drain();
        fast.consume();
        for _ in 0..2 {
            fast.arrive(&several);
            fast.drain();
        }
    }
    assert_eq!(fast.fixture.rebuild_position.get(), fast.sent);
    // Two of eight.
    let in_parts = fast.fixture.socket.received_in_parts();
    assert!((10..=20).contains(&in_parts), "{in_parts} of 80");
}

/// Input of the property test.
#[derive(Debug, Clone)]
enum Event {
    Run(i64),
    Single,
    /// Datagrams that are lost, so that a gap follows.
    Loss(i64),
    /// Retransmission or duplicate.
    Repeat {
        back: i64,
        datagrams: i64,
    },
    OtherStream(i64),
    /// A segment run with one changed byte.
    Damaged {
        datagrams: i64,
        at: usize,
        by: u8,
    },
    Heartbeat,
    /// Anything else: too short, empty, or not of this protocol.
    Noise(Vec<u8>),
    Cycle,
    Read,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (7i64..51).prop_map(Event::Run),
        1 => Just(Event::Single),
        1 => (1i64..9).prop_map(Event::Loss),
        2 => (1i64..300, 1i64..51).prop_map(|(back, datagrams)| Event::Repeat { back, datagrams }),
        1 => (1i64..51).prop_map(Event::OtherStream),
        1 => (10i64..40, 0usize..12_800, 1u8..=255)
            .prop_map(|(datagrams, at, by)| Event::Damaged { datagrams, at, by }),
        1 => Just(Event::Heartbeat),
        1 => proptest::collection::vec(any::<u8>(), 0..100).prop_map(Event::Noise),
        6 => Just(Event::Cycle),
        4 => Just(Event::Read),
    ]
}

impl StreamFixture {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Run(datagrams) => self.send_run(*datagrams),
            Event::Single => self.send_run(1),
            Event::Loss(datagrams) => {
                self.send_run(*datagrams);
                self.fixture.socket.lose_last();
            }
            Event::Repeat { back, datagrams } => {
                let term = i64::from(TERM);
                let from = (self.sent - back * DATAGRAM).max(JOIN);
                // Frame boundaries of a term start at its first frame.
                let begin = (from / term * term).max(JOIN);
                let from = begin + (from - begin) / DATAGRAM * DATAGRAM;
                let run = self.run_of(SESSION, from, *datagrams);
                self.arrive(&run);
            }
            Event::OtherStream(datagrams) => {
                let run = self.run_of(OTHER_SESSION, self.sent, *datagrams);
                self.arrive(&run);
            }
            Event::Damaged { datagrams, at, by } => {
                let mut run = self.run_of(SESSION, self.sent, *datagrams);
                let at = at % run.len();
                // Change headers only: payload is not validated.
                run[at - at % 320 + at % 32] ^= by;
                self.arrive(&run);
            }
            Event::Heartbeat => {
                let heartbeat = DataHeader::heartbeat(
                    0xC0,
                    SESSION,
                    STREAM,
                    self.geometry.term_id(self.sent),
                    self.geometry.term_offset(self.sent),
                );
                self.arrive(heartbeat.as_bytes());
            }
            Event::Noise(bytes) => self.arrive(bytes),
            Event::Cycle => self.drain(),
            Event::Read => {
                self.drain();
                self.consume();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn direct_receive_is_indistinguishable_from_batch_receive(
        events in proptest::collection::vec(event(), 1..120)
    ) {
        let (mut fast, mut plain) = (StreamFixture::new(true), StreamFixture::new(false));
        for index in 0..10 {
            for fixture in [&mut fast, &mut plain] {
                fixture.send_run(20);
                fixture.apply(if index % 2 == 0 { &Event::Cycle } else { &Event::Read });
            }
        }
        for event in &events {
            fast.apply(event);
            plain.apply(event);
        }
        for fixture in [&mut fast, &mut plain] {
            fixture.apply(&Event::Read);
        }
        prop_assert_eq!(fast.observed(), plain.observed());
        prop_assert!(fast.readable() == plain.readable(), "contents differ");
        prop_assert!(fast.fixture.socket.received_in_parts() > 0);
    }
}
