// SPDX-License-Identifier: Apache-2.0
//! Environment that a host gives to a process.

use std::path::Path;
use std::sync::Arc;

use taran_core::clock::{Now, WallClock};
use taran_core::memory::Storage;
use taran_driver::NameResolver;
use taran_net::Network;

use super::leased_storage::LeasedStorage;
use super::{Lease, ProcessId};
use crate::disk::ProcessDisk;
use crate::world::{HostIndex, HostParts};

/// The environment of one run of a process: clock, shared memory, disk, network, names and randomness of its host.
///
/// Once it is revoked, sockets, files, locks and calls to storage fail. Memory that is mapped remains readable and writable:
/// an object that writes to it when it is dropped must be kept ([`AfterKill::Keep`](super::AfterKill::Keep)).
#[derive(Debug)]
pub struct HostEnv {
    process: ProcessId,
    host: HostIndex,
    parts: HostParts,
    disk: ProcessDisk,
    lease: Lease,
    random: fastrand::Rng,
}

impl HostEnv {
    pub(crate) fn new(
        process: ProcessId,
        host: HostIndex,
        parts: HostParts,
        random: fastrand::Rng,
    ) -> Self {
        Self {
            process,
            host,
            disk: parts.disk.process(),
            parts,
            lease: Lease::new(),
            random,
        }
    }

    /// Returns the process.
    #[must_use]
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// Returns the host.
    #[must_use]
    pub fn host(&self) -> HostIndex {
        self.host
    }

    /// Returns the time as the host sees it.
    #[must_use]
    pub fn now(&self) -> Now {
        self.parts.clock.now()
    }

    /// Returns the wall clock of the host.
    #[must_use]
    pub fn wall_clock(&self) -> Arc<dyn WallClock> {
        Arc::new(self.parts.clock.clone())
    }

    /// Returns the memory storage of the host, which holds the files of shared memory.
    #[must_use]
    pub fn storage(&self) -> Arc<dyn Storage> {
        let storage = self.parts.storage.clone();
        Arc::new(LeasedStorage::new(storage, self.lease.clone()))
    }

    /// Returns the disk of the host, which holds the files that survive a power cut as far as they were synced. Its files
    /// and locks are closed when the process dies; what it wrote stays in the page cache.
    #[must_use]
    pub fn disk(&self) -> ProcessDisk {
        self.disk.clone()
    }

    /// Returns the directory of the driver of the host.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        &self.parts.directory
    }

    /// Returns the network as seen from the host. Its sockets are closed when the process dies.
    #[must_use]
    pub fn network(&self) -> Box<dyn Network> {
        Box::new(self.parts.network.with_lease(self.lease.clone()))
    }

    /// Returns a resolver of host names.
    #[must_use]
    pub fn resolver(&self) -> Box<dyn NameResolver> {
        Box::new(self.parts.names.resolver())
    }

    /// Returns the random number generator of the process.
    pub fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }

    /// Returns the lease of the handles, for handles of other kinds.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Closes all sockets, files and locks, and makes later calls through their handles fail, as at the death of the process.
    pub fn revoke_all(&self) {
        self.lease.revoke();
        self.disk.revoke_all();
        self.parts.network.close_sockets_of(&self.lease);
    }
}
