//! How often a sender asks for what receivers say, while it has nothing to send.

use super::*;

/// A sender that has all it needs and was told nothing at its last look.
fn calm() -> Rig {
    let mut rig = Rig::connected(32_768);
    rig.publish(320);
    rig.cycle();
    rig.cycle_after(SILENCE_NS);
    rig
}

/// Looks at the socket in so many duty cycles, each so much after the one before.
fn looks(rig: &mut Rig, cycles: usize, nanos: i64) -> usize {
    let before = rig.socket.receive_calls();
    (0..cycles).for_each(|_| {
        rig.cycle_after(nanos);
    });
    rig.socket.receive_calls() - before
}

#[test]
fn silent_receivers_are_not_asked_in_each_turn() {
    let mut rig = calm();
    assert_eq!(looks(&mut rig, 100, SILENCE_NS / 10), 10);
}

#[test]
fn who_has_not_asked_for_long_asks_at_once() {
    let mut rig = calm();
    for nanos in [SILENCE_NS, SILENCE_NS + 1, MS, 1_000 * MS] {
        assert_eq!(looks(&mut rig, 10, nanos), 10, "{nanos}");
    }
}

#[test]
fn who_has_no_clock_that_moves_asks_in_each_turn() {
    let mut rig = calm();
    assert_eq!(looks(&mut rig, 10, 0), 10);
}

#[test]
fn what_was_said_is_heard_in_time_and_what_follows_it_at_once() {
    let mut rig = calm();
    rig.socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    for _ in 1..10 {
        rig.cycle_after(SILENCE_NS / 10);
        assert_eq!(rig.naks.get(), 0, "not worth a look");
    }
    rig.cycle_after(SILENCE_NS / 10);
    assert_eq!(rig.naks.get(), 1);
    for later in 2..5 {
        rig.socket
            .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
        rig.cycle_after(1);
        assert_eq!(rig.naks.get(), later, "whoever speaks is listened to");
    }
    // One more look finds that it is silent again.
    assert_eq!(looks(&mut rig, 5, 1), 1);
}

/// Its window is used up, to the last byte or to where the next frame does not fit.
#[test]
fn who_may_send_nothing_asks_in_each_turn() {
    for (window, frames) in [(640, 2), (640, 3), (700, 2), (700, 3)] {
        let mut rig = Rig::connected(window);
        (0..frames).for_each(|_| rig.publish(320));
        rig.cycle();
        rig.cycle_after(SILENCE_NS);
        let is_held_up = window == 640 || frames == 3;
        let expected = if is_held_up { 20 } else { 2 };
        assert_eq!(
            looks(&mut rig, 20, SILENCE_NS / 10),
            expected,
            "{frames} frames for a window of {window}"
        );
        rig.status(START + 640, 32_768);
        rig.cycle_after(1);
        assert_eq!(rig.limit.get() == START + 640 + 32_768, is_held_up);
        rig.cycle_after(SILENCE_NS);
        rig.cycle_after(1);
        assert_eq!(rig.position.get(), rig.tail);
    }
}

#[test]
fn who_has_no_receiver_yet_asks_in_each_turn() {
    let mut rig = Rig::new();
    rig.cycle();
    assert_eq!(looks(&mut rig, 20, 1), 20);
}

/// One that waits does not wait for the others, who do not.
#[test]
fn one_that_is_held_up_is_enough() {
    let mut rig = calm();
    let spec = SenderPublicationSpec {
        id: PublicationId(3),
        session_id: SESSION + 1,
        sender_position: Counter::detached(),
        sender_limit: Counter::detached(),
        shared: Arc::new(PublicationShared::new(START)),
        log: log(LogKind::Exclusive, START),
        ..rig.publication_spec()
    };
    rig.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    rig.cycle_after(1);
    assert_eq!(looks(&mut rig, 20, 1), 20);
}

/// While data flows, silent receivers are asked as often as ever.
#[test]
fn who_sends_asks_every_few_turns() {
    let mut rig = calm();
    let before = rig.socket.receive_calls();
    for _ in 0..24 {
        rig.publish(320);
        rig.cycle_after(SILENCE_NS);
    }
    assert_eq!(rig.socket.receive_calls() - before, 4);
}
