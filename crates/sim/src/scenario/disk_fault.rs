// SPDX-License-Identifier: Apache-2.0
//! Faults of disks, as operations that any suite can add.

use serde::{Deserialize, Serialize};
use taran_storage::Operation as DiskOperation;

use super::{Operation, Setting};
use crate::disk::{DiskFaults, DiskSpeed};
use crate::{HostIndex, World};

/// Highest number of faults in a scenario.
const FAULTS: usize = 12;
/// Bytes that a full disk may have left.
const LEFT: u64 = 64 << 10;
/// Slowest disk, as a multiple of normal durations.
const SLOWEST: u32 = 200;
/// Longest stall in milliseconds.
const LONGEST_STALL_MS: u64 = 2_000;

/// A fault of the disk of a host that loses nothing that was synced. All end with the operations of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields say which, and how much")]
pub enum DiskFault {
    /// The next operation of a kind fails with EIO.
    FailNext { host: usize, operation: Failing },
    /// Operations of a kind fail with EIO, at this rate per mille; 0 ends that.
    SetErrorRate {
        host: usize,
        operation: Failing,
        per_mille: u32,
    },
    /// The disk is full but for some bytes: operations that need more fail with ENOSPC.
    Fill { host: usize, left_bytes: u64 },
    /// The disk has its original size again.
    Grow { host: usize },
    /// Queued operations take this multiple of their normal duration; 1 ends that.
    Slow { host: usize, factor: u32 },
    /// Queued operations stall at this rate per mille; 0 ends that.
    SetStalls {
        host: usize,
        per_mille: u32,
        longest_ms: u64,
    },
}

/// A kind of operation of a disk that can fail with EIO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failing {
    /// Reading.
    Read,
    /// Writing, after any part of it.
    Write,
    /// Syncing a file: its unsynced pages are gone, and the next sync succeeds, as on Linux.
    Sync,
    /// Syncing a directory.
    SyncDirectory,
}

impl Failing {
    const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Sync, Self::SyncDirectory];

    fn operation(self) -> DiskOperation {
        match self {
            Self::Read => DiskOperation::Read,
            Self::Write => DiskOperation::Write,
            Self::Sync => DiskOperation::Sync,
            Self::SyncDirectory => DiskOperation::SyncDirectory,
        }
    }

    fn rate(self, faults: &mut DiskFaults) -> &mut f64 {
        match self {
            Self::Read => &mut faults.read_error,
            Self::Write => &mut faults.write_error,
            Self::Sync => &mut faults.sync_error,
            Self::SyncDirectory => &mut faults.directory_sync_error,
        }
    }
}

/// Returns the host with a number, if it exists and the scenario was not shrunk to fewer.
fn host(world: &World, number: usize) -> Option<HostIndex> {
    (number < world.host_count()).then(|| HostIndex::at(number))
}

impl Operation for DiskFault {
    const NAME: &'static str = "disk fault";

    /// Some scenarios have none, the others some of the kinds.
    fn generate(random: &mut fastrand::Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let is_allowed: [bool; 4] = std::array::from_fn(|_| random.bool());
        let mut fault = || {
            let at_ms = random.u64(0..=setting.duration_ms);
            let host = random.usize(0..setting.hosts);
            let operation = Failing::ALL[random.usize(0..4)];
            let kind = random.usize(0..4);
            let ends = random.bool();
            let magnitude = random.u32(0..=LEFT.ilog2());
            let fault = match kind {
                0 => Self::FailNext { host, operation },
                1 if ends => Self::Grow { host },
                1 => Self::Fill {
                    host,
                    left_bytes: random.u64(0..=1 << magnitude),
                },
                2 => Self::SetErrorRate {
                    host,
                    operation,
                    per_mille: if ends { 0 } else { random.u32(1..=500) },
                },
                _ if random.bool() => Self::Slow {
                    host,
                    factor: if ends { 1 } else { random.u32(2..=SLOWEST) },
                },
                _ => Self::SetStalls {
                    host,
                    per_mille: if ends { 0 } else { random.u32(1..=200) },
                    longest_ms: random.u64(1..=LONGEST_STALL_MS),
                },
            };
            is_allowed[kind].then_some((at_ms, fault))
        };
        (0..FAULTS).filter_map(|_| fault()).collect()
    }

    fn apply(&self, world: &mut World) -> bool {
        let (Self::FailNext { host: number, .. }
        | Self::SetErrorRate { host: number, .. }
        | Self::Fill { host: number, .. }
        | Self::Grow { host: number }
        | Self::Slow { host: number, .. }
        | Self::SetStalls { host: number, .. }) = *self;
        let Some(host) = host(world, number) else {
            return false;
        };
        let disk = world.disk(host);
        match *self {
            Self::FailNext { operation, .. } => disk.fail_next(operation.operation()),
            Self::SetErrorRate {
                operation,
                per_mille,
                ..
            } => {
                let rate = f64::from(per_mille) / 1_000.0;
                disk.change_faults(|faults| *operation.rate(faults) = rate);
            }
            Self::Fill { left_bytes, .. } => disk.fill(left_bytes),
            Self::Grow { .. } => disk.restore_capacity(),
            Self::Slow { factor, .. } => {
                let normal = DiskSpeed::default();
                let factor = i64::from(factor);
                disk.set_speed(DiskSpeed {
                    operation_ns: normal.operation_ns * factor,
                    page_ns: normal.page_ns * factor,
                    sync_ns: normal.sync_ns * factor,
                });
            }
            Self::SetStalls {
                per_mille,
                longest_ms,
                ..
            } => disk.change_faults(|faults| {
                faults.stall = f64::from(per_mille) / 1_000.0;
                faults.stall_ns =
                    i64::try_from(longest_ms.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
            }),
        }
        true
    }

    fn simpler(&self) -> Vec<Self> {
        match *self {
            // One failure is simpler than a rate of them.
            Self::SetErrorRate {
                host,
                operation,
                per_mille,
            } if per_mille > 0 => vec![Self::FailNext { host, operation }],
            Self::Fill { host, left_bytes } if left_bytes > 0 => {
                let left_bytes = left_bytes / 2;
                vec![Self::Fill { host, left_bytes }]
            }
            Self::Slow { host, factor } if factor > 1 => {
                let factor = factor / 2;
                vec![Self::Slow { host, factor }]
            }
            Self::SetStalls {
                host,
                per_mille,
                longest_ms,
            } if longest_ms > 1 => vec![Self::SetStalls {
                host,
                per_mille,
                longest_ms: longest_ms / 2,
            }],
            _ => Vec::new(),
        }
    }
}

/// A flipped bit on the disk of a host. It is an operation of its own, since it also damages what was synced: only programs
/// that detect or repair that keep their guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitRot {
    /// Number of the host.
    pub host: usize,
}

impl Operation for BitRot {
    const NAME: &'static str = "bit rot";

    fn generate(random: &mut fastrand::Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let mut rot = || {
            let host = random.usize(0..setting.hosts);
            (random.u64(0..=setting.duration_ms), Self { host })
        };
        // Several, because most may hit bytes that nothing reads.
        (0..FAULTS).map(|_| rot()).collect()
    }

    fn apply(&self, world: &mut World) -> bool {
        host(world, self.host).is_some_and(|host| world.disk(host).rot())
    }
}
