// SPDX-License-Identifier: Apache-2.0
//! Verbs that change the files of a member that is stopped.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use taran_cluster::files::{MARK_LIVENESS_TIMEOUT_MS, RecordingLog};
use taran_storage::{Disk as _, DiskLock, OsDisk};

use super::node::{find_mark, recording_log};
use super::{Plan, Stored};
use crate::failure::Failure;
use crate::output;

#[derive(Serialize)]
struct Done {
    action: &'static str,
    /// False if there was nothing to do.
    changed: bool,
}

fn other(error: &dyn std::fmt::Display) -> Failure {
    Failure::Other(error.to_string())
}

/// Takes the lock of a directory whose member is stopped.
fn lock(dir: &Path) -> Result<DiskLock, Failure> {
    let lock = OsDisk.try_lock(dir).map_err(|error| {
        if error.is_locked() {
            let text = format!("a member runs in {}: stop it first", dir.display());
            return Failure::Other(text);
        }
        other(&error)
    })?;
    // Official members take no lock.
    if let Some((path, mark, _)) = find_mark(dir)? {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let age = now_ms.saturating_sub(mark.activity_timestamp);
        let is_active = mark.activity_timestamp >= 0 && age < MARK_LIVENESS_TIMEOUT_MS;
        // The process may be in another PID namespace, so its absence says nothing.
        if is_active {
            return Err(Failure::Other(format!(
                "{} was active {age} ms ago: stop the member (pid {}) first; if it was killed, try again \
                 {MARK_LIVENESS_TIMEOUT_MS} ms after that",
                path.display(),
                mark.pid
            )));
        }
    }
    Ok(lock)
}

fn done(stored: &Stored, action: &'static str, changed: bool, text: &str) -> Result<(), Failure> {
    if stored.json {
        output::json(&Done { action, changed })
    } else {
        output::text(&format!("{text}\n"))
    }
}

/// Replaces the recording log by another one, durably.
fn replace(path: &Path, log: &RecordingLog) -> Result<(), Failure> {
    let new = path.with_extension("log.tmp");
    let write = || {
        fs::write(&new, log.to_bytes())?;
        fs::File::open(&new)?.sync_all()?;
        fs::rename(&new, path)?;
        path.parent()
            .map_or(Ok(()), |dir| fs::File::open(dir)?.sync_all())
    };
    write().map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))
}

/// Marks the latest snapshot invalid.
pub(super) fn invalidate_latest_snapshot(stored: &Stored) -> Result<ExitCode, Failure> {
    let _lock = lock(&stored.dir)?;
    let (path, mut log) = recording_log(&stored.dir)?;
    let changed = !log.invalidate_latest_snapshot().is_empty();
    if changed {
        replace(&path, &log)?;
    }
    let text = if changed {
        "the latest snapshot is invalid now"
    } else {
        "there is no valid snapshot"
    };
    done(stored, "INVALIDATE_LATEST_SNAPSHOT", changed, text)?;
    Ok(if changed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Writes the recording log in order.
pub(super) fn sort(stored: &Stored) -> Result<ExitCode, Failure> {
    let _lock = lock(&stored.dir)?;
    let (path, log) = recording_log(&stored.dir)?;
    let sorted = log.sorted();
    let changed = !sorted.entries().eq(log.entries());
    if changed {
        replace(&path, &sorted)?;
    }
    let text = if changed {
        "the recording log is sorted now"
    } else {
        "the recording log was sorted already"
    };
    done(stored, "SORT_RECORDING_LOG", changed, text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a recording log with the latest snapshot only; the log before is kept beside it.
pub(super) fn seed(plan: &Plan) -> Result<ExitCode, Failure> {
    let stored = &plan.stored;
    let _lock = lock(&stored.dir)?;
    let (path, log) = recording_log(&stored.dir)?;
    let Some(seeded) = log.seeded(usize::from(plan.services)) else {
        return Err(Failure::Other(format!(
            "{} has no valid snapshot of {} services: start the member, take one with 'taran members snapshot', and stop it",
            path.display(),
            plan.services
        )));
    };
    let backup = path.with_extension("log.bak");
    let copied = fs::copy(&path, &backup).and_then(|_| fs::File::open(&backup)?.sync_all());
    copied
        .map_err(|error| Failure::Other(format!("cannot write {}: {error}", backup.display())))?;
    replace(&path, &seeded)?;
    let text = format!(
        "the recording log has only the latest snapshot, at position 0; the one before is {}",
        backup.display()
    );
    done(stored, "SEED_RECORDING_LOG", true, &text)?;
    Ok(ExitCode::SUCCESS)
}
