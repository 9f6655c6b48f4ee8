// SPDX-License-Identifier: Apache-2.0
//! Publications with several destinations: commands, counters and delivery (docs/spec/wire.md §2.9, docs/spec/uri-and-configuration.md §1.11).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use taran_net::SocketSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{Frame, Setup, StatusMessage};
use taran_protocol::response::Response;
use zerocopy::IntoBytes;

use crate::fixture::{DriverFixture, Message, Ready, error_response};
use crate::memory_network::TestSocket;

const MANUAL: &str = "aeron:udp?control-mode=manual";

/// Time enough for a SETUP, which is repeated every 100 ms.
const A_WHILE: Duration = Duration::from_millis(300);

fn destination(port: u16) -> String {
    format!("aeron:udp?endpoint=localhost:{port}")
}

fn socket(driver: &DriverFixture, port: u16) -> TestSocket {
    let bind = SocketAddr::from(([127, 0, 0, 1], port));
    TestSocket::open(&driver.network, &SocketSpec::bound(bind))
}

/// A publication and its client.
struct Stage {
    driver: DriverFixture,
    client: i64,
    publication: Ready,
}

impl Stage {
    fn new(channel: &str) -> Self {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        let publication = driver.add_publication(client, channel, 10).unwrap();
        Self {
            driver,
            client,
            publication,
        }
    }

    fn add(&mut self, channel: &str) -> (i64, Result<(), (ErrorCode, String)>) {
        let correlation_id = self.driver.id();
        let answers = self.driver.ask(&Command::AddDestination {
            client_id: self.client,
            correlation_id,
            registration_id: self.publication.registration_id,
            channel,
        });
        (correlation_id, outcome(&answers, correlation_id))
    }

    fn remove(&mut self, channel: &str) -> Result<(), (ErrorCode, String)> {
        let correlation_id = self.driver.id();
        let answers = self.driver.ask(&Command::RemoveDestination {
            client_id: self.client,
            correlation_id,
            registration_id: self.publication.registration_id,
            channel,
        });
        outcome(&answers, correlation_id)
    }

    fn remove_by_id(&mut self, destination_id: i64) -> Result<(), (ErrorCode, String)> {
        let correlation_id = self.driver.id();
        let answers = self.driver.ask(&Command::RemoveDestinationById {
            client_id: self.client,
            correlation_id,
            registration_id: self.publication.registration_id,
            destination_id,
        });
        outcome(&answers, correlation_id)
    }

    /// `mdc-num-dest`
    fn count(&self) -> i64 {
        let counters = self.driver.counters();
        let found = counters
            .iter()
            .find(|meta| meta.type_id == type_id::MDC_DESTINATIONS)
            .unwrap();
        self.driver.value(found.id)
    }

    /// Returns true if the stream's SETUP arrives at this socket.
    fn reaches(&mut self, socket: &mut TestSocket) -> bool {
        self.driver.run_for(Duration::from_millis(1));
        socket.take();
        self.driver.run_for(A_WHILE);
        let session_id = self.publication.session_id;
        socket.take().iter().any(|datagram| {
            let is_ours = |setup: &Setup| {
                setup.session_id.get() == session_id && setup.header.flags & Setup::GROUP != 0
            };
            matches!(Frame::parse(datagram), Ok(Frame::Setup(setup)) if is_ours(setup))
        })
    }
}

fn outcome(answers: &[Message], correlation_id: i64) -> Result<(), (ErrorCode, String)> {
    if let Some(refused) = answers
        .iter()
        .find_map(|it| error_response(it, correlation_id))
    {
        return Err((refused.code, refused.text));
    }
    let is_success = |message: &Message| matches!(message.get(), Response::OperationSuccess { correlation_id: id } if id == correlation_id);
    assert!(answers.iter().any(is_success), "{answers:?}");
    Ok(())
}

#[test]
fn destinations_are_added_and_removed_by_command() {
    let mut stage = Stage::new(MANUAL);
    let [mut a, mut b] = [40_001, 40_002].map(|port| socket(&stage.driver, port));
    assert_eq!(
        stage.driver.labels()[&type_id::MDC_DESTINATIONS],
        format!("mdc-num-dest: {MANUAL}")
    );
    assert_eq!(stage.count(), 0);
    assert!(!stage.reaches(&mut a));

    stage.add(&destination(40_001)).1.unwrap();
    let (id, added) = stage.add(&destination(40_002));
    added.unwrap();
    assert_eq!(stage.count(), 2);
    assert!(stage.reaches(&mut a) && stage.reaches(&mut b));

    stage.remove(&destination(40_001)).unwrap();
    assert_eq!(stage.count(), 1);
    assert!(!stage.reaches(&mut a) && stage.reaches(&mut b));

    stage.remove_by_id(id).unwrap();
    assert_eq!(stage.count(), 0);
    assert!(!stage.reaches(&mut b));
}

#[test]
fn removal_of_unknown_destination_succeeds() {
    let mut stage = Stage::new(MANUAL);
    stage.add(&destination(40_001)).1.unwrap();
    stage.remove(&destination(40_002)).unwrap();
    stage.remove_by_id(12_345).unwrap();
    assert_eq!(stage.count(), 1);
    // A different notation of the same address.
    stage.remove("aeron:udp?endpoint=127.0.0.1:40001").unwrap();
    assert_eq!(stage.count(), 0);
}

#[test]
fn destination_added_twice_is_removed_twice() {
    let mut stage = Stage::new(MANUAL);
    for _ in 0..2 {
        stage.add(&destination(40_001)).1.unwrap();
    }
    assert_eq!(stage.count(), 2);
    stage.remove(&destination(40_001)).unwrap();
    assert_eq!(stage.count(), 1);
}

#[test]
fn invalid_destination_is_rejected_with_code_and_reason() {
    let mut stage = Stage::new(MANUAL);
    for (channel, code, says) in [
        (
            "aeron-spy:aeron:udp?endpoint=localhost:1",
            ErrorCode::InvalidChannel,
            "spies",
        ),
        (
            "aeron:udp?endpoint=localhost:1|mtu=2k",
            ErrorCode::InvalidChannel,
            "mtu=2k",
        ),
        (
            "aeron:udp?endpoint=localhost:1|rcv-wnd=2k",
            ErrorCode::InvalidChannel,
            "rcv-wnd",
        ),
        (
            "aeron:udp?endpoint=localhost:1|so-sndbuf=2k",
            ErrorCode::InvalidChannel,
            "so-sndbuf",
        ),
        (
            "aeron:udp?endpoint=localhost:1|so-rcvbuf=2k",
            ErrorCode::InvalidChannel,
            "so-rcvbuf",
        ),
        (
            "aeron:udp?endpoint=localhost:1|response-correlation-id=3",
            ErrorCode::InvalidChannel,
            "response-correlation-id",
        ),
        (
            "aeron:udp?endpoint=localhost:1|control-mode=response",
            ErrorCode::InvalidChannel,
            "control-mode=response",
        ),
        ("aeron:ipc", ErrorCode::GenericError, "aeron:udp"),
        (
            "aeron:udp?endpoint=localhost:0",
            ErrorCode::GenericError,
            "port=0",
        ),
        (
            "aeron:udp?endpoint=localhost",
            ErrorCode::GenericError,
            "endpoint=localhost",
        ),
        ("aeron:udp?tags=5", ErrorCode::GenericError, "endpoint"),
        ("aeron", ErrorCode::InvalidChannel, "aeron"),
    ] {
        let (actual_code, text) = stage.add(channel).1.unwrap_err();
        assert_eq!(actual_code, code, "{channel}: {text}");
        assert!(text.contains(says), "{channel}: {text}");
    }
    assert_eq!(stage.count(), 0);
}

#[test]
fn destination_without_manual_control_is_rejected() {
    let unicast = "aeron:udp?endpoint=localhost:40001";
    let dynamic = "aeron:udp?control=localhost:40009|control-mode=dynamic";
    for channel in [unicast, dynamic] {
        let mut stage = Stage::new(channel);
        let refused = [
            stage.add(&destination(40_002)).1,
            stage.remove(&destination(40_002)),
            stage.remove_by_id(1),
        ];
        for refused in refused {
            let (code, text) = refused.unwrap_err();
            assert_eq!(code, ErrorCode::GenericError);
            assert!(text.contains("does not allow manual control"), "{text}");
            assert!(text.contains(channel), "{text}");
        }
    }
    let mut stage = Stage::new("aeron:ipc");
    let refused = [
        stage.add(&destination(40_002)).1,
        stage.remove(&destination(40_002)),
        stage.remove_by_id(1),
    ];
    for refused in refused {
        let (code, text) = refused.unwrap_err();
        assert_eq!(code, ErrorCode::UnknownPublication, "{text}");
    }
}

#[test]
fn destination_with_unresolved_name_is_accepted() {
    let mut stage = Stage::new(MANUAL);
    let [mut known, mut named] = [40_001, 40_002].map(|port| socket(&stage.driver, port));
    stage.add(&destination(40_001)).1.unwrap();
    let command = |stage: &mut Stage, add: bool, answer: Result<Vec<IpAddr>, String>| {
        let (client_id, correlation_id) = (stage.client, stage.driver.id());
        let registration_id = stage.publication.registration_id;
        let channel = "aeron:udp?endpoint=some.host:40002";
        stage.driver.messages();
        stage.driver.send(&if add {
            Command::AddDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            }
        } else {
            Command::RemoveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            }
        });
        stage.driver.settle();
        stage.driver.hosts.answer("some.host", &answer);
        stage.driver.settle();
        outcome(&stage.driver.messages(), correlation_id)
    };
    command(&mut stage, true, Err("no such name".to_owned())).unwrap();
    assert_eq!(stage.count(), 2);
    assert!(stage.reaches(&mut known) && !stage.reaches(&mut named));
    // The unresolved name is enough to remove it.
    command(&mut stage, false, Err("no such name".to_owned())).unwrap();
    assert_eq!(stage.count(), 1);
    command(&mut stage, true, Ok(vec!["127.0.0.1".parse().unwrap()])).unwrap();
    assert!(stage.reaches(&mut named));
}

#[test]
fn dynamic_publication_sends_to_receivers_of_its_control_address() {
    let control = "aeron:udp?control=localhost:40009|control-mode=dynamic";
    let mut stage = Stage::new(control);
    let mut receiver = socket(&stage.driver, 40_001);
    assert_eq!(stage.count(), 0);
    let spec = stage.driver.network.opened().remove(0);
    assert_eq!((spec.bind.port(), spec.connect), (40_009, None));
    let hello = StatusMessage {
        header: StatusMessage::header(StatusMessage::SEND_SETUP),
        session_id: 0.into(),
        stream_id: 0.into(),
        consumption_term_id: 0.into(),
        consumption_term_offset: 0.into(),
        receiver_window: 0.into(),
        receiver_id: 7.into(),
    };
    let from = SocketAddr::from(([127, 0, 0, 1], 40_001));
    stage.driver.network.deliver(from, 40_009, hello.as_bytes());
    assert!(stage.reaches(&mut receiver));
    assert_eq!(stage.count(), 1);
    stage.driver.run_for(Duration::from_secs(6));
    assert_eq!(stage.count(), 0);
    assert!(!stage.reaches(&mut receiver));
}

#[test]
fn removed_publication_frees_its_destinations() {
    let mut stage = Stage::new(MANUAL);
    stage.add(&destination(40_001)).1.unwrap();
    let correlation_id = stage.driver.id();
    stage.driver.ask(&Command::RemovePublication {
        client_id: stage.client,
        correlation_id,
        registration_id: stage.publication.registration_id,
        revoke: false,
    });
    stage.driver.run_for(Duration::from_secs(8));
    let left: Vec<i32> = stage
        .driver
        .counters()
        .iter()
        .map(|meta| meta.type_id)
        .collect();
    assert_eq!(left, [type_id::CLIENT_HEARTBEAT]);
    assert_eq!(stage.driver.network.open_ports(), [0; 0]);
}

#[test]
fn manual_publications_share_an_endpoint_by_tag_only() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let first = driver.add_publication(client, MANUAL, 10).unwrap();
    let second = driver.add_publication(client, MANUAL, 10).unwrap();
    assert_ne!(first.status_counter_id, second.status_counter_id);
    let tagged = format!("{MANUAL}|tags=77");
    let third = driver.add_publication(client, &tagged, 10).unwrap();
    let fourth = driver
        .add_publication(client, "aeron:udp?tags=77", 11)
        .unwrap();
    assert_eq!(third.status_counter_id, fourth.status_counter_id);
}

#[test]
fn silent_destination_with_name_is_resolved_again() {
    let mut stage = Stage::new(MANUAL);
    let mut named = socket(&stage.driver, 40_002);
    let answer = |stage: &mut Stage, address: &str| {
        assert_eq!(stage.driver.hosts.asked(), ["some.host"]);
        let answer = Ok(vec![address.parse().unwrap()]);
        stage.driver.hosts.answer("some.host", &answer);
        stage.driver.settle();
    };
    let (client_id, correlation_id) = (stage.client, stage.driver.id());
    stage.driver.send(&Command::AddDestination {
        client_id,
        correlation_id,
        registration_id: stage.publication.registration_id,
        channel: "aeron:udp?endpoint=some.host:40002",
    });
    stage.driver.settle();
    let unknown = Err("no such name".to_owned());
    stage.driver.hosts.answer("some.host", &unknown);
    stage.driver.settle();
    assert!(!stage.reaches(&mut named));
    assert_eq!(stage.driver.errors().len(), 0);

    for (address, changes) in [("127.0.0.1", 1), ("127.0.0.1", 1), ("127.0.0.2", 2)] {
        // Five seconds, and up to one until the next check.
        stage.driver.run_for(Duration::from_millis(6_200));
        answer(&mut stage, address);
        let counted = stage.driver.system(SystemCounter::ResolutionChanges);
        assert_eq!(counted, changes, "{address}");
        assert!(stage.reaches(&mut named));
    }
    assert_eq!(stage.driver.errors().len(), 0);
}
