// SPDX-License-Identifier: Apache-2.0
//! Faults and durations of a simulated disk.

use taran_storage::{Operation, ServiceTime, ServiceTimes};

use super::SimDisk;

/// Faults of a disk, as probabilities per operation from 0 to 1. The default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskFaults {
    /// A read fails with EIO.
    pub read_error: f64,
    /// A write fails with EIO, after any part of it.
    pub write_error: f64,
    /// A sync of a file fails with EIO. Its unsynced pages are gone then, and the next sync succeeds, as on Linux.
    pub sync_error: f64,
    /// A sync of a directory fails with EIO. Its names stay unsynced.
    pub directory_sync_error: f64,
    /// An operation of the asynchronous queue stalls.
    pub stall: f64,
    /// Longest stall in nanoseconds.
    pub stall_ns: i64,
}

/// Durations of operations of the asynchronous queue in nanoseconds. The actual one is between half and twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpeed {
    /// Any operation.
    pub operation_ns: i64,
    /// Transfer of 4 KiB.
    pub page_ns: i64,
    /// Sync of a file or directory.
    pub sync_ns: i64,
}

impl Default for DiskSpeed {
    /// A drive with a volatile cache.
    fn default() -> Self {
        Self {
            operation_ns: 5_000,
            page_ns: 2_000,
            sync_ns: 800_000,
        }
    }
}

/// Durations of a simulated disk, for an [`InlineQueue`](taran_storage::InlineQueue).
#[derive(Clone, Debug)]
pub struct DiskTimes(pub(super) SimDisk);

impl ServiceTimes for DiskTimes {
    fn service_time(&mut self, operation: Operation, len: usize, _: i64) -> ServiceTime {
        let mut state = self.0.lock();
        let speed = state.speed;
        let pages = i64::try_from(len.div_ceil(4096)).unwrap_or(i64::MAX);
        let mut nominal = speed
            .operation_ns
            .saturating_add(speed.page_ns.saturating_mul(pages));
        if matches!(operation, Operation::Sync | Operation::SyncDirectory) {
            nominal = nominal.saturating_add(speed.sync_ns);
        }
        let mut completion_ns = nominal / 2 + state.rng.i64(0..=nominal.max(0) / 2 * 3);
        let stall = state.faults.stall;
        if stall > 0.0 && state.rng.f64() < stall {
            let longest = state.faults.stall_ns.max(0);
            completion_ns = completion_ns.saturating_add(state.rng.i64(0..=longest));
        }
        let effect_ns = state.rng.i64(0..=completion_ns.max(0));
        ServiceTime::new(effect_ns, completion_ns)
    }
}
