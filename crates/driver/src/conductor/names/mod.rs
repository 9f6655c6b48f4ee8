// SPDX-License-Identifier: Apache-2.0
//! Resolution of host names.
//!
//! Contract: [`HostLookups::start_lookup`] starts a lookup; [`HostLookups::poll`] returns its result, or an error after
//! a timeout. Lookups are concurrent. Call [`HostLookups::do_work`] once per duty cycle. A name is searched among the
//! drivers known by gossip, then in the name table, then by the system resolver; the first two only if configured.

mod gossip;
mod resolver;
mod table;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use taran_core::agent::DutyCycleTracker;
use taran_core::clock::Now;
use taran_protocol::event::EventCode;
use taran_protocol::uri::Host;

pub(crate) use gossip::{Gossip, GossipCounters};
pub use resolver::NameResolver;
pub(crate) use resolver::Resolution;
pub(crate) use table::NameTable;

use super::counters::Counters;
use crate::boundary::{EndpointId, TransportId};
use crate::event_log::{EventLog, FieldValue};
use table::Redirect;

/// Timeout of a lookup. Clients wait ten seconds for the response to a command.
const TIMEOUT_NS: i64 = 5_000_000_000;

/// Requester of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A deferred command.
    Command,
    /// A send endpoint whose peer is silent.
    SendEndpoint(EndpointId),
    /// A silent destination of a send endpoint, by its registration id.
    Destination(EndpointId, i64),
    /// A transport of a receive endpoint whose control address is silent.
    ReceiveTransport(EndpointId, TransportId),
    /// A bootstrap neighbor, by its index.
    Neighbor(usize),
}

/// Result of a lookup.
#[derive(Debug)]
pub(crate) struct LookupResult {
    pub(crate) ticket: u64,
    pub(crate) requester: Requester,
    pub(crate) host: String,
    pub(crate) resolution: Resolution,
}

#[derive(Debug)]
struct Lookup {
    requester: Requester,
    host: String,
    since_ns: i64,
}

impl Lookup {
    /// Returns true if a peer that had an address is resolved again.
    fn is_re_lookup(&self) -> bool {
        !matches!(self.requester, Requester::Command | Requester::Neighbor(_))
    }
}

/// Resolvers, and the lookups in progress.
#[derive(Debug)]
pub(crate) struct HostLookups {
    gossip: Option<Gossip>,
    table: NameTable,
    system: Box<dyn NameResolver>,
    /// Tracks the duration of lookups (system counters 32 and 33).
    lookup_times: DutyCycleTracker,
    pending: BTreeMap<u64, Lookup>,
    /// Results that were available at once; `poll` returns them.
    completed: VecDeque<(u64, Resolution)>,
    next_ticket: u64,
    now: Now,
    events: EventLog,
}

impl HostLookups {
    pub(crate) fn new(
        gossip: Option<Gossip>,
        table: NameTable,
        system: Box<dyn NameResolver>,
        lookup_times: DutyCycleTracker,
        now: Now,
    ) -> Self {
        Self {
            gossip,
            table,
            system,
            lookup_times,
            pending: BTreeMap::new(),
            completed: VecDeque::new(),
            next_ticket: 0,
            now,
            events: EventLog::off(),
        }
    }

    /// Sets the event log for lookups and their results.
    pub(crate) fn log_to(&mut self, events: EventLog) {
        self.events = events;
    }

    /// Runs gossip and the lookups that it needs. Returns the amount of work done.
    pub(crate) fn do_work(&mut self, now: Now, counters: &mut Counters) -> usize {
        self.now = now;
        let Some(gossip) = &mut self.gossip else {
            return 0;
        };
        let work = gossip.do_work(now);
        while let Some((index, host)) = self.gossip.as_mut().and_then(Gossip::next_lookup) {
            let host = match host {
                Ok(host) => host,
                Err(reason) => {
                    self.on_lookup_result(index, &Err(reason), counters);
                    continue;
                }
            };
            match literal(&host) {
                Ok(ip) => self.on_lookup_result(index, &Ok(vec![ip]), counters),
                Err(name) => {
                    let ticket = self.register(Requester::Neighbor(index), name);
                    self.dispatch(ticket, name, false);
                }
            }
        }
        work
    }

    /// Starts a lookup; returns the ticket of its result.
    pub(crate) fn start_lookup(&mut self, requester: Requester, host: &str) -> u64 {
        let ticket = self.register(requester, host);
        self.dispatch(ticket, host, true);
        ticket
    }

    /// Starts a lookup unless this requester has one in progress.
    pub(crate) fn start_lookup_once(&mut self, requester: Requester, host: &str) {
        if !self
            .pending
            .values()
            .any(|lookup| lookup.requester == requester)
        {
            self.start_lookup(requester, host);
        }
    }

    /// Cancels a lookup whose result is not needed any more.
    pub(crate) fn cancel(&mut self, ticket: u64) {
        if self.pending.remove(&ticket).is_some() {
            self.system.cancel(ticket);
        }
    }

    /// Returns the next result; those for bootstrap neighbors are handled here.
    pub(crate) fn poll(&mut self, counters: &mut Counters) -> Option<LookupResult> {
        while let Some((ticket, found)) = self.next_completed() {
            // The lookup was cancelled or has timed out.
            let Some(lookup) = self.pending.remove(&ticket) else {
                continue;
            };
            let taken_ns = self.now.nanos.saturating_sub(lookup.since_ns);
            self.lookup_times.record(taken_ns);
            if self.events.is_enabled(EventCode::NameResolutionResolve) {
                log_result(&self.events, &lookup, taken_ns, &found);
            }
            if let Requester::Neighbor(index) = lookup.requester {
                self.on_lookup_result(index, &found, counters);
                continue;
            }
            return Some(LookupResult {
                ticket,
                requester: lookup.requester,
                host: lookup.host,
                resolution: found,
            });
        }
        None
    }

    /// Returns true if a lookup is in progress.
    pub(crate) fn has_pending_lookups(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the next time at which a duty cycle has an effect, if no resolver answers before.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        if !self.completed.is_empty() {
            return i64::MIN;
        }
        let gossip = self.gossip.as_ref();
        let gossip_ns = gossip.map_or(i64::MAX, Gossip::next_deadline_ns);
        let oldest = self.pending.values().next();
        let timeout_ns = oldest.map_or(i64::MAX, |lookup| {
            lookup.since_ns.saturating_add(TIMEOUT_NS)
        });
        gossip_ns.min(timeout_ns)
    }

    fn next_completed(&mut self) -> Option<(u64, Resolution)> {
        if let Some(found) = self.completed.pop_front() {
            return Some(found);
        }
        // Tickets ascend with time: the first is the oldest. Without pending lookups the system resolver is not polled.
        let (&ticket, lookup) = self.pending.first_key_value()?;
        if let Some(found) = self.system.poll() {
            return Some(found);
        }
        if self.now.nanos.saturating_sub(lookup.since_ns) < TIMEOUT_NS {
            return None;
        }
        self.system.cancel(ticket);
        let text = format!("no answer within {} ms", TIMEOUT_NS / 1_000_000);
        Some((ticket, Err(text)))
    }

    fn register(&mut self, requester: Requester, host: &str) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let lookup = Lookup {
            requester,
            host: host.to_owned(),
            since_ns: self.now.nanos,
        };
        self.pending.insert(ticket, lookup);
        ticket
    }

    fn dispatch(&mut self, ticket: u64, host: &str, use_gossip: bool) {
        let addresses = self.gossip.as_ref().filter(|_| use_gossip);
        if let Some(addresses) = addresses.and_then(|gossip| gossip.find(host)) {
            self.log_lookup(ticket, "driver", host, host);
            self.completed.push_back((ticket, Ok(addresses)));
            return;
        }
        let host = match self.table.redirect(host) {
            None => {
                self.log_lookup(ticket, "default", host, host);
                host
            }
            Some(Redirect::To(other)) => {
                self.log_lookup(ticket, "csv_table", host, other);
                other
            }
            Some(Redirect::Unresolvable) => {
                self.log_lookup(ticket, "csv_table", host, "");
                let text = format!("Unable to resolve host=({host}): (forced)");
                self.completed.push_back((ticket, Err(text)));
                return;
            }
        };
        match host.parse() {
            Ok(ip) => self.completed.push_back((ticket, Ok(vec![ip]))),
            Err(_) => self.system.start(ticket, host),
        }
    }

    /// Logs which resolver handles a name, and the name it is mapped to. Both are known at once: the duration is 0.
    fn log_lookup(&self, ticket: u64, resolver: &str, host: &str, resolved_name: &str) {
        let lookup = self.pending.get(&ticket);
        let is_re_lookup = lookup.is_some_and(Lookup::is_re_lookup);
        self.events.log(
            EventCode::NameResolutionLookup,
            &[
                FieldValue::Text(resolver),
                FieldValue::Long(0),
                FieldValue::Text(host),
                FieldValue::Int(i32::from(is_re_lookup)),
                FieldValue::Text(resolved_name),
            ],
        );
    }

    fn on_lookup_result(&mut self, index: usize, found: &Resolution, counters: &mut Counters) {
        if let Some(gossip) = &mut self.gossip {
            gossip.on_lookup_result(index, found, self.now, counters);
        }
    }
}

fn log_result(events: &EventLog, lookup: &Lookup, taken_ns: i64, found: &Resolution) {
    let address = match found {
        Ok(addresses) => preferred(addresses).map_or_else(String::new, |ip| ip.to_string()),
        Err(reason) => reason.clone(),
    };
    events.log(
        EventCode::NameResolutionResolve,
        &[
            FieldValue::Long(taken_ns),
            FieldValue::Text(&lookup.host),
            FieldValue::Int(i32::from(lookup.is_re_lookup())),
            FieldValue::Text(&address),
        ],
    );
}

/// Returns the address if no lookup is needed, else the host name.
pub(crate) fn literal(host: &Host) -> Result<IpAddr, &str> {
    match host {
        Host::Ip(ip) => Ok(*ip),
        Host::Name(name) if name == "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        Host::Name(name) => Err(name),
    }
}

/// Returns the preferred address: IPv4 if there is one, as in the official drivers.
pub(crate) fn preferred(found: &[IpAddr]) -> Option<IpAddr> {
    found
        .iter()
        .find(|ip| ip.is_ipv4())
        .or_else(|| found.first())
        .copied()
}

#[cfg(test)]
mod tests;
