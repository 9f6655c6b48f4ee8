//! A client in a process of its own, made to be killed: this test program, started once more.
//!
//! What it does follows from its order. It says `READY` when it is connected, `HERE` when it stands at the point where it is
//! to die, and `FAILED` with a reason when it saw what must not be; then it waits for its end.

mod points;
mod roaming;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use taran::{AddError, Lost};

use crate::bench::{Stream, connect, streams};

/// Where the process finds its order; the test below does nothing without it.
const ORDER: &str = "TARAN_TEST_VICTIM";
const SEPARATOR: char = '\n';

/// Where a victim dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Death {
    /// Anywhere: it does everything that clients do, until it is killed.
    Roaming,
    /// Anywhere, and it may not even have begun.
    Starting,
    /// With a claim on a publication that others use, too.
    SharedClaim,
    /// With a claim on a publication of its own, and messages before it.
    ExclusiveClaim,
    /// Between two fragments of a message: the first is there, the second is begun, the third is not.
    HalfMessage,
    /// With room taken in a term and nothing written to it.
    BareRoom,
    /// With a command begun and not finished.
    HalfCommand,
    /// With room taken for a command and nothing written to it.
    BareCommandRoom,
}

impl Death {
    /// In what proportion victims die of what. A command that is not finished stops all other commands for the liveness
    /// timeout, so few die of that.
    pub(crate) fn of(number: u64) -> Death {
        match (number % 160, number % 48) {
            (7, _) => Death::HalfCommand,
            (31, _) => Death::BareCommandRoom,
            (_, 1 | 17 | 33) => Death::SharedClaim,
            (_, 3 | 19 | 35) => Death::ExclusiveClaim,
            (_, 5 | 21) => Death::HalfMessage,
            (_, 13 | 37) => Death::BareRoom,
            (_, rest) if rest % 4 == 2 => Death::Starting,
            _ => Death::Roaming,
        }
    }
}

/// What a victim is told.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) directory: PathBuf,
    pub(crate) address: Ipv4Addr,
    /// How many streams of each kind the witnesses have.
    pub(crate) streams: usize,
    /// No other victim has it.
    pub(crate) number: u64,
    pub(crate) seed: u64,
}

impl Order {
    pub(crate) fn death(&self) -> Death {
        Death::of(self.number)
    }

    /// The command that starts the victim.
    pub(crate) fn command(&self) -> Command {
        let order = [
            self.directory.display().to_string(),
            self.address.to_string(),
            self.streams.to_string(),
            self.number.to_string(),
            self.seed.to_string(),
        ];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "victim::waits_to_be_killed", "--ignored"])
            .arg("--nocapture")
            .env(ORDER, order.join(&SEPARATOR.to_string()));
        command
    }

    fn read() -> Option<Order> {
        let order = std::env::var(ORDER).ok()?;
        let fields: Vec<&str> = order.split(SEPARATOR).collect();
        let [directory, address, streams, number, seed] = fields.try_into().unwrap();
        Some(Order {
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

    /// Ids of producers that nobody else has.
    fn producer(&self, handle: u64) -> u64 {
        (self.number + 1) << 16 | handle
    }
}

/// Why a victim ends before it is killed.
#[derive(Debug)]
enum Trouble {
    /// What must not be.
    Wrong(String),
    /// The machine was so busy that the driver gave the victim up, or had to.
    Starved,
}

impl Trouble {
    fn of_lost(lost: Lost) -> Trouble {
        match lost {
            Lost::ClientTimeout { .. } | Lost::ServiceInterval { .. } => Trouble::Starved,
            lost => Trouble::Wrong(lost.to_string()),
        }
    }
}

impl From<AddError> for Trouble {
    fn from(error: AddError) -> Trouble {
        match error {
            AddError::DriverLost(lost) => Trouble::of_lost(lost),
            error => Trouble::Wrong(error.to_string()),
        }
    }
}

impl From<String> for Trouble {
    fn from(reason: String) -> Trouble {
        Trouble::Wrong(reason)
    }
}

#[test]
#[ignore = "a process that other tests start and kill"]
fn waits_to_be_killed() {
    let Some(order) = Order::read() else {
        return;
    };
    let client = connect(&order.directory);
    println!("\nREADY");
    let ended = match order.death() {
        Death::Roaming | Death::Starting => roaming::roam(&order, client),
        point => points::go_to(point, &order, &client).map(|never| match never {}),
    };
    match ended {
        Ok(()) => {}
        Err(Trouble::Starved) => println!("STARVED"),
        Err(Trouble::Wrong(reason)) => println!("FAILED {reason}"),
    }
    let _ = std::io::stdin().read_line(&mut String::new());
}
