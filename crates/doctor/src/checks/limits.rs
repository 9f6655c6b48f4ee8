// SPDX-License-Identifier: Apache-2.0
//! Shared memory, limits of the process and its control group, permissions of a profiler.

use crate::counters::control_group;
use crate::cpu_list::CpuList;
use crate::finding::{Finding, Level, Mend, quoted};
use crate::scene::{Nature, Row, Scene, Sight};

use super::memory::{Wanted, compare};

/// Number of open files that drivers and archives can need.
const OPEN_FILES: u64 = 65_536;

pub(super) fn shm(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "shm",
        level: Level::Fail,
        nature: Nature::Needed,
        wanted: "the directory of the driver on a tmpfs with room for all logs: 3 terms and 4 KiB each",
        why: "on a disk each message waits for write-back; without room publications are held back",
    };
    let plan = scene.plan();
    let path = plan.aeron_dir.to_string_lossy();
    let space = match scene.machine().space(&path) {
        Ok(space) => space,
        Err(error) => return row.unseen(format!("{path}: {error}")),
    };
    let needed = plan.log_bytes();
    let Some(mount) = scene.mount(&path) else {
        return row.unseen(format!("no mount of {path} in /proc/mounts"));
    };
    let found = format!(
        "{} on {}: {} free of {}, {} needed",
        mount.kind,
        mount.point,
        mib(space.free),
        mib(space.total),
        mib(needed)
    );
    if mount.kind != "tmpfs" && mount.kind != "ramfs" && mount.kind != "hugetlbfs" {
        let advice = "choose a directory below /dev/shm with aeron.dir (-d)".to_owned();
        return row.deviates_at(Level::Warn, scene, found, vec![Mend::Advice(advice)]);
    }
    if space.free >= needed {
        return row.ok(found);
    }
    let size = mib(space
        .total
        .saturating_sub(space.free)
        .saturating_add(needed)
        .saturating_mul(2))
    .replace(" MiB", "m");
    row.deviates(
        scene,
        found,
        vec![
            Mend::Command {
                now: format!("mount -o remount,size={size} {}", quoted(&mount.point)),
                for_good: format!(
                    "/etc/fstab: size={size} for {}; in a container --shm-size={size}",
                    mount.point
                ),
            },
            Mend::Advice(
                "or use shorter terms (term-length=, aeron.term.buffer.length)".to_owned(),
            ),
        ],
    )
}

/// Returns a size in MiB, rounded down.
pub(super) fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

pub(super) fn limits(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "limits",
        level: Level::Warn,
        nature: Nature::Needed,
        wanted: "unlimited locked memory, 65536 open files; no CPU quota, bench CPUs in the cpuset, never throttled",
        why: "a quota stops all threads of the group for milliseconds; without files or memory a driver fails",
    };
    let sight = scene.text("/proc/self/limits");
    let Sight::Seen(limits) = &sight else {
        return row.missing(&sight, "/proc/self/limits");
    };
    let (mut found, mut mends, mut level) = (Vec::new(), Vec::new(), None);
    let soft = |name: &str| soft_limit(limits, name);
    if let Some(locked) = soft("Max locked memory") {
        found.push(format!("locked memory {locked}"));
        if locked != "unlimited" {
            level = level.max(Some(Level::Warn));
            mends.push(limit("memlock", "-l", "unlimited"));
        }
    }
    if let Some(files) = soft("Max open files") {
        found.push(format!("open files {files}"));
        if files.parse::<u64>().is_ok_and(|files| files < OPEN_FILES) {
            level = level.max(Some(Level::Warn));
            mends.push(limit("nofile", "-n", "65536"));
        }
    }
    if let Some(quota) = quota(scene) {
        found.push(format!("CPU quota {quota}"));
        level = Some(Level::Fail);
        mends.push(Mend::Advice("give the container whole CPUs instead of a quota (--cpuset-cpus; in Kubernetes integer requests equal to limits with the static CPU manager)".to_owned()));
    }
    let outside = scene.bench_cpus().without(scene.allowed());
    if !outside.is_empty() && !scene.allowed().is_empty() {
        found.push(format!(
            "bench CPUs {outside} not allowed, {} are",
            scene.allowed()
        ));
        level = Some(Level::Fail);
        mends.push(Mend::Advice(format!(
            "allow the CPUs {outside} (taskset, cpuset), or choose others with --cpus"
        )));
    }
    if let Some(periods) = scene.change().and_then(|change| change.throttled) {
        found.push(format!("throttled {periods} times"));
        if periods > 0 {
            level = Some(Level::Fail);
        }
    }
    let found = found.join(", ");
    match level {
        None => row.ok(found),
        Some(level) => row.deviates_at(level, scene, found, mends),
    }
}

fn limit(name: &str, letter: &str, value: &str) -> Mend {
    Mend::Command {
        now: format!("ulimit {letter} {value}"),
        for_good: format!(
            "/etc/security/limits.conf: * - {name} {value}; in a systemd unit Limit{}={}",
            name.to_uppercase(),
            value.replace("unlimited", "infinity")
        ),
    }
}

/// Returns the CPU quota of the control group in CPUs; `None` if there is none.
fn quota(scene: &Scene<'_>) -> Option<String> {
    let group = control_group(scene.machine())?;
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
    let (quota, period) = if group.is_unified {
        let text = scene.text(&format!("{}/cpu.max", group.directory)).seen()?;
        let (quota, period) = text.split_once(' ')?;
        (number(quota)?, number(period)?)
    } else {
        let read = |file: &str| scene.text(&format!("{}/{file}", group.directory)).seen();
        (
            number(&read("cpu.cfs_quota_us")?)?,
            number(&read("cpu.cfs_period_us")?)?,
        )
    };
    let cpus: CpuList = scene.allowed().clone();
    Some(format!(
        "{:.2} of {} CPUs",
        quota / period,
        cpus.as_slice().len()
    ))
}

/// Checks where secrets of a driver with transport security can leave its memory.
pub(super) fn secrets(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "secrets",
        level: Level::Warn,
        nature: Nature::Needed,
        wanted: "no core dumps of the driver (soft limit 0), no swap that is not encrypted",
        why: "core dumps and swap contain the private key and the keys of streams (docs/security.md)",
    };
    if !scene.plan().is_secured {
        return row.absent("no transport security planned");
    }
    let sight = scene.text("/proc/self/limits");
    let Sight::Seen(limits) = &sight else {
        return row.missing(&sight, "/proc/self/limits");
    };
    let (mut found, mut mends) = (Vec::new(), Vec::new());
    if let Some(size) = soft_limit(limits, "Max core file size") {
        found.push(format!("core dumps {size}"));
        if size != "0" {
            mends.push(limit("core", "-c", "0"));
        }
    }
    let swaps = scene.text("/proc/swaps").seen().unwrap_or_default();
    // The first line is the head of the table.
    let areas = swaps.lines().skip(1).count();
    found.push(format!("{areas} swap areas"));
    if areas > 0 {
        mends.push(Mend::Advice(
            "encrypt the swap areas with a key of each boot (crypttab: /dev/urandom, option swap), or use none".to_owned(),
        ));
    }
    let found = found.join(", ");
    if mends.is_empty() {
        row.ok(found)
    } else {
        row.deviates(scene, found, mends)
    }
}

/// Returns a soft limit of `/proc/self/limits`.
fn soft_limit(limits: &str, name: &str) -> Option<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next().map(str::to_owned)
}

pub(super) fn perf(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "perf",
        level: Level::Warn,
        nature: Nature::Needed,
        wanted: "kernel.perf_event_paranoid -1, kernel.kptr_restrict 0, kernel.perf_event_max_stack 1024, \
                 kernel.perf_event_mlock_kb 8096",
        why: "a profiler sees neither kernel nor symbols; these settings weaken the protection of the machine",
    };
    if !scene.plan().is_profiled {
        return row.absent("no profiler planned");
    }
    let wanted = [
        Wanted {
            name: "kernel.perf_event_paranoid",
            value: "-1",
        },
        Wanted {
            name: "kernel.kptr_restrict",
            value: "0",
        },
        Wanted {
            name: "kernel.perf_event_max_stack",
            value: "1024",
        },
        Wanted {
            name: "kernel.perf_event_mlock_kb",
            value: "8096",
        },
    ];
    let (found, mends) = compare(scene, &wanted);
    if found.is_empty() {
        return row.absent("none of the variables is there");
    }
    let found = found.join(", ");
    if mends.is_empty() {
        row.ok(found)
    } else {
        row.deviates(scene, found, mends)
    }
}
