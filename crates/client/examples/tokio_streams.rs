// SPDX-License-Identifier: Apache-2.0
//! Streams and sinks of messages in asynchronous tasks, here on tokio.
//!
//! Needs the feature `async` and a running driver: `cargo run --release -- driver`.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use taran::{AsyncPublication, AsyncSubscription, Client, ClientBuilder, Publication, Reactor};
use tokio::time::timeout;

const MESSAGES: usize = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    run(Client::builder()).await
}

pub(crate) async fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    // Connecting can wait for a driver, so it runs on a thread for blocking work.
    let client = tokio::task::spawn_blocking(|| builder.connect()).await??;
    // Wakes the tasks that wait for messages, or for room to send them.
    let reactor = Reactor::start()?;

    // Commands to the driver are futures.
    let requests = client.async_add_subscription("aeron:ipc", 1001)?.await?;
    let responses = client.async_add_publication("aeron:ipc", 1002)?.await?;
    let server = tokio::spawn(echo(
        requests.into_async(&reactor),
        responses.into_async(&reactor),
    ));

    let mut responses = client
        .async_add_subscription("aeron:ipc", 1002)?
        .await?
        .into_async(&reactor);
    let mut requests = client
        .async_add_exclusive_publication("aeron:ipc", 1001)?
        .await?
        .into_async(&reactor);

    // Offers wait while there is no receiver, or one that has to catch up. No message is copied or allocated.
    let send = async {
        for number in 0..MESSAGES as u64 {
            requests.offer(&number.to_le_bytes()).await?;
        }
        Ok::<_, taran::OfferError>(())
    };
    let receive = async {
        let mut received = 0;
        while received < MESSAGES {
            received += responses
                .poll(|message, _| assert_eq!(message.len(), 8), 10)
                .await?;
        }
        Ok::<_, taran::PollError>(received)
    };
    let both = async { tokio::join!(send, receive) };
    let (sent, received) = timeout(Duration::from_secs(60), both).await?;
    sent?;
    println!("{} messages there and back", received?);

    // The stream of a subscription ends when its client is closed.
    client.close();
    println!("{} messages echoed", server.await??);
    Ok(())
}

/// Sends each message back. A subscription is a `Stream` of owned messages, a publication a `Sink` for bytes.
async fn echo(
    mut requests: AsyncSubscription,
    mut responses: AsyncPublication<Publication>,
) -> Result<usize, taran::Error> {
    let mut echoed = 0;
    while let Some(request) = requests.next().await {
        responses.send(request?).await?;
        echoed += 1;
    }
    Ok(echoed)
}
