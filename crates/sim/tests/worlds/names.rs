// SPDX-License-Identifier: Apache-2.0
//! Driver name resolution by gossip, over networks with loss and cuts.

use std::time::Duration;

use taran_protocol::counter::{SystemCounter, type_id};
use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World,
    link_profiles, seeded,
};

use super::common::{LONG, STREAM, await_all, between, channel, end};

/// A killed driver counts as alive for this time.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Twice the timeout of a silent neighbor.
const FORGOTTEN: Duration = Duration::from_secs(20);

/// A host whose driver is named `d0`, `d1` and so on, with the first host as bootstrap neighbor.
pub(crate) fn named(number: usize) -> HostSpec {
    HostSpec::new()
        .option("aeron.driver.resolver.name", format!("d{number}"))
        .option("aeron.driver.resolver.interface", "0.0.0.0:8050")
        .option("aeron.driver.resolver.bootstrap.neighbor", "host0:8050")
}

/// Returns the numbers of neighbors and names that the driver of a host knows.
pub(crate) fn known(world: &World, host: HostIndex) -> [i64; 2] {
    let counters = world.counters(host);
    [type_id::RESOLVER_NEIGHBORS, type_id::RESOLVER_CACHE_ENTRIES].map(|wanted| {
        let found = counters.find(|meta| meta.type_id == wanted).unwrap();
        counters.value(found.id).unwrap()
    })
}

pub(crate) fn await_known(world: &mut World, hosts: &[HostIndex], count: i64) {
    world.run_until("all know each other", LONG, |world| {
        hosts.iter().all(|host| known(world, *host) == [count; 2])
    });
}

/// Creates hosts whose drivers know each other, with random link faults.
fn connected_hosts(seed: u64, count: usize) -> (World, Vec<HostIndex>, Vec<ClientId>) {
    let mut world = World::new(seed);
    let faults = if world.random().bool() {
        link_profiles::clean(world.random())
    } else {
        link_profiles::faulty(world.random())
    };
    world.set_faults(faults);
    let hosts: Vec<_> = (0..count)
        .map(|number| world.add_host(named(number)))
        .collect();
    await_known(&mut world, &hosts, count as i64 - 1);
    let clients = hosts.iter().map(|host| world.connect(*host)).collect();
    (world, hosts, clients)
}

/// Checks that a stream to a driver's name arrives.
pub(crate) fn reaches_by_name(
    world: &mut World,
    from: ClientId,
    to: ClientId,
    number: usize,
    stream: i32,
) {
    let subscriber = world.subscribe(to, SubscriberSpec::new(channel(number), stream));
    let by_name = format!("aeron:udp?endpoint=d{number}:40123");
    let publisher = world.publish(from, PublisherSpec::new(by_name, stream).messages(50));
    await_all(world, &[(subscriber, publisher)]);
}

seeded! {
    /// All drivers learn of each other from one bootstrap neighbor, and reach each other by name.
    gossip_makes_drivers_known_to_each_other, 20, |seed| {
        let (mut world, _, clients) = connected_hosts(seed, 4);
        for (from, to) in [(1, 2), (3, 1), (0, 3)] {
            reaches_by_name(&mut world, clients[from], clients[to], to, STREAM + from as i32);
        }
        end(world);
    }
}

seeded! {
    /// Drivers behind a cut time out, and are found again when it is restored.
    partitioned_drivers_are_found_again, 15, |seed| {
        let (mut world, hosts, clients) = connected_hosts(seed, 4);
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
    /// A driver dies and times out everywhere although the others keep gossiping about it; its successor is known by
    /// name again.
    driver_death, 15, |seed| {
        let (mut world, hosts, mut clients) = connected_hosts(seed, 3);
        let dead = world.random().usize(0..3);
        world.kill_driver(hosts[dead]);
        let rest: Vec<_> = hosts.iter().copied().filter(|host| *host != hosts[dead]).collect();
        world.run_until("the dead driver is removed", FORGOTTEN + FORGOTTEN, |world| {
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

/// A host whose driver has a name table: `peer` resolves to the second host, or to the third one if an operator
/// switches it.
fn host_with_table() -> HostSpec {
    HostSpec::new()
        .option("aeron.name.resolver.supplier", "csv_table")
        .option("aeron.name.resolver.init.args", "peer,host1,host2")
}

/// Switches the first name of the table: 0 and 1 select its hosts, -1 none.
fn select_entry(world: &World, host: HostIndex, value: i64) {
    let counters = world.counters(host);
    let entry = counters.find(|meta| meta.type_id == type_id::NAME_TABLE_ENTRY);
    counters.counter(entry.unwrap().id).unwrap().set(value);
}

/// A publisher on the first host sends to a name of the table; the second and the third host subscribe.
struct ByTable {
    world: World,
    hosts: [HostIndex; 3],
    clients: [ClientId; 3],
    subscribers: [SubscriberId; 2],
}

impl ByTable {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let faults = if world.random().bool() {
            link_profiles::clean(world.random())
        } else {
            link_profiles::faulty(world.random())
        };
        world.set_faults(faults);
        let hosts = [host_with_table(), HostSpec::new(), HostSpec::new()];
        let hosts = hosts.map(|spec| world.add_host(spec));
        let clients = hosts.map(|host| world.connect(host));
        let subscribers = [1, 2].map(|number| {
            world.subscribe(
                clients[number],
                SubscriberSpec::new(channel(number), STREAM),
            )
        });
        Self {
            world,
            hosts,
            clients,
            subscribers,
        }
    }

    fn publish(&mut self) -> PublisherId {
        let publication = PublisherSpec::new("aeron:udp?endpoint=peer:40123", STREAM);
        self.world
            .publish(self.clients[0], publication.messages(50))
    }
}

seeded! {
    /// A name of the table is switched by its counter when its host dies: the other host gets the stream.
    table_switches_a_name_by_its_counter, 20, |seed| {
        let mut by_table = ByTable::new(seed);
        let publisher = by_table.publish();
        let [first, second] = by_table.subscribers;
        let ByTable { mut world, hosts, .. } = by_table;
        await_all(&mut world, &[(first, publisher)]);
        assert_eq!(world.subscriber(second).images().count(), 0);
        world.kill_driver(hosts[1]);
        let pause = between(&mut world, Duration::ZERO, DRIVER_TIMEOUT);
        world.run_for(pause);
        select_entry(&world, hosts[0], 1);
        world.run_until("the other host is found", LONG, |world| {
            world.subscriber(second).images().next().is_some()
        });
        world.publisher_mut(publisher).publish_more(50);
        await_all(&mut world, &[(second, publisher)]);
        assert_eq!(world.system(hosts[0], SystemCounter::ResolutionChanges), 1);
        end(world);
    }
}

seeded! {
    /// A name that is switched off cannot be resolved for new publications; existing ones keep their address, even if
    /// the peer is silent for so long that it is resolved again.
    forced_unknown, 20, |seed| {
        let mut by_table = ByTable::new(seed);
        let publisher = by_table.publish();
        await_all(&mut by_table.world, &[(by_table.subscribers[0], publisher)]);
        select_entry(&by_table.world, by_table.hosts[0], -1);
        let ids = [0, 1].map(|host| by_table.world.network_id(by_table.hosts[host]));
        by_table.world.network().separate(ids[0], ids[1]);
        by_table.world.run_for(Duration::from_secs(8));
        by_table.world.network().heal_all();
        let other = PublisherSpec::new("aeron:udp?endpoint=peer:40999", STREAM);
        let refused = by_table.world.publish(by_table.clients[0], other);
        by_table.world.run_until("the name is refused", LONG, |world| {
            world.publisher(refused).failure().is_some()
        });
        let error = by_table.world.publisher(refused).failure().map(ToString::to_string);
        assert!(error.as_ref().is_some_and(|error| error.contains("peer")), "{error:?}");
        by_table.world.publisher_mut(publisher).publish_more(50);
        await_all(&mut by_table.world, &[(by_table.subscribers[0], publisher)]);
        select_entry(&by_table.world, by_table.hosts[0], 0);
        let again = by_table.publish();
        await_all(&mut by_table.world, &[(by_table.subscribers[0], again)]);
        by_table.world.close_all();
        by_table.world.expect_nothing_left();
        by_table.world.expect_no_errors_but(&["Unable to resolve host"]);
    }
}

seeded! {
    /// The driver with the table and one of its clients die: the names of its successor have their initial values.
    table_restart, 15, |seed| {
        let mut by_table = ByTable::new(seed);
        select_entry(&by_table.world, by_table.hosts[0], 1);
        let publisher = by_table.publish();
        await_all(&mut by_table.world, &[(by_table.subscribers[1], publisher)]);
        by_table.world.kill_client(by_table.clients[0]);
        by_table.world.kill_driver(by_table.hosts[0]);
        by_table.world.run_for(FORGOTTEN);
        by_table.world.start_driver(by_table.hosts[0]);
        by_table.clients[0] = by_table.world.connect(by_table.hosts[0]);
        let publisher = by_table.publish();
        await_all(&mut by_table.world, &[(by_table.subscribers[0], publisher)]);
        end(by_table.world);
    }
}
