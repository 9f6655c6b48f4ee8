// SPDX-License-Identifier: Apache-2.0
//! Construction of name resolution from the options.

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use taran_core::agent::DutyCycleTracker;
use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_net::{Network, SocketSpec};
use taran_protocol::counter::SystemCounter;
use taran_protocol::uri::Address;

use crate::conductor::{
    Counters, Gossip, GossipCounters, HostLookups, NameResolver, NameTable, SystemCounters,
    literal, preferred,
};
use crate::context::{GossipSettings, Settings};
use crate::error::DriverError;
use crate::event_log::EventLog;
use crate::secured::Security;

/// Timeout of the lookup of the resolver's own interface.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Parts from which name resolution is built.
pub(super) struct NamesSpec<'a> {
    pub(super) settings: &'a Settings,
    pub(super) resolver: Box<dyn NameResolver>,
    pub(super) network: &'a mut dyn Network,
    pub(super) security: &'a mut Security,
    pub(super) counters: &'a mut Counters,
    pub(super) system: &'a SystemCounters,
    pub(super) errors: ErrorHandler,
    pub(super) events: EventLog,
    pub(super) now: Now,
}

/// Binds the resolver's socket and allocates its counters.
pub(super) fn build(mut spec: NamesSpec<'_>) -> Result<HostLookups, DriverError> {
    let settings = spec.settings;
    let full = |error: crate::conductor::Failure| DriverError::Cnc {
        what: "the counters of the name resolver",
        reason: error.text,
    };
    let table = NameTable::new(&settings.names.table, spec.counters).map_err(full)?;
    let gossip = match &settings.names.gossip {
        None => None,
        Some(gossip) => {
            let bind = interface(&gossip.interface, spec.resolver.as_mut())?;
            // Patterns of the trust file match this address.
            spec.security.prepare_resolver(bind, spec.counters);
            let transport = spec
                .network
                .open(&SocketSpec::bound(bind).with_offload(false))
                .map_err(|source| DriverError::ResolverInterface {
                    interface: gossip.interface.text.clone(),
                    reason: source.to_string(),
                })?;
            let counted = GossipCounters {
                invalid_packets: spec.system.get(SystemCounter::InvalidPackets).clone(),
                short_sends: spec.system.get(SystemCounter::ShortSends).clone(),
                events: spec.events.clone(),
            };
            let gossip: GossipSettings = gossip.clone();
            Some(
                Gossip::new(
                    gossip,
                    transport,
                    counted,
                    spec.errors,
                    spec.counters,
                    spec.now,
                )
                .map_err(full)?,
            )
        }
    };
    let tracker = DutyCycleTracker::new(
        spec.system.get(SystemCounter::NameResolverMaxTime).clone(),
        spec.system
            .get(SystemCounter::NameResolverTimeThresholdExceeded)
            .clone(),
        Duration::from_nanos(settings.timers.name_resolver_threshold_ns.unsigned_abs()),
    );
    Ok(HostLookups::new(
        gossip,
        table,
        spec.resolver,
        tracker,
        spec.now,
    ))
}

/// Resolves the address of the resolver's interface. It may block because no agent is running yet.
fn interface(
    address: &Address,
    resolver: &mut dyn NameResolver,
) -> Result<SocketAddr, DriverError> {
    let failed = |reason: &str| DriverError::ResolverInterface {
        interface: address.text.clone(),
        reason: reason.to_owned(),
    };
    let name = match literal(&address.host) {
        Ok(ip) => return Ok(SocketAddr::new(ip, address.port)),
        Err(name) => name,
    };
    // Later tickets count up from zero.
    let ticket = u64::MAX;
    resolver.start(ticket, name);
    let start = Instant::now();
    let found: Vec<IpAddr> = loop {
        match resolver.poll() {
            Some((completed, found)) if completed == ticket => {
                break found.map_err(|reason| failed(&reason))?;
            }
            _ if start.elapsed() > LOOKUP_TIMEOUT => {
                return Err(failed("the lookup of its name timed out"));
            }
            _ => thread::sleep(POLL_INTERVAL),
        }
    };
    let ip = preferred(&found).ok_or_else(|| failed("no address is known for it"))?;
    Ok(SocketAddr::new(ip, address.port))
}
