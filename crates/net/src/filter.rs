// SPDX-License-Identifier: Apache-2.0
//! A layer that drops the datagrams that a filter rejects.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    LayerCapabilities, LowerLayers, NetError, NetworkLayer, ReceiveBatch, SocketSpec, Transmit,
    TransportLayer,
};

/// Decides which datagrams pass. One filter serves all transports of a network in one direction.
pub trait DatagramFilter: Send + Debug {
    /// Returns true if this datagram passes. A rejected datagram is dropped silently.
    fn admits(&mut self, datagram: &[u8]) -> bool;
}

/// Shared by transports that may be on different threads. A direction without a filter takes no lock.
type Shared = Option<Arc<Mutex<dyn DatagramFilter>>>;

/// A layer whose datagrams pass filters. A test aid: each datagram costs a lock, and runs are split up.
#[derive(Debug)]
pub struct FilterLayer {
    incoming: Shared,
    outgoing: Shared,
}

impl FilterLayer {
    /// Creates the layer. Without a filter it applies to no transport.
    #[must_use]
    pub fn new<I, O>(incoming: Option<I>, outgoing: Option<O>) -> Self
    where
        I: DatagramFilter + 'static,
        O: DatagramFilter + 'static,
    {
        Self {
            incoming: incoming.map(|filter| Arc::new(Mutex::new(filter)) as _),
            outgoing: outgoing.map(|filter| Arc::new(Mutex::new(filter)) as _),
        }
    }
}

impl NetworkLayer for FilterLayer {
    fn layer(&mut self, _spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
        let (incoming, outgoing) = (self.incoming.clone(), self.outgoing.clone());
        let is_needed = incoming.is_some() || outgoing.is_some();
        is_needed.then(|| Box::new(TransportFilter { incoming, outgoing }) as _)
    }
}

/// The filters of one transport.
#[derive(Debug)]
struct TransportFilter {
    incoming: Shared,
    outgoing: Shared,
}

fn lock<'a>(
    filter: &'a Arc<Mutex<dyn DatagramFilter + 'static>>,
) -> MutexGuard<'a, dyn DatagramFilter + 'static> {
    filter.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TransportLayer for TransportFilter {
    fn capabilities(&self) -> LayerCapabilities {
        LayerCapabilities {
            inspects_received: self.incoming.is_some(),
            ..LayerCapabilities::default()
        }
    }

    /// Sends one datagram at a time: a datagram that the filter has seen must be sent or dropped, and not offered to
    /// the filter again.
    fn send(
        &mut self,
        batch: &[Transmit<'_>],
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let Some(filter) = &self.outgoing else {
            return lower.send(batch);
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
                    match lower.send(&[alone]) {
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

    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let count = lower.receive(batch)?;
        let Some(filter) = &self.incoming else {
            return Ok(count);
        };
        if count > 0 {
            let mut filter = lock(filter);
            batch.retain(|datagram| filter.admits(datagram));
        }
        Ok(batch.datagram_count())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use super::*;
    use crate::{AgentRole, LayeredNetwork, Network, SocketNetwork, conformance};

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
        let layer = FilterLayer::new(filter(incoming), filter(outgoing));
        let mut network = LayeredNetwork::with_layer(SocketNetwork::new(), layer);
        let mut receiver = network.open(&SocketSpec::bound(any())).unwrap();
        let peer = receiver.local_address();
        let mut sender = network
            .open(&SocketSpec::bound(any()).connected(peer))
            .unwrap();
        let payload: Vec<u8> = (0..10).flat_map(|n| [n; 8]).collect();
        let run = Transmit::connected(&payload).segmented(8);
        assert_eq!(sender.send(&[run]).unwrap(), payload.len());
        let mut batch = ReceiveBatch::new(16);
        let mut poller = network.poller(AgentRole::Receiver).unwrap();
        poller.set_sources(&[receiver.poll_source()]);
        let mut arrived = Vec::new();
        while !arrived.contains(&9) {
            poller.wait(Duration::from_secs(1));
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
        let layer = FilterLayer::new(Some(AdmitAll), Some(AdmitAll));
        let mut settle = || std::thread::sleep(Duration::from_millis(1));
        conformance::run(
            &mut LayeredNetwork::with_layer(SocketNetwork::new(), layer),
            Ipv4Addr::LOCALHOST.into(),
            &mut settle,
        );
    }
}
