//! Status messages of receivers that are none.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{IntoBytes, StatusMessage};
use taran_sim::seeded;

use super::super::common::STREAM;
use super::{Scene, TERM, expect_progress, listens, undisturbed};

/// What a status message says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Says {
    pub(super) flags: u8,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) term_id: i32,
    pub(super) term_offset: i32,
    pub(super) window: i32,
    pub(super) receiver_id: i64,
}

impl Says {
    pub(super) fn bytes(self) -> Vec<u8> {
        let message = StatusMessage {
            header: StatusMessage::header(self.flags),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            consumption_term_id: self.term_id.into(),
            consumption_term_offset: self.term_offset.into(),
            receiver_window: self.window.into(),
            receiver_id: self.receiver_id.into(),
        };
        message.as_bytes().to_vec()
    }
}

/// Of a receiver of the honest stream that has consumed nothing.
pub(super) fn says(scene: &Scene) -> Says {
    let key = scene.key();
    Says {
        flags: 0,
        session_id: key.session_id,
        stream_id: STREAM,
        term_id: key.initial_term_id,
        term_offset: 0,
        window: 32 * 1024,
        receiver_id: 7,
    }
}

seeded! {
    /// About sessions that nobody sends, whatever they ask for: not a byte in answer, and the stream is as fast as ever.
    of_unknown_sessions, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sends_from(), says(&scene));
        let took = scene.deliver(100, |stranger| {
            let flags = [0, StatusMessage::SEND_SETUP, StatusMessage::EOS][stranger.random.usize(0..3)];
            let session_id = of.session_id.wrapping_add(stranger.random.i32(1..));
            let says = Says { flags, session_id, receiver_id: stranger.random.i64(..), ..of };
            stranger.say(to, &says.bytes());
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// Windows that cannot be and positions that cannot be true are counted, and change nothing.
    that_cannot_be_true, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sends_from(), says(&scene));
        let took = scene.deliver(100, |stranger| {
            let random = &mut stranger.random;
            let impossible = match random.u32(0..3) {
                0 => Says { window: [-1, i32::MIN, (TERM / 2) as i32 + 32, i32::MAX][random.usize(0..4)], ..of },
                1 => Says { term_id: of.term_id.wrapping_sub(random.i32(2..i32::MAX)), ..of },
                _ => Says { term_id: of.term_id.wrapping_add(random.i32(1_000..)), ..of },
            };
            stranger.say(to, &impossible.bytes());
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        assert!(scene.system(0, SystemCounter::InvalidPackets) > 100);
        assert!(scene.system(0, SystemCounter::StatusMessagesRejected) > 100);
        scene.end(&[], 0);
    }
}

seeded! {
    /// A receiver of one stream asks for its SETUP without end: it gets ten in a second.
    that_ask_for_setups, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, of) = (scene.sends_from(), says(&scene));
        let asks = Says { flags: StatusMessage::SEND_SETUP, ..of }.bytes();
        let took = scene.deliver(100, |stranger| stranger.say(to, &asks));
        expect_progress(took, expected);
        let receiver = scene.world.network_id(scene.hosts[1]);
        let sender = scene.world.network_id(scene.hosts[0]);
        let before = scene.world.network().link_counts(sender, receiver);
        scene.attack_for(Duration::from_secs(2), 100, |stranger| stranger.say(to, &asks));
        let after = scene.world.network().link_counts(sender, receiver);
        // Twenty SETUPs and twenty heartbeats, and one of each more at the edges.
        let datagrams = after.datagrams - before.datagrams;
        assert!((30..=42).contains(&datagrams), "{before:?} {after:?}");
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// Whoever can speak in the name of the receiver can make the sender run away from it: what the subscriber gets is
    /// what was sent, from where it gets it, and when it is over the stream is received again.
    in_the_name_of_the_receiver, 12, |seed| {
        let mut scene = Scene::new(seed);
        let to = scene.sends_from();
        scene.world.publisher_mut(scene.publisher).more(4_000);
        for _ in 0..50 {
            let (term_id, term_offset) = scene.term();
            let of = Says { term_id, term_offset, ..says(&scene) };
            scene.attack_for(Duration::from_millis(20), 20, |stranger| {
                stranger.say_as(listens(), to, &of.bytes());
            });
        }
        scene.world.run_for(Duration::from_secs(30));
        let fresh = |scene: &Scene| scene.world.subscriber(scene.subscriber).images().next().is_some();
        assert!(fresh(&scene), "the stream is received again");
        scene.end(&[], 0);
    }
}
