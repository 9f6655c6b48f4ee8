//! What is received straight into the log lies there as if it had been copied.

use proptest::prelude::*;
use taran_protocol::log::LogKind;

use super::*;

const TERM: i32 = 1 << 20;
/// Where the image joins: terms end in the middle of trains.
const JOIN: i64 = TERM as i64 - 160_000;
const OTHER_SESSION: i32 = SESSION + 1;
/// A datagram: four frames.
const DATAGRAM: i64 = 1280;

/// A receiver with a larger image, on a socket that can receive in place, or cannot.
struct Fast {
    fixture: ReceiverFixture,
    geometry: TermGeometry,
    /// Where the sender is.
    sent: i64,
}

impl Fast {
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
        for counter in [&fixture.subscriber, &fixture.high_water, &fixture.rebuilt] {
            counter.set(JOIN);
        }
        fixture.cycle();
        Self {
            geometry: fixture.log.geometry(),
            fixture,
            sent: JOIN,
        }
    }

    fn train_of(&self, session_id: i32, position: i64, datagrams: i64) -> Vec<u8> {
        let mut train = Vec::new();
        for index in 0..datagrams {
            let at = position + index * DATAGRAM;
            let left = i64::from(TERM) - at % i64::from(TERM);
            // What does not fit before the end of the term is padding.
            let lengths: &[i32] = if left < DATAGRAM {
                &[-(left as i32)]
            } else {
                &[320; 4]
            };
            train.extend(data_in(self.geometry, session_id, STREAM, at, lengths));
            if left <= DATAGRAM {
                break;
            }
        }
        train
    }

    /// One datagram each of ten other streams.
    fn train_of_others(&self) -> Vec<u8> {
        (0..10)
            .flat_map(|number| self.train_of(OTHER_SESSION + number, self.sent, 1))
            .collect()
    }

    fn arrive(&mut self, bytes: &[u8]) {
        self.fixture.socket.arrive_train(bytes, DATAGRAM as usize);
    }

    /// The stream goes on.
    fn go_on(&mut self, datagrams: i64) {
        let train = self.train_of(SESSION, self.sent, datagrams);
        let end = self.sent + datagrams * DATAGRAM;
        let next_term = (self.sent / i64::from(TERM) + 1) * i64::from(TERM);
        self.sent = end.min(next_term);
        self.arrive(&train);
    }

    /// As many duty cycles as it takes.
    fn take_all(&mut self) {
        while !self.fixture.socket.is_drained() {
            self.fixture.cycle();
        }
    }

    /// Subscribers read all that is there, and the conductor frees it.
    fn read(&mut self) {
        let rebuilt = self.fixture.rebuilt.get();
        self.fixture.subscriber.set(rebuilt);
        self.fixture.shared.conductor_free_position(rebuilt);
        self.fixture.now_ns += MS;
        self.fixture.cycle();
    }

    /// What a subscriber finds that has read nothing of what is still there.
    fn readable(&self) -> Vec<u8> {
        let rebuilt = self.fixture.rebuilt.get();
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

    fn facts(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let counters = &self.fixture.counters;
        (
            (self.fixture.high_water.get(), self.fixture.rebuilt.get()),
            counters.bytes_received.get(),
            counters.invalid_packets.get(),
            counters.over_runs.get(),
            counters.under_runs.get(),
            counters.heartbeats_received.get(),
            self.fixture.frame_at(self.fixture.rebuilt.get()),
        )
    }
}

#[test]
fn a_fast_stream_is_received_where_it_belongs() {
    let mut fast = Fast::new(true);
    let mut plain = Fast::new(false);
    for _ in 0..80 {
        for either in [&mut fast, &mut plain] {
            either.go_on(40);
            either.fixture.cycle();
            either.read();
        }
    }
    assert_eq!(fast.fixture.rebuilt.get(), fast.sent);
    assert_eq!(fast.readable(), plain.readable());
    assert_eq!(fast.facts(), plain.facts());
    // Not the first ones, and not where a term ends.
    let in_parts = fast.fixture.socket.received_in_parts();
    assert!((60..76).contains(&in_parts), "{in_parts} of 80");
    assert_eq!(plain.fixture.socket.received_in_parts(), 0);
}

#[test]
fn a_datagram_of_another_stream_in_a_train_is_not_taken_for_its_own() {
    let mut fast = Fast::new(true);
    for _ in 0..8 {
        fast.go_on(20);
        fast.take_all();
    }
    let before = (
        fast.fixture.rebuilt.get(),
        fast.fixture.socket.received_in_parts(),
    );
    let mut train = fast.train_of(SESSION, fast.sent, 10);
    let foreign = fast.train_of(OTHER_SESSION, fast.sent + 5 * DATAGRAM, 1);
    let middle = 5 * DATAGRAM as usize;
    train[middle..middle + foreign.len()].copy_from_slice(&foreign);
    fast.arrive(&train);
    fast.fixture.cycle();
    assert_eq!(fast.fixture.rebuilt.get(), before.0 + 5 * DATAGRAM);
    assert_eq!(fast.fixture.high_water.get(), before.0 + 10 * DATAGRAM);
    assert_eq!(fast.fixture.socket.received_in_parts(), before.1 + 1);
}

#[test]
fn one_look_takes_no_more_than_a_subscriber_reads_from_the_cache() {
    let mut fast = Fast::new(true);
    for _ in 0..6 {
        fast.go_on(50);
        fast.fixture.cycle();
    }
    fast.read();
    let (before, in_parts) = (
        fast.fixture.rebuilt.get(),
        fast.fixture.socket.received_in_parts(),
    );
    for _ in 0..5 {
        fast.go_on(50);
    }
    // Whether there is a second one is only looked for if there was one the last time.
    for taken in [1, 3, 5] {
        fast.fixture.cycle();
        assert_eq!(fast.fixture.rebuilt.get() - before, taken * 50 * DATAGRAM);
    }
    assert_eq!(fast.fixture.socket.received_in_parts() - in_parts, 5);
}

#[test]
fn a_lone_train_in_each_cycle_costs_few_looks_at_what_is_not_there() {
    let mut fast = Fast::new(true);
    // Into a term that has room.
    while fast.sent < i64::from(TERM) + 80_000 {
        fast.go_on(10);
        fast.fixture.cycle();
    }
    let before = fast.fixture.socket.receive_calls();
    for _ in 0..10 {
        fast.go_on(10);
        fast.fixture.cycle();
    }
    assert_eq!(fast.fixture.socket.receive_calls() - before, 15);
}

#[test]
fn what_a_slow_subscriber_has_yet_to_read_is_not_written_over() {
    let mut fast = Fast::new(true);
    let limit = JOIN + 3 * i64::from(TERM);
    let mut sent = 0;
    while fast.sent + 80 * DATAGRAM < limit {
        fast.go_on(40);
        fast.take_all();
        sent += 1;
        // The window opens, but nothing is freed: somebody else still reads where the stream began.
        fast.fixture.subscriber.set(fast.fixture.rebuilt.get());
        fast.fixture.now_ns += MS;
        fast.fixture.cycle();
    }
    assert!(fast.fixture.socket.received_in_parts() > sent / 2);
    let unread = fast.fixture.log_bytes(JOIN, 150_000);
    let in_parts = fast.fixture.socket.received_in_parts();
    for _ in 0..8 {
        fast.go_on(40);
        fast.take_all();
    }
    assert_eq!(fast.fixture.log_bytes(JOIN, 150_000), unread);
    assert!(fast.fixture.rebuilt.get() < limit && fast.fixture.counters.over_runs.get() > 0);
    assert!(fast.fixture.socket.received_in_parts() <= in_parts + 2);
}

#[test]
fn padding_longer_than_a_train_ends_a_term_in_place() {
    let mut fast = Fast::new(true);
    for _ in 0..3 {
        fast.go_on(20);
        fast.take_all();
    }
    while i64::from(TERM) - fast.sent % i64::from(TERM) < 300_000 {
        fast.go_on(20);
        fast.take_all();
        fast.read();
    }
    let in_parts = fast.fixture.socket.received_in_parts();
    let at = fast.sent + 20 * DATAGRAM;
    let left = i64::from(TERM) - at % i64::from(TERM);
    let mut train = fast.train_of(SESSION, fast.sent, 20);
    train.extend(data_in(
        fast.geometry,
        SESSION,
        STREAM,
        at,
        &[-(left as i32)],
    ));
    fast.arrive(&train);
    fast.take_all();
    assert_eq!(fast.fixture.socket.received_in_parts(), in_parts + 1);
    assert_eq!(fast.fixture.rebuilt.get(), at + left);
    assert_eq!(fast.fixture.frame_at(at), Some(left as i32));
    assert_eq!(fast.fixture.frame_at(at + left), None);
}

#[test]
fn a_socket_at_fault_is_reported_and_no_train_expected() {
    let mut fast = Fast::new(true);
    for _ in 0..8 {
        fast.go_on(20);
        fast.take_all();
    }
    let in_parts = fast.fixture.socket.received_in_parts();
    fast.fixture.socket.set_broken(true);
    fast.fixture.cycle();
    fast.fixture.socket.set_broken(false);
    fast.go_on(20);
    fast.take_all();
    assert_eq!(fast.fixture.rebuilt.get(), fast.sent);
    assert_eq!(fast.fixture.socket.received_in_parts(), in_parts);
}

#[test]
fn an_image_that_is_gone_expects_nothing() {
    let mut fast = Fast::new(true);
    for _ in 0..8 {
        fast.go_on(20);
        fast.take_all();
    }
    let in_parts = fast.fixture.socket.received_in_parts();
    fast.fixture.command(ReceiverCommand::RemoveImage {
        endpoint: ENDPOINT,
        image: IMAGE,
    });
    let before = fast.fixture.rebuilt.get();
    fast.go_on(20);
    fast.take_all();
    assert_eq!(fast.fixture.rebuilt.get(), before);
    assert_eq!(fast.fixture.socket.received_in_parts(), in_parts);
}

#[test]
fn what_comes_one_by_one_is_received_several_at_a_time() {
    let mut fast = Fast::new(true);
    for _ in 0..8 {
        fast.go_on(40);
        fast.fixture.cycle();
    }
    let socket = fast.fixture.socket.clone();
    let before = (socket.received_in_parts(), socket.receive_calls());
    for _ in 0..40 {
        fast.go_on(1);
    }
    fast.take_all();
    assert_eq!(fast.fixture.rebuilt.get(), fast.sent);
    let in_parts = socket.received_in_parts() - before.0;
    let calls = socket.receive_calls() - before.1;
    assert!(in_parts <= 3 && calls <= 10, "{in_parts} of {calls} calls");
}

#[test]
fn trains_of_several_other_streams_come_in_between() {
    let mut fast = Fast::new(true);
    let several = fast.train_of_others();
    let mut before = 0;
    for round in 0..40 {
        fast.arrive(&several);
        fast.take_all();
        if round == 8 {
            before = fast.fixture.socket.received_in_parts();
        }
        fast.go_on(20);
        fast.take_all();
        fast.read();
    }
    assert_eq!(fast.fixture.rebuilt.get(), fast.sent);
    // Of both there is one in each round, but where a term ends.
    let in_parts = fast.fixture.socket.received_in_parts() - before;
    assert!((56..=64).contains(&in_parts), "{in_parts} of 64");
}

#[test]
fn trains_of_other_streams_that_are_more_than_its_own_are_seldom_taken_for_these() {
    let mut fast = Fast::new(true);
    let several = fast.train_of_others();
    for _ in 0..40 {
        fast.go_on(20);
        fast.take_all();
        fast.read();
        for _ in 0..2 {
            fast.arrive(&several);
            fast.take_all();
        }
    }
    assert_eq!(fast.fixture.rebuilt.get(), fast.sent);
    // Two of eight.
    let in_parts = fast.fixture.socket.received_in_parts();
    assert!((10..=20).contains(&in_parts), "{in_parts} of 80");
}

/// What may happen between trains.
#[derive(Debug, Clone)]
enum Event {
    Train(i64),
    Lone,
    /// The stream goes on behind something that was lost.
    Loss(i64),
    /// What is missing, or was there already, comes (again).
    Again {
        back: i64,
        datagrams: i64,
    },
    Stranger(i64),
    /// A train of which a byte was changed.
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
        8 => (7i64..51).prop_map(Event::Train),
        1 => Just(Event::Lone),
        1 => (1i64..9).prop_map(Event::Loss),
        2 => (1i64..300, 1i64..51).prop_map(|(back, datagrams)| Event::Again { back, datagrams }),
        1 => (1i64..51).prop_map(Event::Stranger),
        1 => (10i64..40, 0usize..12_800, 1u8..=255)
            .prop_map(|(datagrams, at, by)| Event::Damaged { datagrams, at, by }),
        1 => Just(Event::Heartbeat),
        1 => proptest::collection::vec(any::<u8>(), 0..100).prop_map(Event::Noise),
        6 => Just(Event::Cycle),
        4 => Just(Event::Read),
    ]
}

impl Fast {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Train(datagrams) => self.go_on(*datagrams),
            Event::Lone => self.go_on(1),
            Event::Loss(datagrams) => {
                self.go_on(*datagrams);
                self.fixture.socket.lose_last();
            }
            Event::Again { back, datagrams } => {
                let term = i64::from(TERM);
                let from = (self.sent - back * DATAGRAM).max(JOIN);
                // Frames of a term begin where its first one did.
                let begin = (from / term * term).max(JOIN);
                let from = begin + (from - begin) / DATAGRAM * DATAGRAM;
                let train = self.train_of(SESSION, from, *datagrams);
                self.arrive(&train);
            }
            Event::Stranger(datagrams) => {
                let train = self.train_of(OTHER_SESSION, self.sent, *datagrams);
                self.arrive(&train);
            }
            Event::Damaged { datagrams, at, by } => {
                let mut train = self.train_of(SESSION, self.sent, *datagrams);
                let at = at % train.len();
                // Headers alone: what is in a message is its sender's business.
                train[at - at % 320 + at % 32] ^= by;
                self.arrive(&train);
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
            Event::Cycle => self.take_all(),
            Event::Read => {
                self.take_all();
                self.read();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nobody_can_tell_what_was_received_in_place(
        events in proptest::collection::vec(event(), 1..120)
    ) {
        let (mut fast, mut plain) = (Fast::new(true), Fast::new(false));
        for index in 0..10 {
            for either in [&mut fast, &mut plain] {
                either.go_on(20);
                either.apply(if index % 2 == 0 { &Event::Cycle } else { &Event::Read });
            }
        }
        for event in &events {
            fast.apply(event);
            plain.apply(event);
        }
        for either in [&mut fast, &mut plain] {
            either.apply(&Event::Read);
        }
        prop_assert_eq!(fast.facts(), plain.facts());
        prop_assert!(fast.readable() == plain.readable(), "other bytes");
        prop_assert!(fast.fixture.socket.received_in_parts() > 0);
    }
}
