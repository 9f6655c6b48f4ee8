//! What happened in a world, in order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::story::Coverage;

/// Prints all events as they happen, if it is set.
const TRACE: &str = "TARAN_SIM_TRACE";

/// How many of the last events are kept, to be shown when a run fails.
const TAIL: usize = 150;

/// A part of a driver that takes turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    /// The one that clients talk to.
    Conductor,
    /// The one that sends.
    Sender,
    /// The one that receives.
    Receiver,
}

/// Something that happened. Ids are those of the world, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An agent of a driver did something.
    Driver {
        /// Which host.
        host: usize,
        /// Which of its agents.
        agent: Agent,
        /// How much.
        work: usize,
    },
    /// A client's conductor did something.
    Client {
        /// Which client.
        client: usize,
        /// How much.
        work: usize,
    },
    /// A message was accepted.
    Offered {
        /// Which publisher.
        publisher: usize,
        /// Index of the message in its stream.
        index: usize,
        /// Position of the stream after it.
        position: i64,
    },
    /// A message was claimed and given up.
    Aborted {
        /// Which publisher.
        publisher: usize,
        /// Position of the stream after it.
        position: i64,
    },
    /// A message was not accepted.
    Refused {
        /// Which publisher.
        publisher: usize,
        /// Why; repeated refusals for the same reason are one event.
        reason: &'static str,
    },
    /// A subscriber got a message.
    Delivered {
        /// Which subscriber.
        subscriber: usize,
        /// Session of the image.
        session: i32,
        /// Position of the stream after it.
        position: i64,
    },
    /// A subscriber got an image.
    Available {
        /// Which subscriber.
        subscriber: usize,
        /// Session of the image.
        session: i32,
        /// Where it joined.
        position: i64,
    },
    /// A subscriber lost an image.
    Unavailable {
        /// Which subscriber.
        subscriber: usize,
        /// Session of the image.
        session: i32,
        /// Where it was left.
        position: i64,
    },
    /// Something that the story of the test did to a thing with this number.
    Told(&'static str, usize),
}

impl Event {
    /// What it is called in a table; turns have no name.
    fn kind(&self) -> &'static str {
        match self {
            Self::Driver { .. } | Self::Client { .. } => "turns",
            Self::Offered { .. } => "messages published",
            Self::Aborted { .. } => "messages aborted",
            Self::Refused { .. } => "messages refused",
            Self::Delivered { .. } => "messages delivered",
            Self::Available { .. } => "images that came",
            Self::Unavailable { .. } => "images that went",
            Self::Told(what, _) => what,
        }
    }
}

/// A running hash over all events with their times, and the last of them.
#[derive(Debug)]
pub(crate) struct History {
    hasher: Mixer,
    count: u64,
    kinds: BTreeMap<&'static str, u64>,
    tail: VecDeque<(i64, Event)>,
    is_traced: bool,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            hasher: Mixer::default(),
            count: 0,
            kinds: BTreeMap::new(),
            tail: VecDeque::with_capacity(TAIL),
            is_traced: std::env::var_os(TRACE).is_some(),
        }
    }

    pub(crate) fn note(&mut self, now_ns: i64, event: Event) {
        self.count += 1;
        (now_ns, event).hash(&mut self.hasher);
        if self.is_traced {
            eprintln!("{} {event:?}", Time(now_ns));
        }
        // Turns are many, and say little.
        if matches!(event, Event::Driver { .. } | Event::Client { .. }) {
            return;
        }
        *self.kinds.entry(event.kind()).or_default() += 1;
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back((now_ns, event));
    }

    /// Something that is no event but must be the same in each run.
    pub(crate) fn mix(&mut self, value: impl Hash) {
        value.hash(&mut self.hasher);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds how often each kind of thing has happened.
    pub(crate) fn add_to(&self, coverage: &mut Coverage) {
        let kinds = self.kinds.iter().filter(|(kind, _)| !kind.is_empty());
        for (kind, much) in kinds {
            coverage.add(*kind, *much);
        }
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.hasher.finish()
    }
}

/// Mixes what it is given, in this order, into one number, the same in each run and at next to no cost: it is done for
/// each turn of everybody.
#[derive(Debug, Default)]
struct Mixer(u64);

impl Mixer {
    /// Odd, and half of its bits set in no order: 2⁶⁴ divided by the golden ratio.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
}

impl Hasher for Mixer {
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(29) ^ value).wrapping_mul(Self::FACTOR);
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Nanoseconds as seconds.
struct Time(i64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(f, "{seconds:>5}.{nanos:09}")
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.tail.len();
        writeln!(f, "the last {shown} events, turns left out:")?;
        for (now_ns, event) in &self.tail {
            writeln!(f, "  {} {event:?}", Time(*now_ns))?;
        }
        Ok(())
    }
}
