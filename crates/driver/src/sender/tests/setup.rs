//! SETUP and heartbeats: what a stream says of itself.

use super::*;

const SETUP: &str = "28 00 00 00 00 00 05 00  c0 00 00 00 4d 3c 2b 1a
                     e9 03 00 00 64 00 00 00  65 00 00 00 00 00 01 00
                     80 05 00 00 00 00 00 00";

#[test]
fn the_first_turn_sends_the_setup_of_the_worked_example() {
    assert_eq!(Rig::new().sent(), [hex(SETUP)]);
}

#[test]
fn setup_tells_group_response_and_ttl() {
    let mut rig = Rig::with(|spec| {
        spec.is_group = true;
        spec.wants_response = true;
        spec.ttl = 9;
    });
    let mut expected = hex(SETUP);
    expected[5] = 0xC0;
    expected[36] = 9;
    assert_eq!(rig.sent(), [expected]);
}

#[test]
fn setup_repeats_strictly_after_100_ms_until_a_receiver_speaks() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        assert_eq!(rig.sent(), [hex(SETUP)]);
        rig.now_ns += 100 * MS;
        assert_eq!(rig.sent(), [[0; 0]; 0]);
        rig.now_ns += 1;
    }
    rig.status(START, 32_768);
    rig.cycle();
    rig.now_ns += 101 * MS;
    let sent = rig.sent();
    assert_eq!(sent.len(), 1);
    assert_ne!(sent[0], hex(SETUP));
}

#[test]
fn an_elicited_setup_is_sent_once_while_there_is_a_receiver() {
    let mut rig = Rig::connected(32_768);
    rig.now_ns += 200 * MS;
    rig.status_of(RECEIVER, StatusMessage::SEND_SETUP, 100 << 16, 0);
    rig.socket.arrive(&hex(
        "24 00 00 00 00 80 03 00  4d 3c 2b 1a e9 03 00 00  00 00 00 00 00 00 00 00
                            00 00 00 00 88 77 66 55  44 33 22 11",
    ));
    rig.cycle();
    assert_eq!(rig.sent(), [hex(SETUP)]);
    rig.now_ns += 101 * MS;
    assert_eq!(rig.sent().iter().filter(|frame| frame[6] == 5).count(), 0);
    assert_eq!(rig.counters.status_messages_rejected.get(), 0);
}

#[test]
fn without_a_receiver_elicited_setups_keep_flowing() {
    let mut rig = Rig::connected(32_768);
    rig.cycle_after(6_000 * MS);
    assert!(!rig.shared.has_receivers());
    rig.status_of(RECEIVER, StatusMessage::SEND_SETUP, 0, 0);
    rig.cycle();
    for _ in 0..3 {
        rig.now_ns += 101 * MS;
        assert_eq!(rig.sent().iter().filter(|frame| frame[6] == 5).count(), 1);
    }
}

#[test]
fn an_ended_stream_answers_no_setup_request() {
    let mut rig = Rig::connected(32_768);
    rig.shared.conductor_end_of_stream();
    rig.status_of(RECEIVER, StatusMessage::SEND_SETUP, 0, 0);
    rig.cycle_after(200 * MS);
    assert_eq!(rig.sent().iter().filter(|frame| frame[6] == 5).count(), 0);
}

/// Heartbeat of the worked example, at 256.
fn heartbeat(flags: u8) -> Vec<u8> {
    let mut frame = hex("00 00 00 00 00 c0 01 00  00 01 00 00 4d 3c 2b 1a
                         e9 03 00 00 65 00 00 00  00 00 00 00 00 00 00 00");
    frame[5] = flags;
    frame
}

#[test]
fn a_quiet_stream_sends_the_heartbeat_of_the_worked_example() {
    let mut rig = Rig::connected(32_768);
    rig.publish(64);
    rig.cycle();
    rig.socket.sent();
    let before = rig.counters.heartbeats_sent.get();
    rig.now_ns += 100 * MS;
    assert_eq!(rig.sent(), [[0; 0]; 0]);
    rig.now_ns += 1;
    assert_eq!(rig.sent(), [heartbeat(0xC0)]);
    rig.now_ns += 101 * MS;
    rig.shared.conductor_end_of_stream();
    assert_eq!(rig.sent(), [heartbeat(0xE0)]);
    rig.now_ns += 101 * MS;
    rig.shared.conductor_revoke();
    assert_eq!(rig.sent(), [heartbeat(0xF0)]);
    assert_eq!(rig.counters.heartbeats_sent.get(), before + 3);
    // 64 bytes of data, and the heartbeat that followed the first status message.
    assert_eq!(rig.counters.bytes_sent.get(), 64 + 4 * 32);
}

#[test]
fn a_stream_that_shall_not_signal_its_end_does_not() {
    let mut rig = Rig::with(|spec| spec.signals_end_of_stream = false);
    rig.connect(32_768);
    rig.shared.conductor_end_of_stream();
    rig.now_ns += 101 * MS;
    assert_eq!(rig.sent()[0][5], 0xC0);
}

#[test]
fn a_stream_without_a_receiver_ever_has_no_heartbeat() {
    let mut rig = Rig::new();
    for _ in 0..10 {
        rig.cycle_after(150 * MS);
    }
    assert_eq!(rig.counters.heartbeats_sent.get(), 0);
}

#[test]
fn data_takes_the_place_of_heartbeats() {
    let mut rig = Rig::connected(32_768);
    for _ in 0..5 {
        rig.now_ns += 90 * MS;
        rig.publish(64);
        let sent = rig.sent();
        assert_eq!((sent.len(), sent[0].len()), (1, 64));
    }
}
