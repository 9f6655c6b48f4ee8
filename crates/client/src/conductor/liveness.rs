//! Signs of life, the driver's and ours (`docs/spec/shared-memory.md §10.1`).

use std::sync::Arc;
use std::time::Duration;

use taran_core::clock::Now;
use taran_protocol::counter::{heartbeat_label_suffix, type_id};

use super::{Conductor, nanos};
use crate::error::Lost;
use crate::link::Link;

/// Heartbeat of a driver that has shut down in an orderly way.
const SHUT_DOWN: i64 = -1;

impl Conductor {
    /// The driver gives up a client that is silent for too long; one that has slept through that must not go on.
    pub(super) fn check_service_interval(
        &mut self,
        link: &Arc<Link>,
        now: Now,
    ) -> Result<(), Lost> {
        let last = self.last_turn_ns.replace(now.nanos).unwrap_or(now.nanos);
        let interval = now.nanos.saturating_sub(last);
        if interval > nanos(link.settings.inter_service) {
            let interval = Duration::from_nanos(interval.unsigned_abs());
            return Err(Lost::ServiceInterval {
                interval,
                limit: link.settings.inter_service,
            });
        }
        Ok(())
    }

    pub(super) fn check_liveness(&mut self, link: &Arc<Link>, now: Now) -> Result<(), Lost> {
        self.check_driver(link, now)?;
        self.show_heartbeat(link, now)?;
        super::image::report_damage(link);
        link.lingering.release(now.nanos);
        Ok(())
    }

    /// The driver lives as long as its heartbeat changes. Its value is a time of day, but is not compared with ours: a
    /// clock that is set must not kill anybody.
    fn check_driver(&mut self, link: &Arc<Link>, now: Now) -> Result<(), Lost> {
        let heartbeat = link.driver_heartbeat_ms();
        if heartbeat == SHUT_DOWN {
            return Err(Lost::DriverShutdown);
        }
        let (last, since_ns) = *self.driver_heartbeat.get_or_insert((heartbeat, now.nanos));
        if heartbeat != last {
            self.driver_heartbeat = Some((heartbeat, now.nanos));
            return Ok(());
        }
        let timeout = link.settings.driver_timeout;
        let age = Duration::from_nanos(now.nanos.saturating_sub(since_ns).max(0).unsigned_abs());
        if age > timeout {
            return Err(Lost::DriverTimeout { age, timeout });
        }
        Ok(())
    }

    fn show_heartbeat(&mut self, link: &Arc<Link>, now: Now) -> Result<(), Lost> {
        let counters = link.counters();
        if let Some(heartbeat) = &self.heartbeat {
            let id = heartbeat.id();
            let ours = counters.type_id(id) == Some(type_id::CLIENT_HEARTBEAT)
                && counters.registration_id(id) == Some(link.client_id);
            if !ours {
                return Err(Lost::ClientTimeout {
                    liveness: link.settings.client_liveness,
                });
            }
            heartbeat.set(now.epoch_millis);
        } else if let Some(id) =
            counters.find_by_type_and_registration(type_id::CLIENT_HEARTBEAT, link.client_id)
        {
            // The driver makes it with the first command that it gets from us.
            self.heartbeat = counters
                .counter(id)
                .inspect(|heartbeat| heartbeat.set(now.epoch_millis));
            let name = &link.settings.client_name;
            counters.append_label(
                id,
                &heartbeat_label_suffix(name, env!("CARGO_PKG_VERSION"), "taran"),
            );
        }
        Ok(())
    }
}
