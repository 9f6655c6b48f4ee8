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
mod pattern;
mod program;
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
