// SPDX-License-Identifier: Apache-2.0
//! Operations on a log writer in random worlds, beside power cuts and faults of its disk.

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use super::journal::{Appended, Journal};
use super::process::{LogWriterProcess, restart};
use crate::scenario::{Operation, Setting};
use crate::{ProcessId, World};

/// Highest number of appends in a scenario.
const APPENDS: usize = 14;
/// Highest number of kills in a scenario.
const KILLS: usize = 3;

/// Returns the writer that is alive.
fn writer(world: &World) -> Option<ProcessId> {
    let mut writers = world.processes::<LogWriterProcess>();
    let found = writers.find(|(id, _)| world.is_alive(*id));
    found.map(|(id, _)| id)
}

/// Appends a record of up to this length. Returns false if there is no writer that accepts it.
pub(super) fn append(world: &mut World, longest: usize) -> bool {
    let Some(id) = writer(world) else {
        return false;
    };
    let record = Appended::random(world.random(), longest);
    let process = world.process_mut::<LogWriterProcess>(id);
    let is_accepted = process.append(record.payload());
    if is_accepted {
        world.shared_mut::<Journal>().on_append(record);
    }
    is_accepted
}

/// Appends records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Append {
    /// Number of records.
    pub count: u32,
    /// Longest payload in bytes.
    pub longest: usize,
}

impl Operation for Append {
    const NAME: &'static str = "append";

    fn generate(random: &mut Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let mut append = || {
            let append = Self {
                count: random.u32(1..12),
                longest: [16, 100, 1024][random.usize(0..3)],
            };
            (random.u64(0..=setting.duration_ms), append)
        };
        (0..APPENDS).map(|_| append()).collect()
    }

    fn apply(&self, world: &mut World) -> bool {
        (0..self.count).all(|_| append(world, self.longest))
    }

    fn simpler(&self) -> Vec<Self> {
        let Self { count, longest } = *self;
        if count == 1 {
            return Vec::new();
        }
        let count = count / 2;
        vec![Self { count, longest }]
    }
}

/// Kills the writer, and starts it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillWriter {}

impl Operation for KillWriter {
    const NAME: &'static str = "kill writer";

    fn generate(random: &mut Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let count = random.usize(0..=KILLS);
        (0..count)
            .map(|_| (random.u64(0..=setting.duration_ms), Self {}))
            .collect()
    }

    fn apply(&self, world: &mut World) -> bool {
        let Some(id) = writer(world) else {
            return false;
        };
        world.kill(id);
        restart(world, id);
        true
    }
}
