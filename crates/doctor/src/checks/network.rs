// SPDX-License-Identifier: Apache-2.0
//! Network: buffers, drops, MTU, the interface.

use crate::finding::{Finding, Level, Mend};
use crate::plan::Purpose;
use crate::scene::{Nature, Row, Scene, Sight};

use super::memory::{Wanted, compare};

/// Bytes that transport security adds to a datagram.
const SEALING: u64 = 40;

/// Socket buffers that drivers can ask for at most, in bytes.
const SOCKET_BUFFER: u64 = 16_777_216;
/// Bytes of IPv4 and UDP headers, and of IPv6 and UDP headers.
const HEADERS: [u64; 2] = [28, 48];
/// Frames are multiples of this length.
const ALIGNMENT: u64 = 32;
/// Highest MTU with the shortest terms: a message of an eighth of a term has to hold a request of an archive.
const SHORT_TERM: (u64, u64) = (65_536, 8_192);

pub(super) fn buffers(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "net.buffers",
        level: Level::Warn,
        nature: Nature::Needed,
        wanted: "net.core.rmem_max and net.core.wmem_max of 16777216",
        why: "a driver gets smaller socket buffers than it asks for, or does not start; bursts overflow them",
    };
    let of = |name: &'static str| {
        let value = scene.number(&format!("/proc/sys/{}", name.replace('.', "/")))?;
        Some((name, u64::try_from(value).unwrap_or(0)))
    };
    let limits: Vec<_> = [of("net.core.rmem_max"), of("net.core.wmem_max")]
        .into_iter()
        .flatten()
        .collect();
    if limits.is_empty() {
        return row.absent("no limits in this network namespace; those of the host apply");
    }
    let found = limits
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect::<Vec<_>>()
        .join(", ");
    let asked = scene.plan().socket_buffer;
    let mends = limits
        .iter()
        .filter(|(_, value)| *value < SOCKET_BUFFER.max(asked))
        .map(|(name, _)| Mend::Sysctl {
            name,
            value: SOCKET_BUFFER.max(asked).to_string(),
        });
    let mends: Vec<Mend> = mends.collect();
    if mends.is_empty() {
        row.ok(found)
    } else if limits.iter().any(|(_, value)| *value < asked) {
        row.deviates_at(
            Level::Fail,
            scene,
            format!("{found}; {asked} are asked for"),
            mends,
        )
    } else {
        row.deviates(scene, found, mends)
    }
}

pub(super) fn tcp(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "net.tcp",
        level: Level::Warn,
        nature: Nature::Latency,
        wanted: "tcp_rmem and tcp_wmem 4096 2097152 16777216, tcp_max_syn_backlog 8192, tcp_slow_start_after_idle 0, \
                 tcp_syn_retries 2, tcp_tw_reuse 1",
        why: "the systems that are compared use TCP; Aeron does not",
    };
    if scene.plan().purpose != Purpose::Rpc {
        return row.absent("no comparison with TCP planned");
    }
    let wanted = [
        Wanted {
            name: "net.ipv4.tcp_rmem",
            value: "4096 2097152 16777216",
        },
        Wanted {
            name: "net.ipv4.tcp_wmem",
            value: "4096 2097152 16777216",
        },
        Wanted {
            name: "net.ipv4.tcp_max_syn_backlog",
            value: "8192",
        },
        Wanted {
            name: "net.ipv4.tcp_slow_start_after_idle",
            value: "0",
        },
        Wanted {
            name: "net.ipv4.tcp_syn_retries",
            value: "2",
        },
        Wanted {
            name: "net.ipv4.tcp_tw_reuse",
            value: "1",
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

pub(super) fn drops(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "net.drops",
        level: Level::Warn,
        nature: Nature::Needed,
        wanted: "no drops: UDP InErrors, RcvbufErrors, SndbufErrors, backlog of each CPU",
        why: "each lost datagram costs a NAK and a round trip",
    };
    let Some(change) = scene.change() else {
        return row.absent("no probe");
    };
    let counters = [
        ("InErrors", change.udp_in_errors),
        ("RcvbufErrors", change.udp_receive_buffer_errors),
        ("SndbufErrors", change.udp_send_buffer_errors),
        ("backlog", change.backlog_drops),
    ];
    let known: Vec<String> = counters
        .iter()
        .filter_map(|(name, value)| Some(format!("{name} {}", (*value)?)))
        .collect();
    if known.is_empty() {
        return row.absent("neither /proc/net/snmp nor /proc/net/softnet_stat");
    }
    let found = format!("in the probe: {}", known.join(", "));
    if change.drops() == 0 {
        return row.ok(found);
    }
    let mut mends = Vec::new();
    if change.udp_in_errors.is_some_and(|errors| errors > 0) {
        mends.push(Mend::Advice("let subscribers poll faster, or ask for larger socket buffers (aeron.socket.so_rcvbuf)".to_owned()));
    }
    if change.backlog_drops.is_some_and(|drops| drops > 0) {
        mends.push(Mend::Sysctl {
            name: "net.core.netdev_max_backlog",
            value: "30000".to_owned(),
        });
        mends.push(Mend::Sysctl {
            name: "net.core.netdev_budget",
            value: "600".to_owned(),
        });
    }
    row.deviates(scene, found, mends)
}

pub(super) fn mtu(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "mtu",
        level: Level::Fail,
        nature: Nature::Needed,
        wanted: "MTU of the interface at least that of the driver plus 28 bytes (IPv6: 48), and 40 with transport security; that of the driver a multiple \
                 of 32, and at most 8192 with terms of 64 KiB",
        why: "a datagram that IP splits is lost with each of its parts",
    };
    let plan = scene.plan();
    let interface = scene.interface();
    let path = format!("/sys/class/net/{interface}/mtu");
    let sight = scene.text(&path);
    let Some(mtu) = scene.number(&path).and_then(|mtu| u64::try_from(mtu).ok()) else {
        return row.missing(&sight, &path);
    };
    let sealing = if plan.is_secured { SEALING } else { 0 };
    let needed = plan
        .mtu
        .saturating_add(HEADERS[usize::from(plan.is_ipv6)] + sealing);
    let secured = if plan.is_secured {
        " and 40 for sealing"
    } else {
        ""
    };
    let found = format!("{interface} {mtu}, driver {}{secured}", plan.mtu);
    let mut mends = Vec::new();
    if mtu < needed {
        mends.push(Mend::Command {
            now: format!("ip link set dev {} mtu {needed}", crate::finding::quoted(interface)),
            for_good: format!("MTU of {interface} in the network configuration: {needed}; or a smaller aeron.mtu.length"),
        });
    }
    if !plan.mtu.is_multiple_of(ALIGNMENT) {
        let below = plan.mtu / ALIGNMENT * ALIGNMENT;
        mends.push(Mend::Advice(format!(
            "set aeron.mtu.length={below}, a multiple of {ALIGNMENT}"
        )));
    }
    if plan.term_length <= SHORT_TERM.0 && plan.mtu > SHORT_TERM.1 {
        mends.push(Mend::Advice(format!(
            "use an MTU of at most {}, or longer terms",
            SHORT_TERM.1
        )));
    }
    if mends.is_empty() {
        row.ok(found)
    } else {
        row.deviates(scene, found, mends)
    }
}

pub(super) fn nic(scene: &Scene<'_>) -> Finding {
    let row = Row {
        id: "nic",
        level: Level::Warn,
        nature: Nature::Host,
        wanted: "adaptive coalescing off, a small rx-usecs, full rings; packet steering (rps) off the bench CPUs",
        why: "coalescing delays each packet by up to tens of microseconds; short rings overflow in bursts",
    };
    let interface = scene.interface();
    let directory = format!("/sys/class/net/{interface}");
    let Sight::Seen(queues) = scene.list(&format!("{directory}/queues")) else {
        return row.absent(format!("no queues of {interface}"));
    };
    if interface == "lo" {
        return row.absent("the loopback has no hardware");
    }
    let uevent = scene
        .text(&format!("{directory}/device/uevent"))
        .seen()
        .unwrap_or_default();
    let driver = uevent
        .lines()
        .find_map(|line| line.strip_prefix("DRIVER="))
        .unwrap_or("unknown");
    let receive = queues.iter().filter(|queue| queue.starts_with("rx-"));
    let mut mends = Vec::new();
    for queue in receive.clone() {
        let path = format!("{directory}/queues/{queue}/rps_cpus");
        let cpus = scene
            .text(&path)
            .seen()
            .and_then(|mask| crate::CpuList::from_mask(&mask))
            .unwrap_or_default();
        if !cpus.common(scene.bench_cpus()).is_empty() {
            mends.push(Mend::Write {
                path,
                value: "0".to_owned(),
            });
        }
    }
    let number = |path: &str| {
        scene
            .number(path)
            .map_or_else(|| "unknown".to_owned(), |value| value.to_string())
    };
    let found = format!(
        "{interface}: driver {driver}, {} receive and {} transmit queues, {} with rps on bench CPUs, busy_poll {}, \
         netdev_budget {}, speed {} Mb/s; rings, coalescing and offloads are visible to ethtool only",
        receive.count(),
        queues
            .iter()
            .filter(|queue| queue.starts_with("tx-"))
            .count(),
        mends.len(),
        number("/proc/sys/net/core/busy_poll"),
        number("/proc/sys/net/core/netdev_budget"),
        number(&format!("{directory}/speed"))
    );
    let name = crate::finding::quoted(interface);
    if mends.is_empty() {
        // What ethtool alone can see is neither good nor bad.
        let advice = format!(
            "see ethtool -c {name} and ethtool -g {name}; ethtool -C {name} adaptive-rx off rx-usecs 0"
        );
        return row.deviates_at(Level::Hint, scene, found, vec![Mend::Advice(advice)]);
    }
    row.deviates(scene, found, mends)
}
