//! Datagram backends behind one batch interface.
//!
//! A datagram is data, not a call: [`Transmit`] describes what to send (destination, bytes, segment size) and
//! [`ReceiveBatch`] what has arrived (source, bytes, stride, timestamp). [`Transport`] moves batches of them,
//! [`Network`] opens transports and knows the machine. [`SocketNetwork`] is the kernel's UDP. [`Faulty`] makes any network
//! lose, repeat and reorder; [`Filtered`] asks for each datagram whether it may pass.

#[doc(hidden)]
pub mod conformance;
mod error;
mod fault;
mod filter;
mod network;
mod receive;
mod socket;
mod transmit;
mod transport;

pub use error::NetError;
pub use fault::{FaultControl, FaultCounts, FaultRates, FaultSpec, Faulty};
pub use filter::{DatagramFilter, Filtered};
pub use network::{BufferLimits, MulticastSpec, Network, SocketSpec};
pub use receive::{Datagram, DatagramRun, ReceiveBatch, Received};
pub use socket::{SocketNetwork, wait};
pub use taran_core::interface::Interface;
pub use transmit::Transmit;
pub use transport::{BufferLengths, Capabilities, Transport};
