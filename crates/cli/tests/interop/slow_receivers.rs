// SPDX-License-Identifier: Apache-2.0
//! DriverPair receivers on drivers of the other implementation, one of which does not consume: the effect of each group flow
//! control (docs/spec/wire.md §4). Some wait for it and others continue without it; tags determine the required
//! receivers.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, ExclusivePublication, FragmentAssembler, Subscription};
use taran_protocol::counter::{SystemCounter, type_id};

use crate::counted;
use crate::drivers::Driver;
use crate::exchange::{Party, await_true, connect, port};
use crate::java::{self, argument};
use crate::pattern::{self, Check};
use crate::program::Program;
use crate::require_java;

const LENGTHS: [usize; 4] = [1_000, 64, 1_376, 3_000];
/// Several times the capacity of a log.
const COUNT: u64 = 500;
/// Initial window of a receiver: half of a term of 64 KiB.
const WINDOW: i64 = 32 * 1024;
/// Number of status messages without progress after which none is expected.
const QUIET_STATUS_MESSAGES: i64 = 4;
const TIMEOUT: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_micros(200);

/// Kind of channel with several receivers.
#[derive(Clone, Copy, Debug)]
enum Medium {
    Multicast,
    /// Dynamic destinations.
    Dynamic,
}

/// Expected effect of the receiver that does not consume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    GoesOn,
    WaitsUntilItReads,
    WaitsUntilItLeaves,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    flow_control: &'static str,
    /// Additional channel parameters of the two receivers.
    fast: &'static str,
    slow: &'static str,
    /// Number of required receivers, if the flow control counts them.
    counted: i64,
    expected: Effect,
}

const CASES: [Case; 5] = [
    case("max", "", "", 0, Effect::GoesOn),
    case("min,g:/2", "", "", 2, Effect::WaitsUntilItReads),
    case("min,t:3s", "", "", 2, Effect::WaitsUntilItLeaves),
    case("tagged,g:7/1", "|gtag=7", "|gtag=8", 1, Effect::GoesOn),
    case(
        "tagged,g:7/2",
        "|gtag=7",
        "|gtag=7",
        2,
        Effect::WaitsUntilItReads,
    ),
];

const fn case(
    flow_control: &'static str,
    fast: &'static str,
    slow: &'static str,
    counted: i64,
    expected: Effect,
) -> Case {
    Case {
        flow_control,
        fast,
        slow,
        counted,
        expected,
    }
}

/// Channels of one stream.
struct Channels {
    stream_id: i32,
    publish: String,
    fast: String,
    slow: String,
}

impl Channels {
    fn new(medium: Medium, case: &Case) -> Channels {
        let receiver: Box<dyn Fn() -> String> = match medium {
            Medium::Multicast => {
                let group = format!("endpoint=224.20.30.43:{}|interface=localhost", port());
                Box::new(move || group.clone())
            }
            Medium::Dynamic => {
                let control = format!("control=127.0.0.1:{}|control-mode=dynamic", port());
                Box::new(move || format!("endpoint=127.0.0.1:{}|{control}", port()))
            }
        };
        let publisher = receiver();
        let publisher = match medium {
            Medium::Multicast => publisher.as_str(),
            // Without an explicit endpoint.
            Medium::Dynamic => publisher.split_once('|').unwrap().1,
        };
        let flow_control = case.flow_control;
        Channels {
            // Counters of the previous case may still exist.
            stream_id: i32::from(port()),
            publish: format!("aeron:udp?{publisher}|term-length=64k|fc={flow_control}"),
            fast: format!("aeron:udp?{}{}", receiver(), case.fast),
            slow: format!("aeron:udp?{}{}", receiver(), case.slow),
        }
    }
}

/// The consuming receiver: in Java, or in a thread.
enum Fast {
    Java(Program),
    Rust(thread::JoinHandle<()>),
}

impl Fast {
    fn start(party: Party, dir: &Path, channels: &Channels) -> Fast {
        let (channel, stream_id) = (&channels.fast, channels.stream_id);
        match party {
            Party::Java => {
                let lengths = LENGTHS.map(|length| length.to_string()).join(",");
                let mut program = java::start(
                    "subscribe",
                    &[
                        argument("dir", dir.display()),
                        argument("channel", channel),
                        argument("stream", stream_id),
                        argument("lengths", lengths),
                        argument("count", COUNT),
                        argument("await", "eos"),
                        argument("timeout", TIMEOUT.as_secs()),
                    ],
                );
                program.expect("SUBSCRIBED");
                Fast::Java(program)
            }
            Party::Rust => {
                let client = connect(dir);
                let mut subscription = client.add_subscription(channel, stream_id).unwrap();
                Fast::Rust(thread::spawn(move || {
                    receive(&mut subscription, &mut Check::new(&LENGTHS, 1, 0));
                    await_true("the end of the stream", || {
                        assert_eq!(subscription.poll(|_, _| (), 1), Ok(0));
                        !subscription.is_connected()
                    });
                    // Its subscriptions are closed when it ends.
                    drop(client);
                }))
            }
        }
    }

    /// Waits until it has received everything and the stream has ended.
    fn finish(self) {
        match self {
            Fast::Java(program) => {
                let said = program.finish();
                let received = format!("RECEIVED count={COUNT}");
                assert!(
                    said.iter().any(|line| line.starts_with(&received)),
                    "{said:#?}"
                );
            }
            Fast::Rust(thread) => thread.join().expect("the fast receiver gets everything"),
        }
    }
}

/// Polls until the last message has arrived.
fn receive(subscription: &mut Subscription, check: &mut Check) {
    let deadline = Instant::now() + TIMEOUT;
    let mut assembler = FragmentAssembler::new();
    while check.received < COUNT {
        let fragments = subscription.poll(assembler.wrap(|message, _| check.take(message)), 64);
        if fragments.expect("the driver lives") == 0 {
            thread::sleep(PAUSE);
        }
        assert!(
            Instant::now() < deadline,
            "{} of {COUNT} messages",
            check.received
        );
    }
}

/// The publishing side, and the progress of the consuming receiver.
struct Sending<'a> {
    publication: ExclusivePublication,
    publishing: &'a Client,
    reading: &'a Client,
    stream_id: i32,
    sent: u64,
}

impl Sending<'_> {
    fn sender_position(&self) -> i64 {
        counted::of_stream(self.publishing, type_id::SENDER_POSITION, self.stream_id).unwrap()
    }

    /// Returns true if the consuming receiver has everything that was sent.
    fn is_read(&self) -> bool {
        let read = counted::of_stream(self.reading, type_id::SUBSCRIBER_POSITION, self.stream_id);
        read == Some(self.sender_position())
    }

    /// Returns the status messages so far: sent by the consuming driver, and received by the publishing one.
    fn status_messages(&self) -> [i64; 2] {
        [
            counted::system(self.reading, SystemCounter::StatusMessagesSent),
            counted::system(self.publishing, SystemCounter::StatusMessagesReceived),
        ]
    }

    /// Publishes until everything is sent, or until there is no progress although the consuming receiver has received
    /// everything and keeps sending status messages. Returns true in the first case.
    fn send(&mut self) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        let mut message = [0; 3_000];
        let mut still = (self.sender_position(), self.status_messages());
        while self.sent < COUNT {
            let message = &mut message[..LENGTHS[self.sent as usize % LENGTHS.len()]];
            pattern::fill(message, 0, self.sent, false);
            match self.publication.offer(message) {
                Ok(_) => self.sent += 1,
                Err(error) => {
                    assert!(error.is_retryable(), "message {}: {error}", self.sent);
                    assert!(
                        Instant::now() < deadline,
                        "{error} for too long, at {}: read {}, {:?}, since {still:?}",
                        self.sender_position(),
                        self.is_read(),
                        self.status_messages()
                    );
                    thread::sleep(PAUSE);
                    let position = self.sender_position();
                    if !self.is_read() || position != still.0 {
                        still = (position, self.status_messages());
                    }
                    let said = self
                        .status_messages()
                        .iter()
                        .zip(still.1)
                        .all(|(n, m)| n - m >= QUIET_STATUS_MESSAGES);
                    if said {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Publishes the remaining messages; the current blockage must end.
    fn send_all(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.send() {
            assert!(Instant::now() < deadline, "is stuck at {}", self.sent);
        }
    }
}

fn run(medium: Medium, case: &Case, fast: Party, from: &Path, [to_fast, to_slow]: [&Path; 2]) {
    eprintln!("{medium:?}, {case:?}, {fast:?}");
    let channels = Channels::new(medium, case);
    let stream = channels.stream_id;
    let (publishing, reading, dozing) = (connect(from), connect(to_fast), connect(to_slow));
    let mut slow = dozing.add_subscription(&channels.slow, stream).unwrap();
    let mut fast = Fast::start(fast, to_fast, &channels);
    let publication = publishing
        .add_exclusive_publication(&channels.publish, stream)
        .unwrap();
    await_true("the slow receiver", || slow.is_connected());
    match &mut fast {
        Fast::Java(program) => drop(program.expect("AVAILABLE")),
        Fast::Rust(_) => await_true("the fast receiver", || {
            counted::of_stream(&reading, type_id::SUBSCRIBER_POSITION, stream).is_some()
        }),
    }
    await_true("connection", || publication.is_connected());
    if case.counted > 0 {
        await_true("those that count", || {
            let receivers = type_id::FLOW_CONTROL_RECEIVERS;
            counted::of_stream(&publishing, receivers, stream) == Some(case.counted)
        });
    }
    let mut sending = Sending {
        publication,
        publishing: &publishing,
        reading: &reading,
        stream_id: stream,
        sent: 0,
    };
    let all = sending.send();
    assert_eq!(
        all,
        case.expected == Effect::GoesOn,
        "sent {}",
        sending.sent
    );
    assert_eq!(slow.images()[0].position(), 0);
    let mut check = Check::new(&LENGTHS, 1, 0);
    if all {
        await_true("the fast receiver", || sending.is_read());
        // The slow receiver finds the beginning of the stream; the rest is lost for it.
        let mut assembler = FragmentAssembler::new();
        await_true("the beginning", || {
            let read = slow.poll(assembler.wrap(|message, _| check.take(message)), 1);
            read.unwrap() == 0 && check.received > 0
        });
        assert!(check.received < COUNT / 2, "{}", check.received);
    } else {
        assert!(sending.sender_position() <= WINDOW);
        if case.expected == Effect::WaitsUntilItLeaves {
            slow.close();
            sending.send_all();
        } else {
            thread::scope(|scope| {
                scope.spawn(|| receive(&mut slow, &mut check));
                sending.send_all();
            });
            assert_eq!(check.received, COUNT);
        }
    }
    drop(sending);
    fast.finish();
}

/// Runs every flow control over both media, from the first driver to the two others.
fn every_case(from: &Driver, to: [&Driver; 2]) {
    for (medium, fast) in [
        (Medium::Multicast, Party::Rust),
        (Medium::Dynamic, Party::Java),
    ] {
        for case in &CASES {
            run(medium, case, fast, from.dir(), to.map(Driver::dir));
        }
    }
}

/// Timeout that keeps a detached image until the test has inspected it.
const LONG_TIMEOUT: &str = "60s";

fn ours(name: &str) -> Driver {
    Driver::taran(
        name,
        &[
            ("AERON_PUBLICATION_LINGER_TIMEOUT", "1s"),
            ("AERON_IMAGE_LIVENESS_TIMEOUT", LONG_TIMEOUT),
        ],
    )
}

fn official(name: &str) -> Driver {
    Driver::official(
        name,
        &[
            ("aeron.publication.linger.timeout", "1s"),
            ("aeron.image.liveness.timeout", LONG_TIMEOUT),
        ],
    )
}

#[test]
fn taran_publisher_with_slow_official_receiver_applies_flow_control() {
    require_java!();
    every_case(&ours("from"), [&official("fast"), &official("slow")]);
}

#[test]
fn official_publisher_with_slow_taran_receiver_applies_flow_control() {
    require_java!();
    every_case(&official("from"), [&ours("fast"), &ours("slow")]);
}
