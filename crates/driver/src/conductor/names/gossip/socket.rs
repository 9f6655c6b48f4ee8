// SPDX-License-Identifier: Apache-2.0
//! Socket of the driver name resolution.

use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_net::{Datagram, ReceiveBatch, Transmit, Transport};
use taran_protocol::frame::{ResolutionEntry, write_resolution};

use crate::error_reporter::ErrorReporter;

/// Maximum number of datagrams per receive call; traffic is low.
const DATAGRAMS: usize = 8;

/// A bound socket with its buffers. A send failure to one peer does not affect the others.
#[derive(Debug)]
pub(super) struct Socket {
    transport: Box<dyn Transport>,
    batch: ReceiveBatch,
    frame: Box<[u8]>,
    short_sends: Counter,
    reporter: ErrorReporter,
}

impl Socket {
    /// Creates the socket; frames are at most `mtu` bytes long.
    pub(super) fn new(
        transport: Box<dyn Transport>,
        mtu: usize,
        short_sends: Counter,
        reporter: ErrorReporter,
    ) -> Self {
        Self {
            transport,
            batch: ReceiveBatch::new(DATAGRAMS),
            frame: vec![0; mtu].into_boxed_slice(),
            short_sends,
            reporter,
        }
    }

    pub(super) fn local_address(&self) -> SocketAddr {
        self.transport.local_address()
    }

    /// Sends as many `entries` as fit into one frame to all `peers`; returns how many fitted.
    pub(super) fn send<'a>(
        &mut self,
        now: Now,
        entries: impl Iterator<Item = ResolutionEntry<'a>>,
        peers: impl Iterator<Item = SocketAddr>,
    ) -> usize {
        let (frame, count) = write_resolution(&mut self.frame, entries);
        let local = self.transport.local_address();
        for peer in peers {
            // An IPv6 neighbor reported by a dual-stack driver cannot be reached from here.
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
                    self.reporter.report(now, &what, &error);
                }
            }
        }
        count
    }

    /// Receives a batch of datagrams.
    pub(super) fn receive(&mut self, now: Now) -> impl Iterator<Item = Datagram<'_>> {
        if let Err(error) = self.transport.receive(&mut self.batch) {
            self.batch.clear();
            self.reporter.report(now, "name resolver", &error);
        }
        self.batch.datagrams()
    }
}
