// SPDX-License-Identifier: Apache-2.0
//! Measurements of archives: ours and the official one, under the same load by our client.
//!
//! Except where it says otherwise, an archive runs in one process with a driver of its implementation, each on one thread.

use super::{Case, DriverSetup, Kind, Mode, Subject, Target, Task};
use crate::subject::Implementation::{self, Java, Taran};
use crate::testbed::Place;

/// Workload of an archive.
#[derive(Debug, Clone)]
pub(crate) enum ArchiveTask {
    /// Streams that are recorded at full rate.
    Record {
        /// Transport of the streams.
        place: Place,
        /// Number of streams.
        streams: u16,
        /// Payload bytes of a message.
        length: usize,
        /// Recorded data and catalog survive a power loss (sync level 1).
        is_durable: bool,
    },
    /// Times from offers at this rate, in messages per second of all streams, to the recorded position at sync level 1.
    Durability {
        /// Number of streams.
        streams: u16,
        /// Messages per second.
        rate: u64,
    },
    /// A recording that is replayed at full rate.
    Replay {
        /// Transport of the replay.
        place: Place,
    },
    /// Round trips beside an archive.
    Echo {
        /// Driver configuration.
        setup: DriverSetup,
        /// Messages per second.
        rate: u64,
        /// The requests are recorded.
        is_recorded: bool,
    },
    /// Times from the connection to the first replayed message.
    Connect,
    /// Times of a list of all recordings.
    List(u32),
    /// Times of a request for the one recording of this many that has a channel.
    Find(u32),
    /// Time of a start after a kill during this many recordings, beside a driver.
    Restart(u32),
    /// CPU load of an archive without clients, beside a driver, with default threading.
    Idle,
    /// Memory per idle recording, beside a driver.
    RecordingMemory(u16),
    /// Memory per idle session, beside a driver.
    SessionMemory(u16),
    /// No archive: the same blocks written.
    WriteLimit,
    /// No archive: the same blocks read.
    ReadLimit,
}

impl ArchiveTask {
    /// Returns the quantity that its figures measure.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            ArchiveTask::Record { .. }
            | ArchiveTask::Replay { .. }
            | ArchiveTask::WriteLimit
            | ArchiveTask::ReadLimit => Kind::Throughput,
            ArchiveTask::Durability { .. }
            | ArchiveTask::Echo { .. }
            | ArchiveTask::Connect
            | ArchiveTask::List(_)
            | ArchiveTask::Find(_) => Kind::RoundTrips,
            ArchiveTask::Restart(_) => Kind::Time,
            ArchiveTask::Idle => Kind::Load,
            ArchiveTask::RecordingMemory(_) | ArchiveTask::SessionMemory(_) => Kind::Memory,
        }
    }
}

/// Figure indices of round trips.
const P50: usize = 0;
const P99: usize = 2;
/// Indices of the subjects.
const OURS: usize = 0;
const OFFICIAL: usize = 1;
const LIMIT: usize = 2;

const PLACES: [(Place, &str); 2] = [(Place::Ipc, "ipc"), (Place::Loopback, "udp")];

/// Adds all measurements.
pub(super) fn add(cases: &mut Vec<Case>) {
    recordings(cases);
    replays(cases);
    echo(cases);
    let requests = [
        (
            "archive connect and replay".to_owned(),
            ArchiveTask::Connect,
            Some(Target::within(P50, 0.5, OURS, OFFICIAL)),
        ),
        (
            "archive list 10000".to_owned(),
            ArchiveTask::List(10_000),
            Some(Target::within(P50, 0.2, OURS, OFFICIAL)),
        ),
        (
            "archive find among 1000000".to_owned(),
            ArchiveTask::Find(1_000_000),
            Some(Target::at_most(P50, 10_000.0, OURS)),
        ),
        (
            "archive restart 10000".to_owned(),
            ArchiveTask::Restart(10_000),
            Some(Target::within(0, 0.2, OURS, OFFICIAL)),
        ),
        (
            "archive idle".to_owned(),
            ArchiveTask::Idle,
            Some(Target::at_most(0, 1.0, OURS)),
        ),
        (
            "archive memory per recording".to_owned(),
            ArchiveTask::RecordingMemory(1_000),
            None,
        ),
        (
            "archive memory per session".to_owned(),
            ArchiveTask::SessionMemory(100),
            None,
        ),
    ];
    for (name, task, target) in requests {
        cases.push(case(name, &task, target));
    }
}

fn recordings(cases: &mut Vec<Case>) {
    for (place, name) in PLACES {
        for length in super::cases::LENGTHS {
            let task = ArchiveTask::Record {
                place: place.clone(),
                streams: 1,
                length,
                is_durable: false,
            };
            let target = Target::times(2.0, OURS, OFFICIAL).or_times(0.9, LIMIT);
            cases.push(with_limit(
                case(
                    format!("archive record {name} {length}B"),
                    &task,
                    Some(target),
                ),
                "limit: pwrite",
                ArchiveTask::WriteLimit,
            ));
        }
    }
    let task = ArchiveTask::Record {
        place: Place::Ipc,
        streams: 16,
        length: 1_344,
        is_durable: true,
    };
    let target = Target::times(3.0, OURS, OFFICIAL);
    let name = "archive record 16 durable 1344B".to_owned();
    cases.push(case(name, &task, Some(target)));
    let task = ArchiveTask::Durability {
        streams: 16,
        rate: 1_600,
    };
    let target = Target::within(P99, 0.5, OURS, OFFICIAL);
    let name = "archive durability 16 1600/s 288B".to_owned();
    cases.push(case(name, &task, Some(target)));
}

fn replays(cases: &mut Vec<Case>) {
    for (place, name) in PLACES {
        let task = ArchiveTask::Replay { place };
        let target = Target::times(2.0, OURS, OFFICIAL).or_times(0.8, LIMIT);
        cases.push(with_limit(
            case(format!("archive replay {name} 1344B"), &task, Some(target)),
            "limit: pread",
            ArchiveTask::ReadLimit,
        ));
    }
}

fn echo(cases: &mut Vec<Case>) {
    let rate = 100_000;
    let task = |is_recorded| ArchiveTask::Echo {
        setup: DriverSetup {
            place: Place::Loopback,
            mode: Mode::Default,
            length: 288,
            options: &[],
            is_secured: false,
        },
        rate,
        is_recorded,
    };
    let mut case = case(
        format!("archive echo recorded {rate}/s 288B"),
        &task(true),
        Some(Target::within(P99, 0.7, OURS, OFFICIAL)),
    );
    case.targets.push(Target::within(P99, 1.5, OURS, LIMIT));
    cases.push(with_limit(case, "Taran, not recorded", task(false)));
}

fn case(name: String, task: &ArchiveTask, target: Option<Target>) -> Case {
    Case {
        name,
        subjects: [Taran, Java]
            .map(|implementation| subject(implementation, implementation.to_string(), task))
            .to_vec(),
        targets: target.into_iter().collect(),
    }
}

/// Adds a subject of ours, in comparison.
fn with_limit(mut case: Case, label: &str, task: ArchiveTask) -> Case {
    case.subjects.push(subject(Taran, label.to_owned(), &task));
    case
}

fn subject(implementation: Implementation, label: String, task: &ArchiveTask) -> Subject {
    Subject {
        label,
        implementation,
        task: Task::Archive(task.clone()),
        baseline: OFFICIAL,
    }
}
