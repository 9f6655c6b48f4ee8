// SPDX-License-Identifier: Apache-2.0
//! Loss, duplication, reordering: everything arrives.

use taran_protocol::counter::SystemCounter;
use taran_sim::{World, link_profiles, seeded};

use crate::stream_kinds::{Kind, Scene};

/// On a faulty network all readers get everything that the kind guarantees, in one image, except for an untethered
/// reader that stalled. Without repair, gaps are skipped.
fn in_foul_weather(seed: u64, kind: Kind) {
    let mut world = World::new(seed);
    let mut faults = link_profiles::faulty(world.random());
    if kind == Kind::Unreliable {
        faults.loss = faults.loss.max(0.05);
    }
    world.set_faults(faults);
    let mut scene = Scene::within(world, kind, 2, 200);
    scene.under_way(100);
    scene.await_all();
    scene.expect_first_images();
    if kind == Kind::Unreliable {
        let filled = scene
            .world
            .system(scene.hosts[1], SystemCounter::LossGapFills);
        assert!(filled > 0, "nothing was lost, or all of it repaired");
    }
    scene.end();
}

seeded! { unicast, 8, |seed| in_foul_weather(seed, Kind::Unicast) }
seeded! { multicast, 8, |seed| in_foul_weather(seed, Kind::Multicast) }
seeded! { manual, 8, |seed| in_foul_weather(seed, Kind::Manual) }
seeded! { dynamic, 8, |seed| in_foul_weather(seed, Kind::Dynamic) }
seeded! { tagged, 8, |seed| in_foul_weather(seed, Kind::Tagged) }
seeded! { max, 8, |seed| in_foul_weather(seed, Kind::Max) }
seeded! { sources, 8, |seed| in_foul_weather(seed, Kind::Sources) }
seeded! { spies, 8, |seed| in_foul_weather(seed, Kind::Spies) }
seeded! { cubic, 8, |seed| in_foul_weather(seed, Kind::Cubic) }
seeded! { untethered, 8, |seed| in_foul_weather(seed, Kind::Untethered) }
seeded! { unreliable, 8, |seed| in_foul_weather(seed, Kind::Unreliable) }
seeded! { session, 8, |seed| in_foul_weather(seed, Kind::Session) }
seeded! { resumed, 8, |seed| in_foul_weather(seed, Kind::Resumed) }
seeded! { timestamps, 8, |seed| in_foul_weather(seed, Kind::Timestamps) }
seeded! { ipv6, 8, |seed| in_foul_weather(seed, Kind::Ipv6) }
seeded! { ipv6_group, 8, |seed| in_foul_weather(seed, Kind::Ipv6Group) }
