// SPDX-License-Identifier: Apache-2.0
//! Our member of a cluster, with driver, archive and service in one process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use taran_archive::{Archive, ArchiveConfig};
use taran_bench::side::RunError;
use taran_cluster::module::{ClusterConfig, ConsensusModule};
use taran_driver::{DriverContext, MediaDriver};
use taran_peers::bench::print_ready;
use taran_protocol::option::{OptionSet, Source};

use crate::service::Echo;
use crate::session::peer;

/// Interval of checks for the stop flag. A stop ends it with a delay that no measurement contains.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a member until `stop` is set, then ends it in order: a leader hands leadership over first.
pub(crate) fn run(state_bytes: usize, stop: &AtomicBool) -> Result<(), RunError> {
    let driver = MediaDriver::launch(DriverContext::from_environment()?)?;
    let mut archive = ArchiveConfig::new(&options(OptionSet::archive())?).map_err(peer)?;
    archive.aeron_dir = Some(driver.aeron_dir().to_path_buf());
    let archive = Archive::builder(archive).launch().map_err(peer)?;
    let mut config = ClusterConfig::new(&options(OptionSet::cluster())?).map_err(peer)?;
    config.aeron_dir = Some(driver.aeron_dir().to_path_buf());
    let module = ConsensusModule::builder(config, Echo::new(state_bytes))
        .launch()
        .map_err(peer)?;
    print_ready();
    let has_failed = || module.has_ended() || archive.failure().is_some();
    while !stop.load(Ordering::Relaxed) && !has_failed() {
        thread::sleep(STOP_CHECK_INTERVAL);
    }
    let failure = module.failure().or(archive.failure());
    module.close();
    archive.close();
    driver.close()?;
    failure.map_or(Ok(()), |reason| Err(RunError::Peer(reason)))
}

/// Returns options with the values of environment variables; those that are not UTF-8 are ignored.
fn options(mut options: OptionSet) -> Result<OptionSet, RunError> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    options
        .apply(&Source::Environment, variables)
        .map_err(peer)?;
    Ok(options)
}
