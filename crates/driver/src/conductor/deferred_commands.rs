// SPDX-License-Identifier: Apache-2.0
//! Deferred commands: those that wait for host lookups or for a log file.
//!
//! A handler that lacks a prerequisite returns `Pending(prerequisite)` without side effects; the command is stored
//! here, and later commands of the same client queue behind it. `poll`, called once per duty cycle, returns the
//! commands of a client when the first of them has all its prerequisites. That command then runs again from its start.
//! Other clients proceed, and the commands of one client stay in order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use super::failure::Failure;
use super::log_files::LogFile;
use super::log_preallocator::LogPreallocator;
use super::names::{HostLookups, LookupResult, Requester, Resolution};

/// An encoded command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawCommand {
    pub(crate) type_id: i32,
    pub(crate) payload: Vec<u8>,
    /// Ticket of its preallocated log file.
    pub(crate) preallocated: Option<u64>,
}

impl RawCommand {
    /// Returns the memory it occupies, in bytes.
    fn cost(&self) -> usize {
        cost(self.payload.len())
    }
}

/// Commands of one client, in order.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    commands: VecDeque<RawCommand>,
    /// Sum of their memory, in bytes.
    bytes: usize,
}

impl CommandQueue {
    pub(crate) fn of(command: RawCommand) -> Self {
        let mut queue = Self::default();
        queue.put_back(command);
        queue
    }

    pub(crate) fn next(&mut self) -> Option<RawCommand> {
        let command = self.commands.pop_front()?;
        self.bytes -= command.cost();
        Some(command)
    }

    /// Puts a command back to the front.
    pub(crate) fn put_back(&mut self, command: RawCommand) {
        self.bytes += command.cost();
        self.commands.push_front(command);
    }

    fn push(&mut self, command: RawCommand) {
        self.bytes += command.cost();
        self.commands.push_back(command);
    }
}

fn cost(payload_length: usize) -> usize {
    size_of::<RawCommand>() + payload_length
}

/// Memory quota for deferred commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryQuota {
    /// Commands that acquire resources: if rejected, the client can retry.
    Ordinary,
    /// Commands that release resources: if rejected, the resource would remain until its client ends, so they may use a
    /// reserve beyond the ordinary quota.
    Reserve,
}

/// Prerequisites that have been resolved for a command.
#[derive(Debug, Default)]
pub(crate) struct ResolvedPrerequisites {
    hosts: BTreeMap<String, Resolution>,
    /// The requested log file; taken by the handler that uses it.
    pub(crate) log: Option<Result<LogFile, Failure>>,
}

impl ResolvedPrerequisites {
    /// Returns the result of the lookup of `host`, if it was looked up.
    pub(crate) fn host(&self, host: &str) -> Option<&Resolution> {
        self.hosts.get(host)
    }
}

/// A prerequisite that a command waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prerequisite {
    /// Lookups of these hosts.
    Hosts(Vec<String>),
    /// The log file requested under this ticket.
    LogFile(u64),
}

/// Maximum bytes of deferred commands per client: two full rings of the default length, so that a client that adds all
/// its resources at start is never rejected. The reserve is equally large.
const BYTES_PER_CLIENT: usize = 2 * 1024 * 1024;
/// Maximum bytes of deferred commands of all clients, without the reserve.
const BYTES: usize = 16 * BYTES_PER_CLIENT;
/// Maximum number of clients with deferred commands; others are rejected.
const CLIENTS: usize = 1024;

#[derive(Debug)]
struct Deferred {
    commands: CommandQueue,
    prerequisites: ResolvedPrerequisites,
    /// Tickets of lookups without a result yet.
    hosts: Vec<u64>,
    log: Option<u64>,
}

impl Deferred {
    fn is_ready(&self) -> bool {
        self.hosts.is_empty() && self.log.is_none()
    }
}

/// Commands of a client whose prerequisites are resolved.
#[derive(Debug)]
pub(crate) struct ReadyCommands {
    pub(crate) client_id: i64,
    pub(crate) commands: CommandQueue,
    pub(crate) prerequisites: ResolvedPrerequisites,
}

/// Deferred commands of all clients.
#[derive(Debug)]
pub(crate) struct DeferredCommands {
    clients: BTreeMap<i64, Deferred>,
    /// Sum of the memory of all commands, in bytes.
    bytes: usize,
    /// The client served last.
    last_served: i64,
    pub(crate) preallocator: LogPreallocator,
}

impl DeferredCommands {
    pub(crate) fn new() -> Self {
        Self {
            clients: BTreeMap::new(),
            bytes: 0,
            last_served: i64::MIN,
            preallocator: LogPreallocator::default(),
        }
    }

    /// Returns true if commands of this client have to queue behind a deferred one.
    pub(crate) fn is_deferred(&self, client_id: i64) -> bool {
        self.clients.contains_key(&client_id)
    }

    /// Returns true if a command with this payload length may be deferred.
    pub(crate) fn has_room(
        &self,
        client_id: i64,
        payload_length: usize,
        quota: MemoryQuota,
    ) -> bool {
        let deferred = self.clients.get(&client_id);
        if deferred.is_none() && self.clients.len() >= CLIENTS {
            return false;
        }
        let cost = cost(payload_length);
        let times = match quota {
            MemoryQuota::Ordinary => 1,
            MemoryQuota::Reserve => 2,
        };
        deferred.map_or(0, |deferred| deferred.commands.bytes) + cost <= BYTES_PER_CLIENT * times
            && self.bytes + cost <= BYTES * times
    }

    /// Queues a command behind the deferred one.
    pub(crate) fn push(&mut self, client_id: i64, command: RawCommand) {
        if let Some(deferred) = self.clients.get_mut(&client_id) {
            self.bytes += command.cost();
            deferred.commands.push(command);
        }
    }

    /// Defers `commands`, of which the first has `prerequisites` and lacks `missing`. With `None` it is ready at once.
    pub(crate) fn defer(
        &mut self,
        client_id: i64,
        commands: CommandQueue,
        prerequisites: ResolvedPrerequisites,
        missing: Option<Prerequisite>,
        names: &mut HostLookups,
    ) {
        self.bytes += commands.bytes;
        let mut deferred = Deferred {
            commands,
            prerequisites,
            hosts: Vec::new(),
            log: None,
        };
        match missing {
            None => {}
            Some(Prerequisite::LogFile(ticket)) => deferred.log = Some(ticket),
            Some(Prerequisite::Hosts(hosts)) => {
                let tickets = hosts
                    .iter()
                    .map(|host| names.start_lookup(Requester::Command, host));
                deferred.hosts.extend(tickets);
            }
        }
        self.clients.insert(client_id, deferred);
    }

    /// Handles a created log file, or the failure to create it. Returns the file if neither a deferred nor a queued
    /// command needs it.
    pub(crate) fn on_log_file(
        &mut self,
        ticket: u64,
        file: Result<LogFile, Failure>,
    ) -> Option<Result<LogFile, Failure>> {
        let deferred = self
            .clients
            .values_mut()
            .find(|deferred| deferred.log == Some(ticket));
        match deferred {
            Some(deferred) => {
                deferred.log = None;
                deferred.prerequisites.log = Some(file);
                self.preallocator.remove(ticket);
                None
            }
            // If a preallocation failed, the command requests its file when it runs.
            None => self.preallocator.on_created(ticket, file.ok()).map(Ok),
        }
    }

    /// Returns the commands of one client that are ready to run.
    pub(crate) fn poll(&mut self) -> Option<ReadyCommands> {
        let client_id = self.next_ready()?;
        self.last_served = client_id;
        let Deferred {
            commands,
            prerequisites,
            ..
        } = self.clients.remove(&client_id)?;
        self.bytes -= commands.bytes;
        Some(ReadyCommands {
            client_id,
            commands,
            prerequisites,
        })
    }

    /// Returns true if the commands of a client are ready to run.
    pub(crate) fn has_ready(&self) -> bool {
        self.next_ready().is_some()
    }

    /// Serves clients round-robin, so that one with many commands does not delay the others.
    fn next_ready(&self) -> Option<i64> {
        let after = (Bound::Excluded(self.last_served), Bound::Unbounded);
        self.clients
            .range(after)
            .chain(self.clients.range(..=self.last_served))
            .find(|(_, deferred)| deferred.is_ready())
            .map(|(&client_id, _)| client_id)
    }

    /// Handles the result of a host lookup.
    pub(crate) fn on_lookup_result(&mut self, result: LookupResult) {
        for deferred in self.clients.values_mut() {
            let found = deferred
                .hosts
                .iter()
                .position(|open| *open == result.ticket);
            if let Some(index) = found {
                deferred.hosts.swap_remove(index);
                deferred
                    .prerequisites
                    .hosts
                    .insert(result.host, result.resolution);
                return;
            }
        }
    }

    /// Removes the deferred commands of a client. Returns their log files.
    pub(crate) fn remove_client(
        &mut self,
        client_id: i64,
        names: &mut HostLookups,
    ) -> Vec<LogFile> {
        let Some(deferred) = self.clients.remove(&client_id) else {
            return Vec::new();
        };
        self.bytes -= deferred.commands.bytes;
        for ticket in &deferred.hosts {
            names.cancel(*ticket);
        }
        let commands = deferred.commands.commands.iter();
        let preallocated =
            commands.filter_map(|command| self.preallocator.remove(command.preallocated?));
        let preallocated = preallocated.collect::<Vec<LogFile>>().into_iter();
        preallocated
            .chain(deferred.prerequisites.log.and_then(Result::ok))
            .collect()
    }
}
