// SPDX-License-Identifier: Apache-2.0
//! Tests of the client with a driver in the same process: behaviour that needs real files, real time, or both
//! conductors on one thread.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

mod invoker;
mod logs;
mod threads;

use std::time::{Duration, Instant};

use taran::{Client, ClientBuilder};
use taran_driver::{DriverContext, MediaDriver};

/// Launches a driver in a directory that no other test uses.
pub(crate) fn driver() -> MediaDriver {
    MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(64 * 1024)).unwrap()
}

pub(crate) fn connect(
    driver: &MediaDriver,
    configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Client {
    let builder = ClientBuilder::with_environment::<&str, &str>([]).aeron_dir(driver.aeron_dir());
    configure(builder).connect().unwrap()
}

/// Waits up to 60 s until a condition is true.
pub(crate) fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited for {what} in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}
