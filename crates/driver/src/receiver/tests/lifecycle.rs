// SPDX-License-Identifier: Apache-2.0
//! End of a stream, and of an image.

use super::*;

/// Returns a status message with EOS at a position.
fn eos_status(position: i64) -> Vec<u8> {
    let mut frame = hex("24 00 00 00 00 40 03 00  4d 3c 2b 1a e9 03 00 00");
    frame.extend(geometry().term_id(position).to_le_bytes());
    frame.extend(geometry().term_offset(position).to_le_bytes());
    frame.extend(hex("00 80 00 00 88 77 66 55  44 33 22 11"));
    frame
}

#[test]
fn complete_stream_is_answered_with_eos_at_once_and_every_200_ms() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.heartbeat(0xE0, START + 64);
    assert_eq!(fixture.log.end_of_stream_position(), START + 64);
    assert!(fixture.shared.is_complete());
    // The position is unchanged: too little was consumed for a new one (docs/spec/wire.md §5.6).
    assert_eq!(fixture.socket.sent(), [eos_status(START)]);
    fixture.heartbeat(0xE0, START + 64);
    assert_eq!(fixture.socket.sent(), NOTHING);
    assert_eq!(fixture.sent_after(200 * MS), NOTHING);
    assert_eq!(fixture.sent_after(1), [eos_status(START)]);
}

#[test]
fn eos_status_message_equals_worked_example() {
    assert_eq!(
        eos_status(65_536 + 256),
        hex(
            "24 00 00 00 00 40 03 00  4d 3c 2b 1a e9 03 00 00  65 00 00 00 00 01 00 00
             00 80 00 00 88 77 66 55  44 33 22 11"
        )
    );
}

#[test]
fn ended_stream_with_gap_is_repaired_before_eos() {
    let mut fixture = ReceiverFixture::connected();
    fixture.heartbeat(0xE0, START + 64);
    assert!(!fixture.shared.is_complete());
    assert_eq!(fixture.sent_after(1_000)[0][6], 2, "a NAK");
    fixture.arrive(&data(START, &[64]));
    assert!(fixture.shared.is_complete());
    assert_eq!(fixture.socket.sent(), [eos_status(START)]);
}

#[test]
fn draining_image_sends_eos() {
    let mut fixture = ReceiverFixture::connected();
    fixture.shared.conductor_state(ImageState::Draining);
    assert_eq!(fixture.sent_after(1), [eos_status(START)]);
}

#[test]
fn image_without_subscription_sends_eos_and_drops_data() {
    let mut fixture = ReceiverFixture::connected();
    fixture.command(ReceiverCommand::RemoveSubscription {
        endpoint: ENDPOINT,
        stream_id: STREAM,
        session_id: None,
    });
    assert_eq!(fixture.sent_after(1), [eos_status(START)]);
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.positions().0, 0);
    assert_eq!(
        fixture.socket.sent(),
        NOTHING,
        "not even a request for a SETUP"
    );
}

#[test]
fn silent_session_times_out_and_cools_down() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.socket.arrive(setup().as_bytes());
    fixture.sent_after(10_000 * MS);
    assert!(!fixture.shared.is_timed_out(), "not yet");
    fixture.sent_after(1);
    assert!(fixture.shared.is_timed_out());
    assert_eq!(fixture.sent_after(1_000 * MS), NOTHING);
    fixture.arrive(&data(START + 64, &[64]));
    fixture.arrive(setup().as_bytes());
    assert_eq!(fixture.socket.sent(), NOTHING);
    assert!(fixture.event().is_none());
    let (session_id, stream_id) = (SESSION, STREAM);
    fixture.command(ReceiverCommand::RemoveCoolDown {
        endpoint: ENDPOINT,
        session_id,
        stream_id,
    });
    fixture.arrive(setup().as_bytes());
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::CreateImage(_))
    ));
}

#[test]
fn ended_session_does_not_cool_down() {
    let mut fixture = ReceiverFixture::connected();
    fixture.heartbeat(0xE0, START);
    fixture.sent_after(10_001 * MS);
    assert!(fixture.shared.is_timed_out());
    fixture.arrive(setup().as_bytes());
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::CreateImage(_))
    ));
}

#[test]
fn heartbeats_keep_image_alive() {
    let mut fixture = ReceiverFixture::connected();
    for _ in 0..200 {
        fixture.now_ns += 100 * MS;
        fixture.heartbeat(0xC0, START);
    }
    assert!(!fixture.shared.is_timed_out());
    assert_eq!(fixture.counters.heartbeats_received.get(), 200);
}

#[test]
fn heartbeats_behind_padding_beyond_window_keep_image_alive() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[32_768 - 32, -4096]));
    for _ in 0..200 {
        fixture.now_ns += 100 * MS;
        fixture.heartbeat(0xC0, START + 32_768 - 32 + 4096);
    }
    assert!(!fixture.shared.is_timed_out());
}

#[test]
fn heartbeats_beyond_window_without_repair_do_not_keep_image_alive() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    // A sender that follows other receivers only is too far ahead to have what is missing.
    for _ in 0..101 {
        fixture.now_ns += 100 * MS;
        fixture.heartbeat(0xC0, START + 60_000 / 32 * 32);
    }
    assert!(fixture.shared.is_timed_out());
}

#[test]
fn newer_image_silences_older_ended_image() {
    let mut fixture = ReceiverFixture::connected();
    fixture.heartbeat(0xE0, START);
    fixture.socket.sent();
    let shared = Arc::new(ImageShared::new(START, WINDOW));
    let spec = ReceiverImageSpec {
        id: ImageId(6),
        shared,
        ..fixture.image_spec()
    };
    fixture.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
        spec,
    ))));
    let sent = fixture.sent_after(201 * MS);
    assert_eq!((sent.len(), sent[0][5]), (1, 0));
    fixture.command(ReceiverCommand::RemoveImage {
        endpoint: ENDPOINT,
        image: IMAGE,
    });
    assert!(
        matches!(fixture.event(), Some(ConductorEvent::ImageReleased(image)) if image.id() == IMAGE)
    );
    fixture.arrive(&data(START, &[64]));
    assert_eq!(
        fixture.positions(),
        (64, 64),
        "the newer image has the session"
    );
}

#[test]
fn removed_image_is_released_and_session_starts_anew() {
    let mut fixture = ReceiverFixture::connected();
    fixture.command(ReceiverCommand::RemoveImage {
        endpoint: ENDPOINT,
        image: IMAGE,
    });
    let Some(ConductorEvent::ImageReleased(image)) = fixture.event() else {
        panic!("no event");
    };
    assert_eq!((image.id(), image.endpoint()), (IMAGE, ENDPOINT));
    fixture.arrive(setup().as_bytes());
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::CreateImage(_))
    ));
}

#[test]
fn removed_endpoint_releases_its_images() {
    let mut fixture = ReceiverFixture::connected();
    fixture.command(ReceiverCommand::RemoveEndpoint(ENDPOINT));
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::ImageReleased(_))
    ));
    assert!(
        matches!(fixture.event(), Some(ConductorEvent::ReceiveEndpointReleased(endpoint)) if endpoint.id() == ENDPOINT)
    );
    fixture.socket.arrive(&data(START, &[64]));
    assert_eq!(fixture.cycle(), 0);
}

#[test]
fn image_for_unknown_endpoint_is_released() {
    let mut fixture = ReceiverFixture::new();
    let spec = ReceiverImageSpec {
        endpoint: EndpointId(9),
        ..fixture.image_spec()
    };
    fixture.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
        spec,
    ))));
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::ImageReleased(_))
    ));
}
