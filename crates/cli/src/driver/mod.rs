//! `taran driver`: the media driver as a process, a drop-in for the official `aeronmd` (docs/spec/uri-and-configuration.md §5.1).

pub(crate) mod configure;
mod run;
mod stop;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use taran_protocol::option::{OptionSet, UnknownOption};

use crate::version;

/// The arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Options have the names, environment variables, defaults and ranges of the official driver. Of several values for one
option the nearest word counts: -D over files (a later file over an earlier one), files over the environment. (aeronmd
lets files win over -D.) An empty value takes an option back to its default. A value that cannot be is an error, not
replaced in silence; a name that looks like a typing mistake is reported.

  taran driver                                          as the environment says (AERON_DIR, AERON_...)
  taran driver -Daeron.dir=/dev/shm/one -Daeron.threading.mode=SHARED
  taran driver -Dtaran.profile=low-latency prod.properties
  taran driver -Daeron.print.configuration=true         print every option and its value at start

Clients find the driver by its directory: aeron.dir, by default /dev/shm/aeron-<user>. Watch it with 'taran stat',
read its errors with 'taran errors'.

SIGINT and SIGTERM stop it in an orderly way; so does a client's request where aeron.driver.termination.validator=allow.

Exit status: the number of the signal that stopped it (SIGINT 2, SIGTERM 15), 0 after a client's request, 1 where it
could not start, failed, or was called wrongly.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: Settings,

    /// Print the version as aeronmd does
    #[arg(short = 'v')]
    version: bool,
}

/// What a driver is told on its command line.
#[derive(Args, Debug)]
pub(crate) struct Settings {
    /// Property files: a path or file:// URL; lines of name=value
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    /// Set an option, by the name of its property or environment variable
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    defines: Vec<String>,
}

/// Runs a driver until it is told to stop.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.version {
        // Where nobody reads it there is nobody to tell.
        let _ = writeln!(io::stdout(), "{}", version::driver_line());
        return ExitCode::SUCCESS;
    }
    let (options, unknown) = match configure::options(&arguments.settings, environment()) {
        Ok(configured) => configured,
        Err(error) => return fail("context init", &error),
    };
    warn(&unknown);
    drive(options)
}

fn drive(options: OptionSet) -> ExitCode {
    match run::run(options) {
        Ok(stop) => stop.exit_code(),
        Err(error) => fail(error.stage(), &error),
    }
}

fn fail(stage: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("ERROR: {stage}: {error}");
    ExitCode::FAILURE
}

/// Reports names that are nearly certain to be mistakes; other unknown ones may belong to other components.
fn warn(unknown: &[UnknownOption]) {
    for option in unknown.iter().filter(|option| option.nearest.is_some()) {
        eprintln!("WARNING: {option}");
    }
}

/// The variables that are text; no other one is an option.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
