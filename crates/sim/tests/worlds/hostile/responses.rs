// SPDX-License-Identifier: Apache-2.0
//! Forged response setups.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use taran_protocol::frame::{IntoBytes, ResponseSetup};
use taran_sim::{HostSpec, PublisherSpec, SubscriberSpec, seeded};

use super::super::common::{LONG, STREAM, channel};
use super::{Attacker, Scene, expect_progress, undisturbed};

const REQUESTS: i32 = 10;
const ANSWERS: i32 = 20;

/// Channel on which the second host responds.
const ANSWER_CHANNEL: &str = "aeron:udp?control-mode=response|control=10.0.0.2:40124";

fn response_setup(session_id: i32, stream_id: i32, response_session_id: i32) -> Vec<u8> {
    let setup = ResponseSetup {
        header: ResponseSetup::header(),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        response_session_id: response_session_id.into(),
    };
    setup.as_bytes().to_vec()
}

seeded! {
    /// To a publication that requested no responses: no effect.
    unsolicited_response_setups_have_no_effect, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, key) = (scene.sender_address(), scene.key());
        let took = scene.deliver(50, |attacker| {
            let response = attacker.random.i32(..);
            attacker.send(to, &response_setup(key.session_id, STREAM, response));
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// To one that waits for responses: its driver requests at most a hundred sessions per second, and when the server
    /// responds, with whatever session, the responses arrive.
    forged_server, 4, |seed| {
        let spec = HostSpec::new().option("aeron.driver.connect", "false");
        let expected = undisturbed(Scene::with(seed, &spec, &channel(1), &channel(1)));
        let mut scene = Scene::with(seed, &spec, &channel(1), &channel(1));
        let world = &mut scene.world;
        let received = world.subscribe(scene.clients[1], SubscriberSpec::new(channel(1), REQUESTS));
        let answers = world.subscribe(scene.clients[0], SubscriberSpec::new(ANSWER_CHANNEL, ANSWERS));
        world.run_until("the subscription is open", LONG, |world| world.subscriber(answers).is_open());
        let id = world.subscriber(answers).registration_id().unwrap();
        let request_channel = format!("{}|response-correlation-id={id}", channel(1));
        let requests = world.publish(scene.clients[0], PublisherSpec::new(request_channel, REQUESTS).messages(10));
        world.run_until("the requests arrive", LONG, |world| world.has_all(received, requests));
        let image = world.subscriber(received).image_ids().next().unwrap();
        let key = world.publisher(requests).key().unwrap();
        let local = world.publisher(requests).shared().unwrap().local_socket_addresses()[0];
        let to = SocketAddr::new(IpAddr::from([10, 0, 0, 1]), local.port());

        let ids = [world.network_id(scene.hosts[0]), world.network_id(scene.hosts[1])];
        let carried = |scene: &Scene| scene.world.network().link_counts(ids[0], ids[1]).datagrams;
        let before = carried(&scene);
        let mut session_id = 0;
        let mut announce = |attacker: &mut Attacker| {
            // Each one twice: after the second one the subscription waits for that session.
            session_id += 1;
            attacker.send(to, &response_setup(key.session_id, REQUESTS, session_id / 2));
        };
        scene.attack_for(Duration::from_secs(2), 50, &mut announce);
        let sent = carried(&scene) - before;
        // In addition to heartbeats of both streams and the subscription's own request once per second.
        assert!(sent <= 64 + 2 * 100 + 60, "{sent} datagrams to the server");
        scene.expect_amplification(0, 0.0);
        let took = scene.deliver(50, &mut announce);
        expect_progress(took, expected);

        let world = &mut scene.world;
        let channel = format!("{ANSWER_CHANNEL}|response-correlation-id={image}");
        let answering = world.publish(scene.clients[1], PublisherSpec::new(channel, ANSWERS).messages(50));
        world.run_until("the answers arrive", LONG, |world| world.has_all(answers, answering));
        world.publisher_mut(answering).close();
        world.publisher_mut(requests).close();
        world.subscriber_mut(answers).close();
        world.subscriber_mut(received).close();
        scene.end(&[], 0);
    }
}
