//! When a publication is left alone.

use std::sync::atomic::AtomicUsize;

use super::*;

/// A flow control that counts how often it is asked: once in each look that sends nothing.
#[derive(Debug, Default)]
struct Asked {
    times: Arc<AtomicUsize>,
    next_deadline_ns: Option<i64>,
}

impl FlowControl for Asked {
    fn on_status(&mut self, report: &StatusReport, _limit: i64, _now_ns: i64) -> i64 {
        report.position + i64::from(report.window)
    }

    fn on_idle(&mut self, limit: i64, _now_ns: i64) -> i64 {
        self.times.fetch_add(1, Ordering::Relaxed);
        limit
    }

    fn next_deadline_ns(&self) -> i64 {
        self.next_deadline_ns.unwrap_or(i64::MIN)
    }

    fn retransmit_window_multiple(&self) -> i32 {
        1
    }
}

/// A connected publication that has been calm for long and has just sent a heartbeat, and how often it was looked at.
fn calm(next_deadline_ns: Option<i64>) -> (SenderFixture, Arc<AtomicUsize>) {
    let asked = Asked {
        next_deadline_ns,
        ..Asked::default()
    };
    let looks = Arc::clone(&asked.times);
    let mut fixture = SenderFixture::with(|spec| {
        spec.flow_control = SenderFlowControlSpec::Custom(Box::new(asked))
    });
    fixture.connect(4_096);
    for _ in 0..3 {
        fixture.cycle_after(101 * MS);
    }
    fixture.socket.sent();
    (fixture, looks)
}

/// Looks in so many duty cycles, a microsecond each.
fn looks_in(fixture: &mut SenderFixture, looks: &AtomicUsize, cycles: usize) -> usize {
    let before = looks.load(Ordering::Relaxed);
    for _ in 0..cycles {
        fixture.cycle_after(1_000);
    }
    looks.load(Ordering::Relaxed) - before
}

#[test]
fn who_has_sent_everything_is_left_alone_until_its_next_heartbeat() {
    let (mut fixture, looks) = calm(Some(i64::MAX));
    assert_eq!(looks_in(&mut fixture, &looks, 100), 0);
    assert_eq!(fixture.socket.sent().len(), 0);
    fixture.now_ns += 99 * MS;
    assert_eq!(looks_in(&mut fixture, &looks, 1_000), 1);
    assert_eq!(fixture.socket.sent().len(), 1, "a heartbeat");
}

#[test]
fn what_is_published_goes_out_in_the_next_duty_cycle() {
    let (mut fixture, looks) = calm(Some(i64::MAX));
    assert_eq!(looks_in(&mut fixture, &looks, 100), 0);
    fixture.publish(320);
    assert_eq!(fixture.sent(), [fixture.log_bytes(START, 320)]);
    assert!(looks_in(&mut fixture, &looks, 100) >= 100, "it is busy");
}

#[test]
fn a_frame_that_was_begun_is_awaited() {
    let (mut fixture, looks) = calm(Some(i64::MAX));
    move_tail(&fixture.log, START + 320);
    assert_eq!(looks_in(&mut fixture, &looks, 100), 100);
    fixture.publish(320);
    assert_eq!(fixture.sent().len(), 1);
}

#[test]
fn a_receiver_that_asks_has_an_answer_at_once() {
    let (mut fixture, looks) = calm(Some(i64::MAX));
    assert_eq!(looks_in(&mut fixture, &looks, 100), 0);
    fixture.status_of(RECEIVER, StatusMessage::SEND_SETUP, START, 4_096);
    assert_eq!(fixture.answers().len(), 1, "a SETUP");
}

#[test]
fn who_may_send_nothing_is_not_left_alone() {
    let (mut fixture, looks) = calm(Some(i64::MAX));
    fixture.status(START, 0);
    fixture.cycle();
    fixture.now_ns += 101 * MS;
    assert!(looks_in(&mut fixture, &looks, 100) >= 100);
}

#[test]
fn a_flow_control_that_may_change_its_mind_is_asked_in_each_look() {
    let (mut fixture, looks) = calm(None);
    let begin_ns = fixture.now_ns;
    assert_eq!(looks_in(&mut fixture, &looks, 100), 100);
    let (mut fixture, looks) = calm(Some(begin_ns + 50_000));
    assert_eq!(fixture.now_ns, begin_ns);
    assert_eq!(looks_in(&mut fixture, &looks, 100), 50);
}
