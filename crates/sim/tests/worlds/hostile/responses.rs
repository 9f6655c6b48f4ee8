//! Response setups of servers that are none.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use taran_protocol::frame::{IntoBytes, ResponseSetup};
use taran_sim::{HostSpec, Publishing, Subscribing, seeded};

use super::super::common::{LONG, STREAM, channel};
use super::{Scene, Stranger, expect_progress, undisturbed};

const REQUESTS: i32 = 10;
const ANSWERS: i32 = 20;

/// Where the second host answers.
const ANSWER_CHANNEL: &str = "aeron:udp?control-mode=response|control=10.0.0.2:40124";

fn announcement(session_id: i32, stream_id: i32, response_session_id: i32) -> Vec<u8> {
    let setup = ResponseSetup {
        header: ResponseSetup::header(),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        response_session_id: response_session_id.into(),
    };
    setup.as_bytes().to_vec()
}

seeded! {
    /// To a publication that asked for no answers: nothing happens.
    nobody_asked_for, 4, |seed| {
        let expected = undisturbed(Scene::open(seed));
        let mut scene = Scene::open(seed);
        let (to, key) = (scene.sends_from(), scene.key());
        let took = scene.deliver(50, |stranger| {
            let response = stranger.random.i32(..);
            stranger.say(to, &announcement(key.session_id, STREAM, response));
        });
        expect_progress(took, expected);
        scene.expect_amplification(0, 0.0);
        scene.end(&[], 0);
    }
}

seeded! {
    /// To one that waits for answers: its driver asks after a hundred sessions in a second at most, and when the server
    /// answers, under whatever session, the answers arrive.
    instead_of_the_server, 4, |seed| {
        let spec = HostSpec::new().option("aeron.driver.connect", "false");
        let expected = undisturbed(Scene::with(seed, &spec, &channel(1), &channel(1)));
        let mut scene = Scene::with(seed, &spec, &channel(1), &channel(1));
        let world = &mut scene.world;
        let heard = world.subscribe(scene.clients[1], Subscribing::new(channel(1), REQUESTS));
        let answers = world.subscribe(scene.clients[0], Subscribing::new(ANSWER_CHANNEL, ANSWERS));
        world.run_until("the subscription is open", LONG, |world| world.subscriber(answers).is_open());
        let id = world.subscriber(answers).registration_id().unwrap();
        let asks = format!("{}|response-correlation-id={id}", channel(1));
        let requests = world.publish(scene.clients[0], Publishing::new(asks, REQUESTS).messages(10));
        world.run_until("the requests arrive", LONG, |world| world.has_all(heard, requests));
        let image = world.subscriber(heard).image_ids().next().unwrap();
        let key = world.publisher(requests).key().unwrap();
        let local = world.publisher(requests).shared().unwrap().local_socket_addresses()[0];
        let to = SocketAddr::new(IpAddr::from([10, 0, 0, 1]), local.port());

        let ids = [world.network_id(scene.hosts[0]), world.network_id(scene.hosts[1])];
        let carried = |scene: &Scene| scene.world.network().link_counts(ids[0], ids[1]).datagrams;
        let before = carried(&scene);
        let mut session_id = 0;
        let mut announce = |stranger: &mut Stranger| {
            // Each twice: the second time the subscription waits for that session.
            session_id += 1;
            stranger.say(to, &announcement(key.session_id, REQUESTS, session_id / 2));
        };
        scene.attack_for(Duration::from_secs(2), 50, &mut announce);
        let sent = carried(&scene) - before;
        // Besides heartbeats of both streams, and what the subscription asks for once a second.
        assert!(sent <= 64 + 2 * 100 + 60, "{sent} datagrams to the server");
        scene.expect_amplification(0, 0.0);
        let took = scene.deliver(50, &mut announce);
        expect_progress(took, expected);

        let world = &mut scene.world;
        let channel = format!("{ANSWER_CHANNEL}|response-correlation-id={image}");
        let answering = world.publish(scene.clients[1], Publishing::new(channel, ANSWERS).messages(50));
        world.run_until("the answers arrive", LONG, |world| world.has_all(answers, answering));
        world.publisher_mut(answering).close();
        world.publisher_mut(requests).close();
        world.subscriber_mut(answers).close();
        world.subscriber_mut(heard).close();
        scene.end(&[], 0);
    }
}
