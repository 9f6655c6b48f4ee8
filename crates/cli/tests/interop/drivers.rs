// SPDX-License-Identifier: Apache-2.0
//! Driver processes, Taran and official.

use std::path::{Path, PathBuf};

use crate::java::{self, argument, directory};
use crate::program::Program;
use crate::signal::signal;
use crate::taran_driver::TaranDriver;

/// A driver process. Dropping it stops it and removes its directory.
pub(crate) enum Driver {
    /// `taran driver`.
    Taran(TaranDriver),
    /// `io.aeron.driver.MediaDriver`.
    Official(OfficialDriver),
}

impl Driver {
    /// Starts a Taran driver with `AERON_*` variables in addition to the directory.
    pub(crate) fn taran(name: &str, variables: &[(&str, &str)]) -> Driver {
        Driver::Taran(TaranDriver::start(name, variables))
    }

    /// Starts the official driver with properties in addition to the directory.
    pub(crate) fn official(name: &str, properties: &[(&str, &str)]) -> Driver {
        Driver::Official(OfficialDriver::start(name, properties))
    }

    pub(crate) fn dir(&self) -> &Path {
        match self {
            Driver::Taran(driver) => driver.dir(),
            Driver::Official(driver) => &driver.dir,
        }
    }

    /// Stops the process while `meanwhile` runs, like a machine whose host schedules others.
    pub(crate) fn stop_during(&self, meanwhile: impl FnOnce()) {
        let id = match self {
            Driver::Taran(driver) => driver.id(),
            Driver::Official(driver) => driver.process.id(),
        };
        signal(id, "STOP");
        meanwhile();
        signal(id, "CONT");
    }

    /// Declares that a Taran driver records an error with this text; unexpected errors fail the test. Errors of the
    /// official driver are not checked.
    pub(crate) fn expect_error(&self, text: &str) {
        if let Driver::Taran(driver) = self {
            driver.expect_error(text);
        }
    }

    /// Declares that the test ends a Taran driver; an unexpected end fails the test.
    pub(crate) fn expect_end(&self) {
        if let Driver::Taran(driver) = self {
            driver.expect_end();
        }
    }
}

pub(crate) struct OfficialDriver {
    dir: PathBuf,
    // Dropping it ends the driver.
    process: Program,
}

impl OfficialDriver {
    fn start(name: &str, properties: &[(&str, &str)]) -> OfficialDriver {
        Self::start_in(directory(name), properties, &[])
    }

    /// Starts the official driver in a directory of a driver that is dead, which it must find out itself.
    pub(crate) fn take_over(dir: &Path, properties: &[(&str, &str)]) -> OfficialDriver {
        Self::start_in(
            dir.to_owned(),
            properties,
            &[argument("delete-on-start", "false")],
        )
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    fn start_in(dir: PathBuf, properties: &[(&str, &str)], more: &[String]) -> OfficialDriver {
        let options: Vec<String> = properties
            .iter()
            .map(|(property, value)| format!("-D{property}={value}"))
            .collect();
        let mut arguments = vec![argument("dir", dir.display())];
        arguments.extend_from_slice(more);
        let mut process = java::start_with("driver", &options, &arguments);
        process.expect("READY");
        OfficialDriver { dir, process }
    }
}

impl Drop for OfficialDriver {
    fn drop(&mut self) {
        // The directory of a killed process remains.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
