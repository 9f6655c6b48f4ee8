//! Taran beside the official Java driver and client. Skipped, loudly, where there is no JDK or Maven.

#![expect(clippy::unwrap_used, reason = "a test says by a panic what went wrong")]

mod counted;
mod drivers;
mod exchange;
mod groups;
mod java;
#[path = "../namespaces/machines.rs"]
#[expect(dead_code, reason = "a world is wanted here, not the machines in it")]
mod machines;
#[allow(dead_code, reason = "not all of it is wanted here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;
mod pattern;
mod program;
#[path = "../shared/signal.rs"]
mod signal;
mod taran_driver;
mod victim;

mod between_drivers;
mod clean_up;
mod clients;
mod inspection;
mod lives;
mod local;
mod loss_and_time;
mod names;
mod next_ip;
mod responses;
mod slow_receivers;
mod sources;
mod surface;
mod untethered;
