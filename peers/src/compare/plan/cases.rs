//! All measurements.

use super::{Bound, Case, Contestant, Crowd, Drive, Floor, Mode, Task};
use crate::contender::Contender::{self, C, Java, Taran};
use crate::world::Place;

type Options = &'static [(&'static str, &'static str)];

/// What experts would set, for everybody the same but for what [`Drive::options_of`] says. A thread that yields and has a core to itself spins.
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

/// Bytes of the socket buffers of [`TUNED`].
pub(crate) const SOCKET_BUFFER: u64 = 2 << 20;

/// A driver that never sleeps, as far as two cores let it: one thread.
const SPINNING: Options = &[
    ("aeron.threading.mode", "SHARED"),
    ("aeron.shared.idle.strategy", "spin"),
];

const LENGTHS: [usize; 3] = [32, 288, 1_344];
const ECHO_RATES: [u64; 3] = [1_000, 10_000, 100_000];
const MODES: [(Mode, &str); 2] = [(Mode::Invoker, "invoker"), (Mode::Shared, "shared")];

/// Indices of figures among round trips.
const P50: usize = 0;
const P90: usize = 1;
const P99: usize = 2;

/// Everything that there is.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    streams(&mut cases);
    echoes(&mut cases);
    clients(&mut cases);
    defaults(&mut cases);
    scale(&mut cases);
    cases
}

fn streams(cases: &mut Vec<Case>) {
    for (place, name) in [
        (Place::Loopback, "loopback"),
        (Place::Cable { mtu: 1_500 }, "veth-1500"),
        (Place::Cable { mtu: 9_000 }, "veth-9000"),
    ] {
        for (mode, mode_name) in MODES {
            for length in LENGTHS {
                let drive = tuned(place.clone(), mode, length);
                let floor = match (&place, length) {
                    (Place::Loopback, 32) => Some(5.3),
                    (Place::Loopback, 288) => Some(8.6),
                    (Place::Loopback, 1_344) => Some(8.0),
                    (Place::Cable { mtu: 1_500 }, 288) => Some(4.0),
                    _ => None,
                };
                cases.push(rivals(
                    format!("driver stream {name} {mode_name} {length}B"),
                    mode,
                    &Task::Stream(drive, Crowd::ONE),
                    |ours, theirs| floor.map(|floor| Floor::times(floor, ours, theirs)),
                ));
            }
        }
    }
}

fn echoes(cases: &mut Vec<Case>) {
    for (mode, mode_name) in MODES {
        let drive = |length| tuned(Place::Loopback, mode, length);
        for rate in ECHO_RATES {
            for length in LENGTHS {
                let has_floors = (mode, rate, length) == (Mode::Invoker, 100_000, 288);
                cases.push(rivals(
                    format!("driver echo {mode_name} {rate}/s {length}B"),
                    mode,
                    &Task::Echo(drive(length), rate),
                    |ours, theirs| {
                        [(P50, 0.85), (P99, 0.7)]
                            .into_iter()
                            .filter(move |_| has_floors)
                            .map(move |(figure, most)| Floor::within(figure, most, ours, theirs))
                    },
                ));
            }
        }
        cases.push(rivals(
            format!("driver ceiling {mode_name} 288B"),
            mode,
            &Task::Ceiling(drive(288)),
            |ours, theirs| Some(Floor::times(5.0, ours, theirs)),
        ));
    }
}

fn clients(cases: &mut Vec<Case>) {
    for length in LENGTHS {
        let drive = Drive {
            place: Place::Memory,
            mode: Mode::Aside,
            length,
            options: &[],
        };
        let floor = match length {
            32 => Some(1.5),
            288 => Some(1.3),
            _ => None,
        };
        let all = |task: &Task| {
            [Taran, Java, C]
                .map(|whose| contestant(whose, task, 2))
                .to_vec()
        };
        cases.push(Case {
            name: format!("client stream ipc {length}B"),
            contestants: all(&Task::ClientStream(drive.clone())),
            floors: floor
                .map(|floor| Floor::times(floor, 0, 2))
                .into_iter()
                .collect(),
        });
        cases.push(Case {
            name: format!("client ping ipc {length}B"),
            contestants: all(&Task::ClientPing(drive)),
            floors: Vec::new(),
        });
    }
}

fn defaults(cases: &mut Vec<Case>) {
    for (place, name) in [(Place::Loopback, "udp"), (Place::Memory, "ipc")] {
        for rate in [1_000, 10_000] {
            for length in [288, 8_192] {
                let drive = |options| Drive {
                    place: place.clone(),
                    mode: Mode::Default,
                    length,
                    options,
                };
                let task = Task::Echo(drive(&[]), rate);
                let (ours, spinning, java, c) = (0, 1, 2, 3);
                let mut floors = Vec::new();
                if rate == 10_000 {
                    floors.push(Floor::within(P90, 2.0, ours, spinning));
                    floors.push(Floor::within(P99, 3.0, ours, spinning));
                    for theirs in [java, c] {
                        floors.push(Floor::within(P90, 1.0, ours, theirs));
                        floors.push(Floor::within(P99, 1.0, ours, theirs));
                    }
                }
                cases.push(Case {
                    name: format!("defaults echo {name} {rate}/s {length}B"),
                    contestants: vec![
                        contestant(Taran, &task, c),
                        Contestant {
                            label: "Taran, spinning".to_owned(),
                            ..contestant(Taran, &Task::Echo(drive(SPINNING), rate), c)
                        },
                        contestant(Java, &task, c),
                        contestant(C, &task, c),
                    ],
                    floors,
                });
            }
        }
    }
    for length in LENGTHS {
        let drive = Drive {
            place: Place::Loopback,
            mode: Mode::Default,
            length,
            options: &[],
        };
        cases.push(rivals(
            format!("defaults stream udp {length}B"),
            Mode::Default,
            &Task::Stream(drive, Crowd::ONE),
            |_, _| None,
        ));
    }
    cases.push(rivals(
        "defaults idle".to_owned(),
        Mode::Default,
        &Task::Idle,
        |ours, _| {
            Some(Floor {
                figure: 0,
                of: ours,
                to: None,
                bound: Bound::AtMost(1.0),
            })
        },
    ));
}

fn scale(cases: &mut Vec<Case>) {
    let crowds = [100, 1_000, 10_000]
        .map(|idle| (format!("beside {idle} idle"), Crowd { idle, ..Crowd::ONE }))
        .into_iter()
        .chain([10, 100].map(|streams| {
            let crowd = Crowd {
                streams,
                ..Crowd::ONE
            };
            (format!("{streams} busy"), crowd)
        }))
        .chain([10, 100].map(|streams| {
            let crowd = Crowd {
                streams,
                trickle: true,
                ..Crowd::ONE
            };
            (format!("{streams} trickling"), crowd)
        }))
        .chain([4, 16].map(|destinations| {
            let crowd = Crowd {
                destinations,
                ..Crowd::ONE
            };
            (format!("{destinations} destinations"), crowd)
        }))
        .chain([4, 16].map(|subscribers| {
            let crowd = Crowd {
                subscribers,
                ..Crowd::ONE
            };
            (format!("{subscribers} subscribers"), crowd)
        }));
    for (what, crowd) in crowds {
        let drive = tuned(Place::Loopback, Mode::Invoker, 288);
        let one = Crowd {
            trickle: crowd.trickle,
            ..Crowd::ONE
        };
        let pair = |whose, alone: usize| {
            let drive = drive.clone();
            [
                Contestant {
                    label: format!("{whose}, {what}"),
                    ..contestant(whose, &Task::Stream(drive.clone(), crowd), alone)
                },
                Contestant {
                    label: format!("{whose}, alone"),
                    ..contestant(whose, &Task::Stream(drive, one), alone)
                },
            ]
        };
        cases.push(Case {
            name: format!("scale {what}"),
            contestants: match crowd.idle {
                // The driver in C takes minutes to open as many.
                10_000 => pair(Taran, 1).to_vec(),
                _ => [pair(Taran, 1), pair(C, 3)].concat(),
            },
            floors: match crowd.idle {
                1_000 => vec![Floor::times(0.9, 0, 1)],
                _ => Vec::new(),
            },
        });
    }
}

/// Everybody's driver against that in C. The one in Java has no mode in which it lives in a process of ours.
fn rivals<F: IntoIterator<Item = Floor>>(
    name: String,
    mode: Mode,
    task: &Task,
    floors: impl Fn(usize, usize) -> F,
) -> Case {
    let all: &[Contender] = match mode {
        Mode::Invoker => &[Taran, C],
        Mode::Shared | Mode::Default | Mode::Aside => &[Taran, Java, C],
    };
    let last = all.len() - 1;
    Case {
        name,
        contestants: all
            .iter()
            .map(|&whose| contestant(whose, task, last))
            .collect(),
        floors: floors(0, last).into_iter().collect(),
    }
}

fn contestant(whose: Contender, task: &Task, against: usize) -> Contestant {
    Contestant {
        label: whose.to_string(),
        whose,
        task: task.clone(),
        against,
    }
}

fn tuned(place: Place, mode: Mode, length: usize) -> Drive {
    Drive {
        place,
        mode,
        length,
        options: TUNED,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let cases = all();
        let names: HashSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn whoever_is_pointed_at_is_there() {
        for case in all() {
            let count = case.contestants.len();
            assert!(
                case.contestants.iter().all(|one| one.against < count),
                "{}",
                case.name
            );
            for floor in &case.floors {
                assert!(
                    floor.of < count && floor.to.is_none_or(|to| to < count),
                    "{}",
                    case.name
                );
                assert!(floor.figure < case.kind().names().len(), "{}", case.name);
                assert_eq!(case.contestants[floor.of].whose, Taran, "{}", case.name);
            }
        }
    }

    #[test]
    fn those_that_are_compared_are_asked_the_same_kind_of_thing() {
        for case in all() {
            for one in &case.contestants {
                let alone = Case {
                    contestants: vec![one.clone()],
                    ..case.clone()
                };
                assert_eq!(alone.kind(), case.kind(), "{}", case.name);
            }
        }
    }

    #[test]
    fn every_promise_has_a_case() {
        let promised: Vec<String> = all()
            .into_iter()
            .filter(|case| !case.floors.is_empty())
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
        ] {
            assert!(promised.iter().any(|promised| promised == name), "{name}");
        }
    }
}
