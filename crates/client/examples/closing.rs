// SPDX-License-Identifier: Apache-2.0
//! Ways to close: close, revoke, reject, and loss of the driver.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::sync::mpsc;
use std::time::Duration;

use taran::{Client, ClientBuilder, ImageHandlers};

use self::limit::Limit;

/// Time limit for what another process reports.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let (error_sender, errors) = mpsc::channel();
    let client = builder
        // Asynchronous errors: a lost driver, a failed channel, a panic in a handler.
        .on_error(|error| eprintln!("{error}"))
        // Errors that receivers report for a publication of this client.
        .on_publication_error(move |error| {
            let _ = error_sender.send(error.clone());
        })
        // The last callback.
        .on_close(|reason| println!("{reason}"))
        // Other threads have this time to commit their claims before the streams end.
        .close_linger(Duration::from_millis(1))
        .connect()?;
    let limit = Limit::new();
    client.add_close_handler(|_| println!("close handler called"))?;

    let (ended_sender, ended) = mpsc::channel();
    let handlers = ImageHandlers::new().on_unavailable(move |image| {
        let _ = ended_sender.send(image.is_publication_revoked());
    });
    let subscription = client.add_subscription_with("aeron:ipc", 1001, handlers)?;

    // The subscriber rejects an image; the publisher receives the reason.
    let rejected = client.add_publication("aeron:ipc", 1001)?;
    while subscription.has_no_images() {
        limit.wait_for("the image")?;
    }
    subscription.image_views()[0].reject("not wanted")?;
    let error = errors.recv_timeout(PATIENCE)?;
    println!("{:?}: {}", error.code, error.text);
    assert!(!ended.recv_timeout(PATIENCE)?, "ended, but not revoked");
    drop(rejected);

    // The publisher revokes the stream: what was not consumed by then is lost.
    let revoked = client.add_exclusive_publication("aeron:ipc", 1001)?;
    while subscription.image(revoked.session_id()).is_none() {
        limit.wait_for("the image of the second stream")?;
    }
    revoked.revoke();
    assert!(ended.recv_timeout(PATIENCE)?);

    // Closing and dropping are equivalent. No handler runs after either has returned.
    subscription.close();
    client.close();
    Ok(())
}
