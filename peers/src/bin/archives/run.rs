// SPDX-License-Identifier: Apache-2.0
//! Our archive, alone or with our driver.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use taran_archive::{Archive, ArchiveConfig};
use taran_bench::side::RunError;
use taran_driver::{DriverContext, MediaDriver};
use taran_peers::bench::print_ready;
use taran_protocol::option::{OptionSet, Source};

use crate::archived::peer;

/// Interval of checks for the stop flag.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Runs an archive until `stop` is set.
pub(crate) fn run(with_driver: bool, stop: &AtomicBool) -> Result<(), RunError> {
    let mut options = OptionSet::archive();
    let environment = std::env::vars();
    options
        .apply(&Source::Environment, environment)
        .map_err(peer)?;
    let config = ArchiveConfig::new(&options).map_err(peer)?;
    let driver = if with_driver {
        Some(MediaDriver::launch(DriverContext::from_environment()?)?)
    } else {
        None
    };
    let archive = Archive::builder(config).launch().map_err(peer)?;
    print_ready();
    while !stop.load(Ordering::Relaxed) && archive.failure().is_none() {
        thread::sleep(STOP_CHECK_INTERVAL);
    }
    let failure = archive.failure();
    archive.close();
    drop(driver);
    failure.map_or(Ok(()), |reason| Err(RunError::Peer(reason)))
}
