// SPDX-License-Identifier: Apache-2.0
//! Exchanges between a publisher and a subscriber, each in Java or Rust; every byte is compared.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, FragmentAssembler, ImageHandlers, OfferError, Subscription};

use crate::java::{self, argument};
use crate::pattern::{self, Check};
use crate::program::Program;

/// Time limit for an exchange, generous because the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Pause of an idle party, because there are more processes than cores.
const PAUSE: Duration = Duration::from_micros(50);

/// Implementation of a party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// The official Java client, in its own process.
    Java,
    /// The Taran client, in the test process.
    Rust,
}

/// Parameters of an exchange.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) channel: String,
    /// Channel of the subscriber, if different.
    pub(crate) subscriber_channel: Option<String>,
    /// Destinations that the publisher adds to a publication with manual control.
    pub(crate) destinations: Vec<String>,
    pub(crate) stream_id: i32,
    pub(crate) exclusive: bool,
    pub(crate) claim: bool,
    pub(crate) lengths: Vec<usize>,
    pub(crate) count: u64,
    pub(crate) threads: usize,
    /// Destinations that the subscriber adds to a subscription with manual control.
    pub(crate) sources: Vec<String>,
    /// Expected join position of the subscriber's image in bytes, if known.
    pub(crate) joins_at: Option<i64>,
}

impl Exchange {
    pub(crate) fn on(channel: impl Into<String>) -> Exchange {
        Exchange {
            channel: channel.into(),
            subscriber_channel: None,
            destinations: Vec::new(),
            stream_id: 1_001,
            exclusive: false,
            claim: false,
            lengths: vec![64],
            count: 10_000,
            threads: 1,
            sources: Vec::new(),
            joins_at: None,
        }
    }

    /// Runs the exchange between `publisher_dir` and `subscriber_dir`, which are equal if one driver serves both. The
    /// subscriber stays until the stream has ended and its image is gone.
    pub(crate) fn run(&self, publisher: (Party, &Path), subscriber: (Party, &Path)) {
        eprintln!("{:?} -> {:?}: {self:?}", publisher.0, subscriber.0);
        match subscriber.0 {
            Party::Java => {
                let more = [
                    argument("await", "eos"),
                    argument("sources", self.sources.join(",")),
                ];
                let mut receiving = self.java("subscribe", subscriber.1, &more);
                receiving.expect("SUBSCRIBED");
                self.publish(publisher);
                let said = receiving.finish();
                let events = ["AVAILABLE", "RECEIVED", "UNAVAILABLE"];
                let end = self.end_is_observable().then_some("END_OF_STREAM");
                for event in events.into_iter().chain(end) {
                    assert!(
                        said.iter().any(|line| line.starts_with(event)),
                        "no {event} in {said:#?}"
                    );
                }
                let joined = said.iter().find(|line| line.starts_with("AVAILABLE"));
                self.check_join(Program::value(joined.unwrap(), "join"));
            }
            Party::Rust => {
                let client = connect(subscriber.1);
                let events = Events::default();
                let mut subscription = client
                    .add_subscription_with(
                        self.subscriber_channel(),
                        self.stream_id,
                        events.handlers(),
                    )
                    .expect("the driver takes the subscription");
                for source in &self.sources {
                    let added = subscription.add_destination(source);
                    added.expect("the driver takes the source");
                }
                thread::scope(|scope| {
                    let publishing = scope.spawn(|| self.publish(publisher));
                    self.receive(&mut subscription);
                    publishing.join().expect("the publisher does its part");
                });
                await_true("word that the image is gone", || events.said().len() == 2);
                assert_eq!(events.said(), ["available", "unavailable at its end"]);
                self.check_join(events.joined.load(Ordering::SeqCst));
            }
        }
    }

    fn check_join(&self, joined: i64) {
        if let Some(position) = self.joins_at {
            assert_eq!(joined, position, "where the image begins");
        }
    }

    /// Returns true if a polling subscriber is sure to see the end of the stream before its image is removed. Over IPC
    /// both follow from consecutive ticks of the driver's timer, or nearly coincide.
    fn end_is_observable(&self) -> bool {
        !self.subscriber_channel().starts_with("aeron:ipc")
    }

    fn subscriber_channel(&self) -> &str {
        if !self.sources.is_empty() {
            return "aeron:udp?control-mode=manual";
        }
        self.subscriber_channel.as_ref().unwrap_or(&self.channel)
    }

    fn publish(&self, (party, dir): (Party, &Path)) {
        match party {
            Party::Java => {
                self.java("publish", dir, &[]).finish();
            }
            Party::Rust => publish(self, &connect(dir)),
        }
    }

    fn java(&self, program: &str, dir: &Path, more: &[String]) -> Program {
        let channel = match program {
            "subscribe" => self.subscriber_channel(),
            _ => &self.channel,
        };
        let lengths: Vec<String> = self.lengths.iter().map(ToString::to_string).collect();
        let mut arguments = vec![
            argument("dir", dir.display()),
            argument("channel", channel),
            argument("destinations", self.destinations.join(",")),
            argument("stream", self.stream_id),
            argument("exclusive", self.exclusive),
            argument("claim", self.claim),
            argument("lengths", lengths.join(",")),
            argument("count", self.count),
            argument("threads", self.threads),
            argument("timeout", TIMEOUT.as_secs()),
        ];
        arguments.extend_from_slice(more);
        java::start(program, &arguments)
    }

    /// Receives everything, then waits for the end of the stream and the removal of the image.
    fn receive(&self, subscription: &mut Subscription) {
        let mut check = Check::new(&self.lengths, self.threads, 0);
        let wanted = self.count * self.threads as u64;
        let mut assembler = FragmentAssembler::new();
        let deadline = Instant::now() + TIMEOUT;
        let mut ended = false;
        while check.received < wanted || subscription.is_connected() {
            let fragments = subscription
                .poll(assembler.wrap(|message, _| check.take(message)), 64)
                .expect("the driver lives");
            ended |= subscription
                .images()
                .iter()
                .any(|image| image.is_end_of_stream());
            if fragments == 0 {
                thread::sleep(PAUSE);
            }
            assert!(
                Instant::now() < deadline,
                "{} of {wanted} messages, ended: {ended}",
                check.received
            );
        }
        assert_eq!(check.received, wanted);
        assert!(
            ended || !self.end_is_observable(),
            "the image became unavailable without an end of stream"
        );
    }
}

/// Events reported to the handlers of a subscription.
#[derive(Clone, Default)]
struct Events {
    said: Arc<Mutex<Vec<&'static str>>>,
    joined: Arc<AtomicI64>,
}

impl Events {
    fn handlers(&self) -> ImageHandlers {
        let (available, unavailable) = (self.clone(), self.clone());
        ImageHandlers::new()
            .on_available(move |image| {
                let position = image.join_position();
                available.joined.store(position, Ordering::SeqCst);
                available.note("available");
            })
            .on_unavailable(move |image| {
                unavailable.note(if image.is_end_of_stream() {
                    "unavailable at its end"
                } else {
                    "unavailable before its end"
                });
            })
    }

    fn note(&self, what: &'static str) {
        self.said.lock().unwrap().push(what);
    }

    fn said(&self) -> Vec<&'static str> {
        self.said.lock().unwrap().clone()
    }
}

/// Connects a client to the driver in `dir`.
pub(crate) fn connect(dir: &Path) -> Client {
    Client::builder()
        .aeron_dir(dir)
        .connect()
        .expect("the driver is running")
}

/// Publishes with the Taran client from the configured number of threads.
fn publish(exchange: &Exchange, client: &Client) {
    if exchange.exclusive {
        let mut publication = client
            .add_exclusive_publication(&exchange.channel, exchange.stream_id)
            .expect("the driver takes the publication");
        for destination in &exchange.destinations {
            let added = publication.add_destination(destination);
            added.expect("the driver takes the destination");
        }
        await_true("connection", || publication.is_connected());
        produce(exchange, 0, |message| {
            if exchange.claim {
                let mut claim = publication.try_claim(message.len())?;
                claim.copy_from_slice(message);
                claim.commit();
                Ok(())
            } else {
                publication.offer(message).map(|_| ())
            }
        });
    } else {
        let publication = client
            .add_publication(&exchange.channel, exchange.stream_id)
            .expect("the driver takes the publication");
        for destination in &exchange.destinations {
            let added = publication.add_destination(destination);
            added.expect("the driver takes the destination");
        }
        await_true("connection", || publication.is_connected());
        thread::scope(|scope| {
            for producer in 0..exchange.threads {
                let publication = publication.clone();
                scope.spawn(move || {
                    produce(exchange, producer, |message| {
                        if exchange.claim {
                            let mut claim = publication.try_claim(message.len())?;
                            claim.copy_from_slice(message);
                            claim.commit();
                            Ok(())
                        } else {
                            publication.offer(message).map(|_| ())
                        }
                    });
                });
            }
        });
    }
}

fn produce(
    exchange: &Exchange,
    producer: usize,
    mut offer: impl FnMut(&[u8]) -> Result<(), OfferError>,
) {
    let deadline = Instant::now() + TIMEOUT;
    let longest = exchange.lengths.iter().copied().max().unwrap_or(0);
    let mut buffer = vec![0; longest];
    for sequence in 0..exchange.count {
        let length = exchange.lengths[usize::try_from(sequence).unwrap() % exchange.lengths.len()];
        let message = &mut buffer[..length];
        let producer = i32::try_from(producer).unwrap();
        pattern::fill(message, producer, sequence, exchange.threads > 1);
        while let Err(error) = offer(message) {
            assert!(error.is_retryable(), "message {sequence}: {error}");
            assert!(
                Instant::now() < deadline,
                "message {sequence}: {error} for too long"
            );
            thread::yield_now();
        }
    }
}

/// Waits until the condition is true.
pub(crate) fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a UDP channel on a port that no other test of this process uses.
pub(crate) fn udp(parameters: &str) -> String {
    format!("aeron:udp?endpoint=127.0.0.1:{}{parameters}", port())
}

/// Returns a port that no other test of this process uses.
pub(crate) fn port() -> u16 {
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    let offset = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let base = 21_000 + std::process::id() as u16 % 100 * 100;
    base + offset
}
