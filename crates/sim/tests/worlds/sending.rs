// SPDX-License-Identifier: Apache-2.0
//! One sender, several receivers: multicast, manual and dynamic destinations, and flow control among the receivers
//! (docs/spec/wire.md §2.9, §4).

use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_sim::{
    ClientId, HostIndex, HostSpec, Lengths, PublisherId, PublisherSpec, SubscriberId,
    SubscriberSpec, World, link_profiles, seeded,
};

use super::common::{LONG, STREAM, await_all, await_offered, between, end};

const RECEIVERS: usize = 3;

/// Channel kind by which the sender's datagrams reach the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Multicast,
    Manual,
    Dynamic,
}

impl Distribution {
    const ALL: [Self; 3] = [Self::Multicast, Self::Manual, Self::Dynamic];

    fn publication(self, parameters: &str) -> PublisherSpec {
        match self {
            Self::Multicast => PublisherSpec::new(
                format!("aeron:udp?endpoint=224.20.30.39:40123|{parameters}"),
                STREAM,
            ),
            Self::Manual => {
                let channel = format!("aeron:udp?control-mode=manual|{parameters}");
                (1..=RECEIVERS).fold(PublisherSpec::new(channel, STREAM), |publication, host| {
                    publication.destination(unicast(host))
                })
            }
            Self::Dynamic => PublisherSpec::new(
                format!("aeron:udp?control=10.0.0.1:40200|control-mode=dynamic|{parameters}"),
                STREAM,
            ),
        }
    }

    fn subscription(self, host: usize, parameters: &str) -> SubscriberSpec {
        let channel = match self {
            Self::Multicast => "aeron:udp?endpoint=224.20.30.39:40123".to_owned(),
            Self::Manual => unicast(host),
            Self::Dynamic => format!("{}|control=10.0.0.1:40200", unicast(host)),
        };
        let separator = if parameters.is_empty() { "" } else { "|" };
        SubscriberSpec::new(format!("{channel}{separator}{parameters}"), STREAM)
    }
}

fn unicast(host: usize) -> String {
    format!("aeron:udp?endpoint=10.0.0.{}:40123", host + 1)
}

/// A sending host, and receivers on hosts of their own.
struct Group {
    world: World,
    distribution: Distribution,
    hosts: Vec<HostIndex>,
    clients: Vec<ClientId>,
}

impl Group {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let hosts: Vec<_> = (0..=RECEIVERS)
            .map(|_| world.add_host(HostSpec::new()))
            .collect();
        let clients = hosts.iter().map(|host| world.connect(*host)).collect();
        Self {
            world,
            distribution: Distribution::ALL[seed as usize % Distribution::ALL.len()],
            hosts,
            clients,
        }
    }

    fn with_random_faults(seed: u64) -> Self {
        let mut group = Self::new(seed);
        let random = group.world.random();
        let faults = if random.bool() {
            link_profiles::clean(random)
        } else {
            link_profiles::faulty(random)
        };
        group.world.set_faults(faults);
        group
    }

    fn subscribe(&mut self, host: usize, parameters: &str) -> SubscriberId {
        let subscription = self.distribution.subscription(host, parameters);
        self.world.subscribe(self.clients[host], subscription)
    }

    fn subscribe_all(&mut self, parameters: &str) -> Vec<SubscriberId> {
        (1..=RECEIVERS)
            .map(|host| self.subscribe(host, parameters))
            .collect()
    }

    fn publish(&mut self, parameters: &str, messages: u64) -> PublisherId {
        let exclusive = self.world.random().bool();
        let publication = self
            .distribution
            .publication(parameters)
            .exclusive(exclusive);
        self.world
            .publish(self.clients[0], publication.messages(messages))
    }

    /// Returns a counter of the sender's host.
    fn counter(&self, type_id: i32) -> Option<i64> {
        let counters = self.world.counters(self.hosts[0]);
        let mut found = None;
        counters.for_each(|meta| {
            if meta.type_id == type_id {
                found = counters.value(meta.id);
            }
        });
        found
    }

    fn cut_off(&mut self, host: usize) {
        let [sender, receiver] =
            [self.hosts[0], self.hosts[host]].map(|host| self.world.network_id(host));
        self.world.network().separate(sender, receiver);
    }
}

fn flows(subscribers: &[SubscriberId], publisher: PublisherId) -> Vec<(SubscriberId, PublisherId)> {
    subscribers.iter().map(|it| (*it, publisher)).collect()
}

seeded! {
    /// The required receivers get everything from the first message on, whatever the network does.
    required_receivers, 60, |seed| {
        let mut group = Group::with_random_faults(seed);
        let subscribers = group.subscribe_all("");
        let publisher = group.publish("fc=min,g:/3", 300);
        await_all(&mut group.world, &flows(&subscribers, publisher));
        assert_eq!(group.counter(type_id::FLOW_CONTROL_RECEIVERS), Some(3));
        let destinations = group.counter(type_id::MDC_DESTINATIONS);
        let expected = (group.distribution != Distribution::Multicast).then_some(3);
        assert_eq!(destinations, expected);
        end(group.world);
    }
}

seeded! {
    /// With `fc=min` the slowest receiver limits the sender, and no receiver loses anything.
    slow_receiver, 30, |seed| {
        let mut group = Group::with_random_faults(seed);
        let subscribers = group.subscribe_all("");
        group.world.subscriber_mut(subscribers[0]).set_skip_rate(0.97);
        let publisher = group.publish("fc=min,g:/3", 200);
        await_all(&mut group.world, &flows(&subscribers, publisher));
        assert!(group.world.publisher(publisher).was_back_pressured());
        end(group.world);
    }
}

seeded! {
    /// A receiver dies: the sender waits for it for the receiver timeout, then continues with the others.
    dead_receiver, 30, |seed| {
        let mut group = Group::with_random_faults(seed);
        let subscribers = group.subscribe_all("");
        let publisher = group.publish("fc=min,g:/2,t:3s", 500);
        let before = group.world.random().u64(1..200);
        await_offered(&mut group.world, publisher, before);
        group.world.kill_driver(group.hosts[3]);
        await_all(&mut group.world, &flows(&subscribers[..2], publisher));
        group.world.run_for(Duration::from_secs(6));
        assert_eq!(group.counter(type_id::FLOW_CONTROL_RECEIVERS), Some(2));
        let left = match group.distribution {
            Distribution::Multicast => None,
            // A manual destination stays until it is removed.
            Distribution::Manual => Some(3),
            Distribution::Dynamic => Some(2),
        };
        assert_eq!(group.counter(type_id::MDC_DESTINATIONS), left);
    }
}

seeded! {
    /// With fewer receivers than required the publication is not connected, and nothing is lost.
    too_few_receivers, 30, |seed| {
        let mut group = Group::with_random_faults(seed);
        let mut subscribers = vec![group.subscribe(1, ""), group.subscribe(2, "")];
        let publisher = group.publish("fc=min,g:/3", 200);
        let pause = between(&mut group.world, Duration::from_secs(1), Duration::from_secs(12));
        group.world.run_for(pause);
        assert!(!group.world.publisher(publisher).is_connected());
        assert_eq!(group.world.publisher(publisher).offered(), 0);
        subscribers.push(group.subscribe(3, ""));
        await_all(&mut group.world, &flows(&subscribers, publisher));
        end(group.world);
    }
}

seeded! {
    /// A stalled receiver with a small window whose status messages are lost at first counts as a required receiver:
    /// when another one is closed, the publication stays connected.
    receiver_registered_late, 20, |seed| {
        let mut group = Group::new(seed);
        group.distribution = Distribution::Manual;
        let others = [group.subscribe(1, ""), group.subscribe(2, "")];
        let small = group.subscribe(3, "rcv-wnd=16k");
        let [sender, receiver] = [0, 3].map(|host| group.world.network_id(group.hosts[host]));
        group.world.network().cut(receiver, sender);
        // It cannot request the SETUP a second time: it must be open for the first one, and must be sent it before the
        // others.
        group.world.run_until("all subscriptions are open", LONG, |world| {
            others.iter().chain([&small]).all(|it| world.subscriber(*it).is_open())
        });
        let destinations = [3, 1, 2].map(unicast);
        let publication = PublisherSpec::new("aeron:udp?control-mode=manual|fc=min,g:/2", STREAM);
        let publication = destinations.iter().fold(publication, PublisherSpec::destination);
        let publication = publication.lengths(Lengths::Small);
        let publisher = group.world.publish(group.clients[0], publication);
        group.world.run_until("all have an image", LONG, |world| {
            let mut all = others.iter().chain([&small]);
            all.all(|it| world.subscriber(*it).images().next().is_some())
        });
        group.world.subscriber_mut(small).set_skip_rate(1.0);
        // Less than its window; none of the others learns its position.
        group.world.publisher_mut(publisher).publish_more(3);
        await_all(&mut group.world, &flows(&others, publisher));
        assert_eq!(group.counter(type_id::FLOW_CONTROL_RECEIVERS), Some(2));
        group.world.network().heal_all();
        group.world.run_for(Duration::from_secs(1));
        assert_eq!(group.counter(type_id::FLOW_CONTROL_RECEIVERS), Some(3));
        group.world.subscriber_mut(others[0]).close();
        group.world.run_for(Duration::from_secs(10));
        assert_eq!(group.counter(type_id::FLOW_CONTROL_RECEIVERS), Some(2));
        assert!(group.world.publisher(publisher).is_connected());
        group.world.close_all();
    }
}

seeded! {
    /// With `fc=tagged` only receivers with the tag limit the sender.
    tagged_receivers_alone_limit_the_sender, 30, |seed| {
        let mut group = Group::new(seed);
        let tagged = group.subscribe(1, "gtag=7");
        let other = group.subscribe(2, "gtag=8");
        let untagged = group.subscribe(3, "");
        let publisher = group.publish("fc=tagged,g:7/1", 600);
        await_offered(&mut group.world, publisher, 20);
        group.world.subscriber_mut(other).set_skip_rate(1.0);
        group.world.subscriber_mut(untagged).set_skip_rate(0.999);
        await_all(&mut group.world, &flows(&[tagged], publisher));
        assert_eq!(group.counter(type_id::FLOW_CONTROL_RECEIVERS), Some(1));
        group.world.close_all();
    }
}

seeded! {
    /// With `fc=max` a stalled receiver does not limit the others.
    max_with_stalled_receiver, 30, |seed| {
        let mut group = Group::new(seed);
        let subscribers = group.subscribe_all("");
        let publisher = group.publish("fc=max", 600);
        group.world.run_until("all have an image", LONG, |world| {
            subscribers.iter().all(|it| world.subscriber(*it).images().next().is_some())
        });
        group.world.subscriber_mut(subscribers[2]).set_skip_rate(1.0);
        await_all(&mut group.world, &flows(&subscribers[..2], publisher));
        group.world.close_all();
    }
}

seeded! {
    /// With `fc=max`, an image that was over-run by more than half a term times out although heartbeats arrive and its
    /// subscriber reads again; the next image joins at the position of the sender.
    max_with_overrun_receiver, 10, |seed| {
        let mut group = Group::new(seed);
        group.distribution = Distribution::Manual;
        let fast = group.subscribe(1, "");
        let slow = group.subscribe(2, "");
        let parameters = "fc=max|init-term-id=0|term-id=0|term-offset=0|term-length=64k|mtu=1408";
        let publication = group.distribution.publication(parameters);
        let publication = publication.lengths(Lengths::Fixed(992)).messages(1);
        let publisher = group.world.publish(group.clients[0], publication);
        await_all(&mut group.world, &flows(&[fast, slow], publisher));
        group.world.subscriber_mut(slow).set_skip_rate(1.0);
        group.world.publisher_mut(publisher).publish_more(65);
        await_all(&mut group.world, &flows(&[fast], publisher));
        // Beyond half a term after anything that the slow image can have received, and within the next term: a gap
        // that the sender could still repair.
        let sent = group.world.publisher(publisher).position();
        assert!((66_560..131_072).contains(&sent), "{sent}");
        group.world.subscriber_mut(slow).set_skip_rate(0.0);
        group.world.run_until("the image ends", Duration::from_secs(12), |world| {
            !world.subscriber(slow).ended().is_empty()
        });
        let ended = &group.world.subscriber(slow).ended()[0];
        assert!(ended.position < sent && !ended.at_end_of_stream, "{ended:?}");
        group.world.run_until("a new image", LONG, |world| {
            world.subscriber(slow).images().next().is_some()
        });
        let key = group.world.publisher(publisher).key().expect("it is open");
        group.world.publisher_mut(publisher).publish_more(5);
        await_all(&mut group.world, &flows(&[fast, slow], publisher));
        let image = group.world.subscriber(slow).image(&key).expect("it has an image");
        assert_eq!(image.join(), sent);
        group.world.close_all();
    }
}

seeded! {
    /// A receiver that is cut off for long times out, and gets a new image after the network is restored.
    partitioned_receiver_gets_a_new_image, 30, |seed| {
        let mut group = Group::with_random_faults(seed);
        let subscribers = group.subscribe_all("");
        let publisher = group.publish("fc=min,g:/2,t:2s", 400);
        await_offered(&mut group.world, publisher, 30);
        group.cut_off(3);
        let pause = between(&mut group.world, Duration::from_secs(17), Duration::from_secs(40));
        group.world.run_for(pause);
        await_all(&mut group.world, &flows(&subscribers[..2], publisher));
        assert_eq!(group.world.subscriber(subscribers[2]).images().count(), 0);
        group.world.network().heal_all();
        group.world.run_until("a new image", LONG, |world| {
            world.subscriber(subscribers[2]).images().next().is_some()
        });
        group.world.publisher_mut(publisher).publish_more(50);
        await_all(&mut group.world, &flows(&subscribers, publisher));
        end(group.world);
    }
}

seeded! {
    /// The sender's driver dies and a new one is started: receivers lose the image and get the new stream.
    restarted_sender_starts_a_new_stream, 20, |seed| {
        let mut group = Group::with_random_faults(seed);
        let subscribers = group.subscribe_all("");
        let publisher = group.publish("fc=min,g:/3", 300);
        await_offered(&mut group.world, publisher, 50);
        group.world.kill_driver(group.hosts[0]);
        group.world.run_for(Duration::from_secs(30));
        for subscriber in &subscribers {
            assert_eq!(group.world.subscriber(*subscriber).images().count(), 0);
        }
        group.world.start_driver(group.hosts[0]);
        group.clients[0] = group.world.connect(group.hosts[0]);
        let publisher = group.publish("fc=min,g:/3", 100);
        await_all(&mut group.world, &flows(&subscribers, publisher));
        end(group.world);
    }
}

seeded! {
    /// Destinations are added and removed while messages flow.
    manual_destinations_change, 40, |seed| {
        let mut group = Group::with_random_faults(seed);
        group.distribution = Distribution::Manual;
        let subscribers = group.subscribe_all("");
        let publication = PublisherSpec::new("aeron:udp?control-mode=manual|fc=min,g:/1,t:2s", STREAM);
        let publication = publication.destination(unicast(1)).messages(600);
        let publisher = group.world.publish(group.clients[0], publication);
        await_offered(&mut group.world, publisher, 50);
        group.world.publisher_mut(publisher).add_destination(&unicast(2));
        group.world.run_until("the second has an image", LONG, |world| {
            world.subscriber(subscribers[1]).images().next().is_some()
        });
        group.world.publisher_mut(publisher).remove_destination(&unicast(1));
        group.world.publisher_mut(publisher).publish_more(100);
        await_all(&mut group.world, &flows(&subscribers[1..2], publisher));
        assert_eq!(group.counter(type_id::MDC_DESTINATIONS), Some(1));
        assert_eq!(group.world.subscriber(subscribers[2]).images().count(), 0);
        group.world.close_all();
    }
}
