//! Clients of a driver, addresses that no other test has, and waiting.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran::{Client, ConnectError, Context};

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

/// A loopback address that no other test of this machine has, so that every port of it is free.
pub(crate) fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number < 255, "no address is left");
    Ipv4Addr::new(127, 64 | (high & 0x3f), low, number)
}

/// The same with a port, below those that the system gives to sockets that name none.
pub(crate) fn own_socket_address() -> SocketAddrV4 {
    const PORT: u16 = 9_458;
    SocketAddrV4::new(own_address(), PORT)
}
