//! Something for the tools to look at: a client with a stream that messages have gone through.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, Context, Publication, Subscription};

use crate::own_address::own_address;

/// Where streams are received. Below the ports that the system gives to sockets that name none.
pub(crate) const PORT: u16 = 9_457;

const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(1);

/// A stream from a client to itself.
pub(crate) struct Traffic {
    pub(crate) client: Client,
    pub(crate) channel: String,
    pub(crate) stream_id: i32,
    pub(crate) subscription: Subscription,
    pub(crate) publication: Publication,
}

impl Traffic {
    /// Sends `messages` messages over UDP through the driver in `directory`, and reads them.
    pub(crate) fn over_udp(directory: &Path, stream_id: i32, messages: usize) -> Traffic {
        // A port that no other test of this machine has, without a wildcard: both ends name it.
        let channel = format!(
            "aeron:udp?endpoint={}:{PORT}|term-length=64k",
            own_address()
        );
        Traffic::new(directory, &channel, stream_id, messages)
    }

    /// The same over UDP, with a stream that begins at the beginning of this term.
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

    /// The same over shared memory.
    pub(crate) fn over_ipc(directory: &Path, stream_id: i32, messages: usize) -> Traffic {
        Traffic::new(directory, "aeron:ipc?term-length=64k", stream_id, messages)
    }

    fn new(directory: &Path, channel: &str, stream_id: i32, messages: usize) -> Traffic {
        let client = Context::new()
            .aeron_dir(directory)
            .driver_timeout(PATIENCE)
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

    /// Sends a message that nobody reads yet.
    pub(crate) fn offer(&mut self, message: &[u8]) {
        await_true("room", || self.publication.offer(message).is_ok());
    }
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn await_true(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        thread::sleep(STEP);
    }
}
