//! A machine with a driver and a client of it.

use std::time::{Duration, Instant};

use taran::{Client, Context};
use taran_protocol::counter::SystemCounter;

use crate::machines::Machine;
use crate::process::{Directory, Driver};

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(120);

/// The driver runs on the machine; the client, which needs no network, in the test.
pub(crate) struct Driven {
    pub(crate) client: Client,
    driver: Driver,
    _directory: Directory,
}

impl Driven {
    pub(crate) fn start(machine: &Machine, options: &[(&str, &str)]) -> Driven {
        let directory = Directory::new("namespace");
        let mut command = machine.command(env!("CARGO_BIN_EXE_taran"));
        command
            .arg("driver")
            .env("AERON_DIR", directory.path())
            .env("AERON_DIR_DELETE_ON_SHUTDOWN", "true")
            .envs(options.iter().copied());
        let driver = Driver::start_with(&mut command, directory.path());
        let client = Context::new()
            .aeron_dir(directory.path())
            .connect()
            .unwrap();
        Driven {
            client,
            driver,
            _directory: directory,
        }
    }

    /// What the driver has counted.
    pub(crate) fn count(&self, counter: SystemCounter) -> i64 {
        self.client.counters().value(counter.id()).unwrap()
    }

    /// Ends client and driver. The driver has said nothing on standard error.
    pub(crate) fn stop(self) {
        drop(self.client);
        self.driver.stop("TERM").assert_silent();
    }
}

/// Waits, with patience, until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
    }
}
