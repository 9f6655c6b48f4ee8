//! Ports that channels leave to the driver (spec/02 §2.13).

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
