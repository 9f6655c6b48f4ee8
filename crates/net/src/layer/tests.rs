// SPDX-License-Identifier: Apache-2.0
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use super::*;
use crate::{Arrivals, SocketNetwork};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn any() -> SocketAddr {
    SocketAddr::new(LOCALHOST, 0)
}

/// Records the calls that pass it. Applies to transports that may use offload.
#[derive(Clone, Debug)]
struct Recorder {
    name: &'static str,
    calls: Arc<Mutex<Vec<String>>>,
    capabilities: LayerCapabilities,
}

impl Recorder {
    fn record(&self, call: &str) {
        self.calls
            .lock()
            .unwrap()
            .push(format!("{} {call}", self.name));
    }
}

impl NetworkLayer for Recorder {
    fn layer(&mut self, spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
        spec.offload.then(|| Box::new(self.clone()) as _)
    }
}

impl TransportLayer for Recorder {
    fn capabilities(&self) -> LayerCapabilities {
        self.capabilities
    }

    fn send(
        &mut self,
        batch: &[Transmit<'_>],
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        self.record("send");
        lower.send(batch)
    }

    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let count = lower.receive(batch)?;
        self.record("received");
        Ok(count)
    }
}

/// Two recording layers, `upper` and `lower`, on top of sockets, and their calls.
fn recorded(
    capabilities: LayerCapabilities,
) -> (LayeredNetwork<SocketNetwork>, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::default();
    let layer = |name| -> Box<dyn NetworkLayer> {
        Box::new(Recorder {
            name,
            calls: Arc::clone(&calls),
            capabilities,
        })
    };
    let layers = vec![layer("upper"), layer("lower")];
    (LayeredNetwork::new(SocketNetwork::new(), layers), calls)
}

#[test]
fn layers_are_passed_in_order_of_the_list() {
    let (mut network, calls) = recorded(LayerCapabilities::default());
    let mut transport = network.open(&SocketSpec::bound(any())).unwrap();
    let own = transport.local_address();
    transport.send(&[Transmit::to(own, b"frame")]).unwrap();
    transport.receive(&mut ReceiveBatch::new(1)).unwrap();
    assert_eq!(
        *calls.lock().unwrap(),
        [
            "upper send",
            "lower send",
            "lower received",
            "upper received"
        ]
    );
}

#[test]
fn transport_without_layers_is_that_of_the_network_below() {
    let (mut network, calls) = recorded(LayerCapabilities::default());
    let spec = SocketSpec {
        offload: false,
        ..SocketSpec::bound(any())
    };
    let mut transport = network.open(&spec).unwrap();
    assert!(
        format!("{transport:?}").starts_with("SocketTransport"),
        "{transport:?}"
    );
    let own = transport.local_address();
    transport.send(&[Transmit::to(own, b"frame")]).unwrap();
    assert!(calls.lock().unwrap().is_empty());
}

#[test]
fn capabilities_combine_those_of_all_layers() {
    let of_socket = SocketNetwork::new()
        .open(&SocketSpec::bound(any()))
        .unwrap()
        .capabilities();
    let with = |layer| {
        let (mut network, _) = recorded(layer);
        let transport = network.open(&SocketSpec::bound(any())).unwrap();
        transport.capabilities()
    };
    assert_eq!(with(LayerCapabilities::default()), of_socket);
    let inspecting = with(LayerCapabilities {
        inspects_received: true,
        ..LayerCapabilities::default()
    });
    assert_eq!(
        inspecting,
        Capabilities {
            receives_parts: false,
            ..of_socket
        }
    );
    let expanding = with(LayerCapabilities {
        inspects_received: true,
        holds_received: false,
        transforms: true,
        expansion: 20,
    });
    assert_eq!(
        expanding,
        Capabilities {
            receives_parts: false,
            transforms: true,
            expansion: 40,
            max_datagram: of_socket.max_datagram - 40,
            ..of_socket
        }
    );
}

#[test]
fn inspected_datagrams_are_not_received_in_parts() {
    for inspects_received in [false, true] {
        let (mut network, _) = recorded(LayerCapabilities {
            inspects_received,
            ..LayerCapabilities::default()
        });
        let mut transport = network.open(&SocketSpec::bound(any())).unwrap();
        let own = transport.local_address();
        transport.send(&[Transmit::to(own, b"frame")]).unwrap();
        let received = transport.receive_parts(&mut [0; 32], &mut vec![0; 65_536]);
        assert_eq!(received.unwrap().is_some(), !inspects_received);
    }
}

#[test]
fn transport_whose_layer_holds_datagrams_is_always_ready() {
    for holds_received in [false, true] {
        let (mut network, _) = recorded(LayerCapabilities {
            holds_received,
            ..LayerCapabilities::default()
        });
        let transport = network.open(&SocketSpec::bound(any())).unwrap();
        let source = transport.poll_source();
        assert_eq!(source.is_always_ready, holds_received);
        assert!(matches!(source.arrivals, Arrivals::Descriptor(_)));
    }
}

#[test]
fn written_datagrams_pass_the_layers_below() {
    /// Sends by writing.
    #[derive(Debug)]
    struct Writer(TransmitScratch);

    impl TransportLayer for Writer {
        fn send(
            &mut self,
            batch: &[Transmit<'_>],
            lower: &mut LowerLayers<'_>,
        ) -> Result<usize, NetError> {
            let datagrams: Vec<_> = batch[0].datagrams().collect();
            lower.send_with(batch[0].expanded(0), &mut self.0, &mut |index, memory| {
                memory.copy_from_slice(datagrams[index]);
            })
        }
    }

    #[derive(Debug)]
    struct Writers;

    impl NetworkLayer for Writers {
        fn layer(&mut self, _spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
            Some(Box::new(Writer(TransmitScratch::new())))
        }
    }

    let (network, calls) = recorded(LayerCapabilities::default());
    let mut network = LayeredNetwork::with_layer(network, Writers);
    let mut transport = network.open(&SocketSpec::bound(any())).unwrap();
    let own = transport.local_address();
    let run = Transmit::to(own, b"onetwo").segmented(3);
    assert_eq!(transport.send(&[run]).unwrap(), 6);
    assert_eq!(*calls.lock().unwrap(), ["upper send", "lower send"]);
    let mut batch = ReceiveBatch::new(2);
    let mut arrived = Vec::new();
    while arrived.len() < 2 {
        transport.receive(&mut batch).unwrap();
        arrived.extend(batch.datagrams().map(|datagram| datagram.payload.to_vec()));
    }
    assert_eq!(arrived, [b"one", b"two"]);
}
