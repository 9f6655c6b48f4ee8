//! Drivers that tell each other their names, over networks that lose and are cut.

use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_sim::{ClientId, HostIndex, HostSpec, Publishing, Subscribing, World, seeded, weather};

use super::common::{LONG, STREAM, await_all, between, channel, end};

/// A killed driver counts as alive for so long.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Twice the time after which a silent neighbour is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(20);

/// A host whose driver is called `d0`, `d1` and so on, and starts from the first host.
fn named(number: usize) -> HostSpec {
    HostSpec::new()
        .option("aeron.driver.resolver.name", format!("d{number}"))
        .option("aeron.driver.resolver.interface", "0.0.0.0:8050")
        .option("aeron.driver.resolver.bootstrap.neighbor", "host0:8050")
}

/// Neighbours and names that the driver of a host knows.
fn known(world: &World, host: HostIndex) -> [i64; 2] {
    let counters = world.counters(host);
    [type_id::RESOLVER_NEIGHBORS, type_id::RESOLVER_CACHE_ENTRIES].map(|wanted| {
        let found = counters.find(|meta| meta.type_id == wanted).unwrap();
        counters.value(found.id).unwrap()
    })
}

fn await_known(world: &mut World, hosts: &[HostIndex], count: i64) {
    world.run_until("all know each other", LONG, |world| {
        hosts.iter().all(|host| known(world, *host) == [count; 2])
    });
}

/// So many hosts that know each other, in any weather.
fn acquainted(seed: u64, count: usize) -> (World, Vec<HostIndex>, Vec<ClientId>) {
    let mut world = World::new(seed);
    let faults = if world.random().bool() {
        weather::fair(world.random())
    } else {
        weather::foul(world.random())
    };
    world.set_faults(faults);
    let hosts: Vec<_> = (0..count)
        .map(|number| world.add_host(named(number)))
        .collect();
    await_known(&mut world, &hosts, count as i64 - 1);
    let clients = hosts.iter().map(|host| world.connect(*host)).collect();
    (world, hosts, clients)
}

/// A stream to a driver by its name arrives.
fn reaches_by_name(world: &mut World, from: ClientId, to: ClientId, number: usize, stream: i32) {
    let subscriber = world.subscribe(to, Subscribing::new(channel(number), stream));
    let by_name = format!("aeron:udp?endpoint=d{number}:40123");
    let publisher = world.publish(from, Publishing::new(by_name, stream).messages(50));
    await_all(world, &[(subscriber, publisher)]);
}

seeded! {
    /// All learn of all from one they start from, and reach each other by name.
    gossip, 20, |seed| {
        let (mut world, _, clients) = acquainted(seed, 4);
        for (from, to) in [(1, 2), (3, 1), (0, 3)] {
            reaches_by_name(&mut world, clients[from], clients[to], to, STREAM + from as i32);
        }
        end(world);
    }
}

seeded! {
    /// Those on the other side of a cut are forgotten, and found again when it is mended.
    partition, 15, |seed| {
        let (mut world, hosts, clients) = acquainted(seed, 4);
        let cut_off = world.random().usize(1..4);
        let ids: Vec<_> = hosts.iter().map(|host| world.network_id(*host)).collect();
        for other in (0..4).filter(|other| *other != cut_off) {
            world.network().cut(ids[cut_off], ids[other]);
            world.network().cut(ids[other], ids[cut_off]);
        }
        let rest: Vec<_> = hosts.iter().copied().filter(|host| host.number() != cut_off).collect();
        world.run_until("the cut is noticed", FORGOTTEN + FORGOTTEN, |world| {
            known(world, hosts[cut_off]) == [0, 0]
                && rest.iter().all(|host| known(world, *host) == [2, 2])
        });
        world.network().heal_all();
        await_known(&mut world, &hosts, 3);
        let other = if cut_off == 1 { 2 } else { 1 };
        reaches_by_name(&mut world, clients[other], clients[cut_off], cut_off, STREAM);
        end(world);
    }
}

seeded! {
    /// A driver dies and is forgotten everywhere, although the others go on to tell each other of it; its successor is
    /// known by its name again.
    death, 15, |seed| {
        let (mut world, hosts, mut clients) = acquainted(seed, 3);
        let dead = world.random().usize(0..3);
        world.kill_driver(hosts[dead]);
        let rest: Vec<_> = hosts.iter().copied().filter(|host| *host != hosts[dead]).collect();
        world.run_until("the dead one is forgotten", FORGOTTEN + FORGOTTEN, |world| {
            rest.iter().all(|host| known(world, *host) == [1, 1])
        });
        let pause = between(&mut world, DRIVER_TIMEOUT, FORGOTTEN);
        world.run_for(pause);
        world.start_driver(hosts[dead]);
        clients[dead] = world.connect(hosts[dead]);
        await_known(&mut world, &hosts, 2);
        let from = if dead == 0 { 1 } else { 0 };
        reaches_by_name(&mut world, clients[from], clients[dead], dead, STREAM);
        end(world);
    }
}
