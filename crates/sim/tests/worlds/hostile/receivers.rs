//! Receivers that are none, in crowds, and receivers that lie about their window.

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_sim::{HostSpec, seeded};

use super::super::common::channel;
use super::status::{Says, says};
use super::{Scene, expect_progress, undisturbed};

fn control() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 40_200))
}

/// Receivers announce themselves to the publication.
fn dynamic(seed: u64, parameters: &str) -> Scene {
    let to = format!("aeron:udp?control=10.0.0.1:40200|control-mode=dynamic{parameters}");
    let on = format!("{}|control=10.0.0.1:40200", channel(1));
    Scene::with(seed, &HostSpec::new(), &to, &on)
}

seeded! {
    /// Whoever announces himself to a channel of several destinations is sent the stream, for five seconds: that is what
    /// the protocol says. There are never more than 1 024 of them, none of whom keeps out a receiver that was there, and
    /// one status message a second is enough for each.
    crowd_of_destinations, 2, |seed| {
        let expected = undisturbed(dynamic(seed, ""));
        let mut scene = dynamic(seed, "");
        let of = says(&scene);
        scene.attack_for(Duration::from_millis(100), 50, |stranger| {
            let says = Says { receiver_id: stranger.random.i64(..), ..of };
            stranger.say(control(), &says.bytes());
        });
        let destinations = scene.value_of(0, type_id::MDC_DESTINATIONS);
        assert!((1_000..=1_024).contains(&destinations), "{destinations} destinations");
        // The honest receiver gets all.
        let took = scene.deliver(50, |stranger| {
            let says = Says { receiver_id: stranger.random.i64(..), ..of };
            stranger.say(control(), &says.bytes());
        });
        expect_progress(took, expected);
        scene.world.run_for(Duration::from_secs(6));
        assert_eq!(scene.value_of(0, type_id::MDC_DESTINATIONS), 1);
        let before = scene.answers(0);
        scene.deliver(0, |_| {});
        assert_eq!(scene.answers(0), before, "the stranger is forgotten");
        scene.end(&["more than 1024 receivers"], 1);
    }
}

seeded! {
    /// Under `min` all receivers count, and so do invented ones: as long as they speak, the slowest of them sets the
    /// pace. Five seconds after the last of them the stream goes on.
    crowd_that_holds_back, 4, |seed| {
        let mut scene = dynamic(seed, "|fc=min");
        let of = says(&scene);
        scene.attack_for(Duration::from_secs(1), 20, |stranger| {
            let says = Says { receiver_id: stranger.random.i64(..), ..of };
            stranger.say(control(), &says.bytes());
        });
        let receivers = scene.value_of(0, type_id::FLOW_CONTROL_RECEIVERS);
        assert!(receivers <= 1_024, "{receivers} receivers");
        assert!(receivers > 1_000, "{receivers} receivers: the attack was none");
        scene.world.run_for(Duration::from_secs(6));
        assert_eq!(scene.value_of(0, type_id::FLOW_CONTROL_RECEIVERS), 1);
        scene.end(&["more than 1024 receivers"], 1);
    }
}

seeded! {
    /// With `fc=tagged` those without the tag hold nobody back, whatever they say.
    crowd_without_the_tag, 4, |seed| {
        let tagged = |seed| {
            let to = "aeron:udp?control=10.0.0.1:40200|control-mode=dynamic|fc=tagged,g:7/1";
            let on = format!("{}|control=10.0.0.1:40200|gtag=7", channel(1));
            Scene::with(seed, &HostSpec::new(), to, &on)
        };
        let expected = undisturbed(tagged(seed));
        let mut scene = tagged(seed);
        let of = Says { window: 0, ..says(&scene) };
        // From one address, so that it is one destination.
        let source = scene.stranger.address();
        let took = scene.deliver(50, |stranger| {
            let says = Says { receiver_id: stranger.random.i64(..), ..of };
            stranger.say_as(source, control(), &says.bytes());
        });
        expect_progress(took, expected);
        assert_eq!(scene.value_of(0, type_id::FLOW_CONTROL_RECEIVERS), 1);
        scene.end(&[], 0);
    }
}

seeded! {
    /// A receiver with no window at all: to one receiver, and where the fastest counts, it means nothing.
    no_window, 4, |seed| {
        let open = |seed, parameters: &str| {
            let spec = HostSpec::new().option("aeron.driver.connect", "false");
            Scene::with(seed, &spec, &format!("{}{parameters}", channel(1)), &channel(1))
        };
        let parameters = ["", "|fc=max"][seed as usize % 2];
        let expected = undisturbed(open(seed, parameters));
        let mut scene = open(seed, parameters);
        let (to, of) = (scene.sends_from(), Says { window: 0, ..says(&scene) });
        let took = scene.deliver(50, |stranger| {
            let says = Says { receiver_id: stranger.random.i64(..), ..of };
            stranger.say(to, &says.bytes());
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}
