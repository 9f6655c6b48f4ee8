// SPDX-License-Identifier: Apache-2.0
//! Life cycle of the archive process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use taran_archive::{Archive, ArchiveConfig, ArchiveError, ArchiveThreadingMode, ConfigError};
use taran_core::idle::IdleError;
use taran_driver::{DriverContext, DriverError, MediaDriver, Termination};
use taran_protocol::option::{IdleRole, OptionSet, ThreadingMode};

use super::print;
use crate::driver::configure;
use crate::driver::stop::Signals;
use crate::start_line::StartLine;
use crate::version::COMMIT;

/// Interval of checks for the end of archive and driver. Signals and failures end the wait at once.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reason why an archive could not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Configure(#[from] configure::ConfigureError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Idle(#[from] IdleError),
    #[error(
        "aeron.threading.mode=INVOKER needs aeron.archive.threading.mode=INVOKER: one thread invokes both"
    )]
    Invoker,
    #[error(transparent)]
    Launch(#[from] ArchiveError),
    #[error("driver: {0}")]
    Driver(#[from] DriverError),
    #[error("cannot wait for signals: {0}")]
    Signals(#[from] io::Error),
    #[error("{0}")]
    Failed(String),
    #[error("driver: {0}; see 'taran errors'")]
    DriverFailed(String),
}

/// Runs an archive beside a driver until it is stopped.
pub(super) fn alone(options: &OptionSet) -> Result<(), RunError> {
    let mut signals = Signals::register()?;
    let mut waker = signals.waker()?;
    let config = ArchiveConfig::new(options)?;
    if options.print_configuration() {
        print(options)?;
    }
    let mode = config.threading_mode;
    let mut idle = config.idle.build();
    let properties = StartProperties::of(&config, options);
    let mut archive = Archive::builder(config)
        .commit(COMMIT)
        .on_failure(move || waker.wake())
        .launch()?;
    properties.print(None);
    while signals.received().is_none() && archive.failure().is_none() {
        if mode == ArchiveThreadingMode::Invoker {
            let work = archive.invoke();
            idle.idle(work, &mut std::thread::park_timeout);
        } else {
            signals.wait(CHECK_INTERVAL)?;
        }
    }
    close(archive)
}

/// The properties of an archive in the line that is printed at its start.
struct StartProperties {
    directory: PathBuf,
    threading: &'static str,
    sync_levels: [i64; 2],
}

impl StartProperties {
    fn of(config: &ArchiveConfig, options: &OptionSet) -> Self {
        Self {
            directory: config.dir.clone(),
            threading: options.archive_threading_mode_name(),
            sync_levels: [
                options.archive_file_sync_level(),
                options.archive_catalog_file_sync_level(),
            ],
        }
    }

    fn print(&self, driver: Option<(&OptionSet, &Path)>) {
        let mut line = StartLine::new("archive");
        line.add("archive", self.directory.display());
        line.add("threading", self.threading);
        let [files, catalog] = self.sync_levels;
        line.add(
            "durability",
            format_args!(
                "{} (file sync level {files}, catalog {catalog})",
                durability(files)
            ),
        );
        if let Some((options, directory)) = driver {
            line.add_driver(options, directory);
        }
        line.print();
    }
}

/// Returns what a recorded position means at a sync level.
fn durability(level: i64) -> &'static str {
    match level {
        0 => "recorded data survives the end of the process, not a power cut",
        1 => "recorded data is synced",
        _ => "recorded data and metadata of files are synced",
    }
}

/// Closes an archive. Fails if it has ended by itself.
fn close(archive: Archive) -> Result<(), RunError> {
    let failure = archive.failure();
    archive.close();
    failure.map_or(Ok(()), |text| Err(RunError::Failed(text)))
}

/// A driver that one thread invokes, and the start of its archive, too. It is taken out at its end.
#[derive(Clone)]
struct SharedDriver(Arc<Mutex<Option<MediaDriver>>>);

impl SharedDriver {
    fn lock(&self) -> MutexGuard<'_, Option<MediaDriver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn invoke(&self) -> usize {
        self.lock().as_mut().map_or(0, MediaDriver::invoke)
    }

    fn park(&self, longest: Duration) {
        if let Some(driver) = &mut *self.lock() {
            driver.park(longest);
        }
    }

    fn termination(&self) -> Option<Termination> {
        self.lock().as_ref().and_then(MediaDriver::termination)
    }

    fn close(&self) -> Result<(), DriverError> {
        let driver = self.lock().take();
        driver.map_or(Ok(()), MediaDriver::close)
    }
}

/// Runs a driver with an archive until it is stopped. The archive ends first.
pub(super) fn with_driver(options: &OptionSet, of_driver: &OptionSet) -> Result<(), RunError> {
    let mut signals = Signals::register()?;
    let config = ArchiveConfig::new(options)?;
    let is_invoked = of_driver.threading_mode() == ThreadingMode::Invoker;
    let is_archive_invoked = config.threading_mode == ArchiveThreadingMode::Invoker;
    if is_invoked && !is_archive_invoked {
        return Err(RunError::Invoker);
    }
    if options.print_configuration() {
        print(options)?;
    }
    let mut idle = if is_invoked {
        of_driver.idle(IdleRole::Shared)?.build()
    } else {
        config.idle.build()
    };
    let mut waker = signals.waker()?;
    let context =
        DriverContext::from_options(of_driver.clone()).termination_hook(move || waker.wake());
    let driver = MediaDriver::launch(context)?;
    let (directory, errors) = (driver.aeron_dir().to_path_buf(), driver.errors().clone());
    let driver = SharedDriver(Arc::new(Mutex::new(Some(driver))));

    let mut waker = signals.waker()?;
    let properties = StartProperties::of(&config, options);
    let mut builder = Archive::builder(beside(config, directory.clone()))
        .commit(COMMIT)
        .error_handler(errors)
        .on_failure(move || waker.wake());
    if is_invoked {
        let invoked = driver.clone();
        builder = builder.driver_invoker(move || invoked.invoke());
    }
    let mut archive = match builder.launch() {
        Ok(archive) => archive,
        Err(error) => {
            driver.close()?;
            return Err(error.into());
        }
    };
    properties.print(Some((of_driver, &directory)));
    let mut wait = || -> Result<(), RunError> {
        while signals.received().is_none()
            && archive.failure().is_none()
            && driver.termination().is_none()
        {
            if is_archive_invoked {
                // The driver first: the archive finds what has come.
                let work = driver.invoke() + archive.invoke();
                if is_invoked {
                    idle.idle(work, &mut |longest| driver.park(longest));
                } else {
                    idle.idle(work, &mut std::thread::park_timeout);
                }
            } else {
                signals.wait(CHECK_INTERVAL)?;
            }
        }
        Ok(())
    };
    let waited = wait();
    let termination = driver.termination();
    let archived = close(archive);
    let closed = driver.close();
    waited?;
    match termination {
        // The archive has lost its driver then.
        Some(Termination::Requested) => {}
        Some(failure) => return Err(RunError::DriverFailed(failure.to_string())),
        None => archived?,
    }
    Ok(closed?)
}

/// Returns the configuration of an archive at a driver.
fn beside(mut config: ArchiveConfig, directory: PathBuf) -> ArchiveConfig {
    config.aeron_dir = Some(directory);
    config
}
