//! A network decorator that injects faults: loss, duplication and reordering.
//!
//! [`Faulty`] wraps any network. Each of its transports draws a random number for each datagram, also inside batches,
//! separately for the two directions. The numbers come from a seed, and each datagram that is sent or received takes
//! exactly one, so the same traffic suffers the same faults.

mod reorder_buffer;
mod rng;
#[cfg(test)]
mod tests;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{BufferLimits, Interface, NetError, Network, SocketSpec, Transport};
use transport::FaultyTransport;

/// Probabilities of the faults of a datagram, each from 0 (never) to 1 (always). Their sum is at most 1: a datagram
/// suffers at most one fault.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultRates {
    /// The datagram never arrives.
    pub loss: f64,
    /// The datagram arrives twice.
    pub duplicate: f64,
    /// The datagram is delayed and arrives behind one to eight later ones.
    pub reorder: f64,
}

impl FaultRates {
    /// No faults.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
    };

    /// Only loss.
    #[must_use]
    pub fn loss(rate: f64) -> Self {
        Self {
            loss: rate,
            ..Self::NONE
        }
    }
}

/// Initial faults of a [`Faulty`] network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultSpec {
    /// Faults of received datagrams.
    pub incoming: FaultRates,
    /// Faults of sent datagrams.
    pub outgoing: FaultRates,
    /// Seed of the random numbers. Print it when a test fails.
    pub seed: u64,
}

/// Datagrams of all transports of a [`Faulty`] network, by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Passed unchanged.
    pub passed: u64,
    /// Dropped.
    pub lost: u64,
    /// Duplicated.
    pub duplicated: u64,
    /// Delayed.
    pub reordered: u64,
}

/// A network whose transports drop, duplicate and reorder datagrams.
#[derive(Debug)]
pub struct Faulty<N> {
    network: N,
    seed: u64,
    opened: u64,
    control: FaultControl,
}

impl<N: Network> Faulty<N> {
    /// Wraps `network`.
    #[must_use]
    pub fn new(network: N, spec: FaultSpec) -> Self {
        let control = FaultControl::default();
        control.set_incoming(spec.incoming);
        control.set_outgoing(spec.outgoing);
        Self {
            network,
            seed: spec.seed,
            opened: 0,
            control,
        }
    }

    /// A handle to change the rates and to read the counts while transports are in use.
    #[must_use]
    pub fn control(&self) -> FaultControl {
        self.control.clone()
    }
}

impl<N: Network> Network for Faulty<N> {
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        let inner = self.network.open(spec)?;
        // Each transport has its own generators, so that its faults do not depend on the traffic of other transports.
        let mut seeds = fastrand::Rng::with_seed(self.seed.wrapping_add(self.opened));
        self.opened += 1;
        Ok(Box::new(FaultyTransport::new(
            inner,
            &self.control,
            seeds.fork(),
            seeds.fork(),
        )))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        self.network.buffer_limits()
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        self.network.interfaces()
    }
}

/// Changes the faults of a [`Faulty`] network at run time. Clones refer to the same network.
#[derive(Clone, Debug, Default)]
pub struct FaultControl {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    incoming: SharedRates,
    outgoing: SharedRates,
    passed: AtomicU64,
    lost: AtomicU64,
    duplicated: AtomicU64,
    reordered: AtomicU64,
}

/// [`FaultRates`] as bits, so that transports on other threads can read them. The three are not updated atomically
/// together.
#[derive(Debug, Default)]
struct SharedRates {
    loss: AtomicU64,
    duplicate: AtomicU64,
    reorder: AtomicU64,
}

impl FaultControl {
    /// Sets the faults of datagrams received from now on.
    pub fn set_incoming(&self, rates: FaultRates) {
        self.shared.incoming.set(rates);
    }

    /// Sets the faults of datagrams sent from now on.
    pub fn set_outgoing(&self, rates: FaultRates) {
        self.shared.outgoing.set(rates);
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        let shared = &*self.shared;
        FaultCounts {
            passed: shared.passed.load(Ordering::Relaxed),
            lost: shared.lost.load(Ordering::Relaxed),
            duplicated: shared.duplicated.load(Ordering::Relaxed),
            reordered: shared.reordered.load(Ordering::Relaxed),
        }
    }
}

impl SharedRates {
    fn set(&self, rates: FaultRates) {
        self.loss.store(rates.loss.to_bits(), Ordering::Relaxed);
        self.duplicate
            .store(rates.duplicate.to_bits(), Ordering::Relaxed);
        self.reorder
            .store(rates.reorder.to_bits(), Ordering::Relaxed);
    }

    fn read(&self) -> FaultRates {
        let rate = |bits: &AtomicU64| f64::from_bits(bits.load(Ordering::Relaxed));
        FaultRates {
            loss: rate(&self.loss),
            duplicate: rate(&self.duplicate),
            reorder: rate(&self.reorder),
        }
    }
}
