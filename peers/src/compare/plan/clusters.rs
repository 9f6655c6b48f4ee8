// SPDX-License-Identifier: Apache-2.0
//! Measurements of clusters of three members: ours and the official one, under the same load by our client.
//!
//! A member is one process with driver, archive, consensus module and an echo service. Except where it says otherwise, driver and
//! archive have one thread each, as three members with dedicated threads need more cores than small machines have.

use super::{Case, Kind, Subject, Target, Task};
use crate::subject::Implementation::{self, Java, Taran};

/// Options of a cluster that differ from the defaults.
pub(crate) type Options = &'static [(&'static str, &'static str)];

/// Workload of a cluster.
#[derive(Debug, Clone)]
pub(crate) enum ClusterTask {
    /// Round trips at a fixed rate in messages per second.
    Echo {
        /// Messages per second.
        rate: u64,
        /// Payload bytes of a message.
        length: usize,
    },
    /// The highest rate at which the 99th percentile of round trips is below one millisecond.
    Ceiling {
        /// Payload bytes of a message.
        length: usize,
        /// Options of the members.
        options: Options,
    },
    /// Longest time without an answer after `kill -9` of the leader.
    Failover(Options),
    /// Longest time without an answer while our leader hands leadership over on request.
    Transfer,
    /// Longest time without an answer while the leader ends in order.
    Stop,
    /// Time from the start of a member, which has ended in order, until it follows: with a log of this many bytes, half of them
    /// before its snapshot.
    Restart(u64),
    /// Longest latency that a snapshot of this many bytes adds, at a rate in messages per second.
    Snapshot {
        /// Messages per second.
        rate: u64,
        /// Bytes of the service's state.
        state: usize,
    },
    /// CPU load of a member without clients, with default threading.
    Idle,
}

impl ClusterTask {
    /// Returns the quantity that its figures measure.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            ClusterTask::Echo { .. } => Kind::RoundTrips,
            ClusterTask::Ceiling { .. } => Kind::Rate,
            ClusterTask::Failover(_)
            | ClusterTask::Transfer
            | ClusterTask::Stop
            | ClusterTask::Restart(_)
            | ClusterTask::Snapshot { .. } => Kind::Time,
            ClusterTask::Idle => Kind::Load,
        }
    }

    /// Returns the number of cores below which its figure says nothing.
    pub(crate) fn least_cores(&self) -> usize {
        match self {
            ClusterTask::Failover(options) if *options == PROFILE => CORES_OF_PROFILE,
            _ => 1,
        }
    }
}

/// Figure indices of round trips.
const P50: usize = 0;
const P99: usize = 2;
/// Indices of the subjects.
const OURS: usize = 0;
const OFFICIAL: usize = 1;
const LOW_LATENCY: usize = 2;

/// Payload bytes of a message.
const LENGTH: usize = 288;
/// Rates of round trips in messages per second. A small machine does not hold the highest with three members.
const RATES: [u64; 3] = [1_000, 10_000, 100_000];

/// Options with which acknowledged messages survive a power loss of all members.
const DURABLE: Options = &[
    ("aeron.archive.file.sync.level", "1"),
    ("aeron.archive.catalog.file.sync.level", "1"),
];
/// Periods that are possible for both implementations.
const EQUAL_PERIODS: Options = &[
    ("aeron.cluster.leader.heartbeat.timeout", "1s"),
    ("aeron.cluster.leader.heartbeat.interval", "200ms"),
];
/// The profile without its core affinity: each member chooses its cores by itself, so that members on one machine may share them.
const PROFILE: Options = &[
    ("taran.profile", "low-latency"),
    ("aeron.conductor.cpu.affinity", "-1"),
    ("aeron.sender.cpu.affinity", "-1"),
    ("aeron.receiver.cpu.affinity", "-1"),
];
/// Cores for three members whose drivers never sleep, and a client.
const CORES_OF_PROFILE: usize = 4;

/// Adds all measurements.
pub(super) fn add(cases: &mut Vec<Case>) {
    for rate in RATES {
        let length = LENGTH;
        let halves = [P50, P99].map(|figure| Target::within(figure, 0.5, OURS, OFFICIAL));
        cases.push(both(
            format!("cluster echo {rate}/s {length}B"),
            &ClusterTask::Echo { rate, length },
            &halves,
        ));
    }
    for (suffix, options, bound) in [("", &[] as Options, 8.0), (" durable", DURABLE, 4.0)] {
        let length = LENGTH;
        cases.push(both(
            format!("cluster ceiling{suffix} {length}B"),
            &ClusterTask::Ceiling { length, options },
            &[Target::times(bound, OURS, OFFICIAL)],
        ));
    }
    let mut failover = both(
        "cluster failover".to_owned(),
        &ClusterTask::Failover(&[]),
        &[
            Target::at_most(0, 500.0, OURS),
            Target::at_most(0, 200.0, LOW_LATENCY),
        ],
    );
    let label = "Taran, low-latency".to_owned();
    failover.subjects.push(subject(
        Taran,
        label,
        &ClusterTask::Failover(PROFILE),
        OFFICIAL,
    ));
    cases.push(failover);
    cases.push(both(
        "cluster failover equal periods".to_owned(),
        &ClusterTask::Failover(EQUAL_PERIODS),
        &[],
    ));
    cases.push(Case {
        name: "cluster transfer".to_owned(),
        subjects: vec![subject(
            Taran,
            Taran.to_string(),
            &ClusterTask::Transfer,
            OURS,
        )],
        targets: vec![Target::at_most(0, 50.0, OURS)],
    });
    cases.push(both(
        "cluster orderly stop".to_owned(),
        &ClusterTask::Stop,
        &[Target::at_most(0, 50.0, OURS)],
    ));
    cases.push(both(
        "cluster restart 1GiB".to_owned(),
        &ClusterTask::Restart(1 << 30),
        &[Target::within(0, 0.2, OURS, OFFICIAL)],
    ));
    cases.push(both(
        "cluster snapshot 100MB".to_owned(),
        &ClusterTask::Snapshot {
            rate: 1_000,
            state: 100_000_000,
        },
        &[Target::at_most(0, 5.0, OURS)],
    ));
    cases.push(both(
        "cluster idle".to_owned(),
        &ClusterTask::Idle,
        &[Target::at_most(0, 2.0, OURS)],
    ));
}

fn both(name: String, task: &ClusterTask, targets: &[Target]) -> Case {
    Case {
        name,
        subjects: [Taran, Java]
            .map(|implementation| {
                subject(implementation, implementation.to_string(), task, OFFICIAL)
            })
            .to_vec(),
        targets: targets.to_vec(),
    }
}

fn subject(
    implementation: Implementation,
    label: String,
    task: &ClusterTask,
    baseline: usize,
) -> Subject {
    Subject {
        label,
        implementation,
        task: Task::Cluster(task.clone()),
        baseline,
    }
}
