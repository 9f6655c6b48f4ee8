//! Subscribers that send an image away (docs/spec/shared-memory.md §9.4, docs/spec/wire.md §3.7, §5.6).

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_sim::{HostSpec, PublisherId, Publishing, SubscriberId, Subscribing, World, seeded};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, between, channel};

const REASON: &str = "the messages make no sense";

seeded! {
    /// An image is sent away: the publisher is told once, with the reason, over whatever network; the image goes; and
    /// after a while the stream, which went on in the meantime where others read it, is received again.
    told_once, 40, |seed| {
        let Pair { mut world, hosts, clients } = Pair::in_any_weather(seed);
        let ipc = world.random().bool();
        let (channel, reader) = if ipc { ("aeron:ipc".to_owned(), 0) } else { (channel(1), 1) };
        let subscriber = world.subscribe(clients[reader], Subscribing::new(channel.as_str(), STREAM));
        let publishing = Publishing::new(channel, STREAM).pause(Duration::from_millis(10));
        let publisher = world.publish(clients[0], publishing.messages(10_000));
        await_offered(&mut world, publisher, 20);
        world.run_until("there is an image", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        assert!(world.subscriber_mut(subscriber).reject(REASON));
        world.run_until("the publisher is told", LONG, |world| {
            !world.complaints(clients[0]).is_empty()
        });
        world.run_until("the image has gone", LONG, |world| {
            world.subscriber(subscriber).ended().len() == 1
        });
        world.run_until("the stream is received again", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        await_all(&mut world, &[(subscriber, publisher)]);
        let complaints = world.complaints(clients[0]);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        let said = &complaints[0];
        let key = world.publisher(publisher).key().unwrap();
        assert_eq!((said.session_id, said.stream_id), (key.session_id, STREAM));
        assert_eq!(said.code, ErrorCode::ImageRejected);
        assert_eq!(said.text, REASON);
        let of = hosts[reader];
        assert_eq!(world.system(of, SystemCounter::ImagesRejected), 1);
        world.close_all();
        world.expect_nothing_left();
        world.expect_no_errors_but(&[REASON]);
    }
}

seeded! {
    /// One of three receivers of a group that is waited for sends its image away: the publisher is told once, the flow goes
    /// on meanwhile, and the others read on in their images as if nothing had been.
    the_others_read_on, 30, |seed| {
        let group = "aeron:udp?endpoint=224.20.30.39:40123";
        let Pair { mut world, hosts, clients: [sender, _] } = Pair::in_any_weather(seed);
        let receivers = [hosts[1], world.add_host(HostSpec::new()), world.add_host(HostSpec::new())];
        let subscribers = receivers.map(|host| {
            let client = world.connect(host);
            world.subscribe(client, Subscribing::new(group, STREAM))
        });
        let publishing = Publishing::new(format!("{group}|fc=min,g:/3,t:20s"), STREAM);
        let publisher = world.publish(sender, publishing.pause(Duration::from_millis(10)).messages(2_000));
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
        let complaints = world.complaints(sender);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert_eq!(complaints[0].text, REASON);
        let rejected = receivers.map(|host| world.system(host, SystemCounter::ImagesRejected));
        let mut expected = [0; 3];
        expected[index] = 1;
        assert_eq!(rejected, expected);
        end_but_rejected(world);
    }
}

/// A stream whose reader is about to send it away, beside one that reads another stream on the same host.
fn read_for_now(seed: u64) -> (Pair, SubscriberId, PublisherId) {
    let mut pair = Pair::in_any_weather(seed);
    let subscriber = pair.subscribe();
    let publishing = Publishing::new(channel(1), STREAM).pause(Duration::from_millis(10));
    let publisher = pair
        .world
        .publish(pair.clients[0], publishing.messages(1_000));
    await_offered(&mut pair.world, publisher, 20);
    pair.world.run_until("there is an image", LONG, |world| {
        world.subscriber(subscriber).images().next().is_some()
    });
    (pair, subscriber, publisher)
}

fn end_but_rejected(mut world: World) {
    world.close_all();
    world.expect_nothing_left();
    world.expect_no_errors_but(&[REASON]);
}

seeded! {
    /// The links are cut, in one direction or both, when an image is sent away, and mended while that is still told: the
    /// publisher is told once all the same, and read again in the end.
    partition, 30, |seed| {
        let (mut pair, subscriber, publisher) = read_for_now(seed);
        let ids = pair.hosts.map(|host| pair.world.network_id(host));
        if seed % 3 != 0 {
            pair.world.network().cut(ids[0], ids[1]);
        }
        if seed % 3 != 1 {
            pair.world.network().cut(ids[1], ids[0]);
        }
        assert!(pair.world.subscriber_mut(subscriber).reject(REASON));
        // After 5 s without a status message a receiver is a stranger, to whom no publisher listens.
        let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(3_500));
        pair.world.run_for(pause);
        pair.world.network().heal_all();
        pair.world.run_until("the image has gone", LONG, |world| {
            world.subscriber(subscriber).ended().len() == 1
        });
        pair.await_all((subscriber, publisher));
        let complaints = pair.world.complaints(pair.clients[0]);
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        end_but_rejected(pair.world);
    }
}

seeded! {
    /// Whoever sent an image away dies, or the publisher's client does: the other side goes on, and nothing is left.
    client_death, 30, |seed| {
        let (mut pair, subscriber, publisher) = read_for_now(seed);
        assert!(pair.world.subscriber_mut(subscriber).reject(REASON));
        let pause = between(&mut pair.world, Duration::ZERO, Duration::from_millis(100));
        pair.world.run_for(pause);
        if seed % 2 == 0 {
            // Its driver knows, and tells.
            pair.world.run_for(Duration::from_millis(50));
            pair.world.kill_client(pair.clients[1]);
            let teller = pair.clients[0];
            pair.world.run_until("the publisher is told", LONG, |world| {
                !world.complaints(teller).is_empty()
            });
            pair.clients[1] = pair.world.connect(pair.hosts[1]);
            let next = pair.subscribe();
            pair.await_all((next, publisher));
            assert_eq!(pair.world.complaints(teller).len(), 1);
        } else {
            pair.world.kill_client(pair.clients[0]);
            pair.world.run_until("the image has gone", LONG, |world| {
                world.subscriber(subscriber).ended().len() == 1
            });
            pair.clients[0] = pair.world.connect(pair.hosts[0]);
            let next = Publishing::new(channel(1), STREAM).messages(50);
            let next = pair.world.publish(pair.clients[0], next);
            pair.await_all((subscriber, next));
            assert!(pair.world.complaints(pair.clients[0]).is_empty());
        }
        end_but_rejected(pair.world);
    }
}

seeded! {
    /// A driver dies while an image is being sent away, the receiver's or the publisher's: its successor knows nothing of
    /// that, and the stream is read again.
    driver_restart, 30, |seed| {
        let (mut pair, subscriber, mut publisher) = read_for_now(seed);
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
            let next = Publishing::new(channel(1), STREAM).messages(50);
            publisher = pair.world.publish(pair.clients[0], next);
        }
        pair.world.run_until("the stream is read again", LONG, |world| {
            world.subscriber(subscriber).images().next().is_some()
        });
        pair.await_all((subscriber, publisher));
        // Who was told before it died cannot be asked any more.
        if dead == 0 {
            assert!(pair.world.complaints(pair.clients[0]).is_empty());
        }
        end_but_rejected(pair.world);
    }
}
