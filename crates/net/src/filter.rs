//! A network decorator that drops the datagrams that a filter rejects.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    BufferLengths, BufferLimits, Capabilities, Interface, NetError, Network, ReceiveBatch,
    SocketSpec, Transmit, Transport,
};

/// Decides which datagrams pass. One filter serves all transports of a network in one direction.
pub trait DatagramFilter: Send + Debug {
    /// Returns true if this datagram passes. A rejected datagram is dropped silently.
    fn admits(&mut self, datagram: &[u8]) -> bool;
}

/// Shared by transports that may be on different threads. A direction without a filter takes no lock.
type Shared = Option<Arc<Mutex<dyn DatagramFilter>>>;

/// A network whose datagrams pass filters. A test aid: each datagram costs a lock, and runs are split up.
#[derive(Debug)]
pub struct Filtered<N> {
    network: N,
    incoming: Shared,
    outgoing: Shared,
}

impl<N: Network> Filtered<N> {
    /// Wraps `network`; a direction without a filter is not changed.
    #[must_use]
    pub fn new<I, O>(network: N, incoming: Option<I>, outgoing: Option<O>) -> Self
    where
        I: DatagramFilter + 'static,
        O: DatagramFilter + 'static,
    {
        Self {
            network,
            incoming: incoming.map(|filter| Arc::new(Mutex::new(filter)) as _),
            outgoing: outgoing.map(|filter| Arc::new(Mutex::new(filter)) as _),
        }
    }
}

impl<N: Network> Network for Filtered<N> {
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        Ok(Box::new(FilteredTransport {
            inner: self.network.open(spec)?,
            incoming: self.incoming.clone(),
            outgoing: self.outgoing.clone(),
        }))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        self.network.buffer_limits()
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        self.network.interfaces()
    }
}

#[derive(Debug)]
struct FilteredTransport {
    inner: Box<dyn Transport>,
    incoming: Shared,
    outgoing: Shared,
}

fn lock<'a>(
    filter: &'a Arc<Mutex<dyn DatagramFilter + 'static>>,
) -> MutexGuard<'a, dyn DatagramFilter + 'static> {
    filter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Transport for FilteredTransport {
    /// Sends one datagram at a time: a datagram that the filter has seen must be sent or dropped, and not offered to
    /// the filter again.
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let Some(filter) = &self.outgoing else {
            return self.inner.send(batch);
        };
        let mut accepted = 0;
        for transmit in batch {
            for datagram in transmit.datagrams() {
                let alone = Transmit {
                    payload: datagram,
                    segment_size: datagram.len(),
                    ..*transmit
                };
                if lock(filter).admits(datagram) {
                    match self.inner.send(&[alone]) {
                        Ok(0) => return Ok(accepted),
                        Ok(_) => {}
                        Err(error) if accepted == 0 => return Err(error),
                        Err(_) => return Ok(accepted),
                    }
                }
                accepted += datagram.len();
            }
        }
        Ok(accepted)
    }

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        let count = self.inner.receive(batch)?;
        let Some(filter) = &self.incoming else {
            return Ok(count);
        };
        if count > 0 {
            let mut filter = lock(filter);
            batch.retain(|datagram| filter.admits(datagram));
        }
        Ok(batch.datagram_count())
    }

    fn connect(&mut self, peer: SocketAddr) -> Result<(), NetError> {
        self.inner.connect(peer)
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.inner.peer()
    }

    fn local_address(&self) -> SocketAddr {
        self.inner.local_address()
    }

    fn raw_fd(&self) -> Option<RawFd> {
        self.inner.raw_fd()
    }

    /// All datagrams pass through a batch, so parts are not supported.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            receives_parts: false,
            ..self.inner.capabilities()
        }
    }

    fn grow_receive_buffer(&mut self, bytes: usize) -> Result<(), NetError> {
        self.inner.grow_receive_buffer(bytes)
    }

    fn buffer_lengths(&self) -> BufferLengths {
        self.inner.buffer_lengths()
    }

    fn overflowed(&self) -> Option<u32> {
        self.inner.overflowed()
    }

    fn multicast_ttl(&self) -> u8 {
        self.inner.multicast_ttl()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::{SocketNetwork, conformance, wait};

    /// Drops every third datagram.
    #[derive(Debug, Default)]
    struct DropEveryThird(usize);

    impl DatagramFilter for DropEveryThird {
        fn admits(&mut self, _datagram: &[u8]) -> bool {
            self.0 += 1;
            !self.0.is_multiple_of(3)
        }
    }

    #[derive(Debug)]
    struct AdmitAll;

    impl DatagramFilter for AdmitAll {
        fn admits(&mut self, _datagram: &[u8]) -> bool {
            true
        }
    }

    fn any() -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    }

    /// Sends ten datagrams as one batch; returns the first byte of each that arrives.
    fn exchange(incoming: bool, outgoing: bool) -> Vec<u8> {
        let filter = |wanted: bool| wanted.then(DropEveryThird::default);
        let mut network = Filtered::new(SocketNetwork::new(), filter(incoming), filter(outgoing));
        let mut receiver = network.open(&SocketSpec::bound(any())).unwrap();
        let peer = receiver.local_address();
        let mut sender = network
            .open(&SocketSpec::bound(any()).connected(peer))
            .unwrap();
        let payload: Vec<u8> = (0..10).flat_map(|n| [n; 8]).collect();
        let run = Transmit::connected(&payload).segmented(8);
        assert_eq!(sender.send(&[run]).unwrap(), payload.len());
        let mut batch = ReceiveBatch::new(16);
        let mut arrived = Vec::new();
        while !arrived.contains(&9) {
            wait(&[receiver.raw_fd().unwrap()], Duration::from_secs(1)).unwrap();
            receiver.receive(&mut batch).unwrap();
            arrived.extend(batch.datagrams().map(|datagram| datagram.payload[0]));
        }
        arrived
    }

    #[test]
    fn filter_drops_rejected_datagrams_in_its_direction() {
        assert_eq!(exchange(false, false), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(exchange(true, false), [0, 1, 3, 4, 6, 7, 9]);
        assert_eq!(exchange(false, true), [0, 1, 3, 4, 6, 7, 9]);
    }

    #[test]
    fn filter_that_admits_everything_conforms() {
        let network = SocketNetwork::new();
        let mut settle = || std::thread::sleep(Duration::from_millis(1));
        conformance::run(
            &mut Filtered::new(network, Some(AdmitAll), Some(AdmitAll)),
            Ipv4Addr::LOCALHOST.into(),
            &mut settle,
        );
    }
}
