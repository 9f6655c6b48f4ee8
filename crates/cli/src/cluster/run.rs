//! Life cycle of the process of a member.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use taran_archive::{Archive, ArchiveConfig, ArchiveError, ArchiveThreadingMode, ConfigError};
use taran_cluster::consensus::Durability;
use taran_cluster::module::{ClusterConfig, ClusterConfigError, ConsensusModule, LaunchError};
use taran_driver::{DriverContext, DriverError, MediaDriver, Termination};
use taran_protocol::option::{OptionSet, ThreadingMode};

use super::echo::Echo;
use super::{Arguments, ServiceKind};
use crate::driver::stop::Signals;
use crate::driver::{self, Settings, configure};
use crate::start_line::StartLine;
use crate::version::COMMIT;

/// Interval of checks for the end of member, archive and driver. Signals and failures end the wait at once.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

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
    let mut parts = Parts {
        driver: None,
        archive: None,
        module: None,
    };
    let started = start(arguments, &signals, &mut parts);
    let waited = started.and_then(|()| {
        while signals.received().is_none() && !parts.has_ended() {
            signals.wait(CHECK_INTERVAL)?;
        }
        Ok(())
    });
    let failure = parts.failure();
    let closed = parts.close();
    waited?;
    failure.map_or(closed, Err)
}

fn start(arguments: &Arguments, signals: &Signals, parts: &mut Parts) -> Result<(), RunError> {
    let settings = &arguments.settings;
    let mut config = ClusterConfig::from_properties(properties(settings)?)?;
    let mut of_driver: Option<(OptionSet, PathBuf)> = None;
    if arguments.driver {
        let (options, _) = configure::options(settings, driver::environment())?;
        if options.threading_mode() == ThreadingMode::Invoker {
            let option = "aeron.threading.mode";
            return Err(RunError::Invoker { option });
        }
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
    if arguments.archive {
        let (options, unknown) =
            configure::apply(OptionSet::archive(), settings, driver::environment())?;
        driver::warn(&unknown);
        let mut archive = ArchiveConfig::new(&options)?;
        if archive.threading_mode == ArchiveThreadingMode::Invoker {
            let option = "aeron.archive.threading.mode";
            return Err(RunError::Invoker { option });
        }
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
    let service = Echo::new(matches!(arguments.service, ServiceKind::Count));
    let mut waker = signals.waker()?;
    let module = ConsensusModule::builder(config, service)
        .on_end(move || waker.wake())
        .launch()?;
    parts.module = Some(module);
    line.print();
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

/// Returns names and values from the environment, files and the command line, in this order. Warns of options of the cluster that
/// have no effect.
fn properties(settings: &Settings) -> Result<Vec<(String, String)>, configure::ConfigureError> {
    let mut properties = Vec::new();
    for (variable, value) in driver::environment() {
        let known = ClusterConfig::PROPERTIES
            .into_iter()
            .find(|name| name.to_uppercase().replace('.', "_") == variable);
        properties.extend(known.map(|name| (name.to_owned(), value)));
    }
    for (name, value) in configure::given(settings)? {
        let is_known = ClusterConfig::PROPERTIES.contains(&&*name);
        if name.starts_with("aeron.cluster.") && !is_known {
            eprintln!("WARNING: {name} has no effect on this member");
        }
        properties.push((name, value));
    }
    Ok(properties)
}
