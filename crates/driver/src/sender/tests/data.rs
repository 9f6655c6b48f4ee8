// SPDX-License-Identifier: Apache-2.0
//! Data path of the sender: from the term buffer to the socket, within the flow-control window.

use super::*;

#[test]
fn frame_is_sent_as_in_log() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(37);
    let sent = fixture.sent();
    assert_eq!(sent, [fixture.log_bytes(START, 64)]);
    assert_eq!(
        sent[0][..24],
        hex("25 00 00 00 00 c0 01 00 c0 00 00 00 4d 3c 2b 1a e9 03 00 00 65 00 00 00")
    );
    assert_eq!(fixture.position.get(), START + 64);
}

#[test]
fn single_frame_is_sent_with_one_call() {
    let mut fixture = SenderFixture::connected(32_768);
    let (sends, receives) = (fixture.socket.send_calls(), fixture.socket.receive_calls());
    fixture.publish(320);
    fixture.cycle();
    assert_eq!(
        (
            fixture.socket.send_calls() - sends,
            fixture.socket.receive_calls() - receives
        ),
        (1, 0)
    );
}

#[test]
fn padding_is_sent_as_header() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(37);
    fixture.publish(-64);
    fixture.publish(37);
    let sent = fixture.sent();
    assert_eq!(
        sent,
        [
            fixture.log_bytes(START, 96),
            fixture.log_bytes(START + 128, 64)
        ]
    );
    assert_eq!(fixture.position.get(), START + 192);
    assert_eq!(fixture.counters.bytes_sent.get(), 32 + 160);
}

#[test]
fn stream_continues_in_next_term() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(-(65_536 - 192));
    fixture.publish(64);
    assert_eq!(fixture.sent().len(), 1);
    assert_eq!(fixture.position.get(), 2 * 65_536);
    fixture.status(2 * 65_536, 32_768);
    fixture.cycle();
    assert_eq!(fixture.sent(), [fixture.log_bytes(2 * 65_536, 64)]);
}

#[test]
fn burst_is_sent_with_one_call() {
    let mut fixture = SenderFixture::connected(32_768);
    for _ in 0..100 {
        fixture.publish(320);
    }
    let calls = fixture.socket.send_calls();
    let sent = fixture.sent();
    assert_eq!(fixture.socket.send_calls() - calls, 1);
    assert!(sent.iter().take(25).all(|datagram| datagram.len() == 1280));
    assert_eq!(sent.concat(), fixture.log_bytes(START, 32_000));
}

#[test]
fn unequal_datagrams_are_sent_with_one_call() {
    let mut fixture = SenderFixture::connected(32_768);
    for length in [1000, 1400, 1400, 96, 1400] {
        fixture.publish(length);
    }
    let calls = fixture.socket.send_calls();
    let lengths: Vec<usize> = fixture.sent().iter().map(Vec::len).collect();
    assert_eq!(
        (fixture.socket.send_calls() - calls, lengths),
        (1, vec![1024, 1408, 1408, 96, 1408])
    );
}

#[test]
fn window_is_not_exceeded_and_stall_counts_once() {
    let mut fixture = SenderFixture::connected(640);
    for _ in 0..5 {
        fixture.publish(320);
    }
    assert_eq!(fixture.sent().concat().len(), 640);
    for _ in 0..3 {
        assert_eq!(fixture.sent(), [[0; 0]; 0]);
    }
    assert_eq!(
        (
            fixture.back_pressure.get(),
            fixture.counters.flow_control_limits.get()
        ),
        (1, 1)
    );
    fixture.status(START + 640, 500);
    fixture.cycle();
    assert_eq!(fixture.limit.get(), START + 1140);
    assert_eq!(fixture.sent().concat().len(), 320);
    fixture.cycle();
    assert_eq!(
        fixture.back_pressure.get(),
        2,
        "180 bytes of window are too few for the next frame"
    );
}

#[test]
fn data_after_short_send_is_sent_later() {
    let mut fixture = SenderFixture::connected(32_768);
    for _ in 0..8 {
        fixture.publish(320);
    }
    fixture.socket.room(Some(1300));
    let polled = fixture.socket.receive_calls();
    let first = fixture.sent();
    assert_eq!(fixture.socket.receive_calls(), polled + 1);
    assert_eq!(fixture.position.get(), START + 1280);
    assert_eq!(fixture.counters.short_sends.get(), 1);
    fixture.socket.room(None);
    let second = fixture.sent();
    assert_eq!(fixture.socket.receive_calls(), polled + 1);
    assert_eq!(
        [first.concat(), second.concat()].concat(),
        fixture.log_bytes(START, 2560)
    );
}

#[test]
fn broken_network_is_reported_once_per_second() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(320);
    fixture.socket.set_broken(true);
    for _ in 0..100 {
        fixture.cycle_after(MS);
    }
    assert_eq!(fixture.errors.count(), 1);
    fixture.cycle_after(1000 * MS);
    assert_eq!(fixture.errors.count(), 2);
    assert_eq!(fixture.position.get(), START);
    fixture.socket.set_broken(false);
    fixture.cycle();
    assert_eq!(fixture.position.get(), START + 320);
}

#[test]
fn max_datagrams_per_send_limits_each_batch() {
    let mut fixture = SenderFixture::with(|spec| spec.max_datagrams_per_send = Some(2));
    fixture.connect(32_768);
    for _ in 0..40 {
        fixture.publish(320);
    }
    for (sends, datagrams) in [(4, 8), (1, 2)] {
        let before = fixture.socket.send_calls();
        assert_eq!(fixture.sent().len(), datagrams);
        assert_eq!(fixture.socket.send_calls() - before, sends);
    }
}

#[test]
fn corrupt_frame_stops_stream_and_is_reported() {
    let mut fixture = SenderFixture::connected(32_768);
    let offset = fixture.log.geometry().term_offset(START) as usize;
    fixture
        .log
        .term_at(START)
        .atomic_i32(offset)
        .store(i32::MAX, Ordering::Release);
    for _ in 0..10 {
        assert_eq!(fixture.sent(), [[0; 0]; 0]);
    }
    assert_eq!((fixture.position.get(), fixture.errors.count()), (START, 1));
}

#[test]
fn control_is_polled_every_few_cycles_while_data_is_sent() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.cycle();
    let receives = fixture.socket.receive_calls();
    for _ in 0..12 {
        fixture.publish(64);
        fixture.cycle();
    }
    assert_eq!(fixture.socket.receive_calls() - receives, 2);
    fixture.publish(64);
    fixture.cycle_after(101 * MS);
    assert_eq!(fixture.socket.receive_calls() - receives, 3);
}

#[test]
fn publications_rotate_in_first_place() {
    let mut fixture = SenderFixture::connected(32_768);
    let mut spec = fixture.publication_spec();
    spec.id = PublicationId(3);
    spec.session_id = 8;
    spec.sender_position = Counter::detached();
    fixture.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    let orders: Vec<usize> = (0..4)
        .map(|_| {
            fixture.now_ns += 101 * MS;
            // The second publication says SETUP, the first one heartbeat.
            fixture
                .sent()
                .iter()
                .position(|frame| frame[6] == 5)
                .unwrap()
        })
        .collect();
    assert_eq!(orders[1..], [orders[1], 1 - orders[1], orders[1]]);
}

/// Adds a publication of another session over the same log.
fn add(
    fixture: &mut SenderFixture,
    session_id: i32,
    change: impl FnOnce(&mut SenderPublicationSpec),
) {
    let mut spec = fixture.publication_spec();
    spec.id = PublicationId(i64::from(session_id));
    spec.session_id = session_id;
    spec.sender_position = Counter::detached();
    spec.sender_limit = Counter::detached();
    change(&mut spec);
    fixture.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    fixture.cycle();
}

#[test]
fn one_of_several_active_streams_sends_one_batch_per_cycle() {
    let limit = |spec: &mut SenderPublicationSpec| spec.max_datagrams_per_send = Some(2);
    let mut fixture = SenderFixture::with(limit);
    fixture.connect(32_768);
    add(&mut fixture, 8, limit);
    let message = StatusMessage {
        session_id: 8.into(),
        ..fixture.status_message(RECEIVER, 0, START, 32_768)
    };
    fixture.socket.arrive(message.as_bytes());
    fixture.cycle();
    for _ in 0..80 {
        fixture.publish(320);
    }
    // No publication was active in the last cycle: the first one may send extra batches.
    assert_eq!(fixture.sent().len(), 8 + 2);
    for _ in 0..3 {
        assert_eq!(fixture.sent().len(), 2 + 2);
    }
}

#[test]
fn delayed_retransmit_is_polled_when_due() {
    let mut fixture = SenderFixture::with(|spec| spec.retransmit.delay_ns = MS);
    fixture.connect(32_768);
    fixture.publish(320);
    fixture.cycle();
    for session_id in 1_000..1_500 {
        add(&mut fixture, session_id, |_| {});
    }
    // Idle for long enough not to be polled in every cycle.
    for _ in 0..200 {
        fixture.cycle_after(MS);
    }
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    fixture.cycle();
    fixture.cycle_after(MS / 2);
    fixture.socket.sent();
    fixture.cycle_after(MS / 2 + 1);
    let wanted = fixture.log_bytes(START, 320);
    assert!(fixture.socket.sent().contains(&wanted));
}
