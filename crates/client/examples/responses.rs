//! Requests and responses: a server that answers each client on a stream of its own, through the client's firewall.
//!
//! Needs a running driver: `cargo run --release -- driver`.

use std::error::Error;
use std::sync::mpsc;

use taran::{ChannelUriBuilder, Context, ControlMode, ImageHandlers, Publication, Subscription};

const REQUESTS: i32 = 1001;
const RESPONSES: i32 = 1002;

fn main() -> Result<(), Box<dyn Error>> {
    run(Context::new(), "127.0.0.1:40456")
}

/// `control` is the address at which the server's responses are asked for.
pub(crate) fn run(context: Context, control: &str) -> Result<(), Box<dyn Error>> {
    let client = context.connect()?;
    let responses = || {
        ChannelUriBuilder::udp()
            .control(control)
            .control_mode(ControlMode::Response)
    };

    // The server learns of each client by the image of its requests.
    let (come, images) = mpsc::channel();
    let handlers = ImageHandlers::new().on_available(move |image| {
        let _ = come.send(image.correlation_id());
    });
    let mut requests =
        client.add_subscription_with("aeron:udp?endpoint=127.0.0.1:0", REQUESTS, handlers)?;
    let endpoint = loop {
        match requests.resolved_endpoint() {
            Some(endpoint) => break endpoint.to_string(),
            None => std::thread::yield_now(),
        }
    };

    // The client says with its requests which subscription the responses are for.
    let mut answers = client.add_subscription(responses().build()?, RESPONSES)?;
    let asking = ChannelUriBuilder::udp()
        .endpoint(&endpoint)
        .response_correlation_id(answers.registration_id())
        .build()?;
    let asking = client.add_publication(&asking, REQUESTS)?;
    send(&asking, b"what time is it?")?;
    println!("asked: {}", receive(&mut requests)?);

    // The server answers that image.
    let answering = responses()
        .response_correlation_id(images.recv()?)
        .build()?;
    let answering = client.add_publication(&answering, RESPONSES)?;
    send(&answering, b"late")?;
    println!("answered: {}", receive(&mut answers)?);
    Ok(())
}

fn send(publication: &Publication, message: &[u8]) -> Result<(), taran::OfferError> {
    while let Err(error) = publication.offer(message) {
        if !error.is_retryable() {
            return Err(error);
        }
        std::thread::yield_now();
    }
    Ok(())
}

fn receive(subscription: &mut Subscription) -> Result<String, taran::PollError> {
    let mut text = String::new();
    let mut keep = |message: &[u8], _: &taran::Header<'_>| {
        text = String::from_utf8_lossy(message).into_owned();
    };
    while subscription.poll(&mut keep, 1)? == 0 {
        std::thread::yield_now();
    }
    Ok(text)
}
