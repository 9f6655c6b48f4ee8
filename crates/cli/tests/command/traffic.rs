// SPDX-License-Identifier: Apache-2.0
//! A client with a stream that messages have been sent through, as input for the tools.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, Publication, Subscription};

use crate::own_address::own_address;

/// Port of the streams; below the ephemeral port range.
pub(crate) const PORT: u16 = 9_457;

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A stream with its publication and subscription in the same client.
pub(crate) struct Traffic {
    pub(crate) client: Client,
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    pub(crate) subscription: Subscription,
    pub(crate) publication: Publication,
}

impl Traffic {
    /// Sends `messages` messages over UDP through the driver in `directory` and receives them.
    pub(crate) fn over_udp(directory: &Path, stream_id: i32, messages: usize) -> Traffic {
        // The address is unique to this test, so the port can be fixed: publication and subscription both name it.
        let channel = format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k",
            own_address()
        );
        Traffic::new(directory, &channel, stream_id, messages)
    }

    /// The same over UDP, with a stream that starts at the beginning of `term`.
    pub(crate) fn over_udp_from_term(
        directory: &Path,
        stream_id: i32,
        term: i32,
        messages: usize,
    ) -> Traffic {
        let channel = format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k|init-term-id={term}|term-id={term}|term-offset=0",
            own_address()
        );
        Traffic::new(directory, &channel, stream_id, messages)
    }

    /// The same over IPC.
    pub(crate) fn over_ipc(directory: &Path, stream_id: i32, messages: usize) -> Traffic {
        Traffic::new(directory, "aeron:ipc?term-length=64k", stream_id, messages)
    }

    fn new(directory: &Path, channel: &str, stream_id: i32, messages: usize) -> Traffic {
        let client = Client::builder()
            .aeron_dir(directory)
            .driver_timeout(TIMEOUT)
            .connect()
            .expect("the driver takes clients");
        let subscription = client
            .add_subscription(channel, stream_id)
            .expect("a subscription");
        let publication = client
            .add_publication(channel, stream_id)
            .expect("a publication");
        let mut traffic = Traffic {
            client,
            channel: channel.to_owned(),
            stream_id,
            subscription,
            publication,
        };
        await_true("a connection", || traffic.publication.is_connected());
        for number in 0..messages {
            traffic.offer(format!("message {number}").as_bytes());
        }
        let mut received = 0;
        await_true("all messages", || {
            received += traffic.subscription.poll(|_, _| (), 10).expect("a driver");
            received == messages
        });
        traffic
    }

    /// Sends a message that is not received yet.
    pub(crate) fn offer(&mut self, message: &[u8]) {
        await_true("room", || self.publication.offer(message).is_ok());
    }
}

/// Waits until the condition is true.
#[track_caller]
pub(crate) fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        thread::sleep(POLL_INTERVAL);
    }
}
