// SPDX-License-Identifier: Apache-2.0
//! SETUP elicitation, and detection of silent control addresses.

use std::net::SocketAddr;

use super::ReceiveContext;
use super::endpoint::ReceiveEndpoint;
use crate::boundary::ConductorEvent;

/// Interval of SETUP elicitation at an explicit control address (docs/spec/wire.md §5.3).
const ELICIT_INTERVAL_NS: i64 = 1_000_000_000;

impl ReceiveEndpoint {
    /// Requests the SETUP of a session from its sender.
    pub(super) fn elicit_setup(
        &mut self,
        transport: usize,
        session_id: i32,
        stream_id: i32,
        source: SocketAddr,
        context: &mut ReceiveContext<'_>,
    ) {
        let request = self.identity.setup_request(session_id, stream_id);
        let Some(transport) = &mut self.transports[transport] else {
            return;
        };
        transport.send(
            transport.reply_address(source),
            request.bytes(),
            context.now,
            context.counters,
            context.reporter,
        );
    }

    /// Requests the SETUP of one session at the explicit control addresses.
    pub(super) fn elicit_session_setup(
        &mut self,
        stream_id: i32,
        session_id: i32,
        context: &mut ReceiveContext<'_>,
    ) {
        for index in 0..self.transports.len() {
            let transport = self.transports[index].as_ref();
            if let Some(control) = transport.and_then(|it| it.explicit_control) {
                self.elicit_setup(index, session_id, stream_id, control, context);
            }
        }
    }

    /// Called once when the receiver takes ownership of a transport.
    pub(super) fn start_transport(&mut self, index: usize, context: &mut ReceiveContext<'_>) {
        if let Some(transport) = &mut self.transports[index] {
            transport.last_received_ns = context.now.nanos;
            self.elicit_setup_at_control(index, context);
        }
    }

    /// Requests SETUPs at the explicit control address of a transport, if it has one.
    pub(super) fn elicit_setup_at_control(
        &mut self,
        index: usize,
        context: &mut ReceiveContext<'_>,
    ) {
        let Some(transport) = &mut self.transports[index] else {
            return;
        };
        if let Some(control) = transport.explicit_control {
            transport.last_elicited_ns = context.now.nanos;
            let request = self.identity.setup_request(0, 0);
            transport.send(
                control,
                request.bytes(),
                context.now,
                context.counters,
                context.reporter,
            );
        }
    }

    /// Requests SETUPs at explicit control addresses for which the interval has passed.
    pub(super) fn elicit_periodic_setups(&mut self, context: &mut ReceiveContext<'_>) {
        for index in 0..self.transports.len() {
            let Some(transport) = &self.transports[index] else {
                continue;
            };
            if transport.explicit_control.is_some()
                && context.now.nanos - transport.last_elicited_ns > ELICIT_INTERVAL_NS
                && self.dispatcher.has_interest()
            {
                self.elicit_setup_at_control(index, context);
            }
        }
    }

    /// Returns the time of the next periodic request; `i64::MAX` for never.
    pub(super) fn next_elicitation_ns(&self) -> i64 {
        if !self.dispatcher.has_interest() {
            return i64::MAX;
        }
        let controlled = self.transports.iter().flatten();
        let controlled = controlled.filter(|transport| transport.explicit_control.is_some());
        let last = controlled.map(|transport| transport.last_elicited_ns).min();
        last.map_or(i64::MAX, |last| last.saturating_add(ELICIT_INTERVAL_NS + 1))
    }

    /// Reports explicit control addresses that have been silent for too long: the peer may have moved
    /// (docs/spec/wire.md §2.14).
    pub(super) fn check_control_silence(&mut self, context: &mut ReceiveContext<'_>) {
        for transport in self.transports.iter_mut().flatten() {
            if let Some(timeout_ns) = transport.silence_timeout_ns
                && transport.explicit_control.is_some()
                && context.now.nanos - transport.last_received_ns > timeout_ns
            {
                transport.last_received_ns = context.now.nanos;
                let event = ConductorEvent::ReResolveControl {
                    endpoint: self.id,
                    transport: transport.id,
                };
                // If the queue is full, the next timeout reports it.
                let _ = context.events.offer(event);
            }
        }
    }
}
