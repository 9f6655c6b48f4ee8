// SPDX-License-Identifier: Apache-2.0
//! Heartbeats of the driver and of this client (`docs/spec/shared-memory.md §10.1`).

use std::sync::Arc;
use std::time::Duration;

use taran_core::clock::Now;
use taran_protocol::counter::{heartbeat_label_suffix, type_id};

use super::{Conductor, nanos};
use crate::client_core::ClientCore;
use crate::connect::SHUT_DOWN;
use crate::error::Lost;

/// Checks the time since the last duty cycle: after a long pause the driver may have timed this client out.
pub(super) fn check_service_interval(client: &ClientCore, interval_ns: i64) -> Result<(), Lost> {
    if interval_ns > nanos(client.settings.inter_service) {
        return Err(Lost::ServiceInterval {
            interval: Duration::from_nanos(interval_ns.unsigned_abs()),
            limit: client.settings.inter_service,
        });
    }
    Ok(())
}

impl Conductor {
    /// Runs the periodic duties of a keepalive interval.
    pub(super) fn check_liveness(
        &mut self,
        client: &Arc<ClientCore>,
        now: Now,
    ) -> Result<(), Lost> {
        self.update_heartbeat(client, now)?;
        super::image::report_damage(client);
        client.resource_linger.release_expired(now.nanos);
        Ok(())
    }

    /// Checks that the driver holds its lock, if it has one, and that its heartbeat changes. The heartbeat is a wall-clock
    /// time but is not compared with this process's clock: setting a clock must not end a client.
    pub(super) fn check_driver(&mut self, client: &Arc<ClientCore>, now: Now) -> Result<(), Lost> {
        let has_ended = self
            .driver_lock
            .as_ref()
            .is_some_and(|lock| !lock.is_held());
        // Read after the lock: a driver sets its last heartbeat before it releases the lock.
        let heartbeat = client.driver_heartbeat_ms();
        if heartbeat == SHUT_DOWN {
            return Err(Lost::DriverShutdown);
        }
        if has_ended {
            return Err(Lost::DriverProcessEnded);
        }
        let (last, since_ns) = *self.driver_heartbeat.get_or_insert((heartbeat, now.nanos));
        if heartbeat != last {
            self.driver_heartbeat = Some((heartbeat, now.nanos));
            return Ok(());
        }
        let timeout = client.settings.driver_timeout;
        let age = Duration::from_nanos(now.nanos.saturating_sub(since_ns).max(0).unsigned_abs());
        if age > timeout {
            return Err(Lost::DriverTimeout { age, timeout });
        }
        Ok(())
    }

    /// Updates this client's heartbeat counter, once the driver has created it.
    fn update_heartbeat(&mut self, client: &Arc<ClientCore>, now: Now) -> Result<(), Lost> {
        let counters = client.counters();
        if let Some(heartbeat) = &self.heartbeat {
            let id = heartbeat.id();
            let is_own = counters.type_id(id) == Some(type_id::CLIENT_HEARTBEAT)
                && counters.registration_id(id) == Some(client.client_id);
            if !is_own {
                return Err(Lost::ClientTimeout {
                    liveness: client.settings.client_liveness,
                });
            }
            heartbeat.set(now.epoch_millis);
        } else if let Some(id) =
            counters.find_by_type_and_registration(type_id::CLIENT_HEARTBEAT, client.client_id)
        {
            // The driver creates the counter when it reads the first command of this client.
            self.heartbeat = counters
                .counter(id)
                .inspect(|heartbeat| heartbeat.set(now.epoch_millis));
            let name = &client.settings.client_name;
            counters.append_label(
                id,
                &heartbeat_label_suffix(name, env!("CARGO_PKG_VERSION"), "taran"),
            );
        }
        Ok(())
    }
}
