//! What several stories begin with.

use std::time::Duration;

use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, Publishing, SubscriberId, Subscribing, World,
    weather,
};

/// More than enough for everything that is bounded by throughput and by the repair of losses.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) const STREAM: i32 = 1001;

/// The channel on which a host listens.
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
    /// On a network without faults.
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(seed, HostSpec::new(), HostSpec::new())
    }

    /// On a network without faults.
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

    /// On a network that delays, or on one with all faults, as the seed says.
    pub(crate) fn in_any_weather(seed: u64) -> Self {
        let mut pair = Self::new(seed);
        let random = pair.world.random();
        let faults = if random.bool() {
            weather::fair(random)
        } else {
            weather::foul(random)
        };
        pair.world.set_faults(faults);
        pair
    }

    /// A stream from the first host to the second, shared or exclusive as the seed says.
    pub(crate) fn flow(&mut self, messages: u64) -> (SubscriberId, PublisherId) {
        let exclusive = self.world.random().bool();
        let publishing = Publishing::new(channel(1), STREAM).exclusive(exclusive);
        let subscriber = self.subscribe();
        let publisher = self
            .world
            .publish(self.clients[0], publishing.messages(messages));
        (subscriber, publisher)
    }

    /// A subscriber on the second host.
    pub(crate) fn subscribe(&mut self) -> SubscriberId {
        let subscribing = Subscribing::new(channel(1), STREAM);
        self.world.subscribe(self.clients[1], subscribing)
    }

    /// Until the subscriber has all that the publisher published.
    pub(crate) fn await_all(&mut self, (subscriber, publisher): (SubscriberId, PublisherId)) {
        await_all(&mut self.world, &[(subscriber, publisher)]);
    }

    /// Ends the story: closes all and looks for what is left.
    pub(crate) fn end(self) {
        end(self.world);
    }
}

/// Until all subscribers have all that their publishers published.
pub(crate) fn await_all(world: &mut World, flows: &[(SubscriberId, PublisherId)]) {
    world.run_until("all is delivered", LONG, |world| {
        flows
            .iter()
            .all(|(subscriber, publisher)| world.has_all(*subscriber, *publisher))
    });
}

/// Until a publisher has sent that many messages.
pub(crate) fn await_offered(world: &mut World, publisher: PublisherId, messages: u64) {
    world.run_until("enough was published", LONG, |world| {
        world.publisher(publisher).offered() >= messages
    });
}

/// Ends a story: closes all and looks for what is left.
pub(crate) fn end(mut world: World) {
    world.close_all();
    world.expect_nothing_left();
    world.expect_no_errors();
}

/// A duration from the seed.
pub(crate) fn between(world: &mut World, least: Duration, most: Duration) -> Duration {
    let range = least.as_nanos() as u64..=most.as_nanos() as u64;
    Duration::from_nanos(world.random().u64(range))
}
