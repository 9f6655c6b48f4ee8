// SPDX-License-Identifier: Apache-2.0
//! A client in its own process, to be killed. The process is this test program, started again.
//!
//! Its behaviour is derived from its specification. It prints `READY` when it is connected, `HERE` when it has reached
//! its kill point, and `FAILED` with a reason if it has detected an error; then it waits to be killed.

mod points;
mod random_ops;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use taran::{CommandError, Lost};

use crate::fixture::{Stream, connect, streams};

/// Variable with the specification of the process; without it, the test below does nothing.
const ORDER: &str = "TARAN_TEST_VICTIM";
const SEPARATOR: char = '\n';

/// Point at which a victim is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KillPoint {
    /// At any time, during random client operations.
    RandomOps,
    /// At any time, possibly during its startup.
    Startup,
    /// With a claim on a shared publication.
    SharedClaim,
    /// With a claim on an exclusive publication, after some messages.
    ExclusiveClaim,
    /// Between two fragments of a message: the first is committed, the second is started, the third is reserved.
    PartialMessage,
    /// With space reserved in a term and nothing written to it.
    ReservedSpace,
    /// With a command started and not committed.
    PartialCommand,
    /// With space reserved for a command and nothing written to it.
    ReservedCommandSpace,
}

impl KillPoint {
    /// Selects the kill point of a victim. An uncommitted command blocks all other commands for the liveness timeout,
    /// so few victims are killed there.
    pub(crate) fn of(number: u64) -> KillPoint {
        match (number % 160, number % 48) {
            (7, _) => KillPoint::PartialCommand,
            (31, _) => KillPoint::ReservedCommandSpace,
            (_, 1 | 17 | 33) => KillPoint::SharedClaim,
            (_, 3 | 19 | 35) => KillPoint::ExclusiveClaim,
            (_, 5 | 21) => KillPoint::PartialMessage,
            (_, 13 | 37) => KillPoint::ReservedSpace,
            (_, rest) if rest % 4 == 2 => KillPoint::Startup,
            _ => KillPoint::RandomOps,
        }
    }
}

/// Specification of a victim.
#[derive(Clone, Debug)]
pub(crate) struct VictimSpec {
    pub(crate) directory: PathBuf,
    pub(crate) address: Ipv4Addr,
    /// Number of streams of each kind that surviving clients use.
    pub(crate) streams: usize,
    /// Unique number of the victim.
    pub(crate) number: u64,
    pub(crate) seed: u64,
}

impl VictimSpec {
    pub(crate) fn kill_point(&self) -> KillPoint {
        KillPoint::of(self.number)
    }

    /// Returns the command that starts the victim.
    pub(crate) fn command(&self) -> Command {
        let spec = [
            self.directory.display().to_string(),
            self.address.to_string(),
            self.streams.to_string(),
            self.number.to_string(),
            self.seed.to_string(),
        ];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "victim::victim_waits_to_be_killed", "--ignored"])
            .arg("--nocapture")
            .env(ORDER, spec.join(&SEPARATOR.to_string()));
        command
    }

    fn read() -> Option<VictimSpec> {
        let spec = std::env::var(ORDER).ok()?;
        let fields: Vec<&str> = spec.split(SEPARATOR).collect();
        let [directory, address, streams, number, seed] = fields.try_into().unwrap();
        Some(VictimSpec {
            directory: PathBuf::from(directory),
            address: address.parse().unwrap(),
            streams: streams.parse().unwrap(),
            number: number.parse().unwrap(),
            seed: seed.parse().unwrap(),
        })
    }

    fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed)
    }

    fn shared_streams(&self) -> Vec<Stream> {
        streams(self.address, self.streams)
    }

    /// Returns a unique producer id.
    fn producer(&self, handle: u64) -> u64 {
        (self.number + 1) << 16 | handle
    }
}

/// Reason why a victim ends before it is killed.
#[derive(Debug)]
enum VictimError {
    /// An error of the system under test.
    Wrong(String),
    /// The machine was so busy that the client timed out.
    Starved,
}

impl VictimError {
    fn of_lost(lost: Lost) -> VictimError {
        match lost {
            Lost::ClientTimeout { .. } | Lost::ServiceInterval { .. } => VictimError::Starved,
            lost => VictimError::Wrong(lost.to_string()),
        }
    }
}

impl From<CommandError> for VictimError {
    fn from(error: CommandError) -> VictimError {
        match error {
            CommandError::DriverLost(lost) => VictimError::of_lost(lost),
            error => VictimError::Wrong(error.to_string()),
        }
    }
}

impl From<String> for VictimError {
    fn from(reason: String) -> VictimError {
        VictimError::Wrong(reason)
    }
}

#[test]
#[ignore = "a process that other tests start and kill"]
fn victim_waits_to_be_killed() {
    let Some(spec) = VictimSpec::read() else {
        return;
    };
    let client = connect(&spec.directory);
    println!("\nREADY");
    let ended = match spec.kill_point() {
        KillPoint::RandomOps | KillPoint::Startup => random_ops::run_random_ops(&spec, client),
        point => points::run_to(point, &spec, &client).map(|never| match never {}),
    };
    match ended {
        Ok(()) => {}
        Err(VictimError::Starved) => println!("STARVED"),
        Err(VictimError::Wrong(reason)) => println!("FAILED {reason}"),
    }
    let _ = std::io::stdin().read_line(&mut String::new());
}
