//! What a publication has to do in time, it does beside many calm ones while the sender has other work. Each is told alone
//! and in a crowd.

use super::*;
use crate::testing::crowd::{self, Busy, COMPANIONS, CYCLE_NS, LAP_NS, time_until};

const ANNOUNCE_NS: i64 = 100 * MS;
/// Heartbeats wait for others for so long at most.
const SHARE_NS: i64 = MS;

/// A publication that has sent forty frames of 320 bytes and nothing for long, alone or with others like it, each of which
/// has a receiver.
fn calm(companions: i32) -> SenderFixture {
    let mut fixture = SenderFixture::connected(32_768);
    for _ in 0..40 {
        fixture.publish(320);
    }
    fixture.cycle();
    for session_id in 0..companions {
        let spec = SenderPublicationSpec {
            id: PublicationId(1_000 + i64::from(session_id)),
            session_id,
            // Nothing is ever written here.
            log: log(LogKind::Exclusive, START),
            sender_position: Counter::detached(),
            sender_limit: Counter::detached(),
            naks_received: Counter::detached(),
            shared: Arc::new(PublicationShared::new(START)),
            ..fixture.publication_spec()
        };
        add(&mut fixture, spec);
    }
    for cycle in 0..4_000 {
        if cycle % 1_000 == 0 {
            listen(&mut fixture, companions);
        }
        fixture.working();
    }
    fixture.socket.sent();
    fixture
}

fn add(fixture: &mut SenderFixture, spec: SenderPublicationSpec) {
    fixture.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    fixture.cycle();
}

/// All that receive say that they are there.
fn listen(fixture: &mut SenderFixture, companions: i32) {
    for session_id in 0..companions {
        let message = StatusMessage {
            session_id: session_id.into(),
            ..fixture.status_message(RECEIVER, 0, START, 32_768)
        };
        fixture.socket.arrive(message.as_bytes());
    }
    fixture.status(fixture.position.get(), 32_768);
}

/// Something to do that is about nobody.
fn nothing() -> SenderCommand {
    SenderCommand::RemoveSpy {
        endpoint: EndpointId(99),
        publication: PUBLICATION,
        counter_id: 0,
    }
}

impl Busy for SenderFixture {
    fn working(&mut self) -> Vec<Vec<u8>> {
        self.socket.sent();
        self.command(nothing());
        self.cycle_after(CYCLE_NS);
        let mut sent = self.socket.sent();
        sent.retain(|datagram| datagram[12..16] == SESSION.to_le_bytes());
        sent
    }
}

/// Checks that in a crowd it takes no more time than alone, but for so much. Receivers are heard every few cycles.
fn takes_the_same(slack_ns: i64, story: impl Fn(&mut SenderFixture) -> i64) {
    crowd::takes_the_same(calm, slack_ns, story);
}

const DATA: u8 = 1;
const SETUP: u8 = 5;
const HEARD_NS: i64 = 10 * CYCLE_NS;

fn heartbeats(sent: &[Vec<u8>], flags: u8) -> usize {
    let fits = |it: &&Vec<u8>| it.len() == 32 && it[6] == DATA && it[..4] == [0; 4];
    let told = sent.iter().filter(fits);
    told.filter(|it| it[5] & flags == flags).count()
}

#[test]
fn what_a_receiver_misses_is_sent_again_when_it_is_heard() {
    takes_the_same(HEARD_NS, |fixture| {
        let wanted = fixture.log_bytes(START + 320, 320);
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START + 320, 320).as_bytes());
        time_until(fixture, |_, sent| sent.contains(&wanted))
    });
}

#[test]
fn a_delayed_answer_is_sent_at_its_time() {
    let late = |companions| {
        let mut fixture = calm_with_delay(companions, 20 * MS);
        let wanted = fixture.log_bytes(START + 320, 320);
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START + 320, 320).as_bytes());
        time_until(&mut fixture, |_, sent| sent.contains(&wanted))
    };
    let (alone, crowded) = (late(0), late(COMPANIONS));
    assert!(
        alone >= 20 * MS && crowded <= alone + HEARD_NS,
        "{crowded} ns, {alone} ns alone"
    );
}

/// [`calm`], where retransmissions are delayed.
fn calm_with_delay(companions: i32, delay_ns: i64) -> SenderFixture {
    let mut fixture = calm(companions);
    fixture.command(SenderCommand::RemovePublication {
        endpoint: ENDPOINT,
        publication: PUBLICATION,
    });
    fixture.cycle();
    fixture.events.try_recv();
    let mut spec = fixture.publication_spec();
    spec.retransmit.delay_ns = delay_ns;
    fixture.shared = Arc::new(PublicationShared::new(START));
    spec.shared = Arc::clone(&fixture.shared);
    add(&mut fixture, spec);
    listen(&mut fixture, 0);
    for _ in 0..4_000 {
        fixture.working();
    }
    assert_eq!(fixture.position.get(), START + 40 * 320);
    fixture
}

#[test]
fn an_answer_that_takes_long_is_gone_on_with_until_it_is_complete() {
    let cycles = |companions| {
        let mut fixture = calm(companions);
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START, 40 * 320).as_bytes());
        let mut bytes = 0;
        time_until(&mut fixture, |_, sent| {
            bytes += sent.iter().map(Vec::len).sum::<usize>();
            bytes >= 40 * 320
        })
    };
    assert!(cycles(COMPANIONS) <= cycles(0) + HEARD_NS);
}

#[test]
fn what_is_published_is_sent_within_a_lap() {
    takes_the_same(LAP_NS, |fixture| {
        fixture.publish(320);
        let wanted = fixture.log_bytes(START + 40 * 320, 320);
        time_until(fixture, |_, sent| sent.contains(&wanted))
    });
}

/// When something published is sent, if its receiver says all the time that it is there, or does not.
fn sent_after(is_told: bool) -> i64 {
    let mut fixture = calm(COMPANIONS);
    fixture.publish(320);
    let wanted = fixture.log_bytes(START + 40 * 320, 320);
    time_until(&mut fixture, |fixture, sent| {
        let session_id = if is_told { SESSION } else { SESSION + 1 };
        let message = StatusMessage {
            session_id: session_id.into(),
            ..fixture.status_message(RECEIVER, 0, START + 40 * 320, 32_768)
        };
        fixture.socket.arrive(message.as_bytes());
        sent.contains(&wanted)
    })
}

#[test]
fn a_receiver_that_is_where_it_was_gives_no_turn() {
    let without = sent_after(false);
    assert!(without > 0, "it is not its turn at once");
    assert_eq!(sent_after(true), without);
}

#[test]
fn what_waited_for_a_receiver_is_sent_when_it_is_heard() {
    takes_the_same(HEARD_NS, |fixture| {
        // The window is used up, and the publication calm for that.
        for _ in 0..130 {
            fixture.publish(320);
        }
        for _ in 0..4_000 {
            fixture.working();
        }
        let position = fixture.position.get();
        assert!(position < fixture.tail, "{}", fixture.tail - position);
        fixture.status(position, 32_768);
        time_until(fixture, |fixture, _| fixture.position.get() == fixture.tail)
    });
}

#[test]
fn what_found_no_room_is_sent_when_there_is_some() {
    takes_the_same(0, |fixture| {
        fixture.publish(320);
        fixture.socket.room(Some(0));
        // Until it was looked at, and for longer than anybody counts as busy without moving.
        for _ in 0..4_000 {
            fixture.working();
        }
        assert_eq!(fixture.position.get(), START + 40 * 320);
        fixture.socket.room(None);
        time_until(fixture, |fixture, _| fixture.position.get() == fixture.tail)
    });
}

#[test]
fn a_new_stream_is_announced_at_once() {
    takes_the_same(0, |fixture| {
        fixture.command(SenderCommand::RemovePublication {
            endpoint: ENDPOINT,
            publication: PUBLICATION,
        });
        fixture.cycle();
        let spec = fixture.publication_spec();
        fixture.command(SenderCommand::AddPublication(Box::new(
            SenderPublication::new(spec),
        )));
        time_until(fixture, |_, sent| sent.iter().any(|it| it[6] == SETUP))
    });
}

#[test]
fn a_receiver_that_asks_what_the_stream_is_is_told_when_it_is_heard() {
    takes_the_same(HEARD_NS, |fixture| {
        fixture.status_of(RECEIVER, StatusMessage::SEND_SETUP, 0, 0);
        time_until(fixture, |_, sent| sent.iter().any(|it| it[6] == SETUP))
    });
}

#[test]
fn heartbeats_come_within_a_lap_of_their_time() {
    let mut fixture = calm(COMPANIONS);
    let mut times = Vec::new();
    for cycle in 0..20_000 {
        if heartbeats(&fixture.working(), 0) > 0 {
            times.push(cycle * CYCLE_NS);
        }
    }
    assert!(times.len() >= 9, "{}", times.len());
    for pair in times.windows(2) {
        let between = pair[1] - pair[0];
        let late = LAP_NS + CYCLE_NS + SHARE_NS;
        assert!((ANNOUNCE_NS - SHARE_NS..=ANNOUNCE_NS + late).contains(&between));
    }
}

#[test]
fn heartbeats_of_a_crowd_share_calls() {
    let mut fixture = calm(COMPANIONS);
    fixture.socket.sent();
    let (calls, told) = (
        fixture.socket.send_calls(),
        fixture.counters.heartbeats_sent.get(),
    );
    let mut heard = 0;
    for _ in 0..1_000_000_000 / CYCLE_NS {
        fixture.command(nothing());
        fixture.cycle_after(CYCLE_NS);
        heard += heartbeats(&fixture.socket.sent(), 0) as i64;
    }
    let calls = (fixture.socket.send_calls() - calls) as i64;
    assert!(heard >= 9 * i64::from(COMPANIONS), "{heard}");
    assert!(calls <= 1_000_000_000 / SHARE_NS, "{calls} calls");
    // Some were collected before, and some are not sent yet.
    let told = fixture.counters.heartbeats_sent.get() - told;
    assert_eq!(told, heard);
}

#[test]
fn who_goes_on_says_what_was_collected_first() {
    let mut fixture = calm(COMPANIONS);
    let collected = (0..4_000).find(|_| {
        assert_eq!(heartbeats(&fixture.working(), 0), 0);
        let endpoint = &mut fixture.sender.endpoints[0];
        let queued = endpoint
            .publication(PUBLICATION)
            .and_then(|it| it.queued_heartbeat);
        endpoint.control_batch.contains(queued)
    });
    assert!(collected.is_some());
    fixture.publish(320);
    let endpoint = &mut fixture.sender.endpoints[0];
    let slot = endpoint.slot_of(SESSION, STREAM).unwrap();
    endpoint.schedule_once(slot);
    let sent = fixture.working();
    assert_eq!((sent.len(), heartbeats(&sent[..1], 0)), (2, 1));
}

#[test]
fn the_end_of_a_stream_is_told_with_the_next_heartbeat() {
    takes_the_same(LAP_NS, |fixture| {
        time_until(fixture, |_, sent| heartbeats(sent, 0) > 0);
        fixture.shared.conductor_end_of_stream();
        time_until(fixture, |_, sent| heartbeats(sent, DataHeader::EOS) > 0)
    });
}

#[test]
fn a_receiver_that_falls_silent_is_gone_within_a_lap_of_its_time() {
    takes_the_same(LAP_NS, |fixture| {
        fixture.status(fixture.position.get(), 32_768);
        time_until(fixture, |fixture, _| fixture.shared.has_receivers());
        time_until(fixture, |fixture, _| !fixture.shared.has_receivers())
    });
}
