//! What must not grow in our drivers, and what must not be recorded.
//!
//! While streams come and go everything moves; what is held is what is left when all of them are gone: counters,
//! descriptors and files as at the start, and no more memory of its own than after the warm-up, but for some slack.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use taran_core::error_log;
use taran_protocol::counter::SystemCounter;

use crate::drivers::{Drivers, Ours, cnc, counters};
use crate::machines::Machine;
use crate::tally::Tally;

/// Between two reports.
const INTERVAL: Duration = Duration::from_secs(60);

/// Nothing is said of memory before; of a short soak that is the first half.
const WARM_UP: Duration = Duration::from_secs(60);

/// How much more memory than after the warm-up is none: a quarter, and so many kilobytes.
const SLACK_KB: u64 = 4_096;

/// What may be recorded: advice to ask again, when a port is asked for whose socket is about to go.
const EXPECTED: [&str; 1] = ["please retry"];

/// What a driver uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Memory of its own, which is not that of logs.
    memory_kb: u64,
    descriptors: u64,
    counters: u64,
    files: u64,
    file_kb: u64,
}

impl Usage {
    /// What a driver gives back as soon as nobody needs it.
    fn held(&self) -> [u64; 4] {
        [self.descriptors, self.counters, self.files, self.file_kb]
    }
}

pub(crate) struct Watch {
    at_start: [Usage; 2],
    warm_up: Duration,
    warm: Option<[Usage; 2]>,
    now: [Usage; 2],
    looked: Duration,
    moved: [[i64; 4]; 2],
}

/// What is reported of each driver besides what it uses.
const MOVED: [SystemCounter; 4] = [
    SystemCounter::NaksSent,
    SystemCounter::NaksReceived,
    SystemCounter::RetransmitsSent,
    SystemCounter::InvalidPackets,
];

impl Watch {
    /// `time` is that of the whole soak.
    pub(crate) fn begin(drivers: &Drivers, time: Duration) -> Watch {
        let at_start = drivers.ours.each_ref().map(usage);
        Watch {
            at_start,
            warm_up: WARM_UP.min(time / 2),
            warm: None,
            now: at_start,
            looked: Duration::ZERO,
            moved: [[0; 4]; 2],
        }
    }

    pub(crate) fn is_due(&self, elapsed: Duration) -> bool {
        elapsed >= self.looked + INTERVAL || (self.warm.is_none() && elapsed >= self.warm_up)
    }

    pub(crate) fn look(&mut self, drivers: &Drivers, elapsed: Duration) {
        self.looked = elapsed;
        self.now = drivers.ours.each_ref().map(usage);
        self.moved = drivers.ours.each_ref().map(|ours| {
            let counters = counters(&cnc(ours.path()));
            MOVED.map(|counter| counters.value(counter.id()).unwrap())
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
        for ((usage, moved), name) in self.now.iter().zip(self.moved).zip(["here", "there"]) {
            let Usage {
                memory_kb,
                descriptors,
                counters,
                files,
                file_kb,
            } = usage;
            let [sent, received, resent, invalid] = moved;
            text.push_str(&format!(
                "  driver {name}: {memory_kb} kB of its own, {descriptors} descriptors, {counters} counters, {files} \
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

    /// Whether our drivers hold what they held at the start.
    pub(crate) fn is_over(&self, drivers: &Drivers) -> bool {
        let now = drivers.ours.each_ref().map(usage);
        now.each_ref().map(Usage::held) == self.at_start.each_ref().map(Usage::held)
    }

    /// When all clients have gone and are forgotten: what is left that should not be, and what was recorded.
    pub(crate) fn end(&mut self, drivers: &Drivers) -> Vec<String> {
        let mut complaints = Vec::new();
        for (index, ours) in drivers.ours.iter().enumerate() {
            let (before, left) = (self.at_start[index], usage(ours));
            println!(
                "soak: {} at the start {before:?}, at the end {left:?}",
                ours.name
            );
            if before.held() != left.held() {
                complaints.push(format!(
                    "{}: something is left: {before:?} became {left:?}",
                    ours.name
                ));
            }
            if let Some(warm) = self.warm {
                let most = warm[index].memory_kb * 5 / 4 + SLACK_KB;
                if left.memory_kb > most {
                    let memory = left.memory_kb;
                    complaints.push(format!(
                        "{}: {memory} kB of memory, {most} are allowed",
                        ours.name
                    ));
                }
            }
            error_log::read(&cnc(ours.path()).error_log, 0, |observation| {
                let record = format!("{observation:?}");
                if !EXPECTED.iter().any(|text| record.contains(text)) {
                    complaints.push(format!("{} recorded {record}", ours.name));
                }
            });
        }
        complaints
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

/// Number of files below a directory, and the kilobytes that they take.
fn files(directory: &Path) -> (u64, u64) {
    let mut all = (0, 0);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        // Logs come and go while one looks.
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
