// SPDX-License-Identifier: Apache-2.0
//! Slow name lookups (docs/spec/uri-and-configuration.md §1.4): only the command that needs a name waits, and later commands of its client.

use std::net::IpAddr;
use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::Response;

use crate::fixture::{DriverFixture, error_response};

const NAMED: &str = "aeron:udp?endpoint=some.host:40123";

fn subscribe(client_id: i64, correlation_id: i64, channel: &str) -> Command<'_> {
    Command::AddSubscription {
        client_id,
        correlation_id,
        stream_id: 10,
        channel,
    }
}

fn address() -> Result<Vec<IpAddr>, String> {
    Ok(vec!["::1".parse().unwrap(), "127.0.0.1".parse().unwrap()])
}

#[test]
fn name_lookup_delays_its_own_client_only() {
    let mut driver = DriverFixture::new();
    let (slow, other) = (driver.client(), driver.client());
    let (named, behind) = (driver.id(), driver.id());
    driver.send(&subscribe(slow, named, NAMED));
    driver.send(&subscribe(slow, behind, "aeron:ipc"));
    driver.settle();
    assert!(driver.messages().is_empty());
    assert!(
        driver.counters().is_empty(),
        "no client before its channel is accepted"
    );
    driver.add_subscription(other, "aeron:ipc", 10).unwrap();

    assert_eq!(driver.hosts.asked(), ["some.host"]);
    driver.messages();
    driver.hosts.answer("some.host", &address());
    driver.settle();
    let order: Vec<i64> = driver
        .messages()
        .iter()
        .filter_map(|message| match message.get() {
            Response::SubscriptionReady { correlation_id, .. } => Some(correlation_id),
            _ => None,
        })
        .collect();
    assert_eq!(order, [named, behind]);
    let bound: Vec<String> = driver
        .counters()
        .iter()
        .map(|meta| meta.label.to_string())
        .collect();
    assert!(
        bound
            .iter()
            .any(|label| label.ends_with(" 127.0.0.1:40123")),
        "IPv4 is preferred: {bound:?}"
    );
}

#[test]
fn unknown_host_is_reported_with_reason() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let correlation_id = driver.id();
    driver.send(&subscribe(client, correlation_id, NAMED));
    driver.settle();
    driver
        .hosts
        .answer("some.host", &Err("no such name".to_owned()));
    driver.settle();
    let refused = error_response(&driver.messages()[0], correlation_id).unwrap();
    assert_eq!(refused.code, ErrorCode::UnknownHost);
    for part in [NAMED, "no such name", "getent hosts some.host"] {
        assert!(refused.text.contains(part), "{}", refused.text);
    }
    assert!(driver.counters().is_empty());
}

#[test]
fn lookup_without_result_times_out() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let correlation_id = driver.id();
    driver.send(&subscribe(client, correlation_id, NAMED));
    driver.run_for(Duration::from_secs(4));
    assert!(driver.messages().is_empty());
    driver.run_for(Duration::from_secs(2));
    let refused = error_response(&driver.messages()[0], correlation_id).unwrap();
    assert_eq!(refused.code, ErrorCode::UnknownHost);
    assert!(driver.system(SystemCounter::NameResolverMaxTime) >= 5_000_000_000);
    // The result arrives after the timeout.
    driver.hosts.answer("some.host", &address());
    driver.settle();
    assert!(driver.messages().is_empty());
}

#[test]
fn names_of_one_channel_are_looked_up_together() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let correlation_id = driver.id();
    driver.send(&subscribe(
        client,
        correlation_id,
        "aeron:udp?endpoint=one.host:40123|control=two.host:40124",
    ));
    driver.settle();
    assert_eq!(driver.hosts.asked(), ["one.host", "two.host"]);
    driver.hosts.answer("one.host", &address());
    driver.settle();
    assert!(driver.messages().is_empty());
    driver.hosts.answer("two.host", &address());
    driver.settle();
    assert!(!driver.messages().is_empty());
}

#[test]
fn closed_client_cancels_its_lookup() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    driver.send(&subscribe(client_id, driver.id(), NAMED));
    driver.send(&Command::ClientClose {
        client_id,
        correlation_id: -1,
    });
    driver.settle();
    driver.hosts.answer("some.host", &address());
    driver.run_for(Duration::from_secs(2));
    assert!(driver.messages().is_empty());
    assert!(driver.counters().is_empty());
}

#[test]
fn many_commands_behind_a_lookup_all_succeed() {
    let mut driver = DriverFixture::new();
    let (client, other) = (driver.client(), driver.client());
    driver.send(&subscribe(client, driver.id(), NAMED));
    for _ in 0..1000 {
        driver.send(&subscribe(client, driver.id(), "aeron:ipc"));
    }
    driver.run_for(Duration::from_secs(3));
    assert_eq!(driver.commands.size(), 0, "other clients proceed");
    assert!(driver.messages().is_empty(), "nothing is refused");
    driver.hosts.answer("some.host", &address());
    for _ in 0..3 {
        driver.duty_cycle();
        let ready = ready(&mut driver);
        assert!((1..=4).contains(&ready), "{ready} commands in one cycle");
    }
    // Its many commands do not delay other clients.
    driver.add_subscription(other, "aeron:ipc", 10).unwrap();
    driver.run_for(Duration::from_secs(2));
    let done = driver.add_subscription(client, "aeron:ipc", 10);
    assert!(done.is_ok());
}

fn ready(driver: &mut DriverFixture) -> usize {
    let messages = driver.messages();
    messages
        .iter()
        .filter(|message| matches!(message.get(), Response::SubscriptionReady { .. }))
        .count()
}

#[test]
fn deferred_commands_of_a_client_are_limited() {
    let mut driver = DriverFixture::new();
    let (client_id, other) = (driver.client(), driver.client());
    driver.send(&subscribe(client_id, driver.id(), NAMED));
    let long = format!("aeron:ipc?alias={}", "a".repeat(4000));
    let mut last = 0;
    for _ in 0..600 {
        last = driver.id();
        driver.send(&subscribe(client_id, last, &long));
        driver.duty_cycle();
    }
    let messages = driver.messages();
    let refused = error_response(messages.last().unwrap(), last).unwrap();
    assert_eq!(refused.code, ErrorCode::ResourceTemporarilyUnavailable);
    let refused = messages.len();
    assert!((50..150).contains(&refused), "two MiB have room: {refused}");
    driver.send(&Command::RemoveSubscription {
        client_id,
        correlation_id: driver.id(),
        registration_id: 77,
    });
    driver.settle();
    assert!(driver.messages().is_empty(), "a removal has room");
    driver.add_subscription(other, "aeron:ipc", 10).unwrap();
    driver.hosts.answer("some.host", &address());
    driver.run_for(Duration::from_secs(1));
    assert_eq!(ready(&mut driver), 601 - refused, "what had room is done");
}

#[test]
fn silent_peer_is_resolved_again() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let correlation_id = driver.id();
    driver.send(&Command::AddPublication {
        client_id: client,
        correlation_id,
        stream_id: 10,
        channel: NAMED,
    });
    driver.settle();
    driver.hosts.answer("some.host", &address());
    driver.run_for(Duration::from_secs(4));
    assert!(driver.hosts.asked().is_empty(), "it may yet answer");
    driver.run_for(Duration::from_secs(2));
    assert_eq!(driver.hosts.asked(), ["some.host"]);

    driver.hosts.answer("some.host", &address());
    driver.run_for(Duration::from_secs(6));
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 0);
    let elsewhere = Ok(vec!["127.0.0.9".parse().unwrap()]);
    driver.hosts.answer("some.host", &elsewhere);
    driver.settle();
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 1);
    assert_eq!(driver.system(SystemCounter::Errors), 0);

    driver.run_for(Duration::from_secs(6));
    driver
        .hosts
        .answer("some.host", &Err("no such name".to_owned()));
    driver.settle();
    let errors = driver.errors();
    let text = "Unable to resolve host: endpoint=some.host:40123: no such name; 127.0.0.9:40123";
    assert!(errors[0].0.contains(text), "{errors:?}");
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 1);
}

#[test]
fn re_resolution_interval_follows_the_option() {
    let mut driver = DriverFixture::with(&[("aeron.driver.reresolution.check.interval", "20s")]);
    let client = driver.client();
    let correlation_id = driver.id();
    driver.send(&Command::AddPublication {
        client_id: client,
        correlation_id,
        stream_id: 10,
        channel: NAMED,
    });
    driver.settle();
    driver.hosts.answer("some.host", &address());
    driver.run_for(Duration::from_secs(19));
    assert!(driver.hosts.asked().is_empty());
    driver.run_for(Duration::from_secs(2));
    assert_eq!(driver.hosts.asked(), ["some.host"]);
}

#[test]
fn re_resolution_skips_live_unnamed_and_excluded_peers() {
    for (options, channel, answers) in [
        (vec![], NAMED, true),
        (vec![], "aeron:udp?endpoint=127.0.0.1:40123", false),
        (
            vec![("aeron.driver.reresolution.check.interval", "0")],
            NAMED,
            false,
        ),
    ] {
        let mut driver = DriverFixture::with(&options);
        let client = driver.client();
        if answers {
            driver
                .add_subscription(client, "aeron:udp?endpoint=localhost:40123", 10)
                .unwrap();
        }
        driver.send(&Command::AddPublication {
            client_id: client,
            correlation_id: driver.id(),
            stream_id: 10,
            channel,
        });
        driver.settle();
        driver.hosts.answer("some.host", &address());
        driver.run_for(Duration::from_secs(12));
        assert!(driver.hosts.asked().is_empty(), "{channel} {options:?}");
    }
}

#[test]
fn csv_table_resolves_names() {
    let mut driver = DriverFixture::with(&[
        ("aeron.name.resolver.supplier", "csv_table"),
        (
            "aeron.name.resolver.init.args",
            "here,127.0.0.1,127.0.0.2|there,some.host,other.host|",
        ),
    ]);
    let client = driver.client();
    let added = driver.add_subscription(client, "aeron:udp?endpoint=here:40123", 10);
    assert!(added.is_ok(), "{added:?}");
    let entry = driver
        .counters()
        .into_iter()
        .find(|meta| meta.label.contains("name='here'"))
        .unwrap();
    assert_eq!(entry.type_id, 2001);
    driver.set(entry.id, -1);
    let refused = driver
        .add_subscription(client, "aeron:udp?endpoint=here:40124", 10)
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnknownHost);
    assert!(
        refused.text.contains("Unable to resolve host=(here)"),
        "{}",
        refused.text
    );
    driver.send(&subscribe(
        client,
        driver.id(),
        "aeron:udp?endpoint=there:40125",
    ));
    driver.settle();
    assert_eq!(driver.hosts.asked(), ["some.host"]);
}
