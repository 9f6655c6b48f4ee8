// SPDX-License-Identifier: Apache-2.0
//! Secured response channels and name resolution among secured drivers.

use std::time::Duration;

use taran_protocol::counter::SecureCounter;
use taran_sim::{HostSpec, PublisherSpec, SubscriberSpec, World, link_profiles, seeded};

use super::common::{STREAM, await_all, between, channel, end};
use super::names::{await_known, known, named, reaches_by_name};
use super::responses::{ANSWERS, FORGOTTEN, REQUESTS, Service};
use super::secured::{ALL, count, trusting_all};

fn service(seed: u64, hosts: usize) -> Service {
    Service::of(seed, vec![trusting_all(); hosts])
}

seeded! {
    /// Several requesters, also on the server's own host: each gets its own responses and no others, all of them sealed.
    several_requesters, 12, |seed| {
        let mut service = service(seed, 3);
        let mut flows = Vec::new();
        for host in [0, 1, 2, 1] {
            let (requester, image) = service.ask(host, 40);
            let answers = service.answer(image, 60);
            flows.extend([(service.requests, requester.requests), (requester.answers, answers)]);
        }
        await_all(&mut service.world, &flows);
        for (answers, publisher) in flows.iter().skip(1).step_by(2) {
            let world = &service.world;
            let key = world.publisher(*publisher).key();
            let images: Vec<_> = world.subscriber(*answers).images().map(|image| *image.key()).collect();
            assert_eq!(images, key.into_iter().collect::<Vec<_>>());
        }
        for host in &service.hosts {
            assert_eq!(count(&service.world, *host, SecureCounter::PlainRefused), 0);
        }
        end(service.world);
    }
}

seeded! {
    /// A trusted client that asks for the responses of another one gets none of them, although it knows their session.
    response_of_another_peer_is_not_granted, 8, |seed| {
        let mut service = service(seed, 3);
        let (requester, image) = service.ask(1, 40);
        let answers = service.answer(image, 2_000);
        if seed % 2 == 0 {
            // The intruder has a link to the endpoint of the responses, because it gets responses of its own.
            let (own, own_image) = service.ask(2, 40);
            let own_answers = service.answer(own_image, 60);
            await_all(&mut service.world, &[(own.answers, own_answers)]);
        }
        service.world.run_until("responses arrive", Duration::from_secs(60), |world| {
            world.subscriber(requester.answers).images().next().is_some()
        });
        let session = service.world.publisher(answers).key().unwrap().session_id;
        let before = service.world.delivered_on(service.hosts[2]);
        let intruder = format!(
            "aeron:udp?control-mode=dynamic|endpoint=10.0.0.3:40125|control=10.0.0.1:40124|session-id={session}"
        );
        let intruder = service.world.subscribe(service.clients[2], SubscriberSpec::new(intruder, ANSWERS));
        await_all(&mut service.world, &[(requester.answers, answers)]);
        service.world.run_for(Duration::from_secs(5));
        assert_eq!(service.world.subscriber(intruder).images().count(), 0);
        assert_eq!(service.world.delivered_on(service.hosts[2]), before);
        service.world.close_all();
    }
}

seeded! {
    /// The server's driver dies. Its successor has other keys, gets the requests of the same requester, and responds with
    /// another session.
    server_death, 8, |seed| {
        let mut service = service(seed, 2);
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
        service.world.close_all();
    }
}

/// Creates hosts whose drivers have names and transport security.
fn named_hosts(seed: u64, specs: Vec<HostSpec>) -> (World, Vec<taran_sim::HostIndex>) {
    let mut world = World::new(seed);
    let faults = if seed.is_multiple_of(2) {
        link_profiles::clean(world.random())
    } else {
        link_profiles::faulty(world.random())
    };
    world.set_faults(faults);
    let hosts = specs.into_iter().map(|spec| world.add_host(spec)).collect();
    (world, hosts)
}

seeded! {
    /// Secured drivers learn of each other from one bootstrap neighbor, and reach each other by name. Nothing plain is on
    /// the wire, which is checked in each step.
    secured_drivers_reach_each_other_by_name, 8, |seed| {
        let specs = (0..4).map(|number| named(number).secured(&[(0, ALL), (1, ALL), (2, ALL), (3, ALL)]));
        let (mut world, hosts) = named_hosts(seed, specs.collect());
        await_known(&mut world, &hosts, 3);
        let clients: Vec<_> = hosts.iter().map(|host| world.connect(*host)).collect();
        for (from, to) in [(1, 2), (0, 3)] {
            reaches_by_name(&mut world, clients[from], clients[to], to, STREAM + from as i32);
        }
        for host in &hosts {
            assert_eq!(count(&world, *host, SecureCounter::PlainRefused), 0);
        }
        end(world);
    }
}

seeded! {
    /// A driver that a neighbor does not trust, or that may not publish, and one without transport security stay unknown.
    untrusted_and_plain_neighbors_stay_unknown, 6, |seed| {
        let other = match seed % 3 {
            0 => named(2),
            1 => named(2).secured(&[(0, ALL), (1, ALL)]),
            _ => named(2).secured(&[(1, ALL)]),
        };
        // The third host trusts the others only in the second case, and is trusted only in the third.
        let trusted: &[(usize, &str)] = if seed % 3 == 2 {
            &[(0, ALL), (1, ALL), (2, "subscribe=*")]
        } else {
            &[(0, ALL), (1, ALL)]
        };
        let specs = vec![named(0).secured(trusted), named(1).secured(trusted), other];
        let (mut world, hosts) = named_hosts(seed, specs);
        await_known(&mut world, &hosts[..2], 1);
        world.run_for(Duration::from_secs(20));
        for host in &hosts[..2] {
            assert_eq!(known(&world, *host), [1, 1]);
        }
        world.close_all();
    }
}

seeded! {
    /// A neighbor that dies is forgotten, and known again when it is started with other keys.
    secured_neighbor_returns, 6, |seed| {
        let specs = (0..3).map(|number| named(number).secured(&[(0, ALL), (1, ALL), (2, ALL)]));
        let (mut world, hosts) = named_hosts(seed, specs.collect());
        await_known(&mut world, &hosts, 2);
        world.kill_driver(hosts[2]);
        world.run_until("the dead one is forgotten", Duration::from_secs(60), |world| {
            hosts[..2].iter().all(|host| known(world, *host) == [1, 1])
        });
        world.run_for(Duration::from_secs(11));
        world.start_driver(hosts[2]);
        await_known(&mut world, &hosts, 2);
        let clients: Vec<_> = hosts.iter().map(|host| world.connect(*host)).collect();
        reaches_by_name(&mut world, clients[0], clients[2], 2, STREAM);
        world.close_all();
    }
}

seeded! {
    /// A secured driver refuses a response channel whose requests are plain, in either role: nothing proves the peer.
    plain_requests_get_no_secured_response, 2, |seed| {
        let spec = trusting_all().option("taran.secure.allow.plain", "*");
        let mut service = Service::of(seed, vec![spec.clone(), spec]);
        let world = &mut service.world;
        let answers = "aeron:udp?control-mode=response|control=10.0.0.1:40124";
        let subscription = world.subscribe(service.clients[1], SubscriberSpec::new(answers, ANSWERS));
        world.run_until("the subscription is open", Duration::from_secs(60), |world| {
            world.subscriber(subscription).is_open()
        });
        let id = world.subscriber(subscription).registration_id().unwrap();
        let requests = format!("{}|taran.secure=false|response-correlation-id={id}", "aeron:udp?endpoint=10.0.0.1:40200");
        let publisher = world.publish(service.clients[1], PublisherSpec::new(requests, REQUESTS).messages(1));
        world.run_for(Duration::from_secs(5));
        assert_eq!(world.publisher(publisher).offered(), 0);
        world.close_all();
    }
}
