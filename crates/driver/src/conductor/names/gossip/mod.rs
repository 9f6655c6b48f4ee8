// SPDX-License-Identifier: Apache-2.0
//! Driver name resolution by gossip (docs/spec/wire.md §6), so that channels can name a driver instead of a host.
//!
//! Contract: call [`Gossip::do_work`] often; it receives, expires and sends entries. [`Gossip::next_lookup`] returns
//! the hosts to look up until there is none; [`Gossip::on_lookup_result`] takes their results. [`Gossip::find`]
//! searches the cache.

mod bootstrap;
mod cache;
mod neighbors;
mod socket;

use std::net::{IpAddr, SocketAddr};

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_net::Transport;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{Frame, ResolutionEntry};
use taran_protocol::uri::Host;

use bootstrap::BootstrapNeighbor;
use cache::{Cache, Key};
use neighbors::Neighbors;
use socket::Socket;

use super::super::counters::Counters;
use super::super::failure::Failure;
use super::preferred;
use super::resolver::Resolution;
use crate::context::GossipSettings;
use crate::error_reporter::ErrorReporter;
use crate::event_log::EventLog;

/// Interval between polls of the socket and the timers.
const WORK_INTERVAL_NS: i64 = 10_000_000;

/// Maximum number of datagrams of one kind sent per poll. With more neighbors, a round takes several polls.
const DATAGRAMS_MAX: usize = 64;

/// Counters of frames, and the event log.
#[derive(Debug, Clone)]
pub(crate) struct GossipCounters {
    pub(crate) invalid_packets: Counter,
    pub(crate) short_sends: Counter,
    pub(crate) events: EventLog,
}

/// Times at which the next actions are due.
#[derive(Debug)]
struct GossipTimers {
    work_ns: i64,
    announce_ns: i64,
    gossip_ns: i64,
    bootstrap_ns: i64,
}

/// Round of self announcements: the neighbor served last.
#[derive(Debug, Default)]
struct SelfAnnounceRound {
    peer: Option<SocketAddr>,
}

/// Round of cache entries: the last name of the previous frame, and the neighbor that got the current frame last.
#[derive(Debug, Default)]
struct CacheGossipRound {
    sent_up_to: Option<Key>,
    peer: Option<SocketAddr>,
}

/// Gossip state of this driver.
#[doc(alias = "DriverNameResolver")]
#[derive(Debug)]
pub(crate) struct Gossip {
    settings: GossipSettings,
    socket: Socket,
    cache: Cache,
    neighbors: Neighbors,
    bootstrap: Vec<BootstrapNeighbor>,
    /// Next bootstrap neighbor to check for a lookup.
    next_bootstrap: usize,
    timers: GossipTimers,
    announce_round: Option<SelfAnnounceRound>,
    gossip_round: Option<CacheGossipRound>,
    neighbor_count: Counter,
    cache_size: Counter,
    invalid_packets: Counter,
    errors: ErrorHandler,
}

impl Gossip {
    /// Creates the state on a socket bound to the resolver's interface. The first poll announces this driver.
    pub(crate) fn new(
        settings: GossipSettings,
        transport: Box<dyn Transport>,
        counted: GossipCounters,
        errors: ErrorHandler,
        counters: &mut Counters,
        now: Now,
    ) -> Result<Self, Failure> {
        let reporter = ErrorReporter::new(errors.clone());
        let socket = Socket::new(transport, settings.mtu, counted.short_sends, reporter);
        let neighbor_count = counters.resolver_neighbors(socket.local_address())?;
        let cache_size = counters.resolver_cache_entries(&settings.name)?;
        let bootstrap = settings.bootstrap.iter().enumerate();
        let bootstrap =
            bootstrap.map(|(index, text)| BootstrapNeighbor::new(index, text, counters));
        Ok(Self {
            bootstrap: bootstrap.collect::<Result<_, _>>()?,
            next_bootstrap: 0,
            timers: GossipTimers {
                work_ns: now.nanos,
                announce_ns: now.nanos,
                gossip_ns: now.nanos + settings.neighbor_interval_ns,
                bootstrap_ns: now.nanos + settings.bootstrap_interval_ns,
            },
            announce_round: None,
            gossip_round: None,
            settings,
            socket,
            cache: Cache::default(),
            neighbors: Neighbors::new(counted.events),
            neighbor_count,
            cache_size,
            invalid_packets: counted.invalid_packets,
            errors,
        })
    }

    /// Returns the addresses of the driver with this name, from the cache or this driver's own.
    pub(crate) fn find(&self, host: &str) -> Option<Vec<IpAddr>> {
        let cached = self.cache.find(host);
        if !cached.is_empty() {
            return Some(cached);
        }
        (host == self.settings.name).then(|| vec![self.socket.local_address().ip()])
    }

    /// Receives, expires and sends entries when due. Returns the amount of work done.
    pub(crate) fn do_work(&mut self, now: Now) -> usize {
        if now.nanos < self.timers.work_ns {
            return 0;
        }
        self.timers.work_ns = now.nanos + WORK_INTERVAL_NS;
        let mut work = self.receive(now);
        let deadline_ns = now.nanos - self.settings.neighbor_timeout_ns;
        work += usize::from(self.cache.remove_older_than(deadline_ns));
        work += usize::from(self.neighbors.remove_older_than(deadline_ns));
        if now.nanos >= self.timers.announce_ns {
            self.timers.announce_ns = now.nanos + self.settings.self_interval_ns;
            self.announce_to_bootstrap(now);
            self.announce_round.get_or_insert_default();
        }
        self.announce(now);
        if now.nanos >= self.timers.gossip_ns {
            self.timers.gossip_ns = now.nanos + self.settings.neighbor_interval_ns;
            self.gossip_round.get_or_insert_default();
        }
        self.send_cache(now);
        if now.nanos >= self.timers.bootstrap_ns {
            self.timers.bootstrap_ns = now.nanos + self.settings.bootstrap_interval_ns;
            self.next_bootstrap = 0;
        }
        self.update_counters();
        work
    }

    /// Returns the time from which on the next call of [`do_work`](Self::do_work) has an effect. What arrives before waits.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        self.timers.work_ns
    }

    /// Returns the next bootstrap neighbor to look up: its index, and the host or the error in its text.
    pub(crate) fn next_lookup(&mut self) -> Option<(usize, Result<Host, String>)> {
        while let Some(bootstrap) = self.bootstrap.get_mut(self.next_bootstrap) {
            let index = self.next_bootstrap;
            self.next_bootstrap += 1;
            if let Some(host) = bootstrap.next_lookup(&self.neighbors) {
                return Some((index, host.cloned().map_err(str::to_owned)));
            }
        }
        None
    }

    /// Handles the result of a lookup. A new address is announced to with the next poll.
    pub(crate) fn on_lookup_result(
        &mut self,
        index: usize,
        found: &Resolution,
        now: Now,
        counters: &mut Counters,
    ) {
        let Some(bootstrap) = self.bootstrap.get_mut(index) else {
            return;
        };
        if let Err(reason) = found {
            let text = format!(
                "unknown host: aeron.driver.resolver.bootstrap.neighbor names {}: {reason}",
                bootstrap.text()
            );
            self.errors
                .on_error(now.epoch_millis, ErrorCode::UnknownHost.code(), &text);
        }
        let before = bootstrap.resolved();
        let is_ipv4 = self.socket.local_address().is_ipv4();
        let ip = found.as_ref().ok().and_then(|found| {
            let of_family = found.iter().copied().find(|ip| ip.is_ipv4() == is_ipv4);
            of_family.or_else(|| preferred(found))
        });
        bootstrap.on_resolved(ip, counters);
        if bootstrap.resolved() != before {
            self.timers.announce_ns = i64::MIN;
        }
    }

    /// Receives datagrams. A datagram with an invalid part is dropped as a whole. Returns the number of datagrams.
    fn receive(&mut self, now: Now) -> usize {
        let Self {
            settings,
            socket,
            cache,
            neighbors,
            invalid_packets,
            ..
        } = self;
        let local_port = socket.local_address().port();
        let mut work = 0;
        for datagram in socket.receive(now) {
            work += 1;
            let entries = match Frame::parse(datagram.payload) {
                Ok(Frame::Resolution(entries)) if entries.into_iter().all(|e| e.is_ok()) => entries,
                _ => {
                    invalid_packets.increment();
                    continue;
                }
            };
            // A driver announces itself once per datagram.
            let mut has_announced = false;
            for entry in entries.flatten() {
                let is_own =
                    entry.address.port() == local_port && *entry.name == *settings.name.as_bytes();
                let last_seen_ns = now.nanos - i64::from(entry.age_ms.max(0)) * 1_000_000;
                let is_over = last_seen_ns < now.nanos - settings.neighbor_timeout_ns;
                let Some(address) = address_of(&entry, datagram.source) else {
                    continue;
                };
                if !is_own && !is_over {
                    let is_self = entry.is_self && !std::mem::replace(&mut has_announced, true);
                    cache.update(entry.name, address, last_seen_ns, is_self);
                    neighbors.update(address, last_seen_ns, is_self);
                }
            }
        }
        work
    }

    /// Announces this driver to the bootstrap neighbors.
    fn announce_to_bootstrap(&mut self, now: Now) {
        let bootstrap_addresses = self
            .bootstrap
            .iter()
            .filter_map(BootstrapNeighbor::resolved);
        let entry = own_entry(&self.settings, self.socket.local_address());
        self.socket
            .send(now, std::iter::once(entry), bootstrap_addresses);
    }

    /// Announces this driver to the next neighbors of the round.
    fn announce(&mut self, now: Now) {
        let Some(round) = &mut self.announce_round else {
            return;
        };
        let peers = self.neighbors.after(round.peer, DATAGRAMS_MAX);
        let bootstrap = &self.bootstrap;
        let is_bootstrap = |peer| {
            bootstrap
                .iter()
                .any(|bootstrap| bootstrap.resolved() == Some(peer))
        };
        let others = peers.iter().copied().filter(|peer| !is_bootstrap(*peer));
        let entry = own_entry(&self.settings, self.socket.local_address());
        self.socket.send(now, std::iter::once(entry), others);
        match peers.last() {
            Some(last) if peers.len() == DATAGRAMS_MAX => round.peer = Some(*last),
            _ => self.announce_round = None,
        }
    }

    /// Continues the round of cache entries: as many frames as needed, each to all neighbors before the next.
    fn send_cache(&mut self, now: Now) {
        let mut room = DATAGRAMS_MAX;
        while let Some(round) = self.gossip_round.as_mut().filter(|_| room > 0) {
            let sent_up_to = round.sent_up_to.as_ref();
            if self.neighbors.len() == 0 || self.cache.key(sent_up_to, 0).is_none() {
                self.gossip_round = None;
                return;
            }
            let peers = self.neighbors.after(round.peer, room);
            let entries = self.cache.entries_after(sent_up_to, now.nanos);
            let count = self.socket.send(now, entries, peers.iter().copied());
            if peers.len() == room {
                round.peer = peers.last().copied();
            } else {
                // An entry that does not fit into a frame is skipped.
                let skipped = count.max(1) - 1;
                round.sent_up_to = self.cache.key(sent_up_to, skipped);
                round.peer = None;
            }
            room -= peers.len().max(1);
        }
    }

    fn update_counters(&self) {
        for (counter, count) in [
            (&self.neighbor_count, self.neighbors.len()),
            (&self.cache_size, self.cache.len()),
        ] {
            if counter.get_plain() != count as i64 {
                counter.set(count as i64);
            }
        }
        for bootstrap in &self.bootstrap {
            bootstrap.update_counter(&self.neighbors);
        }
    }
}

fn own_entry(settings: &GossipSettings, local: SocketAddr) -> ResolutionEntry<'_> {
    ResolutionEntry {
        is_self: true,
        address: local,
        age_ms: 0,
        name: settings.name.as_bytes(),
    }
}

/// Returns the address of an entry. A driver bound to the wildcard address gets the source address of its datagram.
fn address_of(entry: &ResolutionEntry<'_>, source: SocketAddr) -> Option<SocketAddr> {
    let ip = match entry.address.ip() {
        ip if !ip.is_unspecified() => ip,
        _ if entry.is_self => source.ip().to_canonical(),
        _ => return None,
    };
    (entry.address.port() != 0).then(|| SocketAddr::new(ip, entry.address.port()))
}

#[cfg(test)]
mod tests;
