// SPDX-License-Identifier: Apache-2.0
//! Clients, socket addresses, and waiting.

use std::net::SocketAddrV4;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, ConnectError};

use crate::own_address::own_address;

/// Time limit for any operation of a test.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Connects a client to the driver in `directory`.
#[track_caller]
pub(crate) fn connect(directory: &Path) -> Client {
    match connect_within(directory, TIMEOUT) {
        Ok(client) => client,
        Err(error) => panic!("{error}"),
    }
}

/// The same, with a driver timeout.
pub(crate) fn connect_within(directory: &Path, timeout: Duration) -> Result<Client, ConnectError> {
    Client::builder()
        .aeron_dir(directory)
        .driver_timeout(timeout)
        .connect()
}

/// Returns the error of a client that cannot connect within `timeout`.
#[track_caller]
pub(crate) fn connect_error(directory: &Path, timeout: Duration) -> ConnectError {
    match connect_within(directory, timeout) {
        Ok(_) => panic!("connected to {}", directory.display()),
        Err(error) => error,
    }
}

/// Waits until the condition is true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting for: {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until `get` returns a value.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let mut got = None;
    wait_until(what, || {
        got = get();
        got.is_some()
    });
    got.expect("the wait has ended")
}

/// Returns an address that is unique to this test, with a port below the ephemeral port range.
pub(crate) fn own_socket_address() -> SocketAddrV4 {
    const PORT: u16 = 9_458;
    SocketAddrV4::new(own_address(), PORT)
}
