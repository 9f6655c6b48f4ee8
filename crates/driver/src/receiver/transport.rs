//! One socket of a receive endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use taran_core::clock::Now;
use taran_net::{Transmit, Transport};

use crate::boundary::{ReceiveTransportSpec, ReceiverCounters};
use crate::faults::Faults;

/// A socket, and where what is said about the streams on it goes.
#[derive(Debug)]
pub(super) struct ReceiveTransport {
    pub(super) transport: Box<dyn Transport>,
    control_group: Option<SocketAddr>,
    pub(super) explicit_control: Option<SocketAddr>,
    /// When a SETUP was last asked for at the explicit control address.
    pub(super) elicited_ns: i64,
    /// When anything from a sender last came in.
    pub(super) heard_ns: i64,
    channel: Arc<str>,
}

/// What came of sending a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// The socket is full: it can be tried again in the next turn.
    NoRoom,
    /// An error, recorded. Trying again at once would not help.
    Failed,
}

impl ReceiveTransport {
    pub(super) fn new(spec: ReceiveTransportSpec, channel: Arc<str>) -> Self {
        Self {
            transport: spec.transport,
            control_group: spec.control_group,
            explicit_control: spec.explicit_control,
            elicited_ns: 0,
            heard_ns: 0,
            channel,
        }
    }

    /// Where answers to what came from `source` go (spec/02 §5.2).
    pub(super) fn control(&self, source: SocketAddr) -> SocketAddr {
        self.control_group.unwrap_or(source)
    }

    /// Sends one frame in a datagram of its own.
    pub(super) fn send(
        &mut self,
        to: SocketAddr,
        frame: &[u8],
        now: Now,
        counters: &ReceiverCounters,
        faults: &mut Faults,
    ) -> Sent {
        match self.transport.send(&[Transmit::to(to, frame)]) {
            Ok(sent) if sent == frame.len() => Sent::Yes,
            Ok(_) => {
                counters.short_sends.increment();
                Sent::NoRoom
            }
            Err(error) => {
                counters.short_sends.increment();
                faults.report(now, &self.channel, &error);
                Sent::Failed
            }
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }
}
