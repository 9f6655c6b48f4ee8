// SPDX-License-Identifier: Apache-2.0
//! Forged NAKs do not prevent the retransmission of what a receiver misses.

use super::*;

/// The receiver lacks this frame of 320 bytes.
const MISSED: i64 = START + 10 * 320;

/// A publication that has sent forty frames of 320 bytes.
fn fixture(max_actions: usize) -> SenderFixture {
    let mut fixture = SenderFixture::with(|spec| spec.retransmit.max_actions = max_actions);
    fixture.connect(32_768);
    for _ in 0..40 {
        fixture.publish(320);
    }
    fixture.cycle();
    assert_eq!(fixture.position.get(), START + 40 * 320);
    fixture.socket.sent();
    fixture
}

fn ask(fixture: &SenderFixture, position: i64, length: i32) {
    let nak = nak(SESSION, STREAM, position, length);
    fixture.socket.arrive(nak.as_bytes());
}

/// Returns the milliseconds until the missing data is retransmitted, while forged NAKs arrive `before` and `after` each
/// NAK of the receiver.
fn answered_after(
    fixture: &mut SenderFixture,
    mut before: impl FnMut(&SenderFixture, i64),
    mut after: impl FnMut(&SenderFixture, i64),
) -> Option<i64> {
    let wanted = fixture.log_bytes(MISSED, 320);
    for cycle in 0..2_000 {
        fixture.socket.sent();
        before(fixture, cycle);
        ask(fixture, MISSED, 320);
        after(fixture, cycle);
        // All NAKs are received before any retransmission.
        for _ in 0..8 {
            fixture.sender.poll_control(at(fixture.now_ns));
        }
        fixture.cycle_after(MS);
        fixture.cycle();
        let sent = fixture.socket.sent();
        if sent.iter().any(|it| it.windows(320).any(|it| it == wanted)) {
            return Some(cycle);
        }
    }
    None
}

#[test]
fn forged_naks_of_other_frames_do_not_suppress_a_receiver() {
    let mut fixture = fixture(1);
    let others =
        |fixture: &SenderFixture, cycle: i64| ask(fixture, START + 320 * (20 + cycle % 20), 320);
    assert_eq!(answered_after(&mut fixture, |_, _| {}, others), Some(0));
}

#[test]
fn forged_naks_of_many_frames_do_not_displace_a_group_member() {
    let mut fixture = fixture(2);
    let others = |fixture: &SenderFixture, cycle: i64| {
        for other in 0..4 {
            ask(fixture, START + 320 * (12 + 6 * other + cycle % 6), 320);
        }
    };
    assert_eq!(answered_after(&mut fixture, others, others), Some(0));
}

#[test]
fn forged_naks_of_part_of_a_gap_do_not_suppress_the_rest() {
    let mut fixture = fixture(1);
    let less = |fixture: &SenderFixture, _| ask(fixture, MISSED, 32);
    assert_eq!(answered_after(&mut fixture, less, less), Some(0));
}

#[test]
fn forged_naks_of_whole_stream_do_not_exhaust_the_limit() {
    let mut fixture = fixture(1);
    // Everything but what is missed, as long as anything may be sent again.
    let all = |fixture: &SenderFixture| {
        ask(fixture, START, 10 * 320);
        ask(fixture, MISSED + 320, 29 * 320);
    };
    for _ in 0..2_000 {
        all(&fixture);
        fixture.cycle();
    }
    assert!(fixture.counters.retransmit_overflow.get() > 0);
    // A mebibyte in a second: a pass of 12,800 bytes takes 12.2 ms.
    let after = answered_after(
        &mut fixture,
        |fixture, _| all(fixture),
        |fixture, _| all(fixture),
    );
    assert!(after.is_some_and(|cycles| cycles <= 26), "{after:?}");
}

#[test]
fn forged_naks_within_a_frame_are_ignored() {
    let mut fixture = fixture(2);
    for offset in (32..320).step_by(32) {
        ask(&fixture, MISSED + offset, 640);
        assert_eq!(fixture.replies(), [[0; 0]; 0], "{offset}");
    }
    ask(&fixture, MISSED, 320);
    assert_eq!(fixture.replies(), [fixture.log_bytes(MISSED, 320)]);
}

#[test]
fn forged_naks_that_expire_do_not_drop_later_data() {
    let mut fixture = SenderFixture::with(|spec| spec.retransmit.delay_ns = MS);
    fixture.connect(32_768);
    for _ in 0..130 {
        fixture.publish(320);
    }
    fixture.cycle();
    assert_eq!(fixture.position.get(), START + 102 * 320);
    ask(&fixture, START, 40 * 320);
    // The first two frames are too old when they are due.
    fixture.status(START + 102 * 320, 32_768);
    fixture.cycle();
    fixture.cycle();
    assert_eq!(fixture.position.get(), START + 130 * 320);
    fixture.socket.sent();
    let repeats: Vec<u8> = (0..4)
        .flat_map(|_| {
            fixture.cycle_after(MS + 1);
            fixture.socket.sent().concat()
        })
        .collect();
    let end = fixture.log_bytes(START, 40 * 320);
    assert!(
        repeats.len() >= 4_000 && end.ends_with(&repeats),
        "{} bytes",
        repeats.len()
    );
    assert_eq!(
        fixture.counters.retransmitted_bytes.get(),
        repeats.len() as i64
    );
    assert_eq!(fixture.counters.retransmits_sent.get(), 1);
}
