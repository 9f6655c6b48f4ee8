// SPDX-License-Identifier: Apache-2.0
//! Control frames from receivers.

use std::net::{Ipv4Addr, SocketAddr};

use taran_protocol::frame::{ERROR_FRAME_LENGTH_MAX, ErrorFrame};

use super::super::{CONTROL_BATCH, CONTROL_BATCHES};
use super::*;

#[test]
fn status_message_of_worked_example_sets_limit() {
    let mut fixture = SenderFixture::new();
    fixture.cycle();
    fixture.socket.arrive(&hex(
        "24 00 00 00 00 00 03 00  4d 3c 2b 1a e9 03 00 00
                            65 00 00 00 c0 00 00 00  00 80 00 00 88 77 66 55  44 33 22 11",
    ));
    fixture.cycle();
    assert_eq!(fixture.limit.get(), START + 32_768);
    assert!(fixture.shared.has_receivers() && fixture.shared.has_required_receivers());
    assert_eq!(fixture.counters.status_messages_received.get(), 1);
}

#[test]
fn status_message_with_implausible_position_is_rejected() {
    let mut fixture = SenderFixture::connected(32_768);
    let limit = fixture.limit.get();
    for position in [START - 32_768 - 32, START + 32_768 + 32] {
        fixture.status(position, 32_768);
    }
    fixture.cycle();
    assert_eq!(
        (
            fixture.limit.get(),
            fixture.counters.status_messages_rejected.get()
        ),
        (limit, 2)
    );
    for position in [START - 32_768, START + 32_768] {
        fixture.status(position, 32_768);
    }
    fixture.cycle();
    assert_eq!(
        (
            fixture.limit.get(),
            fixture.counters.status_messages_rejected.get()
        ),
        (START + 65_536, 2)
    );
}

#[test]
fn status_message_in_front_of_long_padding_is_accepted() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(-(65_536 - 192));
    fixture.cycle();
    assert_eq!(fixture.position.get(), 2 * 65_536);
    let received = fixture.counters.status_messages_received.get();
    fixture.status(START, 32_768);
    fixture.cycle();
    let rejected = fixture.counters.status_messages_rejected.get();
    let received = fixture.counters.status_messages_received.get() - received;
    assert_eq!((received, rejected), (1, 0));
    fixture.status(START - 32, 32_768);
    fixture.cycle();
    assert_eq!(fixture.counters.status_messages_rejected.get(), 1);
}

#[test]
fn status_messages_of_thousands_of_receivers_are_received_in_several_batches() {
    let mut fixture = SenderFixture::new();
    let limit = CONTROL_BATCH * CONTROL_BATCHES;
    let status = fixture.status_message(RECEIVER, 0, START, 32_768);
    for _ in 0..2 * limit + 3 {
        fixture.socket.arrive(status.as_bytes());
    }
    let received = |fixture: &mut SenderFixture| {
        let before = fixture.counters.status_messages_received.get();
        fixture.cycle();
        (fixture.counters.status_messages_received.get() - before) as usize
    };
    assert_eq!(received(&mut fixture), limit, "limited per cycle");
    // While data is sent, control is not polled every cycle, except for a backlog.
    fixture.publish(100);
    assert_eq!((received(&mut fixture), received(&mut fixture)), (limit, 3));
}

#[test]
fn malformed_status_message_is_an_invalid_packet() {
    let mut fixture = SenderFixture::connected(32_768);
    let received = fixture.counters.status_messages_received.get();
    let good = fixture.status_message(RECEIVER, 0, START, 32_768);
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
        fixture.socket.arrive(message.as_bytes());
    }
    fixture.cycle();
    assert_eq!(
        (
            fixture.counters.invalid_packets.get(),
            fixture.counters.status_messages_received.get()
        ),
        (4, received)
    );
}

#[test]
fn control_frames_are_routed_by_session_and_stream() {
    let mut fixture = SenderFixture::connected(32_768);
    let mut spec = fixture.publication_spec();
    (spec.id, spec.session_id, spec.stream_id) = (PublicationId(3), -5, 1);
    (spec.sender_limit, spec.shared) = (Counter::detached(), Arc::default());
    let (limit, shared) = (spec.sender_limit.clone(), Arc::clone(&spec.shared));
    fixture.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    fixture.cycle();
    let message = StatusMessage {
        session_id: (-5).into(),
        ..fixture.status_message(RECEIVER, 0, START, 32_768)
    };
    fixture.socket.arrive(
        StatusMessage {
            stream_id: 2.into(),
            ..message
        }
        .as_bytes(),
    );
    fixture.cycle();
    assert!(!shared.has_receivers());
    fixture.socket.arrive(
        StatusMessage {
            stream_id: 1.into(),
            ..message
        }
        .as_bytes(),
    );
    fixture.cycle();
    assert!(shared.has_receivers());
    assert_eq!(limit.get(), START + 32_768);
    assert_eq!(fixture.counters.status_messages_received.get(), 3);
}

#[test]
fn nak_retransmits_the_same_bytes() {
    let mut fixture = SenderFixture::connected(32_768);
    for _ in 0..10 {
        fixture.publish(320);
    }
    fixture.cycle();
    fixture.socket.sent();
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START + 320, 640).as_bytes());
    assert_eq!(fixture.replies(), [fixture.log_bytes(START + 320, 640)]);
    assert_eq!(
        (fixture.naks.get(), fixture.counters.naks_received.get()),
        (1, 1)
    );
    assert_eq!(
        (
            fixture.counters.retransmits_sent.get(),
            fixture.counters.retransmitted_bytes.get()
        ),
        (1, 640)
    );
    assert_eq!(
        fixture.counters.bytes_sent.get(),
        32 + 3200,
        "retransmissions are not counted as sent"
    );

    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START + 640, 320).as_bytes());
    fixture.now_ns += 10 * MS;
    assert_eq!(fixture.replies(), [[0; 0]; 0], "suppressed while lingering");
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START + 640, 320).as_bytes());
    fixture.now_ns += CONTROL_BACKOFF_NS;
    assert_eq!(fixture.replies(), [fixture.log_bytes(START + 640, 320)]);
    assert_eq!(
        (fixture.naks.get(), fixture.counters.retransmits_sent.get()),
        (3, 2)
    );
}

#[test]
fn retransmit_into_full_socket_is_a_short_send() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(320);
    fixture.cycle();
    fixture.socket.sent();
    let short = fixture.counters.short_sends.get();
    fixture.socket.room(Some(0));
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    assert_eq!(fixture.replies(), [[0; 0]; 0]);
    assert_eq!(fixture.counters.short_sends.get(), short + 1);
    assert_eq!(fixture.counters.retransmits_sent.get(), 0);
}

#[test]
fn burst_of_naks_retransmits_each_range_once() {
    let mut fixture = SenderFixture::connected(32_768);
    for _ in 0..8 {
        fixture.publish(320);
    }
    fixture.cycle();
    fixture.socket.sent();
    for at in (0..8).rev() {
        let missing = nak(SESSION, STREAM, START + 320 * at, 320);
        fixture.socket.arrive(missing.as_bytes());
    }
    assert_eq!(fixture.sent(), [[0; 0]; 0], "listening sends nothing");
    assert_eq!(fixture.sent().concat(), fixture.log_bytes(START, 8 * 320));
    assert_eq!(fixture.sent(), [[0; 0]; 0]);
}

#[test]
fn nak_of_worked_example_is_accepted() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(64);
    fixture.cycle();
    fixture.socket.sent();
    fixture.socket.arrive(&hex(
        "1c 00 00 00 00 00 02 00  4d 3c 2b 1a e9 03 00 00  65 00 00 00 c0 00 00 00  40 00 00 00",
    ));
    assert_eq!(fixture.replies(), [fixture.log_bytes(START, 64)]);
}

#[test]
fn nak_beyond_position_or_too_old_retransmits_nothing() {
    let mut fixture = SenderFixture::connected(640);
    for _ in 0..4 {
        fixture.publish(320);
    }
    fixture.cycle();
    fixture.socket.sent();
    for (position, length) in [(START + 640, 320), (START - 32_768 - 8192, 320), (START, 0)] {
        fixture
            .socket
            .arrive(nak(SESSION, STREAM, position, length).as_bytes());
        assert_eq!(fixture.replies(), [[0; 0]; 0], "{position}");
    }
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START + 320, 960).as_bytes());
    assert_eq!(fixture.replies(), [fixture.log_bytes(START + 320, 320)]);
}

#[test]
fn range_too_old_when_due_is_not_retransmitted() {
    let mut fixture = SenderFixture::with(|spec| spec.retransmit.delay_ns = 5 * MS);
    fixture.connect(32_768);
    for _ in 0..130 {
        fixture.publish(320);
    }
    fixture.cycle();
    let sent = START + 102 * 320;
    assert_eq!(fixture.position.get(), sent);
    fixture
        .socket
        .arrive(nak(SESSION, STREAM, START, 320).as_bytes());
    fixture.status(sent, 32_768);
    fixture.cycle();
    fixture.cycle();
    assert_eq!(
        (fixture.position.get(), fixture.naks.get()),
        (START + 130 * 320, 1)
    );
    fixture.now_ns += 5 * MS + 1;
    assert_eq!(fixture.sent(), [[0; 0]; 0]);
    assert_eq!(fixture.counters.retransmits_sent.get(), 0);
}

#[test]
fn nak_outside_term_is_an_invalid_packet() {
    let mut fixture = SenderFixture::connected(32_768);
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
        fixture.socket.arrive(bad.as_bytes());
    }
    fixture.cycle();
    assert_eq!(
        (fixture.counters.invalid_packets.get(), fixture.naks.get()),
        (4, 4)
    );
    assert_eq!(fixture.counters.retransmits_sent.get(), 0);
    fixture.socket.arrive(nak(7, STREAM, START, 64).as_bytes());
    fixture.cycle();
    // All are counted as received, as by C; Java leaves those of unknown sessions out.
    assert_eq!(
        (fixture.counters.naks_received.get(), fixture.naks.get()),
        (5, 4)
    );
}

#[test]
fn error_frame_of_known_receiver_is_reported_once() {
    let mut fixture = SenderFixture::connected(32_768);
    let frame = hex("30 00 00 00 00 08 04 00  4d 3c 2b 1a e9 03 00 00
                     88 77 66 55 44 33 22 11  07 00 00 00 00 00 00 00
                     0d 00 00 00 08 00 00 00  72 65 6a 65 63 74 65 64");
    fixture.socket.arrive(&frame);
    fixture.socket.arrive(&frame);
    fixture.cycle();
    let Some(ConductorEvent::PublicationError(error)) = fixture.events.try_recv() else {
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
    assert!(fixture.events.try_recv().is_none());
    assert!(!fixture.shared.has_receivers());
    assert_eq!(fixture.counters.error_frames_received.get(), 2);
}

#[test]
fn error_frame_of_unknown_receiver_changes_nothing() {
    let mut fixture = SenderFixture::connected(32_768);
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    fixture.socket.arrive(ErrorFrame::write(
        &mut buffer,
        SESSION,
        STREAM,
        99,
        None,
        13,
        b"no",
    ));
    fixture.cycle();
    assert!(fixture.events.try_recv().is_none());
    assert!(fixture.shared.has_receivers());
}

#[test]
fn rtt_request_is_answered_and_reply_is_not() {
    let mut fixture = SenderFixture::connected(32_768);
    let mut frame = hex(
        "28 00 00 00 00 80 06 00  4d 3c 2b 1a e9 03 00 00
                         cb 04 fb 71 1f 01 00 00  00 00 00 00 00 00 00 00  88 77 66 55 44 33 22 11",
    );
    fixture.socket.arrive(&frame);
    frame[5] = 0;
    assert_eq!(fixture.sent(), [frame.clone()]);
    fixture.socket.arrive(&frame);
    assert_eq!(fixture.sent(), [[0; 0]; 0]);
}

#[test]
fn invalid_frame_only_increments_counter() {
    let mut fixture = SenderFixture::connected(32_768);
    let limit = fixture.limit.get();
    let mut random = fastrand::Rng::with_seed(42);
    for _ in 0..10_000 {
        let mut datagram: Vec<u8> = (0..random.usize(0..100)).map(|_| random.u8(..)).collect();
        if let Some(version) = datagram.get_mut(4) {
            // Never the present version, so that every datagram is garbage.
            *version |= 1;
        }
        fixture.socket.arrive(&datagram);
    }
    for _ in 0..10_000 {
        fixture.cycle();
    }
    assert_eq!(fixture.counters.invalid_packets.get(), 10_000);
    assert_eq!((fixture.limit.get(), fixture.errors.count()), (limit, 0));
    assert_eq!(fixture.socket.sent(), [[0; 0]; 0]);
}

#[test]
fn data_and_setup_frames_are_ignored() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(64);
    fixture.socket.arrive(&fixture.log_bytes(START, 64));
    fixture.cycle();
    fixture.cycle();
    assert_eq!(fixture.counters.invalid_packets.get(), 0);
}

#[test]
fn unconnected_socket_sets_destination_on_every_send() {
    let mut fixture = SenderFixture::new();
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
    fixture.command(SenderCommand::AddEndpoint(Box::new(endpoint)));
    let spec = SenderPublicationSpec {
        endpoint: EndpointId(10),
        id: PublicationId(3),
        ..fixture.publication_spec()
    };
    fixture.command(SenderCommand::AddPublication(Box::new(
        SenderPublication::new(spec),
    )));
    fixture.cycle();
    fixture.cycle();
    assert_eq!(socket.destinations(), [Some(address)]);
    fixture.cycle_after(5_001 * MS);
    assert!(matches!(
        fixture.events.try_recv(),
        Some(ConductorEvent::ReResolveEndpoint(EndpointId(10)))
    ));
    fixture.command(SenderCommand::ChangeDestination {
        destination: None,
        endpoint: EndpointId(10),
        address: peer(),
    });
    socket.sent();
    fixture.cycle_after(101 * MS);
    assert_eq!(socket.destinations(), [Some(peer())]);
}

#[test]
fn peer_moved_to_unreachable_address_is_sent_to_explicitly() {
    let mut fixture = SenderFixture::new();
    let moved = "10.0.0.99:4040".parse().unwrap();
    fixture.socket.set_broken(true);
    fixture.command(SenderCommand::ChangeDestination {
        destination: None,
        endpoint: ENDPOINT,
        address: moved,
    });
    fixture.cycle_after(101 * MS);
    fixture.socket.set_broken(false);
    fixture.socket.sent();
    fixture.cycle_after(101 * MS);
    assert_eq!(fixture.socket.destinations(), [Some(moved)]);
}

#[test]
fn status_messages_of_unknown_streams_do_not_delay_re_resolution() {
    let mut fixture = SenderFixture::with_endpoint(|endpoint| {
        endpoint.re_resolution_timeout_ns = Some(5_000 * MS);
    });
    let silent_named = |fixture: &mut SenderFixture| {
        matches!(
            fixture.events.try_recv(),
            Some(ConductorEvent::ReResolveEndpoint(ENDPOINT))
        )
    };
    for _ in 0..6 {
        fixture.status(START, 32_768);
        fixture.cycle_after(1_000 * MS);
    }
    assert!(!silent_named(&mut fixture), "its receiver is there");
    let unknown_stream = StatusMessage {
        session_id: (SESSION + 1).into(),
        ..fixture.status_message(RECEIVER, 0, START, 32_768)
    };
    for _ in 0..6 {
        fixture.socket.arrive(unknown_stream.as_bytes());
        fixture.cycle_after(1_000 * MS);
    }
    assert!(silent_named(&mut fixture));
}

#[test]
fn too_many_receivers_is_an_error() {
    for is_slowest in [false, true] {
        let mut fixture = SenderFixture::with(|spec| {
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
            assert_eq!(fixture.errors.count(), i64::from(id > 1_024), "{id}");
            fixture.status_of(id, 0, START, 32_768);
            fixture.cycle();
        }
        assert_eq!(fixture.errors.count(), 1);
    }
}
