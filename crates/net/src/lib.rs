// SPDX-License-Identifier: Apache-2.0
//! Datagram backends behind one batch interface.
//!
//! A datagram is data, not a call: [`Transmit`] describes what to send (destination, bytes, segment size) and
//! [`ReceiveBatch`] what has arrived (source, bytes, stride, timestamp). [`Transport`] moves batches of them,
//! [`Network`] opens transports and reports the machine's interfaces and buffer limits. A [`Poller`] tells an agent which
//! of its transports to receive from, and waits for them. [`SocketNetwork`] uses the
//! kernel's UDP sockets. [`Backends`] combines several networks; [`SocketSpec::backend`] chooses one.
//!
//! `docs/design/network-backends.md` is the guide for a new backend, with a complete one as example.
//!
//! Layers lie between an agent and a backend, in one ordered stack ([`LayeredNetwork`]): [`FaultLayer`] loses,
//! duplicates and reorders datagrams, [`FilterLayer`] drops those that a filter rejects.
//!
//! # Example
//!
//! A layer that counts datagrams, on top of the kernel's sockets:
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddr};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! use taran_net::{
//!     LayeredNetwork, LowerLayers, NetError, Network, NetworkLayer, ReceiveBatch, SocketNetwork, SocketSpec, Transmit,
//!     TransportLayer,
//! };
//!
//! #[derive(Clone, Debug, Default)]
//! struct CountSent(Arc<AtomicUsize>);
//!
//! impl NetworkLayer for CountSent {
//!     fn layer(&mut self, _spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
//!         Some(Box::new(self.clone()))
//!     }
//! }
//!
//! impl TransportLayer for CountSent {
//!     fn send(&mut self, batch: &[Transmit<'_>], lower: &mut LowerLayers<'_>) -> Result<usize, NetError> {
//!         let datagrams: usize = batch.iter().map(|transmit| transmit.datagrams().len()).sum();
//!         self.0.fetch_add(datagrams, Ordering::Relaxed);
//!         lower.send(batch)
//!     }
//! }
//!
//! # fn main() -> Result<(), NetError> {
//! let sent = CountSent::default();
//! let mut network = LayeredNetwork::with_layer(SocketNetwork::new(), sent.clone());
//! let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
//! let mut receiver = network.open(&SocketSpec::bound(any))?;
//! let mut sender = network.open(&SocketSpec::bound(any).connected(receiver.local_address()))?;
//!
//! // One transmit, three datagrams: GSO where the kernel has it.
//! sender.send(&[Transmit::connected(b"onetwosix").segmented(3)])?;
//! assert_eq!(sent.0.load(Ordering::Relaxed), 3);
//!
//! let mut batch = ReceiveBatch::new(4);
//! let mut arrived = Vec::new();
//! while arrived.len() < 3 {
//!     receiver.receive(&mut batch)?;
//!     arrived.extend(batch.datagrams().map(|datagram| datagram.payload.to_vec()));
//! }
//! assert_eq!(arrived, [b"one", b"two", b"six"]);
//! # Ok(())
//! # }
//! ```

mod backends;
#[doc(hidden)]
pub mod conformance;
mod error;
mod fault;
mod filter;
mod layer;
mod network;
mod poller;
mod receive;
mod socket;
mod transmit;
mod transport;

pub use backends::Backends;
pub use error::NetError;
pub use fault::{FaultControl, FaultCounts, FaultLayer, FaultRates, FaultSpec};
pub use filter::{DatagramFilter, FilterLayer};
pub use layer::{LayerCapabilities, LayeredNetwork, LowerLayers, NetworkLayer, TransportLayer};
pub use network::{BufferLimits, MulticastSpec, Network, SocketSpec};
pub use poller::{AgentRole, Arrivals, PollSource, Poller, UnconditionalPoller};
pub use receive::{Datagram, DatagramRun, ReceiveBatch, Received};
pub use socket::SocketNetwork;
pub use taran_core::agent::{AgentWaker, WaitRegistration, register_wait};
pub use taran_core::interface::Interface;
pub use transmit::{Transmit, TransmitLayout, TransmitScratch};
pub use transport::{BufferLengths, Capabilities, Transport};

/// The guide for backends, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/design/network-backends.md")]
struct BackendGuide;
