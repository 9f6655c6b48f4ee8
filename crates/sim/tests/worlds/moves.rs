//! Peers that move to another address: their names are looked up again, and streams go on there (docs/spec/wire.md §2.14).

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, Publishing, SubscriberId, Subscribing, World,
    seeded, weather,
};

use super::common::{LONG, STREAM, await_all, await_offered, between, end};

/// After so long without a word a peer is looked up again, with some time for the lookup and what follows.
const NOTICED: Duration = Duration::from_secs(7);

/// The same for a publisher: it falls silent only when it has given up those who speak to its old address.
const PUBLISHER_NOTICED: Duration = Duration::from_secs(13);

/// Where a subscriber listens that does not know its own address.
const ANYWHERE: &str = "aeron:udp?endpoint=0.0.0.0:40123";

/// Hosts with a client each, in any weather.
struct Town {
    world: World,
    hosts: Vec<HostIndex>,
    clients: Vec<ClientId>,
}

impl Town {
    fn new(seed: u64, hosts: usize) -> Self {
        let mut world = World::new(seed);
        let random = world.random();
        let faults = if random.bool() {
            weather::fair(random)
        } else {
            weather::foul(random)
        };
        world.set_faults(faults);
        let hosts: Vec<_> = (0..hosts)
            .map(|_| world.add_host(HostSpec::new()))
            .collect();
        let clients = hosts.iter().map(|host| world.connect(*host)).collect();
        Self {
            world,
            hosts,
            clients,
        }
    }

    fn subscribe(&mut self, host: usize, channel: &str) -> SubscriberId {
        let client = self.clients[host];
        self.world
            .subscribe(client, Subscribing::new(channel, STREAM))
    }

    /// Publishes on the first host, and goes on for as long as the story takes.
    fn publish(&mut self, publishing: Publishing) -> PublisherId {
        let exclusive = self.world.random().bool();
        let publishing = publishing
            .exclusive(exclusive)
            .pause(Duration::from_millis(20));
        self.world.publish(self.clients[0], publishing.messages(20))
    }

    /// Moves a host at any moment, one or several times, and publishes more each time.
    fn move_about(&mut self, host: usize, publisher: PublisherId) -> i64 {
        let noticed = if host == 0 {
            PUBLISHER_NOTICED
        } else {
            NOTICED
        };
        let times = self.world.random().i64(1..4);
        for _ in 0..times {
            let pause = between(&mut self.world, Duration::ZERO, Duration::from_secs(3));
            self.world.run_for(pause);
            self.world.publisher_mut(publisher).more(30);
            self.world.relocate(self.hosts[host]);
            self.world.run_for(noticed);
        }
        self.world.publisher_mut(publisher).more(30);
        times
    }

    /// Everything arrived, and no image had to be made anew.
    fn arrives(&mut self, subscribers: &[SubscriberId], publisher: PublisherId) {
        let flows: Vec<_> = subscribers.iter().map(|it| (*it, publisher)).collect();
        await_all(&mut self.world, &flows);
        for subscriber in subscribers {
            let ended = self.world.subscriber(*subscriber).ended();
            assert!(ended.is_empty(), "an image was given up: {ended:?}");
        }
    }

    /// How often a driver found a name to mean another address.
    fn changes(&self, host: usize) -> i64 {
        let counter = SystemCounter::ResolutionChanges;
        self.world.system(self.hosts[host], counter)
    }
}

seeded! {
    /// The receiver's host moves: its publisher finds it again, and the image stays.
    receiver, 30, |seed| {
        let mut town = Town::new(seed, 2);
        let subscriber = town.subscribe(1, ANYWHERE);
        let publisher = town.publish(Publishing::new("aeron:udp?endpoint=host1:40123", STREAM));
        await_offered(&mut town.world, publisher, 10);
        let times = town.move_about(1, publisher);
        town.arrives(&[subscriber], publisher);
        assert_eq!(town.changes(0), times);
        end(town.world);
    }
}

seeded! {
    /// One of several destinations moves: it is found again, and under `min` nobody misses anything.
    destination, 30, |seed| {
        let mut town = Town::new(seed, 3);
        let subscribers = [town.subscribe(1, ANYWHERE), town.subscribe(2, ANYWHERE)];
        let publishing = Publishing::new("aeron:udp?control-mode=manual|fc=min,g:/2,t:20s", STREAM);
        let publishing = (1..3).fold(publishing, |publishing, host| {
            publishing.destination(format!("aeron:udp?endpoint=host{host}:40123"))
        });
        let publisher = town.publish(publishing);
        await_offered(&mut town.world, publisher, 10);
        let moves = town.world.random().usize(1..3);
        let times = town.move_about(moves, publisher);
        town.arrives(&subscribers, publisher);
        assert_eq!(town.changes(0), times);
        end(town.world);
    }
}

/// A stream to whoever asks for it at the first host.
const ON_DEMAND: &str = "aeron:udp?control=0.0.0.0:40200|control-mode=dynamic|fc=min,g:/1,t:20s";

seeded! {
    /// A receiver that announces itself moves: it is followed at once, without any lookup.
    announced, 30, |seed| {
        let mut town = Town::new(seed, 2);
        let subscriber = town.subscribe(1, "aeron:udp?endpoint=0.0.0.0:40123|control=10.0.0.1:40200");
        let channel = "aeron:udp?control=10.0.0.1:40200|control-mode=dynamic";
        let publisher = town.publish(Publishing::new(channel, STREAM));
        await_offered(&mut town.world, publisher, 10);
        town.move_about(1, publisher);
        town.arrives(&[subscriber], publisher);
        assert_eq!(town.changes(0) + town.changes(1), 0);
        end(town.world);
    }
}

seeded! {
    /// The publisher's host moves: whoever asks it for its stream finds it again, and the image stays.
    control, 30, |seed| {
        let mut town = Town::new(seed, 2);
        let subscriber = town.subscribe(1, "aeron:udp?endpoint=10.0.0.2:40123|control=host0:40200");
        let publisher = town.publish(Publishing::new(ON_DEMAND, STREAM));
        await_offered(&mut town.world, publisher, 10);
        let times = town.move_about(0, publisher);
        town.arrives(&[subscriber], publisher);
        assert_eq!(town.changes(1), times);
        end(town.world);
    }
}

seeded! {
    /// The same for a source of a subscription that has several, one of which stays where it is.
    source, 30, |seed| {
        let mut town = Town::new(seed, 3);
        let subscribing = Subscribing::new("aeron:udp?control-mode=manual", STREAM)
            .source("aeron:udp?endpoint=10.0.0.2:40123|control=host0:40200")
            .source("aeron:udp?endpoint=10.0.0.2:40124");
        let subscriber = town.world.subscribe(town.clients[1], subscribing);
        let publisher = town.publish(Publishing::new(ON_DEMAND, STREAM));
        let stays = Publishing::new("aeron:udp?endpoint=10.0.0.2:40124", STREAM).messages(200);
        let stays = town.world.publish(town.clients[2], stays);
        await_offered(&mut town.world, publisher, 10);
        let times = town.move_about(0, publisher);
        town.arrives(&[subscriber], publisher);
        town.arrives(&[subscriber], stays);
        assert_eq!(town.changes(1), times);
        end(town.world);
    }
}

seeded! {
    /// The driver of a peer dies, the machine gets another address, and a driver is started there: the stream goes on.
    restart, 30, |seed| {
        let mut town = Town::new(seed, 2);
        let peer = town.hosts[1];
        town.subscribe(1, ANYWHERE);
        let publisher = town.publish(Publishing::new("aeron:udp?endpoint=host1:40123", STREAM));
        await_offered(&mut town.world, publisher, 10);
        town.world.kill_driver(peer);
        town.world.relocate(peer);
        // The driver before counts as alive for a time.
        let pause = between(&mut town.world, Duration::from_secs(11), Duration::from_secs(30));
        town.world.run_for(pause);
        town.world.start_driver(peer);
        town.clients[1] = town.world.connect(peer);
        let successor = town.subscribe(1, ANYWHERE);
        town.world.run_until("the peer is found", LONG, |world| {
            world.subscriber(successor).images().next().is_some()
        });
        town.world.publisher_mut(publisher).more(50);
        town.arrives(&[successor], publisher);
        assert_eq!(town.changes(0), 1);
        end(town.world);
    }
}

seeded! {
    /// A peer dies, and its name is given to another machine: that one gets the stream from then on.
    successor, 30, |seed| {
        let mut town = Town::new(seed, 3);
        let (first, second) = (town.hosts[1], town.hosts[2]);
        town.world.name("service", first);
        town.subscribe(1, ANYWHERE);
        let successor = town.subscribe(2, ANYWHERE);
        let publisher = town.publish(Publishing::new("aeron:udp?endpoint=service:40123", STREAM));
        await_offered(&mut town.world, publisher, 10);
        town.world.kill_driver(first);
        let pause = between(&mut town.world, Duration::ZERO, Duration::from_secs(20));
        town.world.run_for(pause);
        town.world.name("service", second);
        town.world.run_until("the successor is found", LONG, |world| {
            world.subscriber(successor).images().next().is_some()
        });
        town.world.publisher_mut(publisher).more(50);
        town.arrives(&[successor], publisher);
        assert_eq!(town.changes(0), 1);
        end(town.world);
    }
}
