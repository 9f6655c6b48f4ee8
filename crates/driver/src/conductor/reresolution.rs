//! Peers that fell silent: their names are looked up again, and what they mean by now is told to whoever sends to them
//! (docs/spec/wire.md §2.14).

use std::net::{IpAddr, SocketAddr};

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::Address;

use super::names::{Answer, Asker, Found, literal, preferred};
use super::owners::Owners;
use crate::boundary::{EndpointId, ReceiverCommand, SenderCommand, TransportId};

/// Peers that are silent for so long may have moved.
const UNHEARD_TIMEOUT_NS: i64 = 5_000_000_000;

impl Owners {
    /// After which silence the name in this address is to be looked up again; never where there is no name, or where the
    /// options say so.
    pub(crate) fn unheard_timeout(&self, address: Option<&Address>) -> Option<i64> {
        let is_wanted = self.settings.timers.reresolution_check_interval_ns > 0;
        address
            .and_then(name_of)
            .filter(|_| is_wanted)
            .map(|_| UNHEARD_TIMEOUT_NS)
    }

    /// What is due about names.
    pub(crate) fn look_around(&mut self) -> usize {
        self.names.do_work(self.now, &mut self.counters)
    }

    /// The next answer for a command; those about silent peers are acted on.
    pub(crate) fn next_answer(&mut self) -> Option<Answer> {
        loop {
            let answer = self.names.poll(&mut self.counters)?;
            match answer.asker {
                Asker::SendEndpoint(endpoint) => self.on_peer_found(endpoint, &answer.found),
                Asker::Destination(endpoint, destination) => {
                    self.on_destination_found(endpoint, destination, &answer.found);
                }
                Asker::ReceiveTransport(endpoint, transport) => {
                    self.on_control_found(endpoint, transport, &answer.found);
                }
                Asker::Command | Asker::Neighbor(_) => return Some(answer),
            }
        }
    }

    /// No status message has come from the peer of a send endpoint for a while.
    pub(crate) fn on_send_endpoint_unheard(&mut self, id: EndpointId) {
        let address = self.networking.send_endpoints.get(id).and_then(|endpoint| {
            let is_unicast = !endpoint.closing && !endpoint.resolved.roles.multicast;
            let address = endpoint.resolved.channel.endpoint.as_ref();
            address.filter(|_| is_unicast)
        });
        if let Some(name) = address.and_then(name_of) {
            self.names.ask_again(Asker::SendEndpoint(id), name);
        }
    }

    /// Nothing has come from behind an explicit control address for a while.
    pub(crate) fn on_receive_transport_unheard(&mut self, id: EndpointId, transport: TransportId) {
        let address = self
            .networking
            .receiving_channel(id, transport)
            .and_then(|resolved| resolved.channel.control.as_ref());
        if let Some(name) = address.and_then(name_of) {
            self.names
                .ask_again(Asker::ReceiveTransport(id, transport), name);
        }
    }

    fn on_peer_found(&mut self, id: EndpointId, found: &Found) {
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
                    .post(SenderCommand::ChangeDestination {
                        endpoint: id,
                        destination: None,
                        address,
                    });
                self.count(SystemCounter::ResolutionChanges);
            }
            Err(text) => self.record(ErrorCode::UnknownHost, &text),
        }
    }

    /// No status message has come from a destination for a while, or its name had no address yet.
    pub(crate) fn on_destination_unheard(&mut self, endpoint: EndpointId, destination: i64) {
        let known = self.networking.send_destinations.get(endpoint, destination);
        if let Some(name) = known.and_then(|known| name_of(&known.asked)) {
            self.names
                .ask_again(Asker::Destination(endpoint, destination), name);
        }
    }

    fn on_destination_found(&mut self, endpoint: EndpointId, destination: i64, found: &Found) {
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
                    .post(SenderCommand::ChangeDestination {
                        endpoint,
                        destination: Some(destination),
                        address,
                    });
                self.count(SystemCounter::ResolutionChanges);
            }
            Err(text) => self.record(ErrorCode::UnknownHost, &text),
        }
    }

    fn on_control_found(&mut self, id: EndpointId, transport: TransportId, found: &Found) {
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
                // Whoever asks for the same by tag means the address of today, too.
                if resolved.roles.local == present {
                    resolved.roles.local = address;
                }
                self.networking
                    .receiver
                    .post(ReceiverCommand::ChangeControl {
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

/// The name in an address; none where it means the same for ever.
fn name_of(address: &Address) -> Option<&str> {
    literal(&address.host).err()
}

/// The address of a name that had none so far; that it still has none was told when it was first asked for.
fn first(address: &Address, found: &Found) -> Option<SocketAddr> {
    let ip = preferred(found.as_ref().ok()?)?;
    Some(SocketAddr::new(ip, address.port))
}

/// The address that a name means now, if it is another one of the same family than at `present`; a socket cannot reach the
/// other family.
fn changed(
    key: &str,
    address: &Address,
    found: &Found,
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
            |ips: &[&str]| -> Found { Ok(ips.iter().map(|ip| ip.parse().unwrap()).collect()) };
        let ask = |found: Found| changed("endpoint", &address, &found, present);
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
