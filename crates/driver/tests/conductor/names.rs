//! Host names that take their time (docs/spec/uri-and-configuration.md §1.4): only the command that needs one waits.

use std::net::IpAddr;
use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::Response;

use crate::bench::{Bench, refusal};

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
fn a_name_holds_up_its_own_client_only() {
    let mut bench = Bench::new();
    let (slow, other) = (bench.client(), bench.client());
    let (named, behind) = (bench.id(), bench.id());
    bench.send(&subscribe(slow, named, NAMED));
    bench.send(&subscribe(slow, behind, "aeron:ipc"));
    bench.settle();
    assert!(bench.messages().is_empty());
    assert!(
        bench.counters().is_empty(),
        "no client before its channel is accepted"
    );
    bench.add_subscription(other, "aeron:ipc", 10).unwrap();

    assert_eq!(bench.hosts.asked(), ["some.host"]);
    bench.messages();
    bench.hosts.answer("some.host", &address());
    bench.settle();
    let order: Vec<i64> = bench
        .messages()
        .iter()
        .filter_map(|message| match message.get() {
            Response::SubscriptionReady { correlation_id, .. } => Some(correlation_id),
            _ => None,
        })
        .collect();
    assert_eq!(order, [named, behind]);
    let bound: Vec<String> = bench
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
fn an_unknown_host_is_told_with_its_reason() {
    let mut bench = Bench::new();
    let client = bench.client();
    let correlation_id = bench.id();
    bench.send(&subscribe(client, correlation_id, NAMED));
    bench.settle();
    bench
        .hosts
        .answer("some.host", &Err("no such name".to_owned()));
    bench.settle();
    let refused = refusal(&bench.messages()[0], correlation_id).unwrap();
    assert_eq!(refused.code, ErrorCode::UnknownHost);
    for part in [NAMED, "no such name", "getent hosts some.host"] {
        assert!(refused.text.contains(part), "{}", refused.text);
    }
    assert!(bench.counters().is_empty());
}

#[test]
fn a_resolver_that_does_not_answer_is_given_up() {
    let mut bench = Bench::new();
    let client = bench.client();
    let correlation_id = bench.id();
    bench.send(&subscribe(client, correlation_id, NAMED));
    bench.run_for(Duration::from_secs(4));
    assert!(bench.messages().is_empty());
    bench.run_for(Duration::from_secs(2));
    let refused = refusal(&bench.messages()[0], correlation_id).unwrap();
    assert_eq!(refused.code, ErrorCode::UnknownHost);
    assert!(bench.system(SystemCounter::NameResolverMaxTime) >= 5_000_000_000);
    // The answer comes when nobody waits any more.
    bench.hosts.answer("some.host", &address());
    bench.settle();
    assert!(bench.messages().is_empty());
}

#[test]
fn two_names_of_one_channel_are_looked_up_together() {
    let mut bench = Bench::new();
    let client = bench.client();
    let correlation_id = bench.id();
    bench.send(&subscribe(
        client,
        correlation_id,
        "aeron:udp?endpoint=one.host:40123|control=two.host:40124",
    ));
    bench.settle();
    assert_eq!(bench.hosts.asked(), ["one.host", "two.host"]);
    bench.hosts.answer("one.host", &address());
    bench.settle();
    assert!(bench.messages().is_empty());
    bench.hosts.answer("two.host", &address());
    bench.settle();
    assert!(!bench.messages().is_empty());
}

#[test]
fn a_client_that_leaves_takes_its_question_along() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    bench.send(&subscribe(client_id, bench.id(), NAMED));
    bench.send(&Command::ClientClose {
        client_id,
        correlation_id: -1,
    });
    bench.settle();
    bench.hosts.answer("some.host", &address());
    bench.run_for(Duration::from_secs(2));
    assert!(bench.messages().is_empty());
    assert!(bench.counters().is_empty());
}

#[test]
fn a_client_that_adds_all_it_has_at_once_gets_it() {
    let mut bench = Bench::new();
    let (client, other) = (bench.client(), bench.client());
    bench.send(&subscribe(client, bench.id(), NAMED));
    for _ in 0..1000 {
        bench.send(&subscribe(client, bench.id(), "aeron:ipc"));
    }
    bench.run_for(Duration::from_secs(3));
    assert_eq!(bench.commands.size(), 0, "nobody else is held up");
    assert!(bench.messages().is_empty(), "nothing is refused");
    bench.hosts.answer("some.host", &address());
    for _ in 0..3 {
        bench.turn();
        let ready = ready(&mut bench);
        assert!((1..=4).contains(&ready), "{ready} commands in one cycle");
    }
    // Its many commands keep nobody from going on.
    bench.add_subscription(other, "aeron:ipc", 10).unwrap();
    bench.run_for(Duration::from_secs(2));
    let done = bench.add_subscription(client, "aeron:ipc", 10);
    assert!(done.is_ok());
}

fn ready(bench: &mut Bench) -> usize {
    let messages = bench.messages();
    messages
        .iter()
        .filter(|message| matches!(message.get(), Response::SubscriptionReady { .. }))
        .count()
}

#[test]
fn a_client_cannot_pile_up_commands_without_end() {
    let mut bench = Bench::new();
    let (client_id, other) = (bench.client(), bench.client());
    bench.send(&subscribe(client_id, bench.id(), NAMED));
    let long = format!("aeron:ipc?alias={}", "a".repeat(4000));
    let mut last = 0;
    for _ in 0..600 {
        last = bench.id();
        bench.send(&subscribe(client_id, last, &long));
        bench.turn();
    }
    let messages = bench.messages();
    let refused = refusal(messages.last().unwrap(), last).unwrap();
    assert_eq!(refused.code, ErrorCode::ResourceTemporarilyUnavailable);
    let refused = messages.len();
    assert!((50..150).contains(&refused), "two MiB have room: {refused}");
    bench.send(&Command::RemoveSubscription {
        client_id,
        correlation_id: bench.id(),
        registration_id: 77,
    });
    bench.settle();
    assert!(bench.messages().is_empty(), "a removal has room");
    bench.add_subscription(other, "aeron:ipc", 10).unwrap();
    bench.hosts.answer("some.host", &address());
    bench.run_for(Duration::from_secs(1));
    assert_eq!(ready(&mut bench), 601 - refused, "what had room is done");
}

#[test]
fn a_peer_that_fell_silent_is_looked_up_again() {
    let mut bench = Bench::new();
    let client = bench.client();
    let correlation_id = bench.id();
    bench.send(&Command::AddPublication {
        client_id: client,
        correlation_id,
        stream_id: 10,
        channel: NAMED,
    });
    bench.settle();
    bench.hosts.answer("some.host", &address());
    bench.run_for(Duration::from_secs(4));
    assert!(bench.hosts.asked().is_empty(), "it may yet answer");
    bench.run_for(Duration::from_secs(2));
    assert_eq!(bench.hosts.asked(), ["some.host"]);

    bench.hosts.answer("some.host", &address());
    bench.run_for(Duration::from_secs(6));
    assert_eq!(bench.system(SystemCounter::ResolutionChanges), 0);
    let elsewhere = Ok(vec!["127.0.0.9".parse().unwrap()]);
    bench.hosts.answer("some.host", &elsewhere);
    bench.settle();
    assert_eq!(bench.system(SystemCounter::ResolutionChanges), 1);
    assert_eq!(bench.system(SystemCounter::Errors), 0);

    bench.run_for(Duration::from_secs(6));
    bench
        .hosts
        .answer("some.host", &Err("no such name".to_owned()));
    bench.settle();
    let errors = bench.errors();
    let text = "Unable to resolve host: endpoint=some.host:40123: no such name; 127.0.0.9:40123";
    assert!(errors[0].0.contains(text), "{errors:?}");
    assert_eq!(bench.system(SystemCounter::ResolutionChanges), 1);
}

#[test]
fn silence_is_noticed_as_often_as_the_option_says() {
    let mut bench = Bench::with(&[("aeron.driver.reresolution.check.interval", "20s")]);
    let client = bench.client();
    let correlation_id = bench.id();
    bench.send(&Command::AddPublication {
        client_id: client,
        correlation_id,
        stream_id: 10,
        channel: NAMED,
    });
    bench.settle();
    bench.hosts.answer("some.host", &address());
    bench.run_for(Duration::from_secs(19));
    assert!(bench.hosts.asked().is_empty());
    bench.run_for(Duration::from_secs(2));
    assert_eq!(bench.hosts.asked(), ["some.host"]);
}

#[test]
fn nobody_is_looked_up_again_who_answers_or_has_no_name_or_where_options_forbid_it() {
    for (options, channel, answers) in [
        (vec![], NAMED, true),
        (vec![], "aeron:udp?endpoint=127.0.0.1:40123", false),
        (
            vec![("aeron.driver.reresolution.check.interval", "0")],
            NAMED,
            false,
        ),
    ] {
        let mut bench = Bench::with(&options);
        let client = bench.client();
        if answers {
            bench
                .add_subscription(client, "aeron:udp?endpoint=localhost:40123", 10)
                .unwrap();
        }
        bench.send(&Command::AddPublication {
            client_id: client,
            correlation_id: bench.id(),
            stream_id: 10,
            channel,
        });
        bench.settle();
        bench.hosts.answer("some.host", &address());
        bench.run_for(Duration::from_secs(12));
        assert!(bench.hosts.asked().is_empty(), "{channel} {options:?}");
    }
}

#[test]
fn a_table_says_what_names_stand_for() {
    let mut bench = Bench::with(&[
        ("aeron.name.resolver.supplier", "csv_table"),
        (
            "aeron.name.resolver.init.args",
            "here,127.0.0.1,127.0.0.2|there,some.host,other.host|",
        ),
    ]);
    let client = bench.client();
    let added = bench.add_subscription(client, "aeron:udp?endpoint=here:40123", 10);
    assert!(added.is_ok(), "{added:?}");
    let entry = bench
        .counters()
        .into_iter()
        .find(|meta| meta.label.contains("name='here'"))
        .unwrap();
    assert_eq!(entry.type_id, 2001);
    bench.set(entry.id, -1);
    let refused = bench
        .add_subscription(client, "aeron:udp?endpoint=here:40124", 10)
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnknownHost);
    assert!(
        refused.text.contains("Unable to resolve host=(here)"),
        "{}",
        refused.text
    );
    bench.send(&subscribe(
        client,
        bench.id(),
        "aeron:udp?endpoint=there:40125",
    ));
    bench.settle();
    assert_eq!(bench.hosts.asked(), ["some.host"]);
}
