// SPDX-License-Identifier: Apache-2.0
//! Surviving clients: they send and receive on the streams that victims use, compare every byte, and measure delays.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, FragmentAssembler, OfferError, Publication, Subscription};

use crate::fixture::{Stream, TIMEOUT, connect};
use crate::message::{HEADER_LENGTH, Producer, Received};

/// Maximum message length.
const LONGEST_MESSAGE: usize = 5_000;
/// Pause per cycle, because there are more processes than cores.
const PAUSE: Duration = Duration::from_millis(1);

/// Results of the surviving clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct SurvivorReport {
    /// Number of compared messages, of survivors and victims.
    pub(crate) messages: u64,
    /// Longest time without a message of the survivor on any stream.
    pub(crate) longest_silence: Duration,
    /// Longest response time of a command.
    pub(crate) longest_command: Duration,
    /// Number of answered commands.
    pub(crate) commands: u64,
}

impl fmt::Display for SurvivorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages compared, longest silence of a stream {:.1?}, {} commands answered, the slowest in {:.1?}",
            self.messages, self.longest_silence, self.commands, self.longest_command
        )
    }
}

/// Exchanges messages on the streams until `over`, then until all messages have arrived. `ready` is called when each
/// stream has started.
pub(crate) fn exchange_on_streams(
    directory: &Path,
    streams: &[Stream],
    over: &AtomicBool,
    ready: impl FnOnce(),
) -> SurvivorReport {
    let (sending, receiving) = (connect(directory), connect(directory));
    let mut checked: Vec<CheckedStream> = streams
        .iter()
        .enumerate()
        .map(|(number, stream)| CheckedStream::new(&sending, &receiving, stream, number as u64))
        .collect();
    let exchange = |checked: &mut Vec<CheckedStream>| {
        for stream in checked {
            stream.send();
            stream.receive();
        }
        thread::sleep(PAUSE);
    };
    while checked.iter().any(|stream| stream.received_by_all() == 0) {
        exchange(&mut checked);
    }
    ready();
    while !over.load(Ordering::Relaxed) {
        exchange(&mut checked);
    }
    while checked.iter_mut().any(|stream| {
        stream.receive();
        !stream.has_everything()
    }) {
        thread::sleep(PAUSE);
    }
    let longest = checked.iter().map(|stream| stream.longest_silence).max();
    SurvivorReport {
        messages: checked.iter().map(CheckedStream::compared).sum(),
        longest_silence: longest.unwrap_or_default(),
        ..SurvivorReport::default()
    }
}

/// A stream with a publisher, a subscriber, and a spy if it is a UDP stream.
struct CheckedStream {
    stream: Stream,
    publication: Publication,
    producer: Producer,
    random: fastrand::Rng,
    readers: Vec<Reader>,
    last: Instant,
    longest_silence: Duration,
}

struct Reader {
    subscription: Subscription,
    assembler: FragmentAssembler,
    received: Received,
}

impl CheckedStream {
    fn new(sending: &Client, receiving: &Client, stream: &Stream, number: u64) -> CheckedStream {
        let mut channels = vec![stream.channel.clone()];
        if stream.channel.starts_with("aeron:udp") {
            channels.push(format!("aeron-spy:{}", stream.channel));
        }
        let readers = channels
            .iter()
            .map(|channel| Reader {
                subscription: receiving.add_subscription(channel, stream.id).unwrap(),
                assembler: FragmentAssembler::new(),
                received: Received::from_the_beginning(),
            })
            .collect();
        CheckedStream {
            publication: sending.add_publication(&stream.channel, stream.id).unwrap(),
            stream: stream.clone(),
            // Higher producer ids belong to the victims.
            producer: Producer::new(number),
            random: fastrand::Rng::with_seed(number),
            readers,
            last: Instant::now(),
            longest_silence: Duration::ZERO,
        }
    }

    fn send(&mut self) {
        let mut message = vec![0; self.random.usize(HEADER_LENGTH..LONGEST_MESSAGE)];
        self.producer.write(&mut message);
        match self.publication.offer(&message) {
            Ok(_) => self.producer.accepted(),
            Err(OfferError::DriverLost(lost)) => panic!("{:?}: {lost}", self.stream),
            Err(error) => assert!(error.is_retryable(), "{:?}: {error}", self.stream),
        }
    }

    fn receive(&mut self) {
        let before = self.received_by_all();
        for reader in &mut self.readers {
            let (stream, received) = (&self.stream, &mut reader.received);
            let handler = reader.assembler.wrap(|message, header| {
                if let Err(reason) = received.take(message) {
                    let (session, position) = (header.session_id(), header.position());
                    panic!("{stream:?}, session {session}, at {position}: {reason}");
                }
            });
            reader.subscription.poll(handler, 1_000).unwrap();
        }
        if self.received_by_all() != before || self.has_everything() {
            self.last = Instant::now();
        }
        self.longest_silence = self.longest_silence.max(self.last.elapsed());
        assert!(
            self.longest_silence < TIMEOUT,
            "{:?}: of {} messages, none after {} has arrived for {:?}",
            self.stream,
            self.producer.sent(),
            self.received_by_all(),
            self.longest_silence
        );
    }

    /// Returns the number of survivor messages that all readers have received.
    fn received_by_all(&self) -> u64 {
        let of = |reader: &Reader| reader.received.of(self.producer.id());
        self.readers.iter().map(of).min().unwrap_or(0)
    }

    fn has_everything(&self) -> bool {
        self.received_by_all() == self.producer.sent()
    }

    fn compared(&self) -> u64 {
        let messages = |reader: &Reader| reader.received.messages;
        self.readers.iter().map(messages).sum()
    }
}

/// Sends commands to the driver until `over`, and measures the response times.
///
pub(crate) fn send_commands(directory: &Path, over: &AtomicBool) -> SurvivorReport {
    let client = connect(directory);
    let mut report = SurvivorReport::default();
    let mut note = |started: Instant| {
        report.commands += 1;
        report.longest_command = report.longest_command.max(started.elapsed());
    };
    while !over.load(Ordering::Relaxed) {
        let started = Instant::now();
        let counter = client.add_counter(2_001, b"witness", "witness").unwrap();
        note(started);
        let started = Instant::now();
        let subscription = client.add_subscription("aeron:ipc", 900).unwrap();
        note(started);
        let started = Instant::now();
        let publication = client
            .add_exclusive_publication("aeron:ipc?term-length=64k", 900)
            .unwrap();
        note(started);
        drop((counter, publication, subscription));
        thread::sleep(PAUSE * 50);
    }
    report
}
