//! How often a sender asks for what receivers say, while it has nothing to send.

use super::*;

/// A sender that has all it needs and was told nothing at its last look.
fn calm() -> SenderFixture {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(320);
    fixture.cycle();
    fixture.cycle_after(CONTROL_BACKOFF_NS);
    fixture
}

/// Looks at the socket in so many duty cycles, each so much after the one before.
fn looks(fixture: &mut SenderFixture, cycles: usize, nanos: i64) -> usize {
    let before = fixture.socket.receive_calls();
    (0..cycles).for_each(|_| {
        fixture.cycle_after(nanos);
    });
    fixture.socket.receive_calls() - before
}

#[test]
fn silent_receivers_are_not_asked_in_each_turn() {
    let mut fixture = calm();
    assert_eq!(looks(&mut fixture, 100, CONTROL_BACKOFF_NS / 10), 10);
}

#[test]
fn who_has_not_asked_for_long_asks_at_once() {
    let mut fixture = calm();
    for nanos in [CONTROL_BACKOFF_NS, CONTROL_BACKOFF_NS + 1, MS, 1_000 * MS] {
        assert_eq!(looks(&mut fixture, 10, nanos), 10, "{nanos}");
    }
}

#[test]
fn who_has_no_clock_that_moves_asks_in_each_turn() {
    let mut fixture = calm();
    assert_eq!(looks(&mut fixture, 10, 0), 10);
}

#[test]
fn what_was_said_is_heard_in_time_and_what_follows_it_at_once() {
    let mut fixture = calm();
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    for _ in 1..10 {
        fixture.cycle_after(CONTROL_BACKOFF_NS / 10);
        assert_eq!(fixture.naks.get(), 0, "not worth a look");
    }
    fixture.cycle_after(CONTROL_BACKOFF_NS / 10);
    assert_eq!(fixture.naks.get(), 1);
    for later in 2..5 {
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
        fixture.cycle_after(1);
        assert_eq!(fixture.naks.get(), later, "whoever speaks is listened to");
    }
    // One more look finds that it is silent again.
    assert_eq!(looks(&mut fixture, 5, 1), 1);
}

/// Its window is used up, to the last byte or to where the next frame does not fit.
#[test]
fn who_may_send_nothing_asks_in_each_turn() {
    for (window, frames) in [(640, 2), (640, 3), (700, 2), (700, 3)] {
        let mut fixture = SenderFixture::connected(window);
        (0..frames).for_each(|_| fixture.publish(320));
        fixture.cycle();
        fixture.cycle_after(CONTROL_BACKOFF_NS);
        let is_flow_controlled = window == 640 || frames == 3;
        let expected = if is_flow_controlled { 20 } else { 2 };
        assert_eq!(
            looks(&mut fixture, 20, CONTROL_BACKOFF_NS / 10),
            expected,
            "{frames} frames for a window of {window}"
        );
        fixture.status(START + 640, 32_768);
        fixture.cycle_after(1);
        assert_eq!(
            fixture.limit.get() == START + 640 + 32_768,
            is_flow_controlled
        );
        fixture.cycle_after(CONTROL_BACKOFF_NS);
        fixture.cycle_after(1);
        assert_eq!(fixture.position.get(), fixture.tail);
    }
}

#[test]
fn who_has_no_receiver_yet_asks_in_each_turn() {
    let mut fixture = SenderFixture::new();
    fixture.cycle();
    assert_eq!(looks(&mut fixture, 20, 1), 20);
}

/// One that waits does not wait for the others, who do not.
#[test]
fn one_that_is_held_up_is_enough() {
    let mut fixture = calm();
    let spec = SenderPublicationSpec {
        id: PublicationId(3),
        session_id: SESSION + 1,
        sender_position: Counter::detached(),
        sender_limit: Counter::detached(),
        shared: Arc::new(PublicationShared::new(START)),
        log: log(LogKind::Exclusive, START),
        ..fixture.publication_spec()
    };
    fixture.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    fixture.cycle_after(1);
    assert_eq!(looks(&mut fixture, 20, 1), 20);
}

/// While data flows, silent receivers are asked as often as ever.
#[test]
fn who_sends_asks_every_few_turns() {
    let mut fixture = calm();
    let before = fixture.socket.receive_calls();
    for _ in 0..24 {
        fixture.publish(320);
        fixture.cycle_after(CONTROL_BACKOFF_NS);
    }
    assert_eq!(fixture.socket.receive_calls() - before, 4);
}
