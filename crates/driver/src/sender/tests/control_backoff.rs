// SPDX-License-Identifier: Apache-2.0
//! Polls of the control sockets while the sender has nothing to send.

use super::*;

/// Returns a connected sender whose last poll of the control socket found nothing.
fn idle_sender() -> SenderFixture {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(320);
    fixture.cycle();
    fixture.cycle_after(CONTROL_BACKOFF_NS);
    fixture
}

/// Returns the polls of the socket in a number of duty cycles, `nanos` apart.
fn polls(fixture: &mut SenderFixture, cycles: usize, nanos: i64) -> usize {
    let before = fixture.socket.receive_calls();
    (0..cycles).for_each(|_| {
        fixture.cycle_after(nanos);
    });
    fixture.socket.receive_calls() - before
}

#[test]
fn control_poll_after_empty_poll_backs_off() {
    let mut fixture = idle_sender();
    assert_eq!(polls(&mut fixture, 100, CONTROL_BACKOFF_NS / 10), 10);
}

#[test]
fn control_poll_after_long_cycle_is_not_delayed() {
    let mut fixture = idle_sender();
    for nanos in [CONTROL_BACKOFF_NS, CONTROL_BACKOFF_NS + 1, MS, 1_000 * MS] {
        assert_eq!(polls(&mut fixture, 10, nanos), 10, "{nanos}");
    }
}

#[test]
fn control_poll_with_stopped_clock_happens_every_cycle() {
    let mut fixture = idle_sender();
    assert_eq!(polls(&mut fixture, 10, 0), 10);
}

#[test]
fn control_frame_ends_backoff() {
    let mut fixture = idle_sender();
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    for _ in 1..10 {
        fixture.cycle_after(CONTROL_BACKOFF_NS / 10);
        assert_eq!(fixture.naks.get(), 0, "back-off");
    }
    fixture.cycle_after(CONTROL_BACKOFF_NS / 10);
    assert_eq!(fixture.naks.get(), 1);
    for later in 2..5 {
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
        fixture.cycle_after(1);
        assert_eq!(
            fixture.naks.get(),
            later,
            "no back-off after a control frame"
        );
    }
    // One more poll finds nothing.
    assert_eq!(polls(&mut fixture, 5, 1), 1);
}

/// The window is used up, to the last byte or up to a frame that does not fit.
#[test]
fn flow_controlled_sender_polls_control_every_cycle() {
    for (window, frames) in [(640, 2), (640, 3), (700, 2), (700, 3)] {
        let mut fixture = SenderFixture::connected(window);
        (0..frames).for_each(|_| fixture.publish(320));
        fixture.cycle();
        fixture.cycle_after(CONTROL_BACKOFF_NS);
        let is_flow_controlled = window == 640 || frames == 3;
        let expected = if is_flow_controlled { 20 } else { 2 };
        assert_eq!(
            polls(&mut fixture, 20, CONTROL_BACKOFF_NS / 10),
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
fn unconnected_sender_polls_control_every_cycle() {
    let mut fixture = SenderFixture::new();
    fixture.cycle();
    assert_eq!(polls(&mut fixture, 20, 1), 20);
}

#[test]
fn one_flow_controlled_publication_disables_backoff() {
    let mut fixture = idle_sender();
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
    assert_eq!(polls(&mut fixture, 20, 1), 20);
}

#[test]
fn active_sender_polls_control_every_few_cycles() {
    let mut fixture = idle_sender();
    let before = fixture.socket.receive_calls();
    for _ in 0..24 {
        fixture.publish(320);
        fixture.cycle_after(CONTROL_BACKOFF_NS);
    }
    assert_eq!(fixture.socket.receive_calls() - before, 4);
}
