//! `taran driver`: the media driver as a process, a drop-in replacement for the official `aeronmd`
//! (docs/spec/uri-and-configuration.md §5.1).

pub(crate) mod configure;
mod run;
pub(crate) mod stop;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use taran_protocol::option::{OptionSet, UnknownOption};

use crate::version;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
Options have the names, environment variables, defaults and ranges of the official driver. Precedence: -D over property
files (a later file over an earlier one), property files over the environment. (aeronmd lets files override -D.) An
empty value resets an option to its default. An invalid value is an error; it is never replaced silently. A name that
looks misspelt is reported.

  taran driver                                          configured by the environment (AERON_DIR, AERON_...)
  taran driver -Daeron.dir=/dev/shm/one -Daeron.threading.mode=SHARED
  taran driver -Dtaran.profile=low-latency prod.properties
  taran driver -Daeron.print.configuration=true         print every option and its value at startup

Clients find the driver by its directory: aeron.dir, by default /dev/shm/aeron-<user>. Monitor it with 'taran stat',
show its errors with 'taran errors'.

SIGINT and SIGTERM shut it down in an orderly way; so does a client's request if
aeron.driver.termination.validator=allow.

Exit status: the number of the signal that stopped it (SIGINT 2, SIGTERM 15), 0 after a client's request, 1 if it could
not start, failed, or was used incorrectly.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: Settings,

    /// Print the version in the format of aeronmd
    #[arg(short = 'v')]
    version: bool,
}

/// Configuration arguments of a driver or an archive.
#[derive(Args, Debug)]
pub(crate) struct Settings {
    /// Property files with lines of name=value: a path or file:// URL
    #[arg(value_name = "FILE")]
    files: Vec<String>,

    /// Set an option, by its property or environment variable
    #[arg(short = 'D', value_name = "NAME=VALUE")]
    defines: Vec<String>,
}

/// Runs a driver until it is stopped.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.version {
        // A closed standard output is not an error here.
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

/// Reports names that are probably misspelt. Other unknown names may belong to other components.
pub(crate) fn warn(unknown: &[UnknownOption]) {
    for option in unknown.iter().filter(|option| option.nearest.is_some()) {
        eprintln!("WARNING: {option}");
    }
}

/// Returns the environment variables that are valid UTF-8; no other variable is an option.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
