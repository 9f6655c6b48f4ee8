//! Taran beside the official Java driver and client. Skipped, loudly, where there is no JDK or Maven.

#![expect(clippy::unwrap_used, reason = "a test says by a panic what went wrong")]

mod drivers;
mod exchange;
mod groups;
mod java;
mod pattern;
mod program;
mod victim;

mod between_drivers;
mod clean_up;
mod clients;
mod inspection;
mod lives;
mod local;
mod loss_and_time;
mod names;
mod responses;
mod sources;
mod surface;
