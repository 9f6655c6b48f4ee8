// SPDX-License-Identifier: Apache-2.0
//! Hosts with different clocks.

use std::time::Duration;

use taran_sim::{HostSpec, Lengths, PublisherSpec, SubscriberSpec, seeded};

use super::common::{Pair, STREAM, await_offered, channel};

seeded! {
    /// The clock of one host is hours ahead of the other: this has no effect.
    clock_hours_ahead_has_no_effect, 30, |seed| {
        let hours = Duration::from_secs(3_600) * (1 + seed as u32 % 50);
        let [left, right] = if seed % 2 == 0 { [hours, Duration::ZERO] } else { [Duration::ZERO, hours] };
        let spec = |ahead| HostSpec::new().clocks_ahead(ahead);
        let mut pair = Pair::of(seed, spec(left), spec(right));
        let faults = taran_sim::link_profiles::faulty(pair.world.random());
        pair.world.set_faults(faults);
        let (subscriber, publisher) = pair.flow(300);
        await_offered(&mut pair.world, publisher, 50);
        pair.world.run_for(Duration::from_secs(30));
        pair.await_all((subscriber, publisher));
        assert!(pair.world.subscriber(subscriber).ended().is_empty());
        pair.end();
    }
}

/// Step of a clock.
const HOUR_MS: i64 = 3_600_000;

seeded! {
    /// Clocks are stepped by an hour, forward or back, while one stream continues and another one, closed by its
    /// publisher, lingers with lost messages: nothing ends early, and the lost messages are retransmitted.
    clock_set_by_an_hour_has_no_effect, 20, |seed| {
        let mut pair = Pair::new(seed);
        let faults = taran_sim::link_profiles::clean(pair.world.random());
        pair.world.set_faults(faults);
        let flow = pair.flow(50);
        let stream = STREAM + 1;
        let subscription = SubscriberSpec::new(channel(1), stream);
        let reader = pair.world.subscribe(pair.clients[1], subscription);
        let publication = PublisherSpec::new(format!("{}|linger=20s", channel(1)), stream)
            .exclusive(seed % 2 == 0)
            .lengths(Lengths::Small)
            .messages(20);
        let lingers = pair.world.publish(pair.clients[0], publication);
        pair.await_all(flow);
        pair.await_all((reader, lingers));
        let [from, to] = pair.hosts.map(|host| pair.world.network_id(host));
        pair.world.network().cut(from, to);
        pair.world.publisher_mut(lingers).publish_more(20);
        await_offered(&mut pair.world, lingers, 40);
        pair.world.run_for(Duration::from_secs(1));
        pair.world.publisher_mut(lingers).close();
        pair.world.run_for(Duration::from_secs(2));
        let by_ms = if seed % 4 < 2 { HOUR_MS } else { -HOUR_MS };
        let hosts = match seed % 3 {
            0 => &pair.hosts[..1],
            1 => &pair.hosts[1..],
            _ => &pair.hosts[..],
        };
        for host in hosts {
            pair.world.step_clock(*host, by_ms);
        }
        pair.world.run_for(Duration::from_secs(2));
        pair.world.network().heal_all();
        pair.world.run_until("the stream that lingered has come to its end", Duration::from_secs(10), |world| {
            !world.subscriber(reader).ended().is_empty()
        });
        let ended = pair.world.subscriber(reader).ended()[0];
        assert!(ended.at_end_of_stream && ended.is_complete, "{ended:?}");
        pair.world.run_for(Duration::from_secs(30));
        for host in &pair.hosts {
            pair.world.step_clock(*host, -by_ms);
        }
        pair.world.run_for(Duration::from_secs(30));
        assert!(pair.world.publisher(flow.1).is_connected());
        pair.world.publisher_mut(flow.1).publish_more(50);
        pair.await_all(flow);
        assert!(pair.world.subscriber(flow.0).ended().is_empty());
        for client in pair.clients {
            assert_eq!(pair.world.client_end(client), None);
        }
        pair.end();
    }
}
