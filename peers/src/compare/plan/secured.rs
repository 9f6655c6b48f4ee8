// SPDX-License-Identifier: Apache-2.0
//! Transport security: our driver with and without it, and beside other encrypted protocols.

use super::cases::{P50, P99, subject, tuned};
use super::{Case, DriverSetup, Mode, Protocol, Subject, Target, Task, Topology};
use crate::subject::Implementation::Taran;
use crate::testbed::Place;

/// Rate of the round trips beside other protocols, in messages per second: one that each of them holds.
const RATE_OF_ALL: u64 = 10_000;
const LENGTH: usize = 288;

pub(super) fn add(cases: &mut Vec<Case>) {
    for (mode, name) in [(Mode::Invoker, "invoker"), (Mode::Shared, "shared")] {
        cases.push(beside_plain(
            format!("secure echo {name} 100000/s {LENGTH}B"),
            mode,
            LENGTH,
            |setup| Task::Echo(setup, 100_000),
            [P50, P99].map(|figure| Target::within(figure, 1.1, 0, 1)),
        ));
        for length in [LENGTH, 1_344] {
            cases.push(beside_plain(
                format!("secure stream {name} {length}B"),
                mode,
                length,
                |setup| Task::Stream(setup, Topology::ONE),
                [Target::times(0.6, 0, 1)],
            ));
        }
    }
    cases.push(beside_plain(
        "secure first message".to_owned(),
        Mode::Default,
        LENGTH,
        Task::First,
        [],
    ));
    let other = |label: &str, protocol| Subject {
        label: label.to_owned(),
        ..subject(
            Taran,
            &Task::Encrypted {
                protocol,
                rate: RATE_OF_ALL,
                length: LENGTH,
            },
            1,
        )
    };
    let ours = Task::Echo(setup(Mode::Invoker, LENGTH, true), RATE_OF_ALL);
    cases.push(Case {
        name: format!("secure echo beside others {RATE_OF_ALL}/s {LENGTH}B"),
        subjects: vec![
            Subject {
                label: "Taran, secured".to_owned(),
                ..subject(Taran, &ours, 1)
            },
            other("TLS 1.3 over TCP", Protocol::Tls),
            other("QUIC", Protocol::Quic),
        ],
        targets: [1, 2]
            .map(|theirs| Target::within(P99, 1.0 / 8.0, 0, theirs))
            .to_vec(),
    });
}

/// Creates a case of a secured driver with the plain one as its baseline.
fn beside_plain<const N: usize>(
    name: String,
    mode: Mode,
    length: usize,
    task: impl Fn(DriverSetup) -> Task,
    targets: [Target; N],
) -> Case {
    let of = |label: &str, is_secured| Subject {
        label: label.to_owned(),
        ..subject(Taran, &task(setup(mode, length, is_secured)), 1)
    };
    Case {
        name,
        subjects: vec![of("Taran, secured", true), of("Taran, plain", false)],
        targets: targets.to_vec(),
    }
}

fn setup(mode: Mode, length: usize, is_secured: bool) -> DriverSetup {
    DriverSetup {
        is_secured,
        ..tuned(Place::Loopback, mode, length)
    }
}
