// SPDX-License-Identifier: Apache-2.0
//! Processes of a world.
//!
//! Contract: [`World::spawn`](crate::World::spawn) passes the [`HostEnv`] of a new process to the function that creates
//! it. From then on the world calls [`Process::do_work`] for each of its [`Process::agents`], in random order with all
//! other agents, until the process is killed. [`World::kill`](crate::World::kill) revokes the handles of the
//! environment and calls [`Process::on_kill`]; the object remains readable, and
//! [`World::restart`](crate::World::restart) replaces it.
//!
//! The world jumps to the next deadline if all processes [know theirs](Process::next_deadline_ns).
//!
//! An [`Invariant`] is checked after each step of the world.

mod cycle_context;
#[cfg(test)]
mod disk_tests;
mod host_env;
mod lease;
mod leased_storage;
mod shared;
mod table;
#[cfg(test)]
mod tests;

use std::any::Any;

use crate::World;
use crate::check::Violation;

pub use cycle_context::CycleContext;
pub use host_env::HostEnv;
pub use lease::Lease;

pub(crate) use shared::Shared;
pub(crate) use table::{AgentId, ProcessTable, Slot};

/// Index of a process in the order of creation. A restarted process keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub(crate) usize);

/// A simulated process of the operating system: one or more agents (threads) that die together.
pub trait Process: Any {
    /// Runs one duty cycle of the agent [`CycleContext::agent`]: does the available work without waiting, and returns its
    /// amount.
    ///
    /// # Errors
    /// The process has observed a violated invariant.
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation>;

    /// Adds the numbers of all agents that have duty cycles at present. The default is agent 0. A process that has
    /// ended by itself adds none.
    fn agents(&self, agents: &mut Vec<usize>) {
        agents.push(0);
    }

    /// Returns the next time, in nanoseconds of the clock of its host, at which a duty cycle has something to do although
    /// nothing from outside has changed: no datagram, no shared memory, no call of the world. `i64::MAX` stands for
    /// never. `None`, the default, stands for unknown.
    ///
    /// If all processes of a world know it, the world jumps from one event to the next; a process that has an effect before
    /// its deadline is a violation. Otherwise the world runs duty cycles at short intervals. A time that is too early costs
    /// only time. Called after duty cycles of all agents that had no effect.
    fn next_deadline_ns(&self) -> Option<i64> {
        None
    }

    /// Called when the process is killed, after its handles were revoked.
    ///
    /// Destructors that act on mapped memory, such as those of a [`taran::Client`], act on the memory of other
    /// processes even then: such objects must be kept, and the default keeps the whole process.
    fn on_kill(&mut self) -> AfterKill {
        AfterKill::Keep
    }

    /// Describes the state, for the report of a failure.
    fn describe(&self) -> String;
}

/// Treatment of the object of a killed process that is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterKill {
    /// It is kept until the world ends, because its destructors would act on memory shared with other processes.
    Keep,
    /// It is dropped. Its destructors act only through handles of its [`HostEnv`], which are revoked.
    Drop,
}

/// A property of the whole world, checked after each step. It may keep state from one check to the next.
pub trait Invariant: Any {
    /// Returns the name, for the report of a violation.
    fn name(&self) -> &'static str;

    /// Checks the invariant.
    ///
    /// # Errors
    /// It is violated.
    fn check(&mut self, world: &World) -> Result<(), Violation>;
}
