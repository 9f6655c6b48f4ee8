//! What is measured: lists of data.

mod cases;
mod targets;

use serde::Serialize;

use crate::subject::Implementation;
use crate::testbed::Place;

pub(crate) use cases::{SOCKET_BUFFER, all};
pub(crate) use targets::{Bound, Target};

/// A measurement of several subjects under the same conditions.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// For people, and for `--only`.
    pub(crate) name: String,
    /// Who is measured, in turn.
    pub(crate) subjects: Vec<Subject>,
    /// What has to come out.
    pub(crate) targets: Vec<Target>,
}

/// Somebody who is measured, and how.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// For people.
    pub(crate) label: String,
    /// Whose driver or client.
    pub(crate) implementation: Implementation,
    /// What is asked of it.
    pub(crate) task: Task,
    /// The index of the subject that it is compared with; may be its own.
    pub(crate) against: usize,
}

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) enum Task {
    /// Of a driver: streams as fast as they go.
    Stream(DriverSetup, Topology),
    /// Of a driver: round trips at so many messages a second.
    Echo(DriverSetup, u64),
    /// Of a driver: the highest rate at which the 99th percentile of round trips is below a millisecond.
    Ceiling(DriverSetup),
    /// Of a driver: CPU time while nobody asks for anything.
    Idle,
    /// Of a client, on our driver: a stream over shared memory.
    ClientStream(DriverSetup),
    /// Of a client, on our driver: a message there and back over shared memory.
    ClientPing(DriverSetup),
}

/// What figures count, and so which of them are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Messages a second; more is better.
    Rate,
    /// Round trips; shorter is better.
    RoundTrips,
    /// Per cent of a core; less is better.
    Load,
}

/// How a driver is driven.
#[derive(Debug, Clone)]
pub(crate) struct DriverSetup {
    /// Where.
    pub(crate) place: Place,
    /// How it runs.
    pub(crate) mode: Mode,
    /// Payload bytes of a message.
    pub(crate) length: usize,
    /// Its options beyond the defaults.
    pub(crate) options: &'static [(&'static str, &'static str)],
}

/// Raised for official drivers, which send less at a time by default. Ours sends what is there; set, it would be a bound.
const MESSAGES_PER_SEND: &str = "aeron.network.publication.max.messages.per.send";

impl Task {
    /// How the driver is driven, if it is.
    pub(crate) fn setup(&self) -> Option<&DriverSetup> {
        match self {
            Task::Stream(setup, _)
            | Task::Echo(setup, _)
            | Task::Ceiling(setup)
            | Task::ClientStream(setup)
            | Task::ClientPing(setup) => Some(setup),
            Task::Idle => None,
        }
    }
}

impl DriverSetup {
    /// Whether it asks for larger socket buffers than most systems allow.
    pub(crate) fn is_tuned(&self) -> bool {
        let mut options = self.options.iter();
        options.any(|(name, _)| *name == "aeron.socket.so_rcvbuf")
    }

    /// Those of its options that a subject gets.
    pub(crate) fn options_of(
        &self,
        implementation: Implementation,
    ) -> Vec<(&'static str, &'static str)> {
        let is_bound = |name| implementation == Implementation::Taran && name == MESSAGES_PER_SEND;
        let options = self.options.iter().copied();
        options.filter(|&(name, _)| !is_bound(name)).collect()
    }
}

/// How a driver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As a process, all of it on one thread that has a core. On one machine its clients share the other one.
    Shared,
    /// On the threads of its clients, each of which has a core.
    Invoker,
    /// As a process, as it comes. Its clients share a core, which leaves it the other one.
    Default,
    /// As a process, as it comes, beside clients that have a core each: it is not on their road.
    Beside,
}

/// Who else is there while streams flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topology {
    /// Streams that flow.
    pub(crate) streams: u16,
    /// Whether each of these has one message between two turns of its driver.
    pub(crate) trickle: bool,
    /// Streams on which nothing happens.
    pub(crate) idle: u16,
    /// Subscriptions to each stream that flows, through one receiving end.
    pub(crate) subscribers: u16,
    /// Receiving ends of each stream that flows.
    pub(crate) destinations: u16,
}

impl Topology {
    /// One stream with one receiver.
    pub(crate) const ONE: Topology = Topology {
        streams: 1,
        trickle: false,
        idle: 0,
        subscribers: 1,
        destinations: 1,
    };
}

impl Case {
    /// What its figures count: the same for all that are compared.
    pub(crate) fn kind(&self) -> Kind {
        match self.subjects.first().map(|first| &first.task) {
            Some(Task::Echo(..) | Task::ClientPing(_)) => Kind::RoundTrips,
            Some(Task::Idle) => Kind::Load,
            _ => Kind::Rate,
        }
    }
}

impl Kind {
    /// The figures that a measurement is about, by name.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["msg/s"],
            Kind::RoundTrips => &["p50 us", "p90 us", "p99 us", "p99.9 us", "max us"],
            Kind::Load => &["% of a core"],
        }
    }
}
