// SPDX-License-Identifier: Apache-2.0
//! Drivers that start late, stop, die and restart.

use std::time::Duration;

use taran::{CloseReason, Lost, OfferError, PollError};
use taran_sim::{ClientState, HostIndex, HostSpec, PublisherSpec, SubscriberSpec, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel, end};

seeded! {
    /// A client that starts before its driver waits for it.
    client_waits_for_its_driver, 20, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        world.kill_driver(host);
        world.remove_files(host);
        let client = world.begin_connect(host);
        let pause = between(&mut world, Duration::ZERO, Duration::from_secs(9));
        world.run_for(pause);
        world.start_driver(host);
        world.run_until("the client has connected", Duration::from_secs(1), |world| {
            matches!(world.client_state(client), ClientState::Connected(_))
        });
        end(world);
    }
}

/// Runs until a client has lost its driver; returns the reason.
fn await_loss(pair: &mut Pair) -> Lost {
    let client = pair.clients[0];
    pair.world
        .run_until("the client has noticed", Duration::from_secs(15), |world| {
            world.client_end(client).is_some()
        });
    match pair.world.client_end(client) {
        Some(CloseReason::Lost(lost)) => lost,
        end => panic!("{end:?}"),
    }
}

/// Checks that clients of a new driver on the first host can publish and subscribe.
fn expect_new_driver_works(mut pair: Pair, host: HostIndex) {
    let client = pair.world.connect(host);
    let (here, there) = (pair.world.connect(host), pair.clients[1]);
    let mut flows = Vec::new();
    for (from, to, to_host) in [(client, there, 1), (there, here, 0)] {
        let subscriber = pair
            .world
            .subscribe(to, SubscriberSpec::new(channel(to_host), STREAM + 1));
        let publication = PublisherSpec::new(channel(to_host), STREAM + 1).messages(100);
        flows.push((subscriber, pair.world.publish(from, publication)));
    }
    await_all(&mut pair.world, &flows);
    pair.end();
}

seeded! {
    /// A driver is killed: its clients get a typed error, its peers lose the image, and its successor works.
    killed_driver_is_reported_and_replaced, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (subscriber, publisher) = pair.flow(1_000_000);
        await_offered(&mut pair.world, publisher, 100);
        let before = pair.world.elapsed();
        pair.world.kill_driver(pair.hosts[0]);
        let lost = await_loss(&mut pair);
        assert_eq!(lost, Lost::DriverProcessEnded);
        assert!(pair.world.elapsed() - before < Duration::from_secs(1));
        pair.world.run_until("the publisher has noticed", Duration::from_secs(1), |world| {
            world.publisher(publisher).refusal() == Some(OfferError::DriverLost(lost))
        });
        pair.world.run_until("the image has gone", Duration::from_secs(15), |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let ended = pair.world.subscriber(subscriber).ended()[0];
        assert!(!ended.at_end_of_stream);
        pair.world.start_driver(pair.hosts[0]);
        let host = pair.hosts[0];
        expect_new_driver_works(pair, host);
    }
}

seeded! {
    /// A driver with a subscriber is killed: the publisher on the other host becomes disconnected.
    killed_receiver_disconnects_its_publisher, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (subscriber, publisher) = pair.flow(1_000_000);
        await_offered(&mut pair.world, publisher, 100);
        pair.world.kill_driver(pair.hosts[1]);
        pair.world.run_until("the publisher is disconnected", Duration::from_secs(10), |world| {
            world.publisher(publisher).refusal() == Some(OfferError::NotConnected)
        });
        pair.world.run_until("the subscriber has noticed", Duration::from_secs(15), |world| {
            world.subscriber(subscriber).error().is_some()
        });
        let error = pair.world.subscriber(subscriber).error();
        assert_eq!(error, Some(PollError::DriverLost(Lost::DriverProcessEnded)));
        pair.world.start_driver(pair.hosts[1]);
        pair.clients[1] = pair.world.connect(pair.hosts[1]);
        let subscriber = pair.subscribe();
        pair.world.run_until("the stream continues", LONG, |world| {
            world.subscriber(subscriber).images().any(|image| image.delivered() > 100)
        });
        pair.end();
    }
}

seeded! {
    /// A driver is killed and started again at once: it needs no timeout to take the directory over, and the clients of
    /// the first one learn of its end.
    driver_restarted_at_once_takes_the_directory_over, 20, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (_, publisher) = pair.flow(1_000_000);
        await_offered(&mut pair.world, publisher, 100);
        let host = pair.hosts[0];
        pair.world.kill_driver(host);
        pair.world.start_driver(host);
        let before = pair.world.elapsed();
        assert_eq!(await_loss(&mut pair), Lost::DriverProcessEnded);
        assert!(pair.world.elapsed() - before < Duration::from_secs(1));
        expect_new_driver_works(pair, host);
    }
}

seeded! {
    /// A driver is closed in an orderly way: its clients detect that within a second.
    closed_driver_is_detected_within_a_second, 20, |seed| {
        let mut pair = Pair::new(seed);
        let (_, publisher) = pair.flow(1_000_000);
        await_offered(&mut pair.world, publisher, 100);
        pair.world.stop_driver(pair.hosts[0]);
        let before = pair.world.elapsed();
        assert_eq!(await_loss(&mut pair), Lost::DriverShutdown);
        assert!(pair.world.elapsed() - before < Duration::from_secs(1));
        pair.world.start_driver(pair.hosts[0]);
        let host = pair.hosts[0];
        expect_new_driver_works(pair, host);
    }
}

seeded! {
    /// A driver that was paused for some seconds continues without any loss.
    paused_driver_continues_without_loss, 30, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let (subscriber, publisher) = pair.flow(400);
        await_offered(&mut pair.world, publisher, 100);
        let host = pair.hosts[pair.world.random().usize(0..2)];
        let pause = between(&mut pair.world, Duration::from_millis(10), Duration::from_secs(8));
        pair.world.stall_driver(host, pause);
        pair.world.run_for(pause);
        pair.await_all((subscriber, publisher));
        pair.world.close_all();
        pair.world.expect_nothing_left();
    }
}
