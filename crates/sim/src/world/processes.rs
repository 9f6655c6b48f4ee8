// SPDX-License-Identifier: Apache-2.0
//! Processes of the world: starting, killing, stalling, access.

use std::any::Any;
use std::convert::Infallible;
use std::time::Duration;

use taran_core::clock::saturating_nanos;

use super::{HostIndex, World};
use crate::process::{HostEnv, Invariant, Process, ProcessId};

impl World {
    /// Starts a process on a host: `start` creates it from its environment.
    ///
    /// # Panics
    /// If the host has no power.
    pub fn spawn<P: Process>(
        &mut self,
        host: HostIndex,
        start: impl FnOnce(&mut HostEnv) -> P,
    ) -> ProcessId {
        let spawned = self.try_spawn(host, |env| Ok::<_, Infallible>(start(env)));
        match spawned {
            Ok(id) => id,
            Err(never) => match never {},
        }
    }

    /// Starts a process that may fail to start.
    ///
    /// # Errors
    /// The error of `start`; then no process was added.
    ///
    /// # Panics
    /// If the host has no power.
    pub fn try_spawn<P: Process, E>(
        &mut self,
        host: HostIndex,
        start: impl FnOnce(&mut HostEnv) -> Result<P, E>,
    ) -> Result<ProcessId, E> {
        let id = self.processes.next_id();
        let (process, env) = self.start_process(id, host, start)?;
        self.processes.add(process, env);
        self.record_op("spawn", id.0);
        Ok(id)
    }

    /// Starts a dead process again on its host, with a new environment.
    ///
    /// # Panics
    /// If it is alive, or its host has no power.
    pub fn restart<P: Process>(&mut self, id: ProcessId, start: impl FnOnce(&mut HostEnv) -> P) {
        match self.try_restart(id, |env| Ok::<_, Infallible>(start(env))) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }

    /// Starts a dead process again, which may fail to start.
    ///
    /// # Errors
    /// The error of `start`; then the process remains dead.
    ///
    /// # Panics
    /// If it is alive, or its host has no power.
    pub fn try_restart<P: Process, E>(
        &mut self,
        id: ProcessId,
        start: impl FnOnce(&mut HostEnv) -> Result<P, E>,
    ) -> Result<(), E> {
        let host = self.processes.slot(id).env.host();
        let (process, env) = self.start_process(id, host, start)?;
        self.processes.replace(process, env);
        self.record_op("restart", id.0);
        Ok(())
    }

    fn start_process<P: Process, E>(
        &mut self,
        id: ProcessId,
        host: HostIndex,
        start: impl FnOnce(&mut HostEnv) -> Result<P, E>,
    ) -> Result<(Box<dyn Process>, HostEnv), E> {
        assert!(self.is_on(host), "host {} has no power: boot it", host.0);
        let parts = self.hosts[host.0].parts(&self.names);
        let mut env = HostEnv::new(id, host, parts, self.random.fork());
        match start(&mut env) {
            Ok(process) => Ok((Box::new(process), env)),
            Err(error) => {
                env.revoke_all();
                Err(error)
            }
        }
    }

    /// Kills a process like `kill -9`: no code of it runs any more, its handles are revoked, its files remain. Returns
    /// false if it was dead.
    pub fn kill(&mut self, id: ProcessId) -> bool {
        let was_alive = self.processes.kill(id);
        if was_alive {
            self.record_op("kill", id.0);
        }
        was_alive
    }

    /// Pauses all agents of a process, like `SIGSTOP`. A pause of zero resumes them.
    pub fn stall(&mut self, id: ProcessId, pause: Duration) {
        self.record_op("stall", id.0);
        let until_ns = self.world_ns() + saturating_nanos(pause);
        self.processes.slot_mut(id).stalled_until_ns = until_ns;
    }

    /// Returns true until a process is killed.
    #[must_use]
    pub fn is_alive(&self, id: ProcessId) -> bool {
        self.processes.slot(id).is_alive
    }

    /// Returns the host of a process.
    #[must_use]
    pub fn host_of_process(&self, id: ProcessId) -> HostIndex {
        self.processes.slot(id).env.host()
    }

    /// Returns a process, dead or alive.
    ///
    /// # Panics
    /// If it has another type.
    #[must_use]
    pub fn process<P: Process>(&self, id: ProcessId) -> &P {
        self.processes.slot(id).expect()
    }

    /// Returns a process for changes.
    ///
    /// # Panics
    /// If it has another type.
    pub fn process_mut<P: Process>(&mut self, id: ProcessId) -> &mut P {
        self.disturb();
        self.processes.slot_mut(id).expect_mut()
    }

    /// Returns all processes of a type, dead ones too, in the order of creation.
    pub fn processes<P: Process>(&self) -> impl Iterator<Item = (ProcessId, &P)> {
        let slots = self.processes.slots();
        slots.filter_map(|(id, slot)| Some((id, slot.get()?)))
    }

    // --- records and invariants ---

    /// Returns the record of this type that processes, operations and invariants share, if any has created it.
    #[must_use]
    pub fn shared<T: Any>(&self) -> Option<&T> {
        self.shared.get()
    }

    /// Returns the record of this type for changes. The first call creates it.
    pub fn shared_mut<T: Any + Default>(&mut self) -> &mut T {
        self.disturb();
        self.shared.get_mut()
    }

    /// Adds an invariant that is checked after each step from now on.
    pub fn add_invariant(&mut self, invariant: impl Invariant) {
        self.invariants.push(Box::new(invariant));
    }

    /// Checks all added invariants.
    ///
    /// # Panics
    /// If one is violated.
    pub(super) fn check_invariants(&mut self) {
        if self.invariants.is_empty() {
            return;
        }
        let mut invariants = std::mem::take(&mut self.invariants);
        for invariant in &mut invariants {
            if let Err(violation) = invariant.check(self) {
                let name = invariant.name();
                panic!("{name}: {violation}\n{}", self.describe());
            }
        }
        self.invariants = invariants;
    }
}
