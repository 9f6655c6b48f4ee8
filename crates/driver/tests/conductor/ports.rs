//! Ports that channels leave to the driver (docs/spec/wire.md §2.13).

use taran_net::{Network, SocketSpec};
use taran_protocol::command::Command;

use crate::bench::Bench;

const ANY: &str = "aeron:udp?endpoint=localhost:0";

#[test]
fn without_a_range_the_system_chooses() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.add_subscription(client, ANY, 10).unwrap();
    bench.add_subscription(client, ANY, 10).unwrap();
    assert_eq!(
        bench.wires.open_ports().len(),
        2,
        "channels without a port share nothing"
    );
}

#[test]
fn a_range_is_used_up_and_then_told() {
    let mut bench = Bench::with(&[("aeron.receiver.wildcard.port.range", "30001 30003")]);
    let client_id = bench.client();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(bench.add_subscription(client_id, ANY, 10).unwrap().0);
    }
    assert_eq!(bench.wires.open_ports(), [30_001, 30_002, 30_003]);
    let refused = bench.add_subscription(client_id, ANY, 10).unwrap_err();
    assert!(
        refused.text.contains("aeron.receiver.wildcard.port.range"),
        "{}",
        refused.text
    );
    bench.ask(&Command::RemoveSubscription {
        client_id,
        correlation_id: bench.id(),
        registration_id: ids[1],
    });
    bench.add_subscription(client_id, ANY, 10).unwrap();
    assert_eq!(bench.wires.open_ports(), [30_001, 30_002, 30_003]);
}

#[test]
fn senders_with_a_control_address_have_a_range_of_their_own() {
    let mut bench = Bench::with(&[("aeron.sender.wildcard.port.range", "30001 30001")]);
    let client = bench.client();
    let channel = "aeron:udp?endpoint=localhost:40123|control=localhost:0";
    bench.add_publication(client, channel, 10).unwrap();
    bench
        .add_publication(client, "aeron:udp?endpoint=localhost:40124", 10)
        .unwrap();
    assert_eq!(bench.wires.open_ports(), [30_001, 50_000]);
    bench.add_publication(client, channel, 11).unwrap_err();
}

#[test]
fn ports_that_the_driver_has_are_not_tried_again() {
    let mut bench = Bench::with(&[("aeron.receiver.wildcard.port.range", "30001 30003")]);
    let client_id = bench.client();
    // One by its number, one as a source, one of another process.
    bench
        .add_subscription(client_id, "aeron:udp?endpoint=localhost:30001", 10)
        .unwrap();
    let several = "aeron:udp?control-mode=manual";
    let (registration_id, _) = bench.add_subscription(client_id, several, 10).unwrap();
    let add = |bench: &Bench| Command::AddReceiveDestination {
        client_id,
        correlation_id: bench.id(),
        registration_id,
        channel: ANY,
    };
    let source = add(&bench);
    bench.ask(&source);
    assert_eq!(bench.wires.open_ports(), [30_001, 30_002]);
    let spec = SocketSpec::bound("127.0.0.1:30003".parse().unwrap());
    let _foreign = bench.wires.clone().open(&spec).unwrap();
    let attempts = bench.wires.attempts();
    bench.add_subscription(client_id, ANY, 10).unwrap_err();
    assert_eq!(bench.wires.attempts(), attempts + 1, "the foreign one");
    bench.ask(&Command::RemoveReceiveDestination {
        client_id,
        correlation_id: bench.id(),
        registration_id,
        channel: ANY,
    });
    bench.add_subscription(client_id, ANY, 10).unwrap();
    assert_eq!(bench.wires.open_ports(), [30_001, 30_002, 30_003]);
}
