// SPDX-License-Identifier: Apache-2.0
//! Counters of name resolution (docs/spec/shared-memory.md §5.7).

use std::net::SocketAddr;

use taran_core::counters::Counter;
use taran_protocol::counter::type_id;

use super::super::failure::Failure;
use super::{CounterInit, Counters};

impl Counters {
    /// Allocates the counter for the number of neighbors.
    pub(crate) fn resolver_neighbors(&mut self, bound: SocketAddr) -> Result<Counter, Failure> {
        let label = format!("Resolver neighbors: bound {bound}");
        self.allocate_resolver_counter(type_id::RESOLVER_NEIGHBORS, &[], &label)
    }

    /// Allocates the counter for the number of cached names.
    pub(crate) fn resolver_cache_entries(&mut self, name: &str) -> Result<Counter, Failure> {
        let label = format!("Resolver cache entries: name={name}");
        self.allocate_resolver_counter(type_id::RESOLVER_CACHE_ENTRIES, &[], &label)
    }

    /// Allocates the counter that is 1 while a bootstrap driver is a neighbor. Its address is still unknown.
    pub(crate) fn bootstrap_neighbor(
        &mut self,
        index: usize,
        name: &str,
    ) -> Result<Counter, Failure> {
        // The options allow at most 20.
        let key = (index as i32).to_le_bytes();
        let label = bootstrap_label(name, None);
        self.allocate_resolver_counter(type_id::RESOLVER_BOOTSTRAP_NEIGHBOR, &key, &label)
    }

    /// Updates the address in the label of a bootstrap counter.
    pub(crate) fn set_bootstrap_address(
        &mut self,
        counter_id: i32,
        name: &str,
        resolved: Option<SocketAddr>,
    ) {
        self.table
            .set_label(counter_id, &bootstrap_label(name, resolved));
    }

    /// Allocates the counter that selects the target of a name: -1 none, 0 the first host, 1 the other.
    pub(crate) fn name_entry(
        &mut self,
        name: &str,
        first: &str,
        other: &str,
    ) -> Result<Counter, Failure> {
        let mut key = Vec::with_capacity(4 + name.len());
        key.extend_from_slice(&(name.len() as u32).to_le_bytes());
        key.extend_from_slice(name.as_bytes());
        let label = format!(
            "NameEntry{{name='{name}', initialResolutionHost='{first}', reResolutionHost='{other}'}}"
        );
        self.allocate_resolver_counter(type_id::NAME_TABLE_ENTRY, &key, &label)
    }

    fn allocate_resolver_counter(
        &mut self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<Counter, Failure> {
        self.allocate(type_id, key, label, 0, CounterInit::default())
    }
}

#[cfg(test)]
impl Counters {
    pub(crate) fn label(&self, id: i32) -> String {
        let label = self.table.reader().label(id).unwrap();
        label.as_str().to_owned()
    }

    pub(crate) fn counter(&self, id: i32) -> Counter {
        self.table.counter(id).unwrap()
    }

    pub(crate) fn value(&self, id: i32) -> i64 {
        self.counter(id).get()
    }

    pub(crate) fn ids_of_type(&self, type_id: i32) -> Vec<i32> {
        let mut ids = Vec::new();
        self.table.reader().for_each(|meta| {
            if meta.type_id == type_id {
                ids.push(meta.id);
            }
        });
        ids
    }
}

fn bootstrap_label(name: &str, resolved: Option<SocketAddr>) -> String {
    match resolved {
        Some(address) => format!("Bootstrap neighbor: name={name} resolved={address}"),
        None => format!("Bootstrap neighbor: name={name} resolved="),
    }
}
