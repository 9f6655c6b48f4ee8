// SPDX-License-Identifier: Apache-2.0
//! `taran archive`: an archive as a process beside a media driver, or with one: a drop-in replacement for the official
//! `io.aeron.archive.Archive` and `ArchivingMediaDriver` (`docs/spec/archive.md` §8).

mod run;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use taran_protocol::option::OptionSet;

use crate::driver::{self, Settings, configure};

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
  taran archive --driver -Daeron.threading.mode=SHARED -Daeron.archive.threading.mode=SHARED both.properties

The archive needs a running media driver, Taran or Aeron, on this machine: aeron.dir, by default /dev/shm/aeron-<user>.
With --driver the process contains the driver, which takes the options of 'taran driver'. If the driver's
aeron.threading.mode is INVOKER, aeron.archive.threading.mode must be, too.

Errors of an archive are in the mark file of its directory and in the counter 'Archive Errors'; with --driver they are
with those of the driver (taran errors).

SIGINT and SIGTERM end it in order: recordings get their stop positions; then the driver ends.

Exit status: 0 after a signal, 1 if it could not start or failed.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: Settings,

    /// Run a media driver in the same process
    #[arg(long)]
    driver: bool,
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

fn try_run(arguments: &Arguments) -> Result<(), run::RunError> {
    let settings = &arguments.settings;
    let (options, mut unknown) =
        configure::apply(OptionSet::archive(), settings, driver::environment())?;
    if !arguments.driver {
        driver::warn(&unknown);
        return run::alone(&options);
    }
    let (of_driver, unknown_to_driver) = configure::options(settings, driver::environment())?;
    configure::add_unknown(&mut unknown, unknown_to_driver);
    driver::warn(&unknown);
    run::with_driver(&options, &of_driver)
}

/// Prints all options with their values and sources.
pub(crate) fn print(options: &OptionSet) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for explained in options.explain() {
        let (name, value, source) = (explained.option.property, explained.value, explained.source);
        writeln!(out, "{name}={value} ({source})")?;
    }
    out.flush()
}
