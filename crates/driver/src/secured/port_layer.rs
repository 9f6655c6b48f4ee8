// SPDX-License-Identifier: Apache-2.0
//! Layer of a secured socket: what all kinds of ports have in common.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use taran_core::queue;
use taran_net::{
    LayerCapabilities, LowerLayers, NetError, ReceiveBatch, Transmit, TransmitScratch,
    TransportLayer,
};

use super::keeper_sender::{KeeperSender, lock};
use super::layer::capabilities;
use super::memory::with_memory;
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

    /// Returns the way to the conductor.
    fn to_keeper(&self) -> &KeeperSender;

    /// Takes a message of the conductor.
    fn on_update(&mut self, update: KeyUpdate, lower: &mut LowerLayers<'_>);

    /// Seals and sends the datagrams of a transmit. Returns the accepted plain bytes.
    fn send(
        &mut self,
        transmit: &Transmit<'_>,
        scratch: &mut TransmitScratch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError>;

    /// Opens a datagram that arrived into the batch, or passes it to the conductor.
    fn on_datagram(&mut self, arrived: Arrived<'_>, batch: &mut ReceiveBatch);

    /// Delivers frames that wait for a free slot of the batch.
    fn deliver(&mut self, batch: &mut ReceiveBatch);
}

/// Layer of one socket of a port.
#[derive(Debug)]
pub(super) struct PortLayer<T> {
    port: PortOfSocket<T>,
}

/// A port as one of its sockets has it.
#[derive(Debug)]
enum PortOfSocket<T> {
    /// At the first use, when the agent has all sockets of the port, it turns out whether there are others.
    New(Option<Arc<Mutex<T>>>),
    /// It has no other socket.
    Own(Box<T>),
    /// It has another socket, of the same agent: the lock never waits.
    Shared(Arc<Mutex<T>>),
}

impl<T: SecuredPort> PortLayer<T> {
    pub(super) const fn new(port: Arc<Mutex<T>>) -> Self {
        Self {
            port: PortOfSocket::New(Some(port)),
        }
    }

    /// Passes the port to `act`.
    #[inline]
    fn with_port(
        &mut self,
        act: impl FnOnce(&mut T) -> Result<usize, NetError>,
    ) -> Result<usize, NetError> {
        if let PortOfSocket::New(port) = &mut self.port
            && let Some(port) = port.take()
        {
            self.port = match Arc::try_unwrap(port) {
                Ok(port) => {
                    let port = port.into_inner().unwrap_or_else(PoisonError::into_inner);
                    PortOfSocket::Own(Box::new(port))
                }
                Err(port) => PortOfSocket::Shared(port),
            };
        }
        match &mut self.port {
            PortOfSocket::Own(port) => act(port),
            PortOfSocket::Shared(port) => act(&mut lock(port)),
            // Not reached: it was replaced above. Nothing passes all the same.
            PortOfSocket::New(_) => Ok(0),
        }
    }
}

/// Takes the messages of the conductor.
#[inline]
fn take_updates<T: SecuredPort>(port: &mut T, lower: &mut LowerLayers<'_>) {
    while let Some(update) = port.updates().try_recv() {
        port.on_update(update, lower);
    }
}

/// Sends the last frames of links. The agent does not have the socket any more.
fn send_last<T: SecuredPort>(port: &mut T, lower: &mut LowerLayers<'_>) {
    while let Some(update) = port.updates().try_recv() {
        if let KeyUpdate::Send { to, bytes } = update {
            // A receiver that misses it notices the silence of the link.
            let _ = lower.send(&[Transmit::to(to, &bytes)]);
        }
    }
}

fn send<T: SecuredPort>(
    port: &mut T,
    batch: &[Transmit<'_>],
    scratch: &mut TransmitScratch,
    lower: &mut LowerLayers<'_>,
) -> Result<usize, NetError> {
    take_updates(port, lower);
    let mut accepted = 0;
    for transmit in batch.iter().filter(|it| !it.payload.is_empty()) {
        match port.send(transmit, scratch, lower) {
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

fn receive<T: SecuredPort>(
    port: &mut T,
    batch: &mut ReceiveBatch,
    sealed: &mut ReceiveBatch,
    lower: &mut LowerLayers<'_>,
) -> Result<usize, NetError> {
    batch.clear();
    take_updates(port, lower);
    sealed.clear_to(batch.free_slots().len());
    if lower.receive(sealed)? > 0 {
        for run in sealed.datagram_runs() {
            for datagram in run.datagrams() {
                let arrived = Arrived {
                    datagram,
                    source: run.source,
                    timestamp_ns: run.timestamp_ns,
                };
                port.on_datagram(arrived, batch);
            }
        }
        let opened = batch.bytes();
        if opened > 0 {
            port.to_keeper().counters.bytes_opened.add(opened as i64);
        }
    }
    port.deliver(batch);
    Ok(batch.datagram_count())
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
        self.with_port(|port| {
            if batch.is_empty() {
                send_last(port, lower);
                return Ok(0);
            }
            with_memory(|memory| send(port, batch, &mut memory.scratch, lower))
        })
    }

    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        self.with_port(|port| {
            with_memory(|memory| receive(port, batch, &mut memory.received, lower))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::keeper_sender::tests::sender;
    use super::super::neighbors::ResolverPort;
    use super::*;

    fn port() -> Arc<Mutex<ResolverPort>> {
        let (_, updates) = queue::spsc(1);
        Arc::new(Mutex::new(ResolverPort::new(updates, sender().0, 1)))
    }

    #[test]
    fn port_of_one_socket_is_taken_out_of_its_lock() {
        let mut layer = PortLayer::new(port());
        for _ in 0..2 {
            assert_eq!(layer.with_port(|_| Ok(7)).ok(), Some(7));
            assert!(matches!(layer.port, PortOfSocket::Own(_)), "{layer:?}");
        }
    }

    #[test]
    fn port_of_two_sockets_stays_shared() {
        let port = port();
        let mut layers = [(); 2].map(|()| PortLayer::new(Arc::clone(&port)));
        drop(port);
        for layer in &mut layers {
            assert_eq!(layer.with_port(|_| Ok(7)).ok(), Some(7));
            assert!(matches!(layer.port, PortOfSocket::Shared(_)), "{layer:?}");
        }
    }
}
