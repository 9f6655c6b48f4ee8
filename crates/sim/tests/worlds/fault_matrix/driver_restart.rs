// SPDX-License-Identifier: Apache-2.0
//! Drivers that die and are started again, on either side.

use std::time::Duration;

use taran_sim::seeded;

use crate::common::between;
use crate::stream_kinds::{Kind, Scene};

/// After this time all peers have detected the death, and a new driver can start.
const NOTICED: Duration = Duration::from_secs(32);

/// The driver of the publisher or of a reader dies. Its successor serves the same kind of stream to the same readers.
fn restart(seed: u64, kind: Kind) {
    let mut scene = Scene::new(seed, kind, 2, 150);
    let before = scene.world.random().u64(1..150);
    scene.under_way(before);
    let last = scene.readers[scene.readers.len() - 1].host;
    let host = if seed.is_multiple_of(2) { 0 } else { last };
    scene.world.kill_driver(scene.hosts[host]);
    let pause = between(&mut scene.world, NOTICED, NOTICED + Duration::from_secs(5));
    scene.world.run_for(pause);
    if scene.world.random().bool() {
        // The host was rebooted as well.
        scene.world.remove_files(scene.hosts[host]);
    }
    scene.world.start_driver(scene.hosts[host]);
    let readers = std::mem::take(&mut scene.readers);
    let (lost, left): (Vec<_>, Vec<_>) = readers.into_iter().partition(|it| it.host == host);
    scene.readers = left;
    for reader in &lost {
        scene.read_instead(*reader);
    }
    if host == 0 {
        scene.publish_again(150);
    }
    scene.publish_to_all(30);
    if host != 0 {
        // The successor lets loose readers lag as well.
        scene.lag();
    }
    scene.await_all();
    scene.end();
}

seeded! { unicast, 8, |seed| restart(seed, Kind::Unicast) }
seeded! { multicast, 8, |seed| restart(seed, Kind::Multicast) }
seeded! { manual, 8, |seed| restart(seed, Kind::Manual) }
seeded! { dynamic, 8, |seed| restart(seed, Kind::Dynamic) }
seeded! { tagged, 8, |seed| restart(seed, Kind::Tagged) }
seeded! { max, 8, |seed| restart(seed, Kind::Max) }
seeded! { sources, 8, |seed| restart(seed, Kind::Sources) }
seeded! { spies, 8, |seed| restart(seed, Kind::Spies) }
seeded! { cubic, 8, |seed| restart(seed, Kind::Cubic) }
seeded! { untethered, 8, |seed| restart(seed, Kind::Untethered) }
seeded! { unreliable, 8, |seed| restart(seed, Kind::Unreliable) }
seeded! { session, 8, |seed| restart(seed, Kind::Session) }
seeded! { resumed, 8, |seed| restart(seed, Kind::Resumed) }
seeded! { timestamps, 8, |seed| restart(seed, Kind::Timestamps) }
seeded! { ipv6, 8, |seed| restart(seed, Kind::Ipv6) }
seeded! { ipv6_group, 8, |seed| restart(seed, Kind::Ipv6Group) }
