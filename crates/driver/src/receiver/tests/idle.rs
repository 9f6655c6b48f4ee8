// SPDX-License-Identifier: Apache-2.0
//! Idle periods of images in the poll schedule.

use super::*;
use crate::congestion::{CongestionControl, ReceiverProgress, WindowUpdate};
use crate::poll_schedule::{Pollable, Slot};

/// Shortly after the last status message.
const SOON: i64 = MS;
const TIMEOUT: i64 = 200 * MS;

/// Returns an image whose 64 bytes were received, consumed and acknowledged.
fn acknowledged() -> ReceiverFixture {
    acknowledged_with(|_| {})
}

fn acknowledged_with(change: impl FnOnce(&mut ReceiverImageSpec)) -> ReceiverFixture {
    let mut fixture = ReceiverFixture::connected_with(change);
    fixture.arrive(&data(START, &[64]));
    fixture.subscriber.set(START + 64);
    fixture.sent_after(TIMEOUT + 1);
    fixture
}

/// Returns an image that has been idle for long and is not polled.
fn idle() -> ReceiverFixture {
    let mut fixture = acknowledged();
    for _ in 0..3 {
        assert_eq!(fixture.sent_after(TIMEOUT + 1).len(), 1);
    }
    assert_eq!(fixture.sent_after(SOON), NOTHING);
    fixture
}

/// Returns types and flags of the frames sent in the next duty cycle.
fn next_sent(fixture: &mut ReceiverFixture) -> Vec<(u8, u8)> {
    let sent = fixture.sent_after(SOON);
    sent.iter().map(|it| (it[6], it[5])).collect()
}

const NAK: (u8, u8) = (2, 0);
const EOS_STATUS: (u8, u8) = (3, 0x40);
const ERROR: (u8, u8) = (4, 0);

impl ReceiverFixture {
    /// Returns the remaining idle time, or `None` if the image does not idle.
    fn idle_ns(&self) -> Option<i64> {
        let image = self.receiver.endpoints[0].images.get(Slot(0));
        let idle = image.expect("an image exists").idle_until(self.now_ns);
        idle.map(|idle| idle.deadline_ns - self.now_ns)
    }
}

#[test]
fn acknowledged_image_idles_until_next_status_message() {
    let mut fixture = acknowledged();
    assert_eq!(fixture.idle_ns(), Some(TIMEOUT));
    for _ in 0..5 {
        assert_eq!(fixture.sent_after(TIMEOUT), NOTHING);
        assert_eq!(fixture.sent_after(1).len(), 1);
        assert_eq!(fixture.idle_ns(), Some(TIMEOUT));
    }
}

#[test]
fn acknowledged_image_idles_at_most_until_liveness_timeout() {
    let mut fixture = acknowledged_with(|spec| spec.liveness_timeout_ns = TIMEOUT + 10 * MS);
    fixture.sent_after(MS);
    assert_eq!(fixture.idle_ns(), Some(9 * MS - 1));
    fixture.sent_after(9 * MS);
    assert!(fixture.shared.is_timed_out());
}

#[test]
fn unconsumed_image_does_not_idle() {
    let mut fixture = acknowledged();
    fixture.arrive(&data(START + 64, &[64]));
    assert_eq!(fixture.idle_ns(), None, "unconsumed");
    fixture.subscriber.set(START + 128);
    fixture.sent_after(SOON);
    assert_eq!(fixture.idle_ns(), None, "unacknowledged");
    fixture.sent_after(TIMEOUT);
    assert_eq!(fixture.idle_ns(), Some(TIMEOUT));
}

#[test]
fn image_with_gap_does_not_idle() {
    let mut fixture = acknowledged();
    fixture.arrive(&data(START + 128, &[64]));
    assert_eq!(fixture.idle_ns(), None);
    fixture.sent_after(SOON);
    assert_eq!(fixture.idle_ns(), None);
    fixture.arrive(&data(START + 64, &[64]));
    fixture.subscriber.set(START + 192);
    fixture.sent_after(TIMEOUT);
    assert_eq!(fixture.idle_ns(), Some(TIMEOUT));
}

#[test]
fn rejected_or_announcing_image_does_not_idle_before_sending() {
    let mut fixture = acknowledged();
    fixture.command(ReceiverCommand::SetResponseSession {
        endpoint: ENDPOINT,
        image: IMAGE,
        session_id: Some(7),
    });
    assert_eq!(fixture.idle_ns(), None);
    assert_eq!(
        fixture.sent_after(SOON).len(),
        1,
        "announced in the next poll"
    );
    assert!(fixture.idle_ns().is_some());
    fixture.reject("no");
    assert_eq!(fixture.idle_ns(), None);
}

#[test]
fn ended_image_does_not_idle() {
    let mut fixture = acknowledged();
    fixture.heartbeat(DataHeader::UNFRAGMENTED | DataHeader::EOS, START + 64);
    assert_eq!(fixture.idle_ns(), None);
    assert!(fixture.shared.is_complete());
}

#[test]
fn image_with_variable_window_does_not_idle() {
    #[derive(Debug)]
    struct VariableWindow;
    impl CongestionControl for VariableWindow {
        fn initial_window(&self) -> i32 {
            WINDOW
        }
        fn update_window(&mut self, _: &ReceiverProgress, _: i64) -> WindowUpdate {
            WindowUpdate {
                window: WINDOW,
                is_urgent: false,
            }
        }
    }
    let fixture = acknowledged_with(|spec| spec.congestion_control = Box::new(VariableWindow));
    assert_eq!(fixture.idle_ns(), None);
}

/// Shows that the tests below are about an image that is not polled.
#[test]
fn state_change_does_not_end_idle_period() {
    let mut fixture = idle();
    fixture.shared.conductor_state(ImageState::Draining);
    assert_eq!(next_sent(&mut fixture), []);
    assert_eq!(fixture.sent_after(TIMEOUT - 2 * SOON), NOTHING);
    fixture.now_ns += SOON;
    assert_eq!(next_sent(&mut fixture), [EOS_STATUS]);
}

#[test]
fn data_ends_idle_period() {
    let mut fixture = idle();
    fixture.arrive(&data(START + 64, &[64]));
    assert_eq!(fixture.positions(), (128, 128));
    assert_eq!(fixture.shared.rebuild_position(), START + 128);
}

#[test]
fn gap_ends_idle_period() {
    let mut fixture = idle();
    fixture.arrive(&data(START + 128, &[64]));
    assert_eq!(next_sent(&mut fixture), [NAK]);
}

#[test]
fn heartbeat_beyond_high_water_mark_ends_idle_period() {
    let mut fixture = idle();
    fixture.heartbeat(DataHeader::UNFRAGMENTED, START + 128);
    assert_eq!(next_sent(&mut fixture), [NAK]);
}

#[test]
fn end_of_stream_ends_idle_period() {
    let mut fixture = idle();
    fixture.heartbeat(DataHeader::UNFRAGMENTED | DataHeader::EOS, START + 64);
    let sent = fixture.socket.sent();
    assert_eq!((sent[0][6], sent[0][5]), EOS_STATUS);
    assert!(fixture.shared.is_complete());
}

#[test]
fn removed_subscription_sends_eos_status_message() {
    let mut fixture = idle();
    fixture.command(ReceiverCommand::RemoveSubscription {
        endpoint: ENDPOINT,
        stream_id: STREAM,
        session_id: None,
    });
    assert_eq!(next_sent(&mut fixture), [EOS_STATUS]);
}

#[test]
fn rejection_is_sent_by_next_status_message_deadline() {
    let mut fixture = idle();
    fixture.reject("no");
    fixture.now_ns += TIMEOUT;
    assert_eq!(next_sent(&mut fixture), [ERROR]);
}

#[test]
fn added_subscriber_ends_idle_period() {
    let mut fixture = idle();
    let late = Counter::detached();
    late.set(START);
    fixture.command(ReceiverCommand::AddSubscriber {
        endpoint: ENDPOINT,
        image: IMAGE,
        subscriber: SubscriberPosition { position: late },
    });
    fixture.cycle();
    assert_eq!(fixture.idle_ns(), None);
}
