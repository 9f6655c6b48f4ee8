// SPDX-License-Identifier: Apache-2.0
//! The checks, in the order of `docs/spec/benchmarks.md` §2.5.

mod cpu;
mod limits;
mod memory;
mod network;
mod noise;
mod storage;

use crate::finding::Finding;
use crate::scene::Scene;

/// Runs all checks.
pub(crate) fn all(scene: &Scene<'_>) -> Vec<Finding> {
    let checks: &[fn(&Scene<'_>) -> Finding] = &[
        cpu::isolated,
        cpu::nohz,
        cpu::rcu,
        cpu::siblings,
        cpu::count,
        cpu::numa,
        cpu::power,
        cpu::clock,
        cpu::machine,
        noise::steal,
        noise::gaps,
        noise::load,
        noise::irq,
        noise::kernel,
        memory::quiet,
        memory::min_free,
        memory::dirty,
        memory::pages,
        network::buffers,
        network::tcp,
        network::drops,
        network::mtu,
        network::nic,
        limits::shm,
        limits::limits,
        storage::kind,
        storage::options,
        storage::space,
        storage::disk,
        limits::perf,
        limits::secrets,
    ];
    checks.iter().map(|check| check(scene)).collect()
}
