//! Datagram backends behind one batch interface.
//!
//! A datagram is data, not a call: [`Transmit`] describes what to send (destination, bytes, segment size) and
//! [`ReceiveBatch`] what has arrived (source, bytes, stride, timestamp). [`Transport`] moves batches of them,
//! [`Network`] opens transports and reports the machine's interfaces and buffer limits. [`SocketNetwork`] uses the
//! kernel's UDP sockets. [`Faulty`] wraps a network and loses, duplicates and reorders datagrams; [`Filtered`] wraps
//! one and drops the datagrams that a filter rejects.

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
