// SPDX-License-Identifier: Apache-2.0
//! Gap detection, NAKs, gap fill and the loss report.

use taran_core::loss_report;

use super::*;

/// Returns a NAK of a range.
fn nak(position: i64, length: i32) -> Vec<u8> {
    let geometry = geometry();
    let mut frame = hex("1c 00 00 00 00 00 02 00  4d 3c 2b 1a e9 03 00 00");
    frame.extend(geometry.term_id(position).to_le_bytes());
    frame.extend(geometry.term_offset(position).to_le_bytes());
    frame.extend(length.to_le_bytes());
    frame
}

#[test]
fn gap_is_naked_after_delay_and_after_retry_delay() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 64, &[128]));
    assert_eq!(fixture.sent_after(999), NOTHING);
    let example = hex(
        "1c 00 00 00 00 00 02 00  4d 3c 2b 1a e9 03 00 00  65 00 00 00 c0 00 00 00  40 00 00 00",
    );
    assert_eq!(example, nak(START, 64));
    assert_eq!(fixture.sent_after(1), std::slice::from_ref(&example));
    assert_eq!(fixture.sent_after(99_999), NOTHING);
    assert_eq!(fixture.sent_after(1), [example]);
    assert_eq!(
        (fixture.naks.get(), fixture.counters.naks_sent.get()),
        (2, 2)
    );
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.positions(), (192, 192));
    assert_eq!(fixture.sent_after(MS), NOTHING);
}

#[test]
fn gap_closed_within_delay_is_not_naked() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 64, &[128]));
    fixture.now_ns += 500;
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.sent_after(MS), NOTHING);
    assert_eq!(fixture.naks.get(), 0);
}

#[test]
fn heartbeat_reveals_loss_at_end() {
    let mut fixture = ReceiverFixture::connected();
    fixture.heartbeat(0xC0, START + 320);
    assert_eq!(fixture.positions().0, 320);
    assert_eq!(fixture.sent_after(1_000), [nak(START, 320)]);
}

#[test]
fn gaps_are_repaired_in_order() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 64, &[64]));
    fixture.arrive(&data(START + 256, &[64]));
    assert_eq!(fixture.sent_after(1_000), [nak(START, 64)]);
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.sent_after(1_000), [nak(START + 128, 128)]);
}

#[test]
fn nak_never_crosses_term_end() {
    let mut fixture = ReceiverFixture::connected_with(|spec| spec.join_position = 2 * 65_536 - 128);
    fixture.subscriber.set(2 * 65_536 - 128);
    fixture.arrive(&data(2 * 65_536 + 64, &[64]));
    assert_eq!(fixture.sent_after(1_000), [nak(2 * 65_536 - 128, 128)]);
    fixture.arrive(&data(2 * 65_536 - 128, &[128]));
    assert_eq!(fixture.sent_after(1_000), [nak(2 * 65_536, 64)]);
}

#[test]
fn unreliable_stream_fills_gap_with_padding() {
    let mut fixture =
        ReceiverFixture::connected_with(|spec| spec.nak_delay = NakDelaySpec::Unreliable);
    fixture.arrive(&data(START + 64, &[128]));
    fixture.cycle();
    assert_eq!(fixture.positions(), (192, 192));
    assert_eq!(fixture.socket.sent(), NOTHING);
    assert_eq!(
        (fixture.counters.loss_gap_fills.get(), fixture.naks.get()),
        (1, 0)
    );
    let padding = fixture.log_bytes(START, 32);
    assert_eq!((padding[0], padding[6]), (64, 0));
    fixture.arrive(&data(START, &[64]));
    assert_eq!(fixture.log_bytes(START, 32), padding, "too late");
}

#[test]
fn unreliable_stream_fills_gap_before_heartbeat_position() {
    let mut fixture =
        ReceiverFixture::connected_with(|spec| spec.nak_delay = NakDelaySpec::Unreliable);
    fixture.heartbeat(0xC0, START + 640);
    fixture.cycle();
    assert_eq!(fixture.positions(), (640, 640));
    assert_eq!(fixture.frame_at(START), Some(640));
    assert_eq!(fixture.frame_at(START + 640), None);
}

#[test]
fn lost_bytes_are_reported_once() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 64, &[64]));
    fixture.sent_after(1_000);
    fixture.sent_after(100_000);
    fixture.arrive(&data(START, &[64]));
    fixture.arrive(&data(START + 256, &[64]));
    fixture.sent_after(1_000);
    let mut seen = Vec::new();
    loss_report::read(&fixture.losses, |loss| seen.push(loss.clone()));
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].count, seen[0].bytes_lost), (2, 64 + 128));
    assert_eq!(
        (seen[0].session_id, seen[0].stream_id, &*seen[0].source),
        (SESSION, STREAM, "10.0.0.7:4040")
    );
}

#[test]
fn full_loss_report_does_not_prevent_repair() {
    // Longer than the remaining space of the report.
    let mut fixture =
        ReceiverFixture::connected_with(|spec| spec.channel = "x".repeat(5_000).into());
    for number in 0..3 {
        let gap = START + number * 128;
        fixture.arrive(&data(gap + 64, &[64]));
        fixture.sent_after(1);
        assert_eq!(fixture.sent_after(1_000), [nak(gap, 64)]);
        fixture.arrive(&data(gap, &[64]));
        fixture.sent_after(1);
    }
    let mut seen = 0;
    loss_report::read(&fixture.losses, |_| seen += 1);
    assert_eq!((seen, fixture.positions().0), (0, 3 * 128));
}

#[test]
fn revoked_stream_is_not_repaired() {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START + 64, &[128]));
    fixture.heartbeat(0xF0, START + 192);
    assert_eq!(fixture.sent_after(1_000), NOTHING);
    assert!(fixture.shared.is_revoked() && fixture.log.is_revoked());
    assert_eq!(fixture.counters.images_revoked.get(), 1);
}

#[test]
fn unresponsive_source_gets_naks_at_reduced_rate() {
    let mut fixture = ReceiverFixture::connected();
    fixture.heartbeat(0xC0, START + 32_000);
    for _ in 0..90_000 {
        fixture.now_ns += 100_000;
        fixture.cycle();
    }
    let naks = fixture.naks.get();
    assert!((80..110).contains(&naks), "{naks}");
    // After data the normal rate applies again, for a while.
    fixture.arrive(&data(START, &[64]));
    for _ in 0..64 {
        fixture.sent_after(100_000);
    }
    assert_eq!(fixture.naks.get(), naks + 64);
    for _ in 0..50_000 {
        fixture.now_ns += 100_000;
        fixture.cycle();
    }
    assert!(
        fixture.naks.get() < naks + 64 + 70,
        "{}",
        fixture.naks.get() - naks
    );
}
