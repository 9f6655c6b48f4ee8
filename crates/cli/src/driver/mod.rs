// SPDX-License-Identifier: Apache-2.0
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
empty value resets an option to its default. An invalid value is an error; it is never replaced silently. An unknown
name is reported if -D gives it or if it looks misspelt.

  taran driver                                          configured by the environment (AERON_DIR, AERON_...)
  taran driver -Daeron.dir=/dev/shm/one -Daeron.threading.mode=SHARED
  taran driver -Dtaran.profile=low-latency prod.properties
  taran driver -Daeron.print.configuration=true         print every option and its value at startup

Clients find the driver by its directory: aeron.dir, by default /dev/shm/aeron-<user>. Monitor it with 'taran stat',
show its errors with 'taran errors'. When it has started it prints one line: version, process id, directory, threading
mode, profile and security. Invoked as aeronmd it prints none.

SIGINT and SIGTERM shut it down in an orderly way; so does a client's request if
aeron.driver.termination.validator=allow.

Exit status: the number of the signal that stopped it (SIGINT 2, SIGTERM 15), 0 after a client's request, 1 if it could
not start or failed, 2 incorrect usage (1 if invoked as aeronmd).")]
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

    /// Directory of the driver, like -Daeron.dir=DIR
    #[arg(short = 'd', long, value_name = "DIR")]
    aeron_dir: Option<String>,
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
    drive(&options)
}

fn drive(options: &OptionSet) -> ExitCode {
    match run::run(options) {
        Ok(stop) => stop.exit_code(),
        Err(error) => fail(error.stage(), &error),
    }
}

fn fail(stage: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("ERROR: {stage}: {error}");
    ExitCode::FAILURE
}

/// Reports names that are probably mistakes. Other unknown names may belong to other components.
pub(crate) fn warn(unknown: &[UnknownOption]) {
    for option in unknown.iter().filter(|option| option.is_mistake()) {
        let hint = match option.nearest {
            Some(_) => "",
            None => "; 'taran config print' lists all options",
        };
        eprintln!("WARNING: {option}{hint}");
    }
}

/// Returns the environment variables that are valid UTF-8; no other variable is an option.
pub(crate) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
