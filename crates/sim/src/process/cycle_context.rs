// SPDX-License-Identifier: Apache-2.0
//! Context of one duty cycle of an agent of a process.

use taran_core::clock::Now;

use super::{HostEnv, Shared};
use crate::history::{Event, History};
use crate::traffic::Ledger;

/// Context of one duty cycle of an agent: time, environment and records, lent by the world.
pub struct CycleContext<'w> {
    pub(crate) agent: usize,
    pub(crate) now: Now,
    /// Time of the world, without the offset of the host.
    pub(crate) world_ns: i64,
    pub(crate) env: &'w mut HostEnv,
    pub(crate) history: &'w mut History,
    pub(crate) ledger: &'w mut Ledger,
    pub(crate) shared: &'w mut Shared,
}

impl CycleContext<'_> {
    /// Returns the number of the agent.
    #[must_use]
    pub fn agent(&self) -> usize {
        self.agent
    }

    /// Returns the time as the host sees it.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Returns the environment of the process.
    pub fn env(&mut self) -> &mut HostEnv {
        self.env
    }

    /// Returns the record of this type that processes, operations and invariants of the world share, such as what was
    /// acknowledged to users. The first call creates it.
    pub fn shared<T: std::any::Any + Default>(&mut self) -> &mut T {
        self.shared.get_mut()
    }

    /// Records an event in the history of the world, which is part of the fingerprint and printed at a failure. Duty
    /// cycles with work are recorded by the world.
    pub fn record(&mut self, name: &'static str, value: i64) {
        let process = self.env.process().0;
        let event = Event::Note {
            process,
            name,
            value,
        };
        self.history.record(self.world_ns, event);
    }
}
