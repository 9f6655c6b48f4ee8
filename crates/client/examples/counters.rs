// SPDX-License-Identifier: Apache-2.0
//! Counters: 64-bit values that every process on the machine can read.
//!
//! Needs a running driver: `cargo run --release -- driver`. Watch with `cargo run -- stat`.

use anyhow::Context;
use taran::{Client, ClientBuilder};

/// Type ids from 1000 are for applications.
const ORDERS: i32 = 1_101;

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;

    // Handlers are called for the counters of all clients.
    let watching = client.add_unavailable_counter_handler(|counters, registration_id, id| {
        let label = counters.label(id);
        let label = label.as_ref().map_or("a counter", |label| label.as_str());
        println!("{label} ({registration_id}) is about to be freed");
    })?;

    // A counter is freed when it is closed, or with its client. Tools show its key and label.
    let orders = client.add_counter(ORDERS, b"desk 7", "orders")?;
    orders.increment();
    orders.add(41);
    orders.append_label(" of desk 7");

    // Any process can find the counter by its type and registration id.
    let counters = client.counters();
    let found = counters
        .find_by_type_and_registration(ORDERS, orders.registration_id())
        .context("the counter is gone")?;
    println!("{:?} = {:?}", counters.label(found), counters.value(found));

    // A static counter outlives its client. A second add with the same type and registration id finds it.
    let total = client.add_static_counter(ORDERS, b"", "all orders", 77)?;
    let same = client.add_static_counter(ORDERS, b"", "all orders", 77)?;
    total.add(orders.get());
    assert_eq!((same.id(), same.get()), (total.id(), total.get()));

    client.print_counters(&mut std::io::stdout())?;
    if let Some(freed) = orders.async_close()? {
        freed.wait()?;
    }
    client.remove_handler(watching);
    Ok(())
}
