//! Whole worlds, each told the same story with many seeds.
//!
//! `TARAN_SIM_SEEDS=1000` runs more seeds, `TARAN_SIM_SEED=7` one; a failing run says how to repeat it.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod common;

mod channels;
mod clocks;
mod congestion;
mod counters;
mod damage;
mod deaths;
mod drivers;
mod endings;
mod hardships;
mod hostile;
mod ipc;
mod kinds;
mod limits;
mod moves;
mod names;
mod partitions;
mod provoked_loss;
mod random;
mod receiving;
mod rejections;
mod replay;
mod responses;
mod sending;
mod spies;
mod subscribers;
mod timestamps;
mod unblocking;
mod unicast;
mod withdrawals;
