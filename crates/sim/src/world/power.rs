// SPDX-License-Identifier: Apache-2.0
//! Power of hosts: cuts, boots, and the processes that a boot starts.

use std::sync::Arc;

use taran_core::memory::MemoryStorage;

use super::{HostIndex, World};
use crate::disk::SimDisk;

/// Starts the processes of a host.
pub(crate) type Boot = dyn Fn(&mut World, HostIndex) + Send + Sync;

impl World {
    /// Adds a function that starts processes of a host. It is called for each existing host now, and at each later
    /// [`boot`](Self::boot).
    pub fn on_boot(&mut self, start: impl Fn(&mut World, HostIndex) + Send + Sync + 'static) {
        self.add_boot(Arc::new(start));
    }

    pub(crate) fn add_boot(&mut self, start: Arc<Boot>) {
        for host in 0..self.hosts.len() {
            start(self, HostIndex(host));
        }
        self.boot.push(start);
    }

    /// Cuts the power of a host: all its processes are killed, its shared memory is gone, and its disk loses any part of
    /// what was not synced. Nothing runs on it until it [boots](Self::boot).
    pub fn power_cut(&mut self, host: HostIndex) {
        self.record_op("power cut", host.0);
        let on_host = |(_, slot): &(_, &crate::process::Slot)| slot.env.host() == host;
        let ids: Vec<_> = self
            .processes
            .slots()
            .filter(on_host)
            .map(|(id, _)| id)
            .collect();
        for id in ids {
            self.processes.kill(id);
        }
        let host = &mut self.hosts[host.0];
        host.storage = MemoryStorage::with_accessible_holes();
        host.disk.power_cut();
        host.is_on = false;
    }

    /// Returns the power to a host after a [`power_cut`](Self::power_cut), and calls the functions of
    /// [`on_boot`](Self::on_boot) for it. Its driver is not started. Returns false if it has power.
    pub fn boot(&mut self, host: HostIndex) -> bool {
        if self.is_on(host) {
            return false;
        }
        self.record_op("boot", host.0);
        self.hosts[host.0].is_on = true;
        for start in self.boot.clone() {
            start(self, host);
        }
        true
    }

    /// Returns true if a host has power.
    #[must_use]
    pub fn is_on(&self, host: HostIndex) -> bool {
        self.hosts[host.0].is_on
    }

    /// Returns the disk of a host, for faults.
    #[must_use]
    pub fn disk(&self, host: HostIndex) -> &SimDisk {
        &self.hosts[host.0].disk
    }

    /// Ends the faults of all disks.
    pub fn end_disk_faults(&self) {
        self.hosts.iter().for_each(|host| host.disk.end_faults());
    }
}
