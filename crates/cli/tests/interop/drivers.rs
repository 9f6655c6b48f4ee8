//! Drivers as other processes: ours and the official one.

use std::path::{Path, PathBuf};

use crate::java::{self, argument, directory};
use crate::program::Program;
use crate::signal::signal;
use crate::taran_driver::TaranDriver;

/// A driver that a test talks to. Dropping it stops it and removes its directory.
pub(crate) enum Driver {
    /// `taran driver`.
    Taran(TaranDriver),
    /// `io.aeron.driver.MediaDriver`.
    Official(OfficialDriver),
}

impl Driver {
    /// Our driver, with `AERON_*` variables besides the directory.
    pub(crate) fn taran(name: &str, variables: &[(&str, &str)]) -> Driver {
        Driver::Taran(TaranDriver::start(name, variables))
    }

    /// The official driver, with properties besides the directory.
    pub(crate) fn official(name: &str, properties: &[(&str, &str)]) -> Driver {
        Driver::Official(OfficialDriver::start(name, properties))
    }

    pub(crate) fn dir(&self) -> &Path {
        match self {
            Driver::Taran(driver) => driver.dir(),
            Driver::Official(driver) => &driver.dir,
        }
    }

    /// Lets it stand still, as a machine does whose host has no time for it, while `meanwhile` runs.
    pub(crate) fn stand_still(&self, meanwhile: impl FnOnce()) {
        let id = match self {
            Driver::Taran(driver) => driver.id(),
            Driver::Official(driver) => driver.process.id(),
        };
        signal(id, "STOP");
        meanwhile();
        signal(id, "CONT");
    }

    /// Says that our driver will have an entry with these words in its error log, which is a failure otherwise. What the
    /// official one logs is its own affair.
    pub(crate) fn expect_error(&self, words: &str) {
        if let Driver::Taran(driver) = self {
            driver.expect_error(words);
        }
    }

    /// Says that the test ends our driver, which is a failure otherwise.
    pub(crate) fn expect_end(&self) {
        if let Driver::Taran(driver) = self {
            driver.expect_end();
        }
    }
}

pub(crate) struct OfficialDriver {
    dir: PathBuf,
    // Its end is the end of the driver.
    process: Program,
}

impl OfficialDriver {
    fn start(name: &str, properties: &[(&str, &str)]) -> OfficialDriver {
        let dir = directory(name);
        let options: Vec<String> = properties
            .iter()
            .map(|(property, value)| format!("-D{property}={value}"))
            .collect();
        let mut process = java::start_with("driver", &options, &[argument("dir", dir.display())]);
        process.expect("READY");
        OfficialDriver { dir, process }
    }
}

impl Drop for OfficialDriver {
    fn drop(&mut self) {
        // The directory outlives a killed process, and is nobody else's.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
