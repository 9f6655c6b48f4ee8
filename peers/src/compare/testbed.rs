//! Where a measurement happens.

use std::process::Command;

use crate::plan::Topology;
use crate::process::is_dead;

/// What the names of namespaces begin with; the process id of their run follows.
const NAMES: [&str; 2] = ["taran-compare-near-", "taran-compare-far-"];

/// A place for two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Over shared memory of one driver.
    Ipc,
    /// Over the loopback interface of this machine.
    Loopback,
    /// Over a veth between two network namespaces.
    Veth {
        /// Bytes of the largest packet on it.
        mtu: u32,
    },
}

/// The ends of a place, made for one measurement.
pub(crate) struct Testbed {
    /// Names of the namespaces, if there are two.
    namespaces: Option<[String; 2]>,
    place: Place,
}

/// Which of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// That which sends, or asks.
    Near,
    /// That which receives, or answers.
    Far,
}

impl Testbed {
    /// Makes it.
    pub(crate) fn new(place: &Place) -> Result<Testbed, String> {
        let mut testbed = Testbed {
            namespaces: None,
            place: place.clone(),
        };
        if let Place::Veth { mtu } = place {
            let names = NAMES.map(|name| format!("{name}{}", std::process::id()));
            // From now on dropping it takes away whatever there is.
            testbed.namespaces = Some(names.clone());
            lay_cable(&names, *mtu)?;
        }
        Ok(testbed)
    }

    /// Whether each end has a driver of its own by need.
    pub(crate) fn has_two_machines(&self) -> bool {
        self.namespaces.is_some()
    }

    /// The same command at one of the ends, on a core, with no other options of drivers in its environment than its own.
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

    /// The channel from the near end to the far one.
    pub(crate) fn channel(&self) -> String {
        self.to(End::Far, 20_141)
    }

    /// The channels of one end of a stream: of a publisher one, of a subscriber one for each receiver.
    pub(crate) fn channels(&self, end: End, topology: Topology) -> Vec<String> {
        // Logs of many streams have to fit into memory.
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
                // The slowest one sets the pace: nobody is to lose anything.
                vec![format!("aeron:udp?{CONTROL}|fc=min|term-length={term}")]
            }
            (End::Far, count) => (20_151..)
                .take(usize::from(count))
                .map(|port: u16| format!("aeron:udp?endpoint=127.0.0.1:{port}|{CONTROL}"))
                .collect(),
        }
    }

    /// The channel back.
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

/// Where receivers announce themselves to a publication that has many.
const CONTROL: &str = "control=127.0.0.1:20150|control-mode=dynamic";
/// Of the two ends of a veth.
const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// The largest datagram that fits a packet: a multiple of 32 after IP and UDP have their 28 bytes.
fn datagram(mtu: u32) -> u32 {
    (mtu - 28) / 32 * 32
}

fn lay_cable(names: &[String; 2], mtu: u32) -> Result<(), String> {
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

/// Why there can be no veth here, if so.
pub(crate) fn veth_is_missing() -> Option<String> {
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
        .map_err(|error| format!("ip (of iproute2) cannot be run: {error}"))?;
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
