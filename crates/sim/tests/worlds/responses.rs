// SPDX-License-Identifier: Apache-2.0
//! Requests and responses on response channels, over networks with loss and with restarted servers.

use std::time::Duration;

use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World,
    seeded,
};

use super::common::{LONG, await_all, between, channel, end};

pub(crate) const REQUESTS: i32 = 10;
pub(crate) const ANSWERS: i32 = 20;
/// Longer than all timeouts after which an image counts as dead.
pub(crate) const FORGOTTEN: Duration = Duration::from_secs(17);

/// Channel on which the first host responds.
const ANSWER_CHANNEL: &str = "aeron:udp?control-mode=response|control=10.0.0.1:40124";

/// A server on the first host, and requesters on all hosts.
pub(crate) struct Service {
    pub(crate) world: World,
    pub(crate) hosts: Vec<HostIndex>,
    pub(crate) clients: Vec<ClientId>,
    /// The server's subscription to the requests of all requesters.
    pub(crate) requests: SubscriberId,
}

/// A requester.
#[derive(Clone, Copy)]
pub(crate) struct Requester {
    pub(crate) answers: SubscriberId,
    pub(crate) requests: PublisherId,
}

impl Service {
    fn with_random_faults(seed: u64, hosts: usize) -> Self {
        Self::of(seed, vec![HostSpec::new(); hosts])
    }

    /// Creates the hosts on a network that only delays, or on one with all faults, depending on the seed.
    pub(crate) fn of(seed: u64, hosts: Vec<HostSpec>) -> Self {
        let mut world = World::new(seed);
        let faults = if world.random().bool() {
            taran_sim::link_profiles::clean(world.random())
        } else {
            taran_sim::link_profiles::faulty(world.random())
        };
        world.set_faults(faults);
        let hosts: Vec<_> = hosts.into_iter().map(|host| world.add_host(host)).collect();
        let clients: Vec<_> = hosts.iter().map(|host| world.connect(*host)).collect();
        let requests = world.subscribe(clients[0], SubscriberSpec::new(channel(0), REQUESTS));
        Self {
            world,
            hosts,
            clients,
            requests,
        }
    }

    /// Starts a requester on a host; returns it with the correlation id of its image at the server.
    pub(crate) fn ask(&mut self, host: usize, messages: u64) -> (Requester, i64) {
        let world = &mut self.world;
        let before: Vec<i64> = world.subscriber(self.requests).image_ids().collect();
        let answers = world.subscribe(
            self.clients[host],
            SubscriberSpec::new(ANSWER_CHANNEL, ANSWERS),
        );
        world.run_until("the subscription is open", LONG, |world| {
            world.subscriber(answers).is_open()
        });
        let id = world.subscriber(answers).registration_id().unwrap();
        let request_channel = format!("{}|response-correlation-id={id}", channel(0));
        let requests = world.publish(
            self.clients[host],
            PublisherSpec::new(request_channel, REQUESTS).messages(messages),
        );
        let image = self.new_image(&before);
        (Requester { answers, requests }, image)
    }

    /// Waits for an image that did not exist before.
    pub(crate) fn new_image(&mut self, before: &[i64]) -> i64 {
        let requests = self.requests;
        self.world
            .run_until("the requests are received", LONG, |world| {
                let mut ids = world.subscriber(requests).image_ids();
                ids.any(|id| !before.contains(&id))
            });
        let mut ids = self.world.subscriber(requests).image_ids();
        ids.find(|id| !before.contains(id)).unwrap()
    }

    /// Adds a response publication for the image of a requester.
    pub(crate) fn answer(&mut self, image: i64, messages: u64) -> PublisherId {
        let exclusive = self.world.random().bool();
        let answers = format!("{ANSWER_CHANNEL}|response-correlation-id={image}");
        let publication = PublisherSpec::new(answers, ANSWERS).exclusive(exclusive);
        self.world
            .publish(self.clients[0], publication.messages(messages))
    }
}

seeded! {
    /// Several requesters, also on the server's own host: each gets its own responses and no others.
    several_requesters, 25, |seed| {
        let mut service = Service::with_random_faults(seed, 3);
        let mut flows = Vec::new();
        for host in [0, 1, 2, 1] {
            let (requester, image) = service.ask(host, 60);
            let answers = service.answer(image, 100);
            flows.extend([(service.requests, requester.requests), (requester.answers, answers)]);
        }
        await_all(&mut service.world, &flows);
        for (answers, publisher) in flows.iter().skip(1).step_by(2) {
            let world = &service.world;
            let key = world.publisher(*publisher).key();
            let images: Vec<_> = world.subscriber(*answers).images().map(|image| *image.key()).collect();
            assert_eq!(images, key.into_iter().collect::<Vec<_>>());
        }
        end(service.world);
    }
}

seeded! {
    /// The server's driver dies. Its successor gets the requests of the same requester and responds with another
    /// session.
    server_death, 15, |seed| {
        let mut service = Service::with_random_faults(seed, 2);
        let (requester, image) = service.ask(1, 3_000);
        let answers = service.answer(image, 50);
        await_all(&mut service.world, &[(requester.answers, answers)]);
        service.world.kill_driver(service.hosts[0]);
        let pause = between(&mut service.world, FORGOTTEN, 2 * FORGOTTEN);
        service.world.run_for(pause);
        service.world.start_driver(service.hosts[0]);
        service.clients[0] = service.world.connect(service.hosts[0]);
        let subscription = SubscriberSpec::new(channel(0), REQUESTS);
        service.requests = service.world.subscribe(service.clients[0], subscription);
        let image = service.new_image(&[]);
        let answers = service.answer(image, 50);
        await_all(&mut service.world, &[(requester.answers, answers)]);
        end(service.world);
    }
}

seeded! {
    /// A long cut: the server gets a new image of the requester and responds to it again.
    partitioned_server_responds_again, 15, |seed| {
        let mut service = Service::with_random_faults(seed, 2);
        let (requester, image) = service.ask(1, 3_000);
        let answers = service.answer(image, 50);
        await_all(&mut service.world, &[(requester.answers, answers)]);
        let [server, other] = [0, 1].map(|host| service.world.network_id(service.hosts[host]));
        service.world.network().cut(server, other);
        service.world.network().cut(other, server);
        let pause = between(&mut service.world, 2 * FORGOTTEN, 3 * FORGOTTEN);
        service.world.run_for(pause);
        service.world.publisher_mut(answers).close();
        service.world.network().heal_all();
        let image = service.new_image(&[image]);
        let answers = service.answer(image, 50);
        await_all(&mut service.world, &[(requester.answers, answers)]);
        end(service.world);
    }
}

seeded! {
    /// The driver of a requester dies while it receives responses: the server detects that, and other requesters are
    /// not affected. A requester on the new driver gets responses.
    requester_restart, 15, |seed| {
        let mut service = Service::with_random_faults(seed, 3);
        let (dead, image) = service.ask(1, 3_000);
        let (other, other_image) = service.ask(2, 60);
        let to_dead = service.answer(image, 3_000);
        let to_other = service.answer(other_image, 200);
        service.world.run_until("the dead one has received a response", LONG, |world| {
            world.subscriber(dead.answers).images().next().is_some()
        });
        service.world.kill_driver(service.hosts[1]);
        await_all(&mut service.world, &[(other.answers, to_other), (service.requests, other.requests)]);
        service.world.run_until("the server has noticed", LONG, |world| {
            !world.publisher(to_dead).is_connected()
                && world.subscriber(service.requests).image_ids().count() == 1
        });
        let since_death = between(&mut service.world, FORGOTTEN, 2 * FORGOTTEN);
        service.world.run_for(since_death);
        service.world.start_driver(service.hosts[1]);
        service.clients[1] = service.world.connect(service.hosts[1]);
        let (again, image) = service.ask(1, 60);
        let answers = service.answer(image, 100);
        await_all(&mut service.world, &[(service.requests, again.requests), (again.answers, answers)]);
        end(service.world);
    }
}

seeded! {
    /// One requester is slow, and the client of another one dies: the third and the slow one get all responses.
    one_slow_one_dead, 15, |seed| {
        let mut service = Service::with_random_faults(seed, 4);
        let (slow, slow_image) = service.ask(1, 60);
        service.world.subscriber_mut(slow.answers).set_skip_rate(0.95);
        let (dead, dead_image) = service.ask(2, 3_000);
        let (quick, quick_image) = service.ask(3, 60);
        let answers = [slow_image, dead_image, quick_image].map(|image| service.answer(image, 100));
        service.world.run_until("the dead one has received a response", LONG, |world| {
            world.subscriber(dead.answers).images().next().is_some()
        });
        service.world.kill_client(service.clients[2]);
        await_all(&mut service.world, &[(slow.answers, answers[0]), (quick.answers, answers[2])]);
        service.world.run_until("the server has noticed", LONG, |world| {
            !world.publisher(answers[1]).is_connected()
        });
        end(service.world);
    }
}
