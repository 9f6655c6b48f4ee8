//! Who is attached: one entry per client id, kept alive by a heartbeat counter that the client writes.

use std::collections::BTreeMap;

use taran_core::counters::Counter;

use crate::boundary::PublicationId;

/// What one client holds. Resources themselves live with their owners; here are the names by which to find them.
#[derive(Debug)]
pub(crate) struct Client {
    heartbeat: Counter,
    /// What the heartbeat said when it last changed, and when that was.
    sign: i64,
    since_ns: i64,
    closed: bool,
    /// One per add command: several may name the same shared publication. By its id, and how many have had that before.
    links: BTreeMap<(i64, u32), Publication>,
}

/// Which publication, by the registration id of the command that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Publication {
    Ipc(i64),
    Network(PublicationId),
}

impl Publication {
    /// What its log, its counters and those who read it without the network call it.
    pub(crate) fn registration_id(self) -> i64 {
        match self {
            Self::Ipc(id) | Self::Network(PublicationId(id)) => id,
        }
    }
}

/// A client that has to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) client_id: i64,
    /// It did not say goodbye.
    pub(crate) timed_out: bool,
}

impl Client {
    pub(crate) fn heartbeat(&self) -> &Counter {
        &self.heartbeat
    }

    /// All that it holds, one for each of its add commands.
    pub(crate) fn into_publications(self) -> impl Iterator<Item = Publication> {
        self.links.into_values()
    }

    /// The last link with an id: an id should name one, but clients choose it.
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

    /// Enters a client whose heartbeat counter has just been allocated.
    pub(crate) fn enter(&mut self, client_id: i64, heartbeat: Counter, now_ns: i64) {
        let client = Client {
            sign: heartbeat.get(),
            since_ns: now_ns,
            heartbeat,
            closed: false,
            links: BTreeMap::new(),
        };
        self.entries.insert(client_id, client);
    }

    /// Notes that a client holds a publication under the id of its command.
    pub(crate) fn link(&mut self, client_id: i64, link_id: i64, publication: Publication) {
        if let Some(client) = self.entries.get_mut(&client_id) {
            let last = client.last_link(link_id);
            let count = last.map_or(0, |(_, count)| count + 1);
            client.links.insert((link_id, count), publication);
        }
    }

    /// Forgets that link; the publication it named is returned.
    pub(crate) fn unlink(&mut self, client_id: i64, link_id: i64) -> Option<Publication> {
        let client = self.entries.get_mut(&client_id)?;
        let link = client.last_link(link_id)?;
        client.links.remove(&link)
    }

    /// The client sent a keepalive command. An unknown one is no client of ours yet.
    pub(crate) fn keep_alive(&self, client_id: i64, now_epoch_ms: i64) {
        if let Some(client) = self.entries.get(&client_id) {
            client.heartbeat.set(now_epoch_ms);
        }
    }

    /// The client said goodbye: it goes with the next timer.
    pub(crate) fn close(&mut self, client_id: i64) {
        if let Some(client) = self.entries.get_mut(&client_id) {
            client.closed = true;
            client.heartbeat.set(0);
        }
    }

    /// Clients that said goodbye or were silent for longer than `timeout_ns`. A heartbeat is a time of day, but it is not
    /// compared with ours: a clock that is set must kill nobody, nor keep a dead client alive.
    pub(crate) fn departures(&mut self, now_ns: i64, timeout_ns: i64) -> Vec<Departure> {
        self.entries
            .iter_mut()
            .filter_map(|(&client_id, client)| {
                // The client writes this value: it may be anything.
                let sign = client.heartbeat.get();
                if sign != client.sign {
                    (client.sign, client.since_ns) = (sign, now_ns);
                }
                let timed_out = now_ns.saturating_sub(client.since_ns) > timeout_ns;
                (client.closed || timed_out).then_some(Departure {
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
