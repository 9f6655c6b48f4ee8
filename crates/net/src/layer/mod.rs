// SPDX-License-Identifier: Apache-2.0
//! The layer stack: code that sees, changes or drops datagrams between an agent and a backend.
//!
//! A [`NetworkLayer`] belongs to a network and creates a [`TransportLayer`] for each transport. [`LayeredNetwork`]
//! opens transports of the network below and puts the layers on top of them, in the order of one list: a sent datagram
//! passes the first layer first, a received one the last layer first. A transport that no layer applies to is that of
//! the network below, without any cost per call.
//!
//! A layer implements what it changes; [`LayeredTransport`] forwards everything else, once for all layers. What a layer
//! prevents or needs is in its [`LayerCapabilities`], which the transport combines with those of the backend.
//!
//! A layer that changes bytes sends with [`LowerLayers::send_with`], which writes them where the backend sends them from,
//! and receives with [`ReceiveBatch::push_coalesced_with`]: one pass over the bytes in each direction, no allocation.

use std::fmt::Debug;
use std::net::SocketAddr;

use crate::{
    AgentRole, BufferLengths, BufferLimits, Capabilities, Interface, NetError, Network, PollSource,
    Poller, ReceiveBatch, Received, SocketSpec, Transmit, TransmitLayout, TransmitScratch,
    Transport, transport::send_from_scratch,
};

/// A layer of all transports of a network.
pub trait NetworkLayer: Send + Debug {
    /// Returns the layer of a transport that was opened as `spec` says, or `None` if the transport needs none. Called
    /// once for each transport.
    fn layer(&mut self, spec: &SocketSpec) -> Option<Box<dyn TransportLayer>>;
}

/// A layer of one transport.
///
/// Contract: `send` and `receive` obey the rules of [`Transport::send`] and [`Transport::receive`] and call the layers
/// below through `lower` any number of times. They never wait, and allocate nothing after the first calls.
pub trait TransportLayer: Send + Debug {
    /// Returns what the layer prevents or needs.
    fn capabilities(&self) -> LayerCapabilities {
        LayerCapabilities::default()
    }

    /// Sends a batch. Returns how many bytes of `batch` were accepted, also if the layers below got other bytes.
    fn send(
        &mut self,
        batch: &[Transmit<'_>],
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        lower.send(batch)
    }

    /// Clears `batch`, fills it with what has arrived, and returns the number of datagrams.
    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        lower.receive(batch)
    }
}

/// Effects and needs of a layer. The default is a layer that sees sent datagrams only and changes nothing.
///
/// ```
/// let encrypts = taran_net::LayerCapabilities::default()
///     .with_inspection()
///     .with_transformation(20);
/// assert_eq!(20, encrypts.expansion);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerCapabilities {
    /// True if received datagrams have to pass [`TransportLayer::receive`], so that
    /// [`Transport::receive_parts`] cannot bypass the layer.
    pub inspects_received: bool,
    /// True if the layer may hold received datagrams until a later call, so that [`Poller`]s report the transport
    /// always.
    pub holds_received: bool,
    /// True if the layer changes the bytes of datagrams ([`Capabilities::transforms`]).
    pub transforms: bool,
    /// Bytes that the layer adds to each sent datagram, and removes from each received one.
    pub expansion: usize,
}

impl LayerCapabilities {
    /// A layer that sees sent datagrams only and changes nothing.
    pub const NONE: Self = Self {
        inspects_received: false,
        holds_received: false,
        transforms: false,
        expansion: 0,
    };

    /// States that received datagrams have to pass the layer.
    #[must_use]
    pub const fn with_inspection(self) -> Self {
        Self {
            inspects_received: true,
            ..self
        }
    }

    /// States that the layer may hold received datagrams until a later call; they have to pass it.
    #[must_use]
    pub const fn with_holding(self) -> Self {
        Self {
            inspects_received: true,
            holds_received: true,
            ..self
        }
    }

    /// States that the layer changes the bytes of datagrams, and adds `expansion` bytes to each.
    #[must_use]
    pub const fn with_transformation(self, expansion: usize) -> Self {
        Self {
            transforms: true,
            expansion,
            ..self
        }
    }
}

/// The layers below a layer, and the transport.
#[derive(Debug)]
pub struct LowerLayers<'a> {
    layers: &'a mut [Box<dyn TransportLayer>],
    transport: &'a mut dyn Transport,
}

impl LowerLayers<'_> {
    /// Sends through the next layer, or the transport. See [`Transport::send`].
    pub fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        match self.layers.split_first_mut() {
            None => self.transport.send(batch),
            Some((layer, layers)) => layer.send(
                batch,
                &mut LowerLayers {
                    layers,
                    transport: self.transport,
                },
            ),
        }
    }

    /// Sends datagrams that `write` produces: into memory of the transport if it has any and no layer lies between, else
    /// into `scratch`. See [`Transport::send_with`].
    pub fn send_with(
        &mut self,
        layout: TransmitLayout,
        scratch: &mut TransmitScratch,
        write: &mut dyn FnMut(usize, &mut [u8]),
    ) -> Result<usize, NetError> {
        if self.layers.is_empty() {
            return self.transport.send_with(layout, scratch, write);
        }
        let (local, peer) = (self.local_address(), self.peer());
        send_from_scratch(layout, scratch, write, local, peer, |transmit| {
            self.send(&[transmit])
        })
    }

    /// Receives through the next layer, or the transport. See [`Transport::receive`].
    pub fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        match self.layers.split_first_mut() {
            None => self.transport.receive(batch),
            Some((layer, layers)) => layer.receive(
                batch,
                &mut LowerLayers {
                    layers,
                    transport: self.transport,
                },
            ),
        }
    }

    /// Returns the peer of the transport.
    #[must_use]
    pub fn peer(&self) -> Option<SocketAddr> {
        self.transport.peer()
    }

    /// Returns the address of the transport.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.transport.local_address()
    }
}

/// A network with layers on top.
#[derive(Debug)]
pub struct LayeredNetwork<N> {
    network: N,
    layers: Vec<Box<dyn NetworkLayer>>,
}

impl<N: Network> LayeredNetwork<N> {
    /// Puts `layers` on top of `network`, the one next to the agents first.
    #[must_use]
    pub fn new(network: N, layers: Vec<Box<dyn NetworkLayer>>) -> Self {
        Self { network, layers }
    }

    /// Puts one layer on top of `network`.
    #[must_use]
    pub fn with_layer(network: N, layer: impl NetworkLayer + 'static) -> Self {
        Self::new(network, vec![Box::new(layer)])
    }
}

impl<N: Network> Network for LayeredNetwork<N> {
    fn backend(&self) -> &'static str {
        self.network.backend()
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        let transport = self.network.open(spec)?;
        let layers: Vec<_> = self
            .layers
            .iter_mut()
            .filter_map(|layer| layer.layer(spec))
            .collect();
        if layers.is_empty() {
            return Ok(transport);
        }
        Ok(Box::new(LayeredTransport { layers, transport }))
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        self.network.poller(agent)
    }

    fn on_timer(&mut self, now_ns: i64) {
        self.network.on_timer(now_ns);
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        self.network.buffer_limits()
    }

    fn buffer_limits_of(&mut self, backend: &str) -> Result<BufferLimits, NetError> {
        self.network.buffer_limits_of(backend)
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        self.network.interfaces()
    }
}

/// A transport with at least one layer.
#[derive(Debug)]
struct LayeredTransport {
    /// The one next to the agent first.
    layers: Vec<Box<dyn TransportLayer>>,
    transport: Box<dyn Transport>,
}

impl LayeredTransport {
    fn all_layers(&mut self) -> LowerLayers<'_> {
        LowerLayers {
            layers: &mut self.layers,
            transport: &mut *self.transport,
        }
    }
}

impl Transport for LayeredTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        self.all_layers().send(batch)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        self.all_layers().receive(batch)
    }

    fn receive_parts(
        &mut self,
        head: &mut [u8],
        rest: &mut [u8],
    ) -> Result<Option<Received>, NetError> {
        if self.capabilities().receives_parts {
            self.transport.receive_parts(head, rest)
        } else {
            Ok(None)
        }
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.transport.connect(peer)
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.transport.peer()
    }

    fn path_mtu(&self) -> Option<usize> {
        self.transport.path_mtu()
    }

    fn local_address(&self) -> SocketAddr {
        self.transport.local_address()
    }

    fn poll_source(&self) -> PollSource {
        let mut layers = self.layers.iter();
        let holds_received = layers.any(|layer| layer.capabilities().holds_received);
        let source = self.transport.poll_source();
        PollSource {
            is_always_ready: source.is_always_ready || holds_received,
            ..source
        }
    }

    fn capabilities(&self) -> Capabilities {
        let layers = self.layers.iter().map(|layer| layer.capabilities());
        layers.fold(self.transport.capabilities(), Capabilities::below)
    }

    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        self.transport.grow_receive_buffer(bytes)
    }

    fn buffer_lengths(&self) -> BufferLengths {
        self.transport.buffer_lengths()
    }

    fn overflowed(&self) -> Option<u32> {
        self.transport.overflowed()
    }

    fn multicast_ttl(&self) -> u8 {
        self.transport.multicast_ttl()
    }
}

#[cfg(test)]
mod tests;
