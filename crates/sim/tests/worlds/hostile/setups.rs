// SPDX-License-Identifier: Apache-2.0
//! SETUPs of streams that do not exist.

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, IntoBytes, Setup};
use taran_sim::{HostSpec, seeded};

use super::super::common::{STREAM, channel};
use super::{AFTERMATH, Scene, endpoint, expect_progress, undisturbed};

/// A stream with a subscription that receives nothing honest.
const OTHER: i32 = 77;

#[derive(Clone, Copy, Debug)]
struct SetupFields {
    session_id: i32,
    stream_id: i32,
    term_length: i32,
}

impl SetupFields {
    fn bytes(self) -> Vec<u8> {
        let setup = Setup {
            header: Setup::header(0),
            term_offset: 0.into(),
            session_id: self.session_id.into(),
            stream_id: self.stream_id.into(),
            initial_term_id: 5.into(),
            active_term_id: 5.into(),
            term_length: self.term_length.into(),
            mtu: 1_408.into(),
            ttl: 0.into(),
        };
        setup.as_bytes().to_vec()
    }
}

fn heartbeat(session_id: i32, offset: i32) -> Vec<u8> {
    let flags = DataHeader::UNFRAGMENTED;
    DataHeader::heartbeat(flags, session_id, OTHER, 5, offset)
        .as_bytes()
        .to_vec()
}

/// Creates a stream with a subscription to the other stream on the attacked endpoint.
fn subscribed(seed: u64, spec: &HostSpec) -> (Scene, taran::Subscription) {
    let mut scene = Scene::with(seed, spec, &channel(1), &channel(1));
    let client = scene.world.client(scene.clients[1]);
    let mut adding = client.async_add_subscription(channel(1), OTHER).unwrap();
    let subscription = loop {
        if let Some(added) = adding.poll() {
            break added.unwrap();
        }
        scene.world.step();
    };
    scene.counters = scene.counter_count();
    (scene, subscription)
}

/// Removes that subscription. Its channel and the channel's counter are shared with the honest subscription.
fn unsubscribed(mut scene: Scene, subscription: taran::Subscription) -> Scene {
    drop(subscription);
    scene.world.run_for(Duration::from_secs(5));
    scene
}

seeded! {
    /// SETUPs of streams without subscriptions cause no reply and take no memory.
    of_streams_without_subscription, 4, |seed| {
        let expected = undisturbed(Scene::new(seed));
        let mut scene = Scene::new(seed);
        let took = scene.deliver(100, |attacker| {
            let stream_id = STREAM + attacker.random.i32(1..1_000_000);
            let session_id = attacker.random.i32(..);
            attacker.send(endpoint(), &SetupFields { session_id, stream_id, term_length: 1 << 30 }.bytes());
        });
        expect_progress(took, expected);
        scene.expect_amplification(1, 0.0);
        assert_eq!(scene.counter_count(), scene.counters);
        scene.end(&[], 0);
    }
}

seeded! {
    /// SETUPs of a subscribed stream: images are created up to the session limit, and every SETUP causes at most a few status
    /// messages. Clients get the resources they need meanwhile, and all images time out.
    of_a_subscribed_stream, 2, |seed| {
        const LIMIT: usize = 200;
        let spec = || HostSpec::new().option("aeron.driver.stream.session.limit", LIMIT.to_string());
        let expected = undisturbed(subscribed(seed, &spec()).0);
        let (mut scene, subscription) = subscribed(seed, &spec());
        let took = scene.deliver(20, |attacker| {
            let session_id = attacker.random.i32(..);
            attacker.send(endpoint(), &SetupFields { session_id, stream_id: OTHER, term_length: 64 * 1024 }.bytes());
        });
        expect_progress(took, expected);
        scene.attack_for(Duration::from_secs(1), 2, |attacker| {
            let session_id = attacker.random.i32(..);
            attacker.send(endpoint(), &SetupFields { session_id, stream_id: OTHER, term_length: 64 * 1024 }.bytes());
        });
        // Three counters of the image and one of the subscription.
        let more = scene.counter_count() - scene.counters;
        assert!(more > 4 * LIMIT / 2, "{more} counters: the attack had no effect");
        assert!(more <= 4 * LIMIT, "{more} counters for {LIMIT} images");
        let client = scene.world.client(scene.clients[1]);
        let adding = client.async_add_publication("aeron:ipc", 1).unwrap();
        scene.world.run_for(Duration::from_secs(1));
        drop(added(adding));
        scene.world.run_for(Duration::from_secs(11));
        scene.expect_amplification(1, 3.0);
        let sent = scene.system(1, SystemCounter::StatusMessagesSent);
        assert!(sent > 100, "{sent} status messages: the attack had no effect");
        scene.world.run_for(AFTERMATH);
        unsubscribed(scene, subscription).end(&["session limit reached"], 102);
    }
}

fn added(mut adding: taran::Pending<taran::Publication>) -> taran::Publication {
    adding
        .poll()
        .expect("the command was answered")
        .expect("there is room for the counters of clients")
}

seeded! {
    /// One SETUP and one heartbeat far ahead of it, forged with a victim's address: what the victim gets for it is
    /// bounded.
    with_a_gap_and_forged_source, 4, |seed| {
        let (mut scene, subscription) = subscribed(seed, &HostSpec::new());
        let victim = SocketAddr::from(([10, 66, 0, 1], 9));
        let setup = SetupFields { session_id: 9, stream_id: OTHER, term_length: 64 * 1024 };
        scene.attacker.send_as(victim, endpoint(), &setup.bytes());
        scene.world.run_for(Duration::from_millis(20));
        scene.attacker.send_as(victim, endpoint(), &heartbeat(9, 32 * 1024));
        scene.world.run_for(Duration::from_secs(30));
        assert!(scene.system(1, SystemCounter::NaksSent) > 0, "the attack had no effect");
        let answers = scene.answers(1);
        assert!(answers.datagrams <= 110 + 54, "{answers:?} for two datagrams");
        // The image is gone, and with it its counters.
        assert_eq!(scene.counter_count(), scene.counters);
        unsubscribed(scene, subscription).end(&[], 0);
    }
}

seeded! {
    /// Data of invented sessions is answered with one SETUP request each, at most a thousand per second.
    data_without_a_setup, 4, |seed| {
        let expected = undisturbed(subscribed(seed, &HostSpec::new()).0);
        let (mut scene, subscription) = subscribed(seed, &HostSpec::new());
        scene.attack_for(Duration::from_secs(3), 50, |attacker| {
            let session_id = attacker.random.i32(..);
            attacker.send(endpoint(), &heartbeat(session_id, 0));
        });
        let answers = scene.answers(1);
        assert!((1_024..=4 * 1_024).contains(&answers.datagrams), "{answers:?}");
        scene.expect_amplification(1, 36.0 / 32.0);
        let took = scene.deliver(50, |attacker| {
            let session_id = attacker.random.i32(..);
            attacker.send(endpoint(), &heartbeat(session_id, 0));
        });
        expect_progress(took, expected);
        unsubscribed(scene, subscription).end(&[], 0);
    }
}
