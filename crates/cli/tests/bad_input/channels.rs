// SPDX-License-Identifier: Apache-2.0
//! The complete table of accepted and rejected channels (docs/spec/uri-and-configuration.md §1.14,
//! docs/differences-from-aeron.md), with a real driver.
//!
//! A rejected channel leaves no resources, so all of them share one driver. Accepted channels, and those that depend on
//! earlier ones, get a driver of their own.
//! have made, get one of their own.

use taran::{
    Client, CommandError, ErrorCode, ExclusivePublication, Publication, RegistrationError,
    Subscription,
};
use taran_protocol::uri::Role;
use taran_protocol::uri::vectors::{self, Vector};

use crate::attach::{connect, wait_until};
use crate::ports::free_port;
use crate::process::{Directory, Driver};
use crate::texts::{assert_rejected, assert_says};

/// A registered resource, held until it is dropped.
#[expect(dead_code, reason = "held, not used")]
enum Added {
    Publication(Publication),
    Exclusive(ExclusivePublication),
    Subscription(Subscription),
}

/// Starts a driver with small buffers, so that startup is quick.
fn driver(directory: &Directory) -> Driver {
    let options = [
        "aeron.counters.buffer.length=1m",
        "aeron.ipc.term.buffer.length=64k",
        "aeron.threading.mode=SHARED",
    ];
    Driver::start(directory.path(), &options)
}

fn add(client: &Client, vector: &Vector, channel: &str) -> Result<Added, CommandError> {
    let stream_id = vector.stream_id;
    match vector.role {
        Role::Publication if vector.exclusive => client
            .add_exclusive_publication(channel, stream_id)
            .map(Added::Exclusive),
        Role::Publication => client
            .add_publication(channel, stream_id)
            .map(Added::Publication),
        Role::Subscription => client
            .add_subscription(channel, stream_id)
            .map(Added::Subscription),
        Role::SendDestination | Role::ReceiveDestination => unreachable!("not in these tests"),
    }
}

fn check(vector: &Vector, channel: &str, result: Result<Added, CommandError>) -> Option<Added> {
    let rejected = match result {
        Ok(added) => {
            assert!(
                vector.expected_error.is_none(),
                "{vector:?} was accepted: {channel}"
            );
            return Some(added);
        }
        Err(CommandError::Registration(rejected)) => rejected,
        Err(other) => panic!("{vector:?}: {other}"),
    };
    check_rejection(vector, channel, &rejected);
    None
}

fn check_rejection(vector: &Vector, channel: &str, rejected: &RegistrationError) {
    let RegistrationError { code, text, .. } = rejected;
    assert!(
        text.contains(channel),
        "{vector:?}: {text} does not quote {channel}"
    );
    assert_eq!(Some(*code), vector.expected_error, "{vector:?}: {text}");
}

/// Returns the rows in sequences: a row that depends on its predecessor is in the same sequence.
fn sequences(selects: fn(&Vector) -> bool) -> Vec<Vec<Vector>> {
    let mut sequences: Vec<Vec<Vector>> = Vec::new();
    for vector in vectors::all().into_iter().filter(selects) {
        if vector.continues {
            sequences.last_mut().unwrap().push(vector);
        } else {
            sequences.push(vec![vector]);
        }
    }
    sequences
}

fn counters(client: &Client) -> usize {
    let mut count = 0;
    client.counters().for_each(|_| count += 1);
    count
}

/// Runs the selected rows. Independent rejected rows share one driver.
fn run(name: &str, selects: fn(&Vector) -> bool) {
    let (rejected, others): (Vec<_>, Vec<_>) = sequences(selects).into_iter().partition(|lines| {
        let first = &lines[0];
        lines.len() == 1 && first.expected_error.is_some()
    });
    let directory = Directory::new(name);
    let one = driver(&directory);
    let client = connect(directory.path());
    let first_counter = client
        .add_counter(1_000, b"", "the client is known")
        .unwrap();
    let before = counters(&client);
    for vector in rejected.iter().flatten() {
        let channel = vector.channel(free_port(), 7);
        check(vector, &channel, add(&client, vector, &channel));
    }
    wait_until("the resources of rejected channels are released", || {
        counters(&client) == before
    });
    drop(first_counter);
    one.stop("TERM").assert_code(15).assert_silent();

    for lines in others {
        let directory = Directory::new(name);
        let one = driver(&directory);
        let client = connect(directory.path());
        let port = free_port();
        let mut kept = Vec::new();
        for vector in &lines {
            let channel = vector.channel(port, 7);
            kept.extend(check(vector, &channel, add(&client, vector, &channel)));
        }
        drop(kept);
        one.stop("TERM").assert_code(15).assert_silent();
    }
}

#[test]
fn channel_table_of_publications_holds() {
    run("table-publications", |vector| {
        vector.role == Role::Publication
    });
}

#[test]
fn channel_table_of_subscriptions_holds() {
    run("table-subscriptions", |vector| {
        vector.role == Role::Subscription
    });
}

/// Send destinations_without_manual_control_are_rejected of a publication with manual control.
#[test]
fn channel_table_of_send_destinations_holds() {
    let directory = Directory::new("table-send-destinations_without_manual_control_are_rejected");
    let driver = driver(&directory);
    let client = connect(directory.path());
    let manual = "aeron:udp?control-mode=manual";
    let publication = client.add_publication(manual, 10).unwrap();
    for vector in vectors::all() {
        if vector.role != Role::SendDestination {
            continue;
        }
        let channel = vector.channel(free_port(), 7);
        match (publication.add_destination(&channel), vector.expected_error) {
            (Ok(_), None) => {}
            (Err(CommandError::Registration(rejected)), Some(code)) => {
                assert_eq!(rejected.code, code, "{vector:?}: {}", rejected.text);
                assert!(rejected.text.contains(&channel), "{}", rejected.text);
            }
            (result, _) => panic!("{vector:?}: {result:?}"),
        }
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Destinations require `control-mode=manual`; the error text says so.
#[test]
fn destinations_without_manual_control_are_rejected() {
    let directory = Directory::new("table-destinations_without_manual_control_are_rejected");
    let driver = driver(&directory);
    let client = connect(directory.path());
    let own = format!("aeron:udp?endpoint=localhost:{}", free_port());
    let publication = client.add_publication(&own, 10).unwrap();
    let plain = client.add_subscription(&own, 10).unwrap();
    let manual = "aeron:udp?control-mode=manual";
    for vector in vectors::all() {
        let channel = vector.channel(free_port(), 7);
        let says = ["control-mode=manual"];
        match vector.role {
            Role::SendDestination => {
                let added = publication.add_destination(&channel);
                // For an invalid destination, another error may be reported first.
                if vector.expected_error.is_none() {
                    assert_rejected(added, ErrorCode::GenericError, &says);
                } else {
                    assert!(added.is_err(), "{vector:?}");
                }
            }
            Role::ReceiveDestination if vector.expected_error.is_none() => {
                let added = plain.add_destination(&channel);
                assert_rejected(added, ErrorCode::InvalidChannel, &says);
                let subscription = client.add_subscription(manual, 10).unwrap();
                subscription.add_destination(&channel).unwrap();
                subscription.remove_destination(&channel).unwrap();
            }
            Role::ReceiveDestination => {
                let subscription = client.add_subscription(manual, 10).unwrap();
                let rejected = subscription.add_destination(&channel).unwrap_err();
                let CommandError::Registration(rejected) = rejected else {
                    panic!("{vector:?}: {rejected}");
                };
                assert_eq!(
                    Some(rejected.code),
                    vector.expected_error,
                    "{vector:?}: {rejected}"
                );
            }
            Role::Publication | Role::Subscription => {}
        }
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// A channel that exceeds the limit of the command is rejected by the client.
#[test]
fn too_long_channel_is_rejected_by_the_client() {
    let directory = Directory::new("too-long-a-channel");
    let driver = driver(&directory);
    let client = connect(directory.path());
    let long = |length: usize| format!("aeron:ipc?alias={}", "x".repeat(length - 16));
    for length in [4_096, 1_000_000] {
        let rejected = client.add_publication(long(length), 10).unwrap_err();
        assert!(
            matches!(rejected, CommandError::TooLong { max: 4_095, .. }),
            "{rejected:?}"
        );
        assert_says(
            &rejected,
            &["channel", &length.to_string(), "the maximum is 4095"],
        );
    }
    let publication = client.add_publication(long(4_095), 10).unwrap();
    assert_eq!(publication.channel().len(), 4_095);
    driver.stop("TERM").assert_code(15).assert_silent();
}
