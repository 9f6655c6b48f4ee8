// SPDX-License-Identifier: Apache-2.0
//! Clusters of `taran cluster`, of official members, and of both.

mod containers;
mod kills;
mod official_client;
mod official_members;
mod tool;
mod transfers;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::drivers::Driver;
use crate::exchange::{await_true, connect};
use crate::java::{self, argument, directory};
use crate::program::Program;
use crate::signal::signal;

/// Implementation of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Taran,
    Official,
}

/// Members on this machine, each a process with driver and archive. Dropping it kills them.
pub(crate) struct TestCluster {
    members: String,
    endpoints: String,
    dirs: Vec<PathBuf>,
    options: Vec<String>,
    /// Service of the members of Taran.
    service: &'static str,
    nodes: Vec<Option<(Kind, Program)>>,
}

/// Returns a port that no other cluster of this process has, outside the range of [`crate::exchange::port`].
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let offset = NEXT.fetch_add(1, Ordering::Relaxed);
    9_000 + std::process::id() as u16 % 80 * 150 + offset
}

impl TestCluster {
    /// Describes a cluster without starting it.
    pub(crate) fn new(name: &str, count: usize) -> Self {
        let (mut members, mut endpoints) = (Vec::new(), Vec::new());
        for id in 0..count {
            let ports: Vec<String> = (0..5).map(|_| format!("127.0.0.1:{}", port())).collect();
            endpoints.push(format!("{id}={}", ports[0]));
            members.push(format!("{id},{}", ports.join(",")));
        }
        Self {
            members: members.join("|"),
            endpoints: endpoints.join(","),
            dirs: (0..count)
                .map(|id| directory(&format!("{name}-{id}")))
                .collect(),
            options: Vec::new(),
            service: "echo",
            nodes: (0..count).map(|_| None).collect(),
        }
    }

    /// Adds a property to the members that are started from now on.
    pub(crate) fn with(mut self, property: &str, value: &str) -> Self {
        self.options.push(format!("-D{property}={value}"));
        self
    }

    /// Sets the service of members of Taran that are started from now on; `none` is for official ones, too: containers.
    pub(crate) fn with_service(mut self, service: &'static str) -> Self {
        self.service = service;
        self
    }

    /// Starts all members, of one kind.
    pub(crate) fn start_all(mut self, kind: Kind) -> Self {
        for id in 0..self.nodes.len() {
            self.start(id, kind);
        }
        self
    }

    /// Starts a member; it may not have found a leader when this returns.
    pub(crate) fn start(&mut self, id: usize, kind: Kind) {
        self.begin(id, kind);
        let ready = match kind {
            Kind::Taran => "taran cluster ",
            Kind::Official => "READY",
        };
        let start = self.program(id).expect(ready);
        if kind == Kind::Official {
            return;
        }
        let path = |part: &str| self.dirs[id].join(part).display().to_string();
        for part in [
            format!(", cluster 0, member {id} of "),
            format!(", directory {}, durability ", path("cluster")),
            format!(", archive {}, ", path("archive")),
            format!(", driver {}, driver threading SHARED, ", path("driver")),
        ] {
            assert!(start.contains(&part), "{part:?} is missing in {start:?}");
        }
    }

    /// Starts the process of a member.
    pub(crate) fn begin(&mut self, id: usize, kind: Kind) {
        let member = self.members.split('|').nth(id).expect("a member");
        let archive = member.split(',').nth(5).expect("an endpoint");
        let dir = &self.dirs[id];
        std::fs::create_dir_all(dir).unwrap();
        let mut options = [
            "aeron.term.buffer.sparse.file=true",
            "aeron.archive.replication.channel=aeron:udp?endpoint=127.0.0.1:0",
            // Tests run on small file systems in memory.
            "aeron.archive.segment.file.length=1m",
            "aeron.archive.low.storage.space.threshold=1m",
            "aeron.cluster.log.channel=aeron:udp?term-length=256k",
            "aeron.cluster.ingress.channel=aeron:udp?term-length=64k",
            "aeron.cluster.replication.channel=aeron:udp?endpoint=127.0.0.1:0",
            // Other tests take the CPU for seconds.
            "aeron.cluster.leader.heartbeat.timeout=4s",
            "aeron.cluster.leader.heartbeat.interval=100ms",
            "aeron.cluster.startup.canvass.timeout=8s",
            "aeron.cluster.election.timeout=500ms",
            "aeron.cluster.election.status.interval=50ms",
        ]
        .map(|option| format!("-D{option}"))
        .to_vec();
        options.extend([
            format!("-Daeron.archive.control.channel=aeron:udp?endpoint={archive}"),
            format!("-Daeron.cluster.member.id={id}"),
            format!("-Daeron.cluster.members={}", self.members),
        ]);
        options.extend_from_slice(&self.options);
        let path = |part: &str| dir.join(part).display().to_string();
        let program = match kind {
            Kind::Taran => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_taran"));
                command
                    .args([
                        "cluster",
                        "--driver",
                        "--archive",
                        "--service",
                        self.service,
                    ])
                    .env_clear()
                    .args(options)
                    .arg(format!("-Daeron.dir={}", path("driver")))
                    .arg(format!("-Daeron.archive.dir={}", path("archive")))
                    .arg(format!("-Daeron.cluster.dir={}", path("cluster")))
                    .arg("-Daeron.dir.delete.on.start=true")
                    .arg("-Daeron.threading.mode=SHARED")
                    .arg("-Daeron.archive.threading.mode=SHARED");
                Program::start(&format!("member {id}"), &mut command)
            }
            Kind::Official => {
                let arguments = [
                    argument("dir", path("driver")),
                    argument("archive-dir", path("archive")),
                    argument("cluster-dir", path("cluster")),
                    argument("containers", self.service == "none"),
                ];
                java::start_with("cluster-member", &options, &arguments)
            }
        };
        self.nodes[id] = Some((kind, program));
    }

    /// Returns the program of a member that runs.
    pub(crate) fn program(&mut self, id: usize) -> &mut Program {
        let node = self.nodes[id].as_mut().expect("the member runs");
        &mut node.1
    }

    /// Returns true if a member leads.
    pub(crate) fn is_leader(&self, id: usize) -> bool {
        let client = connect(&self.dirs[id].join("driver"));
        let counters = client.counters();
        let value = |type_id| {
            let found = counters.find(|meta| meta.type_id == type_id)?;
            counters.value(found.id)
        };
        (value(201), value(207)) == (Some(2), Some(17))
    }

    /// Takes a snapshot by the control toggle of a member that leads, and waits for it.
    pub(crate) fn snapshot(&self, id: usize) {
        let client = connect(&self.dirs[id].join("driver"));
        let counters = client.counters();
        let toggle = counters.find(|meta| meta.type_id == 202).expect("a toggle");
        let toggle = counters.counter(toggle.id).expect("a counter");
        await_true("a neutral toggle", || toggle.get() == 1);
        toggle.set(4);
        await_true("the snapshot", || toggle.get() == 1);
    }

    /// Ends the cluster by the control toggle of a member that leads.
    pub(crate) fn shutdown(&self, id: usize) {
        let client = connect(&self.dirs[id].join("driver"));
        let counters = client.counters();
        let toggle = counters.find(|meta| meta.type_id == 202).expect("a toggle");
        let toggle = counters.counter(toggle.id).expect("a counter");
        await_true("a neutral toggle", || toggle.get() == 1);
        toggle.set(5);
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self, id: usize) {
        if let Some((_, mut program)) = self.nodes[id].take() {
            program.kill();
        }
    }

    /// Ends a member in order. Returns what it said.
    pub(crate) fn end(&mut self, id: usize) -> Vec<String> {
        let Some((kind, program)) = self.nodes[id].take() else {
            return Vec::new();
        };
        if kind == Kind::Taran {
            signal(program.id(), "TERM");
        }
        // The official member ends when its input is closed.
        program.finish()
    }

    /// Ends all members in order, and removes their directories.
    pub(crate) fn end_all(mut self) {
        for id in 0..self.nodes.len() {
            self.end(id);
        }
    }

    /// Returns the arguments of Java clients.
    pub(crate) fn client(&self, driver: &Driver) -> Vec<String> {
        vec![
            argument("dir", driver.dir().display()),
            argument("endpoints", &self.endpoints),
        ]
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        self.nodes.clear();
        for dir in &self.dirs {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
