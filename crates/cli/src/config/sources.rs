// SPDX-License-Identifier: Apache-2.0
//! Sources of the printed values: those of `taran driver`, `taran archive` or a client.

use clap::Args;
use taran_protocol::option::{OptionSet, Source, UnknownOption};

use crate::driver::{Settings, configure, environment};
use crate::failure::Failure;

/// Program whose options are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Driver,
    Archive,
    Client,
}

/// Sources of a program's options.
#[derive(Args, Debug)]
pub(super) struct Sources {
    #[command(flatten)]
    settings: Settings,

    /// Use the options of clients instead of a driver's; they are read from the environment
    #[arg(long, conflicts_with_all = ["files", "defines", "archive"])]
    client: bool,

    /// Use the options of 'taran archive' instead of a driver's
    #[arg(long)]
    archive: bool,
}

impl Sources {
    /// Returns the options, and the names that are no options.
    pub(super) fn read(&self) -> Result<(OptionSet, Vec<UnknownOption>), Failure> {
        let options = match self.program() {
            Program::Driver => OptionSet::driver(),
            Program::Archive => OptionSet::archive(),
            Program::Client => {
                let mut options = OptionSet::client();
                let unknown = options
                    .apply(&Source::Environment, environment())
                    .map_err(|errors| Failure::Other(errors.to_string()))?;
                return Ok((options, unknown));
            }
        };
        configure::apply(options, &self.settings, environment())
            .map_err(|error| Failure::Other(error.to_string()))
    }

    pub(super) fn program(&self) -> Program {
        match (self.archive, self.client) {
            (true, _) => Program::Archive,
            (_, true) => Program::Client,
            _ => Program::Driver,
        }
    }
}
