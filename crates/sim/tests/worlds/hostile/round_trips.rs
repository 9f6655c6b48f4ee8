// SPDX-License-Identifier: Apache-2.0
//! Unsolicited round-trip requests and replies.

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::frame::{IntoBytes, Rttm};
use taran_sim::{HostSpec, seeded};

use super::super::common::{STREAM, channel};
use super::{Scene, endpoint, expect_progress, undisturbed};

/// Allowed replies in a second of attack, which ends with a duty cycle: the rate per second, that of the cycle, and the
/// initial budget.
const ANSWERS: u64 = 10_000 + 10 + 100;

fn rttm(flags: u8, session_id: i32, echo: i64, delta: i64) -> Vec<u8> {
    let rttm = Rttm {
        header: Rttm::header(flags),
        session_id: session_id.into(),
        stream_id: STREAM.into(),
        echo_timestamp: echo.into(),
        reception_delta: delta.into(),
        receiver_id: 0.into(),
    };
    rttm.as_bytes().to_vec()
}

seeded! {
    /// Requests to a publication: those for its sessions are answered, at most 10,000 per second, others never.
    requests_to_a_sender, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, key) = (scene.sender_address(), scene.key());
        let took = scene.deliver(100, |attacker| {
            let other = key.session_id.wrapping_add(attacker.random.i32(1..));
            attacker.send(to, &rttm(Rttm::REPLY, other, 1, 0));
        });
        expect_progress(took, expected);
        let receiver = scene.world.network_id(scene.hosts[1]);
        let sender = scene.world.network_id(scene.hosts[0]);
        let carried = |scene: &Scene| scene.world.network().link_counts(sender, receiver).datagrams;
        let quiet = |scene: &mut Scene, session_id: i32| {
            let before = carried(scene);
            scene.attack_for(Duration::from_secs(1), 100, |attacker| {
                attacker.send(to, &rttm(Rttm::REPLY, session_id, 1, 0));
            });
            carried(scene) - before
        };
        let unknown = quiet(&mut scene, key.session_id.wrapping_add(1));
        assert!(unknown <= 12, "{unknown} datagrams: ten heartbeats are expected");
        let known = quiet(&mut scene, key.session_id);
        assert!((1_000..=ANSWERS + 12).contains(&known), "{known} datagrams in a second");
        scene.end(&[], 0);
    }
}

seeded! {
    /// Requests to a subscription: those for its images are answered, at most 10,000 per second.
    requests_to_a_receiver, 4, |seed| {
        let expected = undisturbed(Scene::new(seed));
        let mut scene = Scene::new(seed);
        let key = scene.key();
        let took = scene.deliver(100, |attacker| {
            let session_id = key.session_id.wrapping_add(attacker.random.i32(0..2));
            attacker.send(endpoint(), &rttm(Rttm::REPLY, session_id, 1, 0));
        });
        expect_progress(took, expected);
        let before = scene.answers(1).datagrams;
        scene.attack_for(Duration::from_secs(1), 100, |attacker| {
            attacker.send(endpoint(), &rttm(Rttm::REPLY, key.session_id, 1, 0));
        });
        let answers = scene.answers(1).datagrams - before;
        assert!((1_000..=ANSWERS).contains(&answers), "{answers} answers in a second");
        scene.expect_amplification(1, 1.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// Requests to a channel with several destinations: the reply goes to the requester only.
    requests_to_a_sender_with_destinations, 4, |seed| {
        let to = "aeron:udp?control=10.0.0.1:40200|control-mode=dynamic";
        let on = format!("{}|control=10.0.0.1:40200", channel(1));
        let many = |seed| Scene::with(seed, &HostSpec::new(), to, &on);
        let expected = undisturbed(many(seed));
        let mut scene = many(seed);
        let key = scene.key();
        let control = SocketAddr::from(([10, 0, 0, 1], 40_200));
        let took = scene.deliver(100, |attacker| {
            attacker.send(control, &rttm(Rttm::REPLY, key.session_id, 1, 0));
        });
        expect_progress(took, expected);
        let receiver = scene.world.network_id(scene.hosts[1]);
        let sender = scene.world.network_id(scene.hosts[0]);
        let before = scene.world.network().link_counts(sender, receiver).datagrams;
        scene.attack_for(Duration::from_secs(1), 10, |attacker| {
            attacker.send(control, &rttm(Rttm::REPLY, key.session_id, 1, 0));
        });
        let others = scene.world.network().link_counts(sender, receiver).datagrams - before;
        assert!(others <= 12, "{others} datagrams to a receiver that asked nothing");
        scene.expect_amplification(0, 1.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// Unsolicited replies do not disturb a receiver's measurements.
    forged_replies, 4, |seed| {
        let spec = HostSpec::new()
            .option("aeron.CubicCongestionControl.measureRtt", "true")
            .option("aeron.CongestionControl.supplier", "io.aeron.driver.ext.CubicCongestionControlSupplier");
        let measuring = |seed| {
            let mut scene = Scene::with(seed, &spec, &channel(1), &channel(1));
            scene.world.run_for(Duration::from_secs(1));
            scene
        };
        let expected = undisturbed(measuring(seed));
        let mut scene = measuring(seed);
        let key = scene.key();
        let took = scene.deliver(50, |attacker| {
            let random = &mut attacker.random;
            let (echo, delta) = match random.u32(0..4) {
                0 => (0, 0),
                1 => (i64::MIN, 0),
                2 => (random.i64(..), random.i64(..)),
                _ => (0, i64::MIN),
            };
            attacker.send(endpoint(), &rttm(0, key.session_id, echo, delta));
        });
        expect_progress(took, expected);
        let measured = scene.value_of(1, type_id::PER_IMAGE);
        assert!((1..10_000_000).contains(&measured), "a round trip of {measured} ns");
        assert_eq!(scene.system(1, SystemCounter::InvalidPackets), 0);
        scene.end(&[], 0);
    }
}
