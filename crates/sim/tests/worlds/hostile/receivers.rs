// SPDX-License-Identifier: Apache-2.0
//! Large numbers of invented receivers, and receivers with false windows.

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_sim::{HostSpec, seeded};

use super::super::common::channel;
use super::status::{Status, status};
use super::{Scene, expect_progress, undisturbed};

fn control() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 40_200))
}

/// Creates a stream with dynamic destinations.
fn dynamic(seed: u64, parameters: &str) -> Scene {
    let to = format!("aeron:udp?control=10.0.0.1:40200|control-mode=dynamic{parameters}");
    let on = format!("{}|control=10.0.0.1:40200", channel(1));
    Scene::with(seed, &HostSpec::new(), &to, &on)
}

seeded! {
    /// A receiver that announces itself to a channel with dynamic destinations is sent the stream for five seconds, as
    /// the protocol requires. There are at most 1,024 of them, they do not displace existing receivers, and one status
    /// message per second suffices for each.
    many_destinations, 2, |seed| {
        let expected = undisturbed(dynamic(seed, ""));
        let mut scene = dynamic(seed, "");
        let of = status(&scene);
        scene.attack_for(Duration::from_millis(100), 50, |attacker| {
            let status = Status { receiver_id: attacker.random.i64(..), ..of };
            attacker.send(control(), &status.bytes());
        });
        let destinations = scene.value_of(0, type_id::MDC_DESTINATIONS);
        assert!((1_000..=1_024).contains(&destinations), "{destinations} destinations");
        // The honest receiver gets everything.
        let took = scene.deliver(50, |attacker| {
            let status = Status { receiver_id: attacker.random.i64(..), ..of };
            attacker.send(control(), &status.bytes());
        });
        expect_progress(took, expected);
        scene.world.run_for(Duration::from_secs(6));
        assert_eq!(scene.value_of(0, type_id::MDC_DESTINATIONS), 1);
        let before = scene.answers(0);
        scene.deliver(0, |_| {});
        assert_eq!(scene.answers(0), before, "the attacker has timed out");
        scene.end(&["more than 1024 receivers"], 1);
    }
}

seeded! {
    /// With `fc=min` all receivers count, invented ones too: as long as they send status messages, the slowest of them
    /// limits the stream. Five seconds after the last one it continues.
    many_receivers_with_min, 4, |seed| {
        let mut scene = dynamic(seed, "|fc=min");
        let of = status(&scene);
        scene.attack_for(Duration::from_secs(1), 20, |attacker| {
            let status = Status { receiver_id: attacker.random.i64(..), ..of };
            attacker.send(control(), &status.bytes());
        });
        let receivers = scene.value_of(0, type_id::FLOW_CONTROL_RECEIVERS);
        assert!(receivers <= 1_024, "{receivers} receivers");
        assert!(receivers > 1_000, "{receivers} receivers: the attack had no effect");
        scene.world.run_for(Duration::from_secs(6));
        assert_eq!(scene.value_of(0, type_id::FLOW_CONTROL_RECEIVERS), 1);
        scene.end(&["more than 1024 receivers"], 1);
    }
}

seeded! {
    /// With `fc=tagged` receivers without the tag do not limit the stream.
    many_receivers_without_the_tag, 4, |seed| {
        let tagged = |seed| {
            let to = "aeron:udp?control=10.0.0.1:40200|control-mode=dynamic|fc=tagged,g:7/1";
            let on = format!("{}|control=10.0.0.1:40200|gtag=7", channel(1));
            Scene::with(seed, &HostSpec::new(), to, &on)
        };
        let expected = undisturbed(tagged(seed));
        let mut scene = tagged(seed);
        let of = Status { window: 0, ..status(&scene) };
        // From one address, so that it is one destination.
        let source = scene.attacker.address();
        let took = scene.deliver(50, |attacker| {
            let status = Status { receiver_id: attacker.random.i64(..), ..of };
            attacker.send_as(source, control(), &status.bytes());
        });
        expect_progress(took, expected);
        assert_eq!(scene.value_of(0, type_id::FLOW_CONTROL_RECEIVERS), 1);
        scene.end(&[], 0);
    }
}

seeded! {
    /// A receiver with a window of zero has no effect on unicast and `fc=max` streams.
    zero_window, 4, |seed| {
        let open = |seed, parameters: &str| {
            let spec = HostSpec::new().option("aeron.driver.connect", "false");
            Scene::with(seed, &spec, &format!("{}{parameters}", channel(1)), &channel(1))
        };
        let parameters = ["", "|fc=max"][seed as usize % 2];
        let expected = undisturbed(open(seed, parameters));
        let mut scene = open(seed, parameters);
        let (to, of) = (scene.sender_address(), Status { window: 0, ..status(&scene) });
        let took = scene.deliver(50, |attacker| {
            let status = Status { receiver_id: attacker.random.i64(..), ..of };
            attacker.send(to, &status.bytes());
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}
