// SPDX-License-Identifier: Apache-2.0
//! Networks that damage datagrams: contents cannot be trusted, but drivers and clients stay alive and consistent.

use std::time::Duration;

use taran_sim::network::LinkFaults;
use taran_sim::{PublisherSpec, SubscriberSpec, link_profiles, seeded};

use super::common::{Pair, STREAM, await_all, channel, end};

seeded! {
    /// Bits are flipped in one of ten datagrams. Afterwards new streams are intact, and nothing of the old ones is
    /// left.
    corruption_ends_with_intact_streams, 60, |seed| {
        let Pair { mut world, clients, .. } = Pair::new(seed);
        world.disable_content_checks();
        let faults = link_profiles::corrupting(world.random());
        world.set_faults(faults);
        for stream_id in 0..4 {
            let (from, to) = if stream_id % 2 == 0 { (0, 1) } else { (1, 0) };
            world.subscribe(clients[to], SubscriberSpec::new(channel(to), stream_id));
            let publication = PublisherSpec::new(channel(to), stream_id).exclusive(stream_id < 2);
            world.publish(clients[from], publication.messages(300));
        }
        world.run_for(Duration::from_secs(5));
        world.set_faults(LinkFaults::default());
        for client in clients {
            world.close_client(client);
        }
        world.run_for(Duration::from_secs(30));
        world.enable_content_checks();
        let clients = [0, 1].map(|index| world.connect(taran_sim::HostIndex::at(index)));
        let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        let publisher = world.publish(clients[0], PublisherSpec::new(channel(1), STREAM).messages(100));
        await_all(&mut world, &[(subscriber, publisher)]);
        world.close_all();
        world.expect_nothing_left();
    }
}

seeded! {
    /// Truncated datagrams are detected and repaired, whatever part is missing.
    truncated_datagrams_are_repaired, 40, |seed| {
        let Pair { mut world, clients, .. } = Pair::new(seed);
        let faults = LinkFaults { truncate: 0.2, ..link_profiles::clean(world.random()) };
        world.set_faults(faults);
        let subscriber = world.subscribe(clients[1], SubscriberSpec::new(channel(1), STREAM));
        let publisher = world.publish(clients[0], PublisherSpec::new(channel(1), STREAM).messages(300));
        await_all(&mut world, &[(subscriber, publisher)]);
        end(world);
    }
}
