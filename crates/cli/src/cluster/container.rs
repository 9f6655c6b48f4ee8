// SPDX-License-Identifier: Apache-2.0
//! Life cycle of the process of a container.

use std::io::{self, Write as _};

use taran_cluster::container::{ContainerConfig, ServiceContainer};
use taran_protocol::option::OptionSet;

use super::Arguments;
use super::echo::Echo;
use super::run::{CHECK_INTERVAL, RunError, warn_of_foreign};
use crate::driver::stop::Signals;
use crate::driver::{self, configure};

/// Runs a container until it is stopped, or the cluster is terminated.
pub(super) fn run(arguments: &Arguments) -> Result<(), RunError> {
    let mut signals = Signals::register()?;
    let settings = &arguments.settings;
    let (options, unknown) =
        configure::apply(OptionSet::container(), settings, driver::environment())?;
    driver::warn(&unknown);
    warn_of_foreign(settings, &options)?;
    let config = ContainerConfig::new(&options)?;
    let service = Echo::of_kind(arguments.service).ok_or(RunError::NoService)?;
    let line = format!("container {} is started", config.service_name);
    let mut waker = signals.waker()?;
    let container = ServiceContainer::builder(config, service)
        .on_end(move || waker.wake())
        .launch()?;
    // Standard output may be closed.
    let _ = writeln!(io::stdout(), "{line}");
    while signals.received().is_none() && !container.has_ended() {
        signals.wait(CHECK_INTERVAL)?;
    }
    let failure = container.failure();
    container.close();
    failure.map_or(Ok(()), |text| Err(RunError::Failed(text)))
}
