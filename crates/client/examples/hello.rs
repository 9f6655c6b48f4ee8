//! The first program of the README: sends and receives a message over UDP.
//!
//! Needs a running driver: `cargo run --release -- driver`.

use taran::Client;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let channel = "aeron:udp?endpoint=localhost:40123";
    let client = Client::builder().connect()?;
    let mut subscription = client.add_subscription(channel, 1001)?;
    let publication = client.add_publication(channel, 1001)?;

    // Retryable errors: no receiver yet, back-pressure, term rotation.
    while let Err(error) = publication.offer(b"hello, world") {
        if !error.is_retryable() {
            return Err(error.into());
        }
        std::thread::yield_now();
    }

    let mut received = false;
    while !received {
        subscription.poll(
            |message, header| {
                println!(
                    "{} (stream {}, session {})",
                    String::from_utf8_lossy(message),
                    header.stream_id(),
                    header.session_id()
                );
                received = true;
            },
            10,
        )?;
    }
    Ok(())
}
