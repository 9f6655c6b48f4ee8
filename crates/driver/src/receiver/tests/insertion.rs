// SPDX-License-Identifier: Apache-2.0
//! Insertion of datagrams into the term buffer.

use super::*;

#[test]
fn datagram_is_inserted_byte_for_byte() {
    let mut fixture = ReceiverFixture::connected();
    let datagram = data(START, &[37]);
    fixture.arrive(&datagram);
    assert_eq!(fixture.log_bytes(START, 64), datagram);
    assert_eq!(fixture.positions(), (64, 64));
    assert_eq!(fixture.counters.bytes_received.get(), 64);
    assert_eq!(fixture.shared.rebuild_position(), START + 64);
}

#[test]
fn packet_with_padding_advances_by_full_padding_length() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64, 100, -320]));
    assert_eq!(fixture.positions(), (64 + 128 + 320, 64 + 128 + 320));
}

#[test]
fn segment_run_is_inserted_in_one_pass() {
    let mut fixture = ReceiverFixture::connected();
    let run: Vec<u8> = (0..20)
        .flat_map(|index| data(START + index * 1280, &[320; 4]))
        .collect();
    fixture.socket.arrive_batch(&run, 1280);
    fixture.cycle();
    assert_eq!(fixture.log_bytes(START, 25_600), run);
    assert_eq!(fixture.positions(), (25_600, 25_600));
}

#[test]
fn segment_run_across_term_end_is_split() {
    let mut fixture =
        ReceiverFixture::connected_with(|spec| spec.join_position = 2 * 65_536 - 2560);
    fixture.subscriber.set(2 * 65_536 - 2560);
    let run: Vec<u8> = (0..4)
        .flat_map(|index| data(2 * 65_536 - 2560 + index * 1280, &[1280]))
        .collect();
    fixture.socket.arrive_batch(&run, 1280);
    fixture.cycle();
    assert_eq!(fixture.rebuild_position.get(), 2 * 65_536 + 2560);
    assert_eq!(fixture.log_bytes(2 * 65_536 - 2560, 2560), run[..2560]);
    assert_eq!(fixture.log_bytes(2 * 65_536, 2560), run[2560..]);
}

#[test]
fn segment_run_with_duplicate_part_inserts_remainder() {
    let mut fixture = ReceiverFixture::connected();
    let middle = data(START + 128, &[128]);
    fixture.arrive(&middle);
    assert_eq!(fixture.positions(), (256, 0));
    let mut run: Vec<u8> = (0..4)
        .flat_map(|index| data(START + index * 128, &[128]))
        .collect();
    let expected = run.clone();
    run[128 + 40] ^= 0xFF;
    fixture.socket.arrive_batch(&run, 128);
    fixture.cycle();
    assert_eq!(
        fixture.log_bytes(START, 512),
        expected,
        "the first copy wins"
    );
    assert_eq!(fixture.positions(), (512, 512));
}

#[test]
fn segment_run_with_invalid_datagram_keeps_others() {
    let mut fixture = ReceiverFixture::connected();
    let mut run: Vec<u8> = (0..4)
        .flat_map(|index| data(START + index * 128, &[128]))
        .collect();
    run[128] = 200;
    fixture.socket.arrive_batch(&run, 128);
    fixture.cycle();
    assert_eq!(fixture.positions(), (512, 128));
    assert_eq!(fixture.counters.invalid_packets.get(), 1);
}

#[test]
fn out_of_order_packets_are_rebuilt_in_order() {
    let mut fixture = ReceiverFixture::connected();
    for (index, expected) in [(2, (384, 0)), (0, (384, 128)), (1, (384, 384))] {
        fixture.arrive(&data(START + index * 128, &[128]));
        assert_eq!(fixture.positions(), expected);
    }
}

#[test]
fn duplicate_packet_changes_nothing() {
    let mut fixture = ReceiverFixture::connected();
    let datagram = data(START, &[128]);
    fixture.arrive(&datagram);
    let mut forged = datagram.clone();
    forged[64] ^= 0xFF;
    fixture.arrive(&forged);
    assert_eq!(fixture.log_bytes(START, 128), datagram);
    assert_eq!(fixture.positions(), (128, 128));
}

#[test]
fn packet_beyond_half_term_is_over_run() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 32_768 - 128, &[128]));
    assert_eq!(
        (fixture.counters.over_runs.get(), fixture.positions()),
        (0, (32_768, 0))
    );
    fixture.arrive(&data(START + 32_768, &[32]));
    fixture.heartbeat(0xC0, START + 65_536 + 32);
    assert_eq!(
        (fixture.counters.over_runs.get(), fixture.positions()),
        (2, (32_768, 0))
    );
    assert_eq!(fixture.counters.heartbeats_received.get(), 0);
}

#[test]
fn heartbeat_between_over_run_threshold_and_end_of_term_is_over_run_if_data_was_dropped() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[1024]));
    let threshold = START + 32_768;
    fixture.arrive(&data(threshold, &[32]));
    fixture.heartbeat(0xC0, threshold);
    assert_eq!(fixture.positions(), (32_768, 1024));
    for position in [threshold + 32, 2 * 65_536 - 32, 2 * 65_536 + 32] {
        fixture.heartbeat(0xC0, position);
    }
    assert_eq!(fixture.counters.over_runs.get(), 4);
    assert_eq!(fixture.counters.heartbeats_received.get(), 1);
    assert_eq!(fixture.positions(), (32_768, 1024));
}

#[test]
fn heartbeat_beyond_over_run_threshold_announces_lost_padding_if_no_data_was_dropped() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[32_768 - 32]));
    fixture.heartbeat(0xC0, START + 32_768 - 32 + 544);
    fixture.heartbeat(0xC0, 2 * 65_536 + 32);
    assert_eq!(
        (
            fixture.counters.over_runs.get(),
            fixture.counters.heartbeats_received.get()
        ),
        (1, 1),
        "only padding up to the end of the term can lead beyond the window"
    );
    assert_eq!(
        fixture.positions(),
        (32_768 - 32 + 544, 32_768 - 32),
        "the padding is missing"
    );
}

#[test]
fn data_far_beyond_window_does_not_hide_lost_padding() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[32_768 - 32]));
    // No sender that has sent up to here comes from the window to there.
    fixture.arrive(&data(START + 3 * 65_536, &[32]));
    fixture.heartbeat(0xC0, START + 3 * 65_536);
    assert_eq!(fixture.counters.over_runs.get(), 2);
    fixture.heartbeat(0xC0, START + 32_768 - 32 + 544);
    assert_eq!(fixture.counters.heartbeats_received.get(), 1);
    assert_eq!(
        fixture.positions(),
        (32_768 - 32 + 544, 32_768 - 32),
        "the padding is missing"
    );
}

#[test]
fn over_run_heartbeats_do_not_keep_image_alive() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[1024]));
    fixture.arrive(&data(START + 32_768, &[1024]));
    for _ in 0..=20 {
        fixture.sent_after(500 * MS);
        fixture.heartbeat(0xC0, START + 32_768 + 1024);
    }
    fixture.sent_after(500 * MS);
    assert!(fixture.shared.is_timed_out());
    assert_eq!(fixture.positions(), (1024, 1024), "nothing is repaired");
}

#[test]
fn padding_at_window_edge_may_extend_beyond_window() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[32_768 - 32, -4096]));
    assert_eq!(
        fixture.positions(),
        (32_768 - 32 + 4096, 32_768 - 32 + 4096)
    );
    fixture.heartbeat(0xC0, START + 32_768 - 32 + 4096);
    assert_eq!(
        (
            fixture.counters.over_runs.get(),
            fixture.counters.heartbeats_received.get()
        ),
        (0, 1)
    );
}

#[test]
fn lost_padding_beyond_window_counts_as_missing() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[32_768 - 1024]));
    let end_of_term = 131_072;
    fixture.heartbeat(0xC0, end_of_term);
    assert_eq!(
        (
            fixture.counters.over_runs.get(),
            fixture.counters.heartbeats_received.get()
        ),
        (0, 1)
    );
    assert_eq!(fixture.positions(), (end_of_term - START, 32_768 - 1024));
}

#[test]
fn packet_before_last_status_message_is_under_run() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START - 128, &[128]));
    assert_eq!(fixture.counters.under_runs.get(), 1);
    fixture.heartbeat(0xC0, START - 65_536);
    assert_eq!(
        fixture.counters.under_runs.get(),
        1,
        "a heartbeat may be a term behind"
    );
    fixture.heartbeat(0xC0, START - 65_536 - 32);
    assert_eq!(
        (
            fixture.counters.under_runs.get(),
            fixture.counters.heartbeats_received.get()
        ),
        (2, 1)
    );
}

#[test]
fn packet_before_initial_term_is_dropped() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(-65_536, &[128]));
    fixture.heartbeat(0xC0, -32);
    assert_eq!(
        (
            fixture.counters.under_runs.get(),
            fixture.counters.over_runs.get()
        ),
        (0, 0)
    );
    assert_eq!(fixture.positions(), (0, 0));
}

#[test]
fn inconsistent_frames_are_invalid() {
    let mut fixture = ReceiverFixture::connected();
    let good = data(START, &[64, 64]);
    let change = |at: usize, value: u8| {
        let mut datagram = good.clone();
        datagram[at] = value;
        datagram
    };
    // Frame length, length of the second frame, inconsistent offset, unaligned offset, different type in the second
    // frame.
    for bad in [
        change(0, 96),
        change(64, 96),
        change(72, 32),
        change(8, 1),
        change(70, 5),
    ] {
        fixture.arrive(&bad);
    }
    assert_eq!(fixture.counters.invalid_packets.get(), 5);
    assert_eq!(fixture.positions().0, 0);
}

/// Returns an image that joined in mid-term and received nearly all that fits while the conductor frees nothing, and
/// the position at which free memory ends.
fn stalled_in_mid_term() -> (ReceiverFixture, i64) {
    let join = 65_536 + 32_768;
    let mut fixture = ReceiverFixture::connected_with(|spec| spec.join_position = join);
    fixture.shared.conductor_free_position(join);
    let mut end = join;
    for _ in 0..400 {
        fixture.subscriber.set(end);
        fixture.cycle();
        if end + 2048 <= fixture.shared.status_position().max(join) + 32_768 {
            fixture.arrive(&data(end, &[1024]));
            end += 1024;
        }
    }
    assert_eq!(fixture.rebuild_position.get(), end);
    (fixture, join + 3 * 65_536)
}

#[test]
fn padding_beyond_reuse_limit_is_over_run_until_memory_is_free() {
    let (mut fixture, needed) = stalled_in_mid_term();
    let end = fixture.rebuild_position.get();
    let end_of_term = 5 * 65_536;
    assert!(end < needed && needed < end_of_term);
    let padding = data(end, &[(end - end_of_term) as i32]);
    fixture.arrive(&padding);
    fixture.heartbeat(0xC0, end_of_term);
    assert_eq!(fixture.counters.over_runs.get(), 2);
    assert_eq!(
        (
            fixture.high_water_mark.get(),
            fixture.rebuild_position.get()
        ),
        (end, end)
    );
    fixture
        .shared
        .conductor_free_position(fixture.shared.status_position() - 65_536);
    fixture.heartbeat(0xC0, end_of_term);
    assert_eq!(
        (
            fixture.high_water_mark.get(),
            fixture.rebuild_position.get()
        ),
        (end_of_term, end)
    );
    fixture.arrive(&padding);
    assert_eq!(fixture.rebuild_position.get(), end_of_term);
}

#[test]
fn frame_must_end_before_last_free_slot() {
    let (mut fixture, needed) = stalled_in_mid_term();
    let end = fixture.rebuild_position.get();
    let room = (needed - end) as i32;
    // This slot would be cleared, but may still be read.
    fixture.arrive(&data(end, &[-room]));
    assert_eq!(fixture.high_water_mark.get(), end);
    fixture.arrive(&data(end, &[32 - room]));
    assert_eq!(fixture.high_water_mark.get(), needed - 32);
}

#[test]
fn frame_longer_than_its_segment_is_invalid() {
    let mut fixture = ReceiverFixture::connected();
    // The first frame claims 128 bytes, of which 64 arrived; the second continues where it would end.
    let mut run = data(START, &[128]);
    assert_eq!(run.len(), 128);
    let inner = data(START + 64, &[64]);
    run[64..].copy_from_slice(&inner);
    fixture.socket.arrive_batch(&run, 64);
    fixture.cycle();
    assert_eq!(fixture.counters.invalid_packets.get(), 1);
    assert_eq!(fixture.frame_at(START), None);
    assert_eq!(fixture.log_bytes(START + 64, 64), inner);
    assert_eq!(fixture.positions(), (128, 0));
}

#[test]
fn segment_behind_heartbeat_is_inserted() {
    let mut fixture = ReceiverFixture::connected();
    let heartbeat = DataHeader::heartbeat(0xC0, SESSION, STREAM, INITIAL_TERM + 1, 192);
    let follower = data(START + 32, &[32]);
    fixture
        .socket
        .arrive_batch(&[heartbeat.as_bytes(), &follower].concat(), 32);
    fixture.cycle();
    assert_eq!(fixture.counters.heartbeats_received.get(), 1);
    assert_eq!(fixture.log_bytes(START + 32, 32), follower);
}

#[test]
fn slot_behind_last_frame_is_zero() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.frame_at(START + 64), None);
    let run: Vec<u8> = [data(START + 64, &[1024]), data(START + 1088, &[1024])].concat();
    fixture.socket.arrive_batch(&run, 1024);
    fixture.cycle();
    assert_eq!(fixture.positions(), (2112, 2112));
    assert_eq!(fixture.frame_at(START + 2112), None);
}

#[test]
fn slots_in_gap_and_behind_next_frame_are_zero() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 256, &[64]));
    for slot in [0, 32, 224, 320] {
        assert_eq!(fixture.frame_at(START + slot), None, "{slot}");
    }
    // In pieces of different sizes, from the end.
    fixture.arrive(&data(START + 96, &[160]));
    fixture.arrive(&data(START + 32, &[64]));
    assert_eq!(
        (fixture.frame_at(START), fixture.positions()),
        (None, (320, 0))
    );
    fixture.arrive(&data(START, &[32]));
    assert_eq!(fixture.positions(), (320, 320));
}

#[test]
fn first_slot_of_next_term_is_zero() {
    let end_of_term = 2 * 65_536;
    let mut fixture = ReceiverFixture::connected_with(|spec| spec.join_position = end_of_term - 64);
    fixture.subscriber.set(end_of_term - 64);
    fixture.arrive(&data(end_of_term - 64, &[64]));
    assert_eq!(fixture.rebuild_position.get(), end_of_term);
    assert_eq!(fixture.frame_at(end_of_term), None);
    // Across a gap that begins there.
    fixture.arrive(&data(end_of_term + 64, &[64]));
    assert_eq!(fixture.frame_at(end_of_term), None);
    assert_eq!(fixture.frame_at(end_of_term + 128), None);
}

#[test]
fn gap_before_heartbeat_position_ignores_stale_frames() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.arrive(&data(START + 96, &[32]));
    fixture.heartbeat(0xC0, START + 320);
    assert_eq!(fixture.positions(), (320, 64));
    fixture.arrive(&data(START + 64, &[32]));
    assert_eq!(fixture.positions(), (320, 128));
    // A segment run that arrives late.
    let run: Vec<u8> = [data(START + 128, &[96]), data(START + 224, &[96])].concat();
    fixture.socket.arrive_batch(&run, 96);
    fixture.cycle();
    assert_eq!(fixture.positions(), (320, 320));
    assert_eq!(fixture.frame_at(START + 320), None);
}

#[test]
fn frame_far_ahead_is_inserted_on_retransmission() {
    let term_length = 64 << 20;
    let spec = LogSpec::new(LogKind::Image, SESSION, STREAM, INITIAL_TERM, term_length);
    let region = Region::anonymous(spec.file_length()).unwrap();
    let log = LogBuffers::create(&region, &spec, 0).unwrap();
    let mut fixture = ReceiverFixture::new();
    fixture.shared = Arc::new(ImageShared::new(0, WINDOW));
    fixture.log = log.clone();
    fixture.connect(|spec| spec.join_position = 0);
    fixture.subscriber.set(0);
    let ahead = 20 << 20;
    let mut datagram = data(ahead, &[64]);
    // Position in a term of that length.
    datagram[8..12].copy_from_slice(&(ahead as i32).to_le_bytes());
    datagram[20..24].copy_from_slice(&INITIAL_TERM.to_le_bytes());
    let term = log.term(0);
    for attempt in 1..=2 {
        assert_eq!(term.bytes(ahead as usize, 4), [32, 0, 0, 0], "{attempt}");
        fixture.arrive(&datagram);
        assert_eq!(fixture.high_water_mark.get(), ahead + 64);
        assert_eq!(
            fixture.rebuild_position.get(),
            START,
            "unchanged since the test set it"
        );
    }
    assert_eq!(term.bytes(ahead as usize, 64), datagram);
    assert!((0..ahead as usize).all(|at| at % 32 >= 4 || term.bytes(at, 1) == [0]));
    assert_eq!(term.bytes(ahead as usize + 64, 4), [0; 4]);
}

#[test]
fn datagram_overlapping_rebuild_position_inserts_tail() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.arrive(&data(START + 192, &[64]));
    assert_eq!(fixture.positions(), (256, 64));
    let whole = data(START, &[64, 64, 64, 64]);
    fixture.arrive(&whole);
    assert_eq!(fixture.positions(), (256, 256));
    assert_eq!(fixture.log_bytes(START + 64, 128), whole[64..192]);
}

#[test]
fn datagram_overlapping_status_position_inserts_tail() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64, 64]));
    fixture.subscriber.set(START + 128);
    fixture.sent_after(500 * MS);
    let whole = data(START + 64, &[64, 64, 64]);
    fixture.arrive(&whole);
    assert_eq!(fixture.positions(), (256, 256));
    assert_eq!(fixture.log_bytes(START + 128, 128), whole[64..]);
    assert_eq!(fixture.counters.under_runs.get(), 0);
    fixture.arrive(&whole);
    assert_eq!(
        fixture.counters.under_runs.get(),
        1,
        "nothing of it is missing"
    );
}

#[test]
fn datagram_overlapping_out_of_order_frame_inserts_tail() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 64, &[64]));
    fixture.arrive(&data(START + 192, &[64]));
    fixture.arrive(&data(START + 64, &[64, 64]));
    assert_eq!(fixture.positions(), (256, 0));
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.positions(), (256, 256));
}

#[test]
fn datagram_with_known_data_inserts_trailing_padding() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[64]));
    fixture.arrive(&data(START, &[64, -320]));
    assert_eq!(fixture.positions(), (384, 384));
    assert_eq!(fixture.frame_at(START + 64), Some(320));
    assert_eq!(fixture.frame_at(START + 384), None);
}
