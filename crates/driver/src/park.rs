//! Sockets as a whole: waiting until one of them has something, and asking whether one has.

use std::os::fd::RawFd;
use std::thread;
use std::time::Duration;

/// So many sockets are looked at one by one; of more, the system is first asked whether any has something.
const FEW: usize = 5;

/// How much longer than others an agent parks that has nothing to look at: waking up is all that it costs.
pub(crate) const REST: u32 = 100;
/// The same for a conductor without clients, whom the first one cannot wake.
pub(crate) const WATCH: u32 = 8;

/// Waits until one of the sockets is readable, for at most `max`. Without sockets, or where the system cannot wait for
/// them, it is the thread's own park.
pub(crate) fn wait_for_any(sockets: &[RawFd], max: Duration) {
    if sockets.is_empty() || taran_net::wait(sockets, max).is_err() {
        thread::park_timeout(max);
    }
}

/// False if a look at each of `count` transports would find nothing. `sockets` are those of them that have a descriptor.
pub(crate) fn may_have_arrived(sockets: &[RawFd], count: usize) -> bool {
    count <= FEW
        || sockets.len() < count
        || taran_net::wait(sockets, Duration::ZERO).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use taran_net::{Network, SocketNetwork, SocketSpec, Transmit, Transport};

    use super::*;

    #[test]
    fn many_quiet_sockets_cost_one_question() {
        let mut network = SocketNetwork::new();
        let any = SocketSpec::bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut transports: Vec<Box<dyn Transport>> =
            (0..=FEW).map(|_| network.open(&any).unwrap()).collect();
        let fds: Vec<RawFd> = transports
            .iter()
            .filter_map(|transport| transport.raw_fd())
            .collect();
        let count = transports.len();
        assert!(!may_have_arrived(&fds, count));
        assert!(may_have_arrived(&fds[1..], count), "one has no descriptor");
        assert!(
            may_have_arrived(&fds[..FEW], FEW),
            "few are looked at anyway"
        );
        let to = transports[3].local_address();
        assert_eq!(
            transports[0].send(&[Transmit::to(to, b"hello")]).unwrap(),
            5
        );
        wait_for_any(&fds, Duration::from_secs(10));
        assert!(may_have_arrived(&fds, count));
    }
}
