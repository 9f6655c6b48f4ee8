// SPDX-License-Identifier: Apache-2.0
//! Machines, as network namespaces, and the links between them.

use std::fs::File;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::own_namespaces::{Flags, inside};

/// Runs the body of a test in its own network and mount namespace, where it may create machines; see [`inside`]. `test`
/// is the path of the test.
pub(crate) fn in_own_namespaces(test: &str, body: impl FnOnce()) {
    inside(test, unshare_flags, || {
        run("mount", &["-t", "tmpfs", "tmpfs", "/run"]);
        body();
    });
}

/// Returns the `unshare` flags for the required privileges: directly as root, otherwise within a user namespace.
fn unshare_flags() -> Result<Flags, String> {
    const TRY: &str = include_str!("try.sh");
    let candidates: [Flags; 2] = [&["-m", "-n"], &["-r", "-m", "-n"]];
    let mut reason = String::new();
    for flags in candidates {
        match Command::new("unshare")
            .args(flags)
            .args(["sh", "-c", TRY])
            .output()
        {
            Ok(output) if output.status.success() => return Ok(flags),
            Ok(output) => reason = String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(format!(
        "network namespaces are not available (requires root, iproute2 and nftables): {reason}"
    ))
}

/// A machine: a network namespace.
pub(crate) struct Machine {
    name: &'static str,
}

impl Machine {
    /// Creates a machine without links.
    pub(crate) fn new(name: &'static str) -> Machine {
        run("ip", &["netns", "add", name]);
        let machine = Machine { name };
        machine.run("ip", &["link", "set", "lo", "up"]);
        machine
    }

    /// Returns the network namespace of this machine, for threads that enter it.
    pub(crate) fn namespace(&self) -> File {
        File::open(format!("/run/netns/{}", self.name)).unwrap()
    }

    /// Links this machine to another one. `path` is the interface name at both ends; addresses have the form
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

    /// Adds an IPv6 address to an interface, usable at once.
    pub(crate) fn add_address(&self, interface: &str, address: &str) {
        let add = ["addr", "add", address, "dev", interface, "nodad"];
        self.run("ip", &add);
    }

    /// Permits GSO on an interface, so that GSO batches cross the link as a whole.
    pub(crate) fn permit_segmentation(&self, interface: &str) {
        let permit = ["link", "set", interface, "gso_max_segs", "64"];
        self.run("ip", &permit);
    }

    /// Configures an interface. GSO is disabled on it, so that datagrams cross the link, and are lost, one by one.
    fn attach(&self, interface: &str, address: &str) {
        self.run("ip", &["addr", "add", address, "dev", interface]);
        let up = ["link", "set", interface, "gso_max_segs", "1", "up"];
        self.run("ip", &up);
    }

    /// Waits until the kernel reports an interface as up, some time after both ends are. Until then, drivers reject
    /// groups on it.
    fn await_link(&self, interface: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let show = ["-oneline", "link", "show", "dev", interface];
        while !self.run("ip", &show).contains(" state UP ") {
            assert!(
                Instant::now() < deadline,
                "{interface} of {} does not come up: {}",
                self.name,
                self.run("ip", &show)
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Makes this machine the switch of a network of other machines, each with its address.
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

    /// Disconnects or reconnects the link.
    pub(crate) fn plug(&self, path: &str, is_connected: bool) {
        let state = if is_connected { "up" } else { "down" };
        self.run("ip", &["link", "set", path, state]);
        if is_connected {
            self.await_link(path);
        }
    }

    /// Makes the kernel drop `percent` of the incoming datagrams.
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

    /// Returns the numbers of datagrams received and dropped since [`Self::lose`].
    pub(crate) fn seen_and_lost(&self) -> (u64, u64) {
        let output = self.run("nft", &["list", "counters", "table", "inet", "loss"]);
        let mut counts = output.split("packets ").skip(1).map(|rest| {
            let number = rest.split_whitespace().next().unwrap();
            number.parse::<u64>().unwrap()
        });
        (counts.next().unwrap(), counts.next().unwrap())
    }

    /// Returns a command that runs a program on this machine.
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

/// Runs a program that has to succeed; returns its output.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
