// SPDX-License-Identifier: Apache-2.0
//! All checks on four machines, and on variants of them that deviate in one row.

use std::path::PathBuf;

use taran_doctor::{
    CpuList, Finding, Gaps, Level, Plan, Profile, Purpose, RecordedMachine, Report, Space, examine,
    fix_script,
};

fn bare_metal() -> RecordedMachine {
    RecordedMachine::parse(include_str!("machines/bare-metal.txt")).expect("a machine")
}

fn cloud_vm() -> RecordedMachine {
    RecordedMachine::parse(include_str!("machines/cloud-vm.txt")).expect("a machine")
}

fn container() -> RecordedMachine {
    RecordedMachine::parse(include_str!("machines/container.txt")).expect("a machine")
}

fn laptop() -> RecordedMachine {
    RecordedMachine::parse(include_str!("machines/laptop.txt")).expect("a machine")
}

fn cpus(list: &str) -> Option<CpuList> {
    Some(list.parse().expect("a list"))
}

/// A plan for the tuned server: an archive with syncs, a profiler, comparisons with TCP.
fn full_plan() -> Plan {
    Plan {
        cpus: cpus("2-5"),
        data: vec![PathBuf::from("/data/archive")],
        fsync: 2,
        record_bytes: 10 << 30,
        is_profiled: true,
        is_secured: true,
        purpose: Purpose::Rpc,
        socket_buffer: 2 << 20,
        ..Plan::default()
    }
}

fn finding(report: &Report, id: &str) -> Finding {
    report
        .finding(id)
        .unwrap_or_else(|| panic!("no row {id}"))
        .clone()
}

fn level(report: &Report, id: &str) -> Level {
    finding(report, id).level
}

#[track_caller]
fn assert_levels(report: &Report, expected: &[(&str, Level)]) {
    for (id, expected) in expected {
        let finding = finding(report, id);
        assert_eq!(finding.level, *expected, "{finding:?}");
    }
}

#[test]
fn bare_metal_that_is_tuned_has_no_deviation() {
    let report = examine(&bare_metal(), &full_plan());
    assert_eq!(report.profile(), Profile::Latency);
    let deviations: Vec<_> = report
        .findings()
        .iter()
        .filter(|finding| finding.level > Level::Ok)
        .collect();
    // Coalescing is visible to ethtool only, and the check says so.
    assert!(
        deviations.iter().all(|finding| finding.id == "nic"),
        "{deviations:#?}"
    );
    assert_eq!(report.exit_code(), 0);
    assert!(
        report
            .findings()
            .iter()
            .all(|finding| finding.level != Level::NotApplicable),
        "{report}"
    );
    assert_eq!(report.findings().len(), 31);
}

#[test]
fn bare_metal_with_one_deviation_reports_that_row() {
    let iso = "/sys/devices/system/cpu/isolated";
    let cpu2 = "/sys/devices/system/cpu/cpu2";
    let gap = Gaps {
        longest_ns: 200_000,
        lost_ns: 200_000,
        elapsed_ns: 2_000_000_000,
    };
    let cases: Vec<(&str, Level, RecordedMachine)> = vec![
        (
            "cpu.isolated",
            Level::Warn,
            bare_metal().with_file(iso, "2-4,14-17"),
        ),
        (
            "cpu.nohz",
            Level::Warn,
            bare_metal().with_file("/sys/devices/system/cpu/nohz_full", "(null)"),
        ),
        (
            "cpu.rcu",
            Level::Warn,
            bare_metal().with_file("/proc/cmdline", "ro isolcpus=2-5 rcu_nocbs=2,3"),
        ),
        (
            "cpu.siblings",
            Level::Warn,
            bare_metal().with_file(iso, "2-5,14-16"),
        ),
        (
            "numa",
            Level::Warn,
            bare_metal().with_file("/sys/class/net/ens1f0/device/numa_node", "1"),
        ),
        (
            "cpu.power",
            Level::Warn,
            bare_metal().with_file(&format!("{cpu2}/cpufreq/scaling_governor"), "powersave"),
        ),
        (
            "cpu.power",
            Level::Warn,
            bare_metal().with_file(&format!("{cpu2}/cpuidle/state1/latency"), "85"),
        ),
        (
            "clock",
            Level::Warn,
            bare_metal().with_file(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "hpet",
            ),
        ),
        (
            "machine",
            Level::Warn,
            bare_metal().with_file("/proc/sys/kernel/osrelease", "4.18.0-553.el8"),
        ),
        ("gaps", Level::Warn, bare_metal().with_gaps(3, gap)),
        (
            "irq",
            Level::Warn,
            bare_metal().with_file("/proc/irq/121/smp_affinity_list", "0-3"),
        ),
        (
            "irq",
            Level::Warn,
            bare_metal().with_file("/proc/77/comm", "irqbalance\n"),
        ),
        (
            "kernel.noise",
            Level::Hint,
            bare_metal().with_file("/proc/sys/kernel/nmi_watchdog", "1"),
        ),
        (
            "kernel.noise",
            Level::Hint,
            bare_metal().with_file("/sys/devices/virtual/workqueue/cpumask", "00ffffff"),
        ),
        (
            "kernel.noise",
            Level::Hint,
            bare_metal().with_file("/etc/tuned/active_profile", "balanced"),
        ),
        (
            "vm.quiet",
            Level::Warn,
            bare_metal().with_file("/proc/sys/vm/swappiness", "10"),
        ),
        (
            "vm.quiet",
            Level::Warn,
            bare_metal().with_file("/proc/swaps", "Filename\n/swap file 1 0 -2\n"),
        ),
        (
            "vm.min_free",
            Level::Hint,
            bare_metal().with_file("/proc/sys/vm/min_free_kbytes", "67584"),
        ),
        (
            "vm.min_free",
            Level::Fail,
            bare_metal().with_file("/proc/sys/vm/min_free_kbytes", "100000000"),
        ),
        (
            "vm.dirty",
            Level::Warn,
            bare_metal().with_file("/proc/sys/vm/dirty_ratio", "20"),
        ),
        (
            "pages",
            Level::Warn,
            bare_metal().with_file(
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never",
            ),
        ),
        (
            "net.buffers",
            Level::Warn,
            bare_metal().with_file("/proc/sys/net/core/rmem_max", "4194304"),
        ),
        (
            "net.buffers",
            Level::Fail,
            bare_metal().with_file("/proc/sys/net/core/wmem_max", "212992"),
        ),
        (
            "net.tcp",
            Level::Warn,
            bare_metal().with_file("/proc/sys/net/ipv4/tcp_tw_reuse", "2"),
        ),
        (
            "mtu",
            Level::Fail,
            bare_metal().with_file("/sys/class/net/ens1f0/mtu", "1420"),
        ),
        (
            "nic",
            Level::Warn,
            bare_metal().with_file("/sys/class/net/ens1f0/queues/rx-1/rps_cpus", "0000000c"),
        ),
        (
            "shm",
            Level::Fail,
            bare_metal().with_space(
                "/dev/shm",
                Space {
                    total: 67_108_864,
                    free: 67_108_864,
                },
            ),
        ),
        (
            "shm",
            Level::Warn,
            bare_metal().with_file(
                "/proc/mounts",
                "/dev/nvme0n1p2 / ext4 rw 0 0\n/dev/nvme1n1 /data xfs rw,noatime 0 0\n",
            ),
        ),
        (
            "limits",
            Level::Fail,
            bare_metal().with_file(
                "/proc/self/status",
                "Cpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n",
            ),
        ),
        (
            "limits",
            Level::Fail,
            bare_metal().with_file(
                "/sys/fs/cgroup/user.slice/user-1000.slice/cpu.max",
                "150000 100000",
            ),
        ),
        (
            "fs.type",
            Level::Fail,
            bare_metal().with_file(
                "/proc/mounts",
                "tmpfs /dev/shm tmpfs rw 0 0\nnas:/x /data nfs4 rw,noatime 0 0\n",
            ),
        ),
        (
            "fs.options",
            Level::Warn,
            bare_metal().with_file(
                "/proc/mounts",
                "tmpfs /dev/shm tmpfs rw 0 0\n/dev/nvme1n1 /data xfs rw,relatime 0 0\n",
            ),
        ),
        (
            "fs.space",
            Level::Fail,
            bare_metal().with_space(
                "/data",
                Space {
                    total: 1 << 40,
                    free: 1 << 30,
                },
            ),
        ),
        (
            "disk",
            Level::Hint,
            bare_metal().with_file("/sys/block/nvme1n1/queue/scheduler", "none [mq-deadline]"),
        ),
        (
            "disk",
            Level::Hint,
            bare_metal().with_file("/sys/block/nvme1n1/queue/rotational", "1"),
        ),
        (
            "perf",
            Level::Warn,
            bare_metal().with_file("/proc/sys/kernel/perf_event_paranoid", "2"),
        ),
    ];
    for (id, expected, machine) in cases {
        let report = examine(&machine, &full_plan());
        let finding = finding(&report, id);
        assert_eq!(finding.level, expected, "{finding:?}");
        assert!(!finding.mends.is_empty(), "{finding:?}");
    }
}

#[test]
fn load_on_a_bench_cpu_fails() {
    let plan = Plan {
        cpus: cpus("0"),
        ..full_plan()
    };
    assert_eq!(level(&examine(&bare_metal(), &plan), "load"), Level::Fail);
}

#[test]
fn siblings_that_are_both_bench_cpus_fail() {
    let plan = Plan {
        cpus: cpus("2,14"),
        ..full_plan()
    };
    let report = examine(&bare_metal(), &plan);
    assert_eq!(level(&report, "cpu.siblings"), Level::Fail, "{report}");
}

#[test]
fn huge_pages_that_are_asked_for_and_absent_fail() {
    let plan = Plan {
        page_size: 2 << 20,
        logs: 2,
        ..full_plan()
    };
    let machine = bare_metal();
    let free = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    assert_eq!(level(&examine(&machine, &plan), "pages"), Level::Fail);
    assert_eq!(
        level(&examine(&machine.with_file(free, "49"), &plan), "pages"),
        Level::Ok
    );
}

#[test]
fn mtu_of_the_driver_follows_frames_and_terms() {
    let mtu = |mtu, term_length, is_ipv6| {
        let plan = Plan {
            mtu,
            term_length,
            is_ipv6,
            is_secured: false,
            ..full_plan()
        };
        level(&examine(&bare_metal(), &plan), "mtu")
    };
    assert_eq!(mtu(8_960, 1 << 20, false), Level::Ok);
    assert_eq!(mtu(1_400, 1 << 20, false), Level::Fail, "no multiple of 32");
    assert_eq!(
        mtu(8_960, 65_536, false),
        Level::Fail,
        "a message is longer than a term allows"
    );
    assert_eq!(mtu(8_928, 1 << 20, true), Level::Ok);
    assert_eq!(
        mtu(8_960, 1 << 20, true),
        Level::Fail,
        "8,960 and 48 bytes are more than 9,000"
    );
}

#[test]
fn cpu_count_for_a_cluster_node_is_eight_cores() {
    let plan = Plan {
        purpose: Purpose::Cluster,
        ..full_plan()
    };
    assert_eq!(
        level(&examine(&bare_metal(), &plan), "cpu.count"),
        Level::Ok
    );
    assert_eq!(
        level(&examine(&cloud_vm(), &plan), "cpu.count"),
        Level::Warn
    );
}

#[test]
fn cloud_vm_warns_of_neighbours_clock_interrupts_and_limits() {
    let plan = Plan {
        data: vec![PathBuf::from("/data")],
        fsync: 2,
        ..Plan::default()
    };
    let report = examine(&cloud_vm(), &plan);
    assert_eq!(report.profile(), Profile::Latency);
    assert_levels(
        &report,
        &[
            ("cpu.isolated", Level::Warn),
            ("cpu.siblings", Level::Warn),
            ("cpu.power", Level::NotApplicable),
            ("numa", Level::Ok),
            ("clock", Level::Warn),
            ("machine", Level::Hint),
            ("steal", Level::Warn),
            ("gaps", Level::Warn),
            ("load", Level::Fail),
            ("irq", Level::Warn),
            ("vm.quiet", Level::Warn),
            ("net.buffers", Level::Warn),
            ("net.tcp", Level::NotApplicable),
            ("net.drops", Level::Warn),
            ("mtu", Level::Ok),
            ("limits", Level::Warn),
            ("fs.type", Level::Ok),
            ("fs.options", Level::Warn),
            ("disk", Level::Hint),
            ("perf", Level::NotApplicable),
        ],
    );
    let options = finding(&report, "fs.options");
    assert!(options.found.contains("not durable"), "{options:?}");
    let drops = finding(&report, "net.drops");
    assert!(
        drops.found.contains("InErrors 2") && drops.found.contains("backlog 3"),
        "{drops:?}"
    );
    assert_eq!(report.exit_code(), 4);
}

#[test]
fn container_leaves_the_host_to_hints_and_fails_what_breaks() {
    let plan = Plan {
        data: vec![PathBuf::from("/var/archive")],
        fsync: 1,
        ..Plan::default()
    };
    let report = examine(&container(), &plan);
    assert_eq!(report.profile(), Profile::Container);
    assert_levels(
        &report,
        &[
            ("cpu.isolated", Level::Hint),
            ("vm.quiet", Level::Hint),
            ("pages", Level::Hint),
            ("clock", Level::Hint),
            ("net.buffers", Level::NotApplicable),
            ("mtu", Level::Fail),
            ("shm", Level::Fail),
            ("limits", Level::Fail),
            ("fs.type", Level::Fail),
            ("gaps", Level::Hint),
            ("load", Level::Ok),
        ],
    );
    let limits = finding(&report, "limits");
    assert!(
        limits.found.contains("2.50 of 4 CPUs") && limits.found.contains("throttled 4 times"),
        "{limits:?}"
    );
    let shm = finding(&report, "shm");
    assert!(shm.found.contains("64 MiB free"), "{shm:?}");
}

#[test]
fn laptop_has_hints_for_latency_and_warnings_for_limits() {
    let plan = Plan {
        data: vec![PathBuf::from("/tmp/archive")],
        ..Plan::default()
    };
    let report = examine(&laptop(), &plan);
    assert_eq!(report.profile(), Profile::Laptop);
    assert_levels(
        &report,
        &[
            ("cpu.power", Level::Hint),
            ("load", Level::Hint),
            ("gaps", Level::Hint),
            ("clock", Level::Hint),
            ("vm.quiet", Level::Hint),
            ("limits", Level::Warn),
            ("fs.type", Level::Warn),
            ("shm", Level::Ok),
        ],
    );
    assert_eq!(report.exit_code(), 3);
}

#[test]
fn throughput_profile_lowers_what_only_affects_latency() {
    let plan = Plan {
        profile: Some(Profile::Throughput),
        ..Plan::default()
    };
    let report = examine(&cloud_vm(), &plan);
    assert_levels(
        &report,
        &[
            ("cpu.isolated", Level::Hint),
            ("load", Level::Warn),
            ("net.buffers", Level::Warn),
        ],
    );
}

#[test]
fn places_where_secrets_leave_memory_are_warnings_of_secured_drivers() {
    let secured = Plan {
        is_secured: true,
        ..Plan::default()
    };
    let swap = "Filename Type Size Used Priority\n/dev/sda2 partition 8388604 0 -2\n";
    let limits = "Max core file size        unlimited            unlimited            bytes\n";
    for machine in [
        bare_metal().with_file("/proc/swaps", swap),
        bare_metal().with_file("/proc/self/limits", limits),
    ] {
        let report = examine(&machine, &secured);
        let found = finding(&report, "secrets");
        assert_eq!(found.level, Level::Warn, "{found:?}");
        assert!(!found.mends.is_empty());
        let report = examine(&machine, &Plan::default());
        assert_eq!(level(&report, "secrets"), Level::NotApplicable);
    }
    assert_eq!(
        level(&examine(&bare_metal(), &secured), "secrets"),
        Level::Ok
    );
    // A datagram is 40 bytes longer: this interface has room for those of a plain driver only.
    let narrow = bare_metal().with_file("/sys/class/net/ens1f0/mtu", "1450");
    assert_eq!(level(&examine(&narrow, &Plan::default()), "mtu"), Level::Ok);
    assert_eq!(level(&examine(&narrow, &secured), "mtu"), Level::Fail);
}

#[test]
fn hidden_files_are_reported_as_not_visible() {
    let machine = bare_metal()
        .with_denied("/sys/devices/system/cpu/isolated")
        .with_denied("/proc/self/limits")
        .with_denied("/proc/cmdline");
    let report = examine(&machine, &full_plan());
    for id in ["cpu.isolated", "limits", "cpu.rcu"] {
        let finding = finding(&report, id);
        assert_eq!(finding.level, Level::Unseen);
        assert!(finding.found.contains("permission denied"), "{finding:?}");
    }
}

#[test]
fn an_empty_machine_has_a_finding_for_each_row_and_no_failure() {
    let machine = RecordedMachine::parse("").expect("an empty machine");
    let report = examine(&machine, &full_plan());
    assert_eq!(report.findings().len(), 31);
    assert!(report.worst() <= Level::Unseen, "{report}");
}

#[test]
fn damaged_files_cause_no_panic() {
    let texts = [
        "",
        "\u{fffd}\u{0}",
        "-1",
        "18446744073709551616",
        "0-99999999999",
        "a b c\nd e f",
    ];
    let source = include_str!("machines/bare-metal.txt");
    let paths: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("== /"))
        .collect();
    for text in texts {
        let machine = paths
            .iter()
            .filter(|path| !path.ends_with("after"))
            .fold(bare_metal(), |machine, path| {
                machine.with_file(&format!("/{path}"), text)
            });
        let report = examine(&machine, &full_plan());
        assert_eq!(report.findings().len(), 31);
        assert!(
            report
                .findings()
                .iter()
                .all(|finding| !finding.found.contains(char::is_control))
        );
    }
}

#[test]
fn without_a_probe_nothing_is_sampled() {
    let plan = Plan {
        probe: std::time::Duration::ZERO,
        ..full_plan()
    };
    let report = examine(&bare_metal(), &plan);
    for id in ["steal", "gaps", "load", "net.drops"] {
        assert_eq!(level(&report, id), Level::NotApplicable);
    }
}

#[test]
fn fix_script_of_a_laptop_has_each_mend_once_for_good() {
    let report = examine(&laptop(), &Plan::default());
    let script = fix_script(&report);
    assert!(script.starts_with("#!/bin/sh\n"), "{script}");
    let line = "#printf '%s\\n' 'vm.swappiness = 0' >> /etc/sysctl.d/90-taran.conf\n";
    assert_eq!(script.matches(line).count(), 1, "{script}");
    assert!(
        script.contains(
            "\necho performance > /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor\n"
        ),
        "{script}"
    );
}

#[test]
fn report_as_json_names_schema_levels_and_mends() {
    let report = examine(&cloud_vm(), &Plan::default());
    let json = serde_json::to_value(&report).expect("a report is JSON");
    assert_eq!(json["schema"], "taran-doctor/1");
    assert_eq!(json["profile"], "latency");
    let findings = json["findings"].as_array().expect("a list");
    let buffers = findings
        .iter()
        .find(|finding| finding["id"] == "net.buffers")
        .expect("a row");
    assert_eq!(buffers["level"], "warn");
    assert_eq!(
        buffers["mends"][0]["now"],
        "sysctl -w net.core.rmem_max=16777216"
    );
    assert_eq!(
        buffers["mends"][0]["for_good"],
        "/etc/sysctl.d/90-taran.conf: net.core.rmem_max = 16777216"
    );
}
