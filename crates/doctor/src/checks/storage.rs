// SPDX-License-Identifier: Apache-2.0
//! File systems and disks of archives and clusters.

use crate::finding::{Finding, Level, Mend, quoted};
use crate::mounts::Mount;
use crate::scene::{Nature, Row, Scene, Sight};

use super::limits::mib;

const NO_DATA: &str = "no directory of an archive or a cluster named";

/// Returns the mount of each data directory, and the directories without one.
fn mounts<'s>(scene: &'s Scene<'_>) -> Vec<(String, Option<&'s Mount>)> {
    let paths = scene
        .plan()
        .data
        .iter()
        .map(|path| path.to_string_lossy().into_owned());
    paths
        .map(|path| {
            let mount = scene.mount(&path);
            (path, mount)
        })
        .collect()
}

pub(super) fn kind(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "fs.type",
        level: Level::Fail,
        nature: Nature::Needed,
        wanted: "ext4 or xfs on a local disk",
        why: "on memory, overlays and network file systems a sync does not do what it says",
    };
    let mounts = mounts(scene);
    if mounts.is_empty() {
        return row.absent(NO_DATA);
    }
    let (mut found, mut level) = (Vec::new(), Level::Ok);
    for (path, mount) in &mounts {
        let Some(mount) = mount else {
            found.push(format!("{path}: no mount to be seen"));
            level = level.max(Level::Unseen);
            continue;
        };
        found.push(format!("{path}: {}", mount.kind));
        let is_fit = ["ext4", "xfs"].contains(&mount.kind.as_str());
        let is_unfit =
            ["tmpfs", "ramfs", "overlay"].contains(&mount.kind.as_str()) || mount.is_remote();
        if is_unfit && scene.plan().fsync > 0 {
            level = Level::Fail;
        } else if !is_fit {
            level = level.max(if is_unfit { Level::Warn } else { Level::Hint });
        }
    }
    let found = found.join(", ");
    match level {
        Level::Ok => row.ok(found),
        Level::Unseen => row.unseen(found),
        level => row.deviates_at(
            level,
            scene,
            found,
            vec![Mend::Advice(
                "put the directory on an ext4 or xfs file system of a local disk".to_owned(),
            )],
        ),
    }
}

pub(super) fn options(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "fs.options",
        level: Level::Warn,
        nature: Nature::Needed,
        wanted: "noatime, nodiratime; write barriers on",
        why: "each read writes an access time; without barriers a power cut loses what was synced",
    };
    let mounts = mounts(scene);
    if mounts.is_empty() {
        return row.absent(NO_DATA);
    }
    let (mut found, mut mends) = (Vec::new(), Vec::new());
    for (path, mount) in &mounts {
        let Some(mount) = mount else {
            continue;
        };
        let is_without_barrier = mount.has("nobarrier") || mount.has("barrier=0");
        // noatime implies nodiratime.
        let is_fit = mount.has("noatime");
        found.push(format!(
            "{path}: {}{}",
            if is_fit {
                "noatime"
            } else {
                "access times are written"
            },
            if is_without_barrier {
                ", no barriers: not durable"
            } else {
                ""
            }
        ));
        let point = quoted(&mount.point);
        if !is_fit {
            mends.push(Mend::Command {
                now: format!("mount -o remount,noatime,nodiratime {point}"),
                for_good: format!("/etc/fstab: noatime,nodiratime for {}", mount.point),
            });
        }
        if is_without_barrier {
            mends.push(Mend::Command {
                now: format!("mount -o remount,barrier {point}"),
                for_good: format!("/etc/fstab: remove nobarrier from {}", mount.point),
            });
        }
    }
    if found.is_empty() {
        return row.unseen("no mount of the directories to be seen");
    }
    let found = found.join(", ");
    if mends.is_empty() {
        row.ok(found)
    } else {
        row.deviates(scene, found, mends)
    }
}

pub(super) fn space(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "fs.space",
        level: Level::Fail,
        nature: Nature::Needed,
        wanted: "twice the bytes that are going to be recorded",
        why: "a full disk holds publishers back",
    };
    let mounts = mounts(scene);
    if mounts.is_empty() {
        return row.absent(NO_DATA);
    }
    let needed = scene.plan().record_bytes.saturating_mul(2);
    let (mut found, mut is_short) = (Vec::new(), false);
    for (path, _) in &mounts {
        match scene.machine().space(path) {
            Ok(space) => {
                found.push(format!("{path}: {} free", mib(space.free)));
                is_short |= space.free < needed;
            }
            Err(error) => return row.unseen(format!("{path}: {error}")),
        }
    }
    let found = format!("{}, {} needed", found.join(", "), mib(needed));
    if !is_short {
        return row.ok(found);
    }
    row.deviates(
        scene,
        found,
        vec![Mend::Advice(
            "delete old recordings, or limit them with taran.archive.retention".to_owned(),
        )],
    )
}

pub(super) fn disk(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "disk",
        level: Level::Hint,
        nature: Nature::Host,
        wanted: "solid state, I/O scheduler none",
        why: "a scheduler adds work to each request of a fast disk",
    };
    let mounts = mounts(scene);
    if mounts.is_empty() {
        return row.absent(NO_DATA);
    }
    let disks = scene.list("/sys/block").seen().unwrap_or_default();
    let (mut found, mut mends) = (Vec::new(), Vec::new());
    for (path, mount) in &mounts {
        let device = mount.and_then(|mount| mount.source.strip_prefix("/dev/"));
        let Some(device) = device else {
            found.push(format!("{path}: not on a disk"));
            continue;
        };
        // The name of a partition begins with that of its disk.
        let Some(disk) = disks
            .iter()
            .filter(|disk| device.starts_with(disk.as_str()))
            .max_by_key(|disk| disk.len())
        else {
            found.push(format!("{path}: {device}, its disk is not to be seen"));
            continue;
        };
        let queue = format!("/sys/block/{disk}/queue");
        let rotational = scene.number(&format!("{queue}/rotational")).unwrap_or(0);
        let cache = scene
            .text(&format!("{queue}/write_cache"))
            .seen()
            .unwrap_or_else(|| "unknown".to_owned());
        let scheduler = match scene.text(&format!("{queue}/scheduler")) {
            Sight::Seen(text) => chosen(&text),
            Sight::Absent | Sight::Hidden(_) => "unknown".to_owned(),
        };
        let kind = if rotational == 1 {
            "rotating"
        } else {
            "solid state"
        };
        found.push(format!(
            "{path}: {disk}, {kind}, scheduler {scheduler}, write cache {cache}"
        ));
        if scheduler != "none" && scheduler != "unknown" && rotational == 0 {
            mends.push(Mend::Write {
                path: format!("{queue}/scheduler"),
                value: "none".to_owned(),
            });
        }
        if rotational == 1 {
            mends.push(Mend::Advice(format!(
                "use a solid-state disk instead of {disk}"
            )));
        }
    }
    let found = found.join("; ");
    if mends.is_empty() {
        row.ok(found)
    } else {
        row.deviates(scene, found, mends)
    }
}

/// Returns the word in brackets, or the only word.
fn chosen(text: &str) -> String {
    let bracketed = text
        .split(' ')
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed.unwrap_or(text).to_owned()
}
