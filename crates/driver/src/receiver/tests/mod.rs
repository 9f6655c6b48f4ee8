// SPDX-License-Identifier: Apache-2.0
//! Receiver tests in virtual time; the test holds the other end of the socket.

mod batches;
mod direct_receive;
mod feedback;
mod hostile;
mod idle;
mod insertion;
mod lifecycle;
mod loss;
mod many_images;
mod receive_buffer;
mod scan_limits;
mod session;
mod window_throttle;

use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::DutyCycleTracker;
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::Region;
use taran_core::queue;
use taran_net::UnconditionalPoller;
use taran_protocol::frame::{DataHeader, FrameHeader, FrameType, IntoBytes, Setup};
use taran_protocol::log::{LogBuffers, LogKind, LogSpec};
use taran_protocol::position::{TermGeometry, align32};

use super::*;
use crate::boundary::{
    CreateImage, EndpointId, ImageId, ImageShared, ImageState, NakDelaySpec, ReceiveEndpointSpec,
    ReceiveTransportSpec, ReceiverImageSpec, SubscriberPosition, TransportId,
};
use crate::congestion::StaticWindow;
use crate::testing::*;

const ENDPOINT: EndpointId = EndpointId(1);
const IMAGE: ImageId = ImageId(5);
const WINDOW: i32 = 32_768;

/// Join position, as in the worked examples.
const START: i64 = 65_536 + 192;

/// Receiver with one endpoint and a subscription for all sessions of the stream.
struct ReceiverFixture {
    receiver: Receiver,
    commands: queue::Sender<ReceiverCommand>,
    events: queue::Receiver<ConductorEvent>,
    counters: ReceiverCounters,
    errors: ErrorHandler,
    losses: Region,
    socket: FakeSocket,
    log: LogBuffers,
    shared: Arc<ImageShared>,
    high_water_mark: Counter,
    rebuild_position: Counter,
    naks: Counter,
    subscriber: Counter,
    now_ns: i64,
}

impl ReceiverFixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ReceiveEndpointSpec)) -> Self {
        let (commands, from_conductor) = queue::spsc(16);
        let (to_conductor, events) = queue::spsc(4);
        let counters = ReceiverCounters::new(|_| Counter::detached());
        let errors = ErrorHandler::detached();
        let losses = Region::anonymous(4096).unwrap();
        let receiver = Receiver::new(ReceiverSpec {
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
            losses: LossReport::open(losses.clone()),
            re_resolution_check_interval_ns: 1,
        });
        let now_ns = 5_000 * MS;
        let mut fixture = Self {
            receiver,
            commands,
            events,
            counters,
            errors,
            losses,
            socket: FakeSocket::default(),
            log: log(LogKind::Image, 0),
            shared: Arc::new(ImageShared::new(START, WINDOW)),
            high_water_mark: Counter::detached(),
            rebuild_position: Counter::detached(),
            naks: Counter::detached(),
            subscriber: Counter::detached(),
            now_ns,
        };
        let mut spec = ReceiveEndpointSpec {
            id: ENDPOINT,
            channel: "aeron:udp?endpoint=10.0.0.1:4040".into(),
            has_destinations: false,
            transports: vec![ReceiveTransportSpec {
                id: TransportId(1),
                transport: Box::new(fixture.socket.clone()),
                control_group: None,
                explicit_control: None,
                re_resolution_timeout_ns: None,
                grows: false,
            }],
            receiver_id: RECEIVER,
            group_tag: None,
            timestamps: None,
            stream_session_limit: usize::MAX,
            seed: 1,
        };
        change(&mut spec);
        fixture.command(ReceiverCommand::AddEndpoint(Box::new(
            ReceiveEndpoint::new(spec),
        )));
        fixture.command(ReceiverCommand::AddSubscription {
            endpoint: ENDPOINT,
            stream_id: STREAM,
            session_id: None,
        });
        fixture
    }

    /// Returns a fixture with an image that has sent its first status message.
    fn connected() -> Self {
        Self::connected_with(|_| {})
    }

    fn connected_with(change: impl FnOnce(&mut ReceiverImageSpec)) -> Self {
        let mut fixture = Self::new();
        fixture.connect(change);
        fixture.socket.sent();
        fixture
    }

    fn connect(&mut self, change: impl FnOnce(&mut ReceiverImageSpec)) {
        for counter in [
            &self.subscriber,
            &self.high_water_mark,
            &self.rebuild_position,
        ] {
            counter.set(START);
        }
        let mut spec = self.image_spec();
        change(&mut spec);
        fill_with_old_frames(&spec.log, spec.join_position);
        self.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
            spec,
        ))));
        self.shared.conductor_state(ImageState::Active);
        self.cycle();
    }

    fn image_spec(&self) -> ReceiverImageSpec {
        ReceiverImageSpec {
            id: IMAGE,
            endpoint: ENDPOINT,
            transport: TransportId(1),
            session_id: SESSION,
            stream_id: STREAM,
            log: self.log.clone(),
            join_position: START,
            mtu: 1408,
            control: peer(),
            nak_delay: NakDelaySpec::Unicast {
                delay_ns: 1_000,
                retry_ns: 100_000,
            },
            window: 128 * 1_024,
            congestion_control: Box::new(StaticWindow::new(WINDOW)),
            status_message_timeout_ns: 200 * MS,
            liveness_timeout_ns: 10_000 * MS,
            channel: "aeron:udp?endpoint=10.0.0.1:4040".into(),
            source_identity: "10.0.0.7:4040".into(),
            high_water_mark: self.high_water_mark.clone(),
            rebuild_position: self.rebuild_position.clone(),
            naks_sent: self.naks.clone(),
            subscribers: vec![SubscriberPosition {
                position: self.subscriber.clone(),
            }],
            seed: 1,
            shared: Arc::clone(&self.shared),
        }
    }

    fn command(&mut self, command: ReceiverCommand) {
        self.commands.try_send(command).unwrap();
        self.receiver.take_command(at(self.now_ns));
    }

    /// Rejects the image.
    fn reject(&mut self, reason: &str) {
        self.command(ReceiverCommand::RejectImage {
            endpoint: ENDPOINT,
            image: IMAGE,
            reason: reason.into(),
        });
    }

    /// Runs one duty cycle at the current time.
    fn cycle(&mut self) -> usize {
        self.receiver.do_work(at(self.now_ns))
    }

    /// Runs duty cycles at the current time until there is no work.
    fn settle(&mut self) {
        let is_settled = (0..100).any(|_| self.cycle() == 0);
        assert!(is_settled, "duty cycles without input do not settle");
    }

    /// Advances time and runs one duty cycle. Returns what it sends.
    fn sent_after(&mut self, nanos: i64) -> Vec<Vec<u8>> {
        self.now_ns += nanos;
        self.cycle();
        self.socket.sent()
    }

    /// Lets a datagram arrive and runs one duty cycle.
    fn arrive(&mut self, datagram: &[u8]) {
        self.socket.arrive(datagram);
        self.cycle();
    }

    fn heartbeat(&mut self, flags: u8, position: i64) {
        let geometry = geometry();
        let heartbeat = DataHeader::heartbeat(
            flags,
            SESSION,
            STREAM,
            geometry.term_id(position),
            geometry.term_offset(position),
        );
        self.arrive(heartbeat.as_bytes());
    }

    fn event(&mut self) -> Option<ConductorEvent> {
        self.events.try_recv()
    }

    fn log_bytes(&self, position: i64, length: usize) -> Vec<u8> {
        let offset = self.log.geometry().term_offset(position) as usize;
        self.log.term_at(position).bytes(offset, length).to_vec()
    }

    /// Returns the length of the frame that a reader finds at a position.
    fn frame_at(&self, position: i64) -> Option<i32> {
        let length = self.log_bytes(position, 4);
        let length = i32::from_le_bytes(length.try_into().unwrap());
        (length != 0).then_some(length)
    }

    /// Returns (rcv-hwm, rcv-pos) relative to the join position.
    fn positions(&self) -> (i64, i64) {
        (
            self.high_water_mark.get() - START,
            self.rebuild_position.get() - START,
        )
    }
}

/// Fills a log as in a later rotation: a stale frame in each slot except the one at the join position.
fn fill_with_old_frames(log: &LogBuffers, join_position: i64) {
    for partition in 0..3 {
        let term = log.term(partition);
        for offset in (0..term.len()).step_by(32) {
            term.write(offset, &[32, 0, 0, 0, 0, 0xC0, 1, 0]);
        }
    }
    log.clear_slot(join_position);
}

fn geometry() -> TermGeometry {
    TermGeometry::new(INITIAL_TERM, TERM_LENGTH).unwrap()
}

/// Returns a datagram of frames of these lengths; a negative length is padding, of which only the header is sent.
fn data(position: i64, lengths: &[i32]) -> Vec<u8> {
    data_of(SESSION, STREAM, position, lengths)
}

fn data_of(session_id: i32, stream_id: i32, position: i64, lengths: &[i32]) -> Vec<u8> {
    data_in(geometry(), session_id, stream_id, position, lengths)
}

fn data_in(
    geometry: TermGeometry,
    session_id: i32,
    stream_id: i32,
    position: i64,
    lengths: &[i32],
) -> Vec<u8> {
    let mut datagram = Vec::new();
    let mut at = position;
    for &length in lengths {
        let frame_type = if length < 0 {
            FrameType::PAD
        } else {
            FrameType::DATA
        };
        let header = DataHeader {
            header: FrameHeader::new(length.abs(), DataHeader::UNFRAGMENTED, frame_type),
            ..DataHeader::heartbeat(
                0,
                session_id,
                stream_id,
                geometry.term_id(at),
                geometry.term_offset(at),
            )
        };
        let end = datagram.len()
            + if length < 0 {
                32
            } else {
                align32(length) as usize
            };
        datagram.extend(header.as_bytes());
        for index in datagram.len()..end {
            datagram.push((position + index as i64) as u8);
        }
        at += i64::from(align32(length.abs()));
    }
    datagram
}

/// SETUP of the worked example: joins at the start position.
fn setup() -> Setup {
    Setup {
        header: Setup::header(0),
        term_offset: 192.into(),
        session_id: SESSION.into(),
        stream_id: STREAM.into(),
        initial_term_id: INITIAL_TERM.into(),
        active_term_id: (INITIAL_TERM + 1).into(),
        term_length: TERM_LENGTH.into(),
        mtu: 1408.into(),
        ttl: 0.into(),
    }
}

const NOTHING: [Vec<u8>; 0] = [];
