//! Readiness of a set of sockets: waiting for it, and testing for it with one system call.

use std::os::fd::RawFd;
use std::thread;
use std::time::Duration;

/// Up to this number sockets are polled one by one. Of more, the system is first asked whether any is readable.
const SMALL_SET: usize = 5;

/// Park multiplier of a sender or receiver without endpoints: it only delays waking up.
pub(crate) const NO_ENDPOINTS_MULTIPLIER: u32 = 100;
/// Park multiplier of a conductor without clients: the first client's command cannot wake it.
pub(crate) const NO_CLIENTS_MULTIPLIER: u32 = 8;

/// Waits until a socket is readable, for at most `max`. Parks the thread if there are no sockets, or if the system
/// cannot wait for them.
pub(crate) fn wait_for_any(sockets: &[RawFd], max: Duration) {
    if sockets.is_empty() || taran_net::wait(sockets, max).is_err() {
        thread::park_timeout(max);
    }
}

/// Returns false if polling each of `count` transports would find nothing. `sockets` are the descriptors of the
/// transports that have one.
pub(crate) fn any_may_be_readable(sockets: &[RawFd], count: usize) -> bool {
    count <= SMALL_SET
        || sockets.len() < count
        || taran_net::wait(sockets, Duration::ZERO).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use taran_net::{Network, SocketNetwork, SocketSpec, Transmit, Transport};

    use super::*;

    #[test]
    fn any_may_be_readable_with_many_quiet_sockets_is_false() {
        let mut network = SocketNetwork::new();
        let any = SocketSpec::bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut transports: Vec<Box<dyn Transport>> = (0..=SMALL_SET)
            .map(|_| network.open(&any).unwrap())
            .collect();
        let fds: Vec<RawFd> = transports
            .iter()
            .filter_map(|transport| transport.raw_fd())
            .collect();
        let count = transports.len();
        assert!(!any_may_be_readable(&fds, count));
        assert!(
            any_may_be_readable(&fds[1..], count),
            "one has no descriptor"
        );
        assert!(
            any_may_be_readable(&fds[..SMALL_SET], SMALL_SET),
            "a small set is polled anyway"
        );
        let to = transports[3].local_address();
        assert_eq!(
            transports[0].send(&[Transmit::to(to, b"hello")]).unwrap(),
            5
        );
        wait_for_any(&fds, Duration::from_secs(10));
        assert!(any_may_be_readable(&fds, count));
    }
}
