// SPDX-License-Identifier: Apache-2.0
//! Asynchronous commands to the driver, polled and as futures.
//!
//! Needs a running driver: `cargo run --release -- driver`.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::Thread;

use taran::{Client, ClientBuilder, CommandError};

fn main() -> Result<(), taran::Error> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> Result<(), taran::Error> {
    let client = builder.connect()?;

    // Both commands are sent at once; their results are polled.
    let mut publication = client.async_add_publication("aeron:ipc", 1001)?;
    let mut subscription = client.async_add_subscription("aeron:ipc", 1001)?;
    let (mut published, mut subscribed) = (None, None);
    while published.is_none() || subscribed.is_none() {
        if let Some(outcome) = publication.poll() {
            published = Some(outcome?);
        }
        if let Some(outcome) = subscription.poll() {
            subscribed = Some(outcome?);
        }
        std::thread::yield_now();
    }

    // A `Pending` is a future, for any executor.
    let session_id = block_on(async {
        let session_id = client.async_next_available_session_id(1001)?.await?;
        let counter = client
            .async_add_counter(1_101, b"", "asynchronous")?
            .await?;
        counter.set(i64::from(session_id));
        Ok::<_, CommandError>(session_id)
    })?;
    println!("session {session_id} is free");

    // An add can be withdrawn by its registration id, and closes can be waited for.
    let pending = client.async_add_publication("aeron:ipc", 1002)?;
    let removal = client.async_remove_publication(pending.registration_id())?;
    removal.wait()?;
    let closed = published.map(|publication| publication.async_close());
    if let Some(closed) = closed {
        closed?.wait()?;
    }
    drop(subscribed);
    while client.has_active_commands() {
        std::thread::yield_now();
    }
    Ok(())
}

/// A minimal executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut task = TaskContext::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut task) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
