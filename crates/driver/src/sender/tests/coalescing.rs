// SPDX-License-Identifier: Apache-2.0
//! Coalescing of single datagrams of several streams on one endpoint.

use super::*;

const STREAMS: i32 = 5;

/// A stream with a receiver.
struct Stream {
    log: LogBuffers,
    position: Counter,
    shared: Arc<PublicationShared>,
    tail: i64,
}

impl Stream {
    /// A client commits a frame.
    fn publish(&mut self, session_id: i32, length: i32) -> Vec<u8> {
        let geometry = self.log.geometry();
        let (term, offset) = (
            self.log.term_at(self.tail),
            geometry.term_offset(self.tail) as usize,
        );
        let term_id = geometry.term_id(self.tail);
        let header = DataHeader::heartbeat(0xC0, session_id, STREAM, term_id, offset as i32);
        term.write(offset, header.as_bytes());
        term.atomic_i32(offset).store(length, Ordering::Release);
        self.tail += i64::from(align32(length));
        move_tail(&self.log, self.tail);
        term.bytes(offset, align32(length) as usize).to_vec()
    }
}

impl SenderFixture {
    /// The receiver of a stream acknowledges all that was published.
    fn status_of_stream(&mut self, session_id: i32, stream: &Stream) {
        let message = StatusMessage {
            session_id: session_id.into(),
            ..self.status_message(RECEIVER, 0, stream.tail, 32_768)
        };
        self.socket.arrive(message.as_bytes());
        self.cycle();
        self.socket.sent();
    }
}

/// Returns a sender with [`STREAMS`] connected streams, besides the idle one of the fixture.
fn several_streams() -> (SenderFixture, Vec<Stream>) {
    several_streams_with(|_| {})
}

fn several_streams_with(
    change: impl Fn(&mut SenderPublicationSpec),
) -> (SenderFixture, Vec<Stream>) {
    add_streams(SenderFixture::connected(32_768), change)
}

fn add_streams(
    mut fixture: SenderFixture,
    change: impl Fn(&mut SenderPublicationSpec),
) -> (SenderFixture, Vec<Stream>) {
    let streams = (0..STREAMS).map(|session_id| {
        let stream = Stream {
            log: log(LogKind::Exclusive, START),
            position: Counter::detached(),
            shared: Arc::new(PublicationShared::new(START)),
            tail: START,
        };
        let mut spec = SenderPublicationSpec {
            id: PublicationId(100 + i64::from(session_id)),
            session_id,
            log: stream.log.clone(),
            sender_position: stream.position.clone(),
            sender_limit: Counter::detached(),
            back_pressure_events: Counter::detached(),
            naks_received: Counter::detached(),
            shared: Arc::clone(&stream.shared),
            ..fixture.publication_spec()
        };
        change(&mut spec);
        fixture.command(SenderCommand::AddPublication(Box::new(
            SenderPublication::new(spec),
        )));
        fixture.cycle();
        let message = StatusMessage {
            session_id: session_id.into(),
            ..fixture.status_message(RECEIVER, 0, START, 32_768)
        };
        fixture.socket.arrive(message.as_bytes());
        fixture.cycle();
        fixture.cycle();
        stream
    });
    let mut streams: Vec<Stream> = streams.collect();
    // Each sends a datagram once: from then on datagrams are coalesced.
    publish(&mut streams, &[64; STREAMS as usize]);
    fixture.cycle();
    fixture.socket.sent();
    (fixture, streams)
}

/// Commits a frame on each stream. Returns the expected datagrams.
fn publish(streams: &mut [Stream], lengths: &[i32]) -> Vec<Vec<u8>> {
    let streams = streams.iter_mut().zip(0..).zip(lengths);
    streams
        .map(|((stream, session_id), &length)| stream.publish(session_id, length))
        .collect()
}

/// Returns what a duty cycle sends, and the number of calls.
fn sent(fixture: &mut SenderFixture) -> (Vec<Vec<u8>>, usize) {
    let calls = fixture.socket.send_calls();
    (fixture.sent(), fixture.socket.send_calls() - calls)
}

fn session(datagram: &[u8]) -> i32 {
    i32::from_le_bytes(datagram[12..16].try_into().unwrap())
}

/// Asserts that both are equal, in any order.
#[track_caller]
fn expect_all(mut sent: Vec<Vec<u8>>, mut wanted: Vec<Vec<u8>>) {
    let sessions: Vec<i32> = sent.iter().map(|it| session(it)).collect();
    sent.sort();
    wanted.sort();
    assert!(sent == wanted, "{sessions:?}");
}

fn expect_all_moved(streams: &[Stream]) {
    for stream in streams {
        assert_eq!(stream.position.get(), stream.tail);
    }
}

#[test]
fn streams_on_a_transforming_socket_do_not_share_a_transmit() {
    expect_no_coalescing(FakeSocket::set_transforms);
}

#[test]
fn datagrams_for_a_backend_that_queues_sends_are_not_copied_before() {
    expect_no_coalescing(FakeSocket::set_queues_sends);
}

fn expect_no_coalescing(set: impl FnOnce(&FakeSocket)) {
    let socket = FakeSocket::default();
    set(&socket);
    let mut fixture = SenderFixture::with_endpoint(|spec| spec.data = Box::new(socket.clone()));
    fixture.socket = socket;
    fixture.connect(32_768);
    let (mut fixture, mut streams) = add_streams(fixture, |_| {});
    let wanted = publish(&mut streams, &[320; 5]);
    let (sent, calls) = sent(&mut fixture);
    expect_all(sent, wanted);
    assert_eq!(calls, 5);
    expect_all_moved(&streams);
}

#[test]
fn single_datagrams_of_several_streams_share_one_call() {
    let (mut fixture, mut streams) = several_streams();
    let bytes = fixture.counters.bytes_sent.get();
    for lengths in [[320; 5], [96, 320, 96, 64, 1_408]] {
        let wanted = publish(&mut streams, &lengths);
        let (sent, calls) = sent(&mut fixture);
        expect_all(sent, wanted);
        assert_eq!(calls, 1);
    }
    expect_all_moved(&streams);
    assert_eq!(fixture.counters.bytes_sent.get() - bytes, 5 * 320 + 1_984);
    assert_eq!(fixture.counters.short_sends.get(), 0);
    assert_eq!(sent(&mut fixture), (vec![], 0));
}

#[test]
fn first_single_datagram_is_sent_uncoalesced() {
    let (mut fixture, mut streams) = several_streams();
    sent(&mut fixture);
    for calls in [2, 1] {
        let wanted = publish(&mut streams, &[320; 5]);
        let (sent, called) = sent(&mut fixture);
        expect_all(sent, wanted);
        assert_eq!(called, calls);
    }
}

#[test]
fn busy_stream_with_one_datagram_per_send_is_not_coalesced() {
    let (mut fixture, mut streams) =
        several_streams_with(|spec| spec.max_datagrams_per_send = Some(1));
    sent(&mut fixture);
    // The only active publication sends four batches per cycle.
    let wanted: Vec<u8> = (0..12).flat_map(|_| streams[0].publish(0, 1_408)).collect();
    let mut all = Vec::new();
    for _ in 0..3 {
        let (sent, calls) = sent(&mut fixture);
        assert_eq!((sent.len(), calls), (4, 4));
        all.extend(sent.concat());
    }
    assert!(all == wanted);
}

#[test]
fn coalesced_datagrams_are_flushed_before_a_batch() {
    let (mut fixture, mut streams) = several_streams();
    let mut behind = 0;
    // A different stream is polled first each time.
    for _ in 0..6 {
        publish(&mut streams, &[64; 5]);
        sent(&mut fixture);
        let mut wanted = publish(&mut streams, &[320; 5]);
        let batch: Vec<u8> = (0..2).flat_map(|_| streams[2].publish(2, 1_408)).collect();
        let single = wanted.remove(2);
        let (sent, _) = sent(&mut fixture);
        let batch_index = sent.iter().position(|it| session(it) == 2).unwrap();
        behind += usize::from(batch_index > 0);
        let (batched, others): (Vec<_>, Vec<_>) = sent.into_iter().partition(|it| session(it) == 2);
        assert!(batched.concat() == [single, batch].concat());
        expect_all(others, wanted);
        fixture.status_of_stream(2, &streams[2]);
    }
    assert!(behind > 1, "streams before the batch were flushed");
    expect_all_moved(&streams);
}

#[test]
fn coalesced_datagrams_are_flushed_before_a_retransmit() {
    let (mut fixture, mut streams) = several_streams();
    let again = streams[1].log.term_at(START).bytes(192, 64).to_vec();
    fixture.socket.arrive(nak(1, STREAM, START, 64).as_bytes());
    fixture.cycle();
    let wanted = publish(&mut streams, &[320; 5]);
    let (sent, _) = sent(&mut fixture);
    let place = |datagram: &Vec<u8>| sent.iter().position(|it| it == datagram).unwrap();
    assert!(place(&wanted[1]) < place(&again));
    assert_eq!(sent.len(), 6);
}

#[test]
fn coalesced_datagrams_after_short_send_are_sent_later() {
    let (mut fixture, mut streams) = several_streams();
    fixture.socket.room(Some(2 * 320 + 100));
    let wanted = publish(&mut streams, &[320; 5]);
    let (mut all, _) = sent(&mut fixture);
    assert_eq!(all.len(), 2);
    assert_eq!(fixture.counters.short_sends.get(), 1);
    let moved = streams.iter().filter(|it| it.position.get() == it.tail);
    assert_eq!(moved.count(), 2);
    fixture.socket.room(None);
    let (rest, _) = sent(&mut fixture);
    all.extend(rest);
    expect_all(all, wanted);
    expect_all_moved(&streams);
}

#[test]
fn rejected_datagram_delays_others_once_and_is_reported() {
    let (mut fixture, mut streams) = several_streams();
    let errors = fixture.errors.count();
    fixture.socket.refuse(96);
    // Two of the streams have such a datagram first, the others send one more in each cycle.
    publish(&mut streams, &[320, 96, 320, 96, 320]);
    let mut all = Vec::new();
    for _ in 0..3 {
        all.extend(sent(&mut fixture).0);
    }
    for round in 0..8 {
        let wanted: Vec<_> = [0, 2, 4]
            .map(|session_id| streams[session_id as usize].publish(session_id, 320))
            .into();
        let (sent, calls) = sent(&mut fixture);
        assert_eq!((sent.len(), calls), (3, 3), "round {round}");
        expect_all(sent, wanted);
    }
    assert!(fixture.errors.count() > errors);
    assert_eq!(all.len(), 3);
    for refused in [1, 3] {
        assert_eq!(streams[refused].position.get(), START + 64);
    }
}

#[test]
fn broken_socket_sends_nothing_and_receivers_time_out() {
    let (mut fixture, mut streams) = several_streams();
    let before = fixture.errors.count();
    fixture.socket.set_broken(true);
    let wanted = publish(&mut streams, &[320; 5]);
    assert_eq!(fixture.cycle(), 0);
    assert!(fixture.errors.count() > before);
    assert!(streams.iter().all(|stream| stream.shared.has_receivers()));
    for _ in 0..60 {
        fixture.cycle_after(100 * MS);
    }
    assert!(!streams.iter().any(|stream| stream.shared.has_receivers()));
    fixture.socket.set_broken(false);
    let (mut sent, _) = sent(&mut fixture);
    // Besides SETUPs and heartbeats.
    sent.retain(|datagram| datagram.len() == 320);
    expect_all(sent, wanted);
}
