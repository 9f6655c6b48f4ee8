// SPDX-License-Identifier: Apache-2.0
//! Tests of the sender in virtual time, on a fake socket.

mod coalescing;
mod control;
mod control_backoff;
mod data;
mod destinations;
mod forged_naks;
mod idle;
mod lifecycle;
mod many_streams;
mod responses;
mod setup;

use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::DutyCycleTracker;
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::queue;
use taran_core::sync::Ordering;
use taran_net::UnconditionalPoller;
use taran_protocol::frame::{DataHeader, FrameHeader, FrameType, IntoBytes, Nak, StatusMessage};
use taran_protocol::log::{LogBuffers, LogKind};
use taran_protocol::position::{TermGeometry, align32};

use super::*;
use crate::boundary::{
    Destination, EndpointId, PublicationId, PublicationShared, RetransmitSpec, SendEndpointSpec,
    SenderFlowControlSpec, SenderPublicationSpec,
};
use crate::testing::*;

const ENDPOINT: EndpointId = EndpointId(1);
const PUBLICATION: PublicationId = PublicationId(2);

/// Sender with one publication that starts at position 65,536 + 192, as in the worked examples.
struct SenderFixture {
    sender: Sender,
    commands: queue::Sender<SenderCommand>,
    events: queue::Receiver<ConductorEvent>,
    counters: SenderCounters,
    errors: ErrorHandler,
    socket: FakeSocket,
    log: LogBuffers,
    shared: Arc<PublicationShared>,
    position: Counter,
    limit: Counter,
    back_pressure: Counter,
    naks: Counter,
    tail: i64,
    now_ns: i64,
}

const START: i64 = 65_536 + 192;

impl SenderFixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut SenderPublicationSpec)) -> Self {
        Self::sending_to(Destination::Connected, change)
    }

    fn with_endpoint(change: impl FnOnce(&mut SendEndpointSpec)) -> Self {
        Self::with_specs(Destination::Connected, change, |_| {})
    }

    fn sending_to(
        destination: Destination,
        change: impl FnOnce(&mut SenderPublicationSpec),
    ) -> Self {
        Self::with_specs(destination, |_| {}, change)
    }

    fn with_specs(
        destination: Destination,
        change_endpoint: impl FnOnce(&mut SendEndpointSpec),
        change: impl FnOnce(&mut SenderPublicationSpec),
    ) -> Self {
        let (commands, from_conductor) = queue::spsc(16);
        let (to_conductor, events) = queue::spsc(4);
        let counters = SenderCounters::new(|_| Counter::detached());
        let errors = ErrorHandler::detached();
        let sender = Sender::new(SenderSpec {
            poller: Box::new(UnconditionalPoller::default()),
            commands: from_conductor,
            events: to_conductor,
            counters: counters.clone(),
            cycle: DutyCycleTracker::new(
                Counter::detached(),
                Counter::detached(),
                Duration::from_millis(100),
            ),
            errors: errors.clone(),
            status_poll_ratio: 6,
            status_poll_interval_ns: 100 * MS,
            re_resolution_check_interval_ns: 1,
        });
        let mut fixture = Self {
            sender,
            commands,
            events,
            counters,
            errors,
            socket: FakeSocket::default(),
            log: log(LogKind::Exclusive, START),
            shared: Arc::new(PublicationShared::new(START)),
            position: Counter::detached(),
            limit: Counter::detached(),
            back_pressure: Counter::detached(),
            naks: Counter::detached(),
            tail: START,
            now_ns: 5_000 * MS,
        };
        fixture.position.set(START);
        fixture.limit.set(START);
        let mut endpoint = SendEndpointSpec {
            id: ENDPOINT,
            channel: "aeron:udp?endpoint=10.0.0.7:4040".into(),
            data: Box::new(fixture.socket.clone()),
            control: None,
            destination,
            re_resolution_timeout_ns: None,
            seed: 1,
        };
        change_endpoint(&mut endpoint);
        let endpoint = SendEndpoint::new(endpoint);
        fixture.command(SenderCommand::AddEndpoint(Box::new(endpoint)));
        let mut spec = fixture.publication_spec();
        change(&mut spec);
        fixture.command(SenderCommand::AddPublication(Box::new(
            SenderPublication::new(spec),
        )));
        fixture.sender.take_command(at(fixture.now_ns));
        fixture.sender.take_command(at(fixture.now_ns));
        fixture
    }

    fn publication_spec(&self) -> SenderPublicationSpec {
        SenderPublicationSpec {
            id: PUBLICATION,
            endpoint: ENDPOINT,
            session_id: SESSION,
            stream_id: STREAM,
            log: self.log.clone(),
            start_position: START,
            mtu: 1408,
            ttl: 0,
            is_group: false,
            wants_response: false,
            signals_end_of_stream: true,
            spies_simulate_connection: false,
            flow_control: SenderFlowControlSpec::Max {
                retransmit_window_multiple: 16,
            },
            retransmit: RetransmitSpec {
                max_actions: 1,
                delay_ns: 0,
                linger_ns: 10 * MS,
            },
            connection_timeout_ns: 5_000 * MS,
            send_timestamp: None,
            max_datagrams_per_send: None,
            sender_position: self.position.clone(),
            sender_limit: self.limit.clone(),
            back_pressure_events: self.back_pressure.clone(),
            naks_received: self.naks.clone(),
            log_events: stream_log(),
            shared: Arc::clone(&self.shared),
        }
    }

    fn command(&mut self, command: SenderCommand) {
        self.commands.try_send(command).unwrap();
    }

    /// Runs a duty cycle now.
    fn cycle(&mut self) -> usize {
        self.sender.do_work(at(self.now_ns))
    }

    /// Runs a duty cycle `nanos` later.
    fn cycle_after(&mut self, nanos: i64) -> usize {
        self.now_ns += nanos;
        self.cycle()
    }

    /// Returns what one duty cycle sends.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        self.socket.sent();
        self.cycle();
        self.socket.sent()
    }

    /// Returns what is sent in reply to the frames that have arrived.
    fn replies(&mut self) -> Vec<Vec<u8>> {
        self.cycle();
        self.sent()
    }

    /// A client commits a frame; a negative length is padding.
    fn publish(&mut self, length: i32) {
        let geometry = self.log.geometry();
        let frame_type = if length < 0 {
            FrameType::PAD
        } else {
            FrameType::DATA
        };
        let header = DataHeader {
            header: FrameHeader::new(0, DataHeader::UNFRAGMENTED, frame_type),
            ..DataHeader::heartbeat(
                0,
                SESSION,
                STREAM,
                geometry.term_id(self.tail),
                geometry.term_offset(self.tail),
            )
        };
        let term = self.log.term_at(self.tail);
        let offset = geometry.term_offset(self.tail) as usize;
        term.write(offset, header.as_bytes());
        for at in 32..length.max(32) as usize {
            term.write(offset + at, &[at as u8]);
        }
        term.atomic_i32(offset)
            .store(length.abs(), Ordering::Release);
        self.tail += i64::from(align32(length.abs()));
        move_tail(&self.log, self.tail);
    }

    /// Returns the bytes of the log from a position on.
    fn log_bytes(&self, position: i64, length: usize) -> Vec<u8> {
        let offset = self.log.geometry().term_offset(position) as usize;
        self.log.term_at(position).bytes(offset, length).to_vec()
    }

    /// A status message arrives. It is received in the next duty cycle.
    fn status(&mut self, position: i64, window: i32) {
        self.status_of(RECEIVER, 0, position, window);
    }

    fn status_of(&mut self, receiver_id: i64, flags: u8, position: i64, window: i32) {
        let message = self.status_message(receiver_id, flags, position, window);
        self.socket.arrive(message.as_bytes());
    }

    fn status_message(
        &self,
        receiver_id: i64,
        flags: u8,
        position: i64,
        window: i32,
    ) -> StatusMessage {
        let geometry = self.log.geometry();
        StatusMessage {
            header: StatusMessage::header(flags),
            session_id: SESSION.into(),
            stream_id: STREAM.into(),
            consumption_term_id: geometry.term_id(position).into(),
            consumption_term_offset: geometry.term_offset(position).into(),
            receiver_window: window.into(),
            receiver_id: receiver_id.into(),
        }
    }

    /// Returns a connected, idle publication with a receiver of this window.
    fn connected(window: i32) -> Self {
        let mut fixture = Self::new();
        fixture.connect(window);
        fixture
    }

    fn connect(&mut self, window: i32) {
        self.cycle();
        self.status(START, window);
        self.cycle();
        self.cycle();
        self.socket.sent();
    }
}

/// Returns a NAK for `length` bytes at `position`.
fn nak(session_id: i32, stream_id: i32, position: i64, length: i32) -> Nak {
    let geometry = TermGeometry::new(INITIAL_TERM, TERM_LENGTH).unwrap();
    Nak {
        header: Nak::header(),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        term_id: geometry.term_id(position).into(),
        term_offset: geometry.term_offset(position).into(),
        length: length.into(),
    }
}
