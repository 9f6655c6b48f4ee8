// SPDX-License-Identifier: Apache-2.0
//! Data forged in the name of the honest stream.
//!
//! Frames are not signed: a sender that knows session, stream and position can write into what was not received yet,
//! and can end the stream. What must hold is the rest: nothing outside the window is accepted, gaps ahead of the stream
//! do not block it, and a forged end is visible to the subscriber.

use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, IntoBytes};
use taran_sim::{PublisherSpec, seeded};

use super::super::common::{STREAM, channel};
use super::{Scene, TERM, endpoint, expect_progress, undisturbed};

fn heartbeat(flags: u8, session_id: i32, term_id: i32, offset: i32) -> Vec<u8> {
    let header = DataHeader::heartbeat(flags, session_id, STREAM, term_id, offset);
    header.as_bytes().to_vec()
}

/// Builds a frame with random content.
fn frame(session_id: i32, term_id: i32, offset: i32, length: i32) -> Vec<u8> {
    let mut bytes = heartbeat(DataHeader::UNFRAGMENTED, session_id, term_id, offset);
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    bytes.resize((length as usize).next_multiple_of(32), 0xAA);
    bytes
}

seeded! {
    /// Far before and far behind the window, in past and distant future terms: nothing is accepted, and the stream is
    /// intact.
    outside_of_the_window, 4, |seed| {
        let expected = undisturbed(Scene::new(seed));
        let mut scene = Scene::new(seed);
        let key = scene.key();
        let took = scene.deliver(50, |attacker| {
            let offset = attacker.random.i32(0..(TERM / 32) as i32 - 64) * 32;
            let random = &mut attacker.random;
            let term_id = match random.u32(0..2) {
                0 => key.initial_term_id.wrapping_sub(random.i32(1..i32::MAX)),
                _ => key.initial_term_id.wrapping_add(random.i32(10_000..)),
            };
            let length = random.i32(33..1_408);
            attacker.send(endpoint(), &frame(key.session_id, term_id, offset, length));
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
        scene.attack_for(Duration::from_secs(1), 20, |attacker| {
            let (ahead, far) = (attacker.random.i32(1..512) * 32, attacker.random.bool());
            let term_id = if far { term_id.wrapping_add(3) } else { term_id };
            attacker.send(endpoint(), &heartbeat(DataHeader::UNFRAGMENTED, key.session_id, term_id, end + ahead));
        });
        assert!(scene.system(1, SystemCounter::NaksSent) > 0, "the attack had no effect");
        // The honest sender gets NAKs for data that it has not sent, and retransmits nothing.
        assert_eq!(scene.system(0, SystemCounter::RetransmitsSent), 0);
        scene.expect_amplification(1, 1.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// A forged end of stream or revocation: the subscriber sees its image end, other streams are not affected, and the
    /// stream is received again.
    forged_ends, 8, |seed| {
        let mut scene = Scene::new(seed);
        let other = {
            let channel = channel(1);
            let subscriber = scene.world.subscribe(scene.clients[1], taran_sim::SubscriberSpec::new(&channel, STREAM + 1));
            let publisher = scene.world.publish(scene.clients[0], PublisherSpec::new(&channel, STREAM + 1));
            (subscriber, publisher)
        };
        scene.deliver(0, |_| {});
        let key = scene.key();
        let (term_id, offset) = scene.term();
        let flags = DataHeader::UNFRAGMENTED | DataHeader::EOS;
        let flags = if seed % 2 == 0 { flags } else { flags | DataHeader::REVOKED };
        scene.attacker.send(endpoint(), &heartbeat(flags, key.session_id, term_id, offset));
        let (subscriber, publisher) = (scene.subscriber, scene.publisher);
        scene.world.run_until("the image ends", Duration::from_secs(30), |world| {
            !world.subscriber(subscriber).ended().is_empty()
        });
        scene.world.publisher_mut(other.1).publish_more(300);
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
