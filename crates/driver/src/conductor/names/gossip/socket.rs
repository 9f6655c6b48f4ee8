//! The socket at which drivers exchange names.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_net::{Datagram, ReceiveBatch, Transmit, Transport};
use taran_protocol::frame::{ResolutionEntry, write_resolution};

use crate::faults::Faults;

/// Most datagrams taken in at once; drivers say little.
const DATAGRAMS: usize = 8;

/// A bound socket with its buffers. A peer that cannot be sent to delays nobody else.
#[derive(Debug)]
pub(super) struct Socket {
    transport: Box<dyn Transport>,
    inbox: ReceiveBatch,
    outbox: Box<[u8]>,
    short_sends: Counter,
    faults: Faults,
}

impl Socket {
    /// Frames get as long as `mtu`.
    pub(super) fn new(
        transport: Box<dyn Transport>,
        mtu: usize,
        short_sends: Counter,
        faults: Faults,
    ) -> Self {
        Self {
            transport,
            inbox: ReceiveBatch::new(DATAGRAMS),
            outbox: vec![0; mtu].into_boxed_slice(),
            short_sends,
            faults,
        }
    }

    pub(super) fn local_address(&self) -> SocketAddr {
        self.transport.local_address()
    }

    /// Sends what fits of `entries` in one frame to all `peers`; how many fitted.
    pub(super) fn send<'a>(
        &mut self,
        now: Now,
        entries: impl Iterator<Item = ResolutionEntry<'a>>,
        peers: impl Iterator<Item = SocketAddr>,
    ) -> usize {
        let (frame, count) = write_resolution(&mut self.outbox, entries);
        let local = self.transport.local_address();
        for peer in peers {
            // Told by somebody of the other kind; there is no way to it from here.
            if local.is_ipv4() && peer.is_ipv6() {
                continue;
            }
            match self.transport.send(&[Transmit::to(peer, frame)]) {
                Ok(sent) if sent < frame.len() => {
                    self.short_sends.increment();
                }
                Ok(_) => {}
                Err(error) => {
                    let what = format!("Failed to send resolution frames to neighbor ({peer})");
                    self.faults.report(now, &what, &error);
                }
            }
        }
        count
    }

    /// Takes in what has arrived.
    pub(super) fn receive(&mut self, now: Now) -> impl Iterator<Item = Datagram<'_>> {
        if let Err(error) = self.transport.receive(&mut self.inbox) {
            self.inbox.clear();
            self.faults.report(now, "name resolver", &error);
        }
        self.inbox.datagrams()
    }
}
