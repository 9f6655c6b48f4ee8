// SPDX-License-Identifier: Apache-2.0
//! Time that the machine takes away: neighbours, other processes, interrupts, the kernel's own work.

use crate::cpu_list::CpuList;
use crate::finding::{Finding, Level, Mend};
use crate::scene::{Nature, Row, Scene, Sight};

/// Share of stolen time above which figures suffer.
const MAX_STEAL: f64 = 0.001;
/// Longest gap on an isolated CPU in nanoseconds.
const MAX_GAP_NS: u64 = 100_000;
/// Share of the time in gaps above which a measurement counts as noisy.
const MAX_GAP_SHARE: f64 = 0.005;
/// Share of the time that other work may take on a bench CPU.
const MAX_LOAD: f64 = 0.01;

pub(super) fn steal(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "steal",
        level: Level::Warn,
        nature: Nature::Latency,
        wanted: "less than 0.1 % of the CPU time goes to other virtual machines",
        why: "the host takes the CPU away for milliseconds",
    };
    let Some(change) = scene.change() else {
        return row.absent("no probe");
    };
    let Some(steal) = change.steal else {
        return row.absent("no /proc/stat");
    };
    let found = format!("{:.2} %", steal * 100.0);
    if steal < MAX_STEAL {
        return row.ok(found);
    }
    let advice = "measure at another time, or on an instance with CPUs of its own (dedicated host)";
    row.deviates(scene, found, vec![Mend::Advice(advice.to_owned())])
}

pub(super) fn gaps(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "gaps",
        level: Level::Warn,
        nature: Nature::Latency,
        wanted: "no gap above 100 us on an isolated CPU, 0.5 % of the time in gaps on others",
        why: "no percentile of a benchmark can be better than the gaps of its CPUs",
    };
    if scene.gaps().is_empty() {
        return row.absent("no probe");
    }
    let (mut found, mut is_noisy, mut has_gaps) = (Vec::new(), false, false);
    for (cpu, gaps) in scene.gaps() {
        match gaps {
            Ok(gaps) => {
                is_noisy |= gaps.share() > MAX_GAP_SHARE;
                is_noisy |= scene.isolated().has(*cpu) && gaps.longest_ns > MAX_GAP_NS;
                has_gaps |= gaps.longest_ns > MAX_GAP_NS;
                found.push(format!(
                    "CPU {cpu}: longest {:.0} us, {:.2} % of the time",
                    gaps.longest_ns as f64 / 1_000.0,
                    gaps.share() * 100.0
                ));
            }
            Err(error) => found.push(format!("CPU {cpu}: {error}")),
        }
    }
    let found = found.join("; ");
    if scene.gaps().iter().all(|(_, gaps)| gaps.is_err()) {
        return row.unseen(found);
    }
    let advice = vec![Mend::Advice(
        "isolate the CPUs, stop other work, or use another machine".to_owned(),
    )];
    if is_noisy {
        row.deviates(scene, found, advice)
    } else if has_gaps {
        row.deviates_at(Level::Hint, scene, found, advice)
    } else {
        row.ok(found)
    }
}

pub(super) fn load(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "load",
        level: Level::Fail,
        nature: Nature::Latency,
        wanted: "the bench CPUs are idle: less than 1 % busy",
        why: "other work on these CPUs is measured with the messages",
    };
    let Some(change) = scene.change() else {
        return row.absent("no probe");
    };
    let busy: Vec<(usize, f64)> = scene
        .cpus()
        .iter()
        .filter_map(|cpu| Some((*cpu, *change.busy.get(cpu)?)))
        .collect();
    if busy.is_empty() {
        return row.absent("no /proc/stat");
    }
    let text = |(cpu, share): &(usize, f64)| format!("CPU {cpu}: {:.1} %", share * 100.0);
    let found = busy.iter().map(text).collect::<Vec<_>>().join(", ");
    if busy.iter().all(|(_, share)| *share < MAX_LOAD) {
        return row.ok(found);
    }
    row.deviates(
        scene,
        found,
        vec![Mend::Advice(
            "stop the processes that use these CPUs (top -1, then press f and add P)".to_owned(),
        )],
    )
}

pub(super) fn irq(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "irq",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "interrupts of the network interface on other CPUs of the same socket, irqbalance stopped",
        why: "an interrupt and its packet processing take tens of microseconds of the CPU",
    };
    let numbers = interrupts(scene);
    let balance = is_running(scene, "irqbalance");
    let (mut hits, mut mends) = (Vec::new(), Vec::new());
    let others = scene.allowed().without(scene.bench_cpus());
    for number in &numbers {
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        let cpus = scene
            .text(&path)
            .seen()
            .and_then(|list| list.parse::<CpuList>().ok())
            .unwrap_or_default();
        if !cpus.common(scene.bench_cpus()).is_empty() {
            hits.push(number.to_string());
            if !others.is_empty() {
                mends.push(Mend::Write {
                    path,
                    value: others.to_string(),
                });
            }
        }
    }
    let interface = scene.interface();
    let mut found = if numbers.is_empty() {
        format!("no interrupts of {interface} to be seen")
    } else {
        format!(
            "{} of {} interrupts of {interface} on bench CPUs",
            hits.len(),
            numbers.len()
        )
    };
    if balance {
        found += ", irqbalance is running";
        mends.push(Mend::Command {
            now: "systemctl stop irqbalance".to_owned(),
            for_good:
                "systemctl disable irqbalance, or IRQBALANCE_BANNED_CPULIST in its configuration"
                    .to_owned(),
        });
    }
    if hits.is_empty() && !balance {
        return if numbers.is_empty() {
            row.absent(found)
        } else {
            row.ok(found)
        };
    }
    row.deviates(scene, found, mends)
}

/// Returns the interrupts of the network interface.
fn interrupts(scene: &Scene<'_>) -> Vec<u32> {
    let interface = scene.interface();
    // The parent of a virtio device has the interrupts.
    for directory in ["device/msi_irqs", "device/../msi_irqs"] {
        if let Sight::Seen(names) = scene.list(&format!("/sys/class/net/{interface}/{directory}")) {
            return names.iter().filter_map(|name| name.parse().ok()).collect();
        }
    }
    let table = scene.text("/proc/interrupts").seen().unwrap_or_default();
    let number = |line: &str| {
        let (number, rest) = line.trim_start().split_once(':')?;
        let is_of_interface = |word: &str| {
            word.strip_prefix(interface)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        rest.split([' ', ','])
            .any(is_of_interface)
            .then(|| number.parse().ok())?
    };
    table.lines().filter_map(number).collect()
}

/// Returns true if a process has this name, as far as processes are visible.
fn is_running(scene: &Scene<'_>, name: &str) -> bool {
    let processes = scene.list("/proc").seen().unwrap_or_default();
    let mut numbers = processes
        .iter()
        .filter(|entry| entry.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.any(|process| {
        scene
            .machine()
            .read(&format!("/proc/{process}/comm"))
            .is_ok_and(|comm| comm.trim() == name)
    })
}

pub(super) fn kernel(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "kernel.noise",
        level: Level::Hint,
        nature: Nature::Host,
        wanted: "workqueues off the bench CPUs, nmi_watchdog 0, timer_migration 0, a low-latency tuned profile",
        why: "workers, watchdogs and timers of the kernel take microseconds",
    };
    let (mut found, mut mends) = (Vec::new(), Vec::new());
    let path = "/sys/devices/virtual/workqueue/cpumask";
    if let Some(mask) = scene
        .text(path)
        .seen()
        .and_then(|mask| CpuList::from_mask(&mask))
    {
        found.push(format!("workqueues on {mask}"));
        let common = mask.common(scene.bench_cpus());
        let others = mask.without(scene.bench_cpus());
        if !common.is_empty() && !others.is_empty() {
            mends.push(Mend::Write {
                path: path.to_owned(),
                value: mask_text(&others),
            });
        }
    }
    for (file, name) in [
        ("nmi_watchdog", "kernel.nmi_watchdog"),
        ("timer_migration", "kernel.timer_migration"),
    ] {
        if let Some(value) = scene.number(&format!("/proc/sys/kernel/{file}")) {
            found.push(format!("{file} {value}"));
            if value != 0 {
                mends.push(Mend::Sysctl {
                    name,
                    value: "0".to_owned(),
                });
            }
        }
    }
    if let Sight::Seen(profile) = scene.text("/etc/tuned/active_profile") {
        found.push(format!("tuned profile {profile}"));
        if !["latency-performance", "network-latency", "realtime"]
            .iter()
            .any(|name| profile.contains(name))
        {
            mends.push(Mend::Command {
                now: "tuned-adm profile network-latency".to_owned(),
                for_good: "tuned-adm keeps the profile".to_owned(),
            });
        }
    }
    if found.is_empty() {
        return row.absent("none of the files is there");
    }
    let found = found.join(", ");
    if mends.is_empty() {
        row.ok(found)
    } else {
        row.deviates(scene, found, mends)
    }
}

/// Returns a mask in words of 32 bits, as the kernel reads it.
fn mask_text(cpus: &CpuList) -> String {
    let words = cpus.as_slice().last().map_or(0, |cpu| cpu / 32) + 1;
    let word = |index: usize| {
        let bits = cpus.as_slice().iter().filter(|cpu| **cpu / 32 == index);
        bits.fold(0_u32, |word, cpu| word | 1 << (cpu % 32))
    };
    let texts: Vec<String> = (0..words)
        .rev()
        .map(|index| format!("{:08x}", word(index)))
        .collect();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_text_is_read_as_the_same_cpus() {
        for cpus in [vec![0], vec![1, 31, 32, 95], vec![64]] {
            let list = CpuList::new(cpus);
            assert_eq!(CpuList::from_mask(&mask_text(&list)), Some(list));
        }
    }
}
