//! Several streams of one endpoint that have a message now and then: their datagrams share a call.

use super::*;

const STREAMS: i32 = 5;

/// One of several streams with a receiver each.
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
    /// The receiver of one of them has all that was published.
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

/// A sender with as many streams, all connected, beside the fixture's own, which has nothing to say.
fn company() -> (SenderFixture, Vec<Stream>) {
    company_of(|_| {})
}

fn company_of(change: impl Fn(&mut SenderPublicationSpec)) -> (SenderFixture, Vec<Stream>) {
    let mut fixture = SenderFixture::connected(32_768);
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
    // Each says something once: from then on they are known to be several.
    publish(&mut streams, &[64; STREAMS as usize]);
    fixture.cycle();
    fixture.socket.sent();
    (fixture, streams)
}

/// Each commits a frame of its length; what has to be sent.
fn publish(streams: &mut [Stream], lengths: &[i32]) -> Vec<Vec<u8>> {
    let streams = streams.iter_mut().zip(0..).zip(lengths);
    streams
        .map(|((stream, session_id), &length)| stream.publish(session_id, length))
        .collect()
}

/// What a duty cycle sends, and with how many calls.
fn sent(fixture: &mut SenderFixture) -> (Vec<Vec<u8>>, usize) {
    let calls = fixture.socket.send_calls();
    (fixture.sent(), fixture.socket.send_calls() - calls)
}

fn session(datagram: &[u8]) -> i32 {
    i32::from_le_bytes(datagram[12..16].try_into().unwrap())
}

/// Checks that they are the same, in whatever order.
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
fn one_call_takes_the_datagrams_of_all() {
    let (mut fixture, mut streams) = company();
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
fn the_first_of_several_does_not_wait_for_others_that_may_not_come() {
    let (mut fixture, mut streams) = company();
    sent(&mut fixture);
    for calls in [2, 1] {
        let wanted = publish(&mut streams, &[320; 5]);
        let (sent, called) = sent(&mut fixture);
        expect_all(sent, wanted);
        assert_eq!(called, calls);
    }
}

#[test]
fn a_busy_stream_is_no_company_even_if_it_sends_datagram_by_datagram() {
    let (mut fixture, mut streams) = company_of(|spec| spec.max_datagrams_per_send = Some(1));
    sent(&mut fixture);
    // One that sends alone sends four of them at a time.
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
fn those_that_wait_leave_before_a_train() {
    let (mut fixture, mut streams) = company();
    let mut behind = 0;
    // Another one has its turn first each time.
    for _ in 0..6 {
        publish(&mut streams, &[64; 5]);
        sent(&mut fixture);
        let mut wanted = publish(&mut streams, &[320; 5]);
        let train: Vec<u8> = (0..2).flat_map(|_| streams[2].publish(2, 1_408)).collect();
        let lone = wanted.remove(2);
        let (sent, _) = sent(&mut fixture);
        let of_train = sent.iter().position(|it| session(it) == 2).unwrap();
        behind += usize::from(of_train > 0);
        let (trained, others): (Vec<_>, Vec<_>) = sent.into_iter().partition(|it| session(it) == 2);
        assert!(trained.concat() == [lone, train].concat());
        expect_all(others, wanted);
        fixture.status_of_stream(2, &streams[2]);
    }
    assert!(behind > 1, "who came before the train waited for it");
    expect_all_moved(&streams);
}

#[test]
fn those_that_wait_leave_before_what_is_sent_again() {
    let (mut fixture, mut streams) = company();
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
fn what_finds_no_room_is_sent_later() {
    let (mut fixture, mut streams) = company();
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
fn what_is_refused_each_time_holds_up_the_others_once_and_is_told() {
    let (mut fixture, mut streams) = company();
    let errors = fixture.errors.count();
    fixture.socket.refuse(96);
    // Two of the streams have such a datagram first, the others one more in each turn.
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
fn nothing_goes_through_a_broken_socket_and_receivers_are_forgotten_meanwhile() {
    let (mut fixture, mut streams) = company();
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
