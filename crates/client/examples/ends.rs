//! How things end: closed, revoked, rejected, or lost with the driver.
//!
//! Needs a running driver: `cargo run --release -- driver`.

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use taran::{CloseReason, Context, ImageHandlers};

fn main() -> Result<(), Box<dyn Error>> {
    run(Context::new())
}

pub(crate) fn run(context: Context) -> Result<(), Box<dyn Error>> {
    let (complain, complaints) = mpsc::channel();
    let client = context
        // What nobody asked for: a lost driver, a failed channel, a panic in a handler.
        .on_error(|error| eprintln!("{error}"))
        // A receiver complains about a publication of this client.
        .on_publication_error(move |error| {
            let _ = complain.send(error.clone());
        })
        // The last word, whoever ended the client.
        .on_close(|end| match end {
            CloseReason::Closed => println!("closed"),
            CloseReason::Lost(lost) => println!("lost: {lost}"),
        })
        // Other threads may commit what they have claimed for this long before the streams end.
        .close_linger(Duration::from_millis(1))
        .connect()?;
    client.add_close_handler(|_| println!("told as well"))?;

    let (go, gone) = mpsc::channel();
    let handlers = ImageHandlers::new().on_unavailable(move |image| {
        let _ = go.send(image.is_publication_revoked());
    });
    let subscription = client.add_subscription_with("aeron:ipc", 1001, handlers)?;

    // Rejected by the subscriber: the publisher hears why.
    let rejected = client.add_publication("aeron:ipc", 1001)?;
    while subscription.has_no_images() {
        std::thread::yield_now();
    }
    subscription.image_views()[0].reject("not wanted")?;
    let complaint = complaints.recv()?;
    println!("{:?}: {}", complaint.code, complaint.text);
    assert!(!gone.recv()?, "ended, but not revoked");
    drop(rejected);

    // Revoked by the publisher: what was not received by then is lost.
    let revoked = client.add_exclusive_publication("aeron:ipc", 1001)?;
    while subscription.image(revoked.session_id()).is_none() {
        std::thread::yield_now();
    }
    revoked.revoke();
    assert!(gone.recv()?);

    // Closing and dropping are the same. No handler runs once either has returned.
    subscription.close();
    client.close();
    Ok(())
}
