// SPDX-License-Identifier: Apache-2.0
//! Models of the lock-free pieces: loom runs each under every interleaving, within its bound of preemptions, and with
//! every value that the memory model lets a load return.
//!
//! `cargo xtask loom`, or `RUSTFLAGS="--cfg loom" cargo test -p taran-core --test loom --release --target-dir
//! target/loom`. A model opens everything before it spawns (see `memory/model.rs`), never spins, and is small: a ring
//! of 32 bytes wraps as well as one of a megabyte.
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // test code only

mod agent_waker;
mod broadcast;
mod counters;
mod many_to_one;
mod one_to_one;
mod queue;

/// Explores a model with up to `preemptions` switches away from a runnable thread.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}
