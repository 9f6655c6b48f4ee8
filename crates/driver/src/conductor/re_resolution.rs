// SPDX-License-Identifier: Apache-2.0
//! Re-resolution of the names of silent peers; changed addresses are sent to the agents (docs/spec/wire.md §2.14).

use std::net::{IpAddr, SocketAddr};

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::Address;

use super::names::{LookupResult, Requester, Resolution, literal, preferred};
use super::state::ConductorState;
use crate::boundary::{EndpointId, ReceiverCommand, SenderCommand, TransportId};

/// Time of silence after which a peer may have moved.
const RE_RESOLUTION_TIMEOUT_NS: i64 = 5_000_000_000;

impl ConductorState {
    /// Returns the time of silence after which the name in this address is resolved again; `None` for a literal
    /// address, or if re-resolution is disabled.
    pub(crate) fn re_resolution_timeout(&self, address: Option<&Address>) -> Option<i64> {
        let is_wanted = self.settings.timers.re_resolution_check_interval_ns > 0;
        address
            .and_then(host_name)
            .filter(|_| is_wanted)
            .map(|_| RE_RESOLUTION_TIMEOUT_NS)
    }

    /// Runs name resolution.
    pub(crate) fn poll_names(&mut self) -> usize {
        self.names.do_work(self.now, &mut self.counters)
    }

    /// Returns the next lookup result for a command; results of re-resolution are applied here.
    pub(crate) fn next_lookup_result(&mut self) -> Option<LookupResult> {
        loop {
            let result = self.names.poll(&mut self.counters)?;
            match result.requester {
                Requester::SendEndpoint(endpoint) => {
                    self.on_endpoint_resolved(endpoint, &result.resolution);
                }
                Requester::Destination(endpoint, destination) => {
                    self.on_destination_resolved(endpoint, destination, &result.resolution);
                }
                Requester::ReceiveTransport(endpoint, transport) => {
                    self.on_control_resolved(endpoint, transport, &result.resolution);
                }
                Requester::Command | Requester::Neighbor(_) => return Some(result),
            }
        }
    }

    /// Starts the re-resolution of the peer of a send endpoint.
    pub(crate) fn on_re_resolve_endpoint(&mut self, id: EndpointId) {
        let address = self.networking.send_endpoints.get(id).and_then(|endpoint| {
            let is_unicast = !endpoint.closing && !endpoint.resolved.roles.multicast;
            let address = endpoint.resolved.channel.endpoint.as_ref();
            address.filter(|_| is_unicast)
        });
        if let Some(name) = address.and_then(host_name) {
            self.names
                .start_lookup_once(Requester::SendEndpoint(id), name);
        }
    }

    /// Starts the re-resolution of an explicit control address.
    pub(crate) fn on_re_resolve_control(&mut self, id: EndpointId, transport: TransportId) {
        let address = self
            .networking
            .receive_channel_mut(id, transport)
            .and_then(|resolved| resolved.channel.control.as_ref());
        if let Some(name) = address.and_then(host_name) {
            self.names
                .start_lookup_once(Requester::ReceiveTransport(id, transport), name);
        }
    }

    fn on_endpoint_resolved(&mut self, id: EndpointId, found: &Resolution) {
        let Some(endpoint) = self.networking.send_endpoints.get_mut(id) else {
            return;
        };
        let resolved = &mut endpoint.resolved;
        let Some(address) = resolved.channel.endpoint.as_ref() else {
            return;
        };
        let current = resolved.roles.remote_data;
        let is_secured = endpoint.security.is_secured;
        match changed_address("endpoint", address, found, current).and_then(|moved| {
            self.security
                .check_moved(is_secured, moved, resolved.text())
        }) {
            Ok(None) => {}
            Ok(Some(address)) => {
                resolved.roles.remote_data = address;
                resolved.roles.remote_control = address;
                self.networking
                    .sender
                    .send(SenderCommand::ChangeDestination {
                        endpoint: id,
                        destination: None,
                        address,
                    });
                self.count(SystemCounter::ResolutionChanges);
            }
            Err(text) => self.record(ErrorCode::UnknownHost, &text),
        }
    }

    /// Starts the re-resolution of a destination that was silent, or whose name had no address.
    pub(crate) fn on_re_resolve_destination(&mut self, endpoint: EndpointId, destination: i64) {
        let known = self.networking.send_destinations.get(endpoint, destination);
        if let Some(name) = known.and_then(|known| host_name(&known.requested)) {
            self.names
                .start_lookup_once(Requester::Destination(endpoint, destination), name);
        }
    }

    fn on_destination_resolved(
        &mut self,
        endpoint: EndpointId,
        destination: i64,
        found: &Resolution,
    ) {
        let is_secured = self.is_secured_sender(endpoint);
        let known = &mut self.networking.send_destinations;
        let Some(known) = known.get_mut(endpoint, destination) else {
            return;
        };
        let moved = match known.address {
            Some(current) => changed_address("endpoint", &known.requested, found, current),
            None => Ok(first_address(&known.requested, found)),
        };
        let name = &known.requested.text;
        match moved.and_then(|moved| self.security.check_moved(is_secured, moved, name)) {
            Ok(None) => {}
            Ok(Some(address)) => {
                known.address = Some(address);
                self.networking
                    .sender
                    .send(SenderCommand::ChangeDestination {
                        endpoint,
                        destination: Some(destination),
                        address,
                    });
                self.count(SystemCounter::ResolutionChanges);
            }
            Err(text) => self.record(ErrorCode::UnknownHost, &text),
        }
    }

    fn on_control_resolved(&mut self, id: EndpointId, transport: TransportId, found: &Resolution) {
        let endpoint = self.networking.receive_endpoints.get(id);
        let is_secured = endpoint.is_some_and(|endpoint| endpoint.security.is_secured);
        let Some(resolved) = self.networking.receive_channel_mut(id, transport) else {
            return;
        };
        let (Some(address), Some(current)) = (resolved.channel.control.as_ref(), resolved.control)
        else {
            return;
        };
        let security = &self.security;
        match changed_address("control", address, found, current)
            .and_then(|moved| security.check_moved(is_secured, moved, resolved.text()))
        {
            Ok(None) => {}
            Ok(Some(address)) => {
                resolved.control = Some(address);
                // Later channels that refer to this one by tag use the new address, too.
                if resolved.roles.local == current {
                    resolved.roles.local = address;
                }
                self.networking
                    .receiver
                    .send(ReceiverCommand::ChangeControl {
                        endpoint: id,
                        transport,
                        address,
                    });
                self.count(SystemCounter::ResolutionChanges);
            }
            Err(text) => self.record(ErrorCode::UnknownHost, &text),
        }
    }
}

/// Returns the host name in an address; `None` for a literal address.
fn host_name(address: &Address) -> Option<&str> {
    literal(&address.host).err()
}

/// Returns the first address of a name that had none. Failures are not recorded again.
fn first_address(address: &Address, found: &Resolution) -> Option<SocketAddr> {
    let ip = preferred(found.as_ref().ok()?)?;
    Some(SocketAddr::new(ip, address.port))
}

/// Returns the new address of a name; `None` if `current` is still one of its addresses. Only addresses of the same
/// family are considered, since the socket cannot reach the other one.
fn changed_address(
    key: &str,
    address: &Address,
    found: &Resolution,
    current: SocketAddr,
) -> Result<Option<SocketAddr>, String> {
    let unresolved = |reason: &str| {
        format!(
            "Unable to resolve host: {key}={}: {reason}; {current} remains in use",
            address.text
        )
    };
    let found = found.as_ref().map_err(|reason| unresolved(reason))?;
    let same_family: Vec<IpAddr> = found
        .iter()
        .copied()
        .filter(|ip| ip.is_ipv4() == current.is_ipv4())
        .collect();
    if same_family.contains(&current.ip()) {
        return Ok(None);
    }
    let ip = preferred(&same_family).ok_or_else(|| unresolved("no address of the same family"))?;
    Ok(Some(SocketAddr::new(ip, address.port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_address_considers_same_family_only() {
        let address = Address::parse("peer:40123").unwrap();
        let current: SocketAddr = "10.0.0.1:40123".parse().unwrap();
        let found =
            |ips: &[&str]| -> Resolution { Ok(ips.iter().map(|ip| ip.parse().unwrap()).collect()) };
        let check = |found: Resolution| changed_address("endpoint", &address, &found, current);
        assert_eq!(check(found(&["10.0.0.1"])), Ok(None));
        assert_eq!(
            check(found(&["10.0.0.9", "10.0.0.1"])),
            Ok(None),
            "round robin"
        );
        assert_eq!(
            check(found(&["::1", "10.0.0.2"])),
            Ok(Some("10.0.0.2:40123".parse().unwrap()))
        );
        for refused in [found(&["::1"]), Err("no such name".to_owned())] {
            let text = check(refused).unwrap_err();
            assert!(
                text.starts_with("Unable to resolve host: endpoint=peer:40123"),
                "{text}"
            );
        }
    }
}
