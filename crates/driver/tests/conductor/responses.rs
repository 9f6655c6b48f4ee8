// SPDX-License-Identifier: Apache-2.0
//! Response channels (docs/spec/wire.md §2.10).

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use taran_core::memory::Storage;
use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{IntoBytes, ResponseSetup};
use taran_protocol::log::{LogBuffers, LogSpec};

use crate::fixture::{DriverFixture, Ready};
use crate::image_events::{Available, available, unavailable};

const REQUESTS: &str = "aeron:udp?endpoint=localhost:40123";
const ANSWERS: &str = "aeron:udp?control-mode=response|control=localhost:40124";
const REQUEST_STREAM: i32 = 10;
const ANSWER_STREAM: i32 = 20;
const SECOND: Duration = Duration::from_secs(1);

fn correlated(channel: &str, id: impl std::fmt::Display) -> String {
    let separator = if channel.contains('?') { '|' } else { '?' };
    format!("{channel}{separator}response-correlation-id={id}")
}

/// A requester and a server on one driver, before any response.
struct Asked {
    driver: DriverFixture,
    client: i64,
    /// Subscription for the responses.
    subscription: i64,
    requests: Ready,
    /// Image of the requests at the server.
    image: Available,
}

impl Asked {
    fn on(requests: &str, answers: &str) -> Self {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        driver
            .add_subscription(client, requests, REQUEST_STREAM)
            .unwrap();
        let (subscription, _) = driver
            .add_subscription(client, answers, ANSWER_STREAM)
            .unwrap();
        let asks = correlated(requests, subscription);
        driver.messages();
        let correlation_id = driver.id();
        let mut messages = driver.ask(&Command::AddPublication {
            client_id: client,
            correlation_id,
            stream_id: REQUEST_STREAM,
            channel: &asks,
        });
        driver.run_for(SECOND);
        messages.extend(driver.messages());
        let image = available(&messages).remove(0);
        let requests = driver
            .add_publication(client, &asks, REQUEST_STREAM)
            .unwrap();
        assert_eq!(requests.registration_id, correlation_id, "it is shared");
        Self {
            driver,
            client,
            subscription,
            requests,
            image,
        }
    }

    fn udp() -> Self {
        Self::on(REQUESTS, ANSWERS)
    }

    /// Adds the response publication of the server, and returns it with the image events of the requester.
    fn answer(&mut self, answers: &str) -> (Ready, Vec<Available>) {
        let channel = correlated(answers, self.image.image_id);
        self.driver.messages();
        let correlation_id = self.driver.id();
        self.driver.send(&Command::AddExclusivePublication {
            client_id: self.client,
            correlation_id,
            stream_id: ANSWER_STREAM,
            channel: &channel,
        });
        self.driver.run_for(SECOND);
        let messages = self.driver.messages();
        let ready = messages
            .iter()
            .find_map(|message| crate::fixture::ready(message, correlation_id))
            .unwrap()
            .unwrap();
        (ready, available(&messages))
    }

    fn spec(&self, log: &str) -> LogSpec {
        LogSpec::of(&self.driver.storage.open(Path::new(log)).unwrap()).unwrap()
    }

    fn is_connected(&self, publication: &Ready) -> bool {
        let log: LogBuffers = self.driver.log(&publication.log);
        log.is_connected()
    }

    fn close(&mut self, publication: &Ready) {
        self.driver.ask(&Command::RemovePublication {
            client_id: self.client,
            correlation_id: self.driver.id(),
            registration_id: publication.correlation_id,
            revoke: false,
        });
    }
}

#[test]
fn responses_reach_their_requester() {
    let mut asked = Asked::udp();
    let (answers, images) = asked.answer(ANSWERS);
    assert_eq!(images.len(), 1);
    assert_eq!(
        (images[0].subscription_id, images[0].session_id),
        (asked.subscription, answers.session_id)
    );
    assert!(asked.is_connected(&answers));
    let spec = asked.spec(&answers.log);
    assert!(spec.is_response);
    assert_eq!(spec.response_correlation_id, asked.image.image_id);
    let spec = asked.spec(&asked.requests.log);
    assert!(!spec.is_response);
    assert_eq!(spec.response_correlation_id, asked.subscription);
    let image = asked.spec(&images[0].log);
    assert!(image.is_response);
    assert!(
        asked.driver.errors().is_empty(),
        "{:?}",
        asked.driver.errors()
    );
}

#[test]
fn responses_reach_no_other_subscription() {
    let mut asked = Asked::udp();
    let (other, _) = asked
        .driver
        .add_subscription(asked.client, ANSWERS, ANSWER_STREAM)
        .unwrap();
    let (_, images) = asked.answer(ANSWERS);
    assert_eq!(images.len(), 1);
    assert_ne!(images[0].subscription_id, other);
    asked.driver.run_for(2 * SECOND);
    assert!(available(&asked.driver.messages()).is_empty());
}

#[test]
fn ipc_responses_reach_their_requester() {
    let mut asked = Asked::on("aeron:ipc", "aeron:ipc?control-mode=response");
    assert_eq!(asked.image.image_id, asked.requests.registration_id);
    let (other, _) = asked
        .driver
        .add_subscription(
            asked.client,
            "aeron:ipc?control-mode=response",
            ANSWER_STREAM,
        )
        .unwrap();
    let (answers, images) = asked.answer("aeron:ipc?control-mode=response");
    assert_eq!(images.len(), 1);
    assert_eq!(images[0].subscription_id, asked.subscription);
    assert_ne!(images[0].subscription_id, other);
    assert!(asked.is_connected(&answers));
}

#[test]
fn request_publication_is_shared_by_correlation_id() {
    let mut asked = Asked::udp();
    let (other, _) = asked
        .driver
        .add_subscription(asked.client, ANSWERS, ANSWER_STREAM)
        .unwrap();
    for channel in [correlated(REQUESTS, other), REQUESTS.to_owned()] {
        let added = asked
            .driver
            .add_publication(asked.client, &channel, REQUEST_STREAM)
            .unwrap();
        assert_eq!(added.registration_id, added.correlation_id, "{channel}");
    }
}

#[test]
fn restarted_server_is_received_under_its_new_session() {
    let mut asked = Asked::udp();
    let (first, images) = asked.answer(ANSWERS);
    asked.close(&first);
    asked.driver.set(images[0].position_counter_id, 0);
    asked.driver.run_for(15 * SECOND);
    let messages = asked.driver.messages();
    assert_eq!(
        unavailable(&messages),
        [(images[0].image_id, asked.subscription)]
    );
    let (second, images) = asked.answer(ANSWERS);
    assert_ne!(first.session_id, second.session_id);
    assert_eq!(images.len(), 1);
    assert_eq!(images[0].session_id, second.session_id);
    assert!(asked.is_connected(&second));
}

#[test]
fn correlation_id_must_name_an_image_with_a_request() {
    let mut asked = Asked::udp();
    let (driver, client) = (&mut asked.driver, asked.client);
    let plain = "aeron:udp?endpoint=localhost:40125";
    driver.add_subscription(client, plain, 30).unwrap();
    let correlation_id = driver.id();
    driver.send(&Command::AddPublication {
        client_id: client,
        correlation_id,
        stream_id: 30,
        channel: plain,
    });
    driver.run_for(SECOND);
    let unasked = available(&driver.messages()).remove(0).image_id;
    for (channel, part) in [
        (ANSWERS.to_owned(), "no response-correlation-id set"),
        (
            correlated(ANSWERS, 4_711),
            "image.correlationId=4711 not found",
        ),
        (
            correlated(ANSWERS, unasked),
            "did not request a response channel",
        ),
        (
            correlated(REQUESTS, 4_711),
            "unable to find response subscription for response-correlation-id=4711",
        ),
        (
            correlated(REQUESTS, "prototype"),
            "unable to find response subscription for response-correlation-id=-2",
        ),
        (correlated(ANSWERS, -2), "response-correlation-id"),
    ] {
        let refused = driver.add_publication(client, &channel, 40).unwrap_err();
        assert_eq!(refused.code, ErrorCode::GenericError, "{channel}");
        assert!(refused.text.contains(part), "{}", refused.text);
    }
}

#[test]
fn ipc_correlation_id_may_be_unknown_as_in_aeron() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    for channel in [
        correlated("aeron:ipc", 4_711),
        correlated("aeron:ipc?control-mode=response", 4_711),
    ] {
        let added = driver.add_publication(client, &channel, 40).unwrap();
        assert!(!added.log.is_empty(), "{channel}");
    }
}

#[test]
fn subscriptions_with_different_response_modes_are_rejected() {
    for (first, second) in [
        (
            "aeron:udp?endpoint=localhost:8282",
            "aeron:udp?endpoint=localhost:8282|control-mode=response",
        ),
        (
            "aeron:udp?control-mode=response|control=localhost:5555",
            "aeron:udp?control=localhost:5555",
        ),
    ] {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        driver.add_subscription(client, first, 42).unwrap();
        let refused = driver.add_subscription(client, second, 42).unwrap_err();
        let expected = format!(
            "option conflicts with existing subscription: isResponse={} existingChannel={first} channel={second}",
            second.contains("response")
        );
        assert!(refused.text.contains(&expected), "{}", refused.text);
    }
}

#[test]
fn prototype_keeps_the_response_port_open() {
    let mut asked = Asked::udp();
    let prototype = asked
        .driver
        .add_exclusive(
            asked.client,
            &correlated(ANSWERS, "prototype"),
            ANSWER_STREAM,
        )
        .unwrap();
    let spec = asked.spec(&prototype.log);
    assert_eq!(spec.term_length, 64 * 1024);
    assert_eq!(spec.response_correlation_id, -2);
    let (first, _) = asked.answer(&format!("{ANSWERS}|term-length=128k"));
    assert_eq!(first.status_counter_id, prototype.status_counter_id);
    let spec = asked.spec(&first.log);
    assert_eq!(spec.term_length, 128 * 1024);
    assert!(asked.is_connected(&first));
    assert!(!asked.is_connected(&prototype));
}

#[test]
fn unanswered_requests_can_be_closed() {
    let mut asked = Asked::udp();
    let (answers, _) = asked.answer(ANSWERS);
    asked.close(&answers);
    asked.driver.ask(&Command::ClientClose {
        client_id: asked.client,
        correlation_id: -1,
    });
    asked.driver.run_for(30 * SECOND);
    assert!(
        asked.driver.counters().is_empty(),
        "{:?}",
        asked.driver.labels()
    );
    assert!(asked.driver.network.open_ports().is_empty());
}

#[test]
fn response_setup_of_unknown_stream_is_ignored() {
    let mut asked = Asked::udp();
    let before = asked.driver.counters().len();
    // The requests have their own source address; frames that arrive there are from the server.
    let port = asked
        .driver
        .network
        .open_ports()
        .into_iter()
        .find(|port| *port >= 50_000)
        .unwrap();
    for (session_id, stream_id) in [
        (asked.requests.session_id + 1, REQUEST_STREAM),
        (asked.requests.session_id, REQUEST_STREAM + 1),
    ] {
        let setup = ResponseSetup {
            header: ResponseSetup::header(),
            session_id: session_id.into(),
            stream_id: stream_id.into(),
            response_session_id: 7.into(),
        };
        let from = SocketAddr::from(([127, 0, 0, 1], 40_123));
        asked.driver.network.deliver(from, port, setup.as_bytes());
        asked.driver.settle();
    }
    assert_eq!(asked.driver.counters().len(), before);
    assert_eq!(asked.driver.system(SystemCounter::InvalidPackets), 0);
}
