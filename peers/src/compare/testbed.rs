// SPDX-License-Identifier: Apache-2.0
//! Testbeds: shared memory, loopback, or two network namespaces with a veth between them.

use std::process::Command;

use crate::plan::Topology;
use crate::process::is_dead;

/// Prefixes of namespace names; the process id of the run follows.
const NAMES: [&str; 2] = ["taran-compare-near-", "taran-compare-far-"];

/// Transport between the two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Shared memory of one driver.
    Ipc,
    /// The loopback interface.
    Loopback,
    /// A veth between two network namespaces.
    Veth {
        /// MTU in bytes.
        mtu: u32,
    },
}

/// A place, set up for one measurement; dropping it removes the namespaces.
pub(crate) struct Testbed {
    /// Names of the two namespaces of [`Place::Veth`].
    namespaces: Option<[String; 2]>,
    place: Place,
}

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The publisher, or the requester of round trips.
    Near,
    /// The subscriber, or the responder of round trips.
    Far,
}

impl Testbed {
    /// Sets up a place.
    pub(crate) fn new(place: &Place) -> Result<Testbed, String> {
        let mut testbed = Testbed {
            namespaces: None,
            place: place.clone(),
        };
        if let Place::Veth { mtu } = place {
            let names = NAMES.map(|name| format!("{name}{}", std::process::id()));
            // Set first so that dropping the testbed removes a partial set-up.
            testbed.namespaces = Some(names.clone());
            connect_namespaces(&names, *mtu)?;
        }
        Ok(testbed)
    }

    /// Returns true if the ends are in different namespaces, so that each needs its own driver.
    pub(crate) fn has_two_hosts(&self) -> bool {
        self.namespaces.is_some()
    }

    /// Returns the command, placed at one of the ends and pinned to a core. Of all `AERON_` and `TARAN_` variables, it keeps
    /// only those that the command itself sets.
    pub(crate) fn at(&self, end: End, core: Option<usize>, command: &Command) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(names) = &self.namespaces {
            words.extend(["ip", "netns", "exec", &names[end as usize]].map(str::to_owned));
        }
        if let Some(core) = core {
            words.extend(["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
        }
        words.push(command.get_program().to_string_lossy().into_owned());
        let mut placed = Command::new(&words[0]);
        placed.args(&words[1..]).args(command.get_args());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("AERON_") || text.starts_with("TARAN_") {
                placed.env_remove(&name);
            }
        }
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                placed.env(name, value);
            }
        }
        placed
    }

    /// Returns the channel from the near end to the far end.
    pub(crate) fn channel(&self) -> String {
        self.to(End::Far, 20_141)
    }

    /// Returns the channels of one end of a stream: one for the publisher, and one for each subscription at the far end.
    pub(crate) fn channels(&self, end: End, topology: Topology) -> Vec<String> {
        // The logs of many streams have to fit into memory.
        let term = if topology.streams > 1 { "1m" } else { "16m" };
        match (end, topology.destinations) {
            (_, 1) => {
                let channel = self.channel().replace("16m", term);
                let count = if end == End::Far {
                    topology.subscribers
                } else {
                    1
                };
                vec![channel; usize::from(count)]
            }
            (End::Near, _) => {
                // Min flow control: the slowest receiver limits the rate, so that no receiver loses data.
                vec![format!("aeron:udp?{CONTROL}|fc=min|term-length={term}")]
            }
            (End::Far, count) => (20_151..)
                .take(usize::from(count))
                .map(|port: u16| format!("aeron:udp?endpoint=127.0.0.1:{port}|{CONTROL}"))
                .collect(),
        }
    }

    /// Returns the channel from the far end to the near end.
    pub(crate) fn reply_channel(&self) -> String {
        self.to(End::Near, 20_143)
    }

    fn to(&self, end: End, port: u16) -> String {
        match self.place {
            Place::Ipc => "aeron:ipc?term-length=16m".to_owned(),
            Place::Loopback => format!("aeron:udp?endpoint=127.0.0.1:{port}|term-length=16m"),
            Place::Veth { mtu } => format!(
                "aeron:udp?endpoint={}:{port}|term-length=16m|mtu={}",
                ADDRESSES[end as usize],
                datagram(mtu)
            ),
        }
    }
}

/// Control address of the dynamic MDC publication.
const CONTROL: &str = "control=127.0.0.1:20150|control-mode=dynamic";
/// IP addresses of the ends of the veth.
const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// Returns the largest Aeron MTU within a network MTU: a multiple of 32, after 28 bytes of IP and UDP headers.
fn datagram(mtu: u32) -> u32 {
    (mtu - 28) / 32 * 32
}

fn connect_namespaces(names: &[String; 2], mtu: u32) -> Result<(), String> {
    let [near, far] = names;
    let mtu = mtu.to_string();
    for name in names {
        ip(&["netns", "add", name])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
    }
    ip(&[
        "link", "add", "name", "path", "mtu", &mtu, "netns", near, "type", "veth", "peer", "name",
        "path", "mtu", &mtu, "netns", far,
    ])?;
    for (name, address) in names.iter().zip(ADDRESSES) {
        let address = format!("{address}/24");
        ip(&["-n", name, "addr", "add", &address, "dev", "path"])?;
        ip(&["-n", name, "link", "set", "path", "up"])?;
    }
    Ok(())
}

/// Returns the reason why no veth can be created on this machine, if there is one.
pub(crate) fn veth_problem() -> Option<String> {
    Testbed::new(&Place::Veth { mtu: 1_500 }).err()
}

/// Removes the namespaces of runs that were killed.
pub(crate) fn remove_leftovers() {
    let listed = ip(&["netns", "list"]).unwrap_or_default();
    for name in listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
    {
        let id = NAMES.iter().find_map(|prefix| name.strip_prefix(prefix));
        if id.and_then(|id| id.parse().ok()).is_some_and(is_dead) {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("cannot run ip (package iproute2): {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "ip {}: {} (namespaces need root)",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for name in self.namespaces.iter().flatten() {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}
