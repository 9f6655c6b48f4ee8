// SPDX-License-Identifier: Apache-2.0
//! Both clients on both drivers: the same exchanges for each pair that includes a Taran component.

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

const ON_TARAN_DRIVER: &[Pair] = &[
    (JavaClient, RustClient),
    (RustClient, JavaClient),
    (JavaClient, JavaClient),
];
const ON_OFFICIAL_DRIVER: &[Pair] = &[
    (JavaClient, RustClient),
    (RustClient, JavaClient),
    (RustClient, RustClient),
];

/// A frame carries 1,376 bytes with the default MTU of 1,408; 2 MiB is the maximum message length with 16 MiB terms.
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

/// Messages of every length by `offer`, shared and exclusive.
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

/// Messages of every frame length by `try_claim`, shared and exclusive.
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

/// One million messages, a few of them in two fragments.
fn one_million(driver: &Driver, pairs: &[Pair]) {
    for_each_pair(driver, pairs, |channel| Exchange {
        lengths: vec![20, 32, 100, 64, 8, 1_400],
        count: 1_000_000,
        ..Exchange::on(channel)
    });
}

/// Four threads share one publication.
fn threads(driver: &Driver, pairs: &[Pair]) {
    for_each_pair(driver, pairs, |channel| Exchange {
        lengths: vec![16, 64, 1_000, 3_000],
        count: 25_000,
        threads: 4,
        ..Exchange::on(channel)
    });
}

/// A late subscriber joins at the current position of the stream, not at its start.
fn late_subscriber(driver: &Driver, party: Party) {
    // One stream per party: the publication of the first may still exist when the second starts.
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
                assert_joined_late(Program::value(&joined, "join"));
                send(1_000, 1_500);
                receive(&mut early, 1_500);
                late.finish();
            }
            RustClient => {
                let other = connect(driver.dir());
                let mut late = other.add_subscription(&channel, stream_id).unwrap();
                await_true("the image", || late.is_connected());
                let joined = late.images()[0].join_position();
                assert_joined_late(joined);
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

/// Aligned frame length of a message of 64 bytes.
const FRAME: i64 = 96;

/// Checks that the join position is a frame boundary after the start. Official drivers update the consumed position
/// periodically, so it may lie a few messages back.
fn assert_joined_late(join_position: i64) {
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
            one_million(&$driver("million", &[]), $pairs);
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

mod on_taran_driver {
    use super::*;
    list!(Driver::taran, ON_TARAN_DRIVER);
}

mod on_official_driver {
    use super::*;
    list!(Driver::official, ON_OFFICIAL_DRIVER);
}
