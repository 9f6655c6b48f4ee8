// SPDX-License-Identifier: Apache-2.0
//! Ports that the driver chooses (docs/spec/wire.md §2.13).

use taran_net::{Network, SocketSpec};
use taran_protocol::command::Command;

use crate::fixture::DriverFixture;

const ANY: &str = "aeron:udp?endpoint=localhost:0";

#[test]
fn port_without_range_is_chosen_by_the_system() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_subscription(client, ANY, 10).unwrap();
    driver.add_subscription(client, ANY, 10).unwrap();
    assert_eq!(
        driver.network.open_ports().len(),
        2,
        "channels without a port share nothing"
    );
}

#[test]
fn exhausted_port_range_is_reported() {
    let mut driver = DriverFixture::with(&[("aeron.receiver.wildcard.port.range", "30001 30003")]);
    let client_id = driver.client();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(driver.add_subscription(client_id, ANY, 10).unwrap().0);
    }
    assert_eq!(driver.network.open_ports(), [30_001, 30_002, 30_003]);
    let refused = driver.add_subscription(client_id, ANY, 10).unwrap_err();
    assert!(
        refused.text.contains("aeron.receiver.wildcard.port.range"),
        "{}",
        refused.text
    );
    driver.ask(&Command::RemoveSubscription {
        client_id,
        correlation_id: driver.id(),
        registration_id: ids[1],
    });
    driver.add_subscription(client_id, ANY, 10).unwrap();
    assert_eq!(driver.network.open_ports(), [30_001, 30_002, 30_003]);
}

#[test]
fn control_addresses_of_senders_use_the_sender_port_range() {
    let mut driver = DriverFixture::with(&[("aeron.sender.wildcard.port.range", "30001 30001")]);
    let client = driver.client();
    let channel = "aeron:udp?endpoint=localhost:40123|control=localhost:0";
    driver.add_publication(client, channel, 10).unwrap();
    driver
        .add_publication(client, "aeron:udp?endpoint=localhost:40124", 10)
        .unwrap();
    assert_eq!(driver.network.open_ports(), [30_001, 50_000]);
    driver.add_publication(client, channel, 11).unwrap_err();
}

#[test]
fn ports_in_use_by_the_driver_are_skipped() {
    let mut driver = DriverFixture::with(&[("aeron.receiver.wildcard.port.range", "30001 30003")]);
    let client_id = driver.client();
    // One by its number, one of a source, one of another process.
    driver
        .add_subscription(client_id, "aeron:udp?endpoint=localhost:30001", 10)
        .unwrap();
    let several = "aeron:udp?control-mode=manual";
    let (registration_id, _) = driver.add_subscription(client_id, several, 10).unwrap();
    let add = |driver: &DriverFixture| Command::AddReceiveDestination {
        client_id,
        correlation_id: driver.id(),
        registration_id,
        channel: ANY,
    };
    let source = add(&driver);
    driver.ask(&source);
    assert_eq!(driver.network.open_ports(), [30_001, 30_002]);
    let spec = SocketSpec::bound("127.0.0.1:30003".parse().unwrap());
    let _foreign = driver.network.clone().open(&spec).unwrap();
    let attempts = driver.network.attempts();
    driver.add_subscription(client_id, ANY, 10).unwrap_err();
    assert_eq!(driver.network.attempts(), attempts + 1, "the foreign one");
    driver.ask(&Command::RemoveReceiveDestination {
        client_id,
        correlation_id: driver.id(),
        registration_id,
        channel: ANY,
    });
    driver.add_subscription(client_id, ANY, 10).unwrap();
    assert_eq!(driver.network.open_ports(), [30_001, 30_002, 30_003]);
}

#[test]
fn mtu_above_the_longest_datagram_is_rejected() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let channel = |mtu: usize| {
        format!("aeron:udp?endpoint=127.0.0.1:40123|so-sndbuf=2m|term-length=1m|mtu={mtu}")
    };
    driver.network.set_expansion(40);
    let refused = driver
        .add_publication(client, &channel(65_472), 10)
        .unwrap_err();
    assert!(
        refused.text.contains(
            "mtu=65472 longest=65467 expansion=40 so-sndbuf=2097152, lower the mtu to 65440"
        ),
        "{}",
        refused.text
    );
    assert_eq!(driver.network.open_ports(), [], "its socket is closed");
    driver
        .add_publication(client, &channel(65_440), 10)
        .unwrap();
    // These use the socket of the first.
    driver
        .add_publication(client, &channel(65_472), 11)
        .unwrap_err();
    driver
        .add_publication(client, &channel(65_440), 11)
        .unwrap();
}
