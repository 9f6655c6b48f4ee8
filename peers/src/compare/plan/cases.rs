// SPDX-License-Identifier: Apache-2.0
//! List of all measurements.

use super::{Case, DriverSetup, Mode, Subject, Target, Task, Topology};
use crate::subject::Implementation::{self, C, Java, Taran};
use crate::testbed::Place;

type Options = &'static [(&'static str, &'static str)];

/// Options tuned for throughput, the same for all implementations except for those that [`DriverSetup::options_of`] excludes.
/// A yielding thread with a core of its own spins.
const TUNED: Options = &[
    ("aeron.sender.io.vector.capacity", "16"),
    ("aeron.receiver.io.vector.capacity", "16"),
    ("aeron.network.publication.max.messages.per.send", "16"),
    ("aeron.socket.so_sndbuf", "2m"),
    ("aeron.socket.so_rcvbuf", "2m"),
    ("aeron.rcv.initial.window.length", "2m"),
    ("aeron.shared.idle.strategy", "yield"),
    ("aeron.term.buffer.sparse.file", "false"),
];

/// Size of the socket buffers of [`TUNED`] in bytes.
pub(crate) const SOCKET_BUFFER: u64 = 2 << 20;

/// A driver that never sleeps. It has one thread, because two cores leave room for one spinning thread.
const SPINNING: Options = &[
    ("aeron.threading.mode", "SHARED"),
    ("aeron.shared.idle.strategy", "spin"),
];

pub(super) const LENGTHS: [usize; 3] = [32, 288, 1_344];
const ECHO_RATES: [u64; 3] = [1_000, 10_000, 100_000];
const MODES: [(Mode, &str); 2] = [(Mode::Invoker, "invoker"), (Mode::Shared, "shared")];

/// Figure indices of round trips.
pub(super) const P50: usize = 0;
const P90: usize = 1;
pub(super) const P99: usize = 2;

/// Returns all measurements.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    streams(&mut cases);
    echoes(&mut cases);
    clients(&mut cases);
    defaults(&mut cases);
    scale(&mut cases);
    super::archives::add(&mut cases);
    super::clusters::add(&mut cases);
    super::secured::add(&mut cases);
    cases
}

fn streams(cases: &mut Vec<Case>) {
    for (place, name) in [
        (Place::Loopback, "loopback"),
        (Place::Veth { mtu: 1_500 }, "veth-1500"),
        (Place::Veth { mtu: 9_000 }, "veth-9000"),
    ] {
        for (mode, mode_name) in MODES {
            for length in LENGTHS {
                let setup = tuned(place.clone(), mode, length);
                let target = match (&place, length) {
                    (Place::Loopback, 32) => Some(5.3),
                    (Place::Loopback, 288) => Some(8.6),
                    (Place::Loopback, 1_344) => Some(8.0),
                    (Place::Veth { mtu: 1_500 }, 288) => Some(4.0),
                    _ => None,
                };
                cases.push(with_c_baseline(
                    format!("driver stream {name} {mode_name} {length}B"),
                    mode,
                    &Task::Stream(setup, Topology::ONE),
                    |ours, theirs| target.map(|target| Target::times(target, ours, theirs)),
                ));
            }
        }
    }
}

fn echoes(cases: &mut Vec<Case>) {
    for (mode, mode_name) in MODES {
        let setup = |length| tuned(Place::Loopback, mode, length);
        for rate in ECHO_RATES {
            for length in LENGTHS {
                let has_targets = (mode, rate, length) == (Mode::Invoker, 100_000, 288);
                cases.push(with_c_baseline(
                    format!("driver echo {mode_name} {rate}/s {length}B"),
                    mode,
                    &Task::Echo(setup(length), rate),
                    |ours, theirs| {
                        [(P50, 0.85), (P99, 0.7)]
                            .into_iter()
                            .filter(move |_| has_targets)
                            .map(move |(figure, most)| Target::within(figure, most, ours, theirs))
                    },
                ));
            }
        }
        cases.push(with_c_baseline(
            format!("driver ceiling {mode_name} 288B"),
            mode,
            &Task::Ceiling(setup(288)),
            |ours, theirs| Some(Target::times(5.0, ours, theirs)),
        ));
    }
}

fn clients(cases: &mut Vec<Case>) {
    for length in LENGTHS {
        let setup = DriverSetup {
            place: Place::Ipc,
            mode: Mode::Beside,
            length,
            options: &[],
            is_secured: false,
        };
        let all = |task: &Task| {
            [Taran, Java, C]
                .map(|implementation| subject(implementation, task, 2))
                .to_vec()
        };
        let (ours, java, c) = (0, 1, 2);
        let has_target = length < 1_344;
        let mut stream = all(&Task::ClientStream(setup.clone()));
        stream.push(Subject {
            label: "limit: a ring".to_owned(),
            ..subject(Taran, &Task::Ring(length), c)
        });
        cases.push(Case {
            name: format!("client stream ipc {length}B"),
            subjects: stream,
            targets: if has_target {
                vec![Target::times(1.0, ours, c)]
            } else {
                Vec::new()
            },
        });
        cases.push(Case {
            name: format!("client ping ipc {length}B"),
            subjects: all(&Task::ClientPing(setup)),
            targets: if has_target {
                [java, c]
                    .map(|theirs| Target::within(P50, 1.0, ours, theirs))
                    .to_vec()
            } else {
                Vec::new()
            },
        });
    }
}

fn defaults(cases: &mut Vec<Case>) {
    for (place, name) in [(Place::Loopback, "udp"), (Place::Ipc, "ipc")] {
        for rate in [1_000, 10_000] {
            for length in [288, 8_192] {
                let setup = |options| DriverSetup {
                    place: place.clone(),
                    mode: Mode::Default,
                    length,
                    options,
                    is_secured: false,
                };
                let task = Task::Echo(setup(&[]), rate);
                let (ours, spinning, java, c) = (0, 1, 2, 3);
                let mut targets = Vec::new();
                if rate == 10_000 {
                    targets.push(Target::within(P90, 2.0, ours, spinning));
                    targets.push(Target::within(P99, 3.0, ours, spinning));
                    for theirs in [java, c] {
                        targets.push(Target::within(P90, 1.0, ours, theirs));
                        targets.push(Target::within(P99, 1.0, ours, theirs));
                    }
                }
                cases.push(Case {
                    name: format!("defaults echo {name} {rate}/s {length}B"),
                    subjects: vec![
                        subject(Taran, &task, c),
                        Subject {
                            label: "Taran, spinning".to_owned(),
                            ..subject(Taran, &Task::Echo(setup(SPINNING), rate), c)
                        },
                        subject(Java, &task, c),
                        subject(C, &task, c),
                    ],
                    targets,
                });
            }
        }
    }
    for length in LENGTHS {
        let setup = DriverSetup {
            place: Place::Loopback,
            mode: Mode::Default,
            length,
            options: &[],
            is_secured: false,
        };
        cases.push(with_c_baseline(
            format!("defaults stream udp {length}B"),
            Mode::Default,
            &Task::Stream(setup, Topology::ONE),
            |_, _| None,
        ));
    }
    cases.push(with_c_baseline(
        "defaults idle".to_owned(),
        Mode::Default,
        &Task::Idle,
        |ours, _| Some(Target::at_most(0, 1.0, ours)),
    ));
}

fn scale(cases: &mut Vec<Case>) {
    let topologies = [100, 1_000, 10_000]
        .map(|idle| {
            (
                format!("beside {idle} idle"),
                Topology {
                    idle,
                    ..Topology::ONE
                },
            )
        })
        .into_iter()
        .chain([10, 100].map(|streams| {
            let topology = Topology {
                streams,
                ..Topology::ONE
            };
            (format!("{streams} busy"), topology)
        }))
        .chain([10, 100].map(|streams| {
            let topology = Topology {
                streams,
                trickle: true,
                ..Topology::ONE
            };
            (format!("{streams} trickling"), topology)
        }))
        .chain([4, 16].map(|destinations| {
            let topology = Topology {
                destinations,
                ..Topology::ONE
            };
            (format!("{destinations} destinations"), topology)
        }))
        .chain([4, 16].map(|subscribers| {
            let topology = Topology {
                subscribers,
                ..Topology::ONE
            };
            (format!("{subscribers} subscribers"), topology)
        }));
    for (description, topology) in topologies {
        let setup = tuned(Place::Loopback, Mode::Invoker, 288);
        let one = Topology {
            trickle: topology.trickle,
            ..Topology::ONE
        };
        let pair = |implementation, alone: usize| {
            let setup = setup.clone();
            [
                Subject {
                    label: format!("{implementation}, {description}"),
                    ..subject(
                        implementation,
                        &Task::Stream(setup.clone(), topology),
                        alone,
                    )
                },
                Subject {
                    label: format!("{implementation}, alone"),
                    ..subject(implementation, &Task::Stream(setup, one), alone)
                },
            ]
        };
        cases.push(Case {
            name: format!("scale {description}"),
            subjects: match topology.idle {
                // The C driver takes minutes to open this many streams.
                10_000 => pair(Taran, 1).to_vec(),
                _ => [pair(Taran, 1), pair(C, 3)].concat(),
            },
            targets: match topology.idle {
                1_000 => vec![Target::times(0.9, 0, 1)],
                _ => Vec::new(),
            },
        });
    }
}

/// Creates a case with the C driver as the baseline of all drivers. The Java driver cannot be embedded in our process, and is
/// left out of the invoker mode.
fn with_c_baseline<F: IntoIterator<Item = Target>>(
    name: String,
    mode: Mode,
    task: &Task,
    targets: impl Fn(usize, usize) -> F,
) -> Case {
    let all: &[Implementation] = match mode {
        Mode::Invoker => &[Taran, C],
        Mode::Shared | Mode::Default | Mode::Beside => &[Taran, Java, C],
    };
    let last = all.len() - 1;
    Case {
        name,
        subjects: all
            .iter()
            .map(|&implementation| subject(implementation, task, last))
            .collect(),
        targets: targets(0, last).into_iter().collect(),
    }
}

pub(super) fn subject(implementation: Implementation, task: &Task, baseline: usize) -> Subject {
    Subject {
        label: implementation.to_string(),
        implementation,
        task: task.clone(),
        baseline,
    }
}

pub(super) fn tuned(place: Place, mode: Mode, length: usize) -> DriverSetup {
    DriverSetup {
        place,
        mode,
        length,
        options: TUNED,
        is_secured: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn all_case_names_are_unique() {
        let cases = all();
        let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn all_indices_refer_to_existing_subjects_and_figures() {
        for case in all() {
            let count = case.subjects.len();
            assert!(
                case.subjects.iter().all(|one| one.baseline < count),
                "{}",
                case.name
            );
            for target in &case.targets {
                assert!(
                    target.of < count
                        && target.to.is_none_or(|to| to < count)
                        && target.or.is_none_or(|(to, _)| to < count),
                    "{}",
                    case.name
                );
                assert!(target.figure < case.kind().figures().len(), "{}", case.name);
                assert_eq!(
                    case.subjects[target.of].implementation, Taran,
                    "{}",
                    case.name
                );
            }
        }
    }

    #[test]
    fn all_subjects_of_a_case_have_the_same_kind() {
        for case in all() {
            for one in &case.subjects {
                let alone = Case {
                    subjects: vec![one.clone()],
                    ..case.clone()
                };
                assert_eq!(alone.kind(), case.kind(), "{}", case.name);
            }
        }
    }

    #[test]
    fn all_documented_targets_have_a_case() {
        let with_targets: Vec<String> = all()
            .into_iter()
            .filter(|case| !case.targets.is_empty())
            .map(|case| case.name)
            .collect();
        for name in [
            "driver stream loopback invoker 32B",
            "driver stream loopback shared 1344B",
            "driver stream veth-1500 invoker 288B",
            "driver ceiling invoker 288B",
            "driver echo invoker 100000/s 288B",
            "client stream ipc 32B",
            "client stream ipc 288B",
            "defaults echo udp 10000/s 288B",
            "defaults echo ipc 10000/s 8192B",
            "defaults idle",
            "scale beside 1000 idle",
            "archive record udp 32B",
            "archive record 16 durable 1344B",
            "archive replay ipc 1344B",
            "archive echo recorded 100000/s 288B",
            "archive restart 10000",
            "cluster echo 100000/s 288B",
            "cluster ceiling 288B",
            "cluster ceiling durable 288B",
            "cluster failover",
            "cluster transfer",
            "cluster orderly stop",
            "cluster restart 1GiB",
            "cluster snapshot 100MB",
            "cluster idle",
            "secure echo invoker 100000/s 288B",
            "secure echo beside others 10000/s 288B",
            "secure stream invoker 1344B",
        ] {
            assert!(with_targets.iter().any(|case| case == name), "{name}");
        }
    }
}
