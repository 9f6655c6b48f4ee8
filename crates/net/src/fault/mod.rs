// SPDX-License-Identifier: Apache-2.0
//! A layer that injects faults: loss, duplication and reordering.
//!
//! [`FaultLayer`] applies to every transport of a network. Each transport draws a random number for each datagram, also inside batches,
//! separately for the two directions. The numbers come from a seed, and each datagram that is sent or received takes
//! exactly one, so the same traffic suffers the same faults.

mod reorder_buffer;
mod rng;
#[cfg(test)]
mod tests;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{NetworkLayer, SocketSpec, TransportLayer};
use transport::TransportFaults;

/// Probabilities of the faults of a datagram, each from 0 (never) to 1 (always). Their sum is at most 1: a datagram
/// suffers at most one fault. Exhaustive: tests state the whole mixture of faults.
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

/// Initial faults of a [`FaultLayer`]. Exhaustive, as [`FaultRates`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultSpec {
    /// Faults of received datagrams.
    pub incoming: FaultRates,
    /// Faults of sent datagrams.
    pub outgoing: FaultRates,
    /// Seed of the random numbers. Print it when a test fails.
    pub seed: u64,
}

/// Numbers of datagrams of all transports of a [`FaultLayer`], by what happened to them. Each datagram is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    passed: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
}

impl FaultCounts {
    /// Returns the number of datagrams that passed unchanged.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Returns the number of datagrams that were dropped.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of datagrams that were duplicated.
    #[must_use]
    pub fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Returns the number of datagrams that were delayed behind others.
    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.reordered
    }
}

/// A layer that drops, duplicates and reorders datagrams of every transport.
#[derive(Debug)]
pub struct FaultLayer {
    seed: u64,
    opened: u64,
    control: FaultControl,
}

impl FaultLayer {
    /// Creates the layer.
    #[must_use]
    pub fn new(spec: FaultSpec) -> Self {
        let control = FaultControl::default();
        control.set_incoming(spec.incoming);
        control.set_outgoing(spec.outgoing);
        Self {
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

impl NetworkLayer for FaultLayer {
    fn layer(&mut self, _spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
        // Each transport has its own generators, so that its faults do not depend on the traffic of other transports.
        let mut seeds = fastrand::Rng::with_seed(self.seed.wrapping_add(self.opened));
        self.opened += 1;
        Some(Box::new(TransportFaults::new(
            &self.control,
            seeds.fork(),
            seeds.fork(),
        )))
    }
}

/// Changes the faults of a [`FaultLayer`] at run time. Clones refer to the same layer.
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
