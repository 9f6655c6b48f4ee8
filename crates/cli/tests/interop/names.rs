// SPDX-License-Identifier: Apache-2.0
//! Name resolution between Taran and official drivers, and streams addressed by driver names.

use std::path::Path;

use taran_protocol::counter::type_id;

use crate::drivers::Driver;
use crate::exchange::{Exchange, Party, await_true, connect, port};
use crate::require_java;

/// Implementation of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ours,
    Official,
}

/// Starts a named driver with another one as its bootstrap neighbor.
fn named(kind: Kind, name: &str, start: Option<&str>) -> Driver {
    let mut settings = vec![
        ("aeron.driver.resolver.name", name),
        ("aeron.driver.resolver.interface", "127.0.0.1:0"),
        ("aeron.driver.resolver.neighbor.timeout", "10s"),
        ("aeron.publication.linger.timeout", "1s"),
    ];
    settings.extend(start.map(|start| ("aeron.driver.resolver.bootstrap.neighbor", start)));
    match kind {
        Kind::Official => Driver::official(name, &settings),
        Kind::Ours => {
            let variables: Vec<(String, &str)> = settings
                .into_iter()
                .map(|(property, value)| (property.to_uppercase().replace('.', "_"), value))
                .collect();
            let variables: Vec<(&str, &str)> = variables
                .iter()
                .map(|(variable, value)| (variable.as_str(), *value))
                .collect();
            Driver::taran(name, &variables)
        }
    }
}

/// Returns value and label of a counter of the resolver.
fn counter(dir: &Path, type_id: i32) -> (i64, String) {
    let client = connect(dir);
    let counters = client.counters();
    let found = counters.find(|meta| meta.type_id == type_id).unwrap();
    let value = counters.value(found.id).unwrap();
    (value, found.label.to_string())
}

/// Returns the address of a driver's resolver.
fn bound(driver: &Driver) -> String {
    let (_, label) = counter(driver.dir(), type_id::RESOLVER_NEIGHBORS);
    let bound = label.strip_prefix("Resolver neighbors: bound ").unwrap();
    bound.to_owned()
}

/// Waits until a driver knows so many neighbors.
fn await_known(driver: &Driver, count: i64) {
    await_true("acquaintance", || {
        [type_id::RESOLVER_NEIGHBORS, type_id::RESOLVER_CACHE_ENTRIES]
            .into_iter()
            .all(|wanted| counter(driver.dir(), wanted).0 == count)
    });
}

#[test]
fn name_resolution_between_drivers_finds_names() {
    require_java!();
    for (first, second) in [(Kind::Ours, Kind::Official), (Kind::Official, Kind::Ours)] {
        let a = named(first, "driver-a", None);
        let start = bound(&a);
        let b = named(second, "driver-b", Some(&start));
        await_known(&a, 1);
        await_known(&b, 1);
        let label = format!("Bootstrap neighbor: name={start} resolved={start}");
        await_true("the driver to start from", || {
            counter(b.dir(), type_id::RESOLVER_BOOTSTRAP_NEIGHBOR) == (1, label.clone())
        });
        for (to, name, from) in [(&a, "driver-a", &b), (&b, "driver-b", &a)] {
            let channel = format!("aeron:udp?endpoint={name}:{}|term-length=64k", port());
            for party in [Party::Java, Party::Rust] {
                Exchange {
                    count: 200,
                    ..Exchange::on(&channel)
                }
                .run((party, from.dir()), (party, to.dir()));
            }
        }
        // A third, Taran driver learns of the second from the first, and all remove it when it has ended.
        let c = named(Kind::Ours, "driver-c", Some(&start));
        for driver in [&a, &b, &c] {
            await_known(driver, 2);
        }
        drop(c);
        for driver in [&a, &b] {
            await_known(driver, 1);
        }
    }
}
