// SPDX-License-Identifier: Apache-2.0
use std::net::SocketAddr;
use std::time::Duration;

use taran_core::memory::{CreateOptions, MemoryError};
use taran_net::{ReceiveBatch, SocketSpec, Transmit, Transport};

use super::*;
use crate::check::violation;
use crate::{HostIndex, HostSpec};

/// A process that sends a datagram to itself, and counts the duty cycles of its two agents and the echoes.
struct Echo {
    address: SocketAddr,
    transport: Box<dyn Transport>,
    cycles: [u64; 2],
    received: u64,
    after_kill: AfterKill,
    has_ended: bool,
}

/// Datagrams received by all processes of a world.
#[derive(Default)]
struct Received(u64);

const ADDRESS: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);

impl Echo {
    fn new(env: &mut HostEnv) -> Self {
        let address = SocketAddr::from(ADDRESS);
        let spec = SocketSpec::bound(address);
        Self {
            address,
            transport: env.network().open(&spec).unwrap(),
            cycles: [0, 0],
            received: 0,
            after_kill: AfterKill::Drop,
            has_ended: false,
        }
    }
}

impl Process for Echo {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        self.cycles[context.agent()] += 1;
        if context.agent() == 0 {
            let sent = self.transport.send(&[Transmit::to(self.address, b"echo")]);
            return Ok(sent.map_or(0, |_| 1));
        }
        let mut batch = ReceiveBatch::new(4);
        let received = self.transport.receive(&mut batch).unwrap_or_default();
        self.received += received as u64;
        context.shared::<Received>().0 += received as u64;
        context.record("echo", received as i64);
        Ok(received)
    }

    fn agents(&self, agents: &mut Vec<usize>) {
        if !self.has_ended {
            agents.extend([0, 1]);
        }
    }

    fn on_kill(&mut self) -> AfterKill {
        self.after_kill
    }

    fn describe(&self) -> String {
        format!("{} echoes", self.received)
    }
}

/// At most this many datagrams are received.
struct AtMost(u64);

impl Invariant for AtMost {
    fn name(&self) -> &'static str {
        "at most"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        let received = world.shared::<Received>().map_or(0, |received| received.0);
        if received > self.0 {
            violation!("{received} datagrams received, {} allowed", self.0);
        }
        Ok(())
    }
}

fn world(seed: u64) -> (World, HostIndex) {
    let mut world = World::new(seed);
    let host = world.add_host_without_driver(HostSpec::new());
    (world, host)
}

fn received(world: &World, id: ProcessId) -> u64 {
    world.process::<Echo>(id).received
}

#[test]
fn process_runs_all_its_agents_until_it_ends_or_dies() {
    let (mut world, host) = world(1);
    let id = world.spawn(host, Echo::new);
    world.run_until("echoes", Duration::from_secs(1), |world| {
        received(world, id) > 10
    });
    assert!(world.process::<Echo>(id).cycles.iter().all(|it| *it > 10));

    world.process_mut::<Echo>(id).has_ended = true;
    let cycles = world.process::<Echo>(id).cycles;
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.process::<Echo>(id).cycles, cycles);

    world.process_mut::<Echo>(id).has_ended = false;
    world.stall(id, Duration::from_secs(3));
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.process::<Echo>(id).cycles, cycles);
    world.run_for(Duration::from_secs(2));
    let after_stall = world.process::<Echo>(id).cycles;
    assert!(after_stall > cycles);

    assert!(world.kill(id) && !world.kill(id) && !world.is_alive(id));
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.process::<Echo>(id).cycles, after_stall);
}

#[test]
fn handles_of_a_killed_process_fail_and_those_of_its_next_run_work() {
    let (mut world, host) = world(2);
    let mut handles = None;
    let id = world.spawn(host, |env| {
        handles = Some((env.storage(), env.network()));
        Echo::new(env)
    });
    let (storage, mut network) = handles.unwrap();
    storage.create_dir_all("/d".as_ref()).unwrap();
    let create = |name: &str| storage.create(name.as_ref(), 4096, CreateOptions::default());
    create("/d/before").unwrap();
    assert_eq!(world.network().open_sockets(world.network_id(host)), 1);

    world.kill(id);
    assert_eq!(world.network().open_sockets(world.network_id(host)), 0);
    assert!(matches!(create("/d/after"), Err(MemoryError::Io { .. })));
    storage.open("/d/before".as_ref()).unwrap_err();
    storage.write_file("/d/after".as_ref(), b"x").unwrap_err();
    storage.remove("/d/before".as_ref()).unwrap_err();
    let spec = SocketSpec::bound(ADDRESS.into());
    network.open(&spec).unwrap_err();
    assert_eq!(
        world.storage(host).mapped_files(),
        ["/d/before"].map(std::path::PathBuf::from)
    );
    let process = world.process_mut::<Echo>(id);
    let to_itself = [Transmit::to(process.address, b"late")];
    process.transport.send(&to_itself).unwrap_err();
    let mut batch = ReceiveBatch::new(1);
    process.transport.receive(&mut batch).unwrap_err();

    // The address is free again, and the destructor of the dead process does not close the new socket.
    world.restart(id, Echo::new);
    assert!(world.is_alive(id));
    world.run_until("echoes", Duration::from_secs(1), |world| {
        received(world, id) > 10
    });
}

#[test]
fn process_that_fails_to_start_leaves_nothing() {
    let (mut world, host) = world(3);
    let first = world.spawn(host, Echo::new);
    let failed = world.try_spawn(host, |env| {
        let other = SocketAddr::from((ADDRESS.0, ADDRESS.1 + 1));
        let opened = env.network().open(&SocketSpec::bound(other)).unwrap();
        std::mem::forget(opened);
        Err::<Echo, _>("no")
    });
    assert_eq!(failed, Err("no"));
    assert_eq!(world.network().open_sockets(world.network_id(host)), 1);
    let ids: Vec<_> = world.processes::<Echo>().map(|(id, _)| id).collect();
    assert_eq!(ids, [first]);
}

#[test]
#[should_panic(expected = "at most: 4 datagrams received, 3 allowed")]
fn invariant_is_checked_after_each_step() {
    let (mut world, host) = world(4);
    world.spawn(host, Echo::new);
    world.add_invariant(AtMost(3));
    world.run_for(Duration::from_secs(10));
}

#[test]
fn history_of_processes_repeats_from_the_seed() {
    let fingerprint = |seed| {
        let (mut world, host) = world(seed);
        let id = world.spawn(host, Echo::new);
        world.run_for(Duration::from_secs(1));
        world.kill(id);
        world.restart(id, Echo::new);
        world.run_for(Duration::from_secs(1));
        world.fingerprint()
    };
    assert_eq!(fingerprint(5), fingerprint(5));
    assert_ne!(fingerprint(5), fingerprint(6));
}
