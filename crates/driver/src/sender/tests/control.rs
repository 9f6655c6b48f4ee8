//! What receivers say.

use std::net::{Ipv4Addr, SocketAddr};

use taran_protocol::frame::{ERROR_FRAME_LENGTH_MAX, ErrorFrame};

use super::super::{CONTROL_BATCH, CONTROL_BATCHES};
use super::*;

#[test]
fn the_status_message_of_the_worked_example_opens_the_window() {
    let mut rig = Rig::new();
    rig.cycle();
    rig.socket.arrive(&hex(
        "24 00 00 00 00 00 03 00  4d 3c 2b 1a e9 03 00 00
                            65 00 00 00 c0 00 00 00  00 80 00 00 88 77 66 55  44 33 22 11",
    ));
    rig.cycle();
    assert_eq!(rig.limit.get(), START + 32_768);
    assert!(rig.shared.has_receivers() && rig.shared.has_required_receivers());
    assert_eq!(rig.counters.status_messages_received.get(), 1);
}

#[test]
fn an_implausible_position_is_rejected() {
    let mut rig = Rig::connected(32_768);
    let limit = rig.limit.get();
    for position in [START - 32_768 - 32, START + 32_768 + 32] {
        rig.status(position, 32_768);
    }
    rig.cycle();
    assert_eq!(
        (rig.limit.get(), rig.counters.status_messages_rejected.get()),
        (limit, 2)
    );
    for position in [START - 32_768, START + 32_768] {
        rig.status(position, 32_768);
    }
    rig.cycle();
    assert_eq!(
        (rig.limit.get(), rig.counters.status_messages_rejected.get()),
        (START + 65_536, 2)
    );
}

#[test]
fn a_receiver_that_stands_still_is_believed_although_padding_led_far_ahead() {
    let mut rig = Rig::connected(32_768);
    rig.publish(-(65_536 - 192));
    rig.cycle();
    assert_eq!(rig.position.get(), 2 * 65_536);
    let received = rig.counters.status_messages_received.get();
    rig.status(START, 32_768);
    rig.cycle();
    let rejected = rig.counters.status_messages_rejected.get();
    let received = rig.counters.status_messages_received.get() - received;
    assert_eq!((received, rejected), (1, 0));
    rig.status(START - 32, 32_768);
    rig.cycle();
    assert_eq!(rig.counters.status_messages_rejected.get(), 1);
}

#[test]
fn what_thousands_of_receivers_say_is_taken_in_large_bites() {
    let mut rig = Rig::new();
    let limit = CONTROL_BATCH * CONTROL_BATCHES;
    let status = rig.status_message(RECEIVER, 0, START, 32_768);
    for _ in 0..2 * limit + 3 {
        rig.socket.arrive(status.as_bytes());
    }
    let heard = |rig: &mut Rig| {
        let before = rig.counters.status_messages_received.get();
        rig.cycle();
        (rig.counters.status_messages_received.get() - before) as usize
    };
    assert_eq!(heard(&mut rig), limit, "a cycle has other things to do");
    // While it sends, it need not look each time, but for what was left.
    rig.publish(100);
    assert_eq!((heard(&mut rig), heard(&mut rig)), (limit, 3));
}

#[test]
fn a_malformed_status_message_is_an_invalid_packet() {
    let mut rig = Rig::connected(32_768);
    let received = rig.counters.status_messages_received.get();
    let good = rig.status_message(RECEIVER, 0, START, 32_768);
    let bad = [
        StatusMessage {
            consumption_term_offset: 65_536.into(),
            ..good
        },
        StatusMessage {
            consumption_term_offset: 8.into(),
            ..good
        },
        StatusMessage {
            receiver_window: 32_769.into(),
            ..good
        },
        StatusMessage {
            receiver_window: (-1).into(),
            ..good
        },
    ];
    for message in bad {
        rig.socket.arrive(message.as_bytes());
    }
    rig.cycle();
    assert_eq!(
        (
            rig.counters.invalid_packets.get(),
            rig.counters.status_messages_received.get()
        ),
        (4, received)
    );
}

#[test]
fn control_frames_are_routed_by_session_and_stream() {
    let mut rig = Rig::connected(32_768);
    let mut spec = rig.publication_spec();
    (spec.id, spec.session_id, spec.stream_id) = (PublicationId(3), -5, 1);
    (spec.sender_limit, spec.shared) = (Counter::detached(), Arc::default());
    let (limit, shared) = (spec.sender_limit.clone(), Arc::clone(&spec.shared));
    rig.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    rig.cycle();
    let message = StatusMessage {
        session_id: (-5).into(),
        ..rig.status_message(RECEIVER, 0, START, 32_768)
    };
    rig.socket.arrive(
        StatusMessage {
            stream_id: 2.into(),
            ..message
        }
        .as_bytes(),
    );
    rig.cycle();
    assert!(!shared.has_receivers());
    rig.socket.arrive(
        StatusMessage {
            stream_id: 1.into(),
            ..message
        }
        .as_bytes(),
    );
    rig.cycle();
    assert!(shared.has_receivers());
    assert_eq!(limit.get(), START + 32_768);
    assert_eq!(rig.counters.status_messages_received.get(), 3);
}

#[test]
fn a_nak_is_answered_with_the_same_bytes() {
    let mut rig = Rig::connected(32_768);
    for _ in 0..10 {
        rig.publish(320);
    }
    rig.cycle();
    rig.socket.sent();
    rig.socket
        .arrive(nak(SESSION, STREAM, START + 320, 640).as_bytes());
    assert_eq!(rig.answers(), [rig.log_bytes(START + 320, 640)]);
    assert_eq!((rig.naks.get(), rig.counters.naks_received.get()), (1, 1));
    assert_eq!(
        (
            rig.counters.retransmits_sent.get(),
            rig.counters.retransmitted_bytes.get()
        ),
        (1, 640)
    );
    assert_eq!(
        rig.counters.bytes_sent.get(),
        32 + 3200,
        "retransmissions are not counted as sent"
    );

    rig.socket
        .arrive(nak(SESSION, STREAM, START + 640, 320).as_bytes());
    rig.now_ns += 10 * MS;
    assert_eq!(rig.answers(), [[0; 0]; 0], "suppressed while lingering");
    rig.socket
        .arrive(nak(SESSION, STREAM, START + 640, 320).as_bytes());
    rig.now_ns += SILENCE_NS;
    assert_eq!(rig.answers(), [rig.log_bytes(START + 640, 320)]);
    assert_eq!(
        (rig.naks.get(), rig.counters.retransmits_sent.get()),
        (3, 2)
    );
}

#[test]
fn an_answer_that_finds_no_room_at_all_is_a_short_send() {
    let mut rig = Rig::connected(32_768);
    rig.publish(320);
    rig.cycle();
    rig.socket.sent();
    let short = rig.counters.short_sends.get();
    rig.socket.room(Some(0));
    rig.socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    assert_eq!(rig.answers(), [[0; 0]; 0]);
    assert_eq!(rig.counters.short_sends.get(), short + 1);
    assert_eq!(rig.counters.retransmits_sent.get(), 0);
}

#[test]
fn a_burst_of_naks_is_answered_once_with_all_that_is_missed() {
    let mut rig = Rig::connected(32_768);
    for _ in 0..8 {
        rig.publish(320);
    }
    rig.cycle();
    rig.socket.sent();
    for at in (0..8).rev() {
        let missing = nak(SESSION, STREAM, START + 320 * at, 320);
        rig.socket.arrive(missing.as_bytes());
    }
    assert_eq!(rig.sent(), [[0; 0]; 0], "listening sends nothing");
    assert_eq!(rig.sent().concat(), rig.log_bytes(START, 8 * 320));
    assert_eq!(rig.sent(), [[0; 0]; 0]);
}

#[test]
fn the_nak_of_the_worked_example_is_understood() {
    let mut rig = Rig::connected(32_768);
    rig.publish(64);
    rig.cycle();
    rig.socket.sent();
    rig.socket.arrive(&hex(
        "1c 00 00 00 00 00 02 00  4d 3c 2b 1a e9 03 00 00  65 00 00 00 c0 00 00 00  40 00 00 00",
    ));
    assert_eq!(rig.answers(), [rig.log_bytes(START, 64)]);
}

#[test]
fn a_nak_never_sends_what_was_not_sent_before_or_is_too_old() {
    let mut rig = Rig::connected(640);
    for _ in 0..4 {
        rig.publish(320);
    }
    rig.cycle();
    rig.socket.sent();
    for (position, length) in [(START + 640, 320), (START - 32_768 - 8192, 320), (START, 0)] {
        rig.socket
            .arrive(nak(SESSION, STREAM, position, length).as_bytes());
        assert_eq!(rig.answers(), [[0; 0]; 0], "{position}");
    }
    rig.socket
        .arrive(nak(SESSION, STREAM, START + 320, 960).as_bytes());
    assert_eq!(rig.answers(), [rig.log_bytes(START + 320, 320)]);
}

#[test]
fn what_has_become_too_old_by_the_time_of_its_answer_is_not_sent() {
    let mut rig = Rig::with(|spec| spec.retransmit.delay_ns = 5 * MS);
    rig.connect(32_768);
    for _ in 0..130 {
        rig.publish(320);
    }
    rig.cycle();
    let sent = START + 102 * 320;
    assert_eq!(rig.position.get(), sent);
    rig.socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    rig.status(sent, 32_768);
    rig.cycle();
    rig.cycle();
    assert_eq!((rig.position.get(), rig.naks.get()), (START + 130 * 320, 1));
    rig.now_ns += 5 * MS + 1;
    assert_eq!(rig.sent(), [[0; 0]; 0]);
    assert_eq!(rig.counters.retransmits_sent.get(), 0);
}

#[test]
fn a_nak_outside_the_term_is_an_invalid_packet() {
    let mut rig = Rig::connected(32_768);
    for bad in [
        Nak {
            term_offset: 65_536.into(),
            ..nak(SESSION, STREAM, START, 64)
        },
        Nak {
            term_offset: (-32).into(),
            ..nak(SESSION, STREAM, START, 64)
        },
        Nak {
            length: (-1).into(),
            ..nak(SESSION, STREAM, START, 64)
        },
        Nak {
            length: 65_536.into(),
            ..nak(SESSION, STREAM, START, 64)
        },
    ] {
        rig.socket.arrive(bad.as_bytes());
    }
    rig.cycle();
    assert_eq!((rig.counters.invalid_packets.get(), rig.naks.get()), (4, 4));
    assert_eq!(rig.counters.retransmits_sent.get(), 0);
    rig.socket.arrive(nak(7, STREAM, START, 64).as_bytes());
    rig.cycle();
    // All are counted as received, as by C; Java leaves those of unknown sessions out.
    assert_eq!((rig.counters.naks_received.get(), rig.naks.get()), (5, 4));
}

#[test]
fn an_error_frame_of_a_receiver_is_told_once() {
    let mut rig = Rig::connected(32_768);
    let frame = hex("30 00 00 00 00 08 04 00  4d 3c 2b 1a e9 03 00 00
                     88 77 66 55 44 33 22 11  07 00 00 00 00 00 00 00
                     0d 00 00 00 08 00 00 00  72 65 6a 65 63 74 65 64");
    rig.socket.arrive(&frame);
    rig.socket.arrive(&frame);
    rig.cycle();
    let Some(ConductorEvent::PublicationError(error)) = rig.events.try_recv() else {
        panic!("no event");
    };
    assert_eq!(
        (error.publication, error.receiver_id, error.code),
        (PUBLICATION, RECEIVER, 13)
    );
    assert_eq!(
        (error.group_tag, error.source, &*error.text),
        (Some(7), peer(), "rejected")
    );
    assert!(rig.events.try_recv().is_none());
    assert!(!rig.shared.has_receivers());
    assert_eq!(rig.counters.error_frames_received.get(), 2);
}

#[test]
fn an_error_frame_of_a_stranger_changes_nothing() {
    let mut rig = Rig::connected(32_768);
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    rig.socket.arrive(ErrorFrame::write(
        &mut buffer,
        SESSION,
        STREAM,
        99,
        None,
        13,
        b"no",
    ));
    rig.cycle();
    assert!(rig.events.try_recv().is_none());
    assert!(rig.shared.has_receivers());
}

#[test]
fn a_round_trip_request_is_answered_and_an_answer_is_not() {
    let mut rig = Rig::connected(32_768);
    let mut frame = hex(
        "28 00 00 00 00 80 06 00  4d 3c 2b 1a e9 03 00 00
                         cb 04 fb 71 1f 01 00 00  00 00 00 00 00 00 00 00  88 77 66 55 44 33 22 11",
    );
    rig.socket.arrive(&frame);
    frame[5] = 0;
    assert_eq!(rig.sent(), [frame.clone()]);
    rig.socket.arrive(&frame);
    assert_eq!(rig.sent(), [[0; 0]; 0]);
}

#[test]
fn garbage_raises_the_counter_and_nothing_else() {
    let mut rig = Rig::connected(32_768);
    let limit = rig.limit.get();
    let mut random = fastrand::Rng::with_seed(42);
    for _ in 0..10_000 {
        let mut datagram: Vec<u8> = (0..random.usize(0..100)).map(|_| random.u8(..)).collect();
        if let Some(version) = datagram.get_mut(4) {
            // Never the present version, so that every datagram is garbage.
            *version |= 1;
        }
        rig.socket.arrive(&datagram);
    }
    for _ in 0..10_000 {
        rig.cycle();
    }
    assert_eq!(rig.counters.invalid_packets.get(), 10_000);
    assert_eq!((rig.limit.get(), rig.errors.count()), (limit, 0));
    assert_eq!(rig.socket.sent(), [[0; 0]; 0]);
}

#[test]
fn frames_of_senders_are_ignored() {
    let mut rig = Rig::connected(32_768);
    rig.publish(64);
    rig.socket.arrive(&rig.log_bytes(START, 64));
    rig.cycle();
    rig.cycle();
    assert_eq!(rig.counters.invalid_packets.get(), 0);
}

#[test]
fn an_unconnected_socket_names_its_peer_on_every_send() {
    let mut rig = Rig::new();
    let socket = FakeSocket::default();
    let address = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 9), 99));
    let endpoint = SendEndpoint::new(SendEndpointSpec {
        id: EndpointId(10),
        channel: "aeron:udp?control=10.0.0.1:7".into(),
        data: Box::new(socket.clone()),
        control: None,
        destination: Destination::Address(address),
        re_resolution_timeout_ns: Some(5_000 * MS),
        seed: 1,
    });
    rig.command(SenderCommand::AddEndpoint(Box::new(endpoint)));
    let spec = SenderPublicationSpec {
        endpoint: EndpointId(10),
        id: PublicationId(3),
        ..rig.publication_spec()
    };
    rig.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    rig.cycle();
    rig.cycle();
    assert_eq!(socket.destinations(), [Some(address)]);
    rig.cycle_after(5_001 * MS);
    assert!(matches!(
        rig.events.try_recv(),
        Some(ConductorEvent::ReResolveEndpoint(EndpointId(10)))
    ));
    rig.command(SenderCommand::ChangeDestination {
        destination: None,
        endpoint: EndpointId(10),
        address: peer(),
    });
    socket.sent();
    rig.cycle_after(101 * MS);
    assert_eq!(socket.destinations(), [Some(peer())]);
}

#[test]
fn a_peer_that_moved_where_there_is_no_way_yet_is_reached_once_there_is() {
    let mut rig = Rig::new();
    let moved = "10.0.0.99:4040".parse().unwrap();
    rig.socket.set_broken(true);
    rig.command(SenderCommand::ChangeDestination {
        destination: None,
        endpoint: ENDPOINT,
        address: moved,
    });
    rig.cycle_after(101 * MS);
    rig.socket.set_broken(false);
    rig.socket.sent();
    rig.cycle_after(101 * MS);
    assert_eq!(rig.socket.destinations(), [Some(moved)]);
}

#[test]
fn strangers_do_not_keep_a_silent_peer_from_being_looked_up_again() {
    let mut rig = Rig::with_endpoint(|endpoint| {
        endpoint.re_resolution_timeout_ns = Some(5_000 * MS);
    });
    let unheard = |rig: &mut Rig| {
        matches!(
            rig.events.try_recv(),
            Some(ConductorEvent::ReResolveEndpoint(ENDPOINT))
        )
    };
    for _ in 0..6 {
        rig.status(START, 32_768);
        rig.cycle_after(1_000 * MS);
    }
    assert!(!unheard(&mut rig), "its receiver is there");
    let stranger = StatusMessage {
        session_id: (SESSION + 1).into(),
        ..rig.status_message(RECEIVER, 0, START, 32_768)
    };
    for _ in 0..6 {
        rig.socket.arrive(stranger.as_bytes());
        rig.cycle_after(1_000 * MS);
    }
    assert!(unheard(&mut rig));
}

#[test]
fn more_receivers_than_are_waited_for_are_an_error() {
    for is_slowest in [false, true] {
        let mut rig = Rig::with(|spec| {
            spec.is_group = true;
            if is_slowest {
                spec.flow_control =
                    SenderFlowControlSpec::Min(crate::boundary::MinFlowControlSpec {
                        group_tag: None,
                        min_size: 0,
                        // Longer than receivers are kept otherwise.
                        timeout_ns: i64::MAX,
                        retransmit_window_multiple: 4,
                        receivers: Counter::detached(),
                        log: stream_log(),
                    });
                spec.connection_timeout_ns = 0;
            }
        });
        for id in 0..1_030 {
            assert_eq!(rig.errors.count(), i64::from(id > 1_024), "{id}");
            rig.status_of(id, 0, START, 32_768);
            rig.cycle();
        }
        assert_eq!(rig.errors.count(), 1);
    }
}
