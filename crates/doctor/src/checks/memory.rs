// SPDX-License-Identifier: Apache-2.0
//! Memory management of the kernel.

use crate::finding::{Finding, Level, Mend};
use crate::scene::{Nature, Row, Scene, Sight, field};

/// Value of `vm.min_free_kbytes` for large machines.
const MIN_FREE_KB: u64 = 8_388_608;

/// A kernel variable and the value that is wanted.
pub(super) struct Wanted {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
}

/// Compares kernel variables with what is wanted. Returns what was found, and the mends of those that differ.
pub(super) fn compare(scene: &Scene<'_>, wanted: &[Wanted]) -> (Vec<String>, Vec<Mend>) {
    let (mut found, mut mends) = (Vec::new(), Vec::new());
    for Wanted { name, value } in wanted {
        let Sight::Seen(text) = scene.text(&format!("/proc/sys/{}", name.replace('.', "/"))) else {
            continue;
        };
        let is = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        found.push(format!("{name} {is}"));
        if is != *value {
            mends.push(Mend::Sysctl {
                name,
                value: (*value).to_owned(),
            });
        }
    }
    (found, mends)
}

pub(super) fn quiet(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "vm.quiet",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "vm.swappiness 0, vm.stat_interval 120, vm.zone_reclaim_mode 0, kernel.numa_balancing 0, no swap",
        why: "reclaim, a worker on each CPU once a second, and page migration stall threads",
    };
    let wanted = [
        Wanted {
            name: "vm.swappiness",
            value: "0",
        },
        Wanted {
            name: "vm.stat_interval",
            value: "120",
        },
        Wanted {
            name: "vm.zone_reclaim_mode",
            value: "0",
        },
        Wanted {
            name: "kernel.numa_balancing",
            value: "0",
        },
    ];
    let (mut found, mut mends) = compare(scene, &wanted);
    let swaps = scene.text("/proc/swaps").seen().unwrap_or_default();
    let count = swaps
        .lines()
        .skip(1)
        .filter(|line| !line.is_empty())
        .count();
    if count > 0 {
        found.push(format!("{count} swap areas"));
        mends.push(Mend::Command {
            now: "swapoff -a".to_owned(),
            for_good: "remove the swap entries from /etc/fstab".to_owned(),
        });
    }
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

pub(super) fn min_free(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "vm.min_free",
        level: Level::Hint,
        nature: Nature::Host,
        wanted: "vm.min_free_kbytes of 5 % of the memory, at most 8 GiB; never above 25 %",
        why: "an allocation waits for reclaim if no free pages are left; too large a reserve starves the machine",
    };
    let info = scene.text("/proc/meminfo").seen().unwrap_or_default();
    let total =
        field(&info, "MemTotal:").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let reserve = scene
        .number("/proc/sys/vm/min_free_kbytes")
        .and_then(|value| u64::try_from(value).ok());
    let (Some(total), Some(reserve)) = (total, reserve) else {
        return row.absent("no vm.min_free_kbytes or no /proc/meminfo");
    };
    let wanted = MIN_FREE_KB.min(total / 20);
    let mend = vec![Mend::Sysctl {
        name: "vm.min_free_kbytes",
        value: wanted.to_string(),
    }];
    let found = format!("{reserve} kB of {total} kB");
    if reserve > total / 4 {
        return row.deviates_at(Level::Fail, scene, found, mend);
    }
    if reserve >= wanted {
        row.ok(found)
    } else {
        row.deviates(scene, found, mend)
    }
}

pub(super) fn dirty(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "vm.dirty",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "vm.dirty_ratio 80, vm.dirty_background_ratio 5, vm.dirty_expire_centisecs 12000",
        why: "a writer whose dirty pages reach the ratio is throttled to the speed of the disk",
    };
    if !scene.plan().has_storage() {
        return row.absent("no archive and no cluster planned");
    }
    let wanted = [
        Wanted {
            name: "vm.dirty_ratio",
            value: "80",
        },
        Wanted {
            name: "vm.dirty_background_ratio",
            value: "5",
        },
        Wanted {
            name: "vm.dirty_expire_centisecs",
            value: "12000",
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

pub(super) fn pages(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "pages",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "transparent huge pages madvise or never; free huge pages if log files ask for them",
        why: "the kernel stalls a thread while it compacts memory into huge pages",
    };
    if let Some(lack) = huge_page_lack(scene) {
        // Without its pages a driver does not start, whatever the profile.
        let needed = Row {
            nature: Nature::Needed,
            ..row
        };
        return needed.deviates_at(Level::Fail, scene, lack.0, lack.1);
    }
    let directory = "/sys/kernel/mm/transparent_hugepage";
    let path = format!("{directory}/enabled");
    let sight = scene.text(&path);
    let Sight::Seen(enabled) = &sight else {
        return row.missing(&sight, &path);
    };
    let chosen = |text: &str| {
        let words = text
            .split(' ')
            .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        words.unwrap_or("unknown").to_owned()
    };
    let defrag = scene
        .text(&format!("{directory}/defrag"))
        .seen()
        .unwrap_or_default();
    let (enabled, defrag) = (chosen(enabled), chosen(&defrag));
    let found = format!("transparent huge pages {enabled}, defrag {defrag}");
    if enabled != "always" {
        return row.ok(found);
    }
    row.deviates(
        scene,
        found,
        vec![
            Mend::Write {
                path,
                value: "madvise".to_owned(),
            },
            Mend::Boot("transparent_hugepage=madvise".to_owned()),
        ],
    )
}

/// Returns what was found and how to mend it if log files ask for huge pages and too few are free.
fn huge_page_lack(scene: &Scene<'_>) -> Option<(String, Vec<Mend>)> {
    let size = scene.plan().page_size;
    if size <= 4_096 {
        return None;
    }
    let kb = size / 1_024;
    let directory = format!("/sys/kernel/mm/hugepages/hugepages-{kb}kB");
    let free = scene
        .number(&format!("{directory}/free_hugepages"))
        .unwrap_or(0);
    let needed = scene.plan().log_bytes().div_ceil(size);
    if u64::try_from(free).is_ok_and(|free| free >= needed) {
        return None;
    }
    Some((
        format!("{free} free pages of {kb} kB, {needed} needed"),
        vec![
            Mend::Write {
                path: format!("{directory}/nr_hugepages"),
                value: needed.to_string(),
            },
            Mend::Boot(format!("hugepagesz={kb}K hugepages={needed}")),
        ],
    ))
}
