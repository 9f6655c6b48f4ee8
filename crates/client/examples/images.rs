// SPDX-License-Identifier: Apache-2.0
//! Images: polling the streams of a subscription separately.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use taran::{Action, Client, ClientBuilder, ImageHandlers};

use self::limit::Limit;

/// Time limit for what another process reports.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let limit = Limit::new();

    // Handlers run on the client conductor; they receive a view, which may be kept.
    let (image_sender, images) = mpsc::channel();
    let handlers = ImageHandlers::new()
        .on_available(move |image| {
            println!("{} from {}", image.session_id(), image.source_identity());
            let _ = image_sender.send(image.clone());
        })
        .on_unavailable(|image| {
            let state = if image.is_end_of_stream() {
                "complete"
            } else {
                "incomplete"
            };
            println!(
                "{} ended at {}, {state}",
                image.session_id(),
                image.position()
            );
        });
    let mut subscription = client.add_subscription_with("aeron:ipc", 1001, handlers)?;
    let mut publications = [
        client.add_exclusive_publication("aeron:ipc", 1001)?,
        client.add_exclusive_publication("aeron:ipc", 1001)?,
    ];
    let (first, second) = (
        images.recv_timeout(PATIENCE)?,
        images.recv_timeout(PATIENCE)?,
    );
    for publication in &mut publications {
        for number in 0..5_u8 {
            publication.offer(&[number])?;
        }
    }

    // A single image is found by its session id or its correlation id.
    if let Some(image) = subscription.image_mut(first.session_id()) {
        // A peek consumes nothing.
        let peek = |message: &[u8], _: &taran::Header<'_>| {
            println!("ahead: {}", message[0]);
            Action::Continue
        };
        let end = image.controlled_peek(image.position(), peek, i64::MAX)?;
        // The position can be moved forward to the end of the term.
        image.set_position(end - 64)?;
        assert_eq!(image.poll(|message, _| assert_eq!(message, [4]), 10), 1);
    }

    // An image may be taken out and polled on another thread; when it is dropped it returns to its subscription.
    let id = second.correlation_id();
    let mut taken = subscription
        .take_image_by_correlation_id(id)
        .context("the image is gone")?;
    let counted = std::thread::spawn(move || taken.poll(|_, _| (), 10));
    let counted = counted.join().map_err(|_| anyhow!("the thread panicked"))?;
    println!("{counted} messages on another thread");

    // Rejects an image; its publisher receives the reason, see the example `closing`.
    second.reject("this was enough")?;
    while !second.is_closed() {
        limit.wait_for("the end of the image")?;
    }
    Ok(())
}
