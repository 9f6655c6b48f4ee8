//! Data in the name of the honest stream.
//!
//! Frames are not signed: whoever knows session, stream and position of a stream can write into what was not received
//! yet, and can end it. What is held here is the rest: nothing outside of the window is taken, nobody is kept waiting
//! for what lies ahead of it, and an end is an end that the subscriber can see.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, IntoBytes};
use taran_sim::{Publishing, seeded};

use super::super::common::{STREAM, channel};
use super::{Scene, TERM, expect_progress, listens, undisturbed};

fn heartbeat(flags: u8, session_id: i32, term_id: i32, offset: i32) -> Vec<u8> {
    let header = DataHeader::heartbeat(flags, session_id, STREAM, term_id, offset);
    header.as_bytes().to_vec()
}

/// A frame full of nonsense.
fn frame(session_id: i32, term_id: i32, offset: i32, length: i32) -> Vec<u8> {
    let mut bytes = heartbeat(DataHeader::UNFRAGMENTED, session_id, term_id, offset);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes.resize((length as usize).next_multiple_of(32), 0xAA);
    bytes
}

seeded! {
    /// Far before and far behind the window, in terms that were and terms that will not be for long: nothing of it is
    /// taken, and the stream is intact.
    outside_of_the_window, 4, |seed| {
        let expected = undisturbed(Scene::new(seed));
        let mut scene = Scene::new(seed);
        let key = scene.key();
        let took = scene.deliver(50, |stranger| {
            let offset = stranger.random.i32(0..(TERM / 32) as i32 - 64) * 32;
            let random = &mut stranger.random;
            let term_id = match random.u32(0..2) {
                0 => key.initial_term_id.wrapping_sub(random.i32(1..i32::MAX)),
                _ => key.initial_term_id.wrapping_add(random.i32(10_000..)),
            };
            let length = random.i32(33..1_408);
            stranger.say(listens(), &frame(key.session_id, term_id, offset, length));
        });
        expect_progress(took, expected);
        scene.expect_amplification(1, 0.0);
        assert!(scene.system(1, SystemCounter::FlowControlOverRuns) > 100);
        scene.end(&[], 0);
    }
}

seeded! {
    /// Heartbeats far ahead are over-runs; those within the window open a gap that closes when the stream gets there.
    heartbeats_ahead, 4, |seed| {
        let mut scene = Scene::new(seed);
        let key = scene.key();
        let (term_id, end) = scene.term();
        scene.attack_for(Duration::from_secs(1), 20, |stranger| {
            let (ahead, far) = (stranger.random.i32(1..512) * 32, stranger.random.bool());
            let term_id = if far { term_id.wrapping_add(3) } else { term_id };
            stranger.say(listens(), &heartbeat(DataHeader::UNFRAGMENTED, key.session_id, term_id, end + ahead));
        });
        assert!(scene.system(1, SystemCounter::NaksSent) > 0, "the attack was none");
        // The honest sender is asked for what it has not sent. It never was: nothing is sent again.
        assert_eq!(scene.system(0, SystemCounter::RetransmitsSent), 0);
        scene.expect_amplification(1, 1.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// An end that somebody else says, or a revocation: the subscriber sees its image end, other streams do not notice,
    /// and the stream is received again.
    ends_that_are_none, 8, |seed| {
        let mut scene = Scene::new(seed);
        let other = {
            let channel = channel(1);
            let subscriber = scene.world.subscribe(scene.clients[1], taran_sim::Subscribing::new(&channel, STREAM + 1));
            let publisher = scene.world.publish(scene.clients[0], Publishing::new(&channel, STREAM + 1));
            (subscriber, publisher)
        };
        scene.deliver(0, |_| {});
        let key = scene.key();
        let (term_id, offset) = scene.term();
        let flags = DataHeader::UNFRAGMENTED | DataHeader::EOS;
        let flags = if seed % 2 == 0 { flags } else { flags | DataHeader::REVOKED };
        scene.stranger.say(listens(), &heartbeat(flags, key.session_id, term_id, offset));
        let (subscriber, publisher) = (scene.subscriber, scene.publisher);
        scene.world.run_until("the image ends", Duration::from_secs(30), |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        scene.world.publisher_mut(other.1).more(300);
        scene.world.run_until("the other stream is whole", Duration::from_secs(30), |world| {
            world.has_all(other.0, other.1)
        });
        scene.world.run_until("the stream is received again", Duration::from_secs(60), |world| {
            let connected = world.publisher(publisher).is_connected();
            connected && world.subscriber(subscriber).images().next().is_some()
        });
        scene.world.publisher_mut(other.1).close();
        scene.world.subscriber_mut(other.0).close();
        scene.end(&[], 0);
    }
}
