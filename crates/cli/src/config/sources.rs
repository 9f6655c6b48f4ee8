//! Sources of the printed values: those of `taran driver` or those of a client.

use clap::Args;
use taran_protocol::option::{OptionSet, Source, UnknownOption};

use crate::driver::{Settings, configure, environment};
use crate::failure::Failure;

/// Sources of a driver's or a client's options.
#[derive(Args, Debug)]
pub(super) struct Sources {
    #[command(flatten)]
    settings: Settings,

    /// Use the options of clients instead of a driver's; they are read from the environment
    #[arg(long, conflicts_with_all = ["files", "defines"])]
    client: bool,
}

impl Sources {
    /// Returns the options, and the names that are no options.
    pub(super) fn read(&self) -> Result<(OptionSet, Vec<UnknownOption>), Failure> {
        if self.client {
            let mut options = OptionSet::client();
            let unknown = options
                .apply(&Source::Environment, environment())
                .map_err(|errors| Failure::Other(errors.to_string()))?;
            return Ok((options, unknown));
        }
        configure::options(&self.settings, environment())
            .map_err(|error| Failure::Other(error.to_string()))
    }

    pub(super) fn is_client(&self) -> bool {
        self.client
    }
}
