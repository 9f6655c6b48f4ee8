//! Re-resolution of the names of silent peers; changed addresses are sent to the agents (docs/spec/wire.md §2.14).

use std::net::{IpAddr, SocketAddr};

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::Address;

use super::names::{LookupResult, Requester, Resolution, literal, preferred};
use super::state::ConductorState;
use crate::boundary::{EndpointId, ReceiverCommand, SenderCommand, TransportId};

/// Time of silence after which a peer may have moved.
const UNHEARD_TIMEOUT_NS: i64 = 5_000_000_000;

impl ConductorState {
    /// Returns the time of silence after which the name in this address is resolved again; `None` for a literal
    /// address, or if re-resolution is disabled.
    pub(crate) fn unheard_timeout(&self, address: Option<&Address>) -> Option<i64> {
        let is_wanted = self.settings.timers.reresolution_check_interval_ns > 0;
        address
            .and_then(name_of)
            .filter(|_| is_wanted)
            .map(|_| UNHEARD_TIMEOUT_NS)
    }

    /// Runs name resolution.
    pub(crate) fn look_around(&mut self) -> usize {
        self.names.do_work(self.now, &mut self.counters)
    }

    /// Returns the next lookup result for a command; results of re-resolution are applied here.
    pub(crate) fn next_answer(&mut self) -> Option<LookupResult> {
        loop {
            let answer = self.names.poll(&mut self.counters)?;
            match answer.asker {
                Requester::SendEndpoint(endpoint) => self.on_peer_found(endpoint, &answer.found),
                Requester::Destination(endpoint, destination) => {
                    self.on_destination_found(endpoint, destination, &answer.found);
                }
                Requester::ReceiveTransport(endpoint, transport) => {
                    self.on_control_found(endpoint, transport, &answer.found);
                }
                Requester::Command | Requester::Neighbor(_) => return Some(answer),
            }
        }
    }

    /// Starts the re-resolution of the peer of a send endpoint.
    pub(crate) fn on_send_endpoint_unheard(&mut self, id: EndpointId) {
        let address = self.networking.send_endpoints.get(id).and_then(|endpoint| {
            let is_unicast = !endpoint.closing && !endpoint.resolved.roles.multicast;
            let address = endpoint.resolved.channel.endpoint.as_ref();
            address.filter(|_| is_unicast)
        });
        if let Some(name) = address.and_then(name_of) {
            self.names.ask_again(Requester::SendEndpoint(id), name);
        }
    }

    /// Starts the re-resolution of an explicit control address.
    pub(crate) fn on_receive_transport_unheard(&mut self, id: EndpointId, transport: TransportId) {
        let address = self
            .networking
            .receiving_channel(id, transport)
            .and_then(|resolved| resolved.channel.control.as_ref());
        if let Some(name) = address.and_then(name_of) {
            self.names
                .ask_again(Requester::ReceiveTransport(id, transport), name);
        }
    }

    fn on_peer_found(&mut self, id: EndpointId, found: &Resolution) {
        let Some(endpoint) = self.networking.send_endpoints.get_mut(id) else {
            return;
        };
        let resolved = &mut endpoint.resolved;
        let Some(address) = resolved.channel.endpoint.as_ref() else {
            return;
        };
        let present = resolved.roles.remote_data;
        match changed("endpoint", address, found, present) {
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
    pub(crate) fn on_destination_unheard(&mut self, endpoint: EndpointId, destination: i64) {
        let known = self.networking.send_destinations.get(endpoint, destination);
        if let Some(name) = known.and_then(|known| name_of(&known.asked)) {
            self.names
                .ask_again(Requester::Destination(endpoint, destination), name);
        }
    }

    fn on_destination_found(&mut self, endpoint: EndpointId, destination: i64, found: &Resolution) {
        let known = &mut self.networking.send_destinations;
        let Some(known) = known.get_mut(endpoint, destination) else {
            return;
        };
        let moved = match known.address {
            Some(present) => changed("endpoint", &known.asked, found, present),
            None => Ok(first(&known.asked, found)),
        };
        match moved {
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

    fn on_control_found(&mut self, id: EndpointId, transport: TransportId, found: &Resolution) {
        let Some(resolved) = self.networking.receiving_channel(id, transport) else {
            return;
        };
        let (Some(address), Some(present)) = (resolved.channel.control.as_ref(), resolved.control)
        else {
            return;
        };
        match changed("control", address, found, present) {
            Ok(None) => {}
            Ok(Some(address)) => {
                resolved.control = Some(address);
                // Later channels that refer to this one by tag use the new address, too.
                if resolved.roles.local == present {
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
fn name_of(address: &Address) -> Option<&str> {
    literal(&address.host).err()
}

/// Returns the first address of a name that had none. Failures are not recorded again.
fn first(address: &Address, found: &Resolution) -> Option<SocketAddr> {
    let ip = preferred(found.as_ref().ok()?)?;
    Some(SocketAddr::new(ip, address.port))
}

/// Returns the new address of a name; `None` if `present` is still one of its addresses. Only addresses of the same
/// family are considered, since the socket cannot reach the other one.
fn changed(
    key: &str,
    address: &Address,
    found: &Resolution,
    present: SocketAddr,
) -> Result<Option<SocketAddr>, String> {
    let unresolved = |reason: &str| {
        format!(
            "Unable to resolve host: {key}={}: {reason}; {present} is used as before",
            address.text
        )
    };
    let found = found.as_ref().map_err(|reason| unresolved(reason))?;
    let of_family: Vec<IpAddr> = found
        .iter()
        .copied()
        .filter(|ip| ip.is_ipv4() == present.is_ipv4())
        .collect();
    if of_family.contains(&present.ip()) {
        return Ok(None);
    }
    let ip = preferred(&of_family).ok_or_else(|| unresolved("no address of the same family"))?;
    Ok(Some(SocketAddr::new(ip, address.port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_address_of_the_same_family_is_a_change() {
        let address = Address::parse("peer:40123").unwrap();
        let present: SocketAddr = "10.0.0.1:40123".parse().unwrap();
        let found =
            |ips: &[&str]| -> Resolution { Ok(ips.iter().map(|ip| ip.parse().unwrap()).collect()) };
        let ask = |found: Resolution| changed("endpoint", &address, &found, present);
        assert_eq!(ask(found(&["10.0.0.1"])), Ok(None));
        assert_eq!(
            ask(found(&["10.0.0.9", "10.0.0.1"])),
            Ok(None),
            "round robin"
        );
        assert_eq!(
            ask(found(&["::1", "10.0.0.2"])),
            Ok(Some("10.0.0.2:40123".parse().unwrap()))
        );
        for refused in [found(&["::1"]), Err("no such name".to_owned())] {
            let text = ask(refused).unwrap_err();
            assert!(
                text.starts_with("Unable to resolve host: endpoint=peer:40123"),
                "{text}"
            );
        }
    }
}
