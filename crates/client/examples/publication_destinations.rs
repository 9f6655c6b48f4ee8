// SPDX-License-Identifier: Apache-2.0
//! Multi-destination publication (MDC): one publication to receivers that are added at run time.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::time::{Duration, Instant};

use taran::idle::Yield;
use taran::{ChannelUriBuilder, Client, ClientBuilder, ControlMode, Subscription};

use self::limit::Limit;

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

/// Adds a receiver with a port that the system assigns. Returns it with its channel.
fn receiver(client: &Client) -> anyhow::Result<(Subscription, String)> {
    let limit = Limit::new();
    let subscription = client.add_subscription("aeron:udp?endpoint=127.0.0.1:0", 1001)?;
    loop {
        if let Some(channel) = subscription.try_resolve_channel_endpoint_port() {
            return Ok((subscription, channel));
        }
        limit.wait_for("the port of the subscription")?;
    }
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let ((mut first, to_first), (mut second, to_second)) = (receiver(&client)?, receiver(&client)?);

    let channel = ChannelUriBuilder::udp()
        .control("127.0.0.1:0")
        .control_mode(ControlMode::Manual)
        .build()?;
    let publication = client.add_publication(&channel, 1001)?;

    // Destinations are added with or without waiting. The correlation id of the command is the id of the destination.
    publication.add_destination(&to_first)?;
    let pending = publication.async_add_destination(&to_second)?;
    let second_id = pending.registration_id();
    pending.wait()?;

    let limit = Limit::new();
    while first.has_no_images() || second.has_no_images() {
        limit.wait_for("the images")?;
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    publication.offer_until(b"to both", deadline, &mut Yield)?;
    for subscription in [&mut first, &mut second] {
        while subscription.poll(|message, _| assert_eq!(message, b"to both"), 10)? == 0 {
            limit.wait_for("the message")?;
        }
    }

    // A destination is removed by its channel or by its id.
    publication.remove_destination(&to_first)?;
    publication.remove_destination_by_id(second_id)?;
    println!("sent to two destinations");
    Ok(())
}
