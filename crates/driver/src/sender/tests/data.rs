//! The road: from the term buffer to the socket, within the window.

use super::*;

#[test]
fn a_frame_goes_out_as_it_lies_in_the_log() {
    let mut rig = Rig::connected(32_768);
    rig.publish(37);
    let sent = rig.sent();
    assert_eq!(sent, [rig.log_bytes(START, 64)]);
    assert_eq!(
        sent[0][..24],
        hex("25 00 00 00 00 c0 01 00 c0 00 00 00 4d 3c 2b 1a e9 03 00 00 65 00 00 00")
    );
    assert_eq!(rig.position.get(), START + 64);
}

#[test]
fn a_lone_frame_costs_one_call() {
    let mut rig = Rig::connected(32_768);
    let (sends, receives) = (rig.socket.send_calls(), rig.socket.receive_calls());
    rig.publish(320);
    rig.cycle();
    assert_eq!(
        (
            rig.socket.send_calls() - sends,
            rig.socket.receive_calls() - receives
        ),
        (1, 0)
    );
}

#[test]
fn padding_travels_as_its_header() {
    let mut rig = Rig::connected(32_768);
    rig.publish(37);
    rig.publish(-64);
    rig.publish(37);
    let sent = rig.sent();
    assert_eq!(
        sent,
        [rig.log_bytes(START, 96), rig.log_bytes(START + 128, 64)]
    );
    assert_eq!(rig.position.get(), START + 192);
    assert_eq!(rig.counters.bytes_sent.get(), 32 + 160);
}

#[test]
fn the_stream_goes_on_in_the_next_term() {
    let mut rig = Rig::connected(32_768);
    rig.publish(-(65_536 - 192));
    rig.publish(64);
    assert_eq!(rig.sent().len(), 1);
    assert_eq!(rig.position.get(), 2 * 65_536);
    rig.status(2 * 65_536, 32_768);
    rig.cycle();
    assert_eq!(rig.sent(), [rig.log_bytes(2 * 65_536, 64)]);
}

#[test]
fn a_burst_goes_out_in_one_call() {
    let mut rig = Rig::connected(32_768);
    for _ in 0..100 {
        rig.publish(320);
    }
    let calls = rig.socket.send_calls();
    let sent = rig.sent();
    assert_eq!(rig.socket.send_calls() - calls, 1);
    assert!(sent.iter().take(25).all(|datagram| datagram.len() == 1280));
    assert_eq!(sent.concat(), rig.log_bytes(START, 32_000));
}

#[test]
fn unequal_datagrams_go_out_in_one_call_too() {
    let mut rig = Rig::connected(32_768);
    for length in [1000, 1400, 1400, 96, 1400] {
        rig.publish(length);
    }
    let calls = rig.socket.send_calls();
    let lengths: Vec<usize> = rig.sent().iter().map(Vec::len).collect();
    assert_eq!(
        (rig.socket.send_calls() - calls, lengths),
        (1, vec![1024, 1408, 1408, 96, 1408])
    );
}

#[test]
fn the_window_is_not_overrun_and_a_stall_counts_once() {
    let mut rig = Rig::connected(640);
    for _ in 0..5 {
        rig.publish(320);
    }
    assert_eq!(rig.sent().concat().len(), 640);
    for _ in 0..3 {
        assert_eq!(rig.sent(), [[0; 0]; 0]);
    }
    assert_eq!(
        (
            rig.back_pressure.get(),
            rig.counters.flow_control_limits.get()
        ),
        (1, 1)
    );
    rig.status(START + 640, 500);
    rig.cycle();
    assert_eq!(rig.limit.get(), START + 1140);
    assert_eq!(rig.sent().concat().len(), 320);
    rig.cycle();
    assert_eq!(
        rig.back_pressure.get(),
        2,
        "180 bytes of window are too few for the next frame"
    );
}

#[test]
fn what_the_socket_does_not_take_is_sent_later() {
    let mut rig = Rig::connected(32_768);
    for _ in 0..8 {
        rig.publish(320);
    }
    rig.socket.room(Some(1300));
    let polled = rig.socket.receive_calls();
    let first = rig.sent();
    assert_eq!(rig.socket.receive_calls(), polled + 1);
    assert_eq!(rig.position.get(), START + 1280);
    assert_eq!(rig.counters.short_sends.get(), 1);
    rig.socket.room(None);
    let second = rig.sent();
    assert_eq!(rig.socket.receive_calls(), polled + 1);
    assert_eq!(
        [first.concat(), second.concat()].concat(),
        rig.log_bytes(START, 2560)
    );
}

#[test]
fn a_broken_network_is_recorded_once_a_second_and_survived() {
    let mut rig = Rig::connected(32_768);
    rig.publish(320);
    rig.socket.set_broken(true);
    for _ in 0..100 {
        rig.cycle_after(MS);
    }
    assert_eq!(rig.errors.count(), 1);
    rig.cycle_after(1000 * MS);
    assert_eq!(rig.errors.count(), 2);
    assert_eq!(rig.position.get(), START);
    rig.socket.set_broken(false);
    rig.cycle();
    assert_eq!(rig.position.get(), START + 320);
}

#[test]
fn a_send_can_be_limited_to_a_number_of_datagrams_and_a_turn_has_a_few() {
    let mut rig = Rig::with(|spec| spec.max_datagrams_per_send = Some(2));
    rig.connect(32_768);
    for _ in 0..40 {
        rig.publish(320);
    }
    for (sends, datagrams) in [(4, 8), (1, 2)] {
        let before = rig.socket.send_calls();
        assert_eq!(rig.sent().len(), datagrams);
        assert_eq!(rig.socket.send_calls() - before, sends);
    }
}

#[test]
fn a_corrupt_frame_stops_its_stream_and_is_reported() {
    let mut rig = Rig::connected(32_768);
    let offset = rig.log.geometry().term_offset(START) as usize;
    rig.log
        .term_at(START)
        .atomic_i32(offset)
        .store(i32::MAX, Ordering::Release);
    for _ in 0..10 {
        assert_eq!(rig.sent(), [[0; 0]; 0]);
    }
    assert_eq!((rig.position.get(), rig.errors.count()), (START, 1));
}

#[test]
fn receivers_are_heard_every_so_often_while_data_flows() {
    let mut rig = Rig::connected(32_768);
    rig.cycle();
    let receives = rig.socket.receive_calls();
    for _ in 0..12 {
        rig.publish(64);
        rig.cycle();
    }
    assert_eq!(rig.socket.receive_calls() - receives, 2);
    rig.publish(64);
    rig.cycle_after(101 * MS);
    assert_eq!(rig.socket.receive_calls() - receives, 3);
}

#[test]
fn publications_take_turns() {
    let mut rig = Rig::connected(32_768);
    let mut spec = rig.publication_spec();
    spec.id = PublicationId(3);
    spec.session_id = 8;
    spec.sender_position = Counter::detached();
    rig.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    let orders: Vec<usize> = (0..4)
        .map(|_| {
            rig.now_ns += 101 * MS;
            // The second publication says SETUP, the first one heartbeat.
            rig.sent().iter().position(|frame| frame[6] == 5).unwrap()
        })
        .collect();
    assert_eq!(orders[1..], [orders[1], 1 - orders[1], orders[1]]);
}

/// Adds a publication of another session over the same log.
fn add(rig: &mut Rig, session_id: i32, change: impl FnOnce(&mut SenderPublicationSpec)) {
    let mut spec = rig.publication_spec();
    spec.id = PublicationId(i64::from(session_id));
    spec.session_id = session_id;
    spec.sender_position = Counter::detached();
    spec.sender_limit = Counter::detached();
    change(&mut spec);
    rig.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    rig.cycle();
}

#[test]
fn a_stream_that_is_not_alone_sends_no_more_than_the_others() {
    let limit = |spec: &mut SenderPublicationSpec| spec.max_datagrams_per_send = Some(2);
    let mut rig = Rig::with(limit);
    rig.connect(32_768);
    add(&mut rig, 8, limit);
    let message = StatusMessage {
        session_id: 8.into(),
        ..rig.status_message(RECEIVER, 0, START, 32_768)
    };
    rig.socket.arrive(message.as_bytes());
    rig.cycle();
    for _ in 0..80 {
        rig.publish(320);
    }
    // Nobody was known to send: whoever is first has more.
    assert_eq!(rig.sent().len(), 8 + 2);
    for _ in 0..3 {
        assert_eq!(rig.sent().len(), 2 + 2);
    }
}

#[test]
fn an_answer_that_is_due_later_does_not_wait_for_its_turn_among_many() {
    let mut rig = Rig::with(|spec| spec.retransmit.delay_ns = MS);
    rig.connect(32_768);
    rig.publish(320);
    rig.cycle();
    for session_id in 1_000..1_500 {
        add(&mut rig, session_id, |_| {});
    }
    // Silent for long enough to be looked at now and then only.
    for _ in 0..200 {
        rig.cycle_after(MS);
    }
    rig.socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    rig.cycle();
    rig.cycle_after(MS / 2);
    rig.socket.sent();
    rig.cycle_after(MS / 2 + 1);
    let wanted = rig.log_bytes(START, 320);
    assert!(rig.socket.sent().contains(&wanted));
}
