// SPDX-License-Identifier: Apache-2.0
//! Links that are cut, in one direction or in both, for a short time or a long one.

use std::time::Duration;

use taran_sim::{link_profiles, seeded};

use crate::common::between;
use crate::stream_kinds::{Kind, Scene};

/// Returns how long a receiver may be cut off and still be repaired.
fn bearable(kind: Kind) -> Duration {
    match kind {
        // The others continue without it: at once, or when their publisher has timed it out. A publisher can fill the
        // receive window of 32 KiB in 150 ms, and data beyond it is lost for good.
        Kind::Max => Duration::from_millis(100),
        Kind::Spies => Duration::from_secs(4),
        _ => Duration::from_millis(9_500),
    }
}

/// The link to a receiver, the link back, or both are cut. After a short cut the image continues; after a long cut of
/// the link to it there is a new one, which delivers everything.
fn cut(seed: u64, kind: Kind) {
    let mut scene = Scene::new(seed, kind, 2, 200);
    let before = scene.world.random().u64(1..100);
    scene.under_way(before);
    // The last reader is always on another host than the publisher.
    let cut_off = scene.readers[scene.readers.len() - 1];
    let [here, there] = [0, cut_off.host].map(|host| scene.world.network_id(scene.hosts[host]));
    let (forward, back) = [(true, true), (true, false), (false, true)][seed as usize % 3];
    if forward {
        scene.world.network().cut(here, there);
    }
    if back {
        scene.world.network().cut(there, here);
    }
    let is_long = scene.world.random().bool();
    let pause = if is_long {
        // A group's publisher waits for 20 s first, and the image for 10 s after the last frame.
        between(
            &mut scene.world,
            Duration::from_secs(40),
            Duration::from_secs(60),
        )
    } else {
        between(&mut scene.world, Duration::from_millis(50), bearable(kind))
    };
    scene.world.run_for(pause);
    scene.world.network().heal_all();
    if is_long {
        let faults = link_profiles::clean(scene.world.random());
        scene.world.set_faults(faults);
        scene.world.run_for(Duration::from_secs(15));
    }
    scene.publish_to_all(30);
    scene.await_all();
    if !is_long {
        let ended = scene.world.subscriber(cut_off.subscriber).ended();
        assert!(ended.is_empty(), "an image ended: {ended:?}");
    } else if forward {
        let ended = scene.world.subscriber(cut_off.subscriber).ended();
        assert!(!ended.is_empty(), "an image outlived a long silence");
    }
    scene.end();
}

seeded! { unicast, 9, |seed| cut(seed, Kind::Unicast) }
seeded! { multicast, 9, |seed| cut(seed, Kind::Multicast) }
seeded! { manual, 9, |seed| cut(seed, Kind::Manual) }
seeded! { dynamic, 9, |seed| cut(seed, Kind::Dynamic) }
seeded! { tagged, 9, |seed| cut(seed, Kind::Tagged) }
seeded! { max, 9, |seed| cut(seed, Kind::Max) }
seeded! { sources, 9, |seed| cut(seed, Kind::Sources) }
seeded! { spies, 9, |seed| cut(seed, Kind::Spies) }
seeded! { cubic, 9, |seed| cut(seed, Kind::Cubic) }
seeded! { untethered, 9, |seed| cut(seed, Kind::Untethered) }
seeded! { unreliable, 9, |seed| cut(seed, Kind::Unreliable) }
seeded! { session, 9, |seed| cut(seed, Kind::Session) }
seeded! { resumed, 9, |seed| cut(seed, Kind::Resumed) }
seeded! { timestamps, 9, |seed| cut(seed, Kind::Timestamps) }
seeded! { ipv6, 9, |seed| cut(seed, Kind::Ipv6) }
seeded! { ipv6_group, 9, |seed| cut(seed, Kind::Ipv6Group) }
