// SPDX-License-Identifier: Apache-2.0
//! Forged resolution frames sent to a driver with name gossip.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_protocol::frame::{ResolutionEntry, write_resolution};
use taran_sim::{HostSpec, seeded};

use super::super::common::channel;
use super::{Attacker, Scene, expect_progress, undisturbed};

fn named() -> HostSpec {
    HostSpec::new()
        .option("aeron.driver.resolver.name", "d")
        .option("aeron.driver.resolver.interface", "0.0.0.0:8050")
}

fn scene(seed: u64) -> Scene {
    Scene::with(seed, &named(), &channel(1), &channel(1))
}

/// Builds gossip about as many drivers as fit, or the announcement of one driver.
fn gossip(attacker: &mut Attacker) -> Vec<u8> {
    let random = &mut attacker.random;
    let is_self = random.u32(0..4) == 0;
    let names: Vec<String> = (0..30).map(|_| format!("n{}", random.u64(..))).collect();
    let entries = names.iter().map(|name| ResolutionEntry {
        is_self,
        address: SocketAddr::new(IpAddr::from([10, 66, 0, 1]), 1_024 + name.len() as u16),
        age_ms: 0,
        name: name.as_bytes(),
    });
    let mut buffer = [0; 1_408];
    let count = if is_self { 1 } else { 30 };
    let (bytes, _) = write_resolution(&mut buffer, entries.take(count));
    bytes.to_vec()
}

seeded! {
    /// Any number of them: names and neighbors are bounded, so is what the driver sends to them, and all of them time
    /// out.
    forged_gossip, 2, |seed| {
        let expected = undisturbed(scene(seed));
        let mut scene = scene(seed);
        let to = SocketAddr::from(([10, 0, 0, 1], 8_050));
        let took = scene.deliver(10, |attacker| {
            let gossip = gossip(attacker);
            attacker.send(to, &gossip);
        });
        expect_progress(took, expected);
        let before = scene.answers(0);
        scene.attack_for(Duration::from_secs(2), 2, |attacker| {
            let gossip = gossip(attacker);
            attacker.send(to, &gossip);
        });
        let (neighbors, names) = (
            scene.value_of(0, type_id::RESOLVER_NEIGHBORS),
            scene.value_of(0, type_id::RESOLVER_CACHE_ENTRIES),
        );
        assert!(names > 100, "{names} names: the attack had no effect");
        assert!(neighbors <= 1_024 && names <= 4_096, "{neighbors} neighbors, {names} names");
        let sent = scene.answers(0).datagrams - before.datagrams;
        assert!(sent <= 2 * 100 * 128 + 128, "{sent} datagrams in two seconds");
        scene.end(&[], 0);
    }
}
