// SPDX-License-Identifier: Apache-2.0
//! Processes that die: many clients and drivers are killed, stopped and restarted, at random and at critical moments,
//! while surviving processes are checked. Real processes, real files, real sockets on loopback.
//!
//! `docs/testing.md` describes how to run longer variants.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[path = "../shared/own_address.rs"]
mod own_address;

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

mod churn;
mod death;
mod drivers;
mod fixture;
mod kills;
mod message;
mod observer;
mod pool;
mod publisher_process;
mod resources;
mod stopped;
mod survivor;
mod time_namespaces;
mod victim;
