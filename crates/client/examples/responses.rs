// SPDX-License-Identifier: Apache-2.0
//! Response channels: a server responds to each client on a separate stream, through the client's firewall.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use taran::idle::Yield;
use taran::{
    ChannelUriBuilder, Client, ClientBuilder, ControlMode, ImageHandlers, Publication, Subscription,
};

use self::limit::Limit;

const REQUESTS: i32 = 1001;
const RESPONSES: i32 = 1002;

fn main() -> anyhow::Result<()> {
    run(Client::builder(), "127.0.0.1:40456")
}

/// `control` is the control address of the response channel.
pub(crate) fn run(builder: ClientBuilder, control: &str) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let limit = Limit::new();
    let responses = || {
        ChannelUriBuilder::udp()
            .control(control)
            .control_mode(ControlMode::Response)
    };

    // The server identifies each client by the image of its requests.
    let (image_sender, images) = mpsc::channel();
    let handlers = ImageHandlers::new().on_available(move |image| {
        let _ = image_sender.send(image.correlation_id());
    });
    let mut requests =
        client.add_subscription_with("aeron:udp?endpoint=127.0.0.1:0", REQUESTS, handlers)?;
    let endpoint = loop {
        match requests.resolved_endpoint() {
            Some(endpoint) => break endpoint.to_string(),
            None => limit.wait_for("the address of the subscription")?,
        }
    };

    // The client's request channel names the subscription for the responses.
    let mut responses_subscription = client.add_subscription(responses().build()?, RESPONSES)?;
    let request_publication = ChannelUriBuilder::udp()
        .endpoint(&endpoint)
        .response_correlation_id(responses_subscription.registration_id())
        .build()?;
    let request_publication = client.add_publication(&request_publication, REQUESTS)?;
    send(&request_publication, b"what time is it?")?;
    println!("request: {}", receive(&mut requests)?);

    // The server responds to that image.
    let response_publication = responses()
        .response_correlation_id(images.recv_timeout(Duration::from_secs(30))?)
        .build()?;
    let response_publication = client.add_publication(&response_publication, RESPONSES)?;
    send(&response_publication, b"late")?;
    println!("response: {}", receive(&mut responses_subscription)?);
    Ok(())
}

fn send(publication: &Publication, message: &[u8]) -> Result<(), taran::OfferError> {
    let deadline = Instant::now() + Duration::from_secs(10);
    publication.offer_until(message, deadline, &mut Yield)?;
    Ok(())
}

fn receive(subscription: &mut Subscription) -> anyhow::Result<String> {
    let limit = Limit::new();
    let mut text = String::new();
    let mut keep = |message: &[u8], _: &taran::Header<'_>| {
        text = String::from_utf8_lossy(message).into_owned();
    };
    while subscription.poll(&mut keep, 1)? == 0 {
        limit.wait_for("a message")?;
    }
    Ok(text)
}
