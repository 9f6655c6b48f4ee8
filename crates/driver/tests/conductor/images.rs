// SPDX-License-Identifier: Apache-2.0
//! Streams over the network, at both ends: set-up, data, end of stream, and invalid SETUP frames (docs/spec/wire.md §5).

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::Setup;
use taran_protocol::log::{ExclusiveAppender, poll};
use taran_protocol::response::Response;
use zerocopy::IntoBytes;

use crate::fixture::{DriverFixture, Ready};
use crate::image_events::{Available, available, unavailable};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const PORT: u16 = 40_123;
const SECOND: Duration = Duration::from_secs(1);

/// One stream from a publication to a subscription of the same driver.
struct Stream {
    driver: DriverFixture,
    client: i64,
    publication: Ready,
    image: Available,
    appender: ExclusiveAppender,
}

impl Stream {
    fn new() -> Self {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        let publication = driver.add_exclusive(client, UDP, 10).unwrap();
        driver.add_subscription(client, UDP, 10).unwrap();
        driver.run_for(SECOND);
        let image = available(&driver.messages()).remove(0);
        let appender = ExclusiveAppender::new(driver.log(&publication.log)).unwrap();
        Self {
            driver,
            client,
            publication,
            image,
            appender,
        }
    }

    /// Sends messages and checks that all of them are received.
    fn carry(&mut self, messages: usize) {
        let log = self.driver.log(&self.image.log);
        let (mut sent, mut received) = (0usize, 0usize);
        for _ in 0..100_000 {
            let limit = self.driver.value(self.publication.limit_counter_id);
            if sent < messages && self.appender.position() < limit {
                let _ = self
                    .appender
                    .append(&sent.to_le_bytes(), None)
                    .map(|_| sent += 1);
            }
            self.driver.duty_cycle();
            let position = self.driver.value(self.image.position_counter_id);
            let term = log.term_at(position);
            let offset = log.geometry().term_offset(position);
            let polled = poll(term, offset, usize::MAX, |frame| {
                assert_eq!(frame.payload(), received.to_le_bytes());
                received += 1;
            })
            .unwrap();
            let moved = i64::from(polled.offset - offset);
            self.driver
                .set(self.image.position_counter_id, position + moved);
            if received == messages {
                return;
            }
        }
        panic!("{received} of {messages} messages came");
    }

    fn close_publication(&mut self, revoke: bool) {
        self.driver.ask(&Command::RemovePublication {
            client_id: self.client,
            correlation_id: self.driver.id(),
            registration_id: self.publication.correlation_id,
            revoke,
        });
    }
}

#[test]
fn stream_wraps_around_the_log_many_times() {
    let mut stream = Stream::new();
    assert_eq!(stream.image.session_id, stream.publication.session_id);
    assert_eq!(stream.image.source, "127.0.0.1:50000");
    assert_eq!(
        stream.image.log,
        format!("/aeron/images/{}.logbuffer", stream.image.image_id)
    );
    stream.carry(20_000);
    assert!(
        stream.driver.errors().is_empty(),
        "{:?}",
        stream.driver.errors()
    );
}

#[test]
fn overwritten_positions_do_not_affect_the_stream() {
    let mut stream = Stream::new();
    stream.carry(100);
    let of_the_driver = [type_id::SENDER_POSITION, type_id::RECEIVER_POSITION];
    let counters = stream.driver.counters();
    let counters = counters
        .iter()
        .filter(|meta| of_the_driver.contains(&meta.type_id));
    let ids: Vec<i32> = counters.map(|meta| meta.id).collect();
    assert_eq!(ids.len(), 2);
    for lie in [i64::MIN, -1, i64::MAX] {
        for &id in &ids {
            stream.driver.set(id, lie);
        }
        stream.driver.run_for(SECOND);
        stream.carry(1000);
    }
    stream.close_publication(false);
    stream.driver.run_for(SECOND * 6);
    assert_eq!(unavailable(&stream.driver.messages()).len(), 1);
    assert!(stream.driver.errors().is_empty());
}

#[test]
fn ended_stream_is_reported_and_freed() {
    let mut stream = Stream::new();
    stream.carry(100);
    let end = stream.appender.position();
    stream.close_publication(false);
    let log = stream.driver.log(&stream.image.log);
    stream.driver.run_for(SECOND * 6);
    assert_eq!(log.end_of_stream_position(), end);
    let gone = unavailable(&stream.driver.messages());
    assert_eq!(
        gone,
        [(stream.image.image_id, stream.image.subscription_id)]
    );
    stream.driver.run_for(SECOND * 15);
    let (subscription, client) = (stream.image.subscription_id, stream.client);
    stream.driver.ask(&Command::RemoveSubscription {
        client_id: client,
        correlation_id: stream.driver.id(),
        registration_id: subscription,
    });
    stream.driver.run_for(SECOND * 2);
    let left: Vec<i32> = stream
        .driver
        .counters()
        .iter()
        .map(|meta| meta.type_id)
        .collect();
    assert_eq!(
        left,
        [type_id::CLIENT_HEARTBEAT],
        "{:?}",
        stream.driver.labels()
    );
    assert!(stream.driver.log_files().is_empty());
    assert!(stream.driver.network.open_ports().is_empty());
}

#[test]
fn revoked_stream_ends_without_waiting_for_its_reader() {
    let mut stream = Stream::new();
    for message in 0..20u8 {
        stream.appender.append(&[message; 500], None).unwrap();
    }
    stream.driver.run_for(SECOND / 2);
    stream.close_publication(true);
    stream.driver.run_for(SECOND * 4);
    assert_eq!(unavailable(&stream.driver.messages()).len(), 1);
    assert!(
        stream.driver.log(&stream.image.log).is_revoked() || stream.driver.log_files().len() < 2
    );
    assert_eq!(stream.driver.system(SystemCounter::PublicationsRevoked), 1);
    assert_eq!(
        stream
            .driver
            .system(SystemCounter::PublicationImagesRevoked),
        1
    );
}

#[test]
fn later_subscription_joins_image_at_position_of_readers() {
    let mut stream = Stream::new();
    stream.carry(100);
    let position = stream.driver.value(stream.image.position_counter_id);
    stream.driver.send(&Command::AddSubscription {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        stream_id: 10,
        channel: UDP,
    });
    stream.driver.settle();
    let joined = available(&stream.driver.messages());
    assert_eq!(
        (joined.len(), joined[0].image_id),
        (1, stream.image.image_id)
    );
    assert_eq!(stream.driver.value(joined[0].position_counter_id), position);
    let session = format!(
        "{UDP}|session-id={}",
        stream.image.session_id.wrapping_add(1)
    );
    stream
        .driver
        .add_subscription(stream.client, &session, 10)
        .unwrap();
    assert!(
        available(&stream.driver.messages()).is_empty(),
        "another session was asked for"
    );
}

#[test]
fn session_has_one_image_if_subscription_returns_during_creation() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    // Keeps the endpoint open.
    driver.add_subscription(client_id, UDP, 11).unwrap();
    let (registration_id, _) = driver.add_subscription(client_id, UDP, 10).unwrap();
    let setup = setup(65_536, 1408);
    driver
        .network
        .deliver(unknown_peer(), PORT, setup.as_bytes());
    driver.parts.receiver.do_work(driver.now());
    driver.send(&Command::RemoveSubscription {
        client_id,
        correlation_id: driver.id(),
        registration_id,
    });
    driver.send(&Command::AddSubscription {
        client_id,
        correlation_id: driver.id(),
        stream_id: 10,
        channel: UDP,
    });
    driver.parts.conductor.do_work(driver.now());
    for _ in 0..6 {
        driver
            .network
            .deliver(unknown_peer(), PORT, setup.as_bytes());
        driver.parts.receiver.do_work(driver.now());
    }
    driver.settle();
    assert_eq!(available(&driver.messages()).len(), 1);
    assert_eq!(driver.log_files().len(), 1);
    assert!(driver.errors().is_empty(), "{:?}", driver.errors());
}

#[test]
fn image_without_subscribers_is_closed() {
    let mut stream = Stream::new();
    stream.carry(10);
    let (client_id, registration_id) = (stream.client, stream.image.subscription_id);
    stream.driver.ask(&Command::RemoveSubscription {
        client_id,
        correlation_id: stream.driver.id(),
        registration_id,
    });
    stream.driver.run_for(SECOND * 20);
    assert_eq!(stream.driver.log_files(), [stream.publication.log.as_str()]);
    assert!(!stream.driver.network.open_ports().contains(&PORT));
    let log = stream.driver.log(&stream.publication.log);
    assert!(!log.is_connected());
}

#[test]
fn rejected_image_is_reported_to_its_publication() {
    let mut stream = Stream::new();
    stream.carry(10);
    let answers = stream.driver.ask(&Command::RejectImage {
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
    stream.driver.run_for(SECOND);
    let announced = stream
        .driver
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
    assert_eq!(announced, Some(expected));
    assert_eq!(stream.driver.system(SystemCounter::ImagesRejected), 1);
}

/// Returns a SETUP of a stream whose publisher sends nothing else.
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

fn unknown_peer() -> SocketAddr {
    "127.0.0.1:9".parse().unwrap()
}

#[test]
fn silent_stream_times_out() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    driver
        .network
        .deliver(unknown_peer(), PORT, setup(65_536, 1408).as_bytes());
    driver.run_for(SECOND);
    assert_eq!(available(&driver.messages()).len(), 1);
    driver.run_for(SECOND * 8);
    assert!(unavailable(&driver.messages()).is_empty());
    driver.run_for(SECOND * 6);
    assert_eq!(unavailable(&driver.messages()).len(), 1);
    driver.run_for(SECOND * 15);
    assert!(driver.log_files().is_empty());
    // The session may return.
    driver
        .network
        .deliver(unknown_peer(), PORT, setup(65_536, 1408).as_bytes());
    driver.run_for(SECOND);
    assert_eq!(available(&driver.messages()).len(), 1);
}

#[test]
fn invalid_setup_creates_no_image() {
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
        let mut driver = DriverFixture::with(options);
        let client = driver.client();
        driver.add_subscription(client, UDP, 10).unwrap();
        let counters = driver.counters().len();
        for _ in 0..3 {
            driver.network.deliver(unknown_peer(), PORT, bad.as_bytes());
            driver.run_for(SECOND);
        }
        assert!(available(&driver.messages()).is_empty());
        assert!(driver.log_files().is_empty());
        assert_eq!(driver.counters().len(), counters);
        let trouble =
            driver.system(SystemCounter::Errors) + driver.system(SystemCounter::InvalidPackets);
        assert!(trouble > 0);
        // A valid SETUP of the same session succeeds.
        driver
            .network
            .deliver(unknown_peer(), PORT, setup(65_536, 1408).as_bytes());
        driver.run_for(SECOND);
        assert_eq!(available(&driver.messages()).len(), 1);
    }
}

#[test]
fn image_without_space_is_created_once_space_is_free() {
    use taran_core::memory::MemoryStorage;

    let storage = MemoryStorage::with_capacity(48_238_592 + 1_048_576 + 1000);
    let mut driver = DriverFixture::in_storage(storage.clone(), &[]);
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    let counters = driver.counters().len();
    driver
        .network
        .deliver(unknown_peer(), PORT, setup(65_536, 1408).as_bytes());
    driver.run_for(SECOND);
    assert_eq!(driver.counters().len(), counters);
    assert!(
        driver.errors()[0]
            .0
            .contains("needed=200704 available=1000"),
        "{:?}",
        driver.errors()
    );
    storage.set_capacity(None);
    driver
        .network
        .deliver(unknown_peer(), PORT, setup(65_536, 1408).as_bytes());
    driver.run_for(SECOND);
    assert_eq!(available(&driver.messages()).len(), 1);
}

#[test]
fn parameters_that_prevent_each_image_reject_the_subscription() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    for parameter in ["cc=bogus", "rcv-wnd=63"] {
        let channel = format!("{UDP}|{parameter}");
        let error = driver.add_subscription(client, &channel, 10).unwrap_err();
        assert_eq!(error.code, ErrorCode::GenericError, "{}", error.text);
        assert!(error.text.contains(parameter), "{}", error.text);
    }
    driver
        .add_subscription(client, &format!("{UDP}|cc=static|rcv-wnd=2k"), 10)
        .unwrap();
}

#[test]
fn errors_of_remote_hosts_leave_space_in_the_error_log() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    for session_id in 0..300 {
        let bad = Setup {
            session_id: session_id.into(),
            ..setup(65_536, 60_000)
        };
        driver.network.deliver(unknown_peer(), PORT, bad.as_bytes());
        driver.duty_cycle();
        driver.duty_cycle();
    }
    driver.settle();
    assert_eq!(driver.system(SystemCounter::Errors), 300, "all are counted");
    let errors = driver.errors();
    assert_eq!(errors.len(), 101);
    assert_eq!(errors[100].1, 200, "{errors:?}");
}

#[test]
fn many_simultaneous_setups_all_create_images() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    for session_id in 0..20 {
        let another = Setup {
            session_id: session_id.into(),
            ..setup(65_536, 1408)
        };
        driver
            .network
            .deliver(unknown_peer(), PORT, another.as_bytes());
    }
    driver.settle();
    assert_eq!(available(&driver.messages()).len(), 20);
}

#[test]
fn invalid_datagrams_are_only_counted() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    let before = driver.counters().len();
    let mut random = fastrand::Rng::with_seed(3);
    for length in 0..400 {
        let datagram: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        driver.network.deliver(unknown_peer(), PORT, &datagram);
        driver.duty_cycle();
    }
    driver.run_for(SECOND);
    assert!(driver.system(SystemCounter::InvalidPackets) > 300);
    assert_eq!(driver.counters().len(), before);
    assert_eq!(driver.system(SystemCounter::Errors), 0);
}

#[test]
fn add_during_close_of_endpoint_fails_temporarily() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let (subscription, _) = driver.add_subscription(client_id, UDP, 10).unwrap();
    driver.messages();
    // The removal and the new add are executed before the receiver has released the endpoint.
    driver.send(&Command::RemoveSubscription {
        client_id,
        correlation_id: driver.id(),
        registration_id: subscription,
    });
    let again = driver.id();
    driver.send(&Command::AddSubscription {
        client_id,
        correlation_id: again,
        stream_id: 10,
        channel: UDP,
    });
    driver.settle();
    let refused = driver
        .messages()
        .iter()
        .find_map(|message| crate::fixture::error_response(message, again))
        .unwrap();
    assert_eq!(refused.code, ErrorCode::ResourceTemporarilyUnavailable);
    driver.add_subscription(client_id, UDP, 10).unwrap();
}

#[test]
fn port_in_use_is_reported_with_system_error() {
    use taran_net::{Network, SocketSpec};

    let mut driver = DriverFixture::new();
    let client = driver.client();
    let held = driver
        .network
        .open(&SocketSpec::bound("127.0.0.1:40123".parse().unwrap()))
        .unwrap();
    let refused = driver.add_subscription(client, UDP, 10).unwrap_err();
    assert_eq!(refused.code, ErrorCode::GenericError);
    assert!(refused.text.contains("127.0.0.1:40123"), "{}", refused.text);
    drop(held);
    driver.add_subscription(client, UDP, 10).unwrap();
}

#[test]
fn lagging_untethered_subscriber_does_not_stop_the_stream() {
    let mut stream = Stream::new();
    let client_id = stream.client;
    stream.driver.send(&Command::AddSubscription {
        client_id,
        correlation_id: stream.driver.id(),
        stream_id: 10,
        channel: &format!("{UDP}|tether=false"),
    });
    stream.driver.settle();
    let lagging = available(&stream.driver.messages()).remove(0);
    // The other subscriber reads everything, this one nothing.
    let log = stream.driver.log(&stream.publication.log);
    let window = i64::from(log.term_length()) / 2;
    for _ in 0..200 {
        let _ = stream.appender.append(&[1; 1000], None);
        if stream.appender.position() >= window {
            break;
        }
    }
    stream.driver.run_for(SECOND);
    let reached = stream.appender.position();
    stream.driver.set(stream.image.position_counter_id, reached);
    stream.driver.run_for(SECOND * 4);
    assert!(unavailable(&stream.driver.messages()).is_empty());
    stream.driver.run_for(SECOND * 3);
    let gone = unavailable(&stream.driver.messages());
    assert_eq!(gone, [(lagging.image_id, lagging.subscription_id)]);
    // After lingering and resting, the window follows the other subscriber.
    stream.driver.run_for(SECOND * 7);
    assert!(stream.driver.value(stream.publication.limit_counter_id) > reached);
    stream.driver.run_for(SECOND * 11);
    let back = available(&stream.driver.messages());
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].subscription_id, lagging.subscription_id);
    assert_eq!(stream.driver.value(back[0].position_counter_id), reached);
}
