// SPDX-License-Identifier: Apache-2.0
//! A defect of the driver, planted into its counters.

use taran_protocol::log::LogBuffers;

use crate::check::Violation;
use crate::{HostIndex, Invariant, World};

/// Sets the limit of publishers of IPC streams to what flow control allows, as a driver would that does not regard what is
/// reserved.
#[derive(Debug)]
pub(super) struct LimitPassesReservation;

impl Invariant for LimitPassesReservation {
    fn name(&self) -> &'static str {
        "planted defect"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        for host in (0..world.host_count()).map(HostIndex::at) {
            let Some(driver) = world.driver_streams(host) else {
                continue;
            };
            for stream in driver.streams() {
                let (Some(limit), Some(log)) = (driver.at(stream.publisher_limit), &stream.log)
                else {
                    continue;
                };
                let consumers = stream.consumers.iter().map(|at| driver.at(Some(*at)));
                let consumed = consumers.flatten().map(|it| it.counter().get()).min();
                let (Some(consumed), None) = (consumed, stream.sender) else {
                    continue;
                };
                let allowed = consumed + log.publication_window;
                let limit = limit.counter();
                // The driver raises limits in steps of an eighth of the window.
                if limit.get() + log.publication_window / 4 < allowed && is_open(&log.buffers) {
                    limit.set(allowed);
                }
            }
        }
        Ok(())
    }
}

fn is_open(log: &LogBuffers) -> bool {
    log.is_connected() && !log.is_revoked()
}
