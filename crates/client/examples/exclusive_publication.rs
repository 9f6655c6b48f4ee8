// SPDX-License-Identifier: Apache-2.0
//! Exclusive publications: a single writer with its own session, and replay of a recorded stream.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use taran::{ChannelUriBuilder, Client, ClientBuilder};

use self::limit::Limit;

const TERM_LENGTH: usize = 64 * 1024;

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let limit = Limit::new();
    let original = ChannelUriBuilder::ipc().term_length(TERM_LENGTH).build()?;
    let mut reader = client.add_subscription(&original, 1001)?;
    let mut publication = client.add_exclusive_publication(&original, 1001)?;
    while !publication.is_connected() || reader.has_no_images() {
        limit.wait_for("the image")?;
    }

    // Each exclusive publication has its own session; offering needs no atomic read-modify-write operation.
    publication.offer(b"one")?;
    publication.offer(b"two")?;
    // Padding, which subscribers skip, for example for alignment.
    publication.append_padding(100)?;
    println!(
        "session {}, term {}, offset {}",
        publication.session_id(),
        publication.term_id(),
        publication.term_offset()
    );

    // The stream as stored in the log: whole frames, headers included.
    let mut recorded = Vec::new();
    reader.block_poll(|block| recorded.extend_from_slice(block.bytes()), 1024)?;

    // The replay has the session and start position of the original, so the recorded frames fit unchanged.
    let copy = ChannelUriBuilder::udp().endpoint("127.0.0.1:0").build()?;
    let mut receiver = client.add_subscription(&copy, 1001)?;
    let endpoint = loop {
        // Available once the system has assigned the port.
        match receiver.resolved_endpoint() {
            Some(endpoint) => break endpoint.to_string(),
            None => limit.wait_for("the port of the receiver")?,
        }
    };
    let copy = ChannelUriBuilder::from_uri(&copy)
        .endpoint(&endpoint)
        .session_id(publication.session_id())
        .initial_position(0, publication.initial_term_id(), TERM_LENGTH)
        .build()?;
    let mut replay = client.add_exclusive_publication(&copy, 1001)?;
    while !replay.is_connected() {
        limit.wait_for("the receiver")?;
    }
    replay.offer_block(&recorded)?;

    let mut messages = 0;
    while messages < 2 {
        messages += receiver.poll(
            |message, header| {
                let text = String::from_utf8_lossy(message);
                println!("replayed {text:?}, which ends at {}", header.position());
            },
            10,
        )?;
        limit.wait_for("the replayed messages")?;
    }
    Ok(())
}
