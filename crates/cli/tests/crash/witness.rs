//! Clients that live through it all: they send and receive on the streams that victims die on, compare every byte, and
//! notice how long they are held up.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, FragmentAssembler, OfferError, Publication, Subscription};

use crate::bench::{PATIENCE, Stream, connect};
use crate::message::{HEADER_LENGTH, Producer, Received};

/// Longest message of a witness.
const LONGEST_MESSAGE: usize = 5_000;
/// What a turn leaves to the others: there are more processes than cores.
const PAUSE: Duration = Duration::from_millis(1);

/// What the witnesses saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Testimony {
    /// Messages of witnesses and victims whose every byte was compared.
    pub(crate) messages: u64,
    /// The longest time without a witness's message on any one stream.
    pub(crate) longest_silence: Duration,
    /// The longest time that a command took.
    pub(crate) longest_command: Duration,
    /// Commands that were answered.
    pub(crate) commands: u64,
}

impl fmt::Display for Testimony {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages compared, longest silence of a stream {:.1?}, {} commands answered, the slowest in {:.1?}",
            self.messages, self.longest_silence, self.commands, self.longest_command
        )
    }
}

/// Watches the streams until `over`, and then until all that was sent has come. `ready` is called when each has begun.
pub(crate) fn watch_streams(
    directory: &Path,
    streams: &[Stream],
    over: &AtomicBool,
    ready: impl FnOnce(),
) -> Testimony {
    let (sending, receiving) = (connect(directory), connect(directory));
    let mut watched: Vec<Watched> = streams
        .iter()
        .enumerate()
        .map(|(number, stream)| Watched::new(&sending, &receiving, stream, number as u64))
        .collect();
    let turn = |watched: &mut Vec<Watched>| {
        for stream in watched {
            stream.send();
            stream.receive();
        }
        thread::sleep(PAUSE);
    };
    while watched.iter().any(|stream| stream.arrived() == 0) {
        turn(&mut watched);
    }
    ready();
    while !over.load(Ordering::Relaxed) {
        turn(&mut watched);
    }
    while watched.iter_mut().any(|stream| {
        stream.receive();
        !stream.has_everything()
    }) {
        thread::sleep(PAUSE);
    }
    let longest = watched.iter().map(|stream| stream.longest_silence).max();
    Testimony {
        messages: watched.iter().map(Watched::compared).sum(),
        longest_silence: longest.unwrap_or_default(),
        ..Testimony::default()
    }
}

/// One stream with a witness at each end, and a spy on it where it leaves the machine.
struct Watched {
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

impl Watched {
    fn new(sending: &Client, receiving: &Client, stream: &Stream, number: u64) -> Watched {
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
        Watched {
            publication: sending.add_publication(&stream.channel, stream.id).unwrap(),
            stream: stream.clone(),
            // The numbers above are the victims'.
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
        let before = self.arrived();
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
        if self.arrived() != before || self.has_everything() {
            self.last = Instant::now();
        }
        self.longest_silence = self.longest_silence.max(self.last.elapsed());
        assert!(
            self.longest_silence < PATIENCE,
            "{:?}: nothing of {} messages behind {} has come for {:?}",
            self.stream,
            self.producer.sent(),
            self.arrived(),
            self.longest_silence
        );
    }

    /// Messages of the witness that every reader has.
    fn arrived(&self) -> u64 {
        let of = |reader: &Reader| reader.received.of(self.producer.id());
        self.readers.iter().map(of).min().unwrap_or(0)
    }

    fn has_everything(&self) -> bool {
        self.arrived() == self.producer.sent()
    }

    fn compared(&self) -> u64 {
        let messages = |reader: &Reader| reader.received.messages;
        self.readers.iter().map(messages).sum()
    }
}

/// Asks the driver for things until `over`, and measures how long it takes.
pub(crate) fn ask_for_things(directory: &Path, over: &AtomicBool) -> Testimony {
    let client = connect(directory);
    let mut testimony = Testimony::default();
    let mut note = |begun: Instant| {
        testimony.commands += 1;
        testimony.longest_command = testimony.longest_command.max(begun.elapsed());
    };
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let counter = client.add_counter(2_001, b"witness", "witness").unwrap();
        note(begun);
        let begun = Instant::now();
        let subscription = client.add_subscription("aeron:ipc", 900).unwrap();
        note(begun);
        let begun = Instant::now();
        let publication = client
            .add_exclusive_publication("aeron:ipc?term-length=64k", 900)
            .unwrap();
        note(begun);
        drop((counter, publication, subscription));
        thread::sleep(PAUSE * 50);
    }
    testimony
}
