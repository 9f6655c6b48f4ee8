// SPDX-License-Identifier: Apache-2.0
//! Reconnecting: publication and subscription are made anew on each driver, and the application sends again what was not
//! received.
//!
//! Needs a running driver: `cargo run --release -- driver`. Kill and restart it while this runs.

use std::mem::discriminant;

use taran::{Client, ConnectionState, ReconnectingClient};

const CHANNEL: &str = "aeron:ipc?term-length=64k";
const STREAM: i32 = 1001;

fn main() -> Result<(), taran::Error> {
    let on_message = |number| {
        if number % 1_000_000 == 0 {
            println!("message {number}");
        }
    };
    let on_state = |state: &ConnectionState| println!("{state}");
    let client = ReconnectingClient::new(Client::builder);
    run(client, 100_000_000, on_message, on_state)
}

/// Sends the message numbers below `messages` and receives each of them once, across restarts of the driver. `on_state`
/// is called with each change of the connection.
pub(crate) fn run(
    mut client: ReconnectingClient,
    messages: u64,
    mut on_message: impl FnMut(u64),
    mut on_state: impl FnMut(&ConnectionState),
) -> Result<(), taran::Error> {
    // They exist while there is a driver.
    let mut publication = client.add_publication(CHANNEL, STREAM);
    let mut subscription = client.add_subscription(CHANNEL, STREAM);

    let mut state = discriminant(client.state());
    let (mut generation, mut next, mut received) = (0, 0, 0);
    let mut failure = None;
    while received < messages {
        let mut work = client.invoke()?;
        if discriminant(client.state()) != state {
            state = discriminant(client.state());
            on_state(client.state());
        }

        if publication.get()?.is_some() && publication.generation() != generation {
            // A new stream. Messages that were not received are lost with the old one.
            generation = publication.generation();
            next = received;
        }
        if let Some(publication) = publication.get()? {
            match publication.offer(&next.to_le_bytes()) {
                Ok(_) => {
                    next += 1;
                    work += 1;
                }
                // A lost driver is noticed in the next duty cycle of the client.
                Err(error) if error.is_retryable() || error.lost().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(subscription) = subscription.get()? {
            let handler = |message: &[u8], _: &taran::Header<'_>| {
                assert_eq!(message, received.to_le_bytes(), "messages arrive in order");
                on_message(received);
                received += 1;
            };
            match subscription.poll(handler, 10) {
                Ok(fragments) => work += fragments,
                Err(error) if error.lost().is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        if work == 0 {
            // A resource that cannot be added yet is tried again each second.
            let current = publication.failure().or_else(|| subscription.failure());
            if current != failure {
                failure = current;
                if let Some(failure) = &failure {
                    println!("{failure}");
                }
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}
