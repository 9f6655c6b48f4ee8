// SPDX-License-Identifier: Apache-2.0
//! Shared memory, ring buffers, counters, agents and clocks.
//!
//! This crate has no knowledge of message semantics. All `unsafe` code for memory shared between processes is here, so
//! that the crates above can forbid it.
//!
//! Taran runs on Linux only.

#[cfg(not(target_os = "linux"))]
compile_error!("Taran runs on Linux only");

pub mod affinity;
pub mod agent;
mod ascii;
pub mod broadcast;
pub mod clock;
pub mod counters;
mod debug_is_display;
pub mod debugger;
pub mod directory;
pub mod error_log;
pub mod idle;
pub mod interface;
pub mod loss_report;
pub mod memory;
pub mod queue;
mod records;
pub mod ring;
pub mod sync;
