// SPDX-License-Identifier: Apache-2.0
//! Hosts that change their address: names are resolved again, and streams continue (docs/spec/wire.md §2.14).

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World,
    link_profiles, seeded,
};

use super::common::{LONG, STREAM, await_all, await_offered, between, end};

/// Time of silence after which a peer is resolved again, with time for the lookup and its effects.
const NOTICED: Duration = Duration::from_secs(7);

/// The same for a publisher: it becomes silent only after the receivers at its old address have timed out.
const PUBLISHER_NOTICED: Duration = Duration::from_secs(13);

/// Endpoint of a subscriber without a fixed address.
const ANYWHERE: &str = "aeron:udp?endpoint=0.0.0.0:40123";

/// Hosts with a client each, with random link faults.
struct MobileHosts {
    world: World,
    hosts: Vec<HostIndex>,
    clients: Vec<ClientId>,
}

impl MobileHosts {
    fn new(seed: u64, hosts: usize) -> Self {
        Self::of(seed, hosts, &HostSpec::new())
    }

    /// For publishers that move: padding that is lost during the move is NAKed at the old address of the publisher, and
    /// frames beyond it do not keep the image alive. With the default timeout of 10 s the image could end just before
    /// the new address is known.
    fn with_long_image_liveness(seed: u64, hosts: usize) -> Self {
        let spec = HostSpec::new().option("aeron.image.liveness.timeout", "20s");
        Self::of(seed, hosts, &spec)
    }

    fn of(seed: u64, hosts: usize, spec: &HostSpec) -> Self {
        let mut world = World::new(seed);
        let random = world.random();
        let faults = if random.bool() {
            link_profiles::clean(random)
        } else {
            link_profiles::faulty(random)
        };
        world.set_faults(faults);
        let hosts: Vec<_> = (0..hosts).map(|_| world.add_host(spec.clone())).collect();
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
            .subscribe(client, SubscriberSpec::new(channel, STREAM))
    }

    /// Adds a publisher on the first host that can publish for the whole scenario.
    fn publish(&mut self, publication: PublisherSpec) -> PublisherId {
        let exclusive = self.world.random().bool();
        let publication = publication
            .exclusive(exclusive)
            .pause(Duration::from_millis(20));
        self.world
            .publish(self.clients[0], publication.messages(20))
    }

    /// Relocates a host one or several times, at any time, and publishes more each time. Returns the number of
    /// relocations.
    fn relocate_repeatedly(&mut self, host: usize, publisher: PublisherId) -> i64 {
        let noticed = if host == 0 {
            PUBLISHER_NOTICED
        } else {
            NOTICED
        };
        let times = self.world.random().i64(1..4);
        for _ in 0..times {
            let pause = between(&mut self.world, Duration::ZERO, Duration::from_secs(3));
            self.world.run_for(pause);
            self.world.publisher_mut(publisher).publish_more(30);
            self.world.relocate(self.hosts[host]);
            self.world.run_for(noticed);
        }
        self.world.publisher_mut(publisher).publish_more(30);
        times
    }

    /// Waits until everything has arrived, and checks that no image ended.
    fn expect_delivery(&mut self, subscribers: &[SubscriberId], publisher: PublisherId) {
        let flows: Vec<_> = subscribers.iter().map(|it| (*it, publisher)).collect();
        await_all(&mut self.world, &flows);
        for subscriber in subscribers {
            let ended = self.world.subscriber(*subscriber).ended();
            assert!(ended.is_empty(), "an image ended: {ended:?}");
        }
    }

    /// Returns how often a driver found that a name resolves to another address.
    fn changes(&self, host: usize) -> i64 {
        let counter = SystemCounter::ResolutionChanges;
        self.world.system(self.hosts[host], counter)
    }
}

seeded! {
    /// The receiver's host moves: the publisher resolves its new address, and the image stays.
    relocated_receiver_is_resolved_again, 30, |seed| {
        let mut mobile = MobileHosts::new(seed, 2);
        let subscriber = mobile.subscribe(1, ANYWHERE);
        let publisher = mobile.publish(PublisherSpec::new("aeron:udp?endpoint=host1:40123", STREAM));
        await_offered(&mut mobile.world, publisher, 10);
        let times = mobile.relocate_repeatedly(1, publisher);
        mobile.expect_delivery(&[subscriber], publisher);
        assert_eq!(mobile.changes(0), times);
        end(mobile.world);
    }
}

seeded! {
    /// One of several destinations moves: it is resolved again, and with `fc=min` no receiver misses anything.
    relocated_destination_is_resolved_again, 30, |seed| {
        let mut mobile = MobileHosts::new(seed, 3);
        let subscribers = [mobile.subscribe(1, ANYWHERE), mobile.subscribe(2, ANYWHERE)];
        let publication = PublisherSpec::new("aeron:udp?control-mode=manual|fc=min,g:/2,t:20s", STREAM);
        let publication = (1..3).fold(publication, |publication, host| {
            publication.destination(format!("aeron:udp?endpoint=host{host}:40123"))
        });
        let publisher = mobile.publish(publication);
        await_offered(&mut mobile.world, publisher, 10);
        let moves = mobile.world.random().usize(1..3);
        let times = mobile.relocate_repeatedly(moves, publisher);
        mobile.expect_delivery(&subscribers, publisher);
        assert_eq!(mobile.changes(0), times);
        end(mobile.world);
    }
}

/// A stream with dynamic destinations at the first host.
const ON_DEMAND: &str = "aeron:udp?control=0.0.0.0:40200|control-mode=dynamic|fc=min,g:/1,t:20s";

seeded! {
    /// A receiver of a dynamic destination moves: the publisher follows at once, without a lookup.
    relocated_dynamic_destination_is_followed_at_once, 30, |seed| {
        let mut mobile = MobileHosts::new(seed, 2);
        let subscriber = mobile.subscribe(1, "aeron:udp?endpoint=0.0.0.0:40123|control=10.0.0.1:40200");
        let channel = "aeron:udp?control=10.0.0.1:40200|control-mode=dynamic";
        let publisher = mobile.publish(PublisherSpec::new(channel, STREAM));
        await_offered(&mut mobile.world, publisher, 10);
        mobile.relocate_repeatedly(1, publisher);
        mobile.expect_delivery(&[subscriber], publisher);
        assert_eq!(mobile.changes(0) + mobile.changes(1), 0);
        end(mobile.world);
    }
}

seeded! {
    /// The publisher's host moves: the receivers resolve its control address again, and the image stays.
    relocated_control_address_is_resolved_again, 30, |seed| {
        let mut mobile = MobileHosts::with_long_image_liveness(seed, 2);
        let subscriber = mobile.subscribe(1, "aeron:udp?endpoint=10.0.0.2:40123|control=host0:40200");
        let publisher = mobile.publish(PublisherSpec::new(ON_DEMAND, STREAM));
        await_offered(&mut mobile.world, publisher, 10);
        let times = mobile.relocate_repeatedly(0, publisher);
        mobile.expect_delivery(&[subscriber], publisher);
        assert_eq!(mobile.changes(1), times);
        end(mobile.world);
    }
}

seeded! {
    /// The same for one source of a subscription with several sources, while another source stays.
    relocated_source_is_resolved_again, 30, |seed| {
        let mut mobile = MobileHosts::with_long_image_liveness(seed, 3);
        let subscription = SubscriberSpec::new("aeron:udp?control-mode=manual", STREAM)
            .source("aeron:udp?endpoint=10.0.0.2:40123|control=host0:40200")
            .source("aeron:udp?endpoint=10.0.0.2:40124");
        let subscriber = mobile.world.subscribe(mobile.clients[1], subscription);
        let publisher = mobile.publish(PublisherSpec::new(ON_DEMAND, STREAM));
        let stays = PublisherSpec::new("aeron:udp?endpoint=10.0.0.2:40124", STREAM).messages(200);
        let stays = mobile.world.publish(mobile.clients[2], stays);
        await_offered(&mut mobile.world, publisher, 10);
        let times = mobile.relocate_repeatedly(0, publisher);
        mobile.expect_delivery(&[subscriber], publisher);
        mobile.expect_delivery(&[subscriber], stays);
        assert_eq!(mobile.changes(1), times);
        end(mobile.world);
    }
}

seeded! {
    /// The driver of a peer dies, the host gets another address, and a driver is started there: the stream continues.
    peer_restarted_at_another_address_is_found, 30, |seed| {
        let mut mobile = MobileHosts::new(seed, 2);
        let peer = mobile.hosts[1];
        mobile.subscribe(1, ANYWHERE);
        let publisher = mobile.publish(PublisherSpec::new("aeron:udp?endpoint=host1:40123", STREAM));
        await_offered(&mut mobile.world, publisher, 10);
        mobile.world.kill_driver(peer);
        mobile.world.relocate(peer);
        // The previous driver counts as alive for some time.
        let pause = between(&mut mobile.world, Duration::from_secs(11), Duration::from_secs(30));
        mobile.world.run_for(pause);
        mobile.world.start_driver(peer);
        mobile.clients[1] = mobile.world.connect(peer);
        let successor = mobile.subscribe(1, ANYWHERE);
        mobile.world.run_until("the peer is found", LONG, |world| {
            world.subscriber(successor).images().next().is_some()
        });
        mobile.world.publisher_mut(publisher).publish_more(50);
        mobile.expect_delivery(&[successor], publisher);
        assert_eq!(mobile.changes(0), 1);
        end(mobile.world);
    }
}

seeded! {
    /// A peer dies, and its name is assigned to another host, which gets the stream from then on.
    successor_with_the_name_of_a_peer_gets_the_stream, 30, |seed| {
        let mut mobile = MobileHosts::new(seed, 3);
        let (first, second) = (mobile.hosts[1], mobile.hosts[2]);
        mobile.world.set_host_name("service", first);
        mobile.subscribe(1, ANYWHERE);
        let successor = mobile.subscribe(2, ANYWHERE);
        let publisher = mobile.publish(PublisherSpec::new("aeron:udp?endpoint=service:40123", STREAM));
        await_offered(&mut mobile.world, publisher, 10);
        mobile.world.kill_driver(first);
        let pause = between(&mut mobile.world, Duration::ZERO, Duration::from_secs(20));
        mobile.world.run_for(pause);
        mobile.world.set_host_name("service", second);
        mobile.world.run_until("the successor is found", LONG, |world| {
            world.subscriber(successor).images().next().is_some()
        });
        mobile.world.publisher_mut(publisher).publish_more(50);
        mobile.expect_delivery(&[successor], publisher);
        assert_eq!(mobile.changes(0), 1);
        end(mobile.world);
    }
}
