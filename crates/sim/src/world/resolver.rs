// SPDX-License-Identifier: Apache-2.0
//! Host names of the simulated network.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_driver::NameResolver;

use crate::network::{HostId, SimNetwork};

/// Host names. Each resolves to the current address of a host. Clones share the names.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    network: SimNetwork,
    hosts: Arc<Mutex<BTreeMap<String, HostId>>>,
}

impl Names {
    pub(super) fn new(network: SimNetwork) -> Self {
        Self {
            network,
            hosts: Arc::default(),
        }
    }

    /// Lets a name resolve to a host from now on.
    pub(super) fn set(&self, name: &str, host: HostId) {
        self.hosts().insert(name.to_owned(), host);
    }

    /// Returns a resolver for a driver.
    pub(crate) fn resolver(&self) -> SimResolver {
        SimResolver {
            names: self.clone(),
            results: VecDeque::new(),
        }
    }

    fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let host = self.hosts().get(name).copied();
        let host = host.ok_or_else(|| format!("unknown host {name}"))?;
        Ok(self.network.addresses(host))
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, HostId>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolver that answers immediately.
#[derive(Debug)]
pub(crate) struct SimResolver {
    names: Names,
    results: VecDeque<(u64, Result<Vec<IpAddr>, String>)>,
}

impl NameResolver for SimResolver {
    fn start(&mut self, ticket: u64, host: &str) {
        let result = self.names.resolve(host);
        self.results.push_back((ticket, result));
    }

    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)> {
        self.results.pop_front()
    }
}
