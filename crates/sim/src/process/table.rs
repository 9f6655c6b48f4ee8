// SPDX-License-Identifier: Apache-2.0
//! All processes of a world.

use std::any::{Any, type_name};

use super::{AfterKill, HostEnv, Process, ProcessId};
use crate::HostIndex;

/// An agent of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentId {
    pub(crate) process: ProcessId,
    pub(crate) agent: usize,
}

/// A process with its environment.
pub(crate) struct Slot {
    pub(crate) process: Box<dyn Process>,
    pub(crate) env: HostEnv,
    pub(crate) is_alive: bool,
    /// Until this time of the world none of its agents runs.
    pub(crate) stalled_until_ns: i64,
    /// The last change of the world that each agent has seen in a duty cycle that changed nothing, by the agent's number.
    seen: Vec<u64>,
    after_kill: AfterKill,
    /// Objects of earlier runs whose destructors must not act while the world runs.
    kept: Vec<Box<dyn Process>>,
}

/// The processes, in the order of creation.
#[derive(Default)]
pub(crate) struct ProcessTable {
    slots: Vec<Slot>,
    /// Buffer of [`agents`](Self::agents).
    numbers: Vec<usize>,
}

impl ProcessTable {
    /// Returns the id of the next process.
    pub(crate) fn next_id(&self) -> ProcessId {
        ProcessId(self.slots.len())
    }

    /// Adds a process; its environment has the [next id](Self::next_id).
    pub(crate) fn add(&mut self, process: Box<dyn Process>, env: HostEnv) {
        debug_assert_eq!(env.process(), self.next_id());
        self.slots.push(Slot {
            process,
            env,
            is_alive: true,
            stalled_until_ns: 0,
            seen: Vec::new(),
            after_kill: AfterKill::Keep,
            kept: Vec::new(),
        });
    }

    /// Replaces a dead process.
    pub(crate) fn replace(&mut self, process: Box<dyn Process>, env: HostEnv) {
        let slot = &mut self.slots[env.process().0];
        assert!(!slot.is_alive, "{:?} is alive", env.process());
        let before = std::mem::replace(&mut slot.process, process);
        if slot.after_kill == AfterKill::Keep {
            slot.kept.push(before);
        }
        (slot.env, slot.is_alive, slot.stalled_until_ns) = (env, true, 0);
        slot.seen.clear();
    }

    /// Kills a process. Returns false if it is dead.
    pub(crate) fn kill(&mut self, id: ProcessId) -> bool {
        let slot = &mut self.slots[id.0];
        if !slot.is_alive {
            return false;
        }
        slot.is_alive = false;
        slot.env.revoke_all();
        slot.after_kill = slot.process.on_kill();
        true
    }

    pub(crate) fn slot(&self, id: ProcessId) -> &Slot {
        &self.slots[id.0]
    }

    pub(crate) fn slot_mut(&mut self, id: ProcessId) -> &mut Slot {
        &mut self.slots[id.0]
    }

    /// Returns all processes with their ids, dead ones too.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (ProcessId, &Slot)> {
        let slots = self.slots.iter().enumerate();
        slots.map(|(index, slot)| (ProcessId(index), slot))
    }

    /// Stalls all processes of a host.
    pub(crate) fn stall_host(&mut self, host: HostIndex, until_ns: i64) {
        for slot in &mut self.slots {
            if slot.env.host() == host {
                slot.stalled_until_ns = until_ns;
            }
        }
    }

    /// Returns true if the last duty cycle of each agent that runs at this time changed nothing, and came after this change
    /// of the world.
    pub(crate) fn have_seen(&mut self, change: u64, now_ns: i64) -> bool {
        let numbers = &mut self.numbers;
        self.slots.iter().all(|slot| {
            if !slot.is_alive || now_ns < slot.stalled_until_ns {
                return true;
            }
            slot.process.agents(numbers);
            let has_seen = |number: usize| slot.seen.get(number) == Some(&change);
            numbers.drain(..).all(has_seen)
        })
    }

    /// Adds all agents with duty cycles.
    pub(crate) fn agents(&mut self, agents: &mut Vec<AgentId>) {
        for (index, slot) in self.slots.iter().enumerate() {
            if !slot.is_alive {
                continue;
            }
            slot.process.agents(&mut self.numbers);
            let process = ProcessId(index);
            let numbers = self.numbers.drain(..);
            agents.extend(numbers.map(|agent| AgentId { process, agent }));
        }
    }
}

impl Slot {
    /// Records a duty cycle of an agent that changed nothing, after this change of the world.
    pub(crate) fn record_idle(&mut self, agent: usize, change: u64) {
        if self.seen.len() <= agent {
            self.seen.resize(agent + 1, u64::MAX);
        }
        self.seen[agent] = change;
    }

    /// Returns the process, if it has this type.
    pub(crate) fn get<P: Process>(&self) -> Option<&P> {
        let process: &dyn Any = &*self.process;
        process.downcast_ref()
    }

    /// Returns the process.
    ///
    /// # Panics
    /// If it has another type.
    pub(crate) fn expect<P: Process>(&self) -> &P {
        match self.get() {
            Some(process) => process,
            None => panic!("{:?} is no {}", self.env.process(), type_name::<P>()),
        }
    }

    /// Returns the process for changes.
    ///
    /// # Panics
    /// If it has another type.
    pub(crate) fn expect_mut<P: Process>(&mut self) -> &mut P {
        let id = self.env.process();
        let process: &mut dyn Any = &mut *self.process;
        match process.downcast_mut() {
            Some(process) => process,
            None => panic!("{id:?} is no {}", type_name::<P>()),
        }
    }
}
