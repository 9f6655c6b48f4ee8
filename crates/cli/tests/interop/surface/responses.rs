// SPDX-License-Identifier: Apache-2.0
//! Response channels and spies in the client API.

use taran::{ChannelUriBuilder, ImageHandlers};

use super::{receive, send};
use crate::drivers::Driver;
use crate::exchange::{await_true, connect, udp};

const STREAM: i32 = 2_005;

pub(super) fn response_channel_delivers_responses(driver: &Driver) {
    let (server, client) = (connect(driver.dir()), connect(driver.dir()));
    let requests = udp("");
    let control = udp("").split_once("endpoint=").unwrap().1.to_owned();
    let response = || {
        ChannelUriBuilder::udp()
            .control(&control)
            .control_mode(taran::ControlMode::Response)
    };

    // The server responds to each client on a publication for the image of its requests.
    let (found, images) = std::sync::mpsc::channel();
    let handlers = ImageHandlers::new().on_available(move |image| {
        let _ = found.send(image.correlation_id());
    });
    let mut served = server
        .add_subscription_with(&requests, STREAM, handlers)
        .unwrap();
    let mut answers = client
        .add_subscription(response().build().unwrap(), STREAM + 1)
        .unwrap();
    let request_channel = taran::ChannelUri::parse(&requests)
        .unwrap()
        .with(
            "response-correlation-id",
            &answers.registration_id().to_string(),
        )
        .unwrap();
    let asking = client
        .add_publication(request_channel.as_str(), STREAM)
        .unwrap();
    await_true("connection", || asking.is_connected());
    send(&asking, b"question");
    assert_eq!(receive(&mut served), b"question");

    let image_id = images.recv().unwrap();
    let answering = response()
        .response_correlation_id(image_id)
        .build()
        .unwrap();
    let answering = server
        .add_publication(answering.as_str(), STREAM + 1)
        .unwrap();
    await_true("connection of the answers", || answering.is_connected());
    send(&answering, b"answer");
    assert_eq!(receive(&mut answers), b"answer");
}

pub(super) fn spy_receives_sent_messages(driver: &Driver) {
    let client = connect(driver.dir());
    let channel = udp("|ssc=true");
    let spy = format!("aeron-spy:{channel}");
    let publication = client.add_publication(&channel, STREAM).unwrap();
    let mut spying = client.add_subscription(&spy, STREAM).unwrap();
    await_true("the spy", || publication.is_connected());
    send(&publication, b"seen");
    assert_eq!(receive(&mut spying), b"seen");
    assert_eq!(spying.local_socket_addresses(), []);
    assert_eq!(spying.channel_status(), taran::ChannelStatus::NoIndicator);
}
