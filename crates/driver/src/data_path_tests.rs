// SPDX-License-Identifier: Apache-2.0
//! A sender and a receiver with a bad network between them, in virtual time and from one seed: every message arrives
//! once, in order, intact. What the conductor does for them is done here in its simplest form.

use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::DutyCycleTracker;
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::loss_report::LossReport;
use taran_core::memory::Region;
use taran_core::queue;
use taran_net::UnconditionalPoller;
use taran_protocol::log::{self, ExclusiveAppender, LogBuffers, LogKind};

use crate::boundary::*;
use crate::congestion::StaticWindow;
use crate::receiver::{ReceiveEndpoint, Receiver, ReceiverImage, ReceiverSpec};
use crate::sender::{SendEndpoint, Sender, SenderPublication, SenderSpec};
use crate::testing::*;

const ENDPOINT: EndpointId = EndpointId(1);
const WINDOW: i32 = 32_768;
const STEP_NS: i64 = 5_000;

/// Impairments of the network, in per cent of datagrams.
#[derive(Clone, Copy, Debug)]
struct NetworkConditions {
    loss: u32,
    duplicates: u32,
    reordered: u32,
}

struct DataPath {
    random: fastrand::Rng,
    network: NetworkConditions,
    now_ns: i64,
    sender: Sender,
    sender_socket: FakeSocket,
    sender_counters: SenderCounters,
    publication: Arc<PublicationShared>,
    appender: ExclusiveAppender,
    sender_position: Counter,
    receiver: Receiver,
    receiver_socket: FakeSocket,
    receiver_counters: ReceiverCounters,
    receiver_commands: queue::Sender<ReceiverCommand>,
    receiver_events: queue::Receiver<ConductorEvent>,
    image: Option<(LogBuffers, Arc<ImageShared>)>,
    subscriber: Counter,
    published: u64,
    consumed: u64,
    _sender_events: queue::Receiver<ConductorEvent>,
}

impl DataPath {
    fn new(seed: u64, network: NetworkConditions) -> Self {
        let cycle = || {
            DutyCycleTracker::new(
                Counter::detached(),
                Counter::detached(),
                Duration::from_secs(1),
            )
        };
        let (sender_socket, receiver_socket) = (FakeSocket::default(), FakeSocket::default());
        let sender_counters = SenderCounters::new(|_| Counter::detached());
        let receiver_counters = ReceiverCounters::new(|_| Counter::detached());
        let (mut sender_commands, commands) = queue::spsc(8);
        let (events, sender_events) = queue::spsc(8);
        let sender = Sender::new(SenderSpec {
            poller: Box::new(UnconditionalPoller::default()),
            commands,
            events,
            counters: sender_counters.clone(),
            cycle: cycle(),
            errors: ErrorHandler::detached(),
            status_poll_ratio: 6,
            status_poll_interval_ns: 100 * MS,
            re_resolution_check_interval_ns: 0,
        });
        let (mut receiver_commands, commands) = queue::spsc(8);
        let (events, receiver_events) = queue::spsc(8);
        let receiver = Receiver::new(ReceiverSpec {
            poller: Box::new(UnconditionalPoller::default()),
            commands,
            events,
            counters: receiver_counters.clone(),
            cycle: cycle(),
            errors: ErrorHandler::detached(),
            losses: LossReport::open(Region::anonymous(4096).unwrap()),
            re_resolution_check_interval_ns: 0,
        });

        let log = log(LogKind::Exclusive, 0);
        let publication = Arc::new(PublicationShared::new(0));
        let sender_position = Counter::detached();
        let endpoint = SendEndpoint::new(SendEndpointSpec {
            id: ENDPOINT,
            channel: "out".into(),
            data: Box::new(sender_socket.clone()),
            control: None,
            destination: Destination::Connected,
            re_resolution_timeout_ns: None,
            seed: 1,
        });
        let half = SenderPublication::new(SenderPublicationSpec {
            id: PublicationId(2),
            endpoint: ENDPOINT,
            session_id: SESSION,
            stream_id: STREAM,
            log: log.clone(),
            start_position: 0,
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
            sender_position: sender_position.clone(),
            sender_limit: Counter::detached(),
            back_pressure_events: Counter::detached(),
            naks_received: Counter::detached(),
            log_events: stream_log(),
            shared: Arc::clone(&publication),
        });
        sender_commands
            .try_send(SenderCommand::AddEndpoint(Box::new(endpoint)))
            .unwrap();
        sender_commands
            .try_send(SenderCommand::AddPublication(Box::new(half)))
            .unwrap();

        let endpoint = ReceiveEndpoint::new(ReceiveEndpointSpec {
            id: ENDPOINT,
            channel: "in".into(),
            has_destinations: false,
            transports: vec![ReceiveTransportSpec {
                id: TransportId(1),
                transport: Box::new(receiver_socket.clone()),
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
        });
        let subscription = ReceiverCommand::AddSubscription {
            endpoint: ENDPOINT,
            stream_id: STREAM,
            session_id: None,
        };
        receiver_commands
            .try_send(ReceiverCommand::AddEndpoint(Box::new(endpoint)))
            .unwrap();
        receiver_commands.try_send(subscription).unwrap();

        Self {
            random: fastrand::Rng::with_seed(seed),
            network,
            now_ns: 0,
            sender,
            sender_socket,
            sender_counters,
            publication,
            appender: ExclusiveAppender::new(log).unwrap(),
            sender_position,
            receiver,
            receiver_socket,
            receiver_counters,
            receiver_commands,
            receiver_events,
            image: None,
            subscriber: Counter::detached(),
            published: 0,
            consumed: 0,
            _sender_events: sender_events,
        }
    }

    /// Runs one step of all agents. Publishes up to `messages` in all.
    fn step(&mut self, messages: u64) {
        self.now_ns += STEP_NS;
        let now = at(self.now_ns);
        self.publish(messages);
        self.sender.do_work(now);
        let datagrams = self.sender_socket.sent();
        self.carry(datagrams, &self.receiver_socket.clone());
        self.receiver.do_work(now);
        let datagrams = self.receiver_socket.sent();
        self.carry(datagrams, &self.sender_socket.clone());
        self.conduct();
        self.consume();
    }

    fn publish(&mut self, messages: u64) {
        let limit = self.sender_position.get() + i64::from(TERM_LENGTH / 2);
        for _ in 0..self.random.usize(0..30) {
            if self.published == messages
                || self.appender.position() >= limit
                || !self.publication.has_receivers()
            {
                break;
            }
            if self.appender.append(&message(self.published), None).is_ok() {
                self.published += 1;
            }
        }
    }

    /// Carries datagrams with loss, duplicates and reordering. Some arrive as one GRO batch.
    fn carry(&mut self, datagrams: Vec<Vec<u8>>, to: &FakeSocket) {
        let mut arriving: Vec<Vec<u8>> = Vec::new();
        for datagram in datagrams {
            if self.random.u32(0..100) < self.network.loss {
                continue;
            }
            if self.random.u32(0..100) < self.network.duplicates {
                arriving.push(datagram.clone());
            }
            arriving.push(datagram);
            if self.random.u32(0..100) < self.network.reordered && arriving.len() > 1 {
                let last = arriving.len() - 1;
                let other = self.random.usize(0..last);
                arriving.swap(other, last);
            }
        }
        let mut batch: Vec<u8> = Vec::new();
        let mut stride = 0;
        for datagram in arriving {
            let fits = !batch.is_empty()
                && batch.len().is_multiple_of(stride)
                && datagram.len() <= stride
                && batch.len() + datagram.len() <= 65_536
                && self.random.bool();
            if !fits {
                if !batch.is_empty() {
                    to.arrive_batch(&batch, stride);
                }
                batch.clear();
                stride = datagram.len();
            }
            batch.extend(datagram);
        }
        if !batch.is_empty() {
            to.arrive_batch(&batch, stride);
        }
    }

    fn conduct(&mut self) {
        if let Some(ConductorEvent::CreateImage(create)) = self.receiver_events.try_recv() {
            let join_position = self
                .appender
                .log()
                .geometry()
                .position(create.active_term_id, create.term_offset);
            let log = log(LogKind::Image, 0);
            let shared = Arc::new(ImageShared::new(join_position, WINDOW));
            self.subscriber.set(join_position);
            let image = ReceiverImage::new(ReceiverImageSpec {
                id: ImageId(3),
                endpoint: ENDPOINT,
                transport: create.transport,
                session_id: create.session_id,
                stream_id: create.stream_id,
                log: log.clone(),
                join_position,
                mtu: 1408,
                control: create.control,
                nak_delay: NakDelaySpec::Unicast {
                    delay_ns: 1_000,
                    retry_ns: 100_000,
                },
                window: 128 * 1_024,
                congestion_control: Box::new(StaticWindow::new(WINDOW)),
                status_message_timeout_ns: 200 * MS,
                liveness_timeout_ns: 10_000 * MS,
                channel: "in".into(),
                source_identity: "peer".into(),
                high_water_mark: Counter::detached(),
                rebuild_position: Counter::detached(),
                naks_sent: Counter::detached(),
                subscribers: vec![SubscriberPosition {
                    position: self.subscriber.clone(),
                }],
                seed: 1,
                shared: Arc::clone(&shared),
            });
            self.receiver_commands
                .try_send(ReceiverCommand::AddImage(Box::new(image)))
                .unwrap();
            shared.conductor_state(ImageState::Active);
            self.image = Some((log, shared));
        }
        let term_length = i64::from(TERM_LENGTH);
        if let Some((_, shared)) = &self.image {
            shared.conductor_free_position(shared.status_position() - term_length);
        }
    }

    fn consume(&mut self) {
        let Some((log, _)) = &self.image else {
            return;
        };
        let position = self.subscriber.get();
        let offset = log.geometry().term_offset(position);
        let consumed = &mut self.consumed;
        let limit = self.random.usize(0..40);
        let polled = log::poll(log.term_at(position), offset, limit, |frame| {
            assert_eq!(frame.payload(), message(*consumed), "message {consumed}");
            *consumed += 1;
        })
        .unwrap();
        self.subscriber
            .set(position + i64::from(polled.offset - offset));
    }
}

/// Returns a unique message, between 8 and 1,376 bytes long.
fn message(number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    // Mostly of one length, as in real streams.
    let length = if number.is_multiple_of(7) {
        random.usize(8..=1376)
    } else {
        288
    };
    let mut message = number.to_le_bytes().to_vec();
    message.resize_with(length, || random.u8(..));
    message
}

fn run(seed: u64, messages: u64, network: NetworkConditions) -> DataPath {
    println!("seed {seed} {network:?}");
    let mut data_path = DataPath::new(seed, network);
    let mut steps = 0;
    while data_path.consumed < messages {
        data_path.step(messages);
        steps += 1;
        assert!(
            steps < 3_000_000,
            "stuck at message {} of seed {seed}",
            data_path.consumed
        );
    }
    // The end of stream is signalled and acknowledged.
    data_path.publication.conductor_end_of_stream();
    while !data_path.publication.is_unicast_end_of_stream_received() {
        data_path.step(messages);
        steps += 1;
        assert!(steps < 3_000_000, "no end of seed {seed}");
    }
    let (_, shared) = data_path.image.as_ref().unwrap();
    assert!(shared.is_complete() && !shared.is_timed_out());
    assert_eq!(
        data_path.sender_counters.invalid_packets.get()
            + data_path.receiver_counters.invalid_packets.get(),
        0
    );
    // A reordered status message may be too old to be plausible.
    if network.reordered == 0 {
        assert_eq!(data_path.sender_counters.status_messages_rejected.get(), 0);
    }
    data_path
}

#[test]
fn perfect_network_needs_no_retransmits() {
    let data_path = run(
        1,
        30_000,
        NetworkConditions {
            loss: 0,
            duplicates: 0,
            reordered: 0,
        },
    );
    assert_eq!(data_path.receiver_counters.naks_sent.get(), 0);
    assert_eq!(data_path.sender_counters.retransmits_sent.get(), 0);
    assert_eq!(
        data_path.receiver_counters.over_runs.get() + data_path.receiver_counters.under_runs.get(),
        0
    );
}

#[test]
fn lossy_network_delivers_every_message() {
    for seed in 0..20 {
        let loss = [1, 5, 10, 25][seed as usize % 4];
        let data_path = run(
            seed,
            3_000,
            NetworkConditions {
                loss,
                duplicates: 3,
                reordered: 5,
            },
        );
        assert!(data_path.sender_counters.retransmits_sent.get() > 0);
    }
}
