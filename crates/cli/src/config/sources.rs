// SPDX-License-Identifier: Apache-2.0
//! Sources of the printed values: those of `taran driver`, `taran archive`, `taran cluster` or a client.

use clap::Args;
use taran_protocol::option::{OptionSet, Source, UnknownOption};

use crate::driver::{Settings, configure, environment};
use crate::failure::Failure;

/// Program whose options are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Driver,
    Archive,
    Cluster,
    Container,
    Client,
}

/// Sources of a program's options.
#[derive(Args, Debug)]
pub(super) struct Sources {
    #[command(flatten)]
    settings: Settings,

    /// Use the options of clients instead of a driver's; they are read from the environment
    #[arg(long, conflicts_with_all = ["files", "defines", "archive", "cluster", "container"])]
    client: bool,

    /// Use the options of 'taran archive' instead of a driver's
    #[arg(long, conflicts_with_all = ["cluster", "container"])]
    archive: bool,

    /// Use the options of 'taran cluster' instead of a driver's
    #[arg(long, conflicts_with = "container")]
    cluster: bool,

    /// Use the options of 'taran cluster --container' instead of a driver's
    #[arg(long)]
    container: bool,
}

impl Sources {
    /// Returns the options, and the names that are no options.
    pub(super) fn read(&self) -> Result<(OptionSet, Vec<UnknownOption>), Failure> {
        let options = match self.program() {
            Program::Driver => OptionSet::driver(),
            Program::Archive => OptionSet::archive(),
            Program::Cluster => OptionSet::cluster(),
            Program::Container => OptionSet::container(),
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
        let chosen = [
            (self.archive, Program::Archive),
            (self.cluster, Program::Cluster),
            (self.container, Program::Container),
            (self.client, Program::Client),
        ];
        let chosen = chosen.into_iter().find(|(is_chosen, _)| *is_chosen);
        chosen.map_or(Program::Driver, |(_, program)| program)
    }
}
