// SPDX-License-Identifier: Apache-2.0
//! Life cycle of the process of a member.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use taran_archive::{Archive, ArchiveConfig, ArchiveError, ArchiveThreadingMode, ConfigError};
use taran_cluster::consensus::Durability;
use taran_cluster::container::ContainerLaunchError;
use taran_cluster::module::{ClusterConfig, ClusterConfigError, ConsensusModule, LaunchError};
use taran_driver::{DriverContext, DriverError, MediaDriver, Termination};
use taran_protocol::option::{OptionSet, ThreadingMode};

use super::Arguments;
use super::echo::Echo;
use super::parent;
use crate::archive;
use crate::driver::stop::Signals;
use crate::driver::{self, Settings, configure};
use crate::start_line::StartLine;
use crate::version::COMMIT;

/// Interval of checks for the end of member, archive and driver. Signals and failures end the wait at once.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reason why a member could not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Configure(#[from] configure::ConfigureError),
    #[error(transparent)]
    Config(#[from] ClusterConfigError),
    #[error(transparent)]
    ArchiveConfig(#[from] ConfigError),
    #[error(
        "{option}=INVOKER: the parts of 'taran cluster' run on threads of their own; choose SHARED"
    )]
    Invoker { option: &'static str },
    #[error("driver: {0}")]
    Driver(#[from] DriverError),
    #[error("archive: {0}")]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Container(#[from] ContainerLaunchError),
    #[error("--container --service none: a container runs a service; choose echo or count")]
    NoService,
    #[error("cannot wait for signals: {0}")]
    Signals(#[from] io::Error),
    #[error("{0}")]
    Failed(String),
    #[error("archive: {0}")]
    ArchiveFailed(String),
    #[error("driver: {0}; see 'taran errors'")]
    DriverFailed(String),
}

/// Parts of a process, in the order of their start.
struct Parts {
    driver: Option<MediaDriver>,
    archive: Option<Archive>,
    module: Option<ConsensusModule>,
}

impl Parts {
    /// Returns why a part has failed.
    fn failure(&self) -> Option<RunError> {
        let termination = self.driver.as_ref().and_then(MediaDriver::termination);
        if let Some(failure) = termination.filter(|it| !matches!(it, Termination::Requested)) {
            return Some(RunError::DriverFailed(failure.to_string()));
        }
        let archive = self.archive.as_ref().and_then(Archive::failure);
        let module = self.module.as_ref().and_then(ConsensusModule::failure);
        archive
            .map(RunError::ArchiveFailed)
            .or(module.map(RunError::Failed))
    }

    fn has_ended(&self) -> bool {
        self.failure().is_some()
            || self.module.as_ref().is_some_and(ConsensusModule::has_ended)
            || self
                .driver
                .as_ref()
                .is_some_and(|driver| driver.termination().is_some())
    }

    /// Ends the parts, the last one first, so that each can say to the others that it ends.
    fn close(self) -> Result<(), RunError> {
        if let Some(module) = self.module {
            module.close();
        }
        if let Some(archive) = self.archive {
            archive.close();
        }
        Ok(self.driver.map_or(Ok(()), MediaDriver::close)?)
    }
}

/// Runs a member until it is stopped.
pub(super) fn run(arguments: &Arguments) -> Result<(), RunError> {
    let mut signals = Signals::register()?;
    if let Some(parent) = arguments.parent {
        parent::end_with(parent)?;
    }
    let mut parts = Parts {
        driver: None,
        archive: None,
        module: None,
    };
    let started = start(arguments, &signals, &mut parts);
    let waited = started.and_then(|config| {
        loop {
            while signals.received().is_none() && !parts.has_ended() {
                signals.wait(CHECK_INTERVAL)?;
            }
            if signals.received().is_some() {
                return Ok(());
            }
            // The others go on without this member, which is back once its containers are.
            let Some(lost) = parts.module.take_if(|module| module.has_lost_service()) else {
                return Ok(());
            };
            lost.close();
            launch_module(arguments, &signals, &config, &mut parts)?;
            let _ = writeln!(io::stdout(), "the member waits for its containers");
        }
    });
    let failure = parts.failure();
    let closed = parts.close();
    waited?;
    failure.map_or(closed, Err)
}

/// Configurations of the parts, all of which are checked before the first part starts.
struct Configured {
    module: ClusterConfig,
    archive: Option<ArchiveConfig>,
    driver: Option<OptionSet>,
}

impl Configured {
    /// Reads the options of all parts, and warns of names that none of them has, and of options of clusters that belong to other
    /// programs.
    fn read(arguments: &Arguments) -> Result<Self, RunError> {
        let settings = &arguments.settings;
        let (options, mut unknown) =
            configure::apply(OptionSet::cluster(), settings, driver::environment())?;
        let mut of_driver = None;
        if arguments.driver {
            let (options, more) = configure::options(settings, driver::environment())?;
            configure::add_unknown(&mut unknown, more);
            of_driver = Some(options);
        }
        let mut of_archive = None;
        if arguments.archive {
            let (options, more) =
                configure::apply(OptionSet::archive(), settings, driver::environment())?;
            configure::add_unknown(&mut unknown, more);
            of_archive = Some(options);
        }
        driver::warn(&unknown);
        warn_of_foreign(settings, &options)?;
        let module = ClusterConfig::new(&options)?;
        if options.print_configuration() {
            // Standard output may be closed.
            let _ = archive::print(&options);
        }
        if let Some(options) = &of_driver
            && options.threading_mode() == ThreadingMode::Invoker
        {
            let option = "aeron.threading.mode";
            return Err(RunError::Invoker { option });
        }
        let archive = of_archive.as_ref().map(ArchiveConfig::new).transpose()?;
        if let Some(archive) = &archive
            && archive.threading_mode == ArchiveThreadingMode::Invoker
        {
            let option = "aeron.archive.threading.mode";
            return Err(RunError::Invoker { option });
        }
        Ok(Self {
            module,
            archive,
            driver: of_driver,
        })
    }
}

/// Warns of options of clusters in property files and on the command line that the program with these options does not read.
pub(super) fn warn_of_foreign(
    settings: &Settings,
    options: &OptionSet,
) -> Result<(), configure::ConfigureError> {
    for option in configure::defined(settings)? {
        let name = option.property;
        let is_of_clusters =
            name.starts_with("aeron.cluster.") || name.starts_with("taran.cluster.");
        if is_of_clusters && !options.is_in_scope(option) {
            let readers = option.scope.readers();
            eprintln!("WARNING: {name} has no effect here: it is an option of a {readers}");
        }
    }
    Ok(())
}

/// Starts the parts. Returns the configuration of the member.
fn start(
    arguments: &Arguments,
    signals: &Signals,
    parts: &mut Parts,
) -> Result<ClusterConfig, RunError> {
    let configured = Configured::read(arguments)?;
    let mut config = configured.module;
    let mut of_driver: Option<(OptionSet, PathBuf)> = None;
    if let Some(options) = configured.driver {
        let mut waker = signals.waker()?;
        let context =
            DriverContext::from_options(options.clone()).termination_hook(move || waker.wake());
        let driver = MediaDriver::launch(context)?;
        let directory = driver.aeron_dir().to_path_buf();
        config.aeron_dir = Some(directory.clone());
        of_driver = Some((options, directory));
        parts.driver = Some(driver);
    }
    let mut archive_directory = None;
    if let Some(mut archive) = configured.archive {
        let directory = archive.dir.clone();
        archive.aeron_dir = config.aeron_dir.clone().or(archive.aeron_dir);
        let mut waker = signals.waker()?;
        let mut builder = Archive::builder(archive)
            .commit(COMMIT)
            .on_failure(move || waker.wake());
        if let Some(driver) = &parts.driver {
            builder = builder.error_handler(driver.errors().clone());
        }
        archive_directory = Some(directory);
        parts.archive = Some(builder.launch()?);
    }
    let mut line = start_line(&config);
    if let Some(directory) = &archive_directory {
        line.add("archive", directory.display());
    }
    if let Some((options, directory)) = &of_driver {
        line.add_driver(options, directory);
    }
    launch_module(arguments, signals, &config, parts)?;
    line.print();
    Ok(config)
}

fn launch_module(
    arguments: &Arguments,
    signals: &Signals,
    config: &ClusterConfig,
    parts: &mut Parts,
) -> Result<(), RunError> {
    let mut waker = signals.waker()?;
    let on_end = move || waker.wake();
    let config = config.clone();
    let module = match Echo::of_kind(arguments.service) {
        Some(service) => ConsensusModule::builder(config, service)
            .on_end(on_end)
            .launch()?,
        None => ConsensusModule::with_containers(config)
            .on_end(on_end)
            .launch()?,
    };
    parts.module = Some(module);
    Ok(())
}

fn start_line(config: &ClusterConfig) -> StartLine {
    let durability = match config.durability {
        Durability::QuorumMemory => "quorum-memory (aeron.archive.file.sync.level=0)",
        Durability::QuorumDisk => "quorum-disk",
    };
    let mut line = StartLine::new("cluster");
    line.add("cluster", config.cluster_id);
    let (member, members) = (config.member_id, config.members.all().len());
    line.add("member", format_args!("{member} of {members}"));
    line.add("directory", config.dir.display());
    line.add("durability", durability);
    let timeout_ms = config.timing.heartbeat_timeout / 1_000_000;
    line.add("heartbeat timeout", format_args!("{timeout_ms} ms"));
    line.add("ingress", &config.own().ingress);
    line
}
