// SPDX-License-Identifier: Apache-2.0
//! Subscribers that reject an image (docs/spec/shared-memory.md §9.4, docs/spec/wire.md §3.7, §5.6).

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_sim::{
    HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World, seeded,
};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel};

const REASON: &str = "the messages make no sense";

seeded! {
    /// An image is rejected: the publisher is notified once, with the reason, over any network; the image ends; and
    /// after a while the stream, which continued for other readers, is received again.
    publisher_notified_once, 40, |seed| {
        let Pair { mut world, hosts, clients } = Pair::with_random_faults(seed);
        let ipc = world.random().bool();
        let (channel, reader) = if ipc { ("aeron:ipc".to_owned(), 0) } else { (channel(1), 1) };
        let subscriber = world.subscribe(clients[reader], SubscriberSpec::new(channel.as_str(), STREAM));
        let publication = PublisherSpec::new(channel, STREAM).pause(Duration::from_millis(10));
        let publisher = world.publish(clients[0], publication.messages(10_000));
        await_offered(&mut world, publisher, 20);
        world.run_until("there is an image", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        assert!(world.subscriber_mut(subscriber).reject(REASON));
        world.run_until("the publisher is notified", LONG, |world| {
            !world.publication_errors(clients[0]).is_empty()
        });
        world.run_until("the image has gone", LONG, |world| {
            world.subscriber(subscriber).ended().len() == 1
        });
        world.run_until("the stream is received again", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        await_all(&mut world, &[(subscriber, publisher)]);
        let errors = world.publication_errors(clients[0]);
        assert_eq!(errors.len(), 1, "{errors:?}");
        let error = &errors[0];
        let key = world.publisher(publisher).key().unwrap();
        assert_eq!((error.session_id, error.stream_id), (key.session_id, STREAM));
        assert_eq!(error.code, ErrorCode::ImageRejected);
        assert_eq!(error.text, REASON);
        let of = hosts[reader];
        assert_eq!(world.system(of, SystemCounter::ImagesRejected), 1);
        world.close_all();
        world.expect_nothing_left();
        world.expect_no_errors_but(&[REASON]);
    }
}

seeded! {
    /// One of three required receivers of a group rejects its image: the publisher is notified once, the stream
    /// continues meanwhile, and the images of the other receivers are not affected.
    other_receivers_unaffected, 30, |seed| {
        let group = "aeron:udp?endpoint=224.20.30.39:40123";
        let Pair { mut world, hosts, clients: [sender, _] } = Pair::with_random_faults(seed);
        let receivers = [hosts[1], world.add_host(HostSpec::new()), world.add_host(HostSpec::new())];
        let subscribers = receivers.map(|host| {
            let client = world.connect(host);
            world.subscribe(client, SubscriberSpec::new(group, STREAM))
        });
        let publication = PublisherSpec::new(format!("{group}|fc=min,g:/3,t:20s"), STREAM);
        let publisher = world.publish(sender, publication.pause(Duration::from_millis(10)).messages(2_000));
        await_offered(&mut world, publisher, 20);
        world.run_until("all have an image", LONG, |world| {
            subscribers.iter().all(|it| world.subscriber(*it).images().next().is_some())
        });
        let index = seed as usize % 3;
        let rejects = subscribers[index];
        let before = world.publisher(publisher).offered();
        assert!(world.subscriber_mut(rejects).reject(REASON));
        world.run_until("the image has gone", LONG, |world| {
            world.subscriber(rejects).ended().len() == 1
        });
        await_offered(&mut world, publisher, before + 100);
        assert!(!world.publisher(publisher).is_done());
        world.run_until("the stream is received again", LONG, |world| {
            world.subscriber(rejects).images().next().is_some()
        });
        let flows = subscribers.map(|it| (it, publisher));
        await_all(&mut world, &flows);
        for other in subscribers.iter().filter(|it| **it != rejects) {
            assert!(world.subscriber(*other).ended().is_empty());
        }
        assert_eq!(world.subscriber(rejects).ended().len(), 1);
        let errors = world.publication_errors(sender);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].text, REASON);
        let rejected = receivers.map(|host| world.system(host, SystemCounter::ImagesRejected));
        let mut expected = [0; 3];
        expected[index] = 1;
        assert_eq!(rejected, expected);
        end_with_rejection(world);
    }
}

/// Creates a stream whose reader is about to reject it.
fn stream_with_reader(seed: u64) -> (Pair, SubscriberId, PublisherId) {
    let mut pair = Pair::with_random_faults(seed);
    let subscriber = pair.subscribe();
    let publication = PublisherSpec::new(channel(1), STREAM).pause(Duration::from_millis(10));
    let publisher = pair
        .world
        .publish(pair.clients[0], publication.messages(1_000));
    await_offered(&mut pair.world, publisher, 20);
    pair.world.run_until("there is an image", LONG, |world| {
        world.subscriber(subscriber).images().next().is_some()
    });
    (pair, subscriber, publisher)
}

fn end_with_rejection(mut world: World) {
    world.close_all();
    world.expect_nothing_left();
    world.expect_no_errors_but(&[REASON]);
}

seeded! {
    /// The links are cut, in one direction or both, when an image is rejected, and restored while the rejection is
    /// still repeated: the publisher is notified exactly once, and the stream is received again.
    rejection_is_repeated_after_a_partition, 30, |seed| {
        let (mut pair, subscriber, publisher) = stream_with_reader(seed);
        let ids = pair.hosts.map(|host| pair.world.network_id(host));
        if seed % 3 != 0 {
            pair.world.network().cut(ids[0], ids[1]);
        }
        if seed % 3 != 1 {
            pair.world.network().cut(ids[1], ids[0]);
        }
        assert!(pair.world.subscriber_mut(subscriber).reject(REASON));
        // After 5 s without a status message the receiver is unknown to the publisher, which ignores its error frames.
        let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(3_500));
        pair.world.run_for(pause);
        pair.world.network().heal_all();
        pair.world.run_until("the image has gone", LONG, |world| {
            world.subscriber(subscriber).ended().len() == 1
        });
        pair.await_all((subscriber, publisher));
        let errors = pair.world.publication_errors(pair.clients[0]);
        assert_eq!(errors.len(), 1, "{errors:?}");
        end_with_rejection(pair.world);
    }
}

seeded! {
    /// The client that rejected an image dies, or the publisher's client does: the other side continues, and nothing is
    /// left.
    client_death, 30, |seed| {
        let (mut pair, subscriber, publisher) = stream_with_reader(seed);
        assert!(pair.world.subscriber_mut(subscriber).reject(REASON));
        let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(100));
        pair.world.run_for(pause);
        if seed % 2 == 0 {
            // Its driver knows of the rejection and sends it.
            pair.world.run_for(Duration::from_millis(50));
            pair.world.kill_client(pair.clients[1]);
            let client = pair.clients[0];
            pair.world.run_until("the publisher is notified", LONG, |world| {
                !world.publication_errors(client).is_empty()
            });
            pair.clients[1] = pair.world.connect(pair.hosts[1]);
            let next = pair.subscribe();
            pair.await_all((next, publisher));
            assert_eq!(pair.world.publication_errors(client).len(), 1);
        } else {
            pair.world.kill_client(pair.clients[0]);
            pair.world.run_until("the image has gone", LONG, |world| {
                world.subscriber(subscriber).ended().len() == 1
            });
            pair.clients[0] = pair.world.connect(pair.hosts[0]);
            let next = PublisherSpec::new(channel(1), STREAM).messages(50);
            let next = pair.world.publish(pair.clients[0], next);
            pair.await_all((subscriber, next));
            assert!(pair.world.publication_errors(pair.clients[0]).is_empty());
        }
        end_with_rejection(pair.world);
    }
}

seeded! {
    /// A driver dies while an image is being rejected, the receiver's or the publisher's: its successor does not know
    /// of the rejection, and the stream is received again.
    driver_restart, 30, |seed| {
        let (mut pair, subscriber, mut publisher) = stream_with_reader(seed);
        assert!(pair.world.subscriber_mut(subscriber).reject(REASON));
        let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(300));
        pair.world.run_for(pause);
        let dead = seed as usize % 2;
        pair.world.kill_driver(pair.hosts[dead]);
        let pause = between(&mut pair.world, Duration::from_secs(15), Duration::from_secs(30));
        pair.world.run_for(pause);
        pair.world.start_driver(pair.hosts[dead]);
        pair.clients[dead] = pair.world.connect(pair.hosts[dead]);
        let subscriber = if dead == 1 { pair.subscribe() } else { subscriber };
        if dead == 0 {
            let next = PublisherSpec::new(channel(1), STREAM).messages(50);
            publisher = pair.world.publish(pair.clients[0], next);
        }
        pair.world.run_until("the stream is read again", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        pair.await_all((subscriber, publisher));
        // The errors of a client that was notified before its driver died cannot be queried.
        if dead == 0 {
            assert!(pair.world.publication_errors(pair.clients[0]).is_empty());
        }
        end_with_rejection(pair.world);
    }
}
