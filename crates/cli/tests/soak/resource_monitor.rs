// SPDX-License-Identifier: Apache-2.0
//! Limits on the resources of the Taran drivers, and on the errors they record.
//!
//! Resources vary while streams start and end. The limits apply when all streams have ended: counters, descriptors and
//! files as at the start, and no more private memory than after the warm-up, with some slack.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use taran_core::error_log;
use taran_protocol::counter::SystemCounter;

use crate::drivers::{Drivers, Ours, cnc, counters};
use crate::machines::Machine;
use crate::tally::Tally;

/// Interval between two reports.
const INTERVAL: Duration = Duration::from_secs(60);

/// Memory is not limited before this time; in a short run, before the first half.
const WARM_UP: Duration = Duration::from_secs(60);

/// Allowed growth of memory after the warm-up: a quarter plus this.
const SLACK_KB: u64 = 4_096;

/// Errors that may be recorded: the advice to retry when a port is requested whose socket is being closed.
const EXPECTED: [&str; 1] = ["please retry"];

/// Resources used by a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Anonymous memory, which excludes mapped logs.
    memory_kb: u64,
    descriptors: u64,
    counters: u64,
    files: u64,
    file_kb: u64,
}

impl Usage {
    /// Returns the resources that a driver releases when they are no longer needed.
    fn held(&self) -> [u64; 4] {
        [self.descriptors, self.counters, self.files, self.file_kb]
    }
}

pub(crate) struct ResourceMonitor {
    at_start: [Usage; 2],
    warm_up: Duration,
    warm: Option<[Usage; 2]>,
    now: [Usage; 2],
    sampled_at: Duration,
    reported: [[i64; 4]; 2],
}

/// Counters that are reported for each driver besides its resources.
const REPORTED: [SystemCounter; 4] = [
    SystemCounter::NaksSent,
    SystemCounter::NaksReceived,
    SystemCounter::RetransmitsSent,
    SystemCounter::InvalidPackets,
];

impl ResourceMonitor {
    /// Starts monitoring. `time` is the duration of the whole run.
    pub(crate) fn begin(drivers: &Drivers, time: Duration) -> ResourceMonitor {
        let at_start = drivers.ours.each_ref().map(usage);
        ResourceMonitor {
            at_start,
            warm_up: WARM_UP.min(time / 2),
            warm: None,
            now: at_start,
            sampled_at: Duration::ZERO,
            reported: [[0; 4]; 2],
        }
    }

    pub(crate) fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.sampled_at + INTERVAL || (self.warm.is_none() && elapsed >= self.warm_up)
    }

    pub(crate) fn sample(&mut self, drivers: &Drivers, elapsed: Duration) {
        self.sampled_at = elapsed;
        self.now = drivers.ours.each_ref().map(usage);
        self.reported = drivers.ours.each_ref().map(|ours| {
            let counters = counters(&cnc(ours.path()));
            REPORTED.map(|counter| counters.value(counter.id()).unwrap())
        });
        if elapsed >= self.warm_up {
            self.warm.get_or_insert(self.now);
        }
    }

    pub(crate) fn report(
        &self,
        elapsed: Duration,
        tally: &Tally,
        machines: [&Machine; 2],
    ) -> String {
        let mut text = format!("-- {} s: {tally}\n{}", elapsed.as_secs(), tally.lines());
        for ((usage, reported), name) in self.now.iter().zip(self.reported).zip(["here", "there"]) {
            let Usage {
                memory_kb,
                descriptors,
                counters,
                files,
                file_kb,
            } = usage;
            let [sent, received, resent, invalid] = reported;
            text.push_str(&format!(
                "  driver {name}: {memory_kb} kB private, {descriptors} descriptors, {counters} counters, {files} \
                 files of {file_kb} kB; NAKs sent {sent}, received {received}, retransmits {resent}, invalid {invalid}\n"
            ));
        }
        for (machine, name) in machines.into_iter().zip(["here", "there"]) {
            let (seen, lost) = machine.seen_and_lost();
            text.push_str(&format!(
                "  cable to {name}: {lost} of {seen} datagrams lost\n"
            ));
        }
        text
    }

    /// Returns true if the drivers' resources are back at their level at the start.
    pub(crate) fn is_over(&self, drivers: &Drivers) -> bool {
        let now = drivers.ours.each_ref().map(usage);
        now.each_ref().map(Usage::held) == self.at_start.each_ref().map(Usage::held)
    }

    /// Returns the errors after all clients have ended: remaining resources, and recorded errors.
    pub(crate) fn end(&mut self, drivers: &Drivers) -> Vec<String> {
        let mut errors = Vec::new();
        for (index, ours) in drivers.ours.iter().enumerate() {
            let (before, left) = (self.at_start[index], usage(ours));
            println!(
                "soak: {} at the start {before:?}, at the end {left:?}",
                ours.name
            );
            if before.held() != left.held() {
                errors.push(format!(
                    "{}: something is left: {before:?} became {left:?}",
                    ours.name
                ));
            }
            if let Some(warm) = self.warm {
                let most = warm[index].memory_kb * 5 / 4 + SLACK_KB;
                if left.memory_kb > most {
                    let memory = left.memory_kb;
                    errors.push(format!(
                        "{}: {memory} kB of memory, {most} are allowed",
                        ours.name
                    ));
                }
            }
            error_log::read(&cnc(ours.path()).error_log, 0, |observation| {
                let record = format!("{observation:?}");
                if !EXPECTED.iter().any(|text| record.contains(text)) {
                    errors.push(format!("{} recorded {record}", ours.name));
                }
            });
        }
        errors
    }
}

fn usage(ours: &Ours) -> Usage {
    let pid = ours.driver.pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let memory = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let memory_kb = memory
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
    let mut count = 0;
    counters(&cnc(ours.path())).for_each(|_| count += 1);
    let (files, file_kb) = files(ours.path());
    Usage {
        memory_kb,
        descriptors,
        counters: count,
        files,
        file_kb,
    }
}

/// Returns the number of files below a directory, and their size in kilobytes.
fn files(directory: &Path) -> (u64, u64) {
    let mut all = (0, 0);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // Logs are created and removed meanwhile.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let (files, kb) = if metadata.is_dir() {
            files(&entry.path())
        } else {
            (1, metadata.blocks() / 2)
        };
        all = (all.0 + files, all.1 + kb);
    }
    all
}
