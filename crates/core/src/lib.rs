//! Shared memory, rings, counters, agents and clocks: what Taran is built on.

pub mod affinity;
pub mod agent;
pub mod clock;
pub mod idle;
