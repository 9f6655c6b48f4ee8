//! Asking senders for SETUPs, and noticing that nobody is heard.

use std::net::SocketAddr;

use super::Desk;
use super::endpoint::ReceiveEndpoint;
use crate::boundary::ConductorEvent;

/// SETUPs are elicited so often at an explicit control address (docs/spec/wire.md §5.3).
const ELICIT_INTERVAL_NS: i64 = 1_000_000_000;

impl ReceiveEndpoint {
    /// Asks a sender for a SETUP.
    pub(super) fn elicit(
        &mut self,
        transport: usize,
        session_id: i32,
        stream_id: i32,
        source: SocketAddr,
        desk: &mut Desk<'_>,
    ) {
        let request = self.identity.setup_request(session_id, stream_id);
        let Some(transport) = &mut self.transports[transport] else {
            return;
        };
        transport.send(
            transport.answers_to(source),
            request.bytes(),
            desk.now,
            desk.counters,
            desk.faults,
        );
    }

    /// Asks whoever is behind the explicit control addresses for the SETUP of one session.
    pub(super) fn elicit_session(&mut self, stream_id: i32, session_id: i32, desk: &mut Desk<'_>) {
        for index in 0..self.transports.len() {
            let transport = self.transports[index].as_ref();
            if let Some(control) = transport.and_then(|it| it.explicit_control) {
                self.elicit(index, session_id, stream_id, control, desk);
            }
        }
    }

    /// The receiver has a transport now.
    pub(super) fn start_transport(&mut self, index: usize, desk: &mut Desk<'_>) {
        if let Some(transport) = &mut self.transports[index] {
            transport.heard_ns = desk.now.nanos;
            self.elicit_explicitly(index, desk);
        }
    }

    /// Asks whoever is behind the explicit control address for SETUPs, if there is one.
    pub(super) fn elicit_explicitly(&mut self, index: usize, desk: &mut Desk<'_>) {
        let Some(transport) = &mut self.transports[index] else {
            return;
        };
        if let Some(control) = transport.explicit_control {
            transport.elicited_ns = desk.now.nanos;
            let request = self.identity.setup_request(0, 0);
            transport.send(
                control,
                request.bytes(),
                desk.now,
                desk.counters,
                desk.faults,
            );
        }
    }

    /// Asks for SETUPs where it is time to.
    pub(super) fn look_after_transports(&mut self, desk: &mut Desk<'_>) {
        for index in 0..self.transports.len() {
            let Some(transport) = &self.transports[index] else {
                continue;
            };
            if transport.explicit_control.is_some()
                && desk.now.nanos - transport.elicited_ns > ELICIT_INTERVAL_NS
                && self.dispatcher.has_interest()
            {
                self.elicit_explicitly(index, desk);
            }
        }
    }

    /// Who stays silent behind an explicit control address may have moved (docs/spec/wire.md §2.14).
    pub(super) fn check_heard(&mut self, desk: &mut Desk<'_>) {
        for transport in self.transports.iter_mut().flatten() {
            if let Some(timeout_ns) = transport.unheard_timeout_ns
                && transport.explicit_control.is_some()
                && desk.now.nanos - transport.heard_ns > timeout_ns
            {
                transport.heard_ns = desk.now.nanos;
                let event = ConductorEvent::ReceiveTransportUnheard {
                    endpoint: self.id,
                    transport: transport.id,
                };
                // When the queue is full the next timeout says so again.
                let _ = desk.events.offer(event);
            }
        }
    }
}
