// SPDX-License-Identifier: Apache-2.0
//! Life cycle of IPC publications (docs/spec/shared-memory.md §7.8, §9.6).

use std::time::Duration;

use taran_core::sync::Ordering;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::{ExclusiveAppender, LogBuffers, SharedAppender};
use taran_protocol::response::Response;

use crate::fixture::{DriverFixture, Ready};
use crate::image_events::{Available, available, unavailable};

const IPC: &str = "aeron:ipc";
const TERM: i64 = 64 * 1024;

/// A driver with one exclusive publication and one subscription, joined.
struct Stream {
    driver: DriverFixture,
    client: i64,
    publication: Ready,
    image: Available,
    log: LogBuffers,
    appender: ExclusiveAppender,
}

impl Stream {
    fn new(subscribe: &str) -> Self {
        Self::with_driver(DriverFixture::new(), subscribe)
    }

    fn with_driver(mut driver: DriverFixture, subscribe: &str) -> Self {
        let client = driver.client();
        let publication = driver.add_exclusive(client, IPC, 10).unwrap();
        driver.send(&Command::AddSubscription {
            client_id: client,
            correlation_id: driver.id(),
            stream_id: 10,
            channel: subscribe,
        });
        driver.settle();
        let image = available(&driver.messages()).remove(0);
        let log = driver.log(&publication.log);
        let appender = ExclusiveAppender::new(log.clone()).unwrap();
        Self {
            driver,
            client,
            publication,
            image,
            log,
            appender,
        }
    }

    fn limit(&self) -> i64 {
        self.driver.value(self.publication.limit_counter_id)
    }

    fn position(&self) -> i64 {
        self.driver.value(self.image.position_counter_id)
    }

    /// Publishes up to the limit and returns the position.
    fn publish(&mut self) -> i64 {
        while self.appender.position() < self.limit() {
            let _ = self.appender.append(&[0xAB; 1000], None);
        }
        self.appender.position()
    }

    fn consume_to(&self, position: i64) {
        self.driver.set(self.image.position_counter_id, position);
    }
}

#[test]
fn publisher_limit_follows_subscriber_position() {
    let mut stream = Stream::new(IPC);
    assert!(stream.log.is_connected());
    assert_eq!(stream.limit(), TERM / 2);
    let published = stream.publish();
    stream.driver.settle();
    assert_eq!(stream.limit(), TERM / 2, "nothing was consumed");
    stream.consume_to(published);
    stream.driver.settle();
    assert_eq!(stream.limit(), published + TERM / 2);
}

#[test]
fn limit_of_idle_ipc_publication_is_updated_without_delay() {
    let mut stream = Stream::new(IPC);
    for _ in 0..3 {
        stream.driver.run_for(Duration::from_millis(350));
        let published = stream.publish();
        stream.consume_to(published);
        stream.driver.settle();
        assert_eq!(stream.limit(), published + TERM / 2);
    }
}

#[test]
fn terms_are_cleaned_before_reuse() {
    let mut stream = Stream::new(IPC);
    // Like an official publisher, which does not clear ahead.
    stream
        .log
        .metadata()
        .clears_ahead
        .store(0, Ordering::Release);
    // Seven times around the log.
    while stream.appender.position() < 21 * TERM {
        let published = stream.publish();
        stream.consume_to(published);
        stream.driver.settle();
        // Everything up to the limit is zero.
        let mut at = published;
        while at < stream.limit() {
            let term = stream.log.term_at(at);
            let offset = stream.log.geometry().term_offset(at) as usize;
            assert!(
                term.bytes(offset, 32).iter().all(|byte| *byte == 0),
                "at {at}"
            );
            at += 32;
        }
    }
}

#[test]
fn terms_of_publisher_that_clears_ahead_are_not_cleaned() {
    let mut stream = Stream::new(IPC);
    let mut last = 0;
    while stream.appender.position() < 7 * TERM {
        last = stream.publish();
        stream.consume_to(last);
        stream.driver.settle();
    }
    assert_eq!(stream.limit(), last + TERM / 2);
    let old = (last + 32..stream.limit()).step_by(32).filter(|&at| {
        let offset = stream.log.geometry().term_offset(at) as usize;
        let slot = stream.log.term_at(at).atomic_i32(offset);
        slot.load(Ordering::Acquire) != 0
    });
    assert!(old.count() > 0);
}

#[test]
fn publication_without_subscribers_has_no_window() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.consume_to(published - 64);
    stream.driver.settle();
    stream.driver.ask(&Command::RemoveSubscription {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        registration_id: stream.image.subscription_id,
    });
    assert!(!stream.log.is_connected());
    assert_eq!(stream.limit(), published - 64);
    // A new subscriber starts where the last one stopped.
    stream
        .driver
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    let joined = stream.driver.counters();
    let label = joined
        .iter()
        .map(|meta| meta.label.to_string())
        .find(|label| label.starts_with("sub-pos"))
        .unwrap();
    assert!(
        label.ends_with(&format!(" {IPC} @{}", published - 64)),
        "{label}"
    );
    stream.driver.settle();
    assert!(stream.log.is_connected());
    assert_eq!(stream.limit(), published - 64 + TERM / 2);
}

#[test]
fn limit_follows_slowest_subscriber() {
    let mut stream = Stream::new(IPC);
    stream.driver.send(&Command::AddSubscription {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        stream_id: 10,
        channel: IPC,
    });
    stream.driver.settle();
    let second = available(&stream.driver.messages()).remove(0);
    let published = stream.publish();
    stream.consume_to(published);
    stream.driver.settle();
    assert_eq!(stream.limit(), TERM / 2);
    stream.driver.set(second.position_counter_id, published);
    stream.driver.settle();
    assert_eq!(stream.limit(), published + TERM / 2);
}

#[test]
fn closed_publication_is_drained_then_freed() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.driver.ask(&Command::RemovePublication {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        registration_id: stream.publication.correlation_id,
        revoke: false,
    });
    assert_eq!(stream.log.end_of_stream_position(), published);
    assert_eq!(stream.limit(), published);
    stream.driver.run_for(Duration::from_secs(5));
    assert!(
        unavailable(&stream.driver.messages()).is_empty(),
        "the subscriber has not read all"
    );
    stream.consume_to(published);
    stream.driver.run_for(Duration::from_secs(3));
    let gone = unavailable(&stream.driver.messages());
    assert_eq!(
        gone,
        [(stream.image.image_id, stream.image.subscription_id)]
    );
    assert!(stream.driver.log_files().is_empty());
}

#[test]
fn revoked_publication_is_freed_at_once() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.driver.ask(&Command::RemovePublication {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        registration_id: stream.publication.correlation_id,
        revoke: true,
    });
    stream.driver.run_for(Duration::from_secs(3));
    assert!(stream.log.is_revoked());
    assert_eq!(stream.log.end_of_stream_position(), published);
    assert_eq!(unavailable(&stream.driver.messages()).len(), 1);
    assert_eq!(stream.driver.system(SystemCounter::PublicationsRevoked), 1);
    assert!(stream.driver.log_files().is_empty());
}

#[test]
fn shared_publication_is_freed_with_its_last_client() {
    let mut driver = DriverFixture::new();
    let (first, second) = (driver.client(), driver.client());
    let original = driver.add_publication(first, IPC, 10).unwrap();
    let shared = driver.add_publication(second, IPC, 10).unwrap();
    assert_eq!(shared.registration_id, original.registration_id);
    assert_eq!(
        (shared.session_id, &shared.log),
        (original.session_id, &original.log)
    );
    assert_ne!(shared.correlation_id, original.correlation_id);
    driver.kill(first);
    driver.run_for(Duration::from_secs(15));
    assert_eq!(driver.system(SystemCounter::ClientTimeouts), 1);
    assert_eq!(driver.log(&original.log).end_of_stream_position(), i64::MAX);
    driver.kill(second);
    driver.run_for(Duration::from_secs(20));
    assert!(driver.log_files().is_empty());
}

#[test]
fn exclusive_publications_are_never_shared() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let exclusive = driver.add_exclusive(client, IPC, 10).unwrap();
    let shared = driver.add_publication(client, IPC, 10).unwrap();
    let other = driver.add_exclusive(client, IPC, 10).unwrap();
    let logs = [&exclusive.log, &shared.log, &other.log];
    assert!(logs[0] != logs[1] && logs[1] != logs[2] && logs[0] != logs[2]);
    let labels: Vec<String> = driver
        .counters()
        .iter()
        .map(|meta| meta.label.to_string())
        .collect();
    let of = |name: &str| {
        labels
            .iter()
            .filter(|label| label.starts_with(name))
            .count()
    };
    assert_eq!(
        (of("pub-pos (exclusive)"), of("pub-pos (concurrent)")),
        (2, 1)
    );
}

#[test]
fn unfinished_message_is_unblocked_with_padding() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let publication = driver.add_publication(client, IPC, 10).unwrap();
    driver.add_subscription(client, IPC, 10).unwrap();
    let log = driver.log(&publication.log);
    let appender = SharedAppender::new(log.clone());
    std::mem::forget(appender.claim(appender.tail().unwrap(), 100).unwrap());
    appender
        .append(appender.tail().unwrap(), &[1; 100], None)
        .unwrap();
    driver.run_for(Duration::from_secs(14));
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 0);
    // Two timer intervals after the timeout at the latest.
    driver.run_for(Duration::from_secs(3));
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 1);
    assert_eq!(
        log.term(0)
            .atomic_i32(0)
            .load(taran_core::sync::Ordering::Relaxed),
        132
    );
}

#[test]
fn rejected_stream_is_disconnected_during_cool_down() {
    let mut stream = Stream::new(IPC);
    let answers = stream.driver.ask(&Command::RejectImage {
        client_id: -1,
        correlation_id: 77,
        image_id: stream.image.image_id,
        position: 0,
        reason: b"I do not like it",
    });
    let Response::PublicationError {
        registration_id,
        error_code,
        message,
        source,
        ..
    } = answers[0].get()
    else {
        panic!()
    };
    assert_eq!(
        (registration_id, error_code),
        (
            stream.publication.registration_id,
            ErrorCode::ImageRejected.code()
        )
    );
    assert_eq!(
        (message, source.to_string().as_str()),
        (&b"I do not like it"[..], "127.0.0.1:0")
    );
    assert_eq!(
        unavailable(&answers),
        [(stream.image.image_id, stream.image.subscription_id)]
    );
    assert!(matches!(
        answers[2].get(),
        Response::OperationSuccess { correlation_id: 77 }
    ));
    assert_eq!(stream.driver.system(SystemCounter::ImagesRejected), 1);
    // It is recorded as an error, like a rejection by a remote subscriber.
    let [(recorded, 1)] = &stream.driver.errors()[..] else {
        panic!("{:?}", stream.driver.errors())
    };
    assert!(
        recorded.starts_with("(-13) image rejected\nonPublicationError: registrationId="),
        "{recorded}"
    );
    assert!(
        recorded.contains("errorMessage=I do not like it"),
        "{recorded}"
    );
    assert!(!stream.log.is_connected());
    stream.driver.run_for(Duration::from_secs(9));
    assert!(available(&stream.driver.messages()).is_empty());
    stream.driver.run_for(Duration::from_secs(3));
    assert_eq!(available(&stream.driver.messages()).len(), 1);
    assert!(stream.log.is_connected());
}

#[test]
fn rejecting_subscriber_rejoins_after_its_last_position() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    let reject = Command::RejectImage {
        client_id: -1,
        correlation_id: 77,
        image_id: stream.image.image_id,
        position: 0,
        reason: b"no",
    };
    // Partly before the driver has executed the rejection, partly before the client has received it.
    let first = (published / 2) & !31;
    stream.consume_to(first);
    let answers = stream.driver.ask(&reject);
    assert_eq!(unavailable(&answers).len(), 1);
    stream.consume_to(published);
    stream.driver.run_for(Duration::from_secs(12));
    let joined = available(&stream.driver.messages());
    assert_eq!(joined.len(), 1);
    let joined = joined[0].position_counter_id;
    assert_eq!(stream.driver.value(joined), published);
    // The old position counter is freed.
    let counters = stream.driver.counters();
    let is_position =
        |meta: &&taran_core::counters::CounterMeta| meta.type_id == type_id::SUBSCRIBER_POSITION;
    assert_eq!(counters.iter().filter(is_position).count(), 1);
}

#[test]
fn lagging_untethered_subscriber_rests_and_rejoins() {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    let client_id = stream.client;
    stream.driver.send(&Command::AddSubscription {
        client_id,
        correlation_id: stream.driver.id(),
        stream_id: 10,
        channel: IPC,
    });
    stream.driver.settle();
    let fast = available(&stream.driver.messages()).remove(0);
    let published = stream.publish();
    stream.driver.set(fast.position_counter_id, published);
    stream.driver.run_for(Duration::from_secs(4));
    assert!(unavailable(&stream.driver.messages()).is_empty());
    assert_eq!(stream.limit(), TERM / 2);
    stream.driver.run_for(Duration::from_secs(3));
    let gone = unavailable(&stream.driver.messages());
    assert_eq!(
        gone,
        [(stream.image.image_id, stream.image.subscription_id)]
    );
    // While it lingers, it still limits the publisher.
    assert_eq!(stream.limit(), TERM / 2);
    stream.driver.run_for(Duration::from_secs(6));
    assert_eq!(stream.limit(), published + TERM / 2);
    stream.driver.run_for(Duration::from_secs(11));
    let back = available(&stream.driver.messages()).remove(0);
    assert_eq!(back, stream.image);
    assert_eq!(
        stream.position(),
        published,
        "it joins where the others are"
    );
}

#[test]
fn subscriber_position_beyond_end_of_stream_is_ignored() {
    let mut stream = Stream::new(IPC);
    for position in [i64::MAX, i64::MIN, -64, 1 << 40, 33] {
        stream.consume_to(position);
        stream.driver.settle();
        assert!(stream.limit() <= TERM, "{position}: {}", stream.limit());
    }
}

/// The position counter of the other subscriber.
fn position_of_another(stream: &Stream) -> i32 {
    let counters = stream.driver.counters();
    counters
        .iter()
        .filter(|meta| meta.type_id == type_id::SUBSCRIBER_POSITION)
        .map(|meta| meta.id)
        .find(|id| *id != stream.image.position_counter_id)
        .unwrap()
}

#[test]
fn rejoined_untethered_subscriber_receives_nothing_twice() {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    // One subscriber reads everything; the other one reads nothing and limits the publisher.
    let [quick, slow] = [0; 2].map(|_| {
        stream.driver.send(&Command::AddSubscription {
            client_id: stream.client,
            correlation_id: stream.driver.id(),
            stream_id: 10,
            channel: IPC,
        });
        stream.driver.settle();
        available(&stream.driver.messages()).remove(0)
    });
    let published = stream.publish();
    stream.driver.set(quick.position_counter_id, published);
    stream.consume_to(4096);
    stream.driver.run_for(Duration::from_secs(8));
    assert_eq!(unavailable(&stream.driver.messages()).len(), 1);
    // It reads on until it receives the event, and reports a position beyond the published end.
    stream.consume_to(published + 1000);
    stream.driver.run_for(Duration::from_secs(12));
    let joined = available(&stream.driver.messages());
    assert_eq!(joined.len(), 1);
    assert_eq!(
        stream.driver.value(joined[0].position_counter_id),
        published
    );
    assert_eq!(stream.driver.value(slow.position_counter_id), 0);
}

/// Returns a stream with one subscriber that has read everything and an idle untethered one.
fn lagging() -> Stream {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    stream
        .driver
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    stream.driver.drain();
    let reader = position_of_another(&stream);
    let published = stream.publish();
    stream.driver.set(reader, published);
    stream
}

fn close(stream: &mut Stream) {
    stream.driver.ask(&Command::RemovePublication {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        registration_id: stream.publication.correlation_id,
        revoke: false,
    });
}

#[test]
fn stream_end_does_not_wait_for_lingering_untethered_subscriber() {
    let mut stream = lagging();
    stream.driver.run_for(Duration::from_secs(7));
    assert_eq!(unavailable(&stream.driver.messages()).len(), 1);
    close(&mut stream);
    stream.driver.run_for(Duration::from_secs(3));
    assert_eq!(unavailable(&stream.driver.messages()).len(), 1);
    assert!(stream.driver.log_files().is_empty());
}

#[test]
fn draining_stream_drops_lagging_untethered_subscriber() {
    let mut stream = lagging();
    close(&mut stream);
    stream.driver.run_for(Duration::from_secs(3));
    assert!(unavailable(&stream.driver.messages()).is_empty());
    stream.driver.run_for(Duration::from_secs(6));
    assert_eq!(unavailable(&stream.driver.messages()).len(), 2);
    assert!(stream.driver.log_files().is_empty());
}

#[test]
fn impossible_position_does_not_affect_join_position() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.consume_to(published);
    stream.driver.settle();
    for position in [i64::MIN, -64, 33, published + 1, i64::MAX] {
        stream.consume_to(position);
        stream.driver.send(&Command::AddSubscription {
            client_id: stream.client,
            correlation_id: stream.driver.id(),
            stream_id: 10,
            channel: IPC,
        });
        stream.driver.settle();
        let joined = available(&stream.driver.messages()).remove(0);
        let at = stream.driver.value(joined.position_counter_id);
        assert_eq!(at, published, "{position}");
    }
}

#[test]
fn dropped_subscriber_does_not_rejoin_after_rejection() {
    let mut stream = Stream::new("aeron:ipc?tether=false|rejoin=false");
    let (reader, _) = stream
        .driver
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    stream.driver.drain();
    let position = position_of_another(&stream);
    let published = stream.publish();
    stream.driver.set(position, published);
    stream.driver.run_for(Duration::from_secs(12));
    stream.driver.drain();
    stream.driver.ask(&Command::RejectImage {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        image_id: stream.image.image_id,
        position: 0,
        reason: b"no",
    });
    stream.driver.drain();
    stream.driver.run_for(Duration::from_secs(12));
    let joined = available(&stream.driver.messages());
    assert_eq!(joined.len(), 1);
    assert_eq!(joined[0].subscription_id, reader);
}

#[test]
fn publication_is_connected_once_its_only_subscriber_rejoins() {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    let (registration_id, _) = stream
        .driver
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    stream.driver.drain();
    let position = position_of_another(&stream);
    let published = stream.publish();
    stream.driver.set(position, published);
    stream.driver.run_for(Duration::from_secs(12));
    assert_eq!(unavailable(&stream.driver.messages()).len(), 1);
    stream.driver.ask(&Command::RemoveSubscription {
        client_id: stream.client,
        correlation_id: stream.driver.id(),
        registration_id,
    });
    assert!(!stream.log.is_connected());
    for _ in 0..4_000 {
        stream.driver.run_for(Duration::from_millis(5));
        if !available(&stream.driver.messages()).is_empty() {
            assert!(stream.log.is_connected());
            return;
        }
    }
    panic!("it never came back");
}
