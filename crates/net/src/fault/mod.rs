//! A network that loses, repeats and reorders on purpose.
//!
//! [`Faulty`] wraps any network; each of its transports throws dice for each datagram, also inside trains, separately for
//! the two directions. The dice come from a seed, and each datagram that is sent or received takes exactly one throw, so
//! the same traffic meets the same faults.

mod dice;
mod held;
#[cfg(test)]
mod tests;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{BufferLimits, Interface, NetError, Network, SocketSpec, Transport};
use transport::FaultyTransport;

/// How often which fault befalls a datagram, each from 0 (never) to 1 (always). Their sum is at most 1: a datagram
/// suffers one fault.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultRates {
    /// The datagram never arrives.
    pub loss: f64,
    /// The datagram arrives twice.
    pub duplicate: f64,
    /// The datagram is held back and arrives behind one to eight later ones.
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

/// Which faults a [`Faulty`] network begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultSpec {
    /// Faults of what arrives.
    pub incoming: FaultRates,
    /// Faults of what is sent.
    pub outgoing: FaultRates,
    /// Where chance comes from. Print it when a test fails.
    pub seed: u64,
}

/// How many datagrams a [`Faulty`] network, all transports together, treated in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Those that went on as they were.
    pub passed: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Those that were repeated.
    pub duplicated: u64,
    /// Those that were held back.
    pub reordered: u64,
}

/// A network whose transports lose, repeat and reorder datagrams.
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
        // Each transport has dice of its own, so that the faults of one do not depend on the traffic of another.
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

/// Changes the faults of a [`Faulty`] network at run time. Clones are the same handle.
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

/// [`FaultRates`] as bits, so that transports on other threads can read them. They need not change all at once.
#[derive(Debug, Default)]
struct SharedRates {
    loss: AtomicU64,
    duplicate: AtomicU64,
    reorder: AtomicU64,
}

impl FaultControl {
    /// Sets the faults of what arrives from now on.
    pub fn set_incoming(&self, rates: FaultRates) {
        self.shared.incoming.set(rates);
    }

    /// Sets the faults of what is sent from now on.
    pub fn set_outgoing(&self, rates: FaultRates) {
        self.shared.outgoing.set(rates);
    }

    /// What was done so far.
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
