// SPDX-License-Identifier: Apache-2.0
//! Invariants of worlds with full file systems.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use super::streams::{Known, LongStreams, progress};
use crate::check::{Violation, violation};
use crate::scenario::MemoryLimits;
use crate::{HostIndex, Invariant, World};

/// Interval of the checks, shorter than the interval at which drivers try to reserve pages again.
const INTERVAL: Duration = Duration::from_millis(500);

/// Time without progress after which a stream counts as waiting. It covers lost frames, the setup of images, and the
/// intervals at which drivers try to reserve pages again.
const WAITING: Duration = Duration::from_secs(10);

/// A time that comes at intervals.
#[derive(Debug, Default)]
struct Timer(Duration);

impl Timer {
    fn is_due(&mut self, world: &World) -> bool {
        let is_due = world.elapsed() >= self.0;
        if is_due {
            self.0 = world.elapsed() + INTERVAL;
        }
        is_due
    }
}

/// No byte is written to a page that is not reserved. It is checked each half second, because it reads whole logs.
#[derive(Debug, Default)]
pub struct WritesAreReserved {
    timer: Timer,
}

impl Invariant for WritesAreReserved {
    fn name(&self) -> &'static str {
        "writes are reserved"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        if self.timer.is_due(world) {
            check_writes(world)?;
        }
        Ok(())
    }
}

/// Checks all files now.
pub(super) fn check_writes(world: &World) -> Result<(), Violation> {
    for host in (0..world.host_count()).map(HostIndex::at) {
        if let Some((path, offset)) = world.storage(host).unreserved_writes().first() {
            violation!(
                "host {}: a byte was written that is not reserved: {offset} of {}",
                host.number(),
                path.display()
            );
        }
    }
    Ok(())
}

/// A stream makes progress while no file system that it needs is limited. If it waits while one is, the error log of that
/// host names the file system. Its image does not end.
#[derive(Debug, Default)]
pub struct StreamsWaitOnlyForSpace {
    timer: Timer,
    seen: BTreeMap<u32, Seen>,
}

/// The last observation of a stream.
#[derive(Debug)]
struct Seen {
    progress: (i64, i64),
    /// Time of the last progress, or of the last moment at which the stream had nothing to do.
    since: Duration,
    is_counted: bool,
}

/// Number of times that a stream waited.
#[derive(Debug, Default)]
pub(super) struct Waited(pub(super) Cell<u64>);

impl Invariant for StreamsWaitOnlyForSpace {
    fn name(&self) -> &'static str {
        "streams wait only for space"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        if !self.timer.is_due(world) {
            return Ok(());
        }
        let streams = world.shared::<LongStreams>();
        for (label, known) in streams.into_iter().flat_map(LongStreams::open) {
            if let Some(image) = world.subscriber(known.subscriber).ended().first() {
                violation!(
                    "stream {label}: its publication is open, but its image ended: {image:?}"
                );
            }
            let progress = progress(world, known);
            let now = world.elapsed();
            let has_nothing_to_do = world.has_all(known.subscriber, known.publisher)
                || world.subscriber(known.subscriber).is_over()
                || world.publisher(known.publisher).failure().is_some();
            let seen = self.seen.entry(label).or_insert(Seen {
                progress,
                since: now,
                is_counted: false,
            });
            if has_nothing_to_do || seen.progress != progress {
                *seen = Seen {
                    progress,
                    since: now,
                    is_counted: false,
                };
            } else if is_waiting(world, label, known, seen.since)? && !seen.is_counted {
                seen.is_counted = true;
                if let Some(Waited(count)) = world.shared() {
                    count.set(count.get() + 1);
                }
            }
        }
        Ok(())
    }
}

/// Returns true if the stream waits for space.
///
/// # Errors
/// It waits for something else, or no error names the file system.
fn is_waiting(
    world: &World,
    label: u32,
    known: &Known,
    since: Duration,
) -> Result<bool, Violation> {
    let limits = world.shared::<MemoryLimits>();
    let limited_since = |host: &HostIndex| limits.and_then(|it| it.limited_since(*host));
    if known.hosts.iter().all(|host| limited_since(host).is_none()) {
        let last_change = limits.map_or(Duration::ZERO, MemoryLimits::last_change);
        if world.elapsed() < since.max(last_change) + WAITING {
            return Ok(false);
        }
    }
    // The stream may have waited for the host whose limit was lifted, and have had no time to continue.
    if limits.is_some_and(|it| world.elapsed() < it.last_lift() + WAITING) {
        return Ok(false);
    }
    let is_limited = |host: &HostIndex| {
        let limited = limited_since(host);
        limited.is_some_and(|limited| world.elapsed() >= since.max(limited) + WAITING)
    };
    let limited: Vec<_> = known.hosts.into_iter().filter(is_limited).collect();
    if limited.is_empty() && known.hosts.iter().any(|host| limited_since(host).is_some()) {
        return Ok(false);
    }
    let (published, consumed) = progress(world, known);
    if limited.is_empty() {
        violation!(
            "stream {label} from host {} to {} is stuck at {published}, consumed to {consumed}, although no file system is limited",
            known.hosts[0].number(),
            known.hosts[1].number()
        );
    }
    let names_file_system = |host: &HostIndex| {
        let directory = world.directory(*host).display().to_string();
        let errors = world.error_log(*host);
        let mut errors = errors.iter();
        errors.any(|it| it.contains("insufficient usable storage") && it.contains(&directory))
    };
    if !limited.iter().any(names_file_system) {
        violation!(
            "stream {label} from host {} to {} is stuck at {published}, consumed to {consumed}: no error names the file system",
            known.hosts[0].number(),
            known.hosts[1].number()
        );
    }
    Ok(true)
}
