// SPDX-License-Identifier: Apache-2.0
//! CPUs: isolation, topology, power, clock.

use std::collections::BTreeSet;

use crate::cpu_list::CpuList;
use crate::finding::{Finding, Level, Mend};
use crate::plan::Purpose;
use crate::scene::{Nature, Row, Scene, Sight, field};

const CPUS: &str = "/sys/devices/system/cpu";

/// Longest wake-up from an idle state that latency allows, in microseconds.
const MAX_WAKE_US: i64 = 10;

pub(super) fn isolated(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "cpu.isolated",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "the bench CPUs are isolated from the scheduler",
        why: "other threads run on the CPUs of the driver and delay messages by milliseconds",
    };
    let path = format!("{CPUS}/isolated");
    let sight = scene.text(&path);
    if !matches!(sight, Sight::Seen(_)) {
        return row.missing(&sight, &path);
    }
    let missing = scene.bench_cpus().without(scene.isolated());
    let found = format!("isolated: {}", scene.isolated());
    if missing.is_empty() {
        return row.ok(found);
    }
    row.deviates(
        scene,
        found,
        vec![Mend::Boot(format!("isolcpus={}", scene.bench_cpus()))],
    )
}

pub(super) fn nohz(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "cpu.nohz",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "no periodic ticks on the bench CPUs",
        why: "the tick interrupts each CPU up to 1,000 times a second",
    };
    let path = format!("{CPUS}/nohz_full");
    let sight = scene.text(&path);
    let Sight::Seen(text) = &sight else {
        return row.missing(&sight, &path);
    };
    // The kernel writes "(null)" if there are none.
    let tickless: CpuList = text.parse().unwrap_or_default();
    let found = format!("without ticks: {tickless}");
    if scene.bench_cpus().without(&tickless).is_empty() {
        return row.ok(found);
    }
    row.deviates(
        scene,
        found,
        vec![Mend::Boot(format!("nohz_full={}", scene.bench_cpus()))],
    )
}

pub(super) fn rcu(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "cpu.rcu",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "no RCU callbacks on the bench CPUs",
        why: "the kernel frees memory in bursts on the CPU that queued it",
    };
    let sight = scene.text("/proc/cmdline");
    if !matches!(sight, Sight::Seen(_)) {
        return row.missing(&sight, "/proc/cmdline");
    }
    // The kernel offloads the callbacks of CPUs without ticks in any case.
    let list = |name: &str| scene.boot_parameter(name)?.parse::<CpuList>().ok();
    let is_all = scene
        .boot_parameter("rcu_nocbs")
        .is_some_and(|value| value == "all");
    let mut offloaded = list("rcu_nocbs").unwrap_or_default().as_slice().to_vec();
    offloaded.extend_from_slice(list("nohz_full").unwrap_or_default().as_slice());
    let offloaded = CpuList::new(offloaded);
    if is_all || scene.bench_cpus().without(&offloaded).is_empty() {
        return row.ok(if is_all {
            "offloaded: all".to_owned()
        } else {
            format!("offloaded: {offloaded}")
        });
    }
    row.deviates(
        scene,
        format!("offloaded: {offloaded}"),
        vec![Mend::Boot(format!("rcu_nocbs={}", scene.bench_cpus()))],
    )
}

pub(super) fn siblings(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "cpu.siblings",
        level: Level::Fail,
        nature: Nature::Latency,
        wanted: "one bench CPU per core, and the other hardware thread of that core unused",
        why: "two hardware threads share the execution units of a core and slow each other down",
    };
    let (mut used, mut busy, mut seen) = (Vec::new(), Vec::new(), false);
    for cpu in scene.cpus() {
        let Some(siblings) = siblings_of(scene, *cpu) else {
            continue;
        };
        seen = true;
        let others = siblings.without(&CpuList::new(vec![*cpu]));
        if !others.common(scene.bench_cpus()).is_empty() {
            used.push(*cpu);
        } else if !others.without(scene.isolated()).is_empty() {
            busy.extend_from_slice(others.without(scene.isolated()).as_slice());
        }
    }
    let offline = |cpus: &CpuList| {
        let write = |cpu: &usize| Mend::Write {
            path: format!("{CPUS}/cpu{cpu}/online"),
            value: "0".to_owned(),
        };
        cpus.as_slice()
            .iter()
            .map(write)
            .chain([Mend::Boot("nosmt".to_owned())])
            .collect()
    };
    if !seen {
        return row.absent("no topology of the bench CPUs");
    }
    if !used.is_empty() {
        let used = CpuList::new(used);
        let advice = Mend::Advice("choose bench CPUs of different cores with --cpus".to_owned());
        return row.deviates(
            scene,
            format!("bench CPUs {used} share cores"),
            vec![advice],
        );
    }
    if !busy.is_empty() {
        let busy = CpuList::new(busy);
        let mends = offline(&busy);
        return row.deviates_at(
            Level::Warn,
            scene,
            format!("hardware threads {busy} are open to other threads"),
            mends,
        );
    }
    row.ok("no shared cores")
}

fn siblings_of(scene: &Scene<'_>, cpu: usize) -> Option<CpuList> {
    scene
        .text(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"))
        .seen()?
        .parse()
        .ok()
}

pub(super) fn count(scene: &Scene<'_>) -> Finding {
    let (needed, wanted) = match scene.plan().purpose {
        Purpose::Cluster => (
            8,
            "8 cores: 3 for the driver, 3 for the archive, consensus module, service",
        ),
        Purpose::Archive => (6, "6 cores: 3 for the driver, 3 for the archive"),
        Purpose::Echo | Purpose::Rpc => (4, "4 cores: 3 for the driver, 1 for the client"),
    };
    let row = Row {
        id: "cpu.count",
        level: Level::Warn,
        nature: Nature::Latency,
        wanted,
        why: "threads that spin need a core each; else they take time slices from each other",
    };
    let core = |cpu: &usize| {
        let topology = |file: &str| {
            scene
                .text(&format!("{CPUS}/cpu{cpu}/topology/{file}"))
                .seen()
        };
        Some((topology("physical_package_id")?, topology("core_id")?))
    };
    let cores: BTreeSet<_> = scene.allowed().as_slice().iter().filter_map(core).collect();
    if cores.is_empty() {
        return row.absent("no topology");
    }
    let found = format!(
        "{} cores, {} CPUs allowed",
        cores.len(),
        scene.allowed().as_slice().len()
    );
    if cores.len() >= needed {
        return row.ok(found);
    }
    let advice =
        "run drivers in threading mode SHARED, let clients yield, and say so beside the figures";
    row.deviates(scene, found, vec![Mend::Advice(advice.to_owned())])
}

pub(super) fn numa(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "numa",
        level: Level::Warn,
        nature: Nature::Latency,
        wanted: "bench CPUs and memory on the node of the network interface",
        why: "each access to the memory of another socket takes some 100 ns more",
    };
    let path = "/sys/devices/system/node";
    let sight = scene.list(path);
    let Sight::Seen(entries) = &sight else {
        return row.missing(&sight, path);
    };
    let nodes: Vec<(i64, CpuList)> = entries
        .iter()
        .filter_map(|entry| {
            let number = entry.strip_prefix("node")?.parse().ok()?;
            Some((
                number,
                scene
                    .text(&format!("{path}/{entry}/cpulist"))
                    .seen()?
                    .parse()
                    .ok()?,
            ))
        })
        .collect();
    if nodes.len() < 2 {
        return row.ok("one node");
    }
    let interface = scene.interface();
    let wanted = scene
        .number(&format!("/sys/class/net/{interface}/device/numa_node"))
        .filter(|node| *node >= 0);
    let used: BTreeSet<i64> = nodes
        .iter()
        .filter(|(_, cpus)| !cpus.common(scene.bench_cpus()).is_empty())
        .map(|(node, _)| *node)
        .collect();
    let found = format!(
        "bench CPUs on nodes {used:?}, {interface} on {}",
        wanted.map_or_else(|| "unknown".to_owned(), |node| node.to_string())
    );
    let status = scene.text("/proc/self/status").seen().unwrap_or_default();
    let memory: CpuList = field(&status, "Mems_allowed_list:")
        .and_then(|list| list.parse().ok())
        .unwrap_or_default();
    let node = wanted.or_else(|| used.first().copied()).unwrap_or(0);
    let has_memory = usize::try_from(node).is_ok_and(|node| memory.is_empty() || memory.has(node));
    let is_fine = match wanted {
        Some(wanted) => used.iter().all(|node| *node == wanted),
        None => used.len() < 2,
    };
    if is_fine && has_memory {
        return row.ok(found);
    }
    let cpus = nodes
        .iter()
        .find(|(each, _)| *each == node)
        .map(|(_, cpus)| cpus.to_string())
        .unwrap_or_default();
    let advice = format!(
        "choose CPUs of node {node} ({cpus}), as numactl --cpunodebind={node} --membind={node} does"
    );
    row.deviates(scene, found, vec![Mend::Advice(advice)])
}

pub(super) fn power(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "cpu.power",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "governor performance, no idle state with a wake-up above 10 us",
        why: "a CPU that sleeps or clocks down takes up to milliseconds to answer",
    };
    let (mut slow, mut deep, mut mends, mut seen) =
        (Vec::new(), BTreeSet::new(), Vec::new(), false);
    for cpu in scene.cpus() {
        let path = format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
        if let Sight::Seen(governor) = scene.text(&path) {
            seen = true;
            if governor != "performance" {
                slow.push(governor);
                mends.push(Mend::Write {
                    path,
                    value: "performance".to_owned(),
                });
            }
        }
        let states = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in scene.list(&states).seen().unwrap_or_default() {
            let number = |file: &str| scene.number(&format!("{states}/{state}/{file}"));
            let Some(latency) = number("latency") else {
                continue;
            };
            seen = true;
            if latency > MAX_WAKE_US && number("disable") != Some(1) {
                deep.insert(latency);
                mends.push(Mend::Write {
                    path: format!("{states}/{state}/disable"),
                    value: "1".to_owned(),
                });
            }
        }
    }
    if !seen {
        return row.absent("neither frequencies nor idle states; a hypervisor decides");
    }
    slow.sort_unstable();
    slow.dedup();
    if slow.is_empty() && deep.is_empty() {
        return row.ok("performance, shallow idle states");
    }
    let governor = if slow.is_empty() {
        "performance".to_owned()
    } else {
        slow.join(", ")
    };
    let deepest = deep.last().map_or_else(String::new, |latency| {
        format!(", idle states with {latency} us")
    });
    mends.push(Mend::Boot(
        "processor.max_cstate=1 intel_idle.max_cstate=0".to_owned(),
    ));
    row.deviates(scene, format!("governor {governor}{deepest}"), mends)
}

pub(super) fn clock(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "clock",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "tsc (arch_sys_counter on Arm)",
        why: "other clock sources take a system call, of up to microseconds, for each timestamp",
    };
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let path = format!("{directory}/current_clocksource");
    let sight = scene.text(&path);
    let Sight::Seen(source) = &sight else {
        return row.missing(&sight, &path);
    };
    if ["tsc", "arch_sys_counter"].contains(&source.as_str()) {
        return row.ok(source.clone());
    }
    let available = scene
        .text(&format!("{directory}/available_clocksource"))
        .seen()
        .unwrap_or_default();
    let has_tsc = available.split(' ').any(|source| source == "tsc");
    let mends = if has_tsc {
        vec![
            Mend::Write {
                path,
                value: "tsc".to_owned(),
            },
            Mend::Boot("clocksource=tsc tsc=reliable".to_owned()),
        ]
    } else {
        vec![Mend::Advice(
            "the hardware or hypervisor offers no stable TSC: choose another kind of instance"
                .to_owned(),
        )]
    };
    // The clocks of KVM and Hyper-V are read without a system call.
    let level = if source == "kvm-clock" || source.starts_with("hyperv") {
        Level::Hint
    } else {
        row.level
    };
    row.deviates_at(level, scene, source.clone(), mends)
}

pub(super) fn machine(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "machine",
        level: Level::Warn,
        nature: Nature::Needed,
        wanted: "Linux 5.0 or later (UDP GSO and GRO); bare metal, or the whole host for one virtual machine",
        why: "without GSO each datagram takes a system call; virtual machines share CPUs and links with others",
    };
    let sight = scene.text("/proc/sys/kernel/osrelease");
    let Sight::Seen(release) = &sight else {
        return row.missing(&sight, "/proc/sys/kernel/osrelease");
    };
    let info = scene.text("/proc/cpuinfo").seen().unwrap_or_default();
    let value = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split_once(':')
            .map(|(_, value)| value.trim().to_owned())
    };
    let is_virtual =
        value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let dmi = |file: &str| scene.text(&format!("/sys/class/dmi/id/{file}")).seen();
    let mut found = vec![
        format!("Linux {release}"),
        value("model name").unwrap_or_else(|| "CPU unknown".to_owned()),
    ];
    found.extend(value("microcode").map(|version| format!("microcode {version}")));
    let names: Vec<String> = [dmi("sys_vendor"), dmi("product_name")]
        .into_iter()
        .flatten()
        .filter(|name| !name.is_empty())
        .collect();
    if !names.is_empty() {
        found.push(names.join(" "));
    }
    found.extend(turbo(scene).map(|is_on| format!("turbo {}", if is_on { "on" } else { "off" })));
    found.extend(
        scene
            .text(&format!("{CPUS}/smt/active"))
            .seen()
            .map(|active| format!("SMT {}", if active == "1" { "on" } else { "off" })),
    );
    found.extend(mitigations(scene));
    if is_virtual {
        found.push("virtual".to_owned());
    }
    let found = found.join(", ");
    let major = release
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < 5) {
        return row.deviates(
            scene,
            found,
            vec![Mend::Advice("install a newer kernel".to_owned())],
        );
    }
    if is_virtual {
        let advice = "repeat measurements over hours, and compare ratios only".to_owned();
        return row.deviates_at(Level::Hint, scene, found, vec![Mend::Advice(advice)]);
    }
    row.ok(found)
}

fn turbo(scene: &Scene<'_>) -> Option<bool> {
    let no_turbo = scene
        .number(&format!("{CPUS}/intel_pstate/no_turbo"))
        .map(|off| off == 0);
    no_turbo.or_else(|| {
        scene
            .number(&format!("{CPUS}/cpufreq/boost"))
            .map(|on| on == 1)
    })
}

/// Returns the number of mitigations that cost time.
fn mitigations(scene: &Scene<'_>) -> Option<String> {
    let directory = format!("{CPUS}/vulnerabilities");
    let names = scene.list(&directory).seen()?;
    let is_mitigated = |name: &&String| {
        scene
            .text(&format!("{directory}/{name}"))
            .seen()
            .is_some_and(|state| state.starts_with("Mitigation"))
    };
    let count = names.iter().filter(is_mitigated).count();
    Some(format!(
        "{count} of {} vulnerabilities mitigated in software",
        names.len()
    ))
}
