// SPDX-License-Identifier: Apache-2.0
//! Idle periods of a publication.

use std::sync::atomic::AtomicUsize;

use super::*;

/// Flow control that counts calls of `on_idle`: one in each poll that sends nothing.
#[derive(Debug, Default)]
struct CountingFlowControl {
    calls: Arc<AtomicUsize>,
    next_deadline_ns: Option<i64>,
}

impl FlowControl for CountingFlowControl {
    fn on_status(&mut self, report: &StatusReport, _limit: i64, _now_ns: i64) -> i64 {
        report.position + i64::from(report.window)
    }

    fn on_idle(&mut self, limit: i64, _now_ns: i64) -> i64 {
        self.calls.fetch_add(1, Ordering::Relaxed);
        limit
    }

    fn next_deadline_ns(&self) -> i64 {
        self.next_deadline_ns.unwrap_or(i64::MIN)
    }

    fn retransmit_window_multiple(&self) -> i32 {
        1
    }
}

/// Returns an idle, connected publication that has just sent a heartbeat, and the count of its polls.
fn idle_publication(next_deadline_ns: Option<i64>) -> (SenderFixture, Arc<AtomicUsize>) {
    let flow_control = CountingFlowControl {
        next_deadline_ns,
        ..CountingFlowControl::default()
    };
    let polls = Arc::clone(&flow_control.calls);
    let mut fixture = SenderFixture::with(|spec| {
        spec.flow_control = SenderFlowControlSpec::Custom(Box::new(flow_control));
    });
    fixture.connect(4_096);
    for _ in 0..3 {
        fixture.cycle_after(101 * MS);
    }
    fixture.socket.sent();
    (fixture, polls)
}

/// Returns the polls in a number of duty cycles, a microsecond apart.
fn polls_in(fixture: &mut SenderFixture, polls: &AtomicUsize, cycles: usize) -> usize {
    let before = polls.load(Ordering::Relaxed);
    for _ in 0..cycles {
        fixture.cycle_after(1_000);
    }
    polls.load(Ordering::Relaxed) - before
}

#[test]
fn idle_publication_is_skipped_until_next_heartbeat() {
    let (mut fixture, polls) = idle_publication(Some(i64::MAX));
    assert_eq!(polls_in(&mut fixture, &polls, 100), 0);
    assert_eq!(fixture.socket.sent().len(), 0);
    fixture.now_ns += 99 * MS;
    assert_eq!(polls_in(&mut fixture, &polls, 1_000), 1);
    assert_eq!(fixture.socket.sent().len(), 1, "a heartbeat");
}

#[test]
fn idle_publication_with_new_data_sends_in_next_cycle() {
    let (mut fixture, polls) = idle_publication(Some(i64::MAX));
    assert_eq!(polls_in(&mut fixture, &polls, 100), 0);
    fixture.publish(320);
    assert_eq!(fixture.sent(), [fixture.log_bytes(START, 320)]);
    assert!(polls_in(&mut fixture, &polls, 100) >= 100, "active");
}

#[test]
fn idle_publication_with_uncommitted_frame_is_polled() {
    let (mut fixture, polls) = idle_publication(Some(i64::MAX));
    move_tail(&fixture.log, START + 320);
    assert_eq!(polls_in(&mut fixture, &polls, 100), 100);
    fixture.publish(320);
    assert_eq!(fixture.sent().len(), 1);
}

#[test]
fn idle_publication_answers_setup_request_at_once() {
    let (mut fixture, polls) = idle_publication(Some(i64::MAX));
    assert_eq!(polls_in(&mut fixture, &polls, 100), 0);
    fixture.status_of(RECEIVER, StatusMessage::SEND_SETUP, START, 4_096);
    assert_eq!(fixture.replies().len(), 1, "a SETUP");
}

#[test]
fn flow_controlled_publication_is_not_skipped() {
    let (mut fixture, polls) = idle_publication(Some(i64::MAX));
    fixture.status(START, 0);
    fixture.cycle();
    fixture.now_ns += 101 * MS;
    assert!(polls_in(&mut fixture, &polls, 100) >= 100);
}

#[test]
fn flow_control_without_deadline_is_called_in_every_poll() {
    let (mut fixture, polls) = idle_publication(None);
    let begin_ns = fixture.now_ns;
    assert_eq!(polls_in(&mut fixture, &polls, 100), 100);
    let (mut fixture, polls) = idle_publication(Some(begin_ns + 50_000));
    assert_eq!(fixture.now_ns, begin_ns);
    assert_eq!(polls_in(&mut fixture, &polls, 100), 50);
}
