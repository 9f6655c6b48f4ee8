// SPDX-License-Identifier: Apache-2.0
//! SETUP and heartbeats: what a stream says of itself.

use super::*;

const SETUP: &str = "28 00 00 00 00 00 05 00  c0 00 00 00 4d 3c 2b 1a
                     e9 03 00 00 64 00 00 00  65 00 00 00 00 00 01 00
                     80 05 00 00 00 00 00 00";

#[test]
fn first_cycle_sends_setup_of_worked_example() {
    assert_eq!(SenderFixture::new().sent(), [hex(SETUP)]);
}

#[test]
fn setup_contains_group_response_and_ttl() {
    let mut fixture = SenderFixture::with(|spec| {
        spec.is_group = true;
        spec.wants_response = true;
        spec.ttl = 9;
    });
    let mut expected = hex(SETUP);
    expected[5] = 0xC0;
    expected[36] = 9;
    assert_eq!(fixture.sent(), [expected]);
}

#[test]
fn setup_repeats_after_100_ms_until_first_status_message() {
    let mut fixture = SenderFixture::new();
    for _ in 0..3 {
        assert_eq!(fixture.sent(), [hex(SETUP)]);
        fixture.now_ns += 100 * MS;
        assert_eq!(fixture.sent(), [[0; 0]; 0]);
        fixture.now_ns += 1;
    }
    fixture.status(START, 32_768);
    fixture.cycle();
    fixture.now_ns += 101 * MS;
    let sent = fixture.sent();
    assert_eq!(sent.len(), 1);
    assert_ne!(sent[0], hex(SETUP));
}

#[test]
fn elicited_setup_with_receiver_is_sent_once() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.now_ns += 200 * MS;
    fixture.status_of(RECEIVER, StatusMessage::SEND_SETUP, 100 << 16, 0);
    fixture.socket.arrive(&hex(
        "24 00 00 00 00 80 03 00  4d 3c 2b 1a e9 03 00 00  00 00 00 00 00 00 00 00
                            00 00 00 00 88 77 66 55  44 33 22 11",
    ));
    fixture.cycle();
    assert_eq!(fixture.sent(), [hex(SETUP)]);
    fixture.now_ns += 101 * MS;
    assert_eq!(
        fixture.sent().iter().filter(|frame| frame[6] == 5).count(),
        0
    );
    assert_eq!(fixture.counters.status_messages_rejected.get(), 0);
}

#[test]
fn elicited_setup_without_receiver_repeats() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.cycle_after(6_000 * MS);
    assert!(!fixture.shared.has_receivers());
    fixture.status_of(RECEIVER, StatusMessage::SEND_SETUP, 0, 0);
    fixture.cycle();
    for _ in 0..3 {
        fixture.now_ns += 101 * MS;
        assert_eq!(
            fixture.sent().iter().filter(|frame| frame[6] == 5).count(),
            1
        );
    }
}

#[test]
fn setup_request_after_end_of_stream_is_ignored() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.shared.conductor_end_of_stream();
    fixture.status_of(RECEIVER, StatusMessage::SEND_SETUP, 0, 0);
    fixture.cycle_after(200 * MS);
    assert_eq!(
        fixture.sent().iter().filter(|frame| frame[6] == 5).count(),
        0
    );
}

/// Heartbeat of the worked example, at 256.
fn heartbeat(flags: u8) -> Vec<u8> {
    let mut frame = hex("00 00 00 00 00 c0 01 00  00 01 00 00 4d 3c 2b 1a
                         e9 03 00 00 65 00 00 00  00 00 00 00 00 00 00 00");
    frame[5] = flags;
    frame
}

#[test]
fn idle_stream_sends_heartbeat_of_worked_example() {
    let mut fixture = SenderFixture::connected(32_768);
    fixture.publish(64);
    fixture.cycle();
    fixture.socket.sent();
    let before = fixture.counters.heartbeats_sent.get();
    fixture.now_ns += 100 * MS;
    assert_eq!(fixture.sent(), [[0; 0]; 0]);
    fixture.now_ns += 1;
    assert_eq!(fixture.sent(), [heartbeat(0xC0)]);
    fixture.now_ns += 101 * MS;
    fixture.shared.conductor_end_of_stream();
    assert_eq!(fixture.sent(), [heartbeat(0xE0)]);
    fixture.now_ns += 101 * MS;
    fixture.shared.conductor_revoke();
    assert_eq!(fixture.sent(), [heartbeat(0xF0)]);
    assert_eq!(fixture.counters.heartbeats_sent.get(), before + 3);
    // 64 bytes of data, and the heartbeat that followed the first status message.
    assert_eq!(fixture.counters.bytes_sent.get(), 64 + 4 * 32);
}

#[test]
fn end_of_stream_flag_is_omitted_if_disabled() {
    let mut fixture = SenderFixture::with(|spec| spec.signals_end_of_stream = false);
    fixture.connect(32_768);
    fixture.shared.conductor_end_of_stream();
    fixture.now_ns += 101 * MS;
    assert_eq!(fixture.sent()[0][5], 0xC0);
}

#[test]
fn stream_without_receiver_sends_no_heartbeat() {
    let mut fixture = SenderFixture::new();
    for _ in 0..10 {
        fixture.cycle_after(150 * MS);
    }
    assert_eq!(fixture.counters.heartbeats_sent.get(), 0);
}

#[test]
fn data_replaces_heartbeats() {
    let mut fixture = SenderFixture::connected(32_768);
    for _ in 0..5 {
        fixture.now_ns += 90 * MS;
        fixture.publish(64);
        let sent = fixture.sent();
        assert_eq!((sent.len(), sent[0].len()), (1, 64));
    }
}
