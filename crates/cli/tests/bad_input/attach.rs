//! Clients of a driver, addresses with a port, and waiting.

use std::net::SocketAddrV4;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, ConnectError, Context};

use crate::own_address::own_address;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(1);

/// A client of the driver in `directory`.
#[track_caller]
pub(crate) fn connect(directory: &Path) -> Client {
    match connect_within(directory, PATIENCE) {
        Ok(client) => client,
        Err(error) => panic!("{error}"),
    }
}

/// The same, with a driver timeout.
pub(crate) fn connect_within(directory: &Path, timeout: Duration) -> Result<Client, ConnectError> {
    Context::new()
        .aeron_dir(directory)
        .driver_timeout(timeout)
        .connect()
}

/// Why there is no client, when `timeout` is all the time that a driver has to show itself.
#[track_caller]
pub(crate) fn refuse(directory: &Path, timeout: Duration) -> ConnectError {
    match connect_within(directory, timeout) {
        Ok(_) => panic!("connected to {}", directory.display()),
        Err(error) => error,
    }
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(STEP);
    }
}

/// Waits until there is something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let mut got = None;
    wait_until(what, || {
        got = get();
        got.is_some()
    });
    got.expect("waited until it was there")
}

/// An address of its own with a port, below those that the system gives to sockets that name none.
pub(crate) fn own_socket_address() -> SocketAddrV4 {
    const PORT: u16 = 9_458;
    SocketAddrV4::new(own_address(), PORT)
}
