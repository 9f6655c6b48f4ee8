// SPDX-License-Identifier: Apache-2.0
//! Measurements and targets, as data.

mod archives;
mod cases;
mod clusters;
mod secured;
mod targets;

use serde::Serialize;
use taran_bench::client_idle::ClientIdle;

use crate::subject::Implementation;
use crate::testbed::Place;

pub(crate) use archives::ArchiveTask;
pub(crate) use cases::{SOCKET_BUFFER, all};
pub(crate) use clusters::ClusterTask;
pub(crate) use targets::{Bound, Target};

/// A measurement of several subjects under the same conditions.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Display name, also matched by `--only`.
    pub(crate) name: String,
    /// The subjects, in the order in which they alternate.
    pub(crate) subjects: Vec<Subject>,
    /// The targets of this measurement.
    pub(crate) targets: Vec<Target>,
}

/// An implementation in one configuration.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// Display name.
    pub(crate) label: String,
    /// The implementation of the driver or client.
    pub(crate) implementation: Implementation,
    /// The workload.
    pub(crate) task: Task,
    /// Index of the baseline within the case; may be its own.
    pub(crate) baseline: usize,
}

/// Workload of a subject.
#[derive(Debug, Clone)]
pub(crate) enum Task {
    /// Driver: streams at full rate.
    Stream(DriverSetup, Topology),
    /// Driver: round trips at a fixed rate in messages per second.
    Echo(DriverSetup, u64),
    /// Driver: from the answer to a publication on a new channel to its first message.
    First(DriverSetup),
    /// Driver: the highest rate at which the 99th percentile of round trips is below one millisecond.
    Ceiling(DriverSetup),
    /// Driver: CPU load without clients.
    Idle,
    /// Client on our driver: a stream over shared memory.
    ClientStream(DriverSetup),
    /// Client on our driver: ping-pong over shared memory.
    ClientPing(DriverSetup),
    /// Neither driver nor client: a ring between two cores, with this many payload bytes in a message.
    Ring(usize),
    /// Archive, with our client.
    Archive(ArchiveTask),
    /// Cluster, with our client.
    Cluster(ClusterTask),
    /// Neither driver nor client: round trips over another encrypted protocol, over the loopback.
    Encrypted {
        /// The protocol.
        protocol: Protocol,
        /// Messages per second.
        rate: u64,
        /// Payload bytes of a message.
        length: usize,
    },
}

/// An encrypted protocol that is in common use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// TLS 1.3 over TCP.
    Tls,
    /// QUIC.
    Quic,
}

impl Protocol {
    /// Returns its name in the arguments of the benchmark program.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Protocol::Tls => "tls",
            Protocol::Quic => "quic",
        }
    }
}

/// Quantity that figures measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Messages per second; higher is better.
    Rate,
    /// Round-trip times; lower is better.
    RoundTrips,
    /// Per cent of a core; lower is better.
    Load,
    /// Megabytes per second; higher is better.
    Throughput,
    /// A time; lower is better.
    Time,
    /// Memory; lower is better.
    Memory,
}

/// Driver configuration of a workload.
#[derive(Debug, Clone)]
pub(crate) struct DriverSetup {
    /// Transport between the ends.
    pub(crate) place: Place,
    /// Process and threads of the driver.
    pub(crate) mode: Mode,
    /// Payload bytes of a message.
    pub(crate) length: usize,
    /// Options that differ from the defaults.
    pub(crate) options: &'static [(&'static str, &'static str)],
    /// Every channel is encrypted and authenticated; our driver only.
    pub(crate) is_secured: bool,
}

/// Raised for the official drivers, whose default is small. Our driver has no limit by default; the option would impose one.
const MESSAGES_PER_SEND: &str = "aeron.network.publication.max.messages.per.send";

impl Task {
    /// Returns the number of cores below which its figure says nothing.
    pub(crate) fn least_cores(&self) -> usize {
        match self {
            Task::Cluster(task) => task.least_cores(),
            _ => 1,
        }
    }

    /// Returns the driver configuration, if the workload has one.
    pub(crate) fn setup(&self) -> Option<&DriverSetup> {
        match self {
            Task::Stream(setup, _)
            | Task::Echo(setup, _)
            | Task::Ceiling(setup)
            | Task::First(setup)
            | Task::ClientStream(setup)
            | Task::ClientPing(setup) => Some(setup),
            Task::Archive(ArchiveTask::Echo { setup, .. }) => Some(setup),
            Task::Idle
            | Task::Ring(_)
            | Task::Archive(_)
            | Task::Cluster(_)
            | Task::Encrypted { .. } => None,
        }
    }
}

impl DriverSetup {
    /// Returns true if it sets socket buffers, which are larger than most systems allow.
    pub(crate) fn is_tuned(&self) -> bool {
        let mut options = self.options.iter();
        options.any(|(name, _)| *name == "aeron.socket.so_rcvbuf")
    }

    /// Returns the options for an implementation.
    pub(crate) fn options_of(
        &self,
        implementation: Implementation,
    ) -> Vec<(&'static str, &'static str)> {
        let is_excluded =
            |name| implementation == Implementation::Taran && name == MESSAGES_PER_SEND;
        let options = self.options.iter().copied();
        options.filter(|&(name, _)| !is_excluded(name)).collect()
    }
}

/// Process and threads of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A process with all agents on one thread, pinned to a core. On one host the clients share the other core.
    Shared,
    /// Embedded, invoked by the client threads; each of these has a core.
    Invoker,
    /// A process with default threading. The clients share one core, which leaves the other one to the driver.
    Default,
    /// A process with default threading; the clients have a core each. For IPC, where the driver is not on the data path.
    Beside,
}

/// Streams and receivers of a stream workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topology {
    /// Active streams.
    pub(crate) streams: u16,
    /// True if each active stream sends one message per duty cycle of its driver.
    pub(crate) trickle: bool,
    /// Idle streams.
    pub(crate) idle: u16,
    /// Subscriptions to each active stream on one receive endpoint.
    pub(crate) subscribers: u16,
    /// Destinations (receive endpoints) of each active stream.
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

impl Mode {
    /// Returns the idle strategy of the clients' threads, the same for all implementations: a thread with a core of its own
    /// spins, one that shares its core yields it. `None` if the driver's duty cycles fill the time between two polls.
    pub(crate) fn client_idle(self) -> Option<ClientIdle> {
        match self {
            Mode::Beside => Some(ClientIdle::Spin),
            Mode::Shared | Mode::Default => Some(ClientIdle::Yield),
            Mode::Invoker => None,
        }
    }
}

impl Case {
    /// Removes the targets of subjects whose figures say nothing on this number of cores, and returns the labels of these subjects.
    pub(crate) fn limit_to(&mut self, cores: usize) -> Vec<String> {
        let has_figure = |subject: &Subject| subject.task.least_cores() <= cores;
        let subjects = &self.subjects;
        self.targets
            .retain(|target| has_figure(&subjects[target.of]));
        let removed = subjects.iter().filter(|subject| !has_figure(subject));
        removed.map(|subject| subject.label.clone()).collect()
    }

    /// Returns the idle strategy of the clients' threads, if there are clients that idle.
    pub(crate) fn client_idle(&self) -> Option<ClientIdle> {
        let setup = self.subjects.first()?.task.setup()?;
        setup.mode.client_idle()
    }

    /// Returns the quantity that its figures measure, the same for all subjects.
    pub(crate) fn kind(&self) -> Kind {
        match self.subjects.first().map(|first| &first.task) {
            Some(
                Task::Echo(..) | Task::First(_) | Task::ClientPing(_) | Task::Encrypted { .. },
            ) => Kind::RoundTrips,
            Some(Task::Idle) => Kind::Load,
            Some(Task::Archive(task)) => task.kind(),
            Some(Task::Cluster(task)) => task.kind(),
            _ => Kind::Rate,
        }
    }
}

/// A figure of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FigureSpec {
    /// Name in tables, pages and result files.
    pub(crate) name: &'static str,
    /// The figure has a row in docs/performance.md even without a target.
    pub(crate) is_on_page: bool,
}

const fn on_page(name: &'static str) -> FigureSpec {
    FigureSpec {
        name,
        is_on_page: true,
    }
}

const fn with_target_only(name: &'static str) -> FigureSpec {
    FigureSpec {
        name,
        is_on_page: false,
    }
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Rate,
        Kind::RoundTrips,
        Kind::Load,
        Kind::Throughput,
        Kind::Time,
        Kind::Memory,
    ];

    /// Returns the figures.
    pub(crate) fn figures(self) -> &'static [FigureSpec] {
        const RATE: &[FigureSpec] = &[on_page("msg/s")];
        const ROUND_TRIPS: &[FigureSpec] = &[
            on_page("p50 us"),
            with_target_only("p90 us"),
            on_page("p99 us"),
            with_target_only("p99.9 us"),
            with_target_only("max us"),
        ];
        const LOAD: &[FigureSpec] = &[on_page("% of a core")];
        const THROUGHPUT: &[FigureSpec] = &[on_page("MB/s")];
        const TIME: &[FigureSpec] = &[on_page("ms")];
        const MEMORY: &[FigureSpec] = &[on_page("KiB each")];
        match self {
            Kind::Rate => RATE,
            Kind::RoundTrips => ROUND_TRIPS,
            Kind::Load => LOAD,
            Kind::Throughput => THROUGHPUT,
            Kind::Time => TIME,
            Kind::Memory => MEMORY,
        }
    }

    /// Returns true if the figure of this name has a row in docs/performance.md even without a target.
    pub(crate) fn is_on_page(figure: &str) -> bool {
        let mut figures = Kind::ALL.into_iter().flat_map(Kind::figures);
        figures.any(|spec| spec.name == figure && spec.is_on_page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_machine_has_no_targets_of_members_that_never_sleep() {
        let all = all();
        let failover = all.iter().find(|case| case.name == "cluster failover");
        let [mut small, mut large] = [(); 2].map(|()| failover.unwrap().clone());
        let with_all = large.targets.len();
        assert!(large.limit_to(4).is_empty());
        assert_eq!(large.targets.len(), with_all);
        assert_eq!(small.limit_to(3), ["Taran, low-latency"]);
        assert_eq!(small.targets.len(), with_all - 1);
        assert!(small.targets.iter().all(|target| target.of == 0));
    }
}
