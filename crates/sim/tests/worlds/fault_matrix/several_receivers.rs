// SPDX-License-Identifier: Apache-2.0
//! Several readers, one slow and one dead.

use taran_sim::seeded;

use crate::stream_kinds::{Kind, Scene};

/// One reader rarely reads, and one dies with all its resources. The others get everything, and so does the slow one if
/// flow control waits for it.
fn one_slow_one_dead(seed: u64, kind: Kind) {
    let mut scene = Scene::new(seed, kind, 4, 150);
    // The loose reader stalls.
    let slow = scene.readers[if kind == Kind::Untethered { 3 } else { 0 }];
    scene
        .world
        .subscriber_mut(slow.subscriber)
        .set_skip_rate(0.9);
    let before = scene.world.random().u64(1..100);
    scene.under_way(before);
    let dead = scene.readers.remove(1);
    scene.world.kill_client(dead.client);
    if kind.is_group() {
        scene.world.kill_driver(scene.hosts[dead.host]);
    }
    scene.publish_more(50);
    if kind == Kind::Max {
        // With `fc=max` the publisher does not wait for the slow reader.
        scene.readers.remove(0);
    }
    scene.await_all();
    if kind == Kind::Untethered {
        scene.expect_first_images();
    }
    scene.end();
}

seeded! { unicast, 8, |seed| one_slow_one_dead(seed, Kind::Unicast) }
seeded! { multicast, 8, |seed| one_slow_one_dead(seed, Kind::Multicast) }
seeded! { manual, 8, |seed| one_slow_one_dead(seed, Kind::Manual) }
seeded! { dynamic, 8, |seed| one_slow_one_dead(seed, Kind::Dynamic) }
seeded! { tagged, 8, |seed| one_slow_one_dead(seed, Kind::Tagged) }
seeded! { max, 8, |seed| one_slow_one_dead(seed, Kind::Max) }
seeded! { sources, 8, |seed| one_slow_one_dead(seed, Kind::Sources) }
seeded! { spies, 8, |seed| one_slow_one_dead(seed, Kind::Spies) }
seeded! { cubic, 8, |seed| one_slow_one_dead(seed, Kind::Cubic) }
seeded! { untethered, 8, |seed| one_slow_one_dead(seed, Kind::Untethered) }
seeded! { unreliable, 8, |seed| one_slow_one_dead(seed, Kind::Unreliable) }
seeded! { session, 8, |seed| one_slow_one_dead(seed, Kind::Session) }
seeded! { resumed, 8, |seed| one_slow_one_dead(seed, Kind::Resumed) }
seeded! { timestamps, 8, |seed| one_slow_one_dead(seed, Kind::Timestamps) }
seeded! { ipv6, 8, |seed| one_slow_one_dead(seed, Kind::Ipv6) }
seeded! { ipv6_group, 8, |seed| one_slow_one_dead(seed, Kind::Ipv6Group) }
