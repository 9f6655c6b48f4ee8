// SPDX-License-Identifier: Apache-2.0
//! Network layer that seals and opens the datagrams of secured sockets (docs/spec/transport-security.md §5.2).

use std::fmt;
use std::sync::{Arc, Mutex};

use taran_net::{
    AgentRole, LayerCapabilities, LowerLayers, NetError, NetworkLayer, ReceiveBatch, SocketSpec,
    Transmit, TransportLayer,
};
use taran_secure::frame::SEALED_OVERHEAD;

use super::keeper_sender::lock;
use super::port_layer::PortLayer;
use super::registry::{Decision, Registry};

/// Layer of all sockets of a driver with transport security.
pub(crate) struct SecuredNetwork {
    pub(super) registry: Arc<Mutex<Registry>>,
}

impl fmt::Debug for SecuredNetwork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SecuredNetwork")
            .finish_non_exhaustive()
    }
}

impl NetworkLayer for SecuredNetwork {
    fn layer(&mut self, spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
        let decision = lock(&self.registry).of(spec.agent, spec.tag);
        match (decision, spec.agent) {
            (Some(Decision::Plain), _) => None,
            (Some(Decision::Sender(port)), AgentRole::Sender) => {
                Some(Box::new(PortLayer::new(port)))
            }
            (Some(Decision::Receiver(port)), AgentRole::Receiver) => {
                Some(Box::new(PortLayer::new(port)))
            }
            (Some(Decision::Resolver(port)), AgentRole::Conductor) => {
                Some(Box::new(PortLayer::new(port)))
            }
            _ => Some(Box::new(Undecided)),
        }
    }
}

/// Returns what the layer of a secured socket does.
pub(super) const fn capabilities() -> LayerCapabilities {
    // Messages of the conductor make datagrams to send and frames to deliver.
    LayerCapabilities::NONE
        .with_holding()
        .with_transformation(SEALED_OVERHEAD)
}

/// Layer of a socket that nothing was decided about: it sends and delivers nothing.
#[derive(Debug)]
struct Undecided;

impl TransportLayer for Undecided {
    fn capabilities(&self) -> LayerCapabilities {
        capabilities()
    }

    fn send(
        &mut self,
        _batch: &[Transmit<'_>],
        _lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        Ok(0)
    }

    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        lower.receive(batch)?;
        batch.clear();
        Ok(0)
    }
}
