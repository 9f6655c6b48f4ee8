// SPDX-License-Identifier: Apache-2.0
//! Connected clients: one entry per client id, kept alive by a heartbeat counter that the client writes.

use std::collections::BTreeMap;

use taran_core::counters::Counter;

use crate::boundary::PublicationId;

/// The publications of one client. The publications themselves are kept elsewhere and referenced by id.
#[doc(alias = "AeronClient")]
#[derive(Debug)]
pub(crate) struct Client {
    heartbeat: Counter,
    /// Value of the heartbeat counter at its last change, and the time of that change.
    last_heartbeat: i64,
    changed_ns: i64,
    closed: bool,
    /// One per add command, since several may share a publication. The key is the id of the command and its number of
    /// earlier uses.
    links: BTreeMap<(i64, u32), PublicationRef>,
}

/// Reference to a publication by its registration id.
#[doc(alias = "PublicationLink")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublicationRef {
    Ipc(i64),
    Network(PublicationId),
}

impl PublicationRef {
    /// Returns the registration id, which names the log, the counters and the image of local subscribers.
    pub(crate) fn registration_id(self) -> i64 {
        match self {
            Self::Ipc(id) | Self::Network(PublicationId(id)) => id,
        }
    }
}

/// A client that is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientExit {
    pub(crate) client_id: i64,
    /// False if the client sent CLIENT_CLOSE.
    pub(crate) timed_out: bool,
}

impl Client {
    pub(crate) fn heartbeat(&self) -> &Counter {
        &self.heartbeat
    }

    /// Returns its publications, one for each add command.
    pub(crate) fn into_publications(self) -> impl Iterator<Item = PublicationRef> {
        self.links.into_values()
    }

    /// Returns the newest link with an id. Ids should be unique, but clients choose them.
    fn last_link(&self, id: i64) -> Option<(i64, u32)> {
        let mut links = self.links.range((id, 0)..=(id, u32::MAX));
        links.next_back().map(|(&key, _)| key)
    }
}

/// All clients of the driver.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    entries: BTreeMap<i64, Client>,
}

impl Clients {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn contains(&self, client_id: i64) -> bool {
        self.entries.contains_key(&client_id)
    }

    /// Adds a client whose heartbeat counter has just been allocated.
    pub(crate) fn insert(&mut self, client_id: i64, heartbeat: Counter, now_ns: i64) {
        let client = Client {
            last_heartbeat: heartbeat.get(),
            changed_ns: now_ns,
            heartbeat,
            closed: false,
            links: BTreeMap::new(),
        };
        self.entries.insert(client_id, client);
    }

    /// Links a client to a publication under the id of its command.
    pub(crate) fn link(&mut self, client_id: i64, link_id: i64, publication: PublicationRef) {
        if let Some(client) = self.entries.get_mut(&client_id) {
            let last = client.last_link(link_id);
            let count = last.map_or(0, |(_, count)| count + 1);
            client.links.insert((link_id, count), publication);
        }
    }

    /// Removes the newest link with this id and returns the publication.
    pub(crate) fn unlink(&mut self, client_id: i64, link_id: i64) -> Option<PublicationRef> {
        let client = self.entries.get_mut(&client_id)?;
        let link = client.last_link(link_id)?;
        client.links.remove(&link)
    }

    /// Handles a keepalive command. Unknown clients are ignored.
    pub(crate) fn keep_alive(&self, client_id: i64, now_epoch_ms: i64) {
        if let Some(client) = self.entries.get(&client_id) {
            client.heartbeat.set(now_epoch_ms);
        }
    }

    /// Handles CLIENT_CLOSE: the next timer removes the client.
    pub(crate) fn close(&mut self, client_id: i64) {
        if let Some(client) = self.entries.get_mut(&client_id) {
            client.closed = true;
            client.heartbeat.set(0);
        }
    }

    /// Returns the clients that closed, or whose heartbeat has not changed for more than `timeout_ns`. The heartbeat is
    /// a wall-clock time, but only its changes count: setting a clock must neither time out a client nor keep a dead
    /// one alive.
    pub(crate) fn expired(&mut self, now_ns: i64, timeout_ns: i64) -> Vec<ClientExit> {
        self.entries
            .iter_mut()
            .filter_map(|(&client_id, client)| {
                // The client writes this value: it may be anything.
                let last_heartbeat = client.heartbeat.get();
                if last_heartbeat != client.last_heartbeat {
                    (client.last_heartbeat, client.changed_ns) = (last_heartbeat, now_ns);
                }
                let timed_out = now_ns.saturating_sub(client.changed_ns) > timeout_ns;
                (client.closed || timed_out).then_some(ClientExit {
                    client_id,
                    timed_out: !client.closed,
                })
            })
            .collect()
    }

    pub(crate) fn remove(&mut self, client_id: i64) -> Option<Client> {
        self.entries.remove(&client_id)
    }
}
