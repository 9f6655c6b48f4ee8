// SPDX-License-Identifier: Apache-2.0
//! Multi-destination subscriptions: sources that are added and removed by command (docs/spec/wire.md §2.11, docs/spec/uri-and-configuration.md §1.11).

mod closing;
mod paths;

use std::net::SocketAddr;
use std::time::Duration;

use taran_net::SocketSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{DataHeader, Frame, Setup, StatusMessage};
use taran_protocol::log::LogBuffers;
use taran_protocol::response::Response;
use zerocopy::IntoBytes;

use crate::fixture::{CommandError, DriverFixture, Message, error_response};
use crate::image_events::{available, unavailable};
use crate::memory_network::TestSocket;

const MANUAL: &str = "aeron:udp?control-mode=manual";
const FIRST: &str = "aeron:udp?endpoint=localhost:40001";
const SECOND: &str = "aeron:udp?endpoint=localhost:40002";
const TICK: Duration = Duration::from_secs(1);
const SESSION: i32 = 77;

/// Returns the responses to a command, or its error.
fn answer(driver: &mut DriverFixture, command: &Command<'_>) -> Result<Vec<Message>, CommandError> {
    let messages = driver.ask(command);
    let id = command.correlation_id();
    if let Some(refused) = messages.iter().find_map(|it| error_response(it, id)) {
        return Err(refused);
    }
    let is_success = |message: &Message| matches!(message.get(), Response::OperationSuccess { correlation_id } if correlation_id == id);
    assert_eq!(messages.iter().filter(|it| is_success(it)).count(), 1);
    Ok(messages)
}

fn add(
    driver: &mut DriverFixture,
    subscription: i64,
    channel: &str,
) -> Result<Vec<Message>, CommandError> {
    let correlation_id = driver.id();
    let command = Command::AddReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel,
    };
    answer(driver, &command)
}

fn remove(
    driver: &mut DriverFixture,
    subscription: i64,
    channel: &str,
) -> Result<Vec<Message>, CommandError> {
    let correlation_id = driver.id();
    let command = Command::RemoveReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel,
    };
    answer(driver, &command)
}

fn subscribe(driver: &mut DriverFixture, channel: &str) -> i64 {
    let client = driver.client();
    driver.add_subscription(client, channel, 10).unwrap().0
}

/// A host that sends the stream to two ports, and receives control frames on two ports of its own.
struct Sender {
    ears: [TestSocket; 2],
}

impl Sender {
    const PORTS: [u16; 2] = [45_001, 45_002];

    fn new(driver: &DriverFixture) -> Self {
        let open = |port| {
            let bind = SocketAddr::from(([127, 0, 0, 1], port));
            TestSocket::open(&driver.network, &SocketSpec::bound(bind))
        };
        Self {
            ears: Self::PORTS.map(open),
        }
    }

    fn send(driver: &DriverFixture, path: usize, datagram: &[u8]) {
        let from = SocketAddr::from(([127, 0, 0, 1], Self::PORTS[path]));
        driver
            .network
            .deliver(from, [40_001, 40_002][path], datagram);
    }

    fn send_setup(driver: &DriverFixture, path: usize) {
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
        Self::send(driver, path, setup.as_bytes());
    }

    fn send_heartbeat(driver: &DriverFixture, path: usize, flags: u8, offset: i32) {
        let heartbeat = DataHeader::heartbeat(flags, SESSION, 10, 3, offset);
        Self::send(driver, path, heartbeat.as_bytes());
    }

    /// Returns the end-of-stream flags of the status messages received on each path since the last call.
    fn status_messages(&mut self) -> [Vec<bool>; 2] {
        self.ears.each_mut().map(|socket| {
            let datagrams = socket.take();
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

/// Returns a subscription with two sources, and a host that sends to both.
fn two_paths() -> (DriverFixture, i64, Sender) {
    let mut driver = DriverFixture::new();
    let subscription = subscribe(&mut driver, MANUAL);
    add(&mut driver, subscription, FIRST).unwrap();
    add(&mut driver, subscription, SECOND).unwrap();
    let sender = Sender::new(&driver);
    (driver, subscription, sender)
}

/// Returns two subscriptions; the first one has a source.
fn one_with_a_source() -> (DriverFixture, i64, i64) {
    let mut driver = DriverFixture::new();
    let (one, other) = (
        subscribe(&mut driver, MANUAL),
        subscribe(&mut driver, MANUAL),
    );
    add(&mut driver, one, FIRST).unwrap();
    (driver, one, other)
}

/// Returns the log of the last announced image.
fn joined(driver: &mut DriverFixture) -> LogBuffers {
    let name = image_log(&driver.messages()).expect("an image is announced");
    driver.log(&name)
}

fn image_log(messages: &[Message]) -> Option<String> {
    messages.iter().find_map(|message| match message.get() {
        Response::AvailableImage { log_name, .. } => Some(log_name.to_owned()),
        _ => None,
    })
}

#[test]
fn each_source_has_a_socket_and_the_channel_none() {
    let mut driver = DriverFixture::new();
    let subscription = subscribe(&mut driver, MANUAL);
    assert!(driver.network.open_ports().is_empty());
    let status = &driver.labels()[&type_id::RECEIVE_CHANNEL_STATUS];
    assert_eq!(
        status, "rcv-channel: aeron:udp?control-mode=manual ",
        "no address, but the blank"
    );
    assert!(!driver.labels().contains_key(&type_id::LOCAL_SOCKET_ADDRESS));

    add(&mut driver, subscription, FIRST).unwrap();
    assert_eq!(driver.network.open_ports(), [40_001]);
    let counters = driver.counters();
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
    assert_eq!((driver.value(address.id), driver.value(status.id)), (1, 1));

    remove(&mut driver, subscription, FIRST).unwrap();
    assert!(driver.network.open_ports().is_empty());
    assert!(!driver.labels().contains_key(&type_id::LOCAL_SOCKET_ADDRESS));
    remove(&mut driver, subscription, FIRST).expect("what is not there is no error");
}

#[test]
fn sources_use_the_buffer_lengths_of_their_subscription() {
    let mut driver = DriverFixture::new();
    let channel = "aeron:udp?control-mode=manual|so-rcvbuf=300k|so-sndbuf=200k";
    let subscription = subscribe(&mut driver, channel);
    add(&mut driver, subscription, FIRST).unwrap();
    let spec = driver.network.opened().pop().unwrap();
    assert_eq!(
        (spec.receive_buffer, spec.send_buffer),
        (Some(307_200), Some(204_800))
    );
}

#[test]
fn source_is_removed_by_equivalent_channel_without_lookup() {
    let mut driver = DriverFixture::new();
    let subscription = subscribe(&mut driver, MANUAL);
    add(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=localhost:40001|alias=a",
    )
    .unwrap();
    remove(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=localhost:40001",
    )
    .unwrap();
    assert!(driver.network.open_ports().is_empty());

    let named = "aeron:udp?endpoint=some.host:40003";
    let correlation_id = driver.id();
    driver.send(&Command::AddReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel: named,
    });
    driver.settle();
    driver
        .hosts
        .answer("some.host", &Ok(vec!["127.0.0.1".parse().unwrap()]));
    driver.settle();
    assert_eq!(driver.network.open_ports(), [40_003]);
    remove(&mut driver, subscription, named).unwrap();
    assert!(driver.hosts.asked().is_empty() && driver.network.open_ports().is_empty());
}

#[test]
fn sources_without_port_use_the_port_range() {
    let mut driver = DriverFixture::with(&[("aeron.receiver.wildcard.port.range", "30001 30002")]);
    let subscription = subscribe(&mut driver, MANUAL);
    let any = "aeron:udp?endpoint=localhost:0";
    add(&mut driver, subscription, any).unwrap();
    add(&mut driver, subscription, any).unwrap();
    assert_eq!(driver.network.open_ports(), [30_001, 30_002]);
    add(&mut driver, subscription, any).unwrap_err();
    remove(&mut driver, subscription, any).unwrap();
    assert_eq!(driver.network.open_ports(), [30_002]);
}

#[test]
fn invalid_source_is_rejected() {
    let mut driver = DriverFixture::new();
    let plain = subscribe(&mut driver, FIRST);
    let ipc = subscribe(&mut driver, "aeron:ipc");
    let manual = subscribe(&mut driver, MANUAL);
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
        let refused = add(&mut driver, subscription, channel).unwrap_err();
        assert_eq!(refused.code, code, "{channel}: {}", refused.text);
        assert!(refused.text.contains(says), "{}", refused.text);
    }
    driver.hosts.fail_all();
    let refused = add(
        &mut driver,
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
            remove(&mut driver, subscription, SECOND).unwrap_err().code,
            code
        );
    }
    assert_eq!(
        driver.network.open_ports(),
        [40_001],
        "nothing is left of what was refused"
    );
}

#[test]
fn explicit_control_address_is_sent_setup_request_every_second() {
    let mut driver = DriverFixture::new();
    let subscription = subscribe(&mut driver, MANUAL);
    let bind = SocketAddr::from(([127, 0, 0, 1], 45_009));
    let mut socket = TestSocket::open(&driver.network, &SocketSpec::bound(bind));
    add(
        &mut driver,
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
    assert_eq!(asked(socket.take()), 1);
    driver.run_for(TICK * 3);
    assert_eq!(asked(socket.take()), 2);
}

#[test]
fn subscription_joins_dynamic_publication_by_control_address() {
    let mut driver = DriverFixture::new();
    let bind = SocketAddr::from(([127, 0, 0, 1], 45_009));
    let mut socket = TestSocket::open(&driver.network, &SocketSpec::bound(bind));
    subscribe(
        &mut driver,
        "aeron:udp?control=localhost:45009|control-mode=dynamic",
    );
    let asked = socket.take();
    let Ok(Frame::StatusMessage(status)) = Frame::parse(&asked[0]) else {
        panic!("{asked:?}");
    };
    assert_eq!(status.message.header.flags, StatusMessage::SEND_SETUP);
    // A spy uses the same channel.
    subscribe(
        &mut driver,
        "aeron-spy:aeron:udp?control=localhost:45009|control-mode=dynamic",
    );
    assert_eq!(socket.take().len(), 0);
}

#[test]
fn subscriptions_with_one_tag_share_their_sources() {
    let mut driver = DriverFixture::new();
    let tagged = "aeron:udp?control-mode=manual|tags=5";
    let first = subscribe(&mut driver, tagged);
    let second = subscribe(&mut driver, "aeron:udp?tags=5|control-mode=manual");
    add(&mut driver, first, FIRST).unwrap();
    Sender::send_setup(&driver, 0);
    driver.settle();
    let messages = driver.messages();
    let messages = messages
        .iter()
        .filter(|it| matches!(it.get(), Response::AvailableImage { .. }));
    assert_eq!(messages.count(), 2);
    remove(&mut driver, second, FIRST).unwrap();
    assert!(driver.network.open_ports().is_empty());
}

#[test]
fn subscription_by_tag_only_can_add_sources() {
    let mut driver = DriverFixture::new();
    subscribe(&mut driver, "aeron:udp?control-mode=manual|tags=5");
    let second = subscribe(&mut driver, "aeron:udp?tags=5");
    add(&mut driver, second, FIRST).unwrap();
    assert_eq!(driver.network.open_ports(), [40_001]);
    add(&mut driver, second, "aeron:ipc").unwrap();
    remove(&mut driver, second, "aeron:ipc").unwrap();
    remove(&mut driver, second, FIRST).unwrap();
    assert!(driver.network.open_ports().is_empty());
}

#[test]
fn dead_client_leaves_no_source() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let (subscription, _) = driver.add_subscription(client, MANUAL, 10).unwrap();
    add(&mut driver, subscription, FIRST).unwrap();
    add(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=224.0.1.1:40001|interface=localhost",
    )
    .unwrap_err();
    add(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=224.0.1.1:40003|interface=localhost",
    )
    .unwrap();
    driver.kill(client);
    driver.run_for(TICK * 15);
    assert!(driver.network.open_ports().is_empty());
    assert!(driver.counters().is_empty(), "{:?}", driver.labels());
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
        let mut driver = DriverFixture::new();
        let client = driver.client();
        let before = driver.add_exclusive(client, publication, 10).unwrap();
        let (subscription, _) = driver.add_subscription(client, MANUAL, 10).unwrap();
        let messages = add(&mut driver, subscription, source).unwrap();
        assert!(
            matches!(messages[0].get(), Response::OperationSuccess { .. }),
            "the answer is first"
        );
        let first = available(&messages).remove(0);
        assert_eq!(
            (first.image_id, first.subscription_id),
            (before.registration_id, subscription)
        );
        assert_eq!(first.source, "aeron:ipc");
        // A later publication of the stream joins too, one of another stream does not.
        driver.add_exclusive(client, publication, 11).unwrap();
        driver.messages();
        let correlation_id = driver.id();
        let messages = driver.ask(&Command::AddExclusivePublication {
            client_id: client,
            correlation_id,
            stream_id: 10,
            channel: publication,
        });
        let second = available(&messages).remove(0);
        assert_eq!(
            (second.image_id, second.subscription_id),
            (correlation_id, subscription)
        );

        let messages = remove(&mut driver, subscription, source).unwrap();
        let mut gone = unavailable(&messages);
        gone.sort_unstable();
        assert_eq!(
            gone,
            [
                (first.image_id, subscription),
                (second.image_id, subscription)
            ]
        );
        assert!(!driver.labels().contains_key(&type_id::SUBSCRIBER_POSITION));
        let refused = remove(&mut driver, subscription, source).unwrap_err();
        assert_eq!(refused.code, ErrorCode::UnknownSubscription);
    }
}

#[test]
fn removed_subscription_frees_its_local_sources() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_exclusive(client, "aeron:ipc", 10).unwrap();
    let udp = "aeron:udp?endpoint=localhost:40009";
    driver.add_exclusive(client, udp, 10).unwrap();
    let (subscription, _) = driver.add_subscription(client, MANUAL, 10).unwrap();
    add(&mut driver, subscription, "aeron:ipc").unwrap();
    add(
        &mut driver,
        subscription,
        "aeron-spy:aeron:udp?endpoint=localhost:40009",
    )
    .unwrap();
    let positions = |driver: &DriverFixture| {
        let counters = driver.counters();
        let mut positions = counters.iter().map(|it| it.type_id);
        positions
            .by_ref()
            .filter(|id| *id == type_id::SUBSCRIBER_POSITION)
            .count()
    };
    assert_eq!(positions(&driver), 2);
    let correlation_id = driver.id();
    driver.ask(&Command::RemoveSubscription {
        client_id: client,
        correlation_id,
        registration_id: subscription,
    });
    assert_eq!(positions(&driver), 0);
    let plain = subscribe(&mut driver, "aeron:ipc");
    for source in ["aeron:ipc", "aeron-spy:aeron:udp?endpoint=localhost:40009"] {
        let refused = add(&mut driver, plain, source).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidChannel, "{}", refused.text);
    }
}

#[test]
fn silent_source_with_name_is_resolved_again() {
    let mut driver = DriverFixture::new();
    let subscription = subscribe(&mut driver, MANUAL);
    let correlation_id = driver.id();
    driver.send(&Command::AddReceiveDestination {
        client_id: 1,
        correlation_id,
        registration_id: subscription,
        channel: "aeron:udp?endpoint=localhost:40001|control=some.host:45009",
    });
    driver.settle();
    driver
        .hosts
        .answer("some.host", &Ok(vec!["127.0.0.1".parse().unwrap()]));
    driver.settle();
    assert!(driver.hosts.asked().is_empty());
    driver.run_for(TICK * 7);
    assert_eq!(driver.hosts.asked(), ["some.host"]);
    driver
        .hosts
        .answer("some.host", &Ok(vec!["127.0.0.2".parse().unwrap()]));
    driver.run_for(TICK);
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 1);
}

#[test]
fn tag_selects_endpoint_with_changed_control_address() {
    let mut driver = DriverFixture::new();
    let tagged = "aeron:udp?control=some.host:45009|control-mode=dynamic|tags=7";
    let join = |driver: &mut DriverFixture, address: &str| {
        let (client_id, correlation_id) = (driver.client(), driver.id());
        driver.send(&Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id: 10,
            channel: tagged,
        });
        driver.settle();
        let answer = Ok(vec![address.parse().unwrap()]);
        driver.hosts.answer("some.host", &answer);
        driver.settle();
        let messages = driver.messages();
        let refused = messages
            .iter()
            .find_map(|it| error_response(it, correlation_id));
        assert!(refused.is_none(), "{refused:?}");
        assert!(messages.iter().any(|it| matches!(it.get(), Response::SubscriptionReady { correlation_id: id, .. } if id == correlation_id)));
    };
    join(&mut driver, "127.0.0.1");
    driver.run_for(TICK * 7);
    let moved = Ok(vec!["127.0.0.2".parse().unwrap()]);
    driver.hosts.answer("some.host", &moved);
    driver.run_for(TICK);
    assert_eq!(driver.system(SystemCounter::ResolutionChanges), 1);
    join(&mut driver, "127.0.0.2");
}
