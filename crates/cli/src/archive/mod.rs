//! `taran archive`: an archive as a process beside a media driver, a drop-in replacement for the official
//! `io.aeron.archive.Archive` (`docs/spec/archive.md` §8).

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use taran_archive::{Archive, ArchiveConfig, ArchiveError, ArchiveThreadingMode, ConfigError};
use taran_protocol::option::OptionSet;

use crate::driver::stop::Signals;
use crate::driver::{self, Settings, configure};

/// Interval of checks for the end of the archive. Signals and failures end the wait at once.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Options have the names, defaults and ranges of the official archive; their environment variables are the names in upper
case with _ for the dots. Precedence: -D over property files (a later file over an earlier one), property files over the
environment. An empty value resets an option to its default. An invalid value is an error.

  taran archive -Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010 \\
      -Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0
  taran archive -Daeron.archive.dir=/var/lib/archive -Daeron.archive.file.sync.level=1 \\
      -Daeron.archive.catalog.file.sync.level=1 archive.properties

The archive needs a running media driver, Taran or Aeron, on this machine: aeron.dir, by default /dev/shm/aeron-<user>.
Its errors are in the mark file of its directory and in the counter 'Archive Errors'.

SIGINT and SIGTERM end it in order: recordings get their stop positions.

Exit status: 0 after a signal, 1 if it could not start or failed.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: Settings,
}

/// Reason why an archive could not run.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Configure(#[from] configure::ConfigureError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Launch(#[from] ArchiveError),
    #[error("cannot wait for signals: {0}")]
    Signals(#[from] io::Error),
    #[error("{0}")]
    Failed(String),
}

/// Runs an archive until it is stopped.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match try_run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ERROR: archive: {error}");
            ExitCode::FAILURE
        }
    }
}

fn try_run(arguments: &Arguments) -> Result<(), RunError> {
    let mut signals = Signals::register()?;
    let mut waker = signals.waker()?;
    let (options, unknown) = configure::apply(
        OptionSet::archive(),
        &arguments.settings,
        driver::environment(),
    )?;
    driver::warn(&unknown);
    let config = ArchiveConfig::new(&options)?;
    if options.print_configuration() {
        print(&options)?;
    }
    let mode = config.threading_mode;
    let mut idle = config.idle.build();
    let mut archive = Archive::builder(config)
        .on_failure(move || waker.wake())
        .launch()?;
    while signals.received().is_none() && archive.failure().is_none() {
        if mode == ArchiveThreadingMode::Invoker {
            let work = archive.invoke();
            idle.idle(work, &mut std::thread::park_timeout);
        } else {
            signals.wait(CHECK_INTERVAL)?;
        }
    }
    let failure = archive.failure();
    archive.close();
    failure.map_or(Ok(()), |text| Err(RunError::Failed(text)))
}

fn print(options: &OptionSet) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for explained in options.explain() {
        let (name, value, source) = (explained.option.property, explained.value, explained.source);
        writeln!(out, "{name}={value} ({source})")?;
    }
    out.flush()
}
