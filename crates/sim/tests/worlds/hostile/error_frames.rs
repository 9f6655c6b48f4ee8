// SPDX-License-Identifier: Apache-2.0
//! Error frames of unknown receivers, and of receivers that appear once per frame.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{ERROR_FRAME_LENGTH_MAX, ErrorFrame};
use taran_sim::seeded;

use super::super::common::STREAM;
use super::status::{Status, status};
use super::{Scene, expect_progress, undisturbed};

fn error_frame(session_id: i32, receiver_id: i64, text: &str) -> Vec<u8> {
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    let text = text.as_bytes();
    ErrorFrame::write(&mut buffer, session_id, STREAM, receiver_id, None, 1, text).to_vec()
}

seeded! {
    /// From unknown receivers: counted, with no other effect.
    of_unknown_receivers, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, key) = (scene.sender_address(), scene.key());
        let took = scene.deliver(50, |attacker| {
            let receiver_id = attacker.random.i64(..);
            attacker.send(to, &error_frame(key.session_id, receiver_id, "nonsense"));
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        assert!(scene.system(0, SystemCounter::ErrorFramesReceived) > 100);
        assert_eq!(scene.world.publication_errors(scene.clients[0]), []);
        scene.end(&[], 0);
    }
}

seeded! {
    /// From invented receivers, each with a text of its own: clients are notified at most 100 times per second, and the
    /// error log does not fill up.
    of_invented_receivers, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sender_address(), status(&scene));
        let mut complains = |attacker: &mut super::Attacker| {
            let receiver_id = attacker.random.i64(..);
            let text = format!("nonsense {receiver_id}");
            // The receiver only has to be registered: its window moves nothing.
            let status = Status { receiver_id, window: 0, ..of };
            attacker.send(to, &status.bytes());
            attacker.send(to, &error_frame(of.session_id, receiver_id, &text));
        };
        scene.attack_for(Duration::from_secs(3), 20, &mut complains);
        let reported = scene.world.publication_errors(scene.clients[0]).len();
        assert!((64..=3 * 100 + 64).contains(&reported), "{reported} errors");
        let took = scene.deliver(20, complains);
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&["onPublicationError", "more than 1024 receivers"], 102);
    }
}
