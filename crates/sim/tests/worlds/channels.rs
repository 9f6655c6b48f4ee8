//! What channels can ask for.

use std::time::Duration;

use taran::OfferError;
use taran_protocol::counter::SystemCounter;
use taran_sim::network::LinkFaults;
use taran_sim::{Lengths, Publishing, Subscribing, seeded, weather};

use super::common::{LONG, Pair, STREAM, await_all, await_offered, channel, end};

seeded! {
    /// Without repair messages are missing, and the stream goes on.
    unreliable, 40, |seed| {
        let Pair { mut world, hosts, clients } = Pair::new(seed);
        let faults = LinkFaults { loss: 0.05, ..weather::foul(world.random()) };
        world.set_faults(faults);
        let subscribing = Subscribing::new(format!("{}|reliable=false", channel(1)), STREAM).lossy();
        let subscriber = world.subscribe(clients[1], subscribing);
        let publishing = Publishing::new(channel(1), STREAM).messages(500);
        let publisher = world.publish(clients[0], publishing);
        await_all(&mut world, &[(subscriber, publisher)]);
        assert!(world.system(hosts[1], SystemCounter::LossGapFills) > 0);
        assert_eq!(world.system(hosts[1], SystemCounter::NaksSent), 0);
        end(world);
    }
}

seeded! {
    /// An untethered subscriber that stops reading holds nobody back for long, and gets a new image in time.
    untethered, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let ipc = world.random().bool();
        let (reader, channel) = if ipc { (clients[0], "aeron:ipc?".to_owned()) } else { (clients[1], channel(1) + "|") };
        let loose = world.subscribe(reader, Subscribing::new(format!("{channel}tether=false"), STREAM));
        let quick = world.subscribe(reader, Subscribing::new(format!("{channel}tether=true"), STREAM));
        let publishing = Publishing::new(channel.trim_end_matches(['|', '?']), STREAM)
            .pause(Duration::from_millis(5));
        let publisher = world.publish(clients[0], publishing.messages(12_000));
        await_offered(&mut world, publisher, 100);
        world.subscriber_mut(loose).set_laziness(1.0);
        world.run_until("the image of the loose subscriber has gone", LONG, |world| {
            world.subscriber(loose).ended().len() == 1
        });
        assert!(!world.publisher(publisher).is_done());
        world.subscriber_mut(loose).set_laziness(0.1);
        world.run_until("the loose subscriber has a new image", LONG, |world| {
            world.subscriber(loose).images().next().is_some()
        });
        await_all(&mut world, &[(quick, publisher), (loose, publisher)]);
        assert!(world.subscriber(quick).ended().is_empty());
        end(world);
    }
}

seeded! {
    /// Streams begin where their channel says, across the place where term ids wrap, and end where positions do.
    positions, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let ipc = world.random().bool();
        let (reader, channel) = if ipc { (clients[0], "aeron:ipc?".to_owned()) } else { (clients[1], channel(1) + "|") };
        // The last of the 2^31 terms of 64 KiB is the one before this.
        let initial_term_id = i32::MAX - world.random().i32(0..20);
        let terms_left = world.random().i32(1..8);
        let term_id = initial_term_id.wrapping_add(i32::MAX - terms_left + 1);
        let offset = 32 * world.random().i32(0..2_000);
        let parameters = format!("init-term-id={initial_term_id}|term-id={term_id}|term-offset={offset}");
        let subscriber = world.subscribe(reader, Subscribing::new(channel.trim_end_matches(['|', '?']), STREAM));
        let exclusive = world.random().bool();
        let publishing = Publishing::new(format!("{channel}{parameters}"), STREAM)
            .exclusive(exclusive)
            .lengths(Lengths::Framed);
        let publisher = world.publish(clients[0], publishing.messages(10_000));
        world.run_until("the position space is used up", LONG, |world| {
            matches!(world.publisher(publisher).refusal(), Some(OfferError::MaxPositionExceeded { .. }))
        });
        world.publisher_mut(publisher).close();
        world.run_until("the image has ended", LONG, |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        let ended = world.subscriber(subscriber).ended()[0];
        assert!(ended.is_complete, "{ended:?}");
        assert!(ended.position > (i64::from(i32::MAX) - 1) * 65_536, "{ended:?}");
        end(world);
    }
}

seeded! {
    /// A stream whose term ids wrap in the middle.
    wrapping_term_ids, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let first = i32::MAX - world.random().i32(0..4);
        let subscriber = world.subscribe(clients[1], Subscribing::new(channel(1), STREAM));
        let from = format!("{}|init-term-id={first}|term-id={first}|term-offset=0", channel(1));
        let publisher = world.publish(clients[0], Publishing::new(from, STREAM).messages(500));
        await_all(&mut world, &[(subscriber, publisher)]);
        end(world);
    }
}

seeded! {
    /// Subscriptions to one session each, of two publishers on two hosts.
    sessions, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::in_any_weather(seed);
        let mut flows = Vec::new();
        for session in [-7, 11] {
            let named = format!("{}|session-id={session}", channel(1));
            let subscriber = world.subscribe(clients[1], Subscribing::new(named.as_str(), STREAM));
            let from = usize::from(session > 0);
            let publishing = Publishing::new(named, STREAM).messages(200);
            flows.push((subscriber, world.publish(clients[from], publishing)));
        }
        await_all(&mut world, &flows);
        for (subscriber, _) in flows {
            assert_eq!(world.subscriber(subscriber).images().count(), 1);
        }
        end(world);
    }
}

seeded! {
    /// A few messages each second, over a network as bad as it gets: the last one is repaired too, and in time.
    trickle, 30, |seed| {
        let Pair { mut world, clients, .. } = Pair::new(seed);
        let faults = weather::foul(world.random());
        world.set_faults(faults);
        let subscriber = world.subscribe(clients[1], Subscribing::new(channel(1), STREAM));
        let publishing = Publishing::new(channel(1), STREAM)
            .pause(Duration::from_millis(200))
            .burst(2);
        let publisher = world.publish(clients[0], publishing);
        for _ in 0..40 {
            world.publisher_mut(publisher).more(2);
            world.run_until("some messages are published", LONG, |world| world.publisher(publisher).is_done());
            // A lost message shows by the next heartbeat; several of these, and NAKs, may be lost too.
            world.run_until("they are delivered", Duration::from_secs(3), |world| {
                world.has_all(subscriber, publisher)
            });
        }
        end(world);
    }
}
