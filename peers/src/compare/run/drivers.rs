//! The driver processes of a measurement.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt;
use crate::plan::{DriverSetup, Mode};
use crate::process::{Program, directory};
use crate::subject::Implementation;
use crate::testbed::{End, Testbed};

/// Cores of the two ends.
pub(super) const CORES: [usize; 2] = [0, 1];

/// None where drivers live in the benchmark, one, or one at each end.
pub(super) struct Drivers {
    running: Vec<Running>,
    /// Whether there is a core for one driver, which leaves the other one to both ends.
    leaves_one_core: bool,
}

struct Running {
    directory: PathBuf,
    program: Program,
}

impl Drivers {
    /// Starts them, and waits until they are there.
    pub(super) fn start(
        implementation: Implementation,
        setup: &DriverSetup,
        testbed: &Testbed,
    ) -> Result<Drivers, String> {
        let ends: &[End] = match (setup.mode, testbed.has_two_machines()) {
            (Mode::Invoker, _) => &[],
            (_, true) => &[End::Near, End::Far],
            (_, false) => &[End::Far],
        };
        let mut running = Vec::new();
        for &end in ends {
            running.push(Running::start(implementation, setup, testbed, end)?);
        }
        Ok(Drivers {
            leaves_one_core: setup.mode != Mode::Beside && running.len() == 1,
            running,
        })
    }

    /// The core of an end's client.
    pub(super) fn core(&self, end: End) -> usize {
        match end {
            End::Far if !self.leaves_one_core => CORES[1],
            End::Near | End::Far => CORES[0],
        }
    }

    /// The process id of the first one.
    pub(super) fn id(&self) -> Option<u32> {
        self.running.first().map(|running| running.program.id())
    }

    /// The directory of the first one.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        self.running
            .first()
            .map(|running| running.directory.clone())
    }

    /// Tells a benchmark where its driver is.
    pub(super) fn tell(&self, command: &mut Command, end: End) {
        let running = match end {
            End::Near => self.running.first(),
            End::Far => self.running.last(),
        };
        if let Some(running) = running {
            command.arg("--aeron-dir").arg(&running.directory);
        }
    }
}

impl Running {
    fn start(
        implementation: Implementation,
        setup: &DriverSetup,
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
        let mut running = Running {
            program: Program::start(testbed.at(end, core, &command), "the driver")?,
            directory,
        };
        running.wait()?;
        Ok(running)
    }

    /// Until its file is there; for the rest clients wait by themselves.
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
            // It did that itself, unless something was wrong with it.
            let _ = std::fs::remove_dir_all(&directory);
        }
    }
}

/// Tells options by the environment, as all drivers take them.
pub(super) fn set_options(command: &mut Command, options: &[(&str, &str)]) {
    for (name, value) in options {
        command.env(name.to_ascii_uppercase().replace('.', "_"), value);
    }
}
