//! Subscriptions whose sources are added and removed by command (docs/spec/wire.md §2.11, docs/spec/uri-and-configuration.md §1.11).

use std::net::SocketAddr;
use std::time::Duration;

use taran_core::agent::Agent;
use taran_net::SocketSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{DataHeader, Frame, Setup, StatusMessage};
use taran_protocol::log::LogBuffers;
use taran_protocol::response::Response;
use zerocopy::IntoBytes;

use crate::bench::{Bench, Message, Refusal, refusal};
use crate::told::{available, unavailable};
use crate::wires::Ear;

const MANUAL: &str = "aeron:udp?control-mode=manual";
const FIRST: &str = "aeron:udp?endpoint=localhost:40001";
const SECOND: &str = "aeron:udp?endpoint=localhost:40002";
const TICK: Duration = Duration::from_secs(1);
const SESSION: i32 = 77;

/// What a command about a source is answered.
fn answer(bench: &mut Bench, command: &Command<'_>) -> Result<Vec<Message>, Refusal> {
    let messages = bench.ask(command);
    let id = command.correlation_id();
    if let Some(refused) = messages.iter().find_map(|it| refusal(it, id)) {
        return Err(refused);
    }
    let is_success = |message: &Message| matches!(message.get(), Response::OperationSuccess { correlation_id } if correlation_id == id);
    assert_eq!(messages.iter().filter(|it| is_success(it)).count(), 1);
    Ok(messages)
}

fn add(bench: &mut Bench, subscription: i64, channel: &str) -> Result<Vec<Message>, Refusal> {
    let correlation_id = bench.id();
    let command = Command::AddReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel,
    };
    answer(bench, &command)
}

fn remove(bench: &mut Bench, subscription: i64, channel: &str) -> Result<Vec<Message>, Refusal> {
    let correlation_id = bench.id();
    let command = Command::RemoveReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel,
    };
    answer(bench, &command)
}

fn subscribe(bench: &mut Bench, channel: &str) -> i64 {
    let client = bench.client();
    bench.add_subscription(client, channel, 10).unwrap().0
}

/// A machine that sends the stream to two ports, and hears what is answered to its own two.
struct Sender {
    ears: [Ear; 2],
}

impl Sender {
    const PORTS: [u16; 2] = [45_001, 45_002];

    fn new(bench: &Bench) -> Self {
        let open = |port| {
            let bind = SocketAddr::from(([127, 0, 0, 1], port));
            Ear::open(&bench.wires, &SocketSpec::bound(bind))
        };
        Self {
            ears: Self::PORTS.map(open),
        }
    }

    fn send(bench: &Bench, path: usize, datagram: &[u8]) {
        let from = SocketAddr::from(([127, 0, 0, 1], Self::PORTS[path]));
        bench.wires.deliver(from, [40_001, 40_002][path], datagram);
    }

    fn send_setup(bench: &Bench, path: usize) {
        let setup = Setup {
            header: Setup::header(0),
            term_offset: 0.into(),
            session_id: SESSION.into(),
            stream_id: 10.into(),
            initial_term_id: 3.into(),
            active_term_id: 3.into(),
            term_length: 65_536.into(),
            mtu: 1_408.into(),
            ttl: 0.into(),
        };
        Self::send(bench, path, setup.as_bytes());
    }

    fn send_heartbeat(bench: &Bench, path: usize, flags: u8, offset: i32) {
        let heartbeat = DataHeader::heartbeat(flags, SESSION, 10, 3, offset);
        Self::send(bench, path, heartbeat.as_bytes());
    }

    /// Status messages heard on each path since the last call: whether they say that the receiver leaves.
    fn heard(&mut self) -> [Vec<bool>; 2] {
        self.ears.each_mut().map(|ear| {
            let datagrams = ear.take();
            let messages = datagrams
                .iter()
                .map(|datagram| match Frame::parse(datagram) {
                    Ok(Frame::StatusMessage(status)) => {
                        status.message.header.flags & StatusMessage::EOS != 0
                    }
                    other => panic!("{other:?}"),
                });
            messages.collect()
        })
    }
}

/// A subscription with two sources, and a machine that sends to both.
fn two_paths() -> (Bench, i64, Sender) {
    let mut bench = Bench::new();
    let subscription = subscribe(&mut bench, MANUAL);
    add(&mut bench, subscription, FIRST).unwrap();
    add(&mut bench, subscription, SECOND).unwrap();
    let sender = Sender::new(&bench);
    (bench, subscription, sender)
}

/// Two subscriptions, of which the first has a source.
fn one_with_a_source() -> (Bench, i64, i64) {
    let mut bench = Bench::new();
    let (one, other) = (subscribe(&mut bench, MANUAL), subscribe(&mut bench, MANUAL));
    add(&mut bench, one, FIRST).unwrap();
    (bench, one, other)
}

/// The log of the image that was announced last.
fn joined(bench: &mut Bench) -> LogBuffers {
    let name = image_log(&bench.messages()).expect("an image is announced");
    bench.log(&name)
}

fn image_log(messages: &[Message]) -> Option<String> {
    messages.iter().find_map(|message| match message.get() {
        Response::AvailableImage { log_name, .. } => Some(log_name.to_owned()),
        _ => None,
    })
}

#[test]
fn the_channel_has_no_socket_and_each_source_has_one() {
    let mut bench = Bench::new();
    let subscription = subscribe(&mut bench, MANUAL);
    assert!(bench.wires.open_ports().is_empty());
    let status = &bench.labels()[&type_id::RECEIVE_CHANNEL_STATUS];
    assert_eq!(
        status, "rcv-channel: aeron:udp?control-mode=manual ",
        "no address, but the blank"
    );
    assert!(!bench.labels().contains_key(&type_id::LOCAL_SOCKET_ADDRESS));

    add(&mut bench, subscription, FIRST).unwrap();
    assert_eq!(bench.wires.open_ports(), [40_001]);
    let counters = bench.counters();
    let address = counters
        .iter()
        .find(|it| it.type_id == type_id::LOCAL_SOCKET_ADDRESS)
        .unwrap();
    let status = counters
        .iter()
        .find(|it| it.type_id == type_id::RECEIVE_CHANNEL_STATUS)
        .unwrap();
    assert_eq!(
        &*address.label,
        format!("rcv-local-sockaddr: {} 127.0.0.1:40001", status.id)
    );
    assert_eq!(address.registration_id, subscription);
    assert_eq!((bench.value(address.id), bench.value(status.id)), (1, 1));

    remove(&mut bench, subscription, FIRST).unwrap();
    assert!(bench.wires.open_ports().is_empty());
    assert!(!bench.labels().contains_key(&type_id::LOCAL_SOCKET_ADDRESS));
    remove(&mut bench, subscription, FIRST).expect("what is not there is no error");
}

#[test]
fn sources_have_the_buffers_of_their_subscription() {
    let mut bench = Bench::new();
    let channel = "aeron:udp?control-mode=manual|so-rcvbuf=300k|so-sndbuf=200k";
    let subscription = subscribe(&mut bench, channel);
    add(&mut bench, subscription, FIRST).unwrap();
    let spec = bench.wires.opened().pop().unwrap();
    assert_eq!(
        (spec.receive_buffer, spec.send_buffer),
        (Some(307_200), Some(204_800))
    );
}

#[test]
fn a_source_is_removed_in_other_words_too_and_without_looking_up_its_name_again() {
    let mut bench = Bench::new();
    let subscription = subscribe(&mut bench, MANUAL);
    add(
        &mut bench,
        subscription,
        "aeron:udp?endpoint=localhost:40001|alias=a",
    )
    .unwrap();
    remove(
        &mut bench,
        subscription,
        "aeron:udp?endpoint=localhost:40001",
    )
    .unwrap();
    assert!(bench.wires.open_ports().is_empty());

    let named = "aeron:udp?endpoint=some.host:40003";
    let correlation_id = bench.id();
    bench.send(&Command::AddReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel: named,
    });
    bench.settle();
    bench
        .hosts
        .answer("some.host", &Ok(vec!["127.0.0.1".parse().unwrap()]));
    bench.settle();
    assert_eq!(bench.wires.open_ports(), [40_003]);
    remove(&mut bench, subscription, named).unwrap();
    assert!(bench.hosts.asked().is_empty() && bench.wires.open_ports().is_empty());
}

#[test]
fn sources_with_any_port_take_those_of_the_range() {
    let mut bench = Bench::with(&[("aeron.receiver.wildcard.port.range", "30001 30002")]);
    let subscription = subscribe(&mut bench, MANUAL);
    let any = "aeron:udp?endpoint=localhost:0";
    add(&mut bench, subscription, any).unwrap();
    add(&mut bench, subscription, any).unwrap();
    assert_eq!(bench.wires.open_ports(), [30_001, 30_002]);
    add(&mut bench, subscription, any).unwrap_err();
    remove(&mut bench, subscription, any).unwrap();
    assert_eq!(bench.wires.open_ports(), [30_002]);
}

#[test]
fn what_cannot_be_a_source_is_refused() {
    let mut bench = Bench::new();
    let plain = subscribe(&mut bench, FIRST);
    let ipc = subscribe(&mut bench, "aeron:ipc");
    let manual = subscribe(&mut bench, MANUAL);
    for (subscription, channel, code, says) in [
        (plain, SECOND, ErrorCode::InvalidChannel, "manual control"),
        (ipc, SECOND, ErrorCode::InvalidChannel, "manual control"),
        (12_345, SECOND, ErrorCode::UnknownSubscription, "12345"),
        (manual, FIRST, ErrorCode::GenericError, "another socket"),
        (
            manual,
            "aeron:udp?endpoint=localhost:40003|so-rcvbuf=1m",
            ErrorCode::InvalidChannel,
            "so-rcvbuf=1m",
        ),
        (
            manual,
            "aeron:udp?endpoint=localhost:40003|mtu=4k",
            ErrorCode::InvalidChannel,
            "mtu=4k",
        ),
        (
            manual,
            "aeron:udp?endpoint=localhost:40003|control-mode=response",
            ErrorCode::InvalidChannel,
            "response",
        ),
        (
            manual,
            "aeron:udp?endpoint=localhost:40003|control=localhost:0",
            ErrorCode::GenericError,
            "port=0",
        ),
        (
            manual,
            "aeron:udp?endpoint=224.0.1.2:40003",
            ErrorCode::GenericError,
            "odd",
        ),
        (manual, "aeron:udp", ErrorCode::InvalidChannel, "endpoint"),
    ] {
        let refused = add(&mut bench, subscription, channel).unwrap_err();
        assert_eq!(refused.code, code, "{channel}: {}", refused.text);
        assert!(refused.text.contains(says), "{}", refused.text);
    }
    bench.hosts.fail_all();
    let refused = add(
        &mut bench,
        manual,
        "aeron:udp?endpoint=nosuch.invalid:40003",
    )
    .unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnknownHost);
    for (subscription, code) in [
        (plain, ErrorCode::InvalidChannel),
        (12_345, ErrorCode::UnknownSubscription),
    ] {
        assert_eq!(
            remove(&mut bench, subscription, SECOND).unwrap_err().code,
            code
        );
    }
    assert_eq!(
        bench.wires.open_ports(),
        [40_001],
        "nothing is left of what was refused"
    );
}

#[test]
fn one_stream_over_two_paths_is_one_image_that_answers_on_both() {
    let (mut bench, _, mut sender) = two_paths();
    Sender::send_setup(&bench, 0);
    Sender::send_setup(&bench, 1);
    bench.settle();
    let log = joined(&mut bench);
    Sender::send_setup(&bench, 1);
    for path in 0..2 {
        Sender::send_heartbeat(&bench, path, 0xC0, 0);
    }
    bench.run_for(TICK);
    let [first, second] = sender.heard();
    assert!(
        first.len() >= 4 && second.len() >= 4,
        "{} {}",
        first.len(),
        second.len()
    );
    assert_eq!(log.active_transport_count(), 2);

    // One path falls silent: it is not spoken to any more, and later does not count any more.
    for _ in 0..60 {
        Sender::send_heartbeat(&bench, 0, 0xC0, 0);
        bench.run_for(TICK / 10);
    }
    sender.heard();
    for _ in 0..50 {
        Sender::send_heartbeat(&bench, 0, 0xC0, 0);
        bench.run_for(TICK / 10);
    }
    let [first, second] = sender.heard();
    assert!(
        first.len() >= 20 && second.is_empty(),
        "{} {}",
        first.len(),
        second.len()
    );
    assert_eq!(log.active_transport_count(), 1);

    // It comes back.
    Sender::send_heartbeat(&bench, 1, 0xC0, 0);
    bench.run_for(TICK);
    assert!(!sender.heard()[1].is_empty());
    assert_eq!(log.active_transport_count(), 2);
}

#[test]
fn a_stream_ends_when_both_paths_say_so() {
    let (mut bench, _, mut sender) = two_paths();
    Sender::send_setup(&bench, 0);
    bench.settle();
    let log = joined(&mut bench);
    for path in 0..2 {
        Sender::send_heartbeat(&bench, path, 0xC0, 0);
    }
    bench.settle();
    Sender::send_heartbeat(&bench, 0, 0xE0, 0);
    bench.settle();
    assert_eq!(log.end_of_stream_position(), i64::MAX);
    sender.heard();
    Sender::send_heartbeat(&bench, 1, 0xE0, 0);
    bench.settle();
    assert_eq!(log.end_of_stream_position(), 0);
    assert_eq!(
        sender.heard(),
        [vec![true], vec![true]],
        "both are told that the receiver leaves"
    );
}

#[test]
fn an_image_survives_the_removal_of_one_path() {
    let (mut bench, subscription, mut sender) = two_paths();
    for path in 0..2 {
        Sender::send_setup(&bench, path);
        bench.settle();
        Sender::send_heartbeat(&bench, path, 0xC0, 0);
    }
    bench.settle();
    let log = joined(&mut bench);
    remove(&mut bench, subscription, FIRST).unwrap();
    sender.heard();
    Sender::send_heartbeat(&bench, 1, 0xC0, 0);
    bench.run_for(TICK);
    let [first, second] = sender.heard();
    assert!(
        first.is_empty() && second.len() >= 4,
        "{} {}",
        first.len(),
        second.len()
    );
    assert_eq!(log.active_transport_count(), 1);
    // The end is for the path that is left to tell.
    Sender::send_heartbeat(&bench, 1, 0xE0, 0);
    bench.settle();
    assert_eq!(log.end_of_stream_position(), 0);
}

/// A source of which only SETUPs come is answered a few times; how many paths bring it is told as long as it is there.
#[test]
fn a_path_that_is_gone_does_not_count_where_only_setups_came() {
    let (mut bench, subscription, mut sender) = two_paths();
    Sender::send_setup(&bench, 0);
    bench.settle();
    let log = joined(&mut bench);
    bench.run_for(TICK * 2);
    assert_eq!(sender.heard()[0].len(), 3, "the worth of a SETUP");
    assert_eq!(log.active_transport_count(), 1);
    remove(&mut bench, subscription, FIRST).unwrap();
    bench.run_for(TICK);
    assert_eq!(log.active_transport_count(), 0);
}

#[test]
fn an_explicit_control_address_is_asked_at_once_and_every_second() {
    let mut bench = Bench::new();
    let subscription = subscribe(&mut bench, MANUAL);
    let bind = SocketAddr::from(([127, 0, 0, 1], 45_009));
    let mut ear = Ear::open(&bench.wires, &SocketSpec::bound(bind));
    add(
        &mut bench,
        subscription,
        "aeron:udp?endpoint=localhost:40001|control=localhost:45009",
    )
    .unwrap();
    let asked = |datagrams: Vec<Vec<u8>>| {
        for datagram in &datagrams {
            let Ok(Frame::StatusMessage(status)) = Frame::parse(datagram) else {
                panic!("{datagram:?}");
            };
            assert_eq!(status.message.header.flags, StatusMessage::SEND_SETUP);
        }
        datagrams.len()
    };
    assert_eq!(asked(ear.take()), 1);
    bench.run_for(TICK * 3);
    assert_eq!(asked(ear.take()), 2);
}

#[test]
fn a_subscription_joins_a_publication_under_dynamic_control_by_its_control_address() {
    let mut bench = Bench::new();
    let bind = SocketAddr::from(([127, 0, 0, 1], 45_009));
    let mut ear = Ear::open(&bench.wires, &SocketSpec::bound(bind));
    subscribe(
        &mut bench,
        "aeron:udp?control=localhost:45009|control-mode=dynamic",
    );
    let asked = ear.take();
    let Ok(Frame::StatusMessage(status)) = Frame::parse(&asked[0]) else {
        panic!("{asked:?}");
    };
    assert_eq!(status.message.header.flags, StatusMessage::SEND_SETUP);
    // A spy is told by the same channel.
    subscribe(
        &mut bench,
        "aeron-spy:aeron:udp?control=localhost:45009|control-mode=dynamic",
    );
    assert_eq!(ear.take().len(), 0);
}

#[test]
fn subscriptions_with_one_tag_share_their_sources() {
    let mut bench = Bench::new();
    let tagged = "aeron:udp?control-mode=manual|tags=5";
    let first = subscribe(&mut bench, tagged);
    let second = subscribe(&mut bench, "aeron:udp?tags=5|control-mode=manual");
    add(&mut bench, first, FIRST).unwrap();
    Sender::send_setup(&bench, 0);
    bench.settle();
    let told = bench.messages();
    let told = told
        .iter()
        .filter(|it| matches!(it.get(), Response::AvailableImage { .. }));
    assert_eq!(told.count(), 2);
    remove(&mut bench, second, FIRST).unwrap();
    assert!(bench.wires.open_ports().is_empty());
}

#[test]
fn a_subscription_that_names_only_the_tag_gives_sources_too() {
    let mut bench = Bench::new();
    subscribe(&mut bench, "aeron:udp?control-mode=manual|tags=5");
    let second = subscribe(&mut bench, "aeron:udp?tags=5");
    add(&mut bench, second, FIRST).unwrap();
    assert_eq!(bench.wires.open_ports(), [40_001]);
    add(&mut bench, second, "aeron:ipc").unwrap();
    remove(&mut bench, second, "aeron:ipc").unwrap();
    remove(&mut bench, second, FIRST).unwrap();
    assert!(bench.wires.open_ports().is_empty());
}

#[test]
fn a_client_that_dies_leaves_no_source_behind() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (subscription, _) = bench.add_subscription(client, MANUAL, 10).unwrap();
    add(&mut bench, subscription, FIRST).unwrap();
    add(
        &mut bench,
        subscription,
        "aeron:udp?endpoint=224.0.1.1:40001|interface=localhost",
    )
    .unwrap_err();
    add(
        &mut bench,
        subscription,
        "aeron:udp?endpoint=224.0.1.1:40003|interface=localhost",
    )
    .unwrap();
    bench.kill(client);
    bench.run_for(TICK * 15);
    assert!(bench.wires.open_ports().is_empty());
    assert!(bench.counters().is_empty(), "{:?}", bench.labels());
}

#[test]
fn local_publications_can_be_sources() {
    for (publication, source) in [
        ("aeron:ipc", "aeron:ipc"),
        (
            "aeron:udp?endpoint=localhost:40009",
            "aeron-spy:aeron:udp?endpoint=localhost:40009",
        ),
    ] {
        let mut bench = Bench::new();
        let client = bench.client();
        let before = bench.add_exclusive(client, publication, 10).unwrap();
        let (subscription, _) = bench.add_subscription(client, MANUAL, 10).unwrap();
        let told = add(&mut bench, subscription, source).unwrap();
        assert!(
            matches!(told[0].get(), Response::OperationSuccess { .. }),
            "the answer is first"
        );
        let first = available(&told).remove(0);
        assert_eq!(
            (first.image_id, first.subscription_id),
            (before.registration_id, subscription)
        );
        assert_eq!(first.source, "aeron:ipc");
        // One that comes later joins too, one of another stream does not.
        bench.add_exclusive(client, publication, 11).unwrap();
        bench.messages();
        let correlation_id = bench.id();
        let told = bench.ask(&Command::AddExclusivePublication {
            client_id: client,
            correlation_id,
            stream_id: 10,
            channel: publication,
        });
        let second = available(&told).remove(0);
        assert_eq!(
            (second.image_id, second.subscription_id),
            (correlation_id, subscription)
        );

        let told = remove(&mut bench, subscription, source).unwrap();
        let mut gone = unavailable(&told);
        gone.sort_unstable();
        assert_eq!(
            gone,
            [
                (first.image_id, subscription),
                (second.image_id, subscription)
            ]
        );
        assert!(!bench.labels().contains_key(&type_id::SUBSCRIBER_POSITION));
        let refused = remove(&mut bench, subscription, source).unwrap_err();
        assert_eq!(refused.code, ErrorCode::UnknownSubscription);
    }
}

#[test]
fn a_subscription_takes_its_local_sources_along() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.add_exclusive(client, "aeron:ipc", 10).unwrap();
    let udp = "aeron:udp?endpoint=localhost:40009";
    bench.add_exclusive(client, udp, 10).unwrap();
    let (subscription, _) = bench.add_subscription(client, MANUAL, 10).unwrap();
    add(&mut bench, subscription, "aeron:ipc").unwrap();
    add(
        &mut bench,
        subscription,
        "aeron-spy:aeron:udp?endpoint=localhost:40009",
    )
    .unwrap();
    let positions = |bench: &Bench| {
        let counters = bench.counters();
        let mut positions = counters.iter().map(|it| it.type_id);
        positions
            .by_ref()
            .filter(|id| *id == type_id::SUBSCRIBER_POSITION)
            .count()
    };
    assert_eq!(positions(&bench), 2);
    let correlation_id = bench.id();
    bench.ask(&Command::RemoveSubscription {
        client_id: client,
        correlation_id,
        registration_id: subscription,
    });
    assert_eq!(positions(&bench), 0);
    let plain = subscribe(&mut bench, "aeron:ipc");
    for source in ["aeron:ipc", "aeron-spy:aeron:udp?endpoint=localhost:40009"] {
        let refused = add(&mut bench, plain, source).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidChannel, "{}", refused.text);
    }
}

#[test]
fn a_source_behind_a_name_is_looked_up_again_when_it_falls_silent() {
    let mut bench = Bench::new();
    let subscription = subscribe(&mut bench, MANUAL);
    let correlation_id = bench.id();
    bench.send(&Command::AddReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel: "aeron:udp?endpoint=localhost:40001|control=some.host:45009",
    });
    bench.settle();
    bench
        .hosts
        .answer("some.host", &Ok(vec!["127.0.0.1".parse().unwrap()]));
    bench.settle();
    assert!(bench.hosts.asked().is_empty());
    bench.run_for(TICK * 7);
    assert_eq!(bench.hosts.asked(), ["some.host"]);
    bench
        .hosts
        .answer("some.host", &Ok(vec!["127.0.0.2".parse().unwrap()]));
    bench.run_for(TICK);
    assert_eq!(bench.system(SystemCounter::ResolutionChanges), 1);
}

#[test]
fn a_tag_finds_an_endpoint_whose_control_address_has_moved() {
    let mut bench = Bench::new();
    let tagged = "aeron:udp?control=some.host:45009|control-mode=dynamic|tags=7";
    let join = |bench: &mut Bench, address: &str| {
        let (client_id, correlation_id) = (bench.client(), bench.id());
        bench.send(&Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id: 10,
            channel: tagged,
        });
        bench.settle();
        let answer = Ok(vec![address.parse().unwrap()]);
        bench.hosts.answer("some.host", &answer);
        bench.settle();
        let told = bench.messages();
        let refused = told.iter().find_map(|it| refusal(it, correlation_id));
        assert!(refused.is_none(), "{refused:?}");
        assert!(told.iter().any(|it| matches!(it.get(), Response::SubscriptionReady { correlation_id: id, .. } if id == correlation_id)));
    };
    join(&mut bench, "127.0.0.1");
    bench.run_for(TICK * 7);
    let moved = Ok(vec!["127.0.0.2".parse().unwrap()]);
    bench.hosts.answer("some.host", &moved);
    bench.run_for(TICK);
    assert_eq!(bench.system(SystemCounter::ResolutionChanges), 1);
    join(&mut bench, "127.0.0.2");
}

/// The receiver has the socket for a moment longer than the client.
#[test]
fn a_source_that_is_about_to_go_is_to_be_asked_for_again() {
    let mut bench = Bench::new();
    let only_conductor = |bench: &mut Bench| {
        for _ in 0..10 {
            bench.parts.conductor.do_work(bench.now());
        }
    };
    let take_away: [fn(&mut Bench, i64); 2] = [
        |bench, subscription| {
            bench.send(&Command::RemoveReceiveDestination {
                client_id: 1,
                correlation_id: bench.id(),
                registration_id: subscription,
                channel: FIRST,
            });
        },
        |bench, subscription| {
            bench.send(&Command::RemoveSubscription {
                client_id: 1,
                correlation_id: bench.id(),
                registration_id: subscription,
            });
        },
    ];
    for take_away in take_away {
        let (one, other) = (subscribe(&mut bench, MANUAL), subscribe(&mut bench, MANUAL));
        add(&mut bench, one, FIRST).unwrap();
        take_away(&mut bench, one);
        let correlation_id = bench.id();
        bench.send(&Command::AddReceiveDestination {
            client_id: 1,
            correlation_id,
            registration_id: other,
            channel: FIRST,
        });
        only_conductor(&mut bench);
        let messages = bench.messages();
        let refused = messages.iter().find_map(|it| refusal(it, correlation_id));
        let refused = refused.expect("the socket is there still");
        assert_eq!(
            refused.code,
            ErrorCode::ResourceTemporarilyUnavailable,
            "{refused:?}"
        );
        assert!(refused.text.contains("please retry"), "{refused:?}");
        bench.settle();
        add(&mut bench, other, FIRST).unwrap();
        // As long as somebody needs it, it is in use.
        let third = subscribe(&mut bench, MANUAL);
        let refused = add(&mut bench, third, FIRST).unwrap_err();
        assert_eq!(refused.code, ErrorCode::GenericError, "{refused:?}");
        remove(&mut bench, other, FIRST).unwrap();
    }
}

/// What has nothing to do with the socket that is still there is told as it is: asking again does not help.
#[test]
fn a_source_that_cannot_be_had_anyway_is_not_to_be_asked_for_again() {
    let (mut bench, one, other) = one_with_a_source();
    bench.send(&Command::RemoveReceiveDestination {
        client_id: 1,
        correlation_id: bench.id(),
        registration_id: one,
        channel: FIRST,
    });
    bench.wires.fail_after(0);
    let refused = add(&mut bench, other, FIRST).unwrap_err();
    assert!(bench.wires.has_failed());
    assert_eq!(refused.code, ErrorCode::GenericError, "{refused:?}");
    assert!(
        refused.text.contains("cannot open a UDP socket"),
        "{refused:?}"
    );
}

/// An image that drains needs the socket for a while after the subscription is gone.
#[test]
fn a_source_whose_image_drains_is_to_be_asked_for_again() {
    let (mut bench, one, other) = one_with_a_source();
    let _sender = Sender::new(&bench);
    Sender::send_setup(&bench, 0);
    bench.settle();
    assert!(image_log(&bench.messages()).is_some());
    let correlation_id = bench.id();
    bench.ask(&Command::RemoveSubscription {
        client_id: 1,
        correlation_id,
        registration_id: one,
    });
    let refused = add(&mut bench, other, FIRST).unwrap_err();
    assert_eq!(
        refused.code,
        ErrorCode::ResourceTemporarilyUnavailable,
        "{refused:?}"
    );
    bench.run_for(TICK * 30);
    add(&mut bench, other, FIRST).unwrap();
}
