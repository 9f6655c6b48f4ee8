// SPDX-License-Identifier: Apache-2.0
//! Interoperation with the official Java driver and client. Skipped, with a message, if there is no JDK or Maven.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

mod counted;
mod drivers;
mod exchange;
mod groups;
mod java;
#[path = "../namespaces/machines.rs"]
#[expect(
    dead_code,
    reason = "only the namespaces are used here, not the machines"
)]
mod machines;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;
mod pattern;
mod program;
#[path = "../shared/signal.rs"]
mod signal;
mod taran_driver;
mod victim;

mod archive_client;
mod archive_files;
mod archive_takeovers;
mod archives;
mod archiving_drivers;
mod between_drivers;
mod clean_up;
mod clients;
mod clusters;
mod histories;
mod inspection;
mod local;
mod loss_and_time;
mod names;
mod next_ip;
mod replications;
mod responses;
mod slow_receivers;
mod sources;
mod stream_ends;
mod surface;
mod takeovers;
mod untethered;
