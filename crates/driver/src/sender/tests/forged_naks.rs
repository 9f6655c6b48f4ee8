//! NAKs that a stranger sends do not take from a receiver what it misses.

use super::*;

/// What the receiver misses is this frame of 320 bytes.
const MISSED: i64 = START + 10 * 320;

/// A publication that has sent forty frames of 320 bytes.
fn rig(max_actions: usize) -> Rig {
    let mut rig = Rig::with(|spec| spec.retransmit.max_actions = max_actions);
    rig.connect(32_768);
    for _ in 0..40 {
        rig.publish(320);
    }
    rig.cycle();
    assert_eq!(rig.position.get(), START + 40 * 320);
    rig.socket.sent();
    rig
}

fn ask(rig: &Rig, position: i64, length: i32) {
    let nak = nak(SESSION, STREAM, position, length);
    rig.socket.arrive(nak.as_bytes());
}

/// How many milliseconds pass until what is missed has been sent again, while a stranger asks `before` and `after` each
/// time that the receiver asks.
fn answered_after(
    rig: &mut Rig,
    mut before: impl FnMut(&Rig, i64),
    mut after: impl FnMut(&Rig, i64),
) -> Option<i64> {
    let wanted = rig.log_bytes(MISSED, 320);
    for turn in 0..2_000 {
        rig.socket.sent();
        before(rig, turn);
        ask(rig, MISSED, 320);
        after(rig, turn);
        // All is heard before anything is answered.
        for _ in 0..8 {
            rig.sender.poll_control(at(rig.now_ns));
        }
        rig.cycle_after(MS);
        rig.cycle();
        let sent = rig.socket.sent();
        if sent.iter().any(|it| it.windows(320).any(|it| it == wanted)) {
            return Some(turn);
        }
    }
    None
}

#[test]
fn of_other_frames_do_not_turn_the_sender_away_from_a_receiver() {
    let mut rig = rig(1);
    let others = |rig: &Rig, turn: i64| ask(rig, START + 320 * (20 + turn % 20), 320);
    assert_eq!(answered_after(&mut rig, |_, _| {}, others), Some(0));
}

#[test]
fn of_many_frames_do_not_take_the_room_of_a_receiver_in_a_group() {
    let mut rig = rig(2);
    let others = |rig: &Rig, turn: i64| {
        for other in 0..4 {
            ask(rig, START + 320 * (12 + 6 * other + turn % 6), 320);
        }
    };
    assert_eq!(answered_after(&mut rig, others, others), Some(0));
}

#[test]
fn of_less_than_is_missed_do_not_stand_for_all_of_it() {
    let mut rig = rig(1);
    let less = |rig: &Rig, _| ask(rig, MISSED, 32);
    assert_eq!(answered_after(&mut rig, less, less), Some(0));
}

#[test]
fn of_all_that_there_is_do_not_use_up_what_a_receiver_needs() {
    let mut rig = rig(1);
    // Everything but what is missed, as long as anything may be sent again.
    let all = |rig: &Rig| {
        ask(rig, START, 10 * 320);
        ask(rig, MISSED + 320, 29 * 320);
    };
    for _ in 0..2_000 {
        all(&rig);
        rig.cycle();
    }
    assert!(rig.counters.retransmit_overflow.get() > 0);
    // A mebibyte in a second: a lap of 12,800 bytes takes 12.2 ms.
    let after = answered_after(&mut rig, |rig, _| all(rig), |rig, _| all(rig));
    assert!(after.is_some_and(|turns| turns <= 26), "{after:?}");
}

#[test]
fn that_begin_in_the_middle_of_a_frame_are_not_answered() {
    let mut rig = rig(2);
    for offset in (32..320).step_by(32) {
        ask(&rig, MISSED + offset, 640);
        assert_eq!(rig.answers(), [[0; 0]; 0], "{offset}");
    }
    ask(&rig, MISSED, 320);
    assert_eq!(rig.answers(), [rig.log_bytes(MISSED, 320)]);
}

#[test]
fn that_become_too_old_do_not_take_with_them_what_follows() {
    let mut rig = Rig::with(|spec| spec.retransmit.delay_ns = MS);
    rig.connect(32_768);
    for _ in 0..130 {
        rig.publish(320);
    }
    rig.cycle();
    assert_eq!(rig.position.get(), START + 102 * 320);
    ask(&rig, START, 40 * 320);
    // The first two frames are too old when it is their turn.
    rig.status(START + 102 * 320, 32_768);
    rig.cycle();
    rig.cycle();
    assert_eq!(rig.position.get(), START + 130 * 320);
    rig.socket.sent();
    let repeats: Vec<u8> = (0..4)
        .flat_map(|_| {
            rig.cycle_after(MS + 1);
            rig.socket.sent().concat()
        })
        .collect();
    let end = rig.log_bytes(START, 40 * 320);
    assert!(
        repeats.len() >= 4_000 && end.ends_with(&repeats),
        "{} bytes",
        repeats.len()
    );
    assert_eq!(rig.counters.retransmitted_bytes.get(), repeats.len() as i64);
    assert_eq!(rig.counters.retransmits_sent.get(), 1);
}
