// SPDX-License-Identifier: Apache-2.0
//! Test fixture: a driver with short timeouts, and the streams shared by surviving and killed clients.

use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, ClientBuilder, Publication, Subscription};

use crate::message::{Producer, Received};

/// Time limit for any wait, generous because the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Options with which deaths are detected and resources released quickly.
pub(crate) const OPTIONS: [&str; 6] = [
    "aeron.client.liveness.timeout=3s",
    "aeron.publication.unblock.timeout=4s",
    "aeron.timer.interval=100ms",
    "aeron.image.liveness.timeout=5s",
    "aeron.publication.linger.timeout=100ms",
    "aeron.counters.free.to.reuse.timeout=100ms",
];

/// Port of the received streams; below the ephemeral port range.
pub(crate) const PORT: u16 = 9_456;

/// Returns a port for one socket of a victim. It is unique among live sockets: it is reused after two hundred further
/// victims, or after a hundred further sockets of the same victim.
pub(crate) fn own_port(victim: u64, socket: u64) -> u16 {
    10_000 + (victim % 200 * 100 + socket % 100) as u16
}

/// A stream shared by surviving clients and victims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) channel: String,
    pub(crate) id: i32,
}

/// Returns `count` IPC streams and `count` UDP streams. The terms have the minimum length, so that logs rotate often.
pub(crate) fn streams(address: Ipv4Addr, count: usize) -> Vec<Stream> {
    let streams = 0..2 * count as i32;
    streams
        .map(|number| Stream {
            channel: if number % 2 == 0 {
                "aeron:ipc?term-length=64k".to_owned()
            } else {
                format!("aeron:udp?endpoint={address}:{PORT}|term-length=64k")
            },
            id: 1_000 + number,
        })
        .collect()
}

/// Connects a client with the time limit of this fixture.
pub(crate) fn connect(directory: &Path) -> Client {
    builder(directory).connect().unwrap()
}

/// Returns the builder of such a client.
pub(crate) fn builder(directory: &Path) -> ClientBuilder {
    ClientBuilder::with_environment::<&str, &str>([])
        .aeron_dir(directory)
        .driver_timeout(TIMEOUT)
        .keepalive_interval(Duration::from_millis(100))
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

/// Returns a number from the environment, or the default.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: a number is needed")),
        Err(_) => default,
    }
}

/// Sends messages from a publication to a subscription that receives it from the start, and compares every byte.
pub(crate) fn exchange_messages(
    publication: &Publication,
    subscription: &mut Subscription,
    messages: u64,
) {
    let (mut producer, mut received) = (Producer::new(0), Received::from_the_beginning());
    await_true("messages", || {
        let mut message = [0; 200];
        producer.write(&mut message);
        if publication.offer(&message).is_ok() {
            producer.accepted();
        }
        subscription
            .poll(|message, _| received.take(message).unwrap(), 100)
            .unwrap();
        received.messages >= messages
    });
}
