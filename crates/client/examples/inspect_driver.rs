// SPDX-License-Identifier: Apache-2.0
//! Inspection of a driver without connecting to it, and a termination request.
//!
//! Needs a running driver: `cargo run --release -- driver`.

use taran::{Client, ClientBuilder, counter_type};

fn main() -> Result<(), taran::Error> {
    run(&Client::builder())
}

pub(crate) fn run(builder: &ClientBuilder) -> Result<(), taran::Error> {
    let driver = builder.inspect_driver()?;
    println!("{}: process {}", driver.aeron_dir().display(), driver.pid());
    match driver.heartbeat_age() {
        Some(age) if driver.is_active() => println!("active, last heartbeat {age:?} ago"),
        Some(age) => println!("no heartbeat for {age:?}: killed, or not scheduled"),
        None => println!("has shut down"),
    }

    driver.counters().for_each(|counter| {
        if counter.type_id == counter_type::CLIENT_HEARTBEAT {
            println!("{}", counter.label.as_str());
        }
    });
    let errors = driver.for_each_error(0, |error| {
        println!("{} times: {}", error.count, error.text);
    });
    println!("{errors} distinct errors");

    // The driver's termination validator decides on the token; by default it rejects all.
    if std::env::args().any(|argument| argument == "--terminate") {
        driver.request_termination(b"a secret")?;
    }
    Ok(())
}
