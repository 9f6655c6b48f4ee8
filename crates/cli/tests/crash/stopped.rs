// SPDX-License-Identifier: Apache-2.0
//! Processes stopped by `SIGSTOP` for less and for more than the timeout of their peer, then continued by `SIGCONT`.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use taran::{CloseReason, CommandError, Lost, OfferError, PollError, Subscription};
use taran_protocol::counter::SystemCounter;

use crate::fixture::{OPTIONS, PORT, await_true, builder};
use crate::message::{Producer, Received};
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::process::{Directory, Driver, signal};
use crate::publisher_process::PublisherProcess;

const STREAM: i32 = 77;

fn channels(address: Ipv4Addr) -> [String; 2] {
    [
        "aeron:ipc?term-length=64k".to_owned(),
        format!("aeron:udp?endpoint={address}:{PORT}|term-length=64k"),
    ]
}

/// Polls and checks; returns the number of messages so far.
fn read(subscription: &mut Subscription, received: &mut Received) -> u64 {
    subscription
        .poll(|message, _| received.take(message).unwrap(), 100)
        .unwrap();
    received.messages
}

/// A client stopped for less than its liveness timeout continues normally.
#[test]
fn briefly_stopped_client_continues() {
    for channel in channels(own_address()) {
        let directory = Directory::new("pause");
        let driver = Driver::start(
            directory.path(),
            &[
                "aeron.client.liveness.timeout=30s",
                "aeron.publication.unblock.timeout=40s",
                "aeron.image.liveness.timeout=30s",
            ],
        );
        let client = builder(directory.path()).connect().unwrap();
        let mut subscription = client.add_subscription(&channel, STREAM).unwrap();
        let mut received = Received::from_the_beginning();
        let subject = PublisherProcess::start(directory.path(), &channel, STREAM);
        await_true("messages", || read(&mut subscription, &mut received) > 20);
        subject.signal("STOP");
        let before = received.messages;
        let stopped = Instant::now();
        // The stop is measured in time; no event is expected meanwhile.
        await_true("a second to pass", || {
            stopped.elapsed() > Duration::from_secs(1)
        });
        subject.signal("CONT");
        await_true("more messages", || {
            read(&mut subscription, &mut received) > before + 50
        });
        assert_eq!(subscription.image_count(), 1);
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// A client stopped for longer times out: its stream ends for its subscribers, the client learns the reason, and the
/// driver recovers its resources.
#[test]
fn client_stopped_too_long_times_out_and_learns_why() {
    for channel in channels(own_address()) {
        let directory = Directory::new("stop");
        let driver = Driver::start(directory.path(), &OPTIONS);
        let observer = Observer::of(directory.path(), driver.pid());
        let client = builder(directory.path()).connect().unwrap();
        let mut subscription = client.add_subscription(&channel, STREAM).unwrap();
        observer.await_settled();
        let resources = observer.resources();
        let mut received = Received::from_the_beginning();
        let mut subject = PublisherProcess::start(directory.path(), &channel, STREAM);
        await_true("messages", || read(&mut subscription, &mut received) > 20);
        subject.signal("STOP");
        await_true("the driver to give it up", || {
            read(&mut subscription, &mut received);
            observer.count(SystemCounter::ClientTimeouts) == 1
        });
        await_true("the image to go", || {
            read(&mut subscription, &mut received);
            subscription.has_no_images()
        });
        subject.signal("CONT");
        let end = subject.end();
        assert!(
            ["given up", "slept too long"].contains(&end.as_str()),
            "{end}"
        );
        observer.await_resources(&resources);
        assert!(!client.is_closed());
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// A driver stopped for less than the driver timeout only causes a delay.
#[test]
fn briefly_stopped_driver_continues() {
    for channel in channels(own_address()) {
        let directory = Directory::new("driver-pause");
        let driver = Driver::start(
            directory.path(),
            &[
                "aeron.client.liveness.timeout=30s",
                "aeron.publication.unblock.timeout=40s",
                "aeron.image.liveness.timeout=30s",
            ],
        );
        let observer = Observer::of(directory.path(), driver.pid());
        let client = builder(directory.path()).connect().unwrap();
        let mut subscription = client.add_subscription(&channel, STREAM).unwrap();
        let publication = client.add_publication(&channel, STREAM).unwrap();
        let (mut producer, mut received) = (Producer::new(0), Received::from_the_beginning());
        let mut exchange = |messages: u64| {
            await_true("messages", || {
                let mut message = [0; 200];
                producer.write(&mut message);
                if publication.offer(&message).is_ok() {
                    producer.accepted();
                }
                read(&mut subscription, &mut received) >= messages
            });
        };
        exchange(20);
        signal(driver.pid(), "STOP");
        await_true("the driver's heartbeat to stop", || {
            observer.heartbeat_age() > Duration::from_secs(2)
        });
        signal(driver.pid(), "CONT");
        exchange(1_000);
        assert!(!client.is_closed());
        assert_eq!(observer.count(SystemCounter::ClientTimeouts), 0);
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// A driver stopped for longer is lost for its client: every call returns the reason. When the driver continues, a new
/// client is served.
#[test]
fn driver_stopped_too_long_is_lost_until_reconnect() {
    let channel = "aeron:ipc?term-length=64k";
    let directory = Directory::new("driver-stop");
    let driver = Driver::start(directory.path(), &OPTIONS);
    let observer = Observer::of(directory.path(), driver.pid());
    let resources = observer.resources();
    // Driver timeout that a live driver meets even on a busy machine.
    let timeout = Duration::from_secs(5);
    let client = builder(directory.path())
        .driver_timeout(timeout)
        .connect()
        .unwrap();
    let mut subscription = client.add_subscription(channel, STREAM).unwrap();
    let publication = client.add_publication(channel, STREAM).unwrap();
    await_true("a connection", || publication.is_connected());
    signal(driver.pid(), "STOP");
    await_true("the client to lose its driver", || client.is_closed());
    let Some(CloseReason::Lost(
        lost @ Lost::DriverTimeout {
            age,
            timeout: close_receiver,
        },
    )) = client.close_reason()
    else {
        panic!("{:?}", client.close_reason());
    };
    assert!(age > close_receiver && close_receiver == timeout);
    assert_eq!(publication.offer(&[0]), Err(OfferError::DriverLost(lost)));
    assert_eq!(
        subscription.poll(|_, _| (), 1),
        Err(PollError::DriverLost(lost))
    );
    let added = client.add_publication(channel, STREAM).map(|_| ());
    assert_eq!(added, Err(CommandError::DriverLost(lost)));

    signal(driver.pid(), "CONT");
    // A client that has lost its driver stays closed.
    let again = builder(directory.path()).connect().unwrap();
    let subscription = again.add_subscription(channel, STREAM).unwrap();
    let publication = again.add_publication(channel, STREAM).unwrap();
    await_true("a connection", || publication.is_connected());
    assert_eq!(client.close_reason(), Some(CloseReason::Lost(lost)));
    drop((client, subscription, publication, again));
    observer.await_resources(&resources);
    driver.stop("TERM").assert_code(15).assert_silent();
}
