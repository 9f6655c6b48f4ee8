// SPDX-License-Identifier: Apache-2.0
//! Counters of the kernel, and their change over a time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::Machine;

/// Times of a CPU since boot, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CpuTimes {
    total: u64,
    idle: u64,
    steal: u64,
}

/// Counters at one moment; those that the machine does not have are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    all: Option<CpuTimes>,
    cpus: BTreeMap<usize, CpuTimes>,
    udp_errors: Option<[u64; 3]>,
    backlog_drops: Option<u64>,
    throttled: Option<u64>,
}

impl Counters {
    /// Reads the counters. Those whose files are absent or damaged stay unknown.
    #[must_use]
    pub fn read(machine: &dyn Machine) -> Counters {
        let mut counters = Counters::default();
        if let Ok(stat) = machine.read("/proc/stat") {
            counters.parse_stat(&stat);
        }
        counters.udp_errors = machine
            .read("/proc/net/snmp")
            .ok()
            .and_then(|text| udp_errors(&text));
        let softnet = machine.read("/proc/net/softnet_stat").ok();
        counters.backlog_drops = softnet.and_then(|text| backlog_drops(&text));
        counters.throttled = control_group(machine).and_then(|group| group.throttled(machine));
        counters
    }

    fn parse_stat(&mut self, stat: &str) {
        for line in stat.lines() {
            let mut fields = line.split_ascii_whitespace();
            let Some(number) = fields.next().and_then(|name| name.strip_prefix("cpu")) else {
                continue;
            };
            // user, nice, system, idle, iowait, irq, softirq, steal; guest times are part of user and nice.
            let times: Vec<u64> = fields
                .take(8)
                .map_while(|field| field.parse().ok())
                .collect();
            let [.., idle, waiting, _, _, steal] = times[..] else {
                continue;
            };
            let times = CpuTimes {
                total: times.iter().fold(0, |sum, time| sum.saturating_add(*time)),
                idle: idle.saturating_add(waiting),
                steal,
            };
            if number.is_empty() {
                self.all = Some(times);
            } else if let Ok(cpu) = number.parse() {
                self.cpus.insert(cpu, times);
            }
        }
    }

    /// Returns the change since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Counters) -> Change {
        let steal = |before: &CpuTimes, after: &CpuTimes| {
            share(
                after.steal.saturating_sub(before.steal),
                after.total.saturating_sub(before.total),
            )
        };
        let busy = self.cpus.iter().filter_map(|(cpu, after)| {
            let before = earlier.cpus.get(cpu)?;
            let total = after.total.saturating_sub(before.total);
            let idle = after.idle.saturating_sub(before.idle);
            Some((*cpu, share(total.saturating_sub(idle), total)))
        });
        let difference =
            |after: Option<u64>, before: Option<u64>| Some(after?.saturating_sub(before?));
        let udp = |index: usize| {
            difference(
                self.udp_errors.map(|errors| errors[index]),
                earlier.udp_errors.map(|errors| errors[index]),
            )
        };
        Change {
            steal: earlier
                .all
                .as_ref()
                .zip(self.all.as_ref())
                .map(|(before, after)| steal(before, after)),
            busy: busy.collect(),
            udp_in_errors: udp(0),
            udp_receive_buffer_errors: udp(1),
            udp_send_buffer_errors: udp(2),
            backlog_drops: difference(self.backlog_drops, earlier.backlog_drops),
            throttled: difference(self.throttled, earlier.throttled),
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Change of the counters over a time; `None` where the machine does not have the counter.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Change {
    /// Share of the CPU time that other virtual machines took, from 0 to 1.
    pub steal: Option<f64>,
    /// Share of the time that each CPU was busy, from 0 to 1.
    pub busy: BTreeMap<usize, f64>,
    /// Datagrams that were not delivered, for any reason.
    pub udp_in_errors: Option<u64>,
    /// Datagrams dropped because a receive buffer was full.
    pub udp_receive_buffer_errors: Option<u64>,
    /// Sends that failed because a send buffer was full.
    pub udp_send_buffer_errors: Option<u64>,
    /// Packets dropped because the backlog of a CPU was full.
    pub backlog_drops: Option<u64>,
    /// Periods in which the control group was throttled.
    pub throttled: Option<u64>,
}

impl Change {
    /// Returns the number of dropped packets and datagrams that are known.
    #[must_use]
    pub fn drops(&self) -> u64 {
        [
            self.udp_in_errors,
            self.udp_send_buffer_errors,
            self.backlog_drops,
        ]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add)
    }
}

fn udp_errors(snmp: &str) -> Option<[u64; 3]> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let names: Vec<&str> = lines.next()?.split(' ').collect();
    let values: Vec<&str> = lines.next()?.split(' ').collect();
    let value = |name: &str| {
        let index = names.iter().position(|each| *each == name)?;
        values.get(index)?.parse().ok()
    };
    Some([
        value("InErrors")?,
        value("RcvbufErrors")?,
        value("SndbufErrors")?,
    ])
}

/// Returns the sum of the second column of `/proc/net/softnet_stat`.
fn backlog_drops(softnet: &str) -> Option<u64> {
    let mut drops = 0_u64;
    for line in softnet.lines() {
        let column = line.split_ascii_whitespace().nth(1)?;
        drops = drops.saturating_add(u64::from_str_radix(column, 16).ok()?);
    }
    Some(drops)
}

/// The control group of this process that limits CPU time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlGroup {
    pub(crate) directory: String,
    pub(crate) is_unified: bool,
}

impl ControlGroup {
    fn throttled(&self, machine: &dyn Machine) -> Option<u64> {
        let stat = machine.read(&format!("{}/cpu.stat", self.directory)).ok()?;
        let mut lines = stat.lines();
        lines.find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok())
    }
}

/// Finds the control group: of the unified hierarchy, or of the controller `cpu` of the older one.
pub(crate) fn control_group(machine: &dyn Machine) -> Option<ControlGroup> {
    let groups = machine.read("/proc/self/cgroup").ok()?;
    let of = |matches: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            matches(controllers)
                .then(|| parts.next())?
                .map(|path| path.trim_end_matches('/').to_owned())
        })
    };
    // A namespace or a bind mount can hide the path: then the group is the root of the mount.
    let first = |directories: [String; 2], is_unified: bool| {
        directories.into_iter().find_map(|directory| {
            let has_stat = machine.read(&format!("{directory}/cpu.stat")).is_ok();
            has_stat.then_some(ControlGroup {
                directory,
                is_unified,
            })
        })
    };
    if let Some(path) = of(&|controllers| controllers.split(',').any(|name| name == "cpu")) {
        let root = "/sys/fs/cgroup/cpu".to_owned();
        return first([format!("{root}{path}"), root], false);
    }
    let root = "/sys/fs/cgroup".to_owned();
    let path = of(&str::is_empty)?;
    first([format!("{root}{path}"), root], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(stat: &str) -> Counters {
        let mut counters = Counters::default();
        counters.parse_stat(stat);
        counters
    }

    #[test]
    fn change_of_stat_is_busy_and_steal_as_shares() {
        let before =
            counters("cpu  100 0 0 900 0 0 0 0 5 5\ncpu0 100 0 0 900 0 0 0 0 5 5\nintr 7\n");
        let after = counters("cpu  150 0 0 940 0 0 0 10 9 9\ncpu0 150 0 0 940 0 0 0 10 9 9\n");
        let change = after.since(&before);
        assert!((change.steal.unwrap() - 0.1).abs() < 1e-9);
        assert!((change.busy[&0] - 0.6).abs() < 1e-9);
        assert_eq!(change.udp_in_errors, None);
    }

    #[test]
    fn counters_of_damaged_files_are_unknown() {
        assert_eq!(
            counters("cpu 1 2 x\ncpuzz 1 2 3 4 5 6 7 8\n\u{fffd}"),
            Counters::default()
        );
        assert_eq!(udp_errors("Udp: InErrors\nUdp: 1\n"), None);
        assert_eq!(
            udp_errors("Udp: InErrors RcvbufErrors SndbufErrors\nUdp: 1\n"),
            None
        );
        assert_eq!(backlog_drops("00 zz"), None);
        assert_eq!(
            backlog_drops("00000001 0000000a\n00000001 00000001 00\n"),
            Some(11)
        );
    }

    #[test]
    fn change_of_counters_that_went_back_is_zero() {
        let change = counters("cpu  1 1 1 1 1 1 1 1\n").since(&counters("cpu  9 9 9 9 9 9 9 9\n"));
        assert_eq!(change.steal, Some(0.0));
    }
}
