// SPDX-License-Identifier: Apache-2.0
//! Measurements of clusters.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use taran_peers::measured::Measured;

use super::drivers::{CORES, set_options};
use super::{IDLE, Run, TIMEOUT, WARM_UP, WARM_UP_JAVA, ceiling, cpu_time, measured};
use crate::interrupt;
use crate::plan::ClusterTask;
use crate::process::{Program, archive_directory, directory};
use crate::subject::{Implementation, MemberArguments, program};
use crate::testbed::{End, Place, Testbed};

/// Number of members.
const COUNT: usize = 3;
/// First port of the members, and the distance of the ports of two members.
const PORT: usize = 20_201;
const PORTS_PER_MEMBER: usize = 10;

/// Options of all members. Each process of ours and each virtual machine has all parts of a member.
const OPTIONS: [(&str, &str); 7] = [
    ("aeron.dir.delete.on.start", "true"),
    ("aeron.dir.delete.on.shutdown", "true"),
    (
        "aeron.archive.replication.channel",
        "aeron:udp?endpoint=127.0.0.1:0",
    ),
    (
        "aeron.cluster.replication.channel",
        "aeron:udp?endpoint=127.0.0.1:0",
    ),
    ("aeron.cluster.log.channel", "aeron:udp?term-length=16m"),
    ("aeron.cluster.ingress.channel", "aeron:udp?term-length=4m"),
    ("aeron.cluster.max.sessions", "100"),
];

/// Options of members that share the cores of a small machine.
const LEAN: [(&str, &str); 2] = [
    ("aeron.threading.mode", "SHARED"),
    ("aeron.archive.threading.mode", "SHARED"),
];

/// Warm-up of a cluster in milliseconds. The JIT has to have seen the code of six agents.
const WARM_UP_CLUSTER: u64 = 10_000;
/// Rate of the warm-up before a search, in messages per second.
const WARM_UP_RATE: u64 = 10_000;
/// Rate of the messages while leadership changes, in messages per second.
const OUTAGE_RATE: u64 = 1_000;
/// Rate of the messages with which a log is filled, in messages per second: more than a cluster takes.
const FILL_RATE: u64 = 10_000_000;
/// Payload bytes of these messages.
const FILL_LENGTH: usize = 1_344;
/// Time limit for a full log, and for a member that reads it.
const FILL_TIMEOUT: Duration = Duration::from_secs(610);

/// Cores of the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cores {
    /// All but that of the client, which never sleeps.
    BesideClient,
    /// All.
    All,
}

/// Members, each a process with driver, archive and service.
struct Members {
    implementation: Implementation,
    options: Vec<(String, String)>,
    state: usize,
    cores: Cores,
    nodes: Vec<Node>,
}

/// A member; it has no program after its end.
struct Node {
    program: Option<Program>,
    aeron_dir: PathBuf,
    /// Directory of archive and cluster, on the disk.
    disk_dir: PathBuf,
}

impl Members {
    /// Describes a cluster without starting it.
    fn new(implementation: Implementation, options: &[&[(&str, &str)]], cores: Cores) -> Members {
        let options = OPTIONS.iter().chain(options.iter().copied().flatten());
        Members {
            implementation,
            options: options
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            state: 0,
            cores,
            nodes: (0..COUNT)
                .map(|id| Node {
                    program: None,
                    aeron_dir: directory(&format!("member-{id}")),
                    disk_dir: archive_directory(&format!("member-{id}")),
                })
                .collect(),
        }
    }

    /// Starts all members.
    fn start(&mut self) -> Result<(), String> {
        for id in 0..COUNT {
            self.launch(id)?;
        }
        for id in 0..COUNT {
            self.await_ready(id)?;
        }
        Ok(())
    }

    /// Starts the process of a member.
    fn launch(&mut self, id: usize) -> Result<(), String> {
        let node = &self.nodes[id];
        let [archive_dir, cluster_dir] =
            ["archive", "cluster"].map(|part| node.disk_dir.join(part));
        std::fs::create_dir_all(&node.disk_dir)
            .map_err(|error| format!("{}: {error}", node.disk_dir.display()))?;
        let mut options = self.options.clone();
        for (name, value) in [
            ("aeron.cluster.member.id", id.to_string()),
            ("aeron.cluster.members", members()),
            (
                "aeron.archive.control.channel",
                format!("aeron:udp?endpoint={}", endpoint(id, 4)),
            ),
        ] {
            options.push((name.to_owned(), value));
        }
        let arguments = MemberArguments {
            directory: &node.aeron_dir,
            archive_dir: &archive_dir,
            cluster_dir: &cluster_dir,
            state: self.state,
            options: &options,
        };
        let command = self.implementation.member(&arguments);
        let mut command = match self.cores {
            Cores::BesideClient => pinned(&command),
            Cores::All => command,
        };
        let options: Vec<_> = options
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        set_options(&mut command, &options);
        command
            .env("AERON_DIR", &node.aeron_dir)
            .env("AERON_ARCHIVE_DIR", &archive_dir)
            .env("AERON_CLUSTER_DIR", &cluster_dir);
        let testbed = Testbed::new(&Place::Loopback)?;
        let command = testbed.at(End::Far, None, &command);
        self.nodes[id].program = Some(Program::start(command, &format!("member {id}"))?);
        Ok(())
    }

    /// Waits until a member has started; it may not have found a leader then.
    fn await_ready(&mut self, id: usize) -> Result<(), String> {
        let program = self.nodes[id].program.as_mut().ok_or("no member")?;
        loop {
            // An official member says before what its service does.
            if program.line(TIMEOUT)?.starts_with("READY") {
                return Ok(());
            }
        }
    }

    /// Returns a command of the load program on its own core, or on any.
    fn load(&self, load: &str, [rate, warm_up, measure]: [u64; 3]) -> Command {
        let endpoints: Vec<String> = (0..COUNT)
            .map(|id| format!("{id}={}", endpoint(id, 0)))
            .collect();
        let mut command = Command::new(program("clusters"));
        command
            .arg(load)
            .args(["--endpoints", &endpoints.join(",")])
            .args(["--rate", &rate.to_string()])
            .args(["--warmup-ms", &warm_up.to_string()])
            .args(["--measure-ms", &measure.to_string()]);
        if self.cores == Cores::BesideClient {
            command.args(["--cpu", &CORES[0].to_string()]);
        }
        command
    }

    /// Runs a load and returns what it has measured.
    fn measure(&self, command: &Command) -> Result<Measured, String> {
        measured(&mut start(command)?, None)
    }

    /// Waits until a member leads, and returns it.
    fn leader(&self) -> Result<usize, String> {
        leader(&mut start(&self.load("leader", [1, 0, 0]))?)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        // All at once: a leader would otherwise wait for a successor again and again.
        for program in self
            .nodes
            .iter_mut()
            .filter_map(|node| node.program.as_mut())
        {
            program.close_input();
        }
        for node in &mut self.nodes {
            node.program = None;
            // Usually already removed by the driver at its shutdown.
            let _ = std::fs::remove_dir_all(&node.aeron_dir);
            let _ = std::fs::remove_dir_all(&node.disk_dir);
        }
    }
}

impl Run {
    /// Runs a measurement of a cluster.
    pub(super) fn cluster(&self, task: &ClusterTask) -> Result<Measured, String> {
        match task {
            ClusterTask::Echo { rate, length } => {
                let members = self.members(&[&LEAN], Cores::BesideClient)?;
                let mut load = members.load("echo", [*rate, WARM_UP_CLUSTER, self.measure_ms]);
                load.args(["--length", &length.to_string()]);
                members.measure(&load)
            }
            ClusterTask::Ceiling { length, options } => {
                let members = self.members(&[&LEAN, options], Cores::BesideClient)?;
                let echo = |rate, warm_up| {
                    let mut load = members.load("echo", [rate, warm_up, self.measure_ms]);
                    load.args(["--length", &length.to_string()]);
                    members.measure(&load)
                };
                echo(WARM_UP_RATE, WARM_UP_CLUSTER)?;
                ceiling::highest(|rate| echo(rate, WARM_UP))
            }
            ClusterTask::Failover(options) => {
                let members = self.members(&[&LEAN, options], Cores::All)?;
                outage(members, |members, leader| {
                    let program = members.nodes[leader].program.as_mut();
                    program.ok_or("no leader")?.kill();
                    Ok(())
                })
            }
            ClusterTask::Transfer => {
                let members = self.members(&[&LEAN], Cores::All)?;
                outage(members, |members, leader| {
                    let dir = &members.nodes[leader].aeron_dir;
                    act("transfer", &[dir.as_os_str()], TIMEOUT)
                })
            }
            ClusterTask::Stop => {
                let members = self.members(&[&LEAN], Cores::All)?;
                outage(members, |members, leader| {
                    let program = members.nodes[leader].program.as_mut();
                    program.ok_or("no leader")?.close_input();
                    Ok(())
                })
            }
            ClusterTask::Restart(bytes) => self.restart_member(*bytes),
            ClusterTask::Snapshot { rate, state } => {
                let mut members = Members::new(self.implementation, &[&LEAN], Cores::BesideClient);
                members.state = *state;
                members.start()?;
                let durations = [*rate, WARM_UP_CLUSTER, self.measure_ms];
                let mut load = start(&members.load("stall", durations))?;
                let dir = &members.nodes[leader(&mut load)?].aeron_dir;
                act("snapshot", &[dir.as_os_str()], TIMEOUT)?;
                load.close_input();
                measured(&mut load, None)
            }
            ClusterTask::Idle => self.idle_members(),
        }
    }

    fn members(&self, options: &[&[(&str, &str)]], cores: Cores) -> Result<Members, String> {
        let mut members = Members::new(self.implementation, options, cores);
        members.start()?;
        Ok(members)
    }

    /// Measures the start of a follower that has ended in order.
    fn restart_member(&self, bytes: u64) -> Result<Measured, String> {
        let mut members = self.members(&[&LEAN], Cores::All)?;
        let fill = |members: &Members| {
            let mut load = members.load("fill", [FILL_RATE, 0, 0]);
            load.args(["--length", &FILL_LENGTH.to_string()])
                .args(["--bytes", &(bytes / 2).to_string()]);
            start(&load)?.line(FILL_TIMEOUT).map(drop)
        };
        fill(&members)?;
        let leader = members.leader()?;
        let leader_dir = members.nodes[leader].aeron_dir.clone();
        act("snapshot", &[leader_dir.as_os_str()], TIMEOUT)?;
        fill(&members)?;
        let id = (leader + 1) % COUNT;
        if let Some(mut program) = members.nodes[id].program.take() {
            program.end();
        }
        let begin = Instant::now();
        members.launch(id)?;
        let node = &members.nodes[id];
        let pid = node.program.as_ref().map_or(0, Program::id).to_string();
        let arguments = [
            leader_dir.as_os_str(),
            node.aeron_dir.as_os_str(),
            OsStr::new(&pid),
        ];
        act("follow", &arguments, FILL_TIMEOUT)?;
        Ok(Measured::of(begin.elapsed().as_secs_f64() * 1e3))
    }

    /// Measures the CPU time of the members, of which each has the threads of its defaults.
    fn idle_members(&self) -> Result<Measured, String> {
        let members = self.members(&[], Cores::All)?;
        members.leader()?;
        // Excludes the work of the start-up, and what compilers of virtual machines do after it.
        interrupt::pause(Duration::from_millis(WARM_UP_JAVA))?;
        let used = || -> Result<Duration, String> {
            let programs = members
                .nodes
                .iter()
                .filter_map(|node| node.program.as_ref());
            programs.map(|program| cpu_time(program.id())).sum()
        };
        let (before, start) = (used()?, Instant::now());
        interrupt::pause(Duration::from_millis(self.measure_ms.max(IDLE)))?;
        let used = used()?.saturating_sub(before).as_secs_f64() / COUNT as f64;
        Ok(Measured::of(100.0 * used / start.elapsed().as_secs_f64()))
    }
}

/// Measures the longest time without an answer while `end` ends the leadership of a member.
fn outage(
    mut members: Members,
    end: impl FnOnce(&mut Members, usize) -> Result<(), String>,
) -> Result<Measured, String> {
    let mut load = start(&members.load("outage", [OUTAGE_RATE, WARM_UP_JAVA, 0]))?;
    let leader = leader(&mut load)?;
    end(&mut members, leader)?;
    measured(&mut load, None)
}

/// Runs an action of the load program, beside a load on the core of the client.
fn act(action: &str, arguments: &[&OsStr], timeout: Duration) -> Result<(), String> {
    let mut command = Command::new(program("clusters"));
    command.arg(action).args(arguments);
    match start(&pinned(&command))?.line(timeout)?.as_str() {
        "DONE" => Ok(()),
        line => Err(format!("{action} printed {line:?} instead of DONE")),
    }
}

/// Starts a command of the load program.
fn start(command: &Command) -> Result<Program, String> {
    let testbed = Testbed::new(&Place::Loopback)?;
    Program::start(testbed.at(End::Near, None, command), "the load")
}

/// Returns the leader that the load program prints.
fn leader(program: &mut Program) -> Result<usize, String> {
    let line = program.line(TIMEOUT)?;
    line.strip_prefix("LEADER ")
        .and_then(|id| id.parse().ok())
        .filter(|id| *id < COUNT)
        .ok_or_else(|| format!("the load printed {line:?} instead of the leader"))
}

/// Returns a command on all cores but that of the client.
fn pinned(command: &Command) -> Command {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let last = (count - 1).max(CORES[1]);
    let mut pinned = Command::new("taskset");
    pinned
        .args(["-c", &format!("{}-{last}", CORES[1])])
        .arg(command.get_program())
        .args(command.get_args());
    pinned
}

/// Returns the members in the form of `aeron.cluster.members`.
fn members() -> String {
    let members = (0..COUNT).map(|id| {
        let endpoints: Vec<String> = (0..5).map(|part| endpoint(id, part)).collect();
        format!("{id},{}", endpoints.join(","))
    });
    members.collect::<Vec<_>>().join("|")
}

/// Returns an endpoint of a member: for clients, consensus, log, catch-up and archive.
fn endpoint(id: usize, part: usize) -> String {
    format!("127.0.0.1:{}", PORT + id * PORTS_PER_MEMBER + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_five_endpoints_each_and_no_port_twice() {
        let all = members();
        let mut ports: Vec<&str> = Vec::new();
        for (id, member) in all.split('|').enumerate() {
            let mut parts = member.split(',');
            assert_eq!(parts.next(), Some(id.to_string().as_str()));
            ports.extend(parts.filter_map(|part| part.strip_prefix("127.0.0.1:")));
        }
        assert_eq!(ports.len(), 5 * COUNT, "{all}");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 5 * COUNT, "{all}");
    }
}
