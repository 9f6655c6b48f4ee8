// SPDX-License-Identifier: Apache-2.0
//! Scenarios on whole worlds, each run with many seeds.
//!
//! `TARAN_SIM_SEEDS=1000` runs more seeds, `TARAN_SIM_SEED=7` one; a failing run prints how to repeat it.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod common;

mod channels;
mod client_deaths;
mod clocks;
mod congestion;
mod counters;
mod damage;
mod drivers;
mod fault_matrix;
mod hostile;
mod ipc;
mod limits;
mod names;
mod partitions;
mod provoked_loss;
mod random;
mod raw_polls;
mod receiving;
mod reconnecting;
mod rejections;
mod relocation;
mod replay;
mod responses;
mod secured;
mod secured_services;
mod sending;
mod spies;
mod stream_ends;
mod stream_kinds;
mod subscribers;
mod timestamps;
mod unblocking;
mod unicast;
mod withdrawals;
