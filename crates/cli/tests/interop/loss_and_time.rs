// SPDX-License-Identifier: Apache-2.0
//! Loss injected by a Taran driver, congestion control and timestamps, between a Taran driver and the official one.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::counted::labelled as counter;
use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, await_true, connect, udp};
use crate::require_java;

/// Option of a Taran driver, and the corresponding property of the official one.
const MEASURE: (&str, &str) = ("AERON_CUBICCONGESTIONCONTROL_MEASURERTT", "true");
const MEASURE_OFFICIAL: (&str, &str) = ("aeron.CubicCongestionControl.measureRtt", "true");
const INCOMING: &str = "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS";
const OUTGOING: &str = "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS";
const LOSS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";
const MULTI_GAP: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS";

/// A Taran driver and the official one.
struct DriverPair {
    ours: Driver,
    official: Driver,
}

impl DriverPair {
    fn new(variables: &[(&str, &str)]) -> DriverPair {
        DriverPair {
            ours: Driver::taran("ours", variables),
            official: Driver::official(
                "official",
                &[MEASURE_OFFICIAL, ("aeron.publication.linger.timeout", "1s")],
            ),
        }
    }

    /// Returns the publisher's and the subscriber's driver.
    fn ends(&self, from_us: bool) -> (&Driver, &Driver) {
        if from_us {
            (&self.ours, &self.official)
        } else {
            (&self.official, &self.ours)
        }
    }
}

#[test]
fn cubic_streams_with_injected_loss_deliver_everything() {
    require_java!();
    // DATA, NAK, status messages, RTTM.
    let loss = (LOSS, "rate=0.05|seed=7|recv-msg-mask=0x4e");
    let two = DriverPair::new(&[MEASURE, (INCOMING, "loss"), (OUTGOING, "loss"), loss]);
    for from_us in [true, false] {
        let (publisher, subscriber) = two.ends(from_us);
        for party in [Party::Rust, Party::Java] {
            Exchange {
                lengths: vec![64, 1_000, 1_376, 20, 8_000],
                count: 500,
                ..Exchange::on(udp("|term-length=64k|cc=cubic"))
            }
            .run((party, publisher.dir()), (party, subscriber.dir()));
        }
    }
    let ours = connect(two.ours.dir());
    assert!(counter(&ours, "NAKs sent").unwrap() > 0);
    assert!(counter(&ours, "Retransmits sent").unwrap() > 0);
}

#[test]
fn rtt_is_measured_in_both_directions() {
    require_java!();
    let two = DriverPair::new(&[MEASURE]);
    for from_us in [true, false] {
        let (publisher, subscriber) = two.ends(from_us);
        let channel = udp("|term-length=64k|cc=cubic");
        let (publishing, subscribing) = (connect(publisher.dir()), connect(subscriber.dir()));
        let mut subscription = subscribing.add_subscription(&channel, 5).unwrap();
        let publication = publishing.add_publication(&channel, 5).unwrap();
        await_true("connection", || publication.is_connected());
        await_true("a round trip", || {
            let _ = publication.offer(b"a message");
            let _ = subscription.poll(|_, _| (), 10).unwrap();
            counter(&subscribing, "rcv-cc-cubic-rtt").is_some_and(|rtt| rtt > 0)
        });
        await_true("the whole window", || {
            let _ = subscription.poll(|_, _| (), 10).unwrap();
            counter(&subscribing, "rcv-cc-cubic-wnd") == Some(32_768 / 1_408 * 1_408)
        });
        assert_eq!(counter(&publishing, "Invalid packets"), Some(0));
        assert_eq!(counter(&subscribing, "Invalid packets"), Some(0));
    }
}

/// Received messages are complete and in order; the receiver fills gaps with padding.
#[test]
fn unreliable_subscriber_skips_injected_gaps() {
    require_java!();
    let gaps = "term-id=0|gap-radix=4096|gap-length=64|total-gaps=10";
    let two = DriverPair::new(&[
        (INCOMING, "multi-gap-loss"),
        (OUTGOING, "multi-gap-loss"),
        (MULTI_GAP, gaps),
    ]);
    for from_us in [true, false] {
        let (publisher, subscriber) = two.ends(from_us);
        let (publishing, subscribing) = (connect(publisher.dir()), connect(subscriber.dir()));
        let channel = udp("");
        let start = "|term-length=64k|init-term-id=0|term-id=0|term-offset=0";
        let unreliable = format!("{channel}|reliable=false");
        let mut subscription = subscribing.add_subscription(&unreliable, 5).unwrap();
        let mut publication = publishing
            .add_exclusive_publication(format!("{channel}{start}"), 5)
            .unwrap();
        await_true("connection", || publication.is_connected());
        let mut last = None;
        let mut received = 0;
        let mut poll = || {
            let _ = subscription
                .poll(
                    |message, _| {
                        let number = u64::from_le_bytes(message[..8].try_into().unwrap());
                        assert!(last.is_none_or(|last| last < number), "{last:?} {number}");
                        (last, received) = (Some(number), received + 1);
                    },
                    64,
                )
                .unwrap();
            last
        };
        for number in 0..200u64 {
            // No frame of this length begins at a gap: otherwise a heartbeat there would be lost instead of the frame.
            let mut message = [0; 1_000];
            message[..8].copy_from_slice(&number.to_le_bytes());
            await_true("room", || {
                poll();
                publication.offer(&message).is_ok()
            });
        }
        await_true("the last message", || poll() == Some(199));
        // Each gap loses at least one message.
        assert!((1..=190).contains(&received), "{received}");
        assert!(counter(&subscribing, "Loss gap fills").unwrap() >= 10);
        assert_eq!(counter(&subscribing, "NAKs sent"), Some(0));
    }
}

/// One driver loses datagrams and the other one requests them, in both directions: one NAK and one retransmission per
/// gap, and no unrequested ones.
#[test]
fn injected_gaps_are_repaired_once() {
    require_java!();
    let gaps = "term-id=0|gap-radix=4096|gap-length=64|total-gaps=15";
    let start = "|term-length=64k|init-term-id=0|term-id=0|term-offset=0|nak-delay=50us";
    for (option, from_us) in [(INCOMING, false), (OUTGOING, true)] {
        let two = DriverPair::new(&[(option, "multi-gap-loss"), (MULTI_GAP, gaps)]);
        let (publisher, subscriber) = two.ends(from_us);
        Exchange {
            lengths: vec![1_000],
            count: 1_000,
            exclusive: true,
            ..Exchange::on(udp(start))
        }
        .run(
            (Party::Rust, publisher.dir()),
            (Party::Rust, subscriber.dir()),
        );
        let naks = counter(&connect(subscriber.dir()), "NAKs sent").unwrap();
        let resent = counter(&connect(publisher.dir()), "Retransmits sent").unwrap();
        // One per gap, plus one for each 5 ms in which the other side was not scheduled.
        assert!(naks >= 15, "{naks}");
        assert!((15..=naks).contains(&resent), "{resent} of {naks}");
    }
}

fn epoch_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_nanos()).unwrap()
}

#[test]
fn channel_timestamps_are_written_to_messages() {
    require_java!();
    let two = DriverPair::new(&[]);
    for from_us in [true, false] {
        let (publisher, subscriber) = two.ends(from_us);
        let (publishing, subscribing) = (connect(publisher.dir()), connect(subscriber.dir()));
        let channel = udp("");
        // The official Java driver has no kernel timestamps.
        let media = if from_us {
            ""
        } else {
            "|media-rcv-ts-offset=16"
        };
        let receiving = format!("{channel}|channel-rcv-ts-offset=reserved{media}");
        let mut subscription = subscribing.add_subscription(&receiving, 5).unwrap();
        let publication = publishing
            .add_publication(format!("{channel}|channel-snd-ts-offset=0"), 5)
            .unwrap();
        await_true("connection", || publication.is_connected());
        let before = epoch_ns();
        await_true("room", || publication.offer(&[0; 32]).is_ok());
        let mut times = None;
        await_true("the message", || {
            subscription
                .poll(
                    |message, header| {
                        let word =
                            |at: usize| i64::from_le_bytes(message[at..at + 8].try_into().unwrap());
                        assert_eq!((word(8), word(24)), (0, 0), "nothing else is written");
                        times = Some((word(0), word(16), header.reserved_value()));
                    },
                    1,
                )
                .unwrap()
                == 1
        });
        let (sent, arrived, received) = times.unwrap();
        let order = if from_us {
            vec![before, sent, received, epoch_ns()]
        } else {
            vec![before, sent, arrived, received, epoch_ns()]
        };
        assert!(order.is_sorted(), "{order:?}");
    }
}
