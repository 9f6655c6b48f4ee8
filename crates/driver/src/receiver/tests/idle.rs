//! When an image is left alone.

use super::*;
use crate::congestion::{Advice, CongestionControl, Progress};
use crate::poll_schedule::{Pollable, Slot};

/// After the last status message.
const SOON: i64 = MS;
const TIMEOUT: i64 = 200 * MS;

/// With 64 bytes that were received, read and told.
fn settled() -> ReceiverFixture {
    settled_with(|_| {})
}

fn settled_with(change: impl FnOnce(&mut ReceiverImageSpec)) -> ReceiverFixture {
    let mut fixture = ReceiverFixture::connected_with(change);
    fixture.arrive(&data(START, &[64]));
    fixture.subscriber.set(START + 64);
    fixture.sent_after(TIMEOUT + 1);
    fixture
}

/// One that has been calm for long, and is not looked at.
fn resting() -> ReceiverFixture {
    let mut fixture = settled();
    for _ in 0..3 {
        assert_eq!(fixture.sent_after(TIMEOUT + 1).len(), 1);
    }
    assert_eq!(fixture.sent_after(SOON), NOTHING);
    fixture
}

/// Types and flags of what the next turn sends.
fn next(fixture: &mut ReceiverFixture) -> Vec<(u8, u8)> {
    let sent = fixture.sent_after(SOON);
    sent.iter().map(|it| (it[6], it[5])).collect()
}

const NAK: (u8, u8) = (2, 0);
const GOODBYE: (u8, u8) = (3, 0x40);
const ERROR: (u8, u8) = (4, 0);

impl ReceiverFixture {
    /// Until when it is left alone, from the last status message on; at all.
    fn rests(&self) -> Option<i64> {
        let image = self.receiver.endpoints[0].images.get(Slot(0));
        let rest = image.expect("there is one").idle_until(self.now_ns);
        rest.map(|rest| rest.deadline_ns - self.now_ns)
    }
}

#[test]
fn who_has_read_and_told_everything_rests_until_the_next_status_message() {
    let mut fixture = settled();
    assert_eq!(fixture.rests(), Some(TIMEOUT));
    for _ in 0..5 {
        assert_eq!(fixture.sent_after(TIMEOUT), NOTHING);
        assert_eq!(fixture.sent_after(1).len(), 1);
        assert_eq!(fixture.rests(), Some(TIMEOUT));
    }
}

#[test]
fn or_until_it_times_out() {
    let mut fixture = settled_with(|spec| spec.liveness_timeout_ns = TIMEOUT + 10 * MS);
    fixture.sent_after(MS);
    assert_eq!(fixture.rests(), Some(9 * MS - 1));
    fixture.sent_after(9 * MS);
    assert!(fixture.shared.is_timed_out());
}

#[test]
fn who_waits_for_readers_does_not_rest() {
    let mut fixture = settled();
    fixture.arrive(&data(START + 64, &[64]));
    assert_eq!(fixture.rests(), None, "unread");
    fixture.subscriber.set(START + 128);
    fixture.sent_after(SOON);
    assert_eq!(fixture.rests(), None, "untold");
    fixture.sent_after(TIMEOUT);
    assert_eq!(fixture.rests(), Some(TIMEOUT));
}

#[test]
fn who_misses_something_does_not_rest() {
    let mut fixture = settled();
    fixture.arrive(&data(START + 128, &[64]));
    assert_eq!(fixture.rests(), None);
    fixture.sent_after(SOON);
    assert_eq!(fixture.rests(), None);
    fixture.arrive(&data(START + 64, &[64]));
    fixture.subscriber.set(START + 192);
    fixture.sent_after(TIMEOUT);
    assert_eq!(fixture.rests(), Some(TIMEOUT));
}

#[test]
fn who_was_rejected_or_announces_answers_does_not_rest_at_once() {
    let mut fixture = settled();
    fixture.command(ReceiverCommand::AnnounceResponse {
        endpoint: ENDPOINT,
        image: IMAGE,
        session_id: Some(7),
    });
    assert_eq!(fixture.rests(), None);
    assert_eq!(
        fixture.sent_after(SOON).len(),
        1,
        "announced in the next turn"
    );
    assert!(fixture.rests().is_some());
    fixture.reject("no");
    assert_eq!(fixture.rests(), None);
}

#[test]
fn whose_stream_has_ended_does_not_rest() {
    let mut fixture = settled();
    fixture.heartbeat(DataHeader::UNFRAGMENTED | DataHeader::EOS, START + 64);
    assert_eq!(fixture.rests(), None);
    assert!(fixture.shared.is_complete());
}

#[test]
fn whose_window_may_change_does_not_rest() {
    #[derive(Debug)]
    struct Moody;
    impl CongestionControl for Moody {
        fn initial_window(&self) -> i32 {
            WINDOW
        }
        fn advise(&mut self, _: &Progress, _: i64) -> Advice {
            Advice {
                window: WINDOW,
                is_urgent: false,
            }
        }
    }
    let fixture = settled_with(|spec| spec.congestion_control = Box::new(Moody));
    assert_eq!(fixture.rests(), None);
}

/// It shows that the tests below are about an image that is not looked at.
#[test]
fn nobody_is_woken_by_a_state() {
    let mut fixture = resting();
    fixture.shared.conductor_state(ImageState::Draining);
    assert_eq!(next(&mut fixture), []);
    assert_eq!(fixture.sent_after(TIMEOUT - 2 * SOON), NOTHING);
    fixture.now_ns += SOON;
    assert_eq!(next(&mut fixture), [GOODBYE]);
}

#[test]
fn data_wakes() {
    let mut fixture = resting();
    fixture.arrive(&data(START + 64, &[64]));
    assert_eq!(fixture.positions(), (128, 128));
    assert_eq!(fixture.shared.rebuild_position(), START + 128);
}

#[test]
fn a_gap_wakes() {
    let mut fixture = resting();
    fixture.arrive(&data(START + 128, &[64]));
    assert_eq!(next(&mut fixture), [NAK]);
}

#[test]
fn a_heartbeat_that_tells_of_a_gap_wakes() {
    let mut fixture = resting();
    fixture.heartbeat(DataHeader::UNFRAGMENTED, START + 128);
    assert_eq!(next(&mut fixture), [NAK]);
}

#[test]
fn the_end_wakes() {
    let mut fixture = resting();
    fixture.heartbeat(DataHeader::UNFRAGMENTED | DataHeader::EOS, START + 64);
    let sent = fixture.socket.sent();
    assert_eq!((sent[0][6], sent[0][5]), GOODBYE);
    assert!(fixture.shared.is_complete());
}

#[test]
fn who_is_no_longer_wanted_says_goodbye() {
    let mut fixture = resting();
    fixture.command(ReceiverCommand::RemoveSubscription {
        endpoint: ENDPOINT,
        stream_id: STREAM,
        session_id: None,
    });
    assert_eq!(next(&mut fixture), [GOODBYE]);
}

#[test]
fn a_rejection_goes_out_with_the_next_status_message_at_the_latest() {
    let mut fixture = resting();
    fixture.reject("no");
    fixture.now_ns += TIMEOUT;
    assert_eq!(next(&mut fixture), [ERROR]);
}

#[test]
fn a_subscriber_more_wakes() {
    let mut fixture = resting();
    let late = Counter::detached();
    late.set(START);
    fixture.command(ReceiverCommand::AddSubscriber {
        endpoint: ENDPOINT,
        image: IMAGE,
        subscriber: SubscriberPosition { position: late },
    });
    fixture.cycle();
    assert_eq!(fixture.rests(), None);
}
