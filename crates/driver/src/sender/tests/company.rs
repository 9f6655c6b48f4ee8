//! Several streams of one endpoint that have a message now and then: their datagrams share a call.

use super::*;

const STREAMS: i32 = 5;

/// One of several streams with a receiver each.
struct Stream {
    log: LogBuffers,
    position: Counter,
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
        term.bytes(offset, align32(length) as usize).to_vec()
    }
}

/// A sender with as many streams, all connected, beside the rig's own, which has nothing to say.
fn company() -> (Rig, Vec<Stream>) {
    let mut rig = Rig::connected(32_768);
    let streams = (0..STREAMS).map(|session_id| {
        let stream = Stream {
            log: log(LogKind::Exclusive, START),
            position: Counter::detached(),
            tail: START,
        };
        let spec = SenderPublicationSpec {
            id: PublicationId(100 + i64::from(session_id)),
            session_id,
            log: stream.log.clone(),
            sender_position: stream.position.clone(),
            sender_limit: Counter::detached(),
            back_pressure_events: Counter::detached(),
            naks_received: Counter::detached(),
            shared: Arc::new(PublicationShared::new(START)),
            ..rig.publication_spec()
        };
        rig.command(SenderCommand::AddPublication(Box::new(
            SenderPublication::new(spec),
        )));
        rig.cycle();
        let message = StatusMessage {
            session_id: session_id.into(),
            ..rig.status_message(RECEIVER, 0, START, 32_768)
        };
        rig.socket.arrive(message.as_bytes());
        rig.cycle();
        rig.cycle();
        stream
    });
    let mut streams: Vec<Stream> = streams.collect();
    // Each says something once: from then on they are known to be several.
    publish(&mut streams, &[64; STREAMS as usize]);
    rig.cycle();
    rig.socket.sent();
    (rig, streams)
}

/// Each commits a frame of its length; what has to be sent.
fn publish(streams: &mut [Stream], lengths: &[i32]) -> Vec<Vec<u8>> {
    let streams = streams.iter_mut().zip(0..).zip(lengths);
    streams
        .map(|((stream, session_id), &length)| stream.publish(session_id, length))
        .collect()
}

/// What a duty cycle sends, sorted, and with how many calls.
fn sent(rig: &mut Rig) -> (Vec<Vec<u8>>, usize) {
    let calls = rig.socket.send_calls();
    let mut sent = rig.sent();
    sent.sort();
    (sent, rig.socket.send_calls() - calls)
}

fn sorted(mut datagrams: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    datagrams.sort();
    datagrams
}

#[test]
fn one_call_takes_the_datagrams_of_all() {
    let (mut rig, mut streams) = company();
    let bytes = rig.counters.bytes_sent.get();
    for lengths in [[320; 5], [96, 320, 96, 64, 1_408]] {
        let wanted = publish(&mut streams, &lengths);
        assert_eq!(sent(&mut rig), (sorted(wanted), 1));
    }
    for stream in &streams {
        assert_eq!(stream.position.get(), stream.tail);
    }
    assert_eq!(rig.counters.bytes_sent.get() - bytes, 5 * 320 + 1_984);
    assert_eq!(rig.counters.short_sends.get(), 0);
    assert_eq!(sent(&mut rig), (vec![], 0));
}

#[test]
fn one_alone_does_not_wait_and_neither_does_a_train() {
    let (mut rig, mut streams) = company();
    let alone = streams[0].publish(0, 320);
    assert_eq!(sent(&mut rig), (vec![alone], 1));
    let wanted = publish(&mut streams, &[320; 5]);
    assert_eq!(sent(&mut rig), (sorted(wanted), 5), "one was alone before");
    let mut wanted = publish(&mut streams, &[320; 5]);
    // Together they make more than a datagram.
    wanted[2] = (0..20).flat_map(|_| streams[2].publish(2, 320)).collect();
    let first = streams[2].tail - 21 * 320;
    let offset = streams[2].log.geometry().term_offset(first) as usize;
    let term = streams[2].log.term_at(first);
    wanted.remove(2);
    let train = term.bytes(offset, 21 * 320).chunks(4 * 320);
    wanted.extend(train.map(<[u8]>::to_vec));
    let (sent, calls) = sent(&mut rig);
    assert_eq!(sent, sorted(wanted));
    assert!(
        (2..=3).contains(&calls),
        "{calls}: others before and after it"
    );
}

#[test]
fn what_finds_no_room_is_sent_later() {
    let (mut rig, mut streams) = company();
    rig.socket.room(Some(2 * 320 + 100));
    let wanted = publish(&mut streams, &[320; 5]);
    let (mut first, _) = sent(&mut rig);
    assert_eq!(first.len(), 2);
    assert_eq!(rig.counters.short_sends.get(), 1);
    let moved = streams.iter().filter(|it| it.position.get() == it.tail);
    assert_eq!(moved.count(), 2);
    rig.socket.room(None);
    let (rest, _) = sent(&mut rig);
    first.extend(rest);
    assert_eq!(sorted(first), sorted(wanted), "each of them once");
    for stream in &streams {
        assert_eq!(stream.position.get(), stream.tail);
    }
}

#[test]
fn a_broken_socket_is_told_and_nothing_moves() {
    let (mut rig, mut streams) = company();
    let before = rig.errors.count();
    rig.socket.set_broken(true);
    publish(&mut streams, &[320; 5]);
    assert_eq!(rig.cycle(), 0);
    assert!(rig.errors.count() > before);
    rig.socket.set_broken(false);
    assert_eq!(sent(&mut rig).0.len(), 5);
}
