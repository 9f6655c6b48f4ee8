// SPDX-License-Identifier: Apache-2.0
//! Counters file: allocation for the driver's streams and for clients, and the counters that clients own.

mod endpoint;
mod names;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taran_core::clock::Now;
use taran_core::counters::{Counter, CounterSpec, CounterTable};
use taran_protocol::counter::{HeartbeatKey, heartbeat_label, type_id};
use taran_protocol::error_code::ErrorCode;

pub(crate) use endpoint::{Direction, EndpointCounters, EndpointIdentity};
pub(crate) use stream::StreamIdentity;

use super::failure::Failure;
use super::remote_quota::reserved_counters;

/// Owner id of counters that belong to no client.
const NO_OWNER: i64 = -1;

/// Minimum delay before the id of a tracked position is reused, whatever `aeron.counters.free.to.reuse.timeout` is.
/// Within this time the agent has taken the command that stops tracking.
const TRACKED_REUSE_DELAY: Duration = Duration::from_secs(1);

/// Initial fields of a counter, besides type, key and label.
#[derive(Debug, Clone, Copy, Default)]
struct CounterInit {
    owner_id: i64,
    reference_id: i64,
    value: i64,
}

#[derive(Debug, Clone, Copy)]
struct ClientCounter {
    counter_id: i32,
    client_id: i64,
}

/// Allocates and frees counters, and records which of them clients added.
#[derive(Debug)]
pub(crate) struct Counters {
    table: CounterTable,
    client_counters: BTreeMap<i64, ClientCounter>,
    index: CounterIndex,
    now: Now,
}

/// Index of the allocated counters in private memory: the file is large, and clients can write to it.
#[derive(Debug, Default)]
struct CounterIndex {
    /// Type id, registration id, counter id.
    names: BTreeSet<(i32, i64, i32)>,
    /// Type id, registration id and owner id of each counter.
    counters: BTreeMap<i32, (i32, i64, i64)>,
}

impl CounterIndex {
    fn add(&mut self, id: i32, type_id: i32, registration_id: i64, owner_id: i64) {
        self.names.insert((type_id, registration_id, id));
        self.counters
            .insert(id, (type_id, registration_id, owner_id));
    }

    fn remove(&mut self, id: i32) {
        if let Some((type_id, registration_id, _)) = self.counters.remove(&id) {
            self.names.remove(&(type_id, registration_id, id));
        }
    }

    /// Returns the first counter with this type and registration id, and its owner.
    fn find(&self, type_id: i32, registration_id: i64) -> Option<(i32, i64)> {
        let names = (type_id, registration_id, i32::MIN)..=(type_id, registration_id, i32::MAX);
        let &(_, _, id) = self.names.range(names).next()?;
        let &(_, _, owner_id) = self.counters.get(&id)?;
        Some((id, owner_id))
    }
}

impl Counters {
    pub(crate) fn new(table: CounterTable, now: Now) -> Self {
        let mut index = CounterIndex::default();
        table.reader().for_each(|meta| {
            index.add(meta.id, meta.type_id, meta.registration_id, meta.owner_id);
        });
        Self {
            table,
            client_counters: BTreeMap::new(),
            index,
            now,
        }
    }

    /// Sets the time, which delays the reuse of freed ids.
    pub(crate) fn set_now(&mut self, now: Now) {
        self.now = now;
    }

    /// Allocates the heartbeat counter of a client, set to the current time.
    pub(crate) fn heartbeat(&mut self, client_id: i64) -> Result<Counter, Failure> {
        let key = HeartbeatKey { client_id }.encode();
        let init = CounterInit {
            owner_id: client_id,
            value: self.now.epoch_millis,
            ..CounterInit::default()
        };
        self.allocate(
            type_id::CLIENT_HEARTBEAT,
            &key,
            &heartbeat_label(client_id),
            client_id,
            init,
        )
    }

    /// Allocates a counter that a client adds under `registration_id`.
    pub(crate) fn add_client_counter(
        &mut self,
        client_id: i64,
        registration_id: i64,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<i32, Failure> {
        if self.client_counters.contains_key(&registration_id) {
            return Err(Failure::generic(format!(
                "registration id {registration_id} is in use by another counter"
            )));
        }
        let init = CounterInit {
            owner_id: client_id,
            ..CounterInit::default()
        };
        let counter_id = self
            .allocate(type_id, key, label, registration_id, init)?
            .id();
        self.client_counters.insert(
            registration_id,
            ClientCounter {
                counter_id,
                client_id,
            },
        );
        Ok(counter_id)
    }

    /// Allocates a counter of transport security.
    #[cfg(feature = "secure")]
    pub(crate) fn secure(
        &mut self,
        counter: taran_protocol::counter::SecureCounter,
    ) -> Result<Counter, Failure> {
        let type_id = counter.type_id();
        let (key, label) = (type_id.to_le_bytes(), counter.label());
        self.allocate(type_id, &key, label, 0, CounterInit::default())
    }

    /// Allocates the counter of the links of a channel with transport security.
    #[cfg(feature = "secure")]
    pub(crate) fn secure_channel(
        &mut self,
        registration_id: i64,
        label: &str,
    ) -> Result<Counter, Failure> {
        let type_id = taran_protocol::counter::SECURE_CHANNEL_TYPE_ID;
        let key = registration_id.to_le_bytes();
        let init = CounterInit::default();
        self.allocate(type_id, &key, label, registration_id, init)
    }

    /// Replaces the label of a counter.
    #[cfg(feature = "secure")]
    pub(crate) fn set_label(&mut self, counter_id: i32, label: &str) {
        self.table.set_label(counter_id, label);
    }

    /// Returns the static counter with this type and registration id; allocates it if it does not exist.
    pub(crate) fn static_counter(
        &mut self,
        registration_id: i64,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<i32, Failure> {
        if let Some((found, owner_id)) = self.index.find(type_id, registration_id) {
            return match owner_id {
                NO_OWNER => Ok(found),
                owner_id => Err(Failure::generic(format!(
                    "cannot add static counter, because a non-static counter exists (counterId={found}) for \
                     typeId={type_id} and registrationId={registration_id}: it belongs to client {owner_id}; \
                     choose another registration id"
                ))),
            };
        }
        let init = CounterInit {
            owner_id: NO_OWNER,
            ..CounterInit::default()
        };
        Ok(self
            .allocate(type_id, key, label, registration_id, init)?
            .id())
    }

    /// Removes a counter from the counters of its client. The caller frees it.
    pub(crate) fn remove_client_counter(
        &mut self,
        client_id: i64,
        registration_id: i64,
    ) -> Result<i32, Failure> {
        match self.client_counters.get(&registration_id) {
            Some(counter) if counter.client_id == client_id => {
                let counter_id = counter.counter_id;
                self.client_counters.remove(&registration_id);
                Ok(counter_id)
            }
            _ => Err(Failure::new(
                ErrorCode::UnknownCounter,
                format!(
                    "unknown counter client_id={client_id} registration_id={registration_id}: it was \
                     removed or never existed"
                ),
            )),
        }
    }

    /// Removes all counters of a client; returns registration id and counter id of each. The caller frees them.
    pub(crate) fn take_client_counters(&mut self, client_id: i64) -> Vec<(i64, i32)> {
        let removed: Vec<(i64, i32)> = self
            .client_counters
            .iter()
            .filter(|(_, counter)| counter.client_id == client_id)
            .map(|(&registration_id, counter)| (registration_id, counter.counter_id))
            .collect();
        for (registration_id, _) in &removed {
            self.client_counters.remove(registration_id);
        }
        removed
    }

    /// Checks that a peer may cause the allocation of `count` counters, some being reserved for clients.
    pub(crate) fn check_remote_quota(&self, count: usize) -> Result<(), Failure> {
        let (capacity, in_use) = (self.table.capacity(), self.index.counters.len());
        let reserved = reserved_counters(capacity);
        if in_use + count + reserved <= capacity {
            return Ok(());
        }
        Err(Failure::generic(format!(
            "no counters for an image: {reserved} of {capacity} counters are reserved for clients: \
             raise aeron.counters.buffer.length"
        )))
    }

    pub(crate) fn free(&mut self, counter_id: i32) {
        self.index.remove(counter_id);
        self.table.free(counter_id, self.now.epoch_millis);
    }

    /// Frees a position counter that an agent tracks until it takes the command to stop. Reusing the id earlier would
    /// make the agent read another counter as that position.
    pub(crate) fn free_tracked(&mut self, counter_id: i32) {
        self.index.remove(counter_id);
        self.table
            .free_for(counter_id, self.now.epoch_millis, TRACKED_REUSE_DELAY);
    }

    pub(crate) fn free_all<'a>(&mut self, counters: impl IntoIterator<Item = &'a Counter>) {
        for counter in counters {
            self.free(counter.id());
        }
    }

    fn allocate(
        &mut self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
        init: CounterInit,
    ) -> Result<Counter, Failure> {
        let spec = CounterSpec {
            type_id,
            key,
            label,
            registration_id,
            owner_id: init.owner_id,
            reference_id: init.reference_id,
            value: init.value,
        };
        let counter = self
            .table
            .allocate_with(&spec, self.now.epoch_millis)
            .map_err(|full| Failure::generic(full.to_string()))?;
        self.index
            .add(counter.id(), type_id, registration_id, init.owner_id);
        Ok(counter)
    }
}
