//! Network decorator that logs frames between the driver and its sockets. Present only if frame events are enabled.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use taran_net::{
    BufferLengths, BufferLimits, Capabilities, Interface, NetError, Network, ReceiveBatch,
    SocketSpec, Transmit, Transport,
};
use taran_protocol::event::{EventCode, EventSet};
use taran_protocol::frame::{Frame, FrameHeader, FrameType, FromBytes};

use super::{EventLog, FieldValue};

/// Network whose transports log frames.
#[derive(Debug)]
pub(crate) struct LoggedNetwork {
    network: Box<dyn Network>,
    log: EventLog,
}

#[derive(Debug)]
struct LoggedTransport {
    inner: Box<dyn Transport>,
    log: EventLog,
}

impl LoggedNetwork {
    /// Wraps `network` in a logging decorator if any frame event is enabled.
    pub(crate) fn wrap(network: Box<dyn Network>, log: &EventLog) -> Box<dyn Network> {
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
        if others == log.enabled() {
            return network;
        }
        let log = log.clone();
        Box::new(Self { network, log })
    }
}

impl Network for LoggedNetwork {
    fn open(&mut self, spec: &SocketSpec) -> Result<Box<dyn Transport>, NetError> {
        let inner = self.network.open(spec)?;
        let log = self.log.clone();
        Ok(Box::new(LoggedTransport { inner, log }))
    }

    fn buffer_limits(&mut self) -> Result<BufferLimits, NetError> {
        self.network.buffer_limits()
    }

    fn interfaces(&mut self) -> Result<Vec<Interface>, NetError> {
        self.network.interfaces()
    }
}

impl LoggedTransport {
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

impl Transport for LoggedTransport {
    fn send(&mut self, batch: &[Transmit<'_>]) -> Result<usize, NetError> {
        let accepted = self.inner.send(batch)?;
        let mut left = accepted;
        for transmit in batch {
            let peer = transmit.destination.or_else(|| self.inner.peer());
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

    fn receive(&mut self, batch: &mut ReceiveBatch) -> Result<usize, NetError> {
        let count = self.inner.receive(batch)?;
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

    /// Direct receive is disabled: all datagrams go through a batch.
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
