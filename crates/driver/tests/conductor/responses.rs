//! Response channels: answers that find their way back to who asked (docs/spec/wire.md §2.10).

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use taran_core::memory::Storage;
use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{IntoBytes, ResponseSetup};
use taran_protocol::log::{LogBuffers, LogSpec};

use crate::bench::{Bench, Ready};
use crate::told::{Available, available, unavailable};

const REQUESTS: &str = "aeron:udp?endpoint=localhost:40123";
const ANSWERS: &str = "aeron:udp?control-mode=response|control=localhost:40124";
const REQUEST_STREAM: i32 = 10;
const ANSWER_STREAM: i32 = 20;
const SECOND: Duration = Duration::from_secs(1);

fn correlated(channel: &str, id: impl std::fmt::Display) -> String {
    let separator = if channel.contains('?') { '|' } else { '?' };
    format!("{channel}{separator}response-correlation-id={id}")
}

/// A requester and a server on one driver, before anything is answered.
struct Asked {
    bench: Bench,
    client: i64,
    /// The subscription for the answers.
    subscription: i64,
    requests: Ready,
    /// What the server sees of the requests.
    image: Available,
}

impl Asked {
    fn on(requests: &str, answers: &str) -> Self {
        let mut bench = Bench::new();
        let client = bench.client();
        bench
            .add_subscription(client, requests, REQUEST_STREAM)
            .unwrap();
        let (subscription, _) = bench
            .add_subscription(client, answers, ANSWER_STREAM)
            .unwrap();
        let asks = correlated(requests, subscription);
        bench.messages();
        let correlation_id = bench.id();
        let mut told = bench.ask(&Command::AddPublication {
            client_id: client,
            correlation_id,
            stream_id: REQUEST_STREAM,
            channel: &asks,
        });
        bench.run_for(SECOND);
        told.extend(bench.messages());
        let image = available(&told).remove(0);
        let requests = bench
            .add_publication(client, &asks, REQUEST_STREAM)
            .unwrap();
        assert_eq!(requests.registration_id, correlation_id, "it is shared");
        Self {
            bench,
            client,
            subscription,
            requests,
            image,
        }
    }

    fn udp() -> Self {
        Self::on(REQUESTS, ANSWERS)
    }

    /// The server answers the image; what was told until the requester could have it.
    fn answer(&mut self, answers: &str) -> (Ready, Vec<Available>) {
        let channel = correlated(answers, self.image.image_id);
        self.bench.messages();
        let correlation_id = self.bench.id();
        self.bench.send(&Command::AddExclusivePublication {
            client_id: self.client,
            correlation_id,
            stream_id: ANSWER_STREAM,
            channel: &channel,
        });
        self.bench.run_for(SECOND);
        let told = self.bench.messages();
        let ready = told
            .iter()
            .find_map(|message| crate::bench::ready(message, correlation_id))
            .unwrap()
            .unwrap();
        (ready, available(&told))
    }

    fn spec(&self, log: &str) -> LogSpec {
        LogSpec::of(&self.bench.storage.open(Path::new(log)).unwrap()).unwrap()
    }

    fn is_connected(&self, publication: &Ready) -> bool {
        let log: LogBuffers = self.bench.log(&publication.log);
        log.is_connected()
    }

    fn close(&mut self, publication: &Ready) {
        self.bench.ask(&Command::RemovePublication {
            client_id: self.client,
            correlation_id: self.bench.id(),
            registration_id: publication.correlation_id,
            revoke: false,
        });
    }
}

#[test]
fn answers_reach_who_asked() {
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
        asked.bench.errors().is_empty(),
        "{:?}",
        asked.bench.errors()
    );
}

#[test]
fn nobody_else_gets_the_answers() {
    let mut asked = Asked::udp();
    let (other, _) = asked
        .bench
        .add_subscription(asked.client, ANSWERS, ANSWER_STREAM)
        .unwrap();
    let (_, images) = asked.answer(ANSWERS);
    assert_eq!(images.len(), 1);
    assert_ne!(images[0].subscription_id, other);
    asked.bench.run_for(2 * SECOND);
    assert!(available(&asked.bench.messages()).is_empty());
}

#[test]
fn answers_over_ipc_reach_who_asked() {
    let mut asked = Asked::on("aeron:ipc", "aeron:ipc?control-mode=response");
    assert_eq!(asked.image.image_id, asked.requests.registration_id);
    let (other, _) = asked
        .bench
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
fn requests_are_shared_by_those_who_wait_for_the_same_answers() {
    let mut asked = Asked::udp();
    let (other, _) = asked
        .bench
        .add_subscription(asked.client, ANSWERS, ANSWER_STREAM)
        .unwrap();
    for channel in [correlated(REQUESTS, other), REQUESTS.to_owned()] {
        let added = asked
            .bench
            .add_publication(asked.client, &channel, REQUEST_STREAM)
            .unwrap();
        assert_eq!(added.registration_id, added.correlation_id, "{channel}");
    }
}

#[test]
fn whoever_begins_anew_is_heard_under_its_new_session() {
    let mut asked = Asked::udp();
    let (first, images) = asked.answer(ANSWERS);
    asked.close(&first);
    asked.bench.set(images[0].position_counter_id, 0);
    asked.bench.run_for(15 * SECOND);
    let told = asked.bench.messages();
    assert_eq!(
        unavailable(&told),
        [(images[0].image_id, asked.subscription)]
    );
    let (second, images) = asked.answer(ANSWERS);
    assert_ne!(first.session_id, second.session_id);
    assert_eq!(images.len(), 1);
    assert_eq!(images[0].session_id, second.session_id);
    assert!(asked.is_connected(&second));
}

#[test]
fn what_is_named_must_be_there_and_must_have_asked() {
    let mut asked = Asked::udp();
    let (bench, client) = (&mut asked.bench, asked.client);
    let plain = "aeron:udp?endpoint=localhost:40125";
    bench.add_subscription(client, plain, 30).unwrap();
    let correlation_id = bench.id();
    bench.send(&Command::AddPublication {
        client_id: client,
        correlation_id,
        stream_id: 30,
        channel: plain,
    });
    bench.run_for(SECOND);
    let unasked = available(&bench.messages()).remove(0).image_id;
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
        let refused = bench.add_publication(client, &channel, 40).unwrap_err();
        assert_eq!(refused.code, ErrorCode::GenericError, "{channel}");
        assert!(refused.text.contains(part), "{}", refused.text);
    }
}

#[test]
fn over_ipc_nobody_has_to_be_there_as_with_the_official_drivers() {
    let mut bench = Bench::new();
    let client = bench.client();
    for channel in [
        correlated("aeron:ipc", 4_711),
        correlated("aeron:ipc?control-mode=response", 4_711),
    ] {
        let added = bench.add_publication(client, &channel, 40).unwrap();
        assert!(!added.log.is_empty(), "{channel}");
    }
}

#[test]
fn subscriptions_must_agree_on_waiting_for_answers() {
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
        let mut bench = Bench::new();
        let client = bench.client();
        bench.add_subscription(client, first, 42).unwrap();
        let refused = bench.add_subscription(client, second, 42).unwrap_err();
        let expected = format!(
            "option conflicts with existing subscription: isResponse={} existingChannel={first} channel={second}",
            second.contains("response")
        );
        assert!(refused.text.contains(&expected), "{}", refused.text);
    }
}

#[test]
fn a_prototype_holds_the_port_for_the_answers() {
    let mut asked = Asked::udp();
    let prototype = asked
        .bench
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
fn all_that_waits_for_answers_can_be_closed() {
    let mut asked = Asked::udp();
    let (answers, _) = asked.answer(ANSWERS);
    asked.close(&answers);
    asked.bench.ask(&Command::ClientClose {
        client_id: asked.client,
        correlation_id: -1,
    });
    asked.bench.run_for(30 * SECOND);
    assert!(
        asked.bench.counters().is_empty(),
        "{:?}",
        asked.bench.labels()
    );
    assert!(asked.bench.wires.open_ports().is_empty());
}

#[test]
fn a_response_setup_for_nobody_changes_nothing() {
    let mut asked = Asked::udp();
    let before = asked.bench.counters().len();
    // The requests leave from an address of their own; what arrives there is from the server.
    let port = asked
        .bench
        .wires
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
        asked.bench.wires.deliver(from, port, setup.as_bytes());
        asked.bench.settle();
    }
    assert_eq!(asked.bench.counters().len(), before);
    assert_eq!(asked.bench.system(SystemCounter::InvalidPackets), 0);
}
