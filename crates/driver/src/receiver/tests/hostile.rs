// SPDX-License-Identifier: Apache-2.0
//! Malicious datagrams and malicious changes of shared memory.

use taran_core::sync::Ordering;

use super::*;

#[test]
fn garbage_only_increments_invalid_packets() {
    let mut fixture = ReceiverFixture::connected();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..10_000 {
        let mut datagram: Vec<u8> = (0..random.usize(0..200)).map(|_| random.u8(..)).collect();
        if let Some(version) = datagram.get_mut(4) {
            // Never the current version, so that every datagram is garbage.
            *version |= 1;
        }
        fixture.arrive(&datagram);
    }
    assert_eq!(fixture.counters.invalid_packets.get(), 10_000);
    assert_eq!((fixture.positions().0, fixture.errors.count()), (0, 0));
    assert_eq!(fixture.socket.sent(), NOTHING);
    assert!(fixture.event().is_none());
}

#[test]
fn mutated_datagrams_do_not_exceed_window() {
    let mut fixture = ReceiverFixture::connected();
    let mut random = fastrand::Rng::with_seed(8);
    let good = [
        data(START, &[64, 128, -320]),
        setup().as_bytes().to_vec(),
        data(START + 512, &[1000]),
    ];
    for _ in 0..20_000 {
        let mut datagram = random.choice(&good).unwrap().clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..datagram.len());
            datagram[at] = random.u8(..);
        }
        datagram.truncate(random.usize(..=datagram.len()));
        fixture.socket.arrive_batch(&datagram, random.usize(1..200));
        fixture.now_ns += 1_000;
        fixture.cycle();
        while fixture.event().is_some() {}
        fixture.socket.sent();
    }
    let end = fixture.high_water_mark.get();
    assert!(end <= START + 32_768, "{end}");
}

#[test]
fn invented_sessions_elicit_bounded_number_of_setups() {
    let mut fixture = ReceiverFixture::new();
    for session_id in 0..10_000 {
        fixture.arrive(&data_of(session_id, STREAM, START, &[32]));
    }
    assert_eq!(fixture.socket.sent().len(), 1024);
}

#[test]
fn corrupt_frame_in_log_stops_image_and_is_reported() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 64, &[128]));
    let offset = geometry().term_offset(START) as usize;
    fixture
        .log
        .term_at(START)
        .atomic_i32(offset)
        .store(i32::MAX, Ordering::Release);
    for _ in 0..10 {
        fixture.arrive(&data(START + 192, &[64]));
        fixture.now_ns += MS;
    }
    assert_eq!(fixture.positions().1, 0);
    assert_eq!(fixture.errors.count(), 1);
}

#[test]
fn heartbeat_at_window_end_sends_one_nak() {
    let mut fixture = ReceiverFixture::connected();
    fixture.heartbeat(0xC0, START + 32_768);
    let sent = fixture.sent_after(1_000);
    assert_eq!(sent[0][6], 2, "a NAK");
    assert_eq!(fixture.positions(), (32_768, 0));
}

#[test]
fn overlapping_frames_keep_positions_consistent() {
    let mut fixture = ReceiverFixture::connected();
    let mut second = data(START + 128, &[256]);
    // Bytes in the middle of its payload look like a frame of 4096 bytes.
    second[32..36].copy_from_slice(&4096_i32.to_le_bytes());
    second[38..40].copy_from_slice(&1_u16.to_le_bytes());
    fixture.arrive(&second);
    fixture.arrive(&data(START, &[160]));
    assert_eq!(fixture.positions(), (160 + 4096, 160 + 4096));
}

#[test]
fn overlapping_frames_expose_no_stale_frame() {
    let mut fixture = ReceiverFixture::connected();
    // Bytes in the middle of the first look like a frame that ends far beyond it.
    let mut first = data(START + 32, &[128]);
    first[32..64].copy_from_slice(&data(START + 64, &[4_096])[..32]);
    fixture.arrive(&first);
    fixture.arrive(&data(START, &[64]));
    let end = START + 64 + 4_096;
    assert_eq!(fixture.positions(), (end - START, end - START));
    assert_eq!(fixture.frame_at(end), None, "readers find no stale frame");
    fixture.arrive(&data(end, &[64]));
    assert_eq!(fixture.positions(), (end + 64 - START, end + 64 - START));
    assert_eq!(fixture.frame_at(end + 64), None);
}

/// Sends a frame of 128 bytes at `START + 32`, and then one of 64 bytes at `START` that ends inside it, at bytes that
/// look like a frame of this length.
fn insert_overlapping(fixture: &mut ReceiverFixture, length: i32) {
    let mut first = data(START + 32, &[128]);
    first[32..].fill(0);
    first[32..36].copy_from_slice(&length.to_le_bytes());
    fixture.socket.arrive(&first);
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.positions(), (160, 64));
}

#[test]
fn negative_length_in_gap_is_repaired_by_retransmission() {
    let mut fixture = ReceiverFixture::connected();
    insert_overlapping(&mut fixture, -1);
    fixture.now_ns += MS;
    fixture.arrive(&data(START + 64, &[96]));
    assert_eq!(fixture.positions(), (160, 160));
    assert_eq!(fixture.frame_at(START + 64), Some(96));
}

#[test]
fn negative_length_in_gap_is_filled_if_unreliable() {
    let mut fixture =
        ReceiverFixture::connected_with(|spec| spec.nak_delay = NakDelaySpec::Unreliable);
    insert_overlapping(&mut fixture, i32::MIN);
    fixture.settle();
    assert_eq!(fixture.positions(), (160, 160));
    assert_eq!(fixture.frame_at(START + 64), Some(96));
}

#[test]
fn unfillable_gap_causes_no_further_work() {
    let mut fixture =
        ReceiverFixture::connected_with(|spec| spec.nak_delay = NakDelaySpec::Unreliable);
    insert_overlapping(&mut fixture, i32::MAX);
    fixture.settle();
    assert_eq!(fixture.positions(), (160, 64));
    assert_eq!(fixture.errors.count(), 1);
}

#[test]
fn duplicate_inside_rebuilt_frame_is_not_written() {
    let mut fixture = ReceiverFixture::connected();
    let mut frame = data(START, &[128]);
    frame[32..].fill(0);
    fixture.arrive(&frame);
    // A frame would fit into its payload.
    fixture.arrive(&data(START + 64, &[64]));
    assert_eq!(fixture.log_bytes(START, 128), frame);
    assert_eq!(fixture.positions(), (128, 128));
}

#[test]
fn duplicate_inside_rebuilt_frame_in_same_cycle_is_not_written() {
    let mut fixture = ReceiverFixture::connected();
    let mut second = data(START + 64, &[128]);
    second[32..].fill(0);
    fixture.socket.arrive(&second);
    // With this one, readers can reach both.
    fixture.socket.arrive(&data(START, &[64]));
    fixture.socket.arrive(&data(START + 128, &[64]));
    fixture.cycle();
    assert_eq!(fixture.log_bytes(START + 64, 128), second);
    assert_eq!(fixture.positions(), (192, 192));
}

#[test]
fn late_data_does_not_overwrite_gap_padding() {
    let mut fixture =
        ReceiverFixture::connected_with(|spec| spec.nak_delay = NakDelaySpec::Unreliable);
    fixture.arrive(&data(START + 128, &[64]));
    fixture.settle();
    assert_eq!(fixture.positions(), (192, 192));
    let before = fixture.log_bytes(START, 192);
    fixture.arrive(&data(START + 64, &[64]));
    assert_eq!(fixture.log_bytes(START, 192), before);
}
