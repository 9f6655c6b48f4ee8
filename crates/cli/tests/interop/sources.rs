// SPDX-License-Identifier: Apache-2.0
//! Multicast and multi-destination subscriptions between a Taran driver and the official one, in both directions
//! (docs/spec/wire.md §2.3 to §2.7, §2.11).

use std::path::Path;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, port};
use crate::require_java;

fn ours() -> Driver {
    Driver::taran(
        "sources-ours",
        &[("AERON_PUBLICATION_LINGER_TIMEOUT", "1s")],
    )
}

fn theirs() -> Driver {
    Driver::official(
        "sources-theirs",
        &[("aeron.publication.linger.timeout", "1s")],
    )
}

fn exchange(channel: impl Into<String>, sources: &[String]) -> Exchange {
    Exchange {
        lengths: vec![64, 1_000, 1_376, 20, 5_000],
        count: 1_000,
        sources: sources.to_vec(),
        ..Exchange::on(channel)
    }
}

/// Runs an exchange from the official driver to Taran and back. The subscriber is the Java one on a Taran driver and
/// vice versa.
fn in_both_directions(ours: &Driver, theirs: &Driver, exchange: impl Fn() -> Exchange) {
    let (ours, theirs): (&Path, &Path) = (ours.dir(), theirs.dir());
    exchange().run((Party::Rust, theirs), (Party::Java, ours));
    exchange().run((Party::Java, ours), (Party::Rust, theirs));
}

#[test]
fn multicast_subscriptions_work_in_both_directions() {
    require_java!();
    let (ours, theirs) = (ours(), theirs());
    for interface in ["localhost", "127.0.0.0/8", "{lo}"] {
        in_both_directions(&ours, &theirs, || {
            let group = format!("aeron:udp?endpoint=224.20.30.41:{}", port());
            exchange(
                format!("{group}|interface={interface}|term-length=64k"),
                &[],
            )
        });
    }
}

#[test]
fn multi_destination_subscriptions_work_in_both_directions() {
    require_java!();
    let (ours, theirs) = (ours(), theirs());
    in_both_directions(&ours, &theirs, || {
        let endpoint = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
        exchange(format!("{endpoint}|term-length=64k"), &[endpoint])
    });
    in_both_directions(&ours, &theirs, || {
        let group = format!(
            "aeron:udp?endpoint=224.20.30.41:{}|interface=localhost",
            port()
        );
        exchange(format!("{group}|term-length=64k"), &[group])
    });
    in_both_directions(&ours, &theirs, || {
        let control = format!("control=127.0.0.1:{}", port());
        let source = format!("aeron:udp?endpoint=127.0.0.1:{}|{control}", port());
        exchange(
            format!("aeron:udp?{control}|control-mode=dynamic|term-length=64k"),
            &[source],
        )
    });
}

#[test]
fn stream_over_two_paths_works_in_both_directions() {
    require_java!();
    let (ours, theirs) = (ours(), theirs());
    in_both_directions(&ours, &theirs, || {
        let paths = [port(), port()].map(|port| format!("aeron:udp?endpoint=127.0.0.1:{port}"));
        Exchange {
            destinations: paths.to_vec(),
            ..exchange("aeron:udp?control-mode=manual|term-length=64k", &paths)
        }
    });
}

#[test]
fn official_client_reads_ipc_and_spy_sources_of_taran_driver() {
    require_java!();
    let ours = ours();
    let ours = ours.dir();
    let source = "aeron:ipc".to_owned();
    exchange("aeron:ipc?term-length=64k", &[source]).run((Party::Rust, ours), (Party::Java, ours));
    let endpoint = format!("aeron:udp?endpoint=127.0.0.1:{}", port());
    exchange(
        format!("{endpoint}|term-length=64k|ssc=true"),
        &[format!("aeron-spy:{endpoint}")],
    )
    .run((Party::Rust, ours), (Party::Java, ours));
}
