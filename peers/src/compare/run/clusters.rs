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
/// Time limit for a full log, and for a member that reads it: more than the 600 s of the load program and the 60 s of its session.
const FILL_TIMEOUT: Duration = Duration::from_secs(670);

/// Cores on which the members run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pinning {
    /// Every core except the core of the client, which never sleeps.
    BesideClient,
    /// Every core.
    All,
}

/// Members, each a process with driver, archive and service.
struct Members {
    implementation: Implementation,
    options: Vec<(String, String)>,
    state: usize,
    pinning: Pinning,
    nodes: Vec<Node>,
}

/// A member; it has no program after an end that belongs to the measurement.
struct Node {
    program: Option<Program>,
    aeron_dir: PathBuf,
    /// Directory of archive and cluster, on the disk.
    disk_dir: PathBuf,
}

impl Members {
    /// Describes a cluster without starting it.
    fn new(
        implementation: Implementation,
        options: &[&[(&str, &str)]],
        pinning: Pinning,
    ) -> Members {
        let options = OPTIONS.iter().chain(options.iter().copied().flatten());
        Members {
            implementation,
            options: options
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            state: 0,
            pinning,
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
        let mut command = match self.pinning {
            Pinning::BesideClient => pinned(&command),
            Pinning::All => command,
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
        if self.pinning == Pinning::BesideClient {
            command.args(["--cpu", &CORES[0].to_string()]);
        }
        command
    }

    /// Runs a load on all members and returns what it has measured.
    fn measure(&mut self, command: &Command) -> Result<Measured, String> {
        self.result(&mut start(command)?)
    }

    /// Returns what a load has measured. Fails if a member has ended that the measurement has not ended.
    fn result(&mut self, load: &mut Program) -> Result<Measured, String> {
        let result = measured(load, None);
        self.check()?;
        result
    }

    /// Fails if a member has ended that the measurement has not ended.
    fn check(&mut self) -> Result<(), String> {
        for (id, node) in self.nodes.iter_mut().enumerate() {
            if let Some(program) = &mut node.program
                && let Some(status) = program.has_ended()?
            {
                return Err(format!(
                    "member {id} ended during the measurement with {status}, see above"
                ));
            }
        }
        Ok(())
    }

    /// Kills a member, as `kill -9` does.
    fn kill(&mut self, id: usize) -> Result<(), String> {
        self.nodes[id].program.take().ok_or("no member")?.kill();
        Ok(())
    }

    /// Ends a member in order. Fails if it has to be killed, or reports a failure.
    fn end(&mut self, id: usize) -> Result<(), String> {
        let status = self.nodes[id].program.take().ok_or("no member")?.end()?;
        if status.success() {
            return Ok(());
        }
        Err(format!("member {id} ended with {status}, see above"))
    }

    /// Grows the log by a number of bytes.
    fn fill(&mut self, bytes: u64) -> Result<(), String> {
        let mut load = self.load("fill", [FILL_RATE, 0, 0]);
        load.args(["--length", &FILL_LENGTH.to_string()])
            .args(["--bytes", &bytes.to_string()]);
        let result = done("fill", &load, FILL_TIMEOUT);
        self.check()?;
        result
    }

    /// Waits until a member has what the leader has committed.
    fn follow(&mut self, leader: usize, id: usize) -> Result<(), String> {
        let node = &self.nodes[id];
        let pid = node.program.as_ref().map_or(0, Program::id).to_string();
        let arguments = [
            self.nodes[leader].aeron_dir.as_os_str(),
            node.aeron_dir.as_os_str(),
            OsStr::new(&pid),
        ];
        let result = act("follow", &arguments, FILL_TIMEOUT);
        self.check()?;
        result
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
                let mut members = self.members(&[&LEAN], Pinning::BesideClient)?;
                let mut load = members.load("echo", [*rate, WARM_UP_CLUSTER, self.measure_ms]);
                load.args(["--length", &length.to_string()]);
                members.measure(&load)
            }
            ClusterTask::Ceiling { length, options } => {
                let mut members = self.members(&[&LEAN, options], Pinning::BesideClient)?;
                let mut echo = |rate, warm_up| {
                    let mut load = members.load("echo", [rate, warm_up, self.measure_ms]);
                    load.args(["--length", &length.to_string()]);
                    members.measure(&load)
                };
                echo(WARM_UP_RATE, WARM_UP_CLUSTER)?;
                let found = ceiling::highest(|rate| echo(rate, WARM_UP));
                // The search takes each failure for a rate that is too high.
                members.check()?;
                found
            }
            ClusterTask::Failover(options) => {
                let members = self.members(&[&LEAN, options], Pinning::All)?;
                outage(members, Members::kill)
            }
            ClusterTask::Transfer => {
                let members = self.members(&[&LEAN], Pinning::All)?;
                outage(members, |members, leader| {
                    let dir = &members.nodes[leader].aeron_dir;
                    act("transfer", &[dir.as_os_str()], TIMEOUT)
                })
            }
            ClusterTask::Stop => {
                let members = self.members(&[&LEAN], Pinning::All)?;
                outage(members, Members::end)
            }
            ClusterTask::Restart(bytes) => self.restart_member(*bytes),
            ClusterTask::Snapshot { rate, state } => {
                let mut members =
                    Members::new(self.implementation, &[&LEAN], Pinning::BesideClient);
                members.state = *state;
                members.start()?;
                let durations = [*rate, WARM_UP_CLUSTER, self.measure_ms];
                let mut load = start(&members.load("stall", durations))?;
                let dir = &members.nodes[leader(&mut load)?].aeron_dir;
                act("snapshot", &[dir.as_os_str()], TIMEOUT)?;
                load.close_input();
                members.result(&mut load)
            }
            ClusterTask::Idle => self.idle_members(),
        }
    }

    fn members(&self, options: &[&[(&str, &str)]], pinning: Pinning) -> Result<Members, String> {
        let mut members = Members::new(self.implementation, options, pinning);
        members.start()?;
        Ok(members)
    }

    /// Measures the start of a follower that has ended in order.
    fn restart_member(&self, bytes: u64) -> Result<Measured, String> {
        let mut members = self.members(&[&LEAN], Pinning::All)?;
        members.fill(bytes / 2)?;
        let leader = members.leader()?;
        let leader_dir = members.nodes[leader].aeron_dir.clone();
        act("snapshot", &[leader_dir.as_os_str()], TIMEOUT)?;
        members.fill(bytes / 2)?;
        let now = members.leader()?;
        if now != leader {
            return Err(format!(
                "leadership moved from member {leader} to member {now} before the restart"
            ));
        }
        for id in (0..COUNT).filter(|id| *id != leader) {
            members.follow(leader, id)?;
        }
        let id = (leader + 1) % COUNT;
        members.end(id)?;
        let begin = Instant::now();
        members.launch(id)?;
        members.follow(leader, id)?;
        Ok(Measured::of(begin.elapsed().as_secs_f64() * 1e3))
    }

    /// Measures the CPU time of the members, of which each has the threads of its defaults.
    fn idle_members(&self) -> Result<Measured, String> {
        let mut members = self.members(&[], Pinning::All)?;
        members.leader()?;
        // Excludes the work of the start-up, and what compilers of virtual machines do after it.
        interrupt::pause(Duration::from_millis(WARM_UP_JAVA))?;
        let used = |members: &Members| -> Result<Duration, String> {
            let nodes = members.nodes.iter();
            let programs = nodes.filter_map(|node| node.program.as_ref());
            programs.map(|program| cpu_time(program.id())).sum()
        };
        let (before, start) = (used(&members)?, Instant::now());
        interrupt::pause(Duration::from_millis(self.measure_ms.max(IDLE)))?;
        let used = used(&members)?.saturating_sub(before).as_secs_f64() / COUNT as f64;
        let load = 100.0 * used / start.elapsed().as_secs_f64();
        members.check()?;
        Ok(Measured::of(load))
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
    members.result(&mut load)
}

/// Runs an action of the load program, on all cores but that of the client, where a load may run.
fn act(action: &str, arguments: &[&OsStr], timeout: Duration) -> Result<(), String> {
    let mut command = Command::new(program("clusters"));
    command.arg(action).args(arguments);
    done(action, &pinned(&command), timeout)
}

/// Runs a command of the load program that measures nothing, and waits until it has done its action.
fn done(action: &str, command: &Command, timeout: Duration) -> Result<(), String> {
    match start(command)?.line(timeout)?.as_str() {
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

/// Returns a command that runs on every core except the core of the client.
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
