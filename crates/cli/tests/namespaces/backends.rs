// SPDX-License-Identifier: Apache-2.0
//! The conformance suite of `taran-net` between two machines: datagrams cross a link rather than the loopback interface,
//! which backends beside the kernel's sockets do not see.

use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use taran_net::{
    AgentRole, BufferLimits, Interface, NetError, Network, Poller, SocketNetwork, SocketSpec,
    Transport, conformance,
};

use crate::machines::{Machine, in_own_namespaces};

const LINK: &str = "wire";

/// A network whose sockets belong to another machine than the thread that uses them: a socket stays in the namespace
/// in which it was opened.
#[derive(Debug)]
struct OnMachine<N> {
    network: N,
    machine: File,
    own: File,
}

impl<N: Network> OnMachine<N> {
    fn new(network: N, machine: &Machine) -> Self {
        Self {
            network,
            machine: machine.namespace(),
            own: File::open("/proc/thread-self/ns/net").unwrap(),
        }
    }

    /// Calls `act` with this thread in the namespace of the machine.
    fn there<T>(&mut self, act: impl FnOnce(&mut N) -> T) -> T {
        enter(&self.machine);
        let result = act(&mut self.network);
        enter(&self.own);
        result
    }
}

fn enter(namespace: &File) {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

impl<N: Network> Network for OnMachine<N> {
    fn backend(&self) -> &'static str {
        self.network.backend()
    }

    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        self.there(|network| network.open(spec))
    }

    fn poller(&mut self, agent: AgentRole) -> Result<Box<dyn Poller>, NetError> {
        self.there(|network| network.poller(agent))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        self.there(Network::buffer_limits)
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        self.there(Network::interfaces)
    }
}

fn conform(here: &Machine, there: &Machine, addresses: [&str; 2], networks: [SocketNetwork; 2]) {
    let addresses = addresses.map(|address| address.parse::<IpAddr>().unwrap());
    let [near, far] = networks;
    conformance::run_between(
        &mut OnMachine::new(near, here),
        &mut OnMachine::new(far, there),
        addresses,
        &mut || thread::sleep(Duration::from_micros(50)),
    );
}

/// The combinations of both ends with and without offload.
fn all_pairs() -> impl Iterator<Item = [SocketNetwork; 2]> {
    let kinds = [SocketNetwork::new(), SocketNetwork::without_offload()];
    [(0, 0), (0, 1), (1, 1)]
        .into_iter()
        .map(move |(near, far)| [kinds[near], kinds[far]])
}

#[test]
fn sockets_of_two_machines_conform() {
    in_own_namespaces("backends::sockets_of_two_machines_conform", || {
        let (here, there) = (Machine::new("here"), Machine::new("there"));
        here.join("10.9.1.1/24", &there, "10.9.1.2/24", LINK);
        for networks in all_pairs() {
            conform(&here, &there, ["10.9.1.1", "10.9.1.2"], networks);
        }
    });
}

#[test]
fn sockets_of_two_machines_with_segmentation_on_the_link_conform() {
    let test = "backends::sockets_of_two_machines_with_segmentation_on_the_link_conform";
    in_own_namespaces(test, || {
        let (here, there) = (Machine::new("here"), Machine::new("there"));
        here.join("10.9.1.1/24", &there, "10.9.1.2/24", LINK);
        for machine in [&here, &there] {
            machine.permit_segmentation(LINK);
        }
        let networks = [SocketNetwork::new(); 2];
        conform(&here, &there, ["10.9.1.1", "10.9.1.2"], networks);
    });
}

#[test]
fn sockets_of_two_machines_over_ipv6_conform() {
    in_own_namespaces(
        "backends::sockets_of_two_machines_over_ipv6_conform",
        || {
            let (here, there) = (Machine::new("here"), Machine::new("there"));
            here.join("10.9.1.1/24", &there, "10.9.1.2/24", LINK);
            here.add_address(LINK, "fd09::1/64");
            there.add_address(LINK, "fd09::2/64");
            for networks in all_pairs() {
                conform(&here, &there, ["fd09::1", "fd09::2"], networks);
            }
        },
    );
}
