// SPDX-License-Identifier: Apache-2.0
//! Observations that several checks share, and the way from an observation to a level.

use std::io;

use crate::counters::{Change, Counters};
use crate::cpu_list::CpuList;
use crate::finding::{Finding, Level, Mend};
use crate::machine::{Gaps, Machine};
use crate::mounts::{self, Mount};
use crate::plan::{Plan, Profile};

/// Content of a file, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight<T> {
    Seen(T),
    Absent,
    Hidden(String),
}

impl<T> Sight<T> {
    fn of(path: &str, result: io::Result<T>) -> Sight<T> {
        match result {
            Ok(value) => Sight::Seen(value),
            Err(error) => match error.kind() {
                // Some files of an interface exist, but answer that the argument is invalid if the device has no such value.
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::Unsupported => Sight::Absent,
                io::ErrorKind::PermissionDenied => {
                    Sight::Hidden(format!("{path}: permission denied; root can read it"))
                }
                _ => Sight::Hidden(format!("{path}: {error}")),
            },
        }
    }

    pub(crate) fn seen(self) -> Option<T> {
        match self {
            Sight::Seen(value) => Some(value),
            Sight::Absent | Sight::Hidden(_) => None,
        }
    }
}

/// Part of a machine that a check is about, which decides how profiles lower its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Software fails or figures are wrong: no profile lowers it.
    Needed,
    /// Affects latency.
    Latency,
    /// Affects latency, and belongs to the host of a container.
    Host,
}

/// A row of the table of checks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    /// Level of a deviation before the profile.
    pub(crate) level: Level,
    pub(crate) nature: Nature,
    pub(crate) wanted: &'static str,
    pub(crate) why: &'static str,
}

impl Row {
    pub(crate) fn ok(&self, found: impl Into<String>) -> Finding {
        self.at(Level::Ok, &found.into(), Vec::new())
    }

    pub(crate) fn absent(&self, found: impl Into<String>) -> Finding {
        self.at(Level::NotApplicable, &found.into(), Vec::new())
    }

    pub(crate) fn unseen(&self, reason: impl Into<String>) -> Finding {
        self.at(Level::Unseen, &reason.into(), Vec::new())
    }

    /// Returns the finding of a file that is not there or not readable.
    pub(crate) fn missing<T>(&self, sight: &Sight<T>, path: &str) -> Finding {
        match sight {
            Sight::Hidden(reason) => self.unseen(reason.clone()),
            _ => self.absent(format!("no {path}")),
        }
    }

    /// Returns a deviation at the level of the row.
    pub(crate) fn deviates(
        &self,
        scene: &Scene<'_>,
        found: impl Into<String>,
        mends: Vec<Mend>,
    ) -> Finding {
        self.deviates_at(self.level, scene, found, mends)
    }

    /// Returns a deviation at a level other than that of the row.
    pub(crate) fn deviates_at(
        &self,
        level: Level,
        scene: &Scene<'_>,
        found: impl Into<String>,
        mends: Vec<Mend>,
    ) -> Finding {
        let level = match (scene.profile, self.nature) {
            (Profile::Latency, _) | (_, Nature::Needed) | (Profile::Container, Nature::Latency) => {
                level
            }
            (Profile::Throughput, _) => level.lowered(),
            (Profile::Laptop, _) | (Profile::Container, Nature::Host) => Level::Hint,
        };
        self.at(level, &found.into(), mends)
    }

    fn at(&self, level: Level, found: &str, mends: Vec<Mend>) -> Finding {
        Finding {
            id: self.id,
            level,
            found: printable(found),
            wanted: self.wanted.to_owned(),
            why: self.why,
            mends,
        }
    }
}

/// Replaces control characters, so that the text of a file cannot change a terminal.
fn printable(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// All that the checks look at.
pub(crate) struct Scene<'a> {
    machine: &'a dyn Machine,
    plan: &'a Plan,
    profile: Profile,
    allowed: CpuList,
    isolated: CpuList,
    cpus: CpuList,
    interface: String,
    mounts: Vec<Mount>,
    change: Option<Change>,
    gaps: Vec<(usize, io::Result<Gaps>)>,
}

impl<'a> Scene<'a> {
    /// Takes the samples.
    pub(crate) fn observe(machine: &'a dyn Machine, plan: &'a Plan) -> Scene<'a> {
        let list = |text: Option<String>| {
            text.and_then(|text| text.parse::<CpuList>().ok())
                .unwrap_or_default()
        };
        let status = machine.read("/proc/self/status").unwrap_or_default();
        let allowed = list(field(&status, "Cpus_allowed_list:").map(str::to_owned));
        let isolated = list(machine.read("/sys/devices/system/cpu/isolated").ok());
        let cpus = plan.cpus.clone().unwrap_or_else(|| {
            if isolated.is_empty() {
                CpuList::new(allowed.as_slice().iter().copied().take(2).collect())
            } else {
                isolated.clone()
            }
        });
        let interface = plan
            .interface
            .clone()
            .or_else(|| default_interface(machine));
        let mounts = machine
            .read("/proc/mounts")
            .map(|text| mounts::parse(&text))
            .unwrap_or_default();
        let (mut change, mut gaps) = (None, Vec::new());
        if !plan.probe.is_zero() {
            let before = Counters::read(machine);
            machine.wait(plan.probe);
            change = Some(Counters::read(machine).since(&before));
            let seen = machine.gaps(cpus.as_slice(), plan.probe);
            gaps = cpus.as_slice().iter().copied().zip(seen).collect();
        }
        Scene {
            machine,
            plan,
            profile: plan.profile.unwrap_or_else(|| recognised(machine)),
            allowed,
            isolated,
            cpus,
            interface: interface.unwrap_or_else(|| "lo".to_owned()),
            mounts,
            change,
            gaps,
        }
    }

    pub(crate) fn plan(&self) -> &Plan {
        self.plan
    }

    pub(crate) fn machine(&self) -> &dyn Machine {
        self.machine
    }

    pub(crate) fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns the CPUs that this process may use.
    pub(crate) fn allowed(&self) -> &CpuList {
        &self.allowed
    }

    pub(crate) fn isolated(&self) -> &CpuList {
        &self.isolated
    }

    /// Returns the CPUs of benchmark or driver.
    pub(crate) fn bench_cpus(&self) -> &CpuList {
        &self.cpus
    }

    pub(crate) fn cpus(&self) -> &[usize] {
        self.cpus.as_slice()
    }

    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    pub(crate) fn mount(&self, path: &str) -> Option<&Mount> {
        mounts::of(&self.mounts, path)
    }

    /// Returns the change of the counters over the probe; `None` without a probe.
    pub(crate) fn change(&self) -> Option<&Change> {
        self.change.as_ref()
    }

    pub(crate) fn gaps(&self) -> &[(usize, io::Result<Gaps>)] {
        &self.gaps
    }

    /// Returns the trimmed text of a file.
    pub(crate) fn text(&self, path: &str) -> Sight<String> {
        Sight::of(
            path,
            self.machine.read(path).map(|text| text.trim().to_owned()),
        )
    }

    pub(crate) fn list(&self, path: &str) -> Sight<Vec<String>> {
        Sight::of(path, self.machine.list(path))
    }

    /// Returns the number in a file.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.text(path).seen()?.parse().ok()
    }

    /// Returns the value of a parameter of the kernel's command line; the last one counts.
    pub(crate) fn boot_parameter(&self, name: &str) -> Option<String> {
        let line = self.text("/proc/cmdline").seen()?;
        let mut values = line
            .split_ascii_whitespace()
            .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.next_back().map(str::to_owned)
    }
}

/// Returns the value of a line `name value`.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

fn default_interface(machine: &dyn Machine) -> Option<String> {
    let routes = machine.read("/proc/net/route").ok()?;
    let default = routes.lines().find_map(|line| {
        let mut fields = line.split('\t');
        let name = fields.next()?;
        (fields.next()?.trim() == "00000000").then(|| name.trim().to_owned())
    });
    default.filter(|name| is_interface_name(name))
}

/// Returns true if the text can be the name of an interface, and so a part of a path.
#[must_use]
pub fn is_interface_name(name: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_graphic() && letter != '/';
    !name.is_empty()
        && name.len() <= 15
        && name != "."
        && name != ".."
        && name.chars().all(is_allowed)
}

/// Recognises containers by what runtimes leave behind, and laptops by their battery.
fn recognised(machine: &dyn Machine) -> Profile {
    let exists = |path: &str| machine.read(path).is_ok();
    let groups = machine.read("/proc/1/cgroup").unwrap_or_default();
    let is_named = ["docker", "kubepods", "containerd", "libpod", "lxc"]
        .iter()
        .any(|name| groups.contains(name));
    if is_named
        || exists("/.dockerenv")
        || exists("/run/.containerenv")
        || exists("/run/systemd/container")
    {
        return Profile::Container;
    }
    let supplies = machine.list("/sys/class/power_supply").unwrap_or_default();
    let is_battery = supplies.iter().any(|name| {
        let read = |file: &str| {
            machine
                .read(&format!("/sys/class/power_supply/{name}/{file}"))
                .unwrap_or_default()
        };
        // Batteries of mice and keyboards have the scope Device.
        read("type").trim() == "Battery" && read("scope").trim() != "Device"
    });
    if is_battery {
        Profile::Laptop
    } else {
        Profile::Latency
    }
}
