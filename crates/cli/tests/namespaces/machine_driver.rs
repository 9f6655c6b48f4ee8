// SPDX-License-Identifier: Apache-2.0
//! A machine with a driver and a client.

use std::time::{Duration, Instant};

use taran::Client;
use taran_protocol::counter::SystemCounter;

use crate::machines::Machine;
use crate::process::{Directory, Driver};

/// Time limit for any wait of a test.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The driver runs on the machine; the client needs no network and runs in the test process.
pub(crate) struct DrivenMachine {
    pub(crate) client: Client,
    driver: Driver,
    _directory: Directory,
}

impl DrivenMachine {
    pub(crate) fn start(machine: &Machine, options: &[(&str, &str)]) -> DrivenMachine {
        let directory = Directory::new("namespace");
        let mut command = machine.command(env!("CARGO_BIN_EXE_taran"));
        command
            .arg("driver")
            .env("AERON_DIR", directory.path())
            .env("AERON_DIR_DELETE_ON_SHUTDOWN", "true")
            .envs(options.iter().copied());
        let driver = Driver::start_with(&mut command, directory.path());
        let client = Client::builder()
            .aeron_dir(directory.path())
            .connect()
            .unwrap();
        DrivenMachine {
            client,
            driver,
            _directory: directory,
        }
    }

    /// Returns the value of a system counter.
    pub(crate) fn count(&self, counter: SystemCounter) -> i64 {
        self.client.counters().value(counter.id()).unwrap()
    }

    /// Stops client and driver. The driver must have written nothing to standard error.
    pub(crate) fn stop(self) {
        drop(self.client);
        self.driver.stop("TERM").assert_silent();
    }
}

/// Waits until the condition is true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting for: {what}");
        std::thread::yield_now();
    }
}
