//! Streams over the network, seen from both ends: set-up, data, end, and what a bad SETUP does (docs/spec/wire.md §5).

use std::net::SocketAddr;
use std::time::Duration;

use taran_core::agent::Agent;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::Setup;
use taran_protocol::log::{ExclusiveAppender, poll};
use taran_protocol::response::Response;
use zerocopy::IntoBytes;

use crate::bench::{Bench, Ready};
use crate::told::{Available, available, unavailable};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const PORT: u16 = 40_123;
const SECOND: Duration = Duration::from_secs(1);

/// One stream from a publication to a subscription of the same driver.
struct Stream {
    bench: Bench,
    client: i64,
    publication: Ready,
    image: Available,
    appender: ExclusiveAppender,
}

impl Stream {
    fn new() -> Self {
        let mut bench = Bench::new();
        let client = bench.client();
        let publication = bench.add_exclusive(client, UDP, 10).unwrap();
        bench.add_subscription(client, UDP, 10).unwrap();
        bench.run_for(SECOND);
        let image = available(&bench.messages()).remove(0);
        let appender = ExclusiveAppender::new(bench.log(&publication.log)).unwrap();
        Self {
            bench,
            client,
            publication,
            image,
            appender,
        }
    }

    /// Sends messages and reads them; every one must come.
    fn carry(&mut self, messages: usize) {
        let log = self.bench.log(&self.image.log);
        let (mut sent, mut received) = (0usize, 0usize);
        for _ in 0..100_000 {
            let limit = self.bench.value(self.publication.limit_counter_id);
            if sent < messages && self.appender.position() < limit {
                let _ = self
                    .appender
                    .append(&sent.to_le_bytes(), None)
                    .map(|_| sent += 1);
            }
            self.bench.turn();
            let position = self.bench.value(self.image.position_counter_id);
            let term = log.term_at(position);
            let offset = log.geometry().term_offset(position);
            let polled = poll(term, offset, usize::MAX, |frame| {
                assert_eq!(frame.payload(), received.to_le_bytes());
                received += 1;
            })
            .unwrap();
            let moved = i64::from(polled.offset - offset);
            self.bench
                .set(self.image.position_counter_id, position + moved);
            if received == messages {
                return;
            }
        }
        panic!("{received} of {messages} messages came");
    }

    fn close_publication(&mut self, revoke: bool) {
        self.bench.ask(&Command::RemovePublication {
            client_id: self.client,
            correlation_id: self.bench.id(),
            registration_id: self.publication.correlation_id,
            revoke,
        });
    }
}

#[test]
fn messages_go_around_the_log_many_times() {
    let mut stream = Stream::new();
    assert_eq!(stream.image.session_id, stream.publication.session_id);
    assert_eq!(stream.image.source, "127.0.0.1:50000");
    assert_eq!(
        stream.image.log,
        format!("/aeron/images/{}.logbuffer", stream.image.image_id)
    );
    stream.carry(20_000);
    assert!(
        stream.bench.errors().is_empty(),
        "{:?}",
        stream.bench.errors()
    );
}

#[test]
fn positions_that_a_client_overwrites_move_nothing() {
    let mut stream = Stream::new();
    stream.carry(100);
    let of_the_driver = [type_id::SENDER_POSITION, type_id::RECEIVER_POSITION];
    let counters = stream.bench.counters();
    let counters = counters
        .iter()
        .filter(|meta| of_the_driver.contains(&meta.type_id));
    let ids: Vec<i32> = counters.map(|meta| meta.id).collect();
    assert_eq!(ids.len(), 2);
    for lie in [i64::MIN, -1, i64::MAX] {
        for &id in &ids {
            stream.bench.set(id, lie);
        }
        stream.bench.run_for(SECOND);
        stream.carry(1000);
    }
    stream.close_publication(false);
    stream.bench.run_for(SECOND * 6);
    assert_eq!(unavailable(&stream.bench.messages()).len(), 1);
    assert!(stream.bench.errors().is_empty());
}

#[test]
fn an_ended_stream_is_told_and_everything_is_freed() {
    let mut stream = Stream::new();
    stream.carry(100);
    let end = stream.appender.position();
    stream.close_publication(false);
    let log = stream.bench.log(&stream.image.log);
    stream.bench.run_for(SECOND * 6);
    assert_eq!(log.end_of_stream_position(), end);
    let gone = unavailable(&stream.bench.messages());
    assert_eq!(
        gone,
        [(stream.image.image_id, stream.image.subscription_id)]
    );
    stream.bench.run_for(SECOND * 15);
    let (subscription, client) = (stream.image.subscription_id, stream.client);
    stream.bench.ask(&Command::RemoveSubscription {
        client_id: client,
        correlation_id: stream.bench.id(),
        registration_id: subscription,
    });
    stream.bench.run_for(SECOND * 2);
    let left: Vec<i32> = stream
        .bench
        .counters()
        .iter()
        .map(|meta| meta.type_id)
        .collect();
    assert_eq!(
        left,
        [type_id::CLIENT_HEARTBEAT],
        "{:?}",
        stream.bench.labels()
    );
    assert!(stream.bench.log_files().is_empty());
    assert!(stream.bench.wires.open_ports().is_empty());
}

#[test]
fn a_revoked_stream_is_gone_without_waiting_for_its_reader() {
    let mut stream = Stream::new();
    for message in 0..20u8 {
        stream.appender.append(&[message; 500], None).unwrap();
    }
    stream.bench.run_for(SECOND / 2);
    stream.close_publication(true);
    stream.bench.run_for(SECOND * 4);
    assert_eq!(unavailable(&stream.bench.messages()).len(), 1);
    assert!(stream.bench.log(&stream.image.log).is_revoked() || stream.bench.log_files().len() < 2);
    assert_eq!(stream.bench.system(SystemCounter::PublicationsRevoked), 1);
    assert_eq!(
        stream.bench.system(SystemCounter::PublicationImagesRevoked),
        1
    );
}

#[test]
fn later_subscriptions_join_the_image_where_its_readers_are() {
    let mut stream = Stream::new();
    stream.carry(100);
    let position = stream.bench.value(stream.image.position_counter_id);
    stream.bench.send(&Command::AddSubscription {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        stream_id: 10,
        channel: UDP,
    });
    stream.bench.settle();
    let joined = available(&stream.bench.messages());
    assert_eq!(
        (joined.len(), joined[0].image_id),
        (1, stream.image.image_id)
    );
    assert_eq!(stream.bench.value(joined[0].position_counter_id), position);
    let session = format!(
        "{UDP}|session-id={}",
        stream.image.session_id.wrapping_add(1)
    );
    stream
        .bench
        .add_subscription(stream.client, &session, 10)
        .unwrap();
    assert!(
        available(&stream.bench.messages()).is_empty(),
        "another session was asked for"
    );
}

#[test]
fn a_session_has_one_image_when_its_subscription_comes_back_while_it_is_made() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    // Keeps the endpoint.
    bench.add_subscription(client_id, UDP, 11).unwrap();
    let (registration_id, _) = bench.add_subscription(client_id, UDP, 10).unwrap();
    let setup = setup(65_536, 1408);
    bench.wires.deliver(stranger(), PORT, setup.as_bytes());
    bench.parts.receiver.do_work(bench.now());
    bench.send(&Command::RemoveSubscription {
        client_id,
        correlation_id: bench.id(),
        registration_id,
    });
    bench.send(&Command::AddSubscription {
        client_id,
        correlation_id: bench.id(),
        stream_id: 10,
        channel: UDP,
    });
    bench.parts.conductor.do_work(bench.now());
    for _ in 0..6 {
        bench.wires.deliver(stranger(), PORT, setup.as_bytes());
        bench.parts.receiver.do_work(bench.now());
    }
    bench.settle();
    assert_eq!(available(&bench.messages()).len(), 1);
    assert_eq!(bench.log_files().len(), 1);
    assert!(bench.errors().is_empty(), "{:?}", bench.errors());
}

#[test]
fn an_image_that_nobody_reads_is_given_up() {
    let mut stream = Stream::new();
    stream.carry(10);
    let (client_id, registration_id) = (stream.client, stream.image.subscription_id);
    stream.bench.ask(&Command::RemoveSubscription {
        client_id,
        correlation_id: stream.bench.id(),
        registration_id,
    });
    stream.bench.run_for(SECOND * 20);
    assert_eq!(stream.bench.log_files(), [stream.publication.log.as_str()]);
    assert!(!stream.bench.wires.open_ports().contains(&PORT));
    let log = stream.bench.log(&stream.publication.log);
    assert!(!log.is_connected());
}

#[test]
fn a_rejected_image_is_told_to_its_publication() {
    let mut stream = Stream::new();
    stream.carry(10);
    let answers = stream.bench.ask(&Command::RejectImage {
        client_id: stream.client,
        correlation_id: 99,
        image_id: stream.image.image_id,
        position: 0,
        reason: b"stop it",
    });
    assert!(
        answers
            .iter()
            .any(|m| matches!(m.get(), Response::OperationSuccess { correlation_id: 99 }))
    );
    stream.bench.run_for(SECOND);
    let told = stream
        .bench
        .messages()
        .into_iter()
        .find_map(|message| match message.get() {
            Response::PublicationError {
                registration_id,
                error_code,
                message,
                ..
            } => Some((
                registration_id,
                error_code,
                String::from_utf8_lossy(message).into_owned(),
            )),
            _ => None,
        });
    let expected = (
        stream.publication.registration_id,
        ErrorCode::ImageRejected.code(),
        "stop it".to_owned(),
    );
    assert_eq!(told, Some(expected));
    assert_eq!(stream.bench.system(SystemCounter::ImagesRejected), 1);
}

/// A SETUP of a stream whose publisher then says nothing more.
fn setup(term_length: i32, mtu: i32) -> Setup {
    Setup {
        header: Setup::header(0),
        term_offset: 0.into(),
        session_id: 77.into(),
        stream_id: 10.into(),
        initial_term_id: 5.into(),
        active_term_id: 5.into(),
        term_length: term_length.into(),
        mtu: mtu.into(),
        ttl: 0.into(),
    }
}

fn stranger() -> SocketAddr {
    "127.0.0.1:9".parse().unwrap()
}

#[test]
fn a_silent_stream_times_out() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.add_subscription(client, UDP, 10).unwrap();
    bench
        .wires
        .deliver(stranger(), PORT, setup(65_536, 1408).as_bytes());
    bench.run_for(SECOND);
    assert_eq!(available(&bench.messages()).len(), 1);
    bench.run_for(SECOND * 8);
    assert!(unavailable(&bench.messages()).is_empty());
    bench.run_for(SECOND * 6);
    assert_eq!(unavailable(&bench.messages()).len(), 1);
    bench.run_for(SECOND * 15);
    assert!(bench.log_files().is_empty());
    // It may come back.
    bench
        .wires
        .deliver(stranger(), PORT, setup(65_536, 1408).as_bytes());
    bench.run_for(SECOND);
    assert_eq!(available(&bench.messages()).len(), 1);
}

#[test]
fn a_setup_that_cannot_be_makes_no_image() {
    for (options, bad) in [
        (&[][..], setup(65_536, 65_504)),
        (
            &[
                ("aeron.rcv.initial.window.length", "4k"),
                ("aeron.mtu.length", "4k"),
            ][..],
            setup(65_536, 8192),
        ),
        (&[][..], setup(1000, 1408)),
        (&[][..], setup(65_536, 33)),
    ] {
        let mut bench = Bench::with(options);
        let client = bench.client();
        bench.add_subscription(client, UDP, 10).unwrap();
        let counters = bench.counters().len();
        for _ in 0..3 {
            bench.wires.deliver(stranger(), PORT, bad.as_bytes());
            bench.run_for(SECOND);
        }
        assert!(available(&bench.messages()).is_empty());
        assert!(bench.log_files().is_empty());
        assert_eq!(bench.counters().len(), counters);
        let trouble =
            bench.system(SystemCounter::Errors) + bench.system(SystemCounter::InvalidPackets);
        assert!(trouble > 0);
        // The session is not stuck.
        bench
            .wires
            .deliver(stranger(), PORT, setup(65_536, 1408).as_bytes());
        bench.run_for(SECOND);
        assert_eq!(available(&bench.messages()).len(), 1);
    }
}

#[test]
fn no_room_for_an_image_leaves_nothing_and_heals() {
    use taran_core::memory::MemoryStorage;

    let storage = MemoryStorage::with_capacity(48_238_592 + 1_048_576 + 1000);
    let mut bench = Bench::in_storage(storage.clone(), &[]);
    let client = bench.client();
    bench.add_subscription(client, UDP, 10).unwrap();
    let counters = bench.counters().len();
    bench
        .wires
        .deliver(stranger(), PORT, setup(65_536, 1408).as_bytes());
    bench.run_for(SECOND);
    assert_eq!(bench.counters().len(), counters);
    assert!(
        bench.errors()[0].0.contains("needed=200704 available=1000"),
        "{:?}",
        bench.errors()
    );
    storage.set_capacity(None);
    bench
        .wires
        .deliver(stranger(), PORT, setup(65_536, 1408).as_bytes());
    bench.run_for(SECOND);
    assert_eq!(available(&bench.messages()).len(), 1);
}

#[test]
fn unknown_congestion_control_is_found_out_when_an_image_comes() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench
        .add_subscription(client, &format!("{UDP}|cc=bogus"), 10)
        .unwrap();
    bench
        .wires
        .deliver(stranger(), PORT, setup(65_536, 1408).as_bytes());
    bench.run_for(SECOND);
    assert!(available(&bench.messages()).is_empty());
    assert!(
        bench.errors()[0].0.contains("cc=bogus"),
        "{:?}",
        bench.errors()
    );
}

#[test]
fn strangers_cannot_fill_the_error_log() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.add_subscription(client, UDP, 10).unwrap();
    for session_id in 0..300 {
        let bad = Setup {
            session_id: session_id.into(),
            ..setup(65_536, 60_000)
        };
        bench.wires.deliver(stranger(), PORT, bad.as_bytes());
        bench.turn();
        bench.turn();
    }
    bench.settle();
    assert_eq!(bench.system(SystemCounter::Errors), 300, "all are counted");
    let errors = bench.errors();
    assert_eq!(errors.len(), 101);
    assert_eq!(errors[100].1, 200, "{errors:?}");
}

#[test]
fn many_senders_that_come_at_once_all_get_their_images() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.add_subscription(client, UDP, 10).unwrap();
    for session_id in 0..20 {
        let another = Setup {
            session_id: session_id.into(),
            ..setup(65_536, 1408)
        };
        bench.wires.deliver(stranger(), PORT, another.as_bytes());
    }
    bench.settle();
    assert_eq!(available(&bench.messages()).len(), 20);
}

#[test]
fn garbage_raises_the_counter_and_nothing_else() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench.add_subscription(client, UDP, 10).unwrap();
    let before = bench.counters().len();
    let mut random = fastrand::Rng::with_seed(3);
    for length in 0..400 {
        let datagram: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        bench.wires.deliver(stranger(), PORT, &datagram);
        bench.turn();
    }
    bench.run_for(SECOND);
    assert!(bench.system(SystemCounter::InvalidPackets) > 300);
    assert_eq!(bench.counters().len(), before);
    assert_eq!(bench.system(SystemCounter::Errors), 0);
}

#[test]
fn an_endpoint_that_closes_asks_for_patience() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    let (subscription, _) = bench.add_subscription(client_id, UDP, 10).unwrap();
    bench.messages();
    // Removal and a new add reach the conductor before the receiver has given the endpoint back.
    bench.send(&Command::RemoveSubscription {
        client_id,
        correlation_id: bench.id(),
        registration_id: subscription,
    });
    let again = bench.id();
    bench.send(&Command::AddSubscription {
        client_id,
        correlation_id: again,
        stream_id: 10,
        channel: UDP,
    });
    bench.settle();
    let refused = bench
        .messages()
        .iter()
        .find_map(|message| crate::bench::refusal(message, again))
        .unwrap();
    assert_eq!(refused.code, ErrorCode::ResourceTemporarilyUnavailable);
    bench.add_subscription(client_id, UDP, 10).unwrap();
}

#[test]
fn a_port_in_use_is_told_as_the_system_tells_it() {
    use taran_net::{Network, SocketSpec};

    let mut bench = Bench::new();
    let client = bench.client();
    let held = bench
        .wires
        .open(&SocketSpec::bound("127.0.0.1:40123".parse().unwrap()))
        .unwrap();
    let refused = bench.add_subscription(client, UDP, 10).unwrap_err();
    assert_eq!(refused.code, ErrorCode::GenericError);
    assert!(refused.text.contains("127.0.0.1:40123"), "{}", refused.text);
    drop(held);
    bench.add_subscription(client, UDP, 10).unwrap();
}

#[test]
fn an_untethered_subscriber_that_lags_lets_the_stream_go_on() {
    let mut stream = Stream::new();
    let client_id = stream.client;
    stream.bench.send(&Command::AddSubscription {
        client_id,
        correlation_id: stream.bench.id(),
        stream_id: 10,
        channel: &format!("{UDP}|tether=false"),
    });
    stream.bench.settle();
    let lagging = available(&stream.bench.messages()).remove(0);
    // The other one reads what there is; this one nothing.
    let log = stream.bench.log(&stream.publication.log);
    let window = i64::from(log.term_length()) / 2;
    for _ in 0..200 {
        let _ = stream.appender.append(&[1; 1000], None);
        if stream.appender.position() >= window {
            break;
        }
    }
    stream.bench.run_for(SECOND);
    let reached = stream.appender.position();
    stream.bench.set(stream.image.position_counter_id, reached);
    stream.bench.run_for(SECOND * 4);
    assert!(unavailable(&stream.bench.messages()).is_empty());
    stream.bench.run_for(SECOND * 3);
    let gone = unavailable(&stream.bench.messages());
    assert_eq!(gone, [(lagging.image_id, lagging.subscription_id)]);
    // It lingers, and then rests: now the window follows the other one.
    stream.bench.run_for(SECOND * 7);
    assert!(stream.bench.value(stream.publication.limit_counter_id) > reached);
    stream.bench.run_for(SECOND * 11);
    let back = available(&stream.bench.messages());
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].subscription_id, lagging.subscription_id);
    assert_eq!(stream.bench.value(back[0].position_counter_id), reached);
}
