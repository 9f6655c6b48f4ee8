//! Host names of the simulated network.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use taran_driver::NameResolver;

use crate::network::{HostId, SimNetwork};

/// What names mean: a host each, wherever that is at the time of the question. Clones are the same names.
#[derive(Clone, Debug)]
pub(super) struct Names {
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

    /// Lets a name mean a host, whatever it meant before.
    pub(super) fn set(&self, name: &str, host: HostId) {
        self.hosts().insert(name.to_owned(), host);
    }

    /// Whom a driver asks.
    pub(super) fn resolver(&self) -> SimResolver {
        SimResolver {
            names: self.clone(),
            answers: VecDeque::new(),
        }
    }

    fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let host = self.hosts().get(name).copied();
        let host = host.ok_or_else(|| format!("no host is called {name}"))?;
        Ok(self.network.addresses(host))
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, HostId>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers at once.
#[derive(Debug)]
pub(super) struct SimResolver {
    names: Names,
    answers: VecDeque<(u64, Result<Vec<IpAddr>, String>)>,
}

impl NameResolver for SimResolver {
    fn start(&mut self, ticket: u64, host: &str) {
        let answer = self.names.look_up(host);
        self.answers.push_back((ticket, answer));
    }

    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)> {
        self.answers.pop_front()
    }
}
