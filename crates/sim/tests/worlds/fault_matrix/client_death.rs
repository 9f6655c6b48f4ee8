// SPDX-License-Identifier: Apache-2.0
//! Clients that die, publishers and readers.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_sim::seeded;

use crate::common::{LONG, between};
use crate::stream_kinds::{Kind, Scene};

/// A reader or the publisher dies: the others get everything, and nothing of the dead client is left.
fn death(seed: u64, kind: Kind) {
    let mut scene = Scene::new(seed, kind, 2, 200);
    let before = scene.world.random().u64(1..100);
    scene.under_way(before);
    let pause = between(&mut scene.world, Duration::ZERO, Duration::from_millis(200));
    scene.world.run_for(pause);
    let host = if seed.is_multiple_of(2) {
        a_reader(&mut scene)
    } else {
        the_publisher(&mut scene)
    };
    let counter = SystemCounter::ClientTimeouts;
    let host = scene.hosts[host];
    scene
        .world
        .run_until("the driver has noticed", Duration::from_secs(15), |world| {
            world.system(host, counter) == 1
        });
    scene.end();
}

fn a_reader(scene: &mut Scene) -> usize {
    let index = scene.world.random().usize(0..scene.readers.len());
    let dead = scene.readers.remove(index);
    scene.world.kill_client(dead.client);
    scene.publish_more(50);
    scene.await_all();
    if scene.kind == Kind::Untethered {
        scene.expect_first_images();
    }
    dead.host
}

/// Everything published arrives, the stream ends for all readers, and another publisher takes over.
fn the_publisher(scene: &mut Scene) -> usize {
    let key = scene.world.publisher(scene.publisher).key().unwrap();
    scene.world.kill_client(scene.writer);
    scene.wake();
    // A loose reader has lost its image before.
    let mut readers = scene.readers.clone();
    readers.retain(|it| !it.is_untethered);
    scene
        .world
        .run_until("the stream has ended for all", LONG, |world| {
            let mut all = readers.iter();
            all.all(|it| !world.subscriber(it.subscriber).ended().is_empty())
        });
    for reader in &readers {
        let ended = scene.world.subscriber(reader.subscriber).ended()[0];
        assert_eq!(ended.key, key);
        assert!(ended.is_complete, "{ended:?}");
    }
    // The chosen session is available again when the old stream has lingered.
    scene.world.run_for(Duration::from_secs(20));
    scene.publish_again(50);
    scene.await_all();
    0
}

seeded! { unicast, 8, |seed| death(seed, Kind::Unicast) }
seeded! { multicast, 8, |seed| death(seed, Kind::Multicast) }
seeded! { manual, 8, |seed| death(seed, Kind::Manual) }
seeded! { dynamic, 8, |seed| death(seed, Kind::Dynamic) }
seeded! { tagged, 8, |seed| death(seed, Kind::Tagged) }
seeded! { max, 8, |seed| death(seed, Kind::Max) }
seeded! { sources, 8, |seed| death(seed, Kind::Sources) }
seeded! { spies, 8, |seed| death(seed, Kind::Spies) }
seeded! { cubic, 8, |seed| death(seed, Kind::Cubic) }
seeded! { untethered, 8, |seed| death(seed, Kind::Untethered) }
seeded! { unreliable, 8, |seed| death(seed, Kind::Unreliable) }
seeded! { session, 8, |seed| death(seed, Kind::Session) }
seeded! { resumed, 8, |seed| death(seed, Kind::Resumed) }
seeded! { timestamps, 8, |seed| death(seed, Kind::Timestamps) }
seeded! { ipv6, 8, |seed| death(seed, Kind::Ipv6) }
seeded! { ipv6_group, 8, |seed| death(seed, Kind::Ipv6Group) }
