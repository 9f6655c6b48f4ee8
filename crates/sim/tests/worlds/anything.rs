//! Anything at any time: a random story, and in the end everything works that should.

use std::time::Duration;

use taran_sim::network::LinkFaults;
use taran_sim::{
    ClientId, ClientState, HostIndex, HostSpec, Lengths, PublisherId, Publishing, SubscriberId,
    Subscribing, World, seeded, weather,
};

use super::common::{LONG, STREAM, await_all, between, channel};

/// What there is, besides what the world knows.
struct Story {
    world: World,
    hosts: Vec<HostIndex>,
    clients: Vec<ClientId>,
    publishers: Vec<(PublisherId, ClientId, Road)>,
    subscribers: Vec<(SubscriberId, ClientId, Road)>,
    dead_drivers: Vec<HostIndex>,
}

/// A channel and a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Road {
    channel: String,
    stream_id: i32,
    /// The host on which it is within the host; none for roads between hosts.
    within: Option<HostIndex>,
}

impl Story {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let count = world.random().usize(2..5);
        let hosts: Vec<_> = (0..count)
            .map(|_| world.add_host(HostSpec::new()))
            .collect();
        let clients = hosts.iter().map(|host| world.connect(*host)).collect();
        Self {
            world,
            hosts,
            clients,
            publishers: Vec::new(),
            subscribers: Vec::new(),
            dead_drivers: Vec::new(),
        }
    }

    fn is_live(&self, client: ClientId) -> bool {
        matches!(self.world.client_state(client), ClientState::Connected(_))
            && self.world.client_end(client).is_none()
    }

    /// A client that lives, if there is one.
    fn any_client(&mut self) -> Option<ClientId> {
        let live: Vec<_> = self
            .clients
            .iter()
            .copied()
            .filter(|it| self.is_live(*it))
            .collect();
        self.pick(&live)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.world.random().usize(0..from.len())])
    }

    fn any_host(&mut self) -> HostIndex {
        let index = self.world.random().usize(0..self.hosts.len());
        self.hosts[index]
    }

    /// A road on which this client can be heard, or hear.
    fn any_road(&mut self, client: ClientId, subscribes: bool) -> Road {
        let here = self.world.host_of(client);
        let stream_id = STREAM + self.world.random().i32(0..3);
        if self.world.random().u32(0..4) == 0 {
            let channel = "aeron:ipc".to_owned();
            return Road {
                channel,
                stream_id,
                within: Some(here),
            };
        }
        let to = if subscribes { here } else { self.any_host() };
        Road {
            channel: channel(to.number()),
            stream_id,
            within: None,
        }
    }

    fn act(&mut self) {
        match self.world.random().u32(0..100) {
            0..25 => self.publish(),
            25..45 => self.subscribe(),
            45..52 => self.close_publisher(),
            52..58 => self.close_subscriber(),
            58..64 => self.connect(),
            64..68 => {
                if let Some(client) = self.any_client() {
                    self.world.kill_client(client);
                }
            }
            68..71 => {
                if let Some(client) = self.any_client() {
                    self.world.close_client(client);
                }
            }
            71..75 => {
                if let Some(client) = self.any_client() {
                    let pause = between(&mut self.world, Duration::ZERO, Duration::from_secs(14));
                    self.world.stall_client(client, pause);
                }
            }
            75..78 => {
                let host = self.any_host();
                let pause = between(&mut self.world, Duration::ZERO, Duration::from_secs(8));
                self.world.stall_driver(host, pause);
            }
            78..80 => self.kill_driver(),
            80..88 => {
                let [from, to] =
                    [self.any_host(), self.any_host()].map(|host| self.world.network_id(host));
                if from != to {
                    self.world.network().cut(from, to);
                }
            }
            88..95 => self.world.network().heal_all(),
            _ => {
                let faults = weather::foul(self.world.random());
                self.world.set_faults(faults);
            }
        }
    }

    fn connect(&mut self) {
        let host = self.any_host();
        let client = self.world.begin_connect(host);
        self.clients.push(client);
    }

    fn publish(&mut self) {
        let Some(client) = self.any_client() else {
            return;
        };
        let road = self.any_road(client, false);
        let lengths = [Lengths::Any, Lengths::Small, Lengths::Framed];
        let random = self.world.random();
        let publishing = Publishing::new(road.channel.as_str(), road.stream_id)
            .exclusive(random.bool())
            .messages(random.u64(0..200))
            .pause(Duration::from_millis([0, 1, 100][random.usize(0..3)]))
            .lengths(lengths[random.usize(0..3)]);
        let publisher = self.world.publish(client, publishing);
        self.publishers.push((publisher, client, road));
    }

    fn subscribe(&mut self) {
        let Some(client) = self.any_client() else {
            return;
        };
        let road = self.any_road(client, true);
        let laziness = self.world.random().f64() * 0.5;
        let subscribing = Subscribing::new(road.channel.as_str(), road.stream_id);
        let subscriber = self.world.subscribe(client, subscribing.laziness(laziness));
        self.subscribers.push((subscriber, client, road));
    }

    fn close_publisher(&mut self) {
        if self.publishers.is_empty() {
            return;
        }
        let index = self.world.random().usize(0..self.publishers.len());
        let (publisher, ..) = self.publishers.swap_remove(index);
        self.world.publisher_mut(publisher).close();
    }

    fn close_subscriber(&mut self) {
        if self.subscribers.is_empty() {
            return;
        }
        let index = self.world.random().usize(0..self.subscribers.len());
        let (subscriber, ..) = self.subscribers.swap_remove(index);
        self.world.subscriber_mut(subscriber).close();
    }

    fn kill_driver(&mut self) {
        let host = self.any_host();
        if !self.dead_drivers.contains(&host) {
            self.world.kill_driver(host);
            self.dead_drivers.push(host);
        }
    }

    /// Drivers return when the one before them counts as dead.
    fn revive(&mut self) {
        self.world.run_for(Duration::from_secs(11));
        for host in std::mem::take(&mut self.dead_drivers) {
            self.world.start_driver(host);
        }
    }

    /// The network is mended, and whoever is left can talk and be heard.
    fn recover(&mut self) {
        self.world.network().heal_all();
        self.world.set_faults(LinkFaults::default());
        self.revive();
        self.world.run_for(Duration::from_secs(20));
        let mut live_publishers = self.publishers.clone();
        live_publishers
            .retain(|(id, client, _)| self.is_live(*client) && self.world.publisher(*id).is_open());
        let mut flows = Vec::new();
        for (publisher, from, road) in live_publishers {
            for (subscriber, to, other) in &self.subscribers {
                let is_open = self.is_live(*to) && self.world.subscriber(*subscriber).is_open();
                let together =
                    road.within.is_none() || self.world.host_of(from) == self.world.host_of(*to);
                if is_open && together && road == *other {
                    flows.push((*subscriber, publisher));
                }
            }
        }
        self.world
            .run_until("live flows are connected", LONG, |world| {
                flows.iter().all(|(subscriber, publisher)| {
                    let image = world
                        .publisher(*publisher)
                        .key()
                        .and_then(|key| world.subscriber(*subscriber).image(&key));
                    image.is_some()
                })
            });
        for (_, publisher) in &flows {
            self.world.publisher_mut(*publisher).more(3);
        }
        await_all(&mut self.world, &flows);
    }
}

seeded! {
    /// Half a hundred things happen. Afterwards all flows move again, and nothing is left when all is closed.
    at_any_time, 60, |seed| {
        let mut story = Story::new(seed);
        let faults = weather::foul(story.world.random());
        story.world.set_faults(faults);
        for _ in 0..50 {
            story.act();
            let most = [0, 1, 100, 1_000, 5_000][story.world.random().usize(0..5)];
            let pause = between(&mut story.world, Duration::ZERO, Duration::from_millis(most));
            story.world.run_for(pause);
            if !story.dead_drivers.is_empty() && story.world.random().u32(0..4) == 0 {
                story.revive();
            }
        }
        story.recover();
        let mut world = story.world;
        world.close_all();
        world.expect_nothing_left();
        // A client that wakes up after the driver gave it up still closes what it thinks it has.
        world.expect_no_errors_but(&["unknown publication", "unknown subscription"]);
    }
}
