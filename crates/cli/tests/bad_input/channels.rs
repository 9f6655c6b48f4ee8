//! The whole table of channels that are accepted or refused (docs/spec/uri-and-configuration.md §1.14, docs/uri-decisions.md), against a real driver.
//!
//! A refused line leaves nothing behind, so all of those share a driver; an accepted one, and those that need what others
//! have made, get one of their own.

use taran::{
    AddError, Client, ErrorCode, ExclusivePublication, Publication, RegistrationError, Subscription,
};
use taran_protocol::uri::Role;
use taran_protocol::uri::vectors::{self, Vector};

use crate::attach::{connect, wait_until};
use crate::ports::free_port;
use crate::process::{Directory, Driver};
use crate::texts::{assert_refused, assert_says};

/// What was added stays until it is dropped.
#[expect(dead_code, reason = "kept, not used")]
enum Added {
    Publication(Publication),
    Exclusive(ExclusivePublication),
    Subscription(Subscription),
}

/// A driver that starts quickly.
fn driver(directory: &Directory) -> Driver {
    let options = [
        "aeron.counters.buffer.length=1m",
        "aeron.ipc.term.buffer.length=64k",
        "aeron.threading.mode=SHARED",
    ];
    Driver::start(directory.path(), &options)
}

fn add(client: &Client, vector: &Vector, channel: &str) -> Result<Added, AddError> {
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

fn check(vector: &Vector, channel: &str, result: Result<Added, AddError>) -> Option<Added> {
    let refused = match result {
        Ok(added) => {
            assert!(
                vector.refused.is_none(),
                "{vector:?} was accepted: {channel}"
            );
            return Some(added);
        }
        Err(AddError::Registration(refused)) => refused,
        Err(other) => panic!("{vector:?}: {other}"),
    };
    check_refusal(vector, channel, &refused);
    None
}

fn check_refusal(vector: &Vector, channel: &str, refused: &RegistrationError) {
    let RegistrationError { code, text, .. } = refused;
    assert!(
        text.contains(channel),
        "{vector:?}: {text} does not quote {channel}"
    );
    assert_eq!(Some(*code), vector.refused, "{vector:?}: {text}");
}

/// Lines that belong together: each begins with one that starts from nothing.
fn sequences(is_wanted: fn(&Vector) -> bool) -> Vec<Vec<Vector>> {
    let mut sequences: Vec<Vec<Vector>> = Vec::new();
    for vector in vectors::all().into_iter().filter(is_wanted) {
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

/// Runs the lines; those that start from nothing and leave nothing on one driver.
fn run(name: &str, is_wanted: fn(&Vector) -> bool) {
    let (refused, others): (Vec<_>, Vec<_>) = sequences(is_wanted).into_iter().partition(|lines| {
        let first = &lines[0];
        lines.len() == 1 && first.refused.is_some()
    });
    let directory = Directory::new(name);
    let one = driver(&directory);
    let client = connect(directory.path());
    let first_counter = client
        .add_counter(1_000, b"", "the client is known")
        .unwrap();
    let before = counters(&client);
    for vector in refused.iter().flatten() {
        let channel = vector.channel(free_port(), 7);
        check(vector, &channel, add(&client, vector, &channel));
    }
    wait_until("nothing is left of what was refused", || {
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
fn publications() {
    run("table-publications", |vector| {
        vector.role == Role::Publication
    });
}

#[test]
fn subscriptions() {
    run("table-subscriptions", |vector| {
        vector.role == Role::Subscription
    });
}

/// Of a publication under manual control.
#[test]
fn destinations_to_send_to() {
    let directory = Directory::new("table-send-destinations");
    let driver = driver(&directory);
    let client = connect(directory.path());
    let manual = "aeron:udp?control-mode=manual";
    let publication = client.add_publication(manual, 10).unwrap();
    for vector in vectors::all() {
        if vector.role != Role::SendDestination {
            continue;
        }
        let channel = vector.channel(free_port(), 7);
        match (publication.add_destination(&channel), vector.refused) {
            (Ok(_), None) => {}
            (Err(AddError::Registration(refused)), Some(code)) => {
                assert_eq!(refused.code, code, "{vector:?}: {}", refused.text);
                assert!(refused.text.contains(&channel), "{}", refused.text);
            }
            (result, _) => panic!("{vector:?}: {result:?}"),
        }
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// Destinations need `control-mode=manual`: without, they are refused, and the text says why.
#[test]
fn destinations() {
    let directory = Directory::new("table-destinations");
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
                // What is no destination at all may be told first.
                if vector.refused.is_none() {
                    assert_refused(added, ErrorCode::GenericError, &says);
                } else {
                    assert!(added.is_err(), "{vector:?}");
                }
            }
            Role::ReceiveDestination if vector.refused.is_none() => {
                let added = plain.add_destination(&channel);
                assert_refused(added, ErrorCode::InvalidChannel, &says);
                let subscription = client.add_subscription(manual, 10).unwrap();
                subscription.add_destination(&channel).unwrap();
                subscription.remove_destination(&channel).unwrap();
            }
            Role::ReceiveDestination => {
                let subscription = client.add_subscription(manual, 10).unwrap();
                let refused = subscription.add_destination(&channel).unwrap_err();
                let AddError::Registration(refused) = refused else {
                    panic!("{vector:?}: {refused}");
                };
                assert_eq!(Some(refused.code), vector.refused, "{vector:?}: {refused}");
            }
            Role::Publication | Role::Subscription => {}
        }
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

/// What no driver would take never reaches it.
#[test]
fn a_channel_that_is_too_long() {
    let directory = Directory::new("too-long-a-channel");
    let driver = driver(&directory);
    let client = connect(directory.path());
    let long = |length: usize| format!("aeron:ipc?alias={}", "x".repeat(length - 16));
    for length in [4_096, 1_000_000] {
        let refused = client.add_publication(long(length), 10).unwrap_err();
        assert!(
            matches!(refused, AddError::TooLong { max: 4_095, .. }),
            "{refused:?}"
        );
        assert_says(&refused, &["channel", &length.to_string(), "at most 4095"]);
    }
    let publication = client.add_publication(long(4_095), 10).unwrap();
    assert_eq!(publication.channel().len(), 4_095);
    driver.stop("TERM").assert_code(15).assert_silent();
}
