// SPDX-License-Identifier: Apache-2.0
//! Events of a world in order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::scenario::Coverage;

/// Environment variable that enables printing of all events.
const TRACE: &str = "TARAN_SIM_TRACE";

/// Number of most recent events that are printed when a run fails.
const TAIL: usize = 150;

/// An event of a world. Ids are indices into the world's lists, in the order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An agent of a process did work.
    Process {
        /// Process.
        process: usize,
        /// Agent.
        agent: usize,
        /// Amount of work.
        work: usize,
    },
    /// Something that a process or an operation reports.
    Note {
        /// Process.
        process: usize,
        /// Event.
        name: &'static str,
        /// A number that belongs to it.
        value: i64,
    },
    /// A message was accepted.
    Offered {
        /// Publisher.
        publisher: usize,
        /// Index of the message in its stream.
        index: usize,
        /// Position of the stream after it.
        position: i64,
    },
    /// A message was claimed and aborted.
    Aborted {
        /// Publisher.
        publisher: usize,
        /// Position of the stream after it.
        position: i64,
    },
    /// A message was refused.
    Refused {
        /// Publisher.
        publisher: usize,
        /// Reason; consecutive refusals for the same reason are one event.
        reason: &'static str,
    },
    /// A subscriber received a message.
    Delivered {
        /// Subscriber.
        subscriber: usize,
        /// Session of the image.
        session: i32,
        /// Position of the stream after it.
        position: i64,
    },
    /// A subscriber got an image.
    Available {
        /// Subscriber.
        subscriber: usize,
        /// Session of the image.
        session: i32,
        /// Join position.
        position: i64,
    },
    /// A subscriber lost an image.
    Unavailable {
        /// Subscriber.
        subscriber: usize,
        /// Session of the image.
        session: i32,
        /// Position at which it ended.
        position: i64,
    },
    /// An operation of the scenario on the object with this index.
    Op(&'static str, usize),
}

impl Event {
    /// Returns the name of the event in the coverage table; duty cycles are not listed.
    fn kind(&self) -> &'static str {
        match self {
            Self::Process { .. } => "duty cycles",
            Self::Offered { .. } => "messages published",
            Self::Aborted { .. } => "messages aborted",
            Self::Refused { .. } => "messages refused",
            Self::Delivered { .. } => "messages delivered",
            Self::Available { .. } => "images available",
            Self::Unavailable { .. } => "images unavailable",
            Self::Note { name, .. } | Self::Op(name, _) => name,
        }
    }
}

/// A running hash over all events with their times, and the most recent events.
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

    pub(crate) fn record(&mut self, now_ns: i64, event: Event) {
        self.count += 1;
        (now_ns, event).hash(&mut self.hasher);
        if self.is_traced {
            eprintln!("{} {event:?}", Time(now_ns));
        }
        // Duty cycles are frequent and carry little information.
        if matches!(event, Event::Process { .. }) {
            return;
        }
        *self.kinds.entry(event.kind()).or_default() += 1;
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back((now_ns, event));
    }

    /// Mixes in a value that is not an event but must be the same in each run.
    pub(crate) fn mix(&mut self, value: impl Hash) {
        value.hash(&mut self.hasher);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the number of events by kind.
    pub(crate) fn add_to(&self, coverage: &mut Coverage) {
        let kinds = self.kinds.iter().filter(|(kind, _)| !kind.is_empty());
        for (kind, count) in kinds {
            coverage.add(*kind, *count);
        }
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.hasher.finish()
    }
}

/// A cheap deterministic hash of the values in order. It is updated for each duty cycle of each agent.
#[derive(Debug, Default)]
struct Mixer(u64);

impl Mixer {
    /// Odd, with about half of its bits set: 2⁶⁴ divided by the golden ratio.
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

/// Nanoseconds, displayed as seconds.
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
        writeln!(f, "the last {shown} events, without duty cycles:")?;
        for (now_ns, event) in &self.tail {
            writeln!(f, "  {} {event:?}", Time(*now_ns))?;
        }
        Ok(())
    }
}
