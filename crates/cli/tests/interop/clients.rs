//! Both clients on both drivers: the same list of exchanges for each pair that has a Taran in it.

use taran::Subscription;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, await_true, connect, udp};
use crate::java::{self, argument};
use crate::pattern::{self, Check};
use crate::program::Program;
use crate::require_java;

use Party::{Java as JavaClient, Rust as RustClient};

/// Publisher and subscriber.
type Pair = (Party, Party);

const ON_OUR_DRIVER: &[Pair] = &[
    (JavaClient, RustClient),
    (RustClient, JavaClient),
    (JavaClient, JavaClient),
];
const ON_THE_OFFICIAL_DRIVER: &[Pair] = &[
    (JavaClient, RustClient),
    (RustClient, JavaClient),
    (RustClient, RustClient),
];

/// A frame holds 1,376 bytes at the default mtu of 1,408; 2 MiB is the longest message of 16 MiB terms.
const LENGTHS: &[usize] = &[0, 1, 1_376, 1_408, 1_409, 1_048_576, 2_097_152];
const FRAME_LENGTHS: &[usize] = &[0, 1, 31, 32, 33, 288, 1_376];

fn channels() -> [String; 2] {
    [
        "aeron:ipc?term-length=16m".to_owned(),
        udp("|term-length=16m"),
    ]
}

fn for_each_pair(driver: &Driver, pairs: &[Pair], exchange: impl Fn(String) -> Exchange) {
    for &(publisher, subscriber) in pairs {
        for channel in channels() {
            exchange(channel).run((publisher, driver.dir()), (subscriber, driver.dir()));
        }
    }
}

/// Every length by `offer`, shared and exclusive.
fn lengths(driver: &Driver, pairs: &[Pair]) {
    for exclusive in [false, true] {
        for_each_pair(driver, pairs, |channel| Exchange {
            exclusive,
            lengths: LENGTHS.to_vec(),
            count: 70,
            ..Exchange::on(channel)
        });
    }
}

/// Every length of a frame by `try_claim`, shared and exclusive.
fn claims(driver: &Driver, pairs: &[Pair]) {
    for exclusive in [false, true] {
        for_each_pair(driver, pairs, |channel| Exchange {
            exclusive,
            claim: true,
            lengths: FRAME_LENGTHS.to_vec(),
            count: 20_000,
            ..Exchange::on(channel)
        });
    }
}

/// A million messages, a few of them in two fragments.
fn a_million(driver: &Driver, pairs: &[Pair]) {
    for_each_pair(driver, pairs, |channel| Exchange {
        lengths: vec![20, 32, 100, 64, 8, 1_400],
        count: 1_000_000,
        ..Exchange::on(channel)
    });
}

/// Four threads on one publication.
fn threads(driver: &Driver, pairs: &[Pair]) {
    for_each_pair(driver, pairs, |channel| Exchange {
        lengths: vec![16, 64, 1_000, 3_000],
        count: 25_000,
        threads: 4,
        ..Exchange::on(channel)
    });
}

/// A subscriber that comes when messages have gone by: it begins where the stream is, not where it began.
fn late_subscriber(driver: &Driver, party: Party) {
    // One stream for each party: the publication of the first may still be there when the second begins.
    let stream_id = 7 + party as i32;
    for channel in channels() {
        let client = connect(driver.dir());
        let mut early = client.add_subscription(&channel, stream_id).unwrap();
        let publication = client.add_publication(&channel, stream_id).unwrap();
        await_true("connection", || publication.is_connected());
        let send = |from: u64, to: u64| {
            let mut message = [0; 64];
            for sequence in from..to {
                pattern::fill(&mut message, 0, sequence, false);
                await_true("room", || publication.offer(&message).is_ok());
            }
        };
        let mut check = Check::new(&[64], 1, 0);
        let mut receive = |subscription: &mut Subscription, wanted: u64| {
            await_true("messages", || {
                subscription
                    .poll(|message, _| check.take(message), 64)
                    .unwrap();
                check.received == wanted
            });
        };
        send(0, 1_000);
        receive(&mut early, 1_000);
        match party {
            JavaClient => {
                let mut late = java::start(
                    "subscribe",
                    &[
                        argument("dir", driver.dir().display()),
                        argument("channel", &channel),
                        argument("stream", stream_id),
                        argument("count", 1_500),
                        argument("frame", FRAME),
                    ],
                );
                let joined = late.expect("AVAILABLE");
                assert_is_late(Program::value(&joined, "join"));
                send(1_000, 1_500);
                receive(&mut early, 1_500);
                late.finish();
            }
            RustClient => {
                let other = connect(driver.dir());
                let mut late = other.add_subscription(&channel, stream_id).unwrap();
                await_true("the image", || late.is_connected());
                let joined = late.images()[0].join_position();
                assert_is_late(joined);
                send(1_000, 1_500);
                receive(&mut early, 1_500);
                let missed = (joined / FRAME) as u64;
                let mut check = Check::new(&[64], 1, missed);
                await_true("the late one's messages", || {
                    late.poll(|message, _| check.take(message), 64).unwrap();
                    missed + check.received == 1_500
                });
            }
        }
    }
}

/// What a message of 64 bytes takes: with its header, aligned to 32.
const FRAME: i64 = 96;

/// A late subscriber joins between two messages, somewhere behind the beginning and not before what its driver has
/// seen consumed; official drivers look at that in turns, so it may be a few messages back.
fn assert_is_late(join_position: i64) {
    assert!(
        join_position > 0 && join_position <= 1_000 * FRAME && join_position % FRAME == 0,
        "joined at {join_position}"
    );
}

macro_rules! list {
    ($driver:expr, $pairs:expr) => {
        #[test]
        fn messages_of_every_length_arrive() {
            require_java!();
            lengths(&$driver("lengths", &[]), $pairs);
        }

        #[test]
        fn claims_arrive() {
            require_java!();
            claims(&$driver("claims", &[]), $pairs);
        }

        #[test]
        fn one_million_messages_arrive() {
            require_java!();
            a_million(&$driver("million", &[]), $pairs);
        }

        #[test]
        fn publication_shared_by_four_threads_delivers_everything() {
            require_java!();
            threads(&$driver("threads", &[]), $pairs);
        }

        #[test]
        fn late_subscriber_joins_at_the_current_position() {
            require_java!();
            let driver = $driver("late", &[]);
            for party in [JavaClient, RustClient] {
                late_subscriber(&driver, party);
            }
        }
    };
}

mod on_our_driver {
    use super::*;
    list!(Driver::taran, ON_OUR_DRIVER);
}

mod on_the_official_driver {
    use super::*;
    list!(Driver::official, ON_THE_OFFICIAL_DRIVER);
}
