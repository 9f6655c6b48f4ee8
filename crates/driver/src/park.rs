//! Waiting where datagrams end the wait.

use std::os::fd::RawFd;
use std::thread;
use std::time::Duration;

/// Waits until one of the sockets is readable, for at most `max`. Without sockets, or where the system cannot wait for
/// them, it is the thread's own park.
pub(crate) fn wait_for_any(sockets: &[RawFd], max: Duration) {
    if sockets.is_empty() || taran_net::wait(sockets, max).is_err() {
        thread::park_timeout(max);
    }
}
