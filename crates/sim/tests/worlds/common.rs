// SPDX-License-Identifier: Apache-2.0
//! Common parts of scenarios.

use std::time::Duration;

use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World,
    link_profiles,
};

/// More than enough for everything that is bounded by throughput and repair of losses.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) const STREAM: i32 = 1001;

/// Returns the channel of the endpoint of a host.
pub(crate) fn channel(host: usize) -> String {
    format!("aeron:udp?endpoint=10.0.0.{}:40123", host + 1)
}

/// Two hosts with a client each.
pub(crate) struct Pair {
    pub(crate) world: World,
    pub(crate) hosts: [HostIndex; 2],
    pub(crate) clients: [ClientId; 2],
}

impl Pair {
    /// Creates the hosts on a network without faults.
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(seed, HostSpec::new(), HostSpec::new())
    }

    /// Creates the hosts on a network without faults.
    pub(crate) fn of(seed: u64, left: HostSpec, right: HostSpec) -> Self {
        let mut world = World::new(seed);
        let hosts = [left, right].map(|spec| world.add_host(spec));
        let clients = hosts.map(|host| world.connect(host));
        Self {
            world,
            hosts,
            clients,
        }
    }

    /// Creates the hosts on a network that only delays, or on one with all faults, depending on the seed.
    pub(crate) fn with_random_faults(seed: u64) -> Self {
        let mut pair = Self::new(seed);
        let random = pair.world.random();
        let faults = if random.bool() {
            link_profiles::clean(random)
        } else {
            link_profiles::faulty(random)
        };
        pair.world.set_faults(faults);
        pair
    }

    /// Adds a stream from the first host to the second, shared or exclusive depending on the seed.
    pub(crate) fn flow(&mut self, messages: u64) -> (SubscriberId, PublisherId) {
        let exclusive = self.world.random().bool();
        let publication = PublisherSpec::new(channel(1), STREAM).exclusive(exclusive);
        let subscriber = self.subscribe();
        let publisher = self
            .world
            .publish(self.clients[0], publication.messages(messages));
        (subscriber, publisher)
    }

    /// Adds a subscriber on the second host.
    pub(crate) fn subscribe(&mut self) -> SubscriberId {
        let subscription = SubscriberSpec::new(channel(1), STREAM);
        self.world.subscribe(self.clients[1], subscription)
    }

    /// Runs until the subscriber has everything that the publisher published.
    pub(crate) fn await_all(&mut self, (subscriber, publisher): (SubscriberId, PublisherId)) {
        await_all(&mut self.world, &[(subscriber, publisher)]);
    }

    /// Ends the scenario: closes everything and checks that nothing is left.
    pub(crate) fn end(self) {
        end(self.world);
    }
}

/// Runs until all subscribers have everything that their publishers published.
pub(crate) fn await_all(world: &mut World, flows: &[(SubscriberId, PublisherId)]) {
    world.run_until("all is delivered", LONG, |world| {
        flows
            .iter()
            .all(|(subscriber, publisher)| world.has_all(*subscriber, *publisher))
    });
}

/// Runs until a publisher has sent this many messages.
pub(crate) fn await_offered(world: &mut World, publisher: PublisherId, messages: u64) {
    world.run_until("enough was published", LONG, |world| {
        world.publisher(publisher).offered() >= messages
    });
}

/// Ends a scenario: closes everything and checks that nothing is left.
pub(crate) fn end(mut world: World) {
    world.close_all();
    world.expect_nothing_left();
    world.expect_no_errors();
}

/// Returns a random duration.
pub(crate) fn between(world: &mut World, least: Duration, most: Duration) -> Duration {
    let range = least.as_nanos() as u64..=most.as_nanos() as u64;
    Duration::from_nanos(world.random().u64(range))
}
