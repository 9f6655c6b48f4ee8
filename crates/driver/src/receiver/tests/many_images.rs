// SPDX-License-Identifier: Apache-2.0
//! Deadlines of an image are met beside many idle ones while the receiver has other work. Each case is run alone and
//! with others.

use super::*;
use crate::testing::many_streams::{
    self, BusyAgent, CYCLE_NS, OTHER_STREAMS, SWEEP_PERIOD_NS, time_until,
};

/// Returns an image that has been idle for long, alone or with others like it.
fn idle_image(others: i32) -> ReceiverFixture {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[12_288]));
    fixture.subscriber.set(START);
    for number in 0..others {
        let subscriber = Counter::detached();
        subscriber.set(START);
        let shared = Arc::new(ImageShared::new(START, WINDOW));
        shared.conductor_state(ImageState::Active);
        let spec = ReceiverImageSpec {
            id: ImageId(1_000 + i64::from(number)),
            session_id: number,
            high_water_mark: Counter::detached(),
            rebuild_position: Counter::detached(),
            naks_sent: Counter::detached(),
            subscribers: vec![SubscriberPosition {
                position: subscriber,
            }],
            log: fixture.log.clone(),
            shared,
            ..fixture.image_spec()
        };
        fixture.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
            spec,
        ))));
    }
    for _ in 0..4_000 {
        fixture.busy_cycle();
    }
    fixture.socket.sent();
    fixture
}

impl BusyAgent for ReceiverFixture {
    fn busy_cycle(&mut self) -> Vec<Vec<u8>> {
        self.now_ns += CYCLE_NS;
        self.socket.sent();
        self.arrive(b"noise");
        let mut sent = self.socket.sent();
        sent.retain(|datagram| datagram[8..12] == SESSION.to_le_bytes());
        sent
    }
}

/// Checks that with others it takes at most `slack_ns` longer than alone.
fn assert_same_time(slack_ns: i64, scenario: impl Fn(&mut ReceiverFixture) -> i64) {
    many_streams::assert_same_time(idle_image, slack_ns, scenario);
}

/// Returns true if a frame has this type and these flags.
fn has(sent: &[Vec<u8>], frame_type: u8, flags: u8) -> bool {
    let matches = |it: &Vec<u8>| it[6] == frame_type && it[5] & flags == flags;
    sent.iter().any(matches)
}

const NAK: u8 = 2;
const STATUS: u8 = 3;
const ERROR: u8 = 4;
const RESPONSE_SETUP: u8 = 11;
const EOS: u8 = 0x40;
const END: i64 = START + 12_288;

#[test]
fn gap_is_naked_on_time_and_repeatedly() {
    assert_same_time(0, |fixture| {
        fixture.socket.arrive(&data(END + 1_024, &[64]));
        time_until(fixture, |_, sent| has(sent, NAK, 0))
    });
    // For longer than an image stays active without progress.
    let naks = |others| {
        let mut fixture = idle_image(others);
        fixture.socket.arrive(&data(END + 1_024, &[64]));
        for _ in 0..10_000 {
            fixture.busy_cycle();
        }
        fixture.naks.get()
    };
    assert!(naks(0) > 50);
    assert_eq!(naks(OTHER_STREAMS), naks(0));
}

#[test]
fn gap_announced_by_heartbeat_is_naked_on_time() {
    assert_same_time(0, |fixture| {
        let end = END + 1_024;
        let (term_id, offset) = (geometry().term_id(end), geometry().term_offset(end));
        let heartbeat = DataHeader::heartbeat(0xC0, SESSION, STREAM, term_id, offset);
        fixture.socket.arrive(heartbeat.as_bytes());
        time_until(fixture, |_, sent| has(sent, NAK, 0))
    });
}

#[test]
fn received_data_is_published_at_once() {
    let is_known = |fixture: &ReceiverFixture, end| {
        fixture.rebuild_position.get() == end && fixture.shared.rebuild_position() == end
    };
    assert_same_time(0, |fixture| {
        fixture.socket.arrive(&data(END, &[64]));
        time_until(fixture, |fixture, _| is_known(fixture, END + 64))
    });
    assert_same_time(0, |fixture| {
        let segment_run = [data(END, &[64]), data(END + 64, &[64])].concat();
        fixture.socket.arrive_batch(&segment_run, 64);
        time_until(fixture, |fixture, _| is_known(fixture, END + 128))
    });
}

/// Returns the time until the progress that a subscriber made after `cycles` is sent, while `also` arrives in each
/// cycle.
fn progress_sent_after(cycles: usize, also: &[u8]) -> i64 {
    let mut fixture = idle_image(OTHER_STREAMS);
    // The first one carries new information, the repetitions do not.
    fixture.arrive(also);
    for _ in 0..cycles {
        fixture.busy_cycle();
    }
    fixture.subscriber.set(END);
    time_until(&mut fixture, |fixture, sent| {
        fixture.socket.arrive(also);
        has(sent, STATUS, 0)
    })
}

#[test]
fn repeated_heartbeat_or_setup_causes_no_poll() {
    let (term_id, offset) = (geometry().term_id(END), geometry().term_offset(END));
    let heartbeat = DataHeader::heartbeat(0xC0, SESSION, STREAM, term_id, offset);
    let mut waits = 0;
    for cycles in 4_000..4_008 {
        let without = progress_sent_after(cycles, b"noise");
        waits += usize::from(without > 0);
        assert_eq!(progress_sent_after(cycles, heartbeat.as_bytes()), without);
        assert_eq!(progress_sent_after(cycles, setup().as_bytes()), without);
    }
    assert!(waits >= 4, "rarely polled at once: {waits}");
}

#[test]
fn subscriber_progress_is_sent_within_sweep_period() {
    assert_same_time(SWEEP_PERIOD_NS, |fixture| {
        fixture.subscriber.set(END);
        time_until(fixture, |_, sent| has(sent, STATUS, 0))
    });
}

/// Checks that a frame of this type is repeated every 200 ms plus at most one sweep period.
fn is_repeated_in_time(frame_type: u8, begin: impl Fn(&mut ReceiverFixture)) {
    let times = |others| {
        let mut fixture = idle_image(others);
        begin(&mut fixture);
        let mut sent_at = Vec::new();
        for cycle in 0..20_000 {
            if has(&fixture.busy_cycle(), frame_type, 0) {
                sent_at.push(cycle * CYCLE_NS);
            }
        }
        sent_at
    };
    let (alone, with_companions) = (times(0), times(OTHER_STREAMS));
    assert!(alone.len() >= 4 && with_companions.len() + 1 >= alone.len());
    for pair in with_companions.windows(2) {
        let between = pair[1] - pair[0];
        assert!((200 * MS..=200 * MS + SWEEP_PERIOD_NS + CYCLE_NS).contains(&between));
    }
}

#[test]
fn status_message_is_repeated_within_sweep_period_of_deadline() {
    is_repeated_in_time(STATUS, |_| {});
}

#[test]
fn silent_image_times_out_within_sweep_period() {
    assert_same_time(SWEEP_PERIOD_NS, |fixture| {
        time_until(fixture, |fixture, _| fixture.shared.is_timed_out())
    });
}

#[test]
fn image_without_subscription_sends_eos_at_once() {
    assert_same_time(0, |fixture| {
        fixture.command(ReceiverCommand::RemoveSubscription {
            endpoint: ENDPOINT,
            stream_id: STREAM,
            session_id: None,
        });
        time_until(fixture, |_, sent| has(sent, STATUS, EOS))
    });
}

#[test]
fn draining_image_sends_eos_within_sweep_period() {
    assert_same_time(SWEEP_PERIOD_NS, |fixture| {
        fixture.shared.conductor_state(ImageState::Draining);
        time_until(fixture, |_, sent| has(sent, STATUS, EOS))
    });
}

#[test]
fn ended_stream_is_answered_with_eos_at_once() {
    assert_same_time(0, |fixture| {
        let (term_id, offset) = (geometry().term_id(END), geometry().term_offset(END));
        let heartbeat = DataHeader::heartbeat(0xE0, SESSION, STREAM, term_id, offset);
        fixture.socket.arrive(heartbeat.as_bytes());
        time_until(fixture, |_, sent| has(sent, STATUS, EOS))
    });
}

#[test]
fn rejection_is_sent_at_status_message_deadline_and_repeated() {
    assert_same_time(SWEEP_PERIOD_NS, |fixture| {
        fixture.reject("no");
        time_until(fixture, |_, sent| has(sent, ERROR, 0))
    });
    is_repeated_in_time(ERROR, |fixture| fixture.reject("no"));
}

#[test]
fn response_setup_is_sent_at_once() {
    assert_same_time(0, |fixture| {
        fixture.command(ReceiverCommand::SetResponseSession {
            endpoint: ENDPOINT,
            image: IMAGE,
            session_id: Some(7),
        });
        time_until(fixture, |_, sent| has(sent, RESPONSE_SETUP, 0))
    });
}

#[test]
fn new_image_sends_status_message_at_once() {
    let with_companions = |others| {
        let mut fixture = idle_image(others);
        fixture.command(ReceiverCommand::RemoveImage {
            endpoint: ENDPOINT,
            image: IMAGE,
        });
        let spec = ReceiverImageSpec {
            id: ImageId(6),
            shared: Arc::new(ImageShared::new(START, WINDOW)),
            ..fixture.image_spec()
        };
        fixture.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
            spec,
        ))));
        time_until(&mut fixture, |_, sent| has(sent, STATUS, 0))
    };
    assert_eq!((with_companions(0), with_companions(OTHER_STREAMS)), (0, 0));
}

#[test]
fn setup_without_image_requests_image_at_once() {
    let mut fixture = idle_image(OTHER_STREAMS);
    fixture.command(ReceiverCommand::RemoveImage {
        endpoint: ENDPOINT,
        image: IMAGE,
    });
    while fixture.event().is_some() {}
    fixture.socket.arrive(setup().as_bytes());
    fixture.busy_cycle();
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::CreateImage(_))
    ));
}

/// Sends a heartbeat to all others: their later status messages are repetitions.
fn refresh_companions(fixture: &mut ReceiverFixture) {
    for number in 0..OTHER_STREAMS {
        let (term_id, offset) = (geometry().term_id(START), geometry().term_offset(START));
        let heartbeat = DataHeader::heartbeat(0xC0, number, STREAM, term_id, offset);
        fixture.arrive(heartbeat.as_bytes());
    }
    fixture.socket.sent();
}

/// Runs a duty cycle with unrelated work. Returns all that it sends.
fn cycle(fixture: &mut ReceiverFixture) -> Vec<Vec<u8>> {
    fixture.now_ns += CYCLE_NS;
    fixture.arrive(b"noise");
    fixture.socket.sent()
}

#[test]
fn repeated_status_messages_of_many_images_share_send_calls() {
    let mut fixture = idle_image(OTHER_STREAMS);
    refresh_companions(&mut fixture);
    let calls = fixture.socket.send_calls();
    let before = fixture.counters.status_messages_sent.get();
    let mut received = 0;
    for _ in 0..1_000_000_000 / CYCLE_NS {
        let sent = cycle(&mut fixture);
        assert!(sent.iter().all(|it| it[6] == STATUS));
        received += sent.len();
    }
    assert!(received >= 4 * OTHER_STREAMS as usize, "{received}");
    let calls = fixture.socket.send_calls() - calls;
    assert!(2 * calls <= received, "{calls} calls for {received}");
    let counted = fixture.counters.status_messages_sent.get() - before;
    assert_eq!(counted, received as i64);
}

/// A stream that receives all the time, from the same sender.
#[test]
fn repeated_status_messages_beside_busy_stream_share_send_calls() {
    let mut fixture = idle_image(OTHER_STREAMS);
    refresh_companions(&mut fixture);
    // Align to positions at which frames of 1,024 bytes fit into terms.
    let first = END + 832;
    fixture.arrive(&data(END, &[832]));
    let calls = fixture.socket.send_calls();
    let (mut received, mut own) = (0, 0);
    for number in 0..20_000 {
        let position = first + number * 1_024;
        fixture.now_ns += CYCLE_NS;
        fixture.subscriber.set(position);
        fixture.shared.conductor_free_position(position);
        fixture.arrive(&data(position, &[1_024]));
        let sent = fixture.socket.sent();
        received += sent.len();
        let is_own = |it: &&Vec<u8>| it[8..12] == SESSION.to_le_bytes();
        own += sent.iter().filter(is_own).count();
    }
    assert!(own > 2_000, "more often than the batch delay: {own}");
    let calls = fixture.socket.send_calls() - calls;
    let (repetitions, repetition_calls) = (received - own, calls - own);
    assert!(repetitions >= 4 * OTHER_STREAMS as usize, "{repetitions}");
    assert!(
        2 * repetition_calls <= repetitions,
        "{repetition_calls} calls for {repetitions}"
    );
}

#[test]
fn nak_is_sent_after_queued_status_message() {
    let mut fixture = idle_image(OTHER_STREAMS);
    refresh_companions(&mut fixture);
    let waits = (0..4_000).find(|_| {
        cycle(&mut fixture);
        let endpoint = &mut fixture.receiver.endpoints[0];
        let queued = endpoint.image(IMAGE).and_then(|image| image.queued_status);
        let transport = endpoint.transports().next().map(|(_, transport)| transport);
        transport.is_some_and(|transport| transport.control_batch.contains(queued))
    });
    assert!(waits.is_some());
    // The range before it is missing, and NAKed in the second cycle.
    fixture.socket.arrive(&data(START + 12_288 + 64, &[64]));
    let sent = [cycle(&mut fixture), cycle(&mut fixture)].concat();
    let kinds: Vec<u8> = sent.iter().map(|it| it[6]).collect();
    assert_eq!((kinds[0], kinds.last()), (STATUS, Some(&NAK)));
}
