//! Error frames of receivers that are none, or that come back each time.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{ERROR_FRAME_LENGTH_MAX, ErrorFrame};
use taran_sim::seeded;

use super::super::common::STREAM;
use super::status::{Says, says};
use super::{Scene, expect_progress, undisturbed};

fn complaint(session_id: i32, receiver_id: i64, text: &str) -> Vec<u8> {
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    let text = text.as_bytes();
    ErrorFrame::write(&mut buffer, session_id, STREAM, receiver_id, None, 1, text).to_vec()
}

seeded! {
    /// Of receivers that nobody knows: counted, and that is all.
    of_unknown_receivers, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, key) = (scene.sends_from(), scene.key());
        let took = scene.deliver(50, |stranger| {
            let receiver_id = stranger.random.i64(..);
            stranger.say(to, &complaint(key.session_id, receiver_id, "nonsense"));
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        assert!(scene.system(0, SystemCounter::ErrorFramesReceived) > 100);
        assert_eq!(scene.world.complaints(scene.clients[0]), []);
        scene.end(&[], 0);
    }
}

seeded! {
    /// Invented receivers that come and complain, each with a text of its own: clients are told of a hundred in a
    /// second, and the error log keeps its room.
    of_receivers_that_come_and_complain, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sends_from(), says(&scene));
        let mut complains = |stranger: &mut super::Stranger| {
            let receiver_id = stranger.random.i64(..);
            let text = format!("nonsense {receiver_id}");
            // It only has to be heard: its window moves nothing.
            let says = Says { receiver_id, window: 0, ..of };
            stranger.say(to, &says.bytes());
            stranger.say(to, &complaint(of.session_id, receiver_id, &text));
        };
        scene.attack_for(Duration::from_secs(3), 20, &mut complains);
        let told = scene.world.complaints(scene.clients[0]).len();
        assert!((64..=3 * 100 + 64).contains(&told), "{told} complaints");
        let took = scene.deliver(20, complains);
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&["onPublicationError", "more than 1024 receivers"], 102);
    }
}
