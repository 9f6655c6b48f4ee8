//! The bench: a driver that notices deaths soon, and the streams that the living and the dying share.

use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, Context, Publication, Subscription};

use crate::message::{Producer, Received};

/// How long anybody may wait for anything, on a machine that has other things to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

const STEP: Duration = Duration::from_millis(1);

/// Deaths are noticed soon, and what the dead leave is given back soon.
pub(crate) const OPTIONS: [&str; 6] = [
    "aeron.client.liveness.timeout=3s",
    "aeron.publication.unblock.timeout=4s",
    "aeron.timer.interval=100ms",
    "aeron.image.liveness.timeout=5s",
    "aeron.publication.linger.timeout=100ms",
    "aeron.counters.free.to.reuse.timeout=100ms",
];

/// Where streams are received. Below the ports that the system gives to sockets that name none.
pub(crate) const PORT: u16 = 9_456;

/// A port for one socket of a victim, by their numbers. Nobody else has it: the sockets of those who died are gone when two
/// hundred others have, and so is a victim's own that it closed a hundred sockets ago.
pub(crate) fn own_port(victim: u64, socket: u64) -> u16 {
    10_000 + (victim % 200 * 100 + socket % 100) as u16
}

/// A stream that witnesses and victims share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) channel: String,
    pub(crate) id: i32,
}

/// Streams over shared memory and over the network, `count` of each. The terms are as short as can be, so that logs turn
/// all the time.
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

/// A client that waits as long as this bench does.
pub(crate) fn connect(directory: &Path) -> Client {
    context(directory).connect().unwrap()
}

/// The same, to be connected.
pub(crate) fn context(directory: &Path) -> Context {
    Context::with_environment::<&str, &str>([])
        .aeron_dir(directory)
        .driver_timeout(PATIENCE)
        .keepalive_interval(Duration::from_millis(100))
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

/// A number from the environment, or what is used where none is asked for.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: a number is needed")),
        Err(_) => default,
    }
}

/// So many messages from a publication to a subscription that reads it from the beginning, every byte compared.
pub(crate) fn carry(publication: &Publication, subscription: &mut Subscription, messages: u64) {
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
