//! What an image has to do in time, it does beside many calm ones while the receiver has other work. Each is told alone
//! and in a crowd.

use super::*;
use crate::testing::crowd::{self, Busy, COMPANIONS, CYCLE_NS, LAP_NS, time_until};

/// An image that has not moved for long, alone or with others like it.
fn calm(companions: i32) -> ReceiverFixture {
    let mut fixture = ReceiverFixture::connected();
    fixture.arrive(&data(START, &[12_288]));
    fixture.subscriber.set(START);
    for number in 0..companions {
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
        fixture.working();
    }
    fixture.socket.sent();
    fixture
}

impl Busy for ReceiverFixture {
    fn working(&mut self) -> Vec<Vec<u8>> {
        self.now_ns += CYCLE_NS;
        self.socket.sent();
        self.arrive(b"noise");
        let mut sent = self.socket.sent();
        sent.retain(|datagram| datagram[8..12] == SESSION.to_le_bytes());
        sent
    }
}

/// Checks that in a crowd it takes no more time than alone, but for so much.
fn takes_the_same(slack_ns: i64, story: impl Fn(&mut ReceiverFixture) -> i64) {
    crowd::takes_the_same(calm, slack_ns, story);
}

/// Whether one of them is of this type, and has these flags.
fn has(sent: &[Vec<u8>], frame_type: u8, flags: u8) -> bool {
    let fits = |it: &Vec<u8>| it[6] == frame_type && it[5] & flags == flags;
    sent.iter().any(fits)
}

const NAK: u8 = 2;
const STATUS: u8 = 3;
const ERROR: u8 = 4;
const RESPONSE_SETUP: u8 = 11;
const EOS: u8 = 0x40;
const END: i64 = START + 12_288;

#[test]
fn what_is_missing_is_asked_for_and_asked_for_again() {
    takes_the_same(0, |fixture| {
        fixture.socket.arrive(&data(END + 1_024, &[64]));
        time_until(fixture, |_, sent| has(sent, NAK, 0))
    });
    // For longer than anybody counts as busy without moving.
    let naks = |companions| {
        let mut fixture = calm(companions);
        fixture.socket.arrive(&data(END + 1_024, &[64]));
        for _ in 0..10_000 {
            fixture.working();
        }
        fixture.naks.get()
    };
    assert!(naks(0) > 50);
    assert_eq!(naks(COMPANIONS), naks(0));
}

#[test]
fn what_a_heartbeat_tells_of_is_asked_for_at_once() {
    takes_the_same(0, |fixture| {
        let end = END + 1_024;
        let (term_id, offset) = (geometry().term_id(end), geometry().term_offset(end));
        let heartbeat = DataHeader::heartbeat(0xC0, SESSION, STREAM, term_id, offset);
        fixture.socket.arrive(heartbeat.as_bytes());
        time_until(fixture, |_, sent| has(sent, NAK, 0))
    });
}

#[test]
fn what_arrives_can_be_read_and_is_known_at_once() {
    let is_known = |fixture: &ReceiverFixture, end| {
        fixture.rebuilt.get() == end && fixture.shared.rebuild_position() == end
    };
    takes_the_same(0, |fixture| {
        fixture.socket.arrive(&data(END, &[64]));
        time_until(fixture, |fixture, _| is_known(fixture, END + 64))
    });
    takes_the_same(0, |fixture| {
        let train = [data(END, &[64]), data(END + 64, &[64])].concat();
        fixture.socket.arrive_train(&train, 64);
        time_until(fixture, |fixture, _| is_known(fixture, END + 128))
    });
}

/// When a subscriber that has read on after so many cycles is told of, if this comes in all the time.
fn told_after(cycles: usize, also: &[u8]) -> i64 {
    let mut fixture = calm(COMPANIONS);
    // Some first, which is news: that it is told again is not.
    fixture.arrive(also);
    for _ in 0..cycles {
        fixture.working();
    }
    fixture.subscriber.set(END);
    time_until(&mut fixture, |fixture, sent| {
        fixture.socket.arrive(also);
        has(sent, STATUS, 0)
    })
}

#[test]
fn what_brings_no_news_gives_no_turn() {
    let (term_id, offset) = (geometry().term_id(END), geometry().term_offset(END));
    let heartbeat = DataHeader::heartbeat(0xC0, SESSION, STREAM, term_id, offset);
    let mut waits = 0;
    for cycles in 4_000..4_008 {
        let without = told_after(cycles, b"noise");
        waits += usize::from(without > 0);
        assert_eq!(told_after(cycles, heartbeat.as_bytes()), without);
        assert_eq!(told_after(cycles, setup().as_bytes()), without);
    }
    assert!(waits >= 4, "it rarely is its turn at once: {waits}");
}

#[test]
fn a_subscriber_that_reads_on_is_told_of_within_a_lap() {
    takes_the_same(LAP_NS, |fixture| {
        fixture.subscriber.set(END);
        time_until(fixture, |_, sent| has(sent, STATUS, 0))
    });
}

/// Checks that a frame of this type is repeated all 200 ms, or a lap later.
fn is_repeated_in_time(frame_type: u8, begin: impl Fn(&mut ReceiverFixture)) {
    let told = |companions| {
        let mut fixture = calm(companions);
        begin(&mut fixture);
        let mut times = Vec::new();
        for cycle in 0..20_000 {
            if has(&fixture.working(), frame_type, 0) {
                times.push(cycle * CYCLE_NS);
            }
        }
        times
    };
    let (alone, crowded) = (told(0), told(COMPANIONS));
    assert!(alone.len() >= 4 && crowded.len() + 1 >= alone.len());
    for pair in crowded.windows(2) {
        let between = pair[1] - pair[0];
        assert!((200 * MS..=200 * MS + LAP_NS + CYCLE_NS).contains(&between));
    }
}

#[test]
fn a_position_is_repeated_within_a_lap_of_its_time() {
    is_repeated_in_time(STATUS, |_| {});
}

#[test]
fn silence_ends_an_image_within_a_lap() {
    takes_the_same(LAP_NS, |fixture| {
        time_until(fixture, |fixture, _| fixture.shared.is_timed_out())
    });
}

#[test]
fn an_image_that_nobody_wants_says_goodbye_at_once() {
    takes_the_same(0, |fixture| {
        fixture.command(ReceiverCommand::RemoveSubscription {
            endpoint: ENDPOINT,
            stream_id: STREAM,
            session_id: None,
        });
        time_until(fixture, |_, sent| has(sent, STATUS, EOS))
    });
}

#[test]
fn an_image_that_drains_says_goodbye_within_a_lap() {
    takes_the_same(LAP_NS, |fixture| {
        fixture.shared.conductor_state(ImageState::Draining);
        time_until(fixture, |_, sent| has(sent, STATUS, EOS))
    });
}

#[test]
fn a_stream_that_ends_is_answered_at_once() {
    takes_the_same(0, |fixture| {
        let (term_id, offset) = (geometry().term_id(END), geometry().term_offset(END));
        let heartbeat = DataHeader::heartbeat(0xE0, SESSION, STREAM, term_id, offset);
        fixture.socket.arrive(heartbeat.as_bytes());
        time_until(fixture, |_, sent| has(sent, STATUS, EOS))
    });
}

#[test]
fn a_rejection_is_told_when_the_next_position_would_have_been_and_again() {
    takes_the_same(LAP_NS, |fixture| {
        fixture.reject("no");
        time_until(fixture, |_, sent| has(sent, ERROR, 0))
    });
    is_repeated_in_time(ERROR, |fixture| fixture.reject("no"));
}

#[test]
fn a_response_is_announced_at_once() {
    takes_the_same(0, |fixture| {
        fixture.command(ReceiverCommand::AnnounceResponse {
            endpoint: ENDPOINT,
            image: IMAGE,
            session_id: Some(7),
        });
        time_until(fixture, |_, sent| has(sent, RESPONSE_SETUP, 0))
    });
}

#[test]
fn a_new_image_is_answered_at_once() {
    let crowded = |companions| {
        let mut fixture = calm(companions);
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
    assert_eq!((crowded(0), crowded(COMPANIONS)), (0, 0));
}

#[test]
fn a_session_without_an_image_asks_for_one_at_once() {
    let mut fixture = calm(COMPANIONS);
    fixture.command(ReceiverCommand::RemoveImage {
        endpoint: ENDPOINT,
        image: IMAGE,
    });
    while fixture.event().is_some() {}
    fixture.socket.arrive(setup().as_bytes());
    fixture.working();
    assert!(matches!(
        fixture.event(),
        Some(ConductorEvent::CreateImage(_))
    ));
}

/// Says that all companions live: what they are told from then on only repeats itself.
fn all_live(fixture: &mut ReceiverFixture) {
    for number in 0..COMPANIONS {
        let (term_id, offset) = (geometry().term_id(START), geometry().term_offset(START));
        let heartbeat = DataHeader::heartbeat(0xC0, number, STREAM, term_id, offset);
        fixture.arrive(heartbeat.as_bytes());
    }
    fixture.socket.sent();
}

/// A cycle with something to do that is about nobody, and all that it sends.
fn cycle(fixture: &mut ReceiverFixture) -> Vec<Vec<u8>> {
    fixture.now_ns += CYCLE_NS;
    fixture.arrive(b"noise");
    fixture.socket.sent()
}

#[test]
fn status_messages_of_a_crowd_share_calls() {
    let mut fixture = calm(COMPANIONS);
    all_live(&mut fixture);
    let calls = fixture.socket.send_calls();
    let told = fixture.counters.status_messages_sent.get();
    let mut heard = 0;
    for _ in 0..1_000_000_000 / CYCLE_NS {
        let sent = cycle(&mut fixture);
        assert!(sent.iter().all(|it| it[6] == STATUS));
        heard += sent.len();
    }
    assert!(heard >= 4 * COMPANIONS as usize, "{heard}");
    let calls = fixture.socket.send_calls() - calls;
    assert!(2 * calls <= heard, "{calls} calls for {heard}");
    let told = fixture.counters.status_messages_sent.get() - told;
    assert_eq!(told, heard as i64);
}

/// A stream that receives all the time, from the same sender.
#[test]
fn beside_a_busy_stream_they_still_do() {
    let mut fixture = calm(COMPANIONS);
    all_live(&mut fixture);
    // Up to where frames of 1,024 bytes fit into terms.
    let first = END + 832;
    fixture.arrive(&data(END, &[832]));
    let calls = fixture.socket.send_calls();
    let (mut heard, mut own) = (0, 0);
    for number in 0..20_000 {
        let position = first + number * 1_024;
        fixture.now_ns += CYCLE_NS;
        fixture.subscriber.set(position);
        fixture.shared.conductor_free_position(position);
        fixture.arrive(&data(position, &[1_024]));
        let sent = fixture.socket.sent();
        heard += sent.len();
        let is_own = |it: &&Vec<u8>| it[8..12] == SESSION.to_le_bytes();
        own += sent.iter().filter(is_own).count();
    }
    assert!(own > 2_000, "more often than signs of life wait: {own}");
    let calls = fixture.socket.send_calls() - calls;
    let (calm_ones, their_calls) = (heard - own, calls - own);
    assert!(calm_ones >= 4 * COMPANIONS as usize, "{calm_ones}");
    assert!(
        2 * their_calls <= calm_ones,
        "{their_calls} calls for {calm_ones}"
    );
}

#[test]
fn who_asks_for_something_says_what_was_collected_first() {
    let mut fixture = calm(COMPANIONS);
    all_live(&mut fixture);
    let waits = (0..4_000).find(|_| {
        cycle(&mut fixture);
        let endpoint = &mut fixture.receiver.endpoints[0];
        let queued = endpoint.image(IMAGE).and_then(|image| image.queued_status);
        let transport = endpoint.transports().next();
        transport.is_some_and(|transport| transport.control_batch.hold(queued))
    });
    assert!(waits.is_some());
    // What is before it is missing, and asked for in the second cycle.
    fixture.socket.arrive(&data(START + 12_288 + 64, &[64]));
    let sent = [cycle(&mut fixture), cycle(&mut fixture)].concat();
    let kinds: Vec<u8> = sent.iter().map(|it| it[6]).collect();
    assert_eq!((kinds[0], kinds.last()), (STATUS, Some(&NAK)));
}
