// SPDX-License-Identifier: Apache-2.0
//! Subscriptions to multicast groups: interface, sockets, control addresses and TTL (docs/spec/wire.md §2.3 to §2.7).

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use taran_core::memory::Storage;
use taran_net::{MulticastSpec, SocketSpec};
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::frame::{DataHeader, Frame, Setup};
use taran_protocol::log::LogSpec;
use zerocopy::IntoBytes;

use crate::fixture::DriverFixture;
use crate::image_events::available;
use crate::memory_network::TestSocket;

const SECOND: Duration = Duration::from_secs(1);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn setup(stream_id: i32, ttl: i32) -> Setup {
    Setup {
        header: Setup::header(Setup::GROUP),
        term_offset: 0.into(),
        session_id: 77.into(),
        stream_id: stream_id.into(),
        initial_term_id: 3.into(),
        active_term_id: 3.into(),
        term_length: 65_536.into(),
        mtu: 1_408.into(),
        ttl: ttl.into(),
    }
}

/// Returns the socket that a subscription to this channel opens.
fn opened(driver: &mut DriverFixture, channel: &str) -> SocketSpec {
    let client = driver.client();
    driver.add_subscription(client, channel, 10).unwrap();
    driver.network.opened().pop().unwrap()
}

fn role(spec: &SocketSpec) -> &MulticastSpec {
    spec.multicast.as_ref().unwrap()
}

#[test]
fn interface_is_selected_by_prefix_name_or_multicast_capability() {
    for (channel, interface, index) in [
        ("endpoint=224.0.1.1:40001", "10.1.9.9", 3),
        (
            "endpoint=224.0.1.1:40001|interface=10.1.2.0/24",
            "10.1.2.3",
            2,
        ),
        (
            "endpoint=224.0.1.1:40001|interface=10.0.0.0/8",
            "10.1.9.9",
            3,
        ),
        ("endpoint=224.0.1.1:40001|interface=10.1.2.3", "10.1.2.3", 2),
        (
            "endpoint=224.0.1.1:40001|interface=localhost",
            "127.0.0.1",
            1,
        ),
        ("endpoint=224.0.1.1:40001|interface={eth0}", "10.1.2.3", 2),
        ("endpoint=[ff02::1:3]:40001", "fd00::9", 3),
        ("endpoint=[ff02::1:3]:40001|interface={lo}", "::1", 1),
        (
            "endpoint=[ff02::1:3]:40001|interface=[fd00::]/16",
            "fd00::9",
            3,
        ),
    ] {
        let mut driver = DriverFixture::new();
        let spec = opened(&mut driver, &format!("aeron:udp?{channel}"));
        let found = role(&spec);
        assert_eq!(
            (found.interface, found.interface_index),
            (ip(interface), index),
            "{channel}"
        );
        assert!(
            found.join.is_some_and(|group| group.is_multicast()),
            "{channel}"
        );
        assert!(
            spec.reuse_address && spec.bind.ip().is_unspecified(),
            "{channel}: {spec:?}"
        );
        assert_eq!(spec.bind.is_ipv6(), found.interface.is_ipv6(), "{channel}");
        assert_eq!(spec.bind.port(), 40_001, "{channel}");
    }
}

#[test]
fn ttl_is_that_of_channel_or_option() {
    const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40001";
    let ttl = |options: &[(&str, &str)], channel: &str| {
        role(&opened(&mut DriverFixture::with(options), channel)).ttl
    };
    let option = [("aeron.socket.multicast.ttl", "7")];
    assert_eq!(ttl(&[], GROUP), None);
    assert_eq!(ttl(&option, GROUP), Some(7));
    assert_eq!(ttl(&option, &format!("{GROUP}|ttl=3")), Some(3));
}

#[test]
fn subscriptions_share_a_socket_per_group_and_a_port_across_groups() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    for (group, stream_id, sockets) in [
        ("224.0.1.1", 10, 1),
        ("224.0.1.1", 10, 1),
        ("224.0.1.1", 11, 1),
        ("224.0.1.3", 10, 2),
    ] {
        let channel = format!("aeron:udp?endpoint={group}:40001");
        driver
            .add_subscription(client, &channel, stream_id)
            .unwrap();
        assert_eq!(
            driver.network.open_ports(),
            vec![40_001; sockets],
            "{channel}"
        );
    }
    let label = &driver.labels()[&type_id::RECEIVE_CHANNEL_STATUS];
    assert_eq!(
        label,
        "rcv-channel: aeron:udp?endpoint=224.0.1.3:40001 0.0.0.0:40001"
    );
}

#[test]
fn control_frames_are_sent_to_the_control_group() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let group = "aeron:udp?endpoint=224.0.1.1:40001|control=10.9.9.9:1";
    driver.add_subscription(client, group, 10).unwrap();
    // A member of the control group, like a publication.
    let role = MulticastSpec::sending(ip("10.1.9.9"))
        .joining(ip("224.0.1.2"))
        .with_interface_index(3);
    let spec = SocketSpec::bound(address("0.0.0.0:40001")).with_multicast(role, true);
    let mut socket = TestSocket::open(&driver.network, &spec);
    driver.run_for(SECOND * 3);
    assert_eq!(
        socket.take(),
        Vec::<Vec<u8>>::new(),
        "a group needs no explicit control"
    );
    let sender = address("10.7.7.7:50123");
    driver
        .network
        .carry(sender, address("224.0.1.1:40001"), setup(10, 0).as_bytes());
    driver.run_for(SECOND);
    let received = socket.take();
    // Three status messages per SETUP, even without data frames.
    assert_eq!(received.len(), 3, "{received:?}");
    for datagram in &received {
        let Ok(Frame::StatusMessage(message)) = Frame::parse(datagram) else {
            panic!("{datagram:?}");
        };
        assert_eq!(message.message.session_id.get(), 77);
    }
    assert_eq!(driver.system(SystemCounter::PossibleTtlAsymmetry), 0);
}

#[test]
fn setup_with_larger_ttl_than_receiver_is_counted() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let group = "aeron:udp?endpoint=224.0.1.1:40001|ttl=4";
    driver.add_subscription(client, group, 10).unwrap();
    driver.add_subscription(client, group, 11).unwrap();
    let sender = address("10.7.7.7:50123");
    for (stream_id, ttl, counted) in [(10, 4, 0), (11, 5, 1)] {
        driver.network.carry(
            sender,
            address("224.0.1.1:40001"),
            setup(stream_id, ttl).as_bytes(),
        );
        driver.settle();
        assert_eq!(driver.system(SystemCounter::PossibleTtlAsymmetry), counted);
    }
}

#[test]
fn last_subscription_of_group_closes_its_socket() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let group = "aeron:udp?endpoint=224.0.1.1:40001";
    let (first, _) = driver.add_subscription(client, group, 10).unwrap();
    let (second, _) = driver.add_subscription(client, group, 11).unwrap();
    for (registration_id, left) in [(first, 1), (second, 0)] {
        let correlation_id = driver.id();
        driver.ask(&Command::RemoveSubscription {
            client_id: client,
            correlation_id,
            registration_id,
        });
        assert_eq!(driver.network.open_ports().len(), left);
    }
}

/// Delivers a SETUP and two messages with a gap between them to a subscription. Returns the socket of the sender.
fn with_a_gap(driver: &mut DriverFixture, channel: &str, flags: u8) -> (bool, TestSocket) {
    let client = driver.client();
    driver.add_subscription(client, channel, 10).unwrap();
    let is_group = channel.contains("224.");
    let sender = address("127.0.0.1:45001");
    let spec = if is_group {
        let role = MulticastSpec::sending(ip("127.0.0.1"))
            .joining(ip("224.0.1.2"))
            .with_interface_index(1);
        SocketSpec::bound(address("0.0.0.0:40001")).with_multicast(role, true)
    } else {
        SocketSpec::bound(sender)
    };
    let socket = TestSocket::open(&driver.network, &spec);
    let to = address(if is_group {
        "224.0.1.1:40001"
    } else {
        "127.0.0.1:40001"
    });
    let setup = Setup {
        header: Setup::header(flags),
        ..setup(10, 0)
    };
    driver.network.carry(sender, to, setup.as_bytes());
    driver.settle();
    let image = available(&driver.messages()).remove(0);
    let log = driver.storage.open(Path::new(&image.log)).unwrap();
    for term_offset in [0, 64] {
        let mut datagram = DataHeader::heartbeat(0xC0, 77, 10, 3, term_offset);
        datagram.header.frame_length = 32.into();
        driver.network.carry(sender, to, datagram.as_bytes());
    }
    (LogSpec::of(&log).unwrap().is_group, socket)
}

fn naks(socket: &mut TestSocket) -> usize {
    let received = socket.take();
    let naks = received
        .iter()
        .filter(|datagram| matches!(Frame::parse(datagram), Ok(Frame::Nak(_))));
    naks.count()
}

#[test]
fn multicast_nak_is_sent_after_random_delay() {
    const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40001|interface=localhost";
    const ALONE: &str = "aeron:udp?endpoint=localhost:40001";
    for (channel, parameter, flags, is_group) in [
        (ALONE, "", 0, false),
        (ALONE, "", Setup::GROUP, true),
        (ALONE, "|group=infer", Setup::GROUP, true),
        (ALONE, "|group=false", Setup::GROUP, false),
        (ALONE, "|group=true", 0, true),
        (GROUP, "", 0, true),
        (GROUP, "|group=false", Setup::GROUP, false),
    ] {
        // The random delay is rarely below a tenth of the maximum, and never above it.
        let mut driver = DriverFixture::with(&[
            ("aeron.nak.multicast.max.backoff", "3s"),
            ("aeron.nak.multicast.group.size", "1000"),
        ]);
        let channel = format!("{channel}{parameter}");
        let (found, mut socket) = with_a_gap(&mut driver, &channel, flags);
        assert_eq!(found, is_group, "{channel} {flags}");
        driver.run_for(Duration::from_millis(10));
        assert_eq!(naks(&mut socket) > 0, !is_group, "{channel} {flags}");
        driver.run_for(SECOND * 4);
        assert!(naks(&mut socket) > 0, "{channel} {flags}");
    }
}
