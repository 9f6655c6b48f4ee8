// SPDX-License-Identifier: Apache-2.0
//! Checks of a machine: kernel command line, CPUs, memory, network, disks and limits, against what low latency needs
//! (`docs/spec/benchmarks.md` §2.5, `docs/machine.md`).
//!
//! [`examine`] reads files of `/proc` and `/sys` through a [`Machine`], changes nothing, needs no privileges, and says
//! what it could not see. [`Report`] shows the findings, [`fix_script`] prints commands that mend them.

#![forbid(unsafe_code)]

mod checks;
mod counters;
mod cpu_list;
mod finding;
mod fix_script;
mod machine;
mod mounts;
mod plan;
mod recorded;
mod scene;

pub use counters::{Change, Counters};
pub use cpu_list::CpuList;
pub use finding::{Finding, Level, Mend, Report};
pub use fix_script::fix_script;
pub use machine::{Gaps, LiveMachine, Machine, Space};
pub use plan::{Plan, Profile, Purpose};
pub use recorded::{ParseError, RecordedMachine, Recorder};
pub use scene::is_interface_name;

use scene::Scene;

/// Examines a machine: two samples of the kernel's counters with a wait between them, then the gaps of the CPUs, then
/// all checks. Takes twice [`Plan::probe`].
#[must_use]
pub fn examine(machine: &dyn Machine, plan: &Plan) -> Report {
    let scene = Scene::observe(machine, plan);
    let findings = checks::all(&scene);
    Report::new(
        scene.profile(),
        scene.cpus().to_vec(),
        scene.interface(),
        findings,
    )
}
