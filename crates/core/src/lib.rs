//! Shared memory, rings, counters, agents and clocks: what Taran is built on.
