//! Processes that stand still: `SIGSTOP` for less and for more than the other side's patience, then `SIGCONT`.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use taran::{AddError, CloseReason, Lost, OfferError, PollError, Subscription};
use taran_protocol::counter::SystemCounter;

use crate::bench::{OPTIONS, PORT, await_true, context};
use crate::message::{Producer, Received};
use crate::observer::Observer;
use crate::own_address::own_address;
use crate::process::{Directory, Driver, signal};
use crate::subject::Subject;

const STREAM: i32 = 77;

fn channels(address: Ipv4Addr) -> [String; 2] {
    [
        "aeron:ipc?term-length=64k".to_owned(),
        format!("aeron:udp?endpoint={address}:{PORT}|term-length=64k"),
    ]
}

/// Reads and compares; how many messages there are by now.
fn read(subscription: &mut Subscription, received: &mut Received) -> u64 {
    subscription
        .poll(|message, _| received.take(message).unwrap(), 100)
        .unwrap();
    received.messages
}

/// A client that stands still for less than its liveness timeout goes on as if nothing had been.
#[test]
fn a_client_that_stops_for_a_while_goes_on() {
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
        let client = context(directory.path()).connect().unwrap();
        let mut subscription = client.add_subscription(&channel, STREAM).unwrap();
        let mut received = Received::from_the_beginning();
        let subject = Subject::start(directory.path(), &channel, STREAM);
        await_true("messages", || read(&mut subscription, &mut received) > 20);
        subject.signal("STOP");
        let before = received.messages;
        let stopped = Instant::now();
        // What stands still is measured in time; nothing is expected to happen meanwhile.
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

/// One that stands still for longer is given up: its stream ends for its readers, it learns why, and the driver has all of
/// it back.
#[test]
fn a_client_that_stops_for_too_long_is_given_up_and_told() {
    for channel in channels(own_address()) {
        let directory = Directory::new("stop");
        let driver = Driver::start(directory.path(), &OPTIONS);
        let observer = Observer::of(directory.path(), driver.pid());
        let client = context(directory.path()).connect().unwrap();
        let mut subscription = client.add_subscription(&channel, STREAM).unwrap();
        observer.await_settled();
        let level = observer.level();
        let mut received = Received::from_the_beginning();
        let mut subject = Subject::start(directory.path(), &channel, STREAM);
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
        observer.await_level(&level);
        assert!(!client.is_closed());
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// A driver that stands still for less than the driver timeout costs time and nothing else.
#[test]
fn a_driver_that_stops_for_a_while_goes_on() {
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
        let client = context(directory.path()).connect().unwrap();
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
        await_true("the driver's heart to stand still", || {
            observer.heartbeat_age() > Duration::from_secs(2)
        });
        signal(driver.pid(), "CONT");
        exchange(1_000);
        assert!(!client.is_closed());
        assert_eq!(observer.count(SystemCounter::ClientTimeouts), 0);
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// One that stands still for longer is lost for good: everything of the client says so, with the reason. Once the driver
/// goes on, it takes the client when that connects anew.
#[test]
fn a_driver_that_stops_for_too_long_is_lost_until_the_client_connects_anew() {
    let channel = "aeron:ipc?term-length=64k";
    let directory = Directory::new("driver-stop");
    let driver = Driver::start(directory.path(), &OPTIONS);
    let observer = Observer::of(directory.path(), driver.pid());
    let level = observer.level();
    // A driver that lives answers within it, on a machine that has other things to do.
    let timeout = Duration::from_secs(5);
    let client = context(directory.path())
        .driver_timeout(timeout)
        .connect()
        .unwrap();
    let mut subscription = client.add_subscription(channel, STREAM).unwrap();
    let publication = client.add_publication(channel, STREAM).unwrap();
    await_true("a connection", || publication.is_connected());
    signal(driver.pid(), "STOP");
    await_true("the client to lose its driver", || client.is_closed());
    let Some(CloseReason::Lost(lost @ Lost::DriverTimeout { age, timeout: told })) =
        client.close_reason()
    else {
        panic!("{:?}", client.close_reason());
    };
    assert!(age > told && told == timeout);
    assert_eq!(publication.offer(&[0]), Err(OfferError::DriverLost(lost)));
    assert_eq!(
        subscription.poll(|_, _| (), 1),
        Err(PollError::DriverLost(lost))
    );
    let added = client.add_publication(channel, STREAM).map(|_| ());
    assert_eq!(added, Err(AddError::DriverLost(lost)));

    signal(driver.pid(), "CONT");
    // A lost client stays lost, whatever the driver does.
    let again = context(directory.path()).connect().unwrap();
    let subscription = again.add_subscription(channel, STREAM).unwrap();
    let publication = again.add_publication(channel, STREAM).unwrap();
    await_true("a connection", || publication.is_connected());
    assert_eq!(client.close_reason(), Some(CloseReason::Lost(lost)));
    drop((client, subscription, publication, again));
    observer.await_level(&level);
    driver.stop("TERM").assert_code(15).assert_silent();
}
