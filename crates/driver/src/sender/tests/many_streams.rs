// SPDX-License-Identifier: Apache-2.0
//! Timing of a publication among many idle ones while the sender has other work, compared with the same publication
//! alone.

use super::*;
use crate::testing::many_streams::{
    self, BusyAgent, CYCLE_NS, OTHER_STREAMS, SWEEP_PERIOD_NS, time_until,
};

const HEARTBEAT_NS: i64 = 100 * MS;
/// Longest delay of a queued heartbeat.
const MAX_DELAY_NS: i64 = MS;

/// Returns an idle publication that has sent forty frames of 320 bytes, among `others` idle ones with a receiver each.
fn idle_publication(others: i32) -> SenderFixture {
    let mut fixture = SenderFixture::connected(32_768);
    for _ in 0..40 {
        fixture.publish(320);
    }
    fixture.cycle();
    for session_id in 0..others {
        let spec = SenderPublicationSpec {
            id: PublicationId(1_000 + i64::from(session_id)),
            session_id,
            // Nothing is published here.
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
            send_statuses(&mut fixture, others);
        }
        fixture.busy_cycle();
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

/// All receivers send a status message.
fn send_statuses(fixture: &mut SenderFixture, others: i32) {
    for session_id in 0..others {
        let message = StatusMessage {
            session_id: session_id.into(),
            ..fixture.status_message(RECEIVER, 0, START, 32_768)
        };
        fixture.socket.arrive(message.as_bytes());
    }
    fixture.status(fixture.position.get(), 32_768);
}

/// Returns a command that concerns no stream.
fn nothing() -> SenderCommand {
    SenderCommand::RemoveSpy {
        endpoint: EndpointId(99),
        publication: PUBLICATION,
        counter_id: 0,
    }
}

impl BusyAgent for SenderFixture {
    fn busy_cycle(&mut self) -> Vec<Vec<u8>> {
        self.socket.sent();
        self.command(nothing());
        self.cycle_after(CYCLE_NS);
        let mut sent = self.socket.sent();
        sent.retain(|datagram| datagram[12..16] == SESSION.to_le_bytes());
        sent
    }
}

/// Asserts that among many idle streams a scenario takes at most a few cycles longer than alone.
fn assert_same_time(slack_ns: i64, scenario: impl Fn(&mut SenderFixture) -> i64) {
    many_streams::assert_same_time(idle_publication, slack_ns, scenario);
}

const DATA: u8 = 1;
const SETUP: u8 = 5;
const HEARD_NS: i64 = 10 * CYCLE_NS;

fn heartbeats(sent: &[Vec<u8>], flags: u8) -> usize {
    let fits = |it: &&Vec<u8>| it.len() == 32 && it[6] == DATA && it[..4] == [0; 4];
    let counted = sent.iter().filter(fits);
    counted.filter(|it| it[5] & flags == flags).count()
}

#[test]
fn nak_among_many_streams_is_answered_at_once() {
    assert_same_time(HEARD_NS, |fixture| {
        let wanted = fixture.log_bytes(START + 320, 320);
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START + 320, 320).as_bytes());
        time_until(fixture, |_, sent| sent.contains(&wanted))
    });
}

#[test]
fn delayed_retransmit_among_many_streams_is_on_time() {
    let late = |others| {
        let mut fixture = idle_publication_with_delay(others, 20 * MS);
        let wanted = fixture.log_bytes(START + 320, 320);
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START + 320, 320).as_bytes());
        time_until(&mut fixture, |_, sent| sent.contains(&wanted))
    };
    let (alone, among_many) = (late(0), late(OTHER_STREAMS));
    assert!(
        alone >= 20 * MS && among_many <= alone + HEARD_NS,
        "{among_many} ns, {alone} ns alone"
    );
}

/// As [`idle_publication`], where retransmissions are delayed.
fn idle_publication_with_delay(others: i32, delay_ns: i64) -> SenderFixture {
    let mut fixture = idle_publication(others);
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
    send_statuses(&mut fixture, 0);
    for _ in 0..4_000 {
        fixture.busy_cycle();
    }
    assert_eq!(fixture.position.get(), START + 40 * 320);
    fixture
}

#[test]
fn long_retransmit_among_many_streams_completes() {
    let cycles = |others| {
        let mut fixture = idle_publication(others);
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START, 40 * 320).as_bytes());
        let mut bytes = 0;
        time_until(&mut fixture, |_, sent| {
            bytes += sent.iter().map(Vec::len).sum::<usize>();
            bytes >= 40 * 320
        })
    };
    assert!(cycles(OTHER_STREAMS) <= cycles(0) + HEARD_NS);
}

#[test]
fn published_data_among_many_streams_is_sent_within_sweep_period() {
    assert_same_time(SWEEP_PERIOD_NS, |fixture| {
        fixture.publish(320);
        let wanted = fixture.log_bytes(START + 40 * 320, 320);
        time_until(fixture, |_, sent| sent.contains(&wanted))
    });
}

/// Returns the delay after which a published message is sent, with or without status messages of its receiver.
fn sent_after(has_status: bool) -> i64 {
    let mut fixture = idle_publication(OTHER_STREAMS);
    fixture.publish(320);
    let wanted = fixture.log_bytes(START + 40 * 320, 320);
    time_until(&mut fixture, |fixture, sent| {
        let session_id = if has_status { SESSION } else { SESSION + 1 };
        let message = StatusMessage {
            session_id: session_id.into(),
            ..fixture.status_message(RECEIVER, 0, START + 40 * 320, 32_768)
        };
        fixture.socket.arrive(message.as_bytes());
        sent.contains(&wanted)
    })
}

#[test]
fn repeated_status_message_does_not_schedule_publication() {
    let without = sent_after(false);
    assert!(without > 0, "not polled at once");
    assert_eq!(sent_after(true), without);
}

#[test]
fn status_message_that_raises_limit_sends_waiting_data() {
    assert_same_time(HEARD_NS, |fixture| {
        // The window is used up, and the publication is idle.
        for _ in 0..130 {
            fixture.publish(320);
        }
        for _ in 0..4_000 {
            fixture.busy_cycle();
        }
        let position = fixture.position.get();
        assert!(position < fixture.tail, "{}", fixture.tail - position);
        fixture.status(position, 32_768);
        time_until(fixture, |fixture, _| fixture.position.get() == fixture.tail)
    });
}

#[test]
fn data_after_short_send_is_sent_when_socket_has_room() {
    assert_same_time(0, |fixture| {
        fixture.publish(320);
        fixture.socket.room(Some(0));
        // Until it was polled, and for longer than an item stays active without work.
        for _ in 0..4_000 {
            fixture.busy_cycle();
        }
        assert_eq!(fixture.position.get(), START + 40 * 320);
        fixture.socket.room(None);
        time_until(fixture, |fixture, _| fixture.position.get() == fixture.tail)
    });
}

#[test]
fn new_stream_among_many_sends_setup_at_once() {
    assert_same_time(0, |fixture| {
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
fn setup_request_among_many_streams_is_answered_at_once() {
    assert_same_time(HEARD_NS, |fixture| {
        fixture.status_of(RECEIVER, StatusMessage::SEND_SETUP, 0, 0);
        time_until(fixture, |_, sent| sent.iter().any(|it| it[6] == SETUP))
    });
}

#[test]
fn heartbeat_among_many_streams_is_at_most_a_sweep_period_late() {
    let mut fixture = idle_publication(OTHER_STREAMS);
    let mut times = Vec::new();
    for cycle in 0..20_000 {
        if heartbeats(&fixture.busy_cycle(), 0) > 0 {
            times.push(cycle * CYCLE_NS);
        }
    }
    assert!(times.len() >= 9, "{}", times.len());
    for pair in times.windows(2) {
        let between = pair[1] - pair[0];
        let late = SWEEP_PERIOD_NS + CYCLE_NS + MAX_DELAY_NS;
        assert!((HEARTBEAT_NS - MAX_DELAY_NS..=HEARTBEAT_NS + late).contains(&between));
    }
}

#[test]
fn heartbeats_of_many_streams_share_calls() {
    let mut fixture = idle_publication(OTHER_STREAMS);
    fixture.socket.sent();
    let (calls, counted) = (
        fixture.socket.send_calls(),
        fixture.counters.heartbeats_sent.get(),
    );
    let mut arrived = 0;
    for _ in 0..1_000_000_000 / CYCLE_NS {
        fixture.command(nothing());
        fixture.cycle_after(CYCLE_NS);
        arrived += heartbeats(&fixture.socket.sent(), 0) as i64;
    }
    let calls = (fixture.socket.send_calls() - calls) as i64;
    assert!(arrived >= 9 * i64::from(OTHER_STREAMS), "{arrived}");
    assert!(calls <= 1_000_000_000 / MAX_DELAY_NS, "{calls} calls");
    // Some were collected before, and some are not sent yet.
    let counted = fixture.counters.heartbeats_sent.get() - counted;
    assert_eq!(counted, arrived);
}

#[test]
fn data_flushes_queued_heartbeat_first() {
    let mut fixture = idle_publication(OTHER_STREAMS);
    let collected = (0..4_000).find(|_| {
        assert_eq!(heartbeats(&fixture.busy_cycle(), 0), 0);
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
    let sent = fixture.busy_cycle();
    assert_eq!((sent.len(), heartbeats(&sent[..1], 0)), (2, 1));
}

#[test]
fn end_of_stream_among_many_streams_is_in_next_heartbeat() {
    assert_same_time(SWEEP_PERIOD_NS, |fixture| {
        time_until(fixture, |_, sent| heartbeats(sent, 0) > 0);
        fixture.shared.conductor_end_of_stream();
        time_until(fixture, |_, sent| heartbeats(sent, DataHeader::EOS) > 0)
    });
}

#[test]
fn silent_receiver_among_many_streams_is_removed_within_sweep_period() {
    assert_same_time(SWEEP_PERIOD_NS, |fixture| {
        fixture.status(fixture.position.get(), 32_768);
        time_until(fixture, |fixture, _| fixture.shared.has_receivers());
        time_until(fixture, |fixture, _| !fixture.shared.has_receivers())
    });
}
