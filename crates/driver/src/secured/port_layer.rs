// SPDX-License-Identifier: Apache-2.0
//! Layer of a secured socket: what all kinds of ports have in common.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use taran_core::queue;
use taran_net::{LayerCapabilities, LowerLayers, NetError, ReceiveBatch, Transmit, TransportLayer};

use super::desk::{Desk, KeeperSender, lock};
use super::layer::capabilities;
use super::messages::KeyUpdate;

/// Datagram that arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrived<'a> {
    pub(super) datagram: &'a [u8],
    pub(super) source: SocketAddr,
    pub(super) timestamp_ns: Option<i64>,
}

/// Keys of the sockets of a port, which belong to one agent.
pub(super) trait SecuredPort: fmt::Debug + Send {
    /// Returns the messages of the conductor.
    fn updates(&mut self) -> &mut queue::Receiver<KeyUpdate>;

    /// Takes a message of the conductor.
    fn on_update(
        &mut self,
        update: KeyUpdate,
        to_keeper: &mut KeeperSender,
        lower: &mut LowerLayers<'_>,
    );

    /// Seals and sends the datagrams of a transmit. Returns the accepted plain bytes.
    fn send(
        &mut self,
        transmit: &Transmit<'_>,
        desk: &mut Desk,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError>;

    /// Opens a datagram that arrived into the batch, or passes it to the conductor.
    fn on_datagram(
        &mut self,
        arrived: Arrived<'_>,
        batch: &mut ReceiveBatch,
        to_keeper: &mut KeeperSender,
    );

    /// Delivers frames that wait for a free slot of the batch.
    fn deliver(&mut self, batch: &mut ReceiveBatch);
}

/// Layer of one socket of a port.
#[derive(Debug)]
pub(super) struct PortLayer<T> {
    port: Arc<Mutex<T>>,
    desk: Arc<Mutex<Desk>>,
}

impl<T: SecuredPort> PortLayer<T> {
    pub(super) const fn new(port: Arc<Mutex<T>>, desk: Arc<Mutex<Desk>>) -> Self {
        Self { port, desk }
    }
}

/// Takes the messages of the conductor.
#[inline]
fn take_updates<T: SecuredPort>(
    port: &mut T,
    to_keeper: &mut KeeperSender,
    lower: &mut LowerLayers<'_>,
) {
    while let Some(update) = port.updates().try_recv() {
        port.on_update(update, to_keeper, lower);
    }
}

/// Sends the last frames of links. The agent does not have the socket any more, so that its desk is not used.
fn send_last<T: SecuredPort>(port: &mut T, lower: &mut LowerLayers<'_>) {
    while let Some(update) = port.updates().try_recv() {
        if let KeyUpdate::Send { to, bytes } = update {
            // A receiver that misses it notices the silence of the link.
            let _ = lower.send(&[Transmit::to(to, &bytes)]);
        }
    }
}

impl<T: SecuredPort> TransportLayer for PortLayer<T> {
    fn capabilities(&self) -> LayerCapabilities {
        capabilities()
    }

    /// An empty batch sends what the keeper left for a socket that is about to be closed.
    fn send(
        &mut self,
        batch: &[Transmit<'_>],
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        if batch.is_empty() {
            send_last(&mut *lock(&self.port), lower);
            return Ok(0);
        }
        let (mut port, mut desk) = (lock(&self.port), lock(&self.desk));
        take_updates(&mut *port, &mut desk.to_keeper, lower);
        let mut accepted = 0;
        for transmit in batch.iter().filter(|it| !it.payload.is_empty()) {
            match port.send(transmit, &mut desk, lower) {
                Ok(sent) => {
                    accepted += sent;
                    if sent < transmit.payload.len() {
                        break;
                    }
                }
                Err(error) if accepted == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(accepted)
    }

    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        batch.clear();
        let (mut port, mut desk) = (lock(&self.port), lock(&self.desk));
        let Desk {
            sealed, to_keeper, ..
        } = &mut *desk;
        take_updates(&mut *port, to_keeper, lower);
        sealed.clear_to(batch.free_slots().len());
        lower.receive(sealed)?;
        for run in sealed.datagram_runs() {
            for datagram in run.datagrams() {
                let arrived = Arrived {
                    datagram,
                    source: run.source,
                    timestamp_ns: run.timestamp_ns,
                };
                port.on_datagram(arrived, batch, to_keeper);
            }
        }
        let opened = batch.bytes();
        if opened > 0 {
            to_keeper.counters.bytes_opened.add(opened as i64);
        }
        port.deliver(batch);
        Ok(batch.datagram_count())
    }
}
