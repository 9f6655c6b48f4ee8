// SPDX-License-Identifier: Apache-2.0
//! `taran version`: the versions of this program and of the supported protocols.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use taran_protocol::cnc::CNC_VERSION;

use crate::failure::Failure;
use crate::output;

/// Version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit of the sources, as the build script finds it: `unknown` in builds for development.
pub(crate) const COMMIT: &str = env!("TARAN_COMMIT");
/// Release of Aeron whose protocols are supported.
const AERON: (u32, u32, u32) = (1, 51, 0);

/// Command-line arguments.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Versions {
    taran: &'static str,
    commit: &'static str,
    aeron: String,
    cnc: String,
}

/// Prints one version per line.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (major, minor, patch) = AERON;
    if arguments.json {
        output::json(&Versions {
            taran: VERSION,
            commit: COMMIT,
            aeron: format!("{major}.{minor}.{patch}"),
            cnc: CNC_VERSION.to_string(),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "taran {VERSION} (commit {COMMIT})")?;
    writeln!(
        out,
        "speaks Aeron {major}.{minor}.{patch}; layout of cnc.dat {CNC_VERSION}"
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the line that `aeronmd -v` prints, in its format for programs that parse it
/// (docs/spec/uri-and-configuration.md §5.1).
pub(crate) fn driver_line() -> String {
    let (major, minor, patch) = AERON;
    format!(
        "taran driver <aeron version={major}.{minor}.{patch} taran version={VERSION} commit={COMMIT}> \
         major {major} minor {minor} patch {patch} git {COMMIT}"
    )
}
