//! Machines that are network namespaces, and the cables between them.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::own_namespaces::{Flags, inside};

/// Runs the body of a test where it may make machines, in a network and a mount namespace of its own; see [`inside`].
/// `test` is the path of the test.
pub(crate) fn in_own_world(test: &str, body: impl FnOnce()) {
    inside(test, ways_in, || {
        run("mount", &["-t", "tmpfs", "tmpfs", "/run"]);
        body();
    });
}

/// How to become somebody who may do all that the tests do: as root simply so, else as root of a user namespace.
fn ways_in() -> Result<Flags, String> {
    const TRY: &str = include_str!("try.sh");
    let ways: [Flags; 2] = [&["-m", "-n"], &["-r", "-m", "-n"]];
    let mut said = String::new();
    for flags in ways {
        match Command::new("unshare")
            .args(flags)
            .args(["sh", "-c", TRY])
            .output()
        {
            Ok(output) if output.status.success() => return Ok(flags),
            Ok(output) => said = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => said = error.to_string(),
        }
    }
    Err(format!(
        "network namespaces cannot be made here (root, iproute2 and nftables are needed): {said}"
    ))
}

/// A machine.
pub(crate) struct Machine {
    name: &'static str,
}

impl Machine {
    /// A machine that nobody can reach yet.
    pub(crate) fn new(name: &'static str) -> Machine {
        run("ip", &["netns", "add", name]);
        let machine = Machine { name };
        machine.run("ip", &["link", "set", "lo", "up"]);
        machine
    }

    /// Lays a cable to another machine. `path` names the interface at both ends; the addresses are given as
    /// `10.9.1.1/24`.
    pub(crate) fn join(&self, address: &str, other: &Machine, other_address: &str, path: &str) {
        let ends = [
            "link", "add", "name", path, "netns", self.name, "type", "veth", "peer", "name", path,
            "netns", other.name,
        ];
        run("ip", &ends);
        for (machine, address) in [(self, address), (other, other_address)] {
            machine.attach(path, address);
        }
        for machine in [self, other] {
            machine.await_link(path);
        }
    }

    /// Begins to use an interface. Datagrams go over the cable one by one, as they would over a real one, so that they
    /// are lost one by one.
    fn attach(&self, interface: &str, address: &str) {
        self.run("ip", &["addr", "add", address, "dev", interface]);
        let up = ["link", "set", interface, "gso_max_segs", "1", "up"];
        self.run("ip", &up);
    }

    /// Waits until the kernel calls an interface running. It does so some time after both ends are up, and until then
    /// drivers refuse groups on it.
    fn await_link(&self, interface: &str) {
        let patience = Instant::now() + Duration::from_secs(30);
        let show = ["-oneline", "link", "show", "dev", interface];
        while !self.run("ip", &show).contains(" state UP ") {
            assert!(
                Instant::now() < patience,
                "{interface} of {} does not come up: {}",
                self.name,
                self.run("ip", &show)
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Makes this machine the switch of several others, each with its address: one network.
    pub(crate) fn switch(&self, members: &[(&Machine, &str)]) {
        let bridge = [
            "link",
            "add",
            "bridge",
            "type",
            "bridge",
            "mcast_snooping",
            "0",
        ];
        self.run("ip", &bridge);
        self.run("ip", &["link", "set", "bridge", "up"]);
        for (member, address) in members {
            let port = member.name;
            let ends = [
                "link", "add", "name", port, "netns", self.name, "type", "veth", "peer", "name",
                "lan", "netns", port,
            ];
            run("ip", &ends);
            self.run("ip", &["link", "set", port, "master", "bridge", "up"]);
            member.attach("lan", address);
        }
        for (member, _) in members {
            member.await_link("lan");
        }
    }

    /// Pulls the cable out, or puts it in again.
    pub(crate) fn plug(&self, path: &str, is_in: bool) {
        let state = if is_in { "up" } else { "down" };
        self.run("ip", &["link", "set", path, state]);
        if is_in {
            self.await_link(path);
        }
    }

    /// From now on the kernel throws `percent` of the datagrams away that come in.
    pub(crate) fn lose(&self, percent: u32) {
        let script = format!(
            "table inet loss {{
                counter seen {{ }}
                counter lost {{ }}
                chain input {{
                    type filter hook input priority 0
                    meta l4proto udp counter name seen
                    meta l4proto udp numgen random mod 100 < {percent} counter name lost drop
                }}
            }}"
        );
        self.run("nft", &[&script]);
    }

    /// How many datagrams came in since [`Self::lose`], and how many of them were lost.
    pub(crate) fn seen_and_lost(&self) -> (u64, u64) {
        let said = self.run("nft", &["list", "counters", "table", "inet", "loss"]);
        let mut counts = said.split("packets ").skip(1).map(|rest| {
            let number = rest.split_whitespace().next().unwrap();
            number.parse::<u64>().unwrap()
        });
        (counts.next().unwrap(), counts.next().unwrap())
    }

    /// A program on this machine.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name, program]);
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let mut all = vec!["netns", "exec", self.name, program];
        all.extend(arguments);
        run("ip", &all)
    }
}

/// Runs a program that has to succeed: its output.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
