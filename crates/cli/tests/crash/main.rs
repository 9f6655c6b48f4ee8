//! Processes that die: clients and drivers are killed, stopped and started anew, in great numbers and at bad moments, while
//! others are watched that live through it. Real processes, real files, real sockets on loopback.
//!
//! `docs/testing.md` says how to run more of it than a usual test run does.

#![expect(clippy::unwrap_used, reason = "a test says by a panic what went wrong")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[path = "../shared/own_address.rs"]
mod own_address;

#[allow(dead_code, reason = "not all of it is wanted here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

mod bench;
mod churn;
mod drivers;
mod kills;
mod level;
mod message;
mod observer;
mod pool;
mod stopped;
mod subject;
mod time_namespaces;
mod victim;
mod witness;
