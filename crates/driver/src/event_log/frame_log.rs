// SPDX-License-Identifier: Apache-2.0
//! Network layer that logs frames between the driver and its sockets. Present only if frame events are enabled.

use std::net::SocketAddr;

use taran_net::{
    LayerCapabilities, LowerLayers, NetError, NetworkLayer, ReceiveBatch, SocketSpec, Transmit,
    TransportLayer,
};
use taran_protocol::event::{EventCode, EventSet};
use taran_protocol::frame::{Frame, FrameHeader, FrameType, FromBytes};

use super::{EventLog, FieldValue};

/// Layer that logs the frames of all transports, or of one.
#[derive(Clone, Debug)]
pub(crate) struct FrameLog {
    log: EventLog,
}

impl FrameLog {
    /// Returns the layer if any frame event is enabled.
    pub(crate) fn new(log: &EventLog) -> Option<Self> {
        let frame_events = [
            EventCode::FrameIn,
            EventCode::FrameOut,
            EventCode::NakSent,
            EventCode::NakReceived,
        ];
        let others = log.enabled().without(
            frame_events
                .into_iter()
                .fold(EventSet::NONE, |set, event| set.with(event.into())),
        );
        (others != log.enabled()).then(|| Self { log: log.clone() })
    }

    fn log_frame(
        &self,
        event: EventCode,
        nak_event: EventCode,
        peer: Option<SocketAddr>,
        frame: &[u8],
    ) {
        self.log.log(
            event,
            &[FieldValue::Address(peer), FieldValue::Frame(frame)],
        );
        if self.log.is_enabled(nak_event)
            && is_nak(frame)
            && let Ok(Frame::Nak(nak)) = Frame::parse(frame)
        {
            self.log.log(
                nak_event,
                &[
                    FieldValue::Address(peer),
                    FieldValue::Int(nak.session_id.get()),
                    FieldValue::Int(nak.stream_id.get()),
                    FieldValue::Int(nak.term_id.get()),
                    FieldValue::Int(nak.term_offset.get()),
                    FieldValue::Int(nak.length.get()),
                ],
            );
        }
    }
}

fn is_nak(frame: &[u8]) -> bool {
    FrameHeader::ref_from_prefix(frame)
        .is_ok_and(|(header, _)| header.frame_type() == FrameType::NAK)
}

impl NetworkLayer for FrameLog {
    fn layer(&mut self, _spec: &SocketSpec) -> Option<Box<dyn TransportLayer>> {
        Some(Box::new(self.clone()))
    }
}

impl TransportLayer for FrameLog {
    fn capabilities(&self) -> LayerCapabilities {
        LayerCapabilities::default().with_inspection()
    }

    fn send(
        &mut self,
        batch: &[Transmit<'_>],
        lower: &mut LowerLayers<'_>,
    ) -> Result<usize, NetError> {
        let accepted = lower.send(batch)?;
        let mut left = accepted;
        for transmit in batch {
            let peer = transmit.destination.or_else(|| lower.peer());
            for datagram in transmit.datagrams() {
                if left < datagram.len() || left == 0 {
                    return Ok(accepted);
                }
                left -= datagram.len();
                self.log_frame(EventCode::FrameOut, EventCode::NakSent, peer, datagram);
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
        if count > 0 {
            for datagram in batch.datagrams() {
                let source = Some(datagram.source);
                self.log_frame(
                    EventCode::FrameIn,
                    EventCode::NakReceived,
                    source,
                    datagram.payload,
                );
            }
        }
        Ok(count)
    }
}
