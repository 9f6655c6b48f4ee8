// SPDX-License-Identifier: Apache-2.0
//! Multi-destination subscription (MDS): one subscription to several channels that are added at run time.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::time::{Duration, Instant};

use taran::idle::Yield;
use taran::{ChannelUriBuilder, Client, ClientBuilder, ControlMode};

use self::limit::Limit;

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let limit = Limit::new();
    let channel = ChannelUriBuilder::udp()
        .control_mode(ControlMode::Manual)
        .build()?;
    let mut subscription = client.add_subscription(&channel, 1001)?;

    // The system assigns the port of this destination.
    let open = "aeron:udp?endpoint=127.0.0.1:0";
    subscription.add_destination(open)?;
    let address = loop {
        match subscription.resolved_endpoint() {
            Some(address) => break address,
            None => limit.wait_for("the port of the destination")?,
        }
    };
    let publication = client.add_publication(format!("aeron:udp?endpoint={address}"), 1001)?;
    let deadline = Instant::now() + Duration::from_secs(10);
    publication.offer_until(b"over one of many", deadline, &mut Yield)?;
    while subscription.poll(|message, _| println!("{} bytes", message.len()), 10)? == 0 {
        limit.wait_for("a message over UDP")?;
    }

    // Without waiting. An IPC channel can be a destination too.
    subscription.async_add_destination("aeron:ipc")?.wait()?;
    let local = client.add_publication("aeron:ipc", 1001)?;
    local.offer_until(b"from this machine", deadline, &mut Yield)?;
    while subscription.poll(|message, _| println!("{} bytes", message.len()), 10)? == 0 {
        limit.wait_for("a message from this machine")?;
    }
    subscription.remove_destination("aeron:ipc")?;
    subscription.remove_destination(open)?;
    Ok(())
}
