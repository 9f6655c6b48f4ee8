// SPDX-License-Identifier: Apache-2.0
//! The same seed gives the same history bit for bit.

use std::time::Duration;

use taran_sim::{HostSpec, PublisherSpec, SubscriberSpec, World, link_profiles, seeded};

use super::common::{STREAM, channel};

/// Runs a scenario with all kinds of events; returns a hash of its history and the number of events.
fn run_scenario(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let faults = link_profiles::corrupting(world.random());
    world.disable_content_checks();
    world.set_faults(faults);
    let hosts = [(); 3].map(|()| world.add_host(HostSpec::new()));
    let clients = hosts.map(|host| [(); 2].map(|()| world.connect(host)));
    for to in 0..3 {
        for stream_id in [STREAM, STREAM + 1] {
            world.subscribe(clients[to][0], SubscriberSpec::new(channel(to), stream_id));
            world.subscribe(clients[to][1], SubscriberSpec::new("aeron:ipc", stream_id));
            for (from, [_, client]) in clients.into_iter().enumerate() {
                let publication = PublisherSpec::new(channel(to), stream_id).exclusive(from == 0);
                world.publish(client, publication.messages(30));
            }
            world.publish(
                clients[to][0],
                PublisherSpec::new("aeron:ipc", stream_id).messages(30),
            );
        }
    }
    world.run_for(Duration::from_secs(2));
    world.set_faults(link_profiles::faulty(&mut fastrand::Rng::with_seed(seed)));
    world.kill_client(clients[0][1]);
    world.kill_driver(hosts[1]);
    world.run_for(Duration::from_secs(20));
    world.start_driver(hosts[1]);
    world.close_all();
    (world.fingerprint(), world.event_count())
}

seeded! {
    /// Each seed is run twice.
    same_seed_gives_the_same_history, 4, |seed| {
        let (first, second) = (run_scenario(seed), run_scenario(seed));
        assert_eq!(first, second);
        assert!(first.1 > 1_000, "{first:?}");
        assert_ne!(first.0, run_scenario(seed + 1_000).0);
    }
}
