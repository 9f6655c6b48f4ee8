// SPDX-License-Identifier: Apache-2.0
//! Driver processes of a measurement.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt;
use crate::plan::{DriverSetup, Mode};
use crate::process::{Program, directory};
use crate::subject::Implementation;
use crate::testbed::{End, Testbed};

use super::keys::Keys;

/// Cores of the two ends.
pub(super) const CORES: [usize; 2] = [0, 1];

/// Driver processes: none if the drivers are embedded in the benchmark, otherwise one, or one at each end.
pub(super) struct Drivers {
    running: Vec<Running>,
    /// The key that all of them share, if they are secured.
    keys: Option<Keys>,
    /// True if a single driver has a core of its own, so that both ends share the other one.
    ends_share_core: bool,
}

struct Running {
    directory: PathBuf,
    program: Program,
}

impl Drivers {
    /// Starts the drivers and waits until they are running.
    pub(super) fn start(
        implementation: Implementation,
        setup: &DriverSetup,
        testbed: &Testbed,
    ) -> Result<Drivers, String> {
        let ends: &[End] = match (setup.mode, testbed.has_two_hosts()) {
            (Mode::Invoker, _) => &[],
            (_, true) => &[End::Near, End::Far],
            (_, false) => &[End::Far],
        };
        let keys = setup.is_secured.then(Keys::generate).transpose()?;
        let mut running = Vec::new();
        for &end in ends {
            let started = Running::start(implementation, setup, keys.as_ref(), testbed, end);
            running.push(started?);
        }
        Ok(Drivers {
            ends_share_core: setup.mode != Mode::Beside && running.len() == 1,
            running,
            keys,
        })
    }

    /// Returns the core of an end's client.
    pub(super) fn core(&self, end: End) -> usize {
        match end {
            End::Far if !self.ends_share_core => CORES[1],
            End::Near | End::Far => CORES[0],
        }
    }

    /// Returns the process id of the first driver.
    pub(super) fn id(&self) -> Option<u32> {
        self.running.first().map(|running| running.program.id())
    }

    /// Returns the Aeron directory of the first driver.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        self.running
            .first()
            .map(|running| running.directory.clone())
    }

    /// Adds the Aeron directory of an end's driver to the arguments of a benchmark, or the key of the driver that it embeds to
    /// its environment.
    pub(super) fn add_to(&self, command: &mut Command, end: End) {
        let running = match end {
            End::Near => self.running.first(),
            End::Far => self.running.last(),
        };
        if let Some(running) = running {
            command.arg("--aeron-dir").arg(&running.directory);
        } else if let Some(keys) = &self.keys {
            keys.add_to(command);
        }
    }
}

impl Running {
    fn start(
        implementation: Implementation,
        setup: &DriverSetup,
        keys: Option<&Keys>,
        testbed: &Testbed,
        end: End,
    ) -> Result<Running, String> {
        let directory = directory(&format!("{end:?}").to_lowercase());
        let mut options = Vec::new();
        let mut core = None;
        if setup.mode == Mode::Shared {
            options.push(("aeron.threading.mode", "SHARED"));
            core = Some(CORES[end as usize]);
        }
        options.extend(setup.options_of(implementation));
        let mut command = implementation.driver(&directory, &options);
        command.env("AERON_DIR", &directory);
        set_options(&mut command, &options);
        set_options(&mut command, &[("aeron.dir.delete.on.shutdown", "true")]);
        if let Some(keys) = keys {
            keys.add_to(&mut command);
        }
        let mut running = Running {
            program: Program::start(testbed.at(end, core, &command), "the driver")?,
            directory,
        };
        running.wait()?;
        Ok(running)
    }

    /// Waits until the CnC file exists; clients wait for its initialisation themselves.
    fn wait(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + super::TIMEOUT;
        while !self.directory.join("cnc.dat").exists() {
            interrupt::check()?;
            if let Some(status) = self.program.has_ended()? {
                return Err(format!("the driver ended with {status}, see above"));
            }
            if Instant::now() > deadline {
                return Err("the driver did not start".to_owned());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Drivers {
    fn drop(&mut self) {
        for Running { directory, program } in self.running.drain(..) {
            drop(program);
            // Usually already removed by the driver at its shutdown.
            let _ = std::fs::remove_dir_all(&directory);
        }
    }
}

/// Sets driver options as environment variables, in the form that all drivers accept.
pub(super) fn set_options(command: &mut Command, options: &[(&str, &str)]) {
    for (name, value) in options {
        command.env(name.to_ascii_uppercase().replace('.', "_"), value);
    }
}
