//! IPC publications from their first message to their last (docs/spec/shared-memory.md §7.8, §9.6).

use std::time::Duration;

use taran_core::sync::Ordering;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::{ExclusiveAppender, LogBuffers, SharedAppender};
use taran_protocol::response::Response;

use crate::bench::{Bench, Ready};
use crate::told::{Available, available, unavailable};

const IPC: &str = "aeron:ipc";
const TERM: i64 = 64 * 1024;

/// A driver with one exclusive publication and one subscription, joined.
struct Stream {
    bench: Bench,
    client: i64,
    publication: Ready,
    image: Available,
    log: LogBuffers,
    appender: ExclusiveAppender,
}

impl Stream {
    fn new(subscribe: &str) -> Self {
        Self::in_bench(Bench::new(), subscribe)
    }

    fn in_bench(mut bench: Bench, subscribe: &str) -> Self {
        let client = bench.client();
        let publication = bench.add_exclusive(client, IPC, 10).unwrap();
        bench.send(&Command::AddSubscription {
            client_id: client,
            correlation_id: bench.id(),
            stream_id: 10,
            channel: subscribe,
        });
        bench.settle();
        let image = available(&bench.messages()).remove(0);
        let log = bench.log(&publication.log);
        let appender = ExclusiveAppender::new(log.clone()).unwrap();
        Self {
            bench,
            client,
            publication,
            image,
            log,
            appender,
        }
    }

    fn limit(&self) -> i64 {
        self.bench.value(self.publication.limit_counter_id)
    }

    fn position(&self) -> i64 {
        self.bench.value(self.image.position_counter_id)
    }

    /// Publishes up to the limit, and returns how far that came.
    fn publish(&mut self) -> i64 {
        while self.appender.position() < self.limit() {
            let _ = self.appender.append(&[0xAB; 1000], None);
        }
        self.appender.position()
    }

    fn consume_to(&self, position: i64) {
        self.bench.set(self.image.position_counter_id, position);
    }
}

#[test]
fn a_publisher_is_held_to_its_window_and_let_on_by_its_subscriber() {
    let mut stream = Stream::new(IPC);
    assert!(stream.log.is_connected());
    assert_eq!(stream.limit(), TERM / 2);
    let published = stream.publish();
    stream.bench.settle();
    assert_eq!(stream.limit(), TERM / 2, "nothing was consumed");
    stream.consume_to(published);
    stream.bench.settle();
    assert_eq!(stream.limit(), published + TERM / 2);
}

#[test]
fn who_was_silent_for_long_is_let_on_as_soon_as_before() {
    let mut stream = Stream::new(IPC);
    for _ in 0..3 {
        stream.bench.run_for(Duration::from_millis(350));
        let published = stream.publish();
        stream.consume_to(published);
        stream.bench.settle();
        assert_eq!(stream.limit(), published + TERM / 2);
    }
}

#[test]
fn what_is_published_again_was_cleaned_before() {
    let mut stream = Stream::new(IPC);
    // As an official publisher, which does not keep its log vacant itself.
    stream
        .log
        .metadata()
        .clears_ahead
        .store(0, Ordering::Release);
    // Seven times around the log.
    while stream.appender.position() < 21 * TERM {
        let published = stream.publish();
        stream.consume_to(published);
        stream.bench.settle();
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
fn nobody_cleans_for_a_publisher_that_keeps_its_log_vacant() {
    let mut stream = Stream::new(IPC);
    let mut last = 0;
    while stream.appender.position() < 7 * TERM {
        last = stream.publish();
        stream.consume_to(last);
        stream.bench.settle();
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
fn without_subscribers_nothing_may_be_published() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.consume_to(published - 64);
    stream.bench.settle();
    stream.bench.ask(&Command::RemoveSubscription {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        registration_id: stream.image.subscription_id,
    });
    assert!(!stream.log.is_connected());
    assert_eq!(stream.limit(), published - 64);
    // A new subscriber starts where the last one stopped.
    stream
        .bench
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    let joined = stream.bench.counters();
    let label = joined
        .iter()
        .map(|meta| meta.label.to_string())
        .find(|label| label.starts_with("sub-pos"))
        .unwrap();
    assert!(
        label.ends_with(&format!(" {IPC} @{}", published - 64)),
        "{label}"
    );
    stream.bench.settle();
    assert!(stream.log.is_connected());
    assert_eq!(stream.limit(), published - 64 + TERM / 2);
}

#[test]
fn the_slowest_subscriber_counts() {
    let mut stream = Stream::new(IPC);
    stream.bench.send(&Command::AddSubscription {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        stream_id: 10,
        channel: IPC,
    });
    stream.bench.settle();
    let second = available(&stream.bench.messages()).remove(0);
    let published = stream.publish();
    stream.consume_to(published);
    stream.bench.settle();
    assert_eq!(stream.limit(), TERM / 2);
    stream.bench.set(second.position_counter_id, published);
    stream.bench.settle();
    assert_eq!(stream.limit(), published + TERM / 2);
}

#[test]
fn a_closed_publication_is_drained_then_gone() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.bench.ask(&Command::RemovePublication {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        registration_id: stream.publication.correlation_id,
        revoke: false,
    });
    assert_eq!(stream.log.end_of_stream_position(), published);
    assert_eq!(stream.limit(), published);
    stream.bench.run_for(Duration::from_secs(5));
    assert!(
        unavailable(&stream.bench.messages()).is_empty(),
        "the subscriber has not read all"
    );
    stream.consume_to(published);
    stream.bench.run_for(Duration::from_secs(3));
    let gone = unavailable(&stream.bench.messages());
    assert_eq!(
        gone,
        [(stream.image.image_id, stream.image.subscription_id)]
    );
    assert!(stream.bench.log_files().is_empty());
}

#[test]
fn a_revoked_publication_is_gone_at_once() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.bench.ask(&Command::RemovePublication {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        registration_id: stream.publication.correlation_id,
        revoke: true,
    });
    stream.bench.run_for(Duration::from_secs(3));
    assert!(stream.log.is_revoked());
    assert_eq!(stream.log.end_of_stream_position(), published);
    assert_eq!(unavailable(&stream.bench.messages()).len(), 1);
    assert_eq!(stream.bench.system(SystemCounter::PublicationsRevoked), 1);
    assert!(stream.bench.log_files().is_empty());
}

#[test]
fn a_shared_publication_lives_as_long_as_its_last_user() {
    let mut bench = Bench::new();
    let (first, second) = (bench.client(), bench.client());
    let original = bench.add_publication(first, IPC, 10).unwrap();
    let shared = bench.add_publication(second, IPC, 10).unwrap();
    assert_eq!(shared.registration_id, original.registration_id);
    assert_eq!(
        (shared.session_id, &shared.log),
        (original.session_id, &original.log)
    );
    assert_ne!(shared.correlation_id, original.correlation_id);
    bench.kill(first);
    bench.run_for(Duration::from_secs(15));
    assert_eq!(bench.system(SystemCounter::ClientTimeouts), 1);
    assert_eq!(bench.log(&original.log).end_of_stream_position(), i64::MAX);
    bench.kill(second);
    bench.run_for(Duration::from_secs(20));
    assert!(bench.log_files().is_empty());
}

#[test]
fn exclusive_publications_are_never_shared() {
    let mut bench = Bench::new();
    let client = bench.client();
    let exclusive = bench.add_exclusive(client, IPC, 10).unwrap();
    let shared = bench.add_publication(client, IPC, 10).unwrap();
    let other = bench.add_exclusive(client, IPC, 10).unwrap();
    let logs = [&exclusive.log, &shared.log, &other.log];
    assert!(logs[0] != logs[1] && logs[1] != logs[2] && logs[0] != logs[2]);
    let labels: Vec<String> = bench
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
fn an_unfinished_message_is_padded_over() {
    let mut bench = Bench::new();
    let client = bench.client();
    let publication = bench.add_publication(client, IPC, 10).unwrap();
    bench.add_subscription(client, IPC, 10).unwrap();
    let log = bench.log(&publication.log);
    let appender = SharedAppender::new(log.clone());
    std::mem::forget(appender.claim(appender.tail().unwrap(), 100).unwrap());
    appender
        .append(appender.tail().unwrap(), &[1; 100], None)
        .unwrap();
    bench.run_for(Duration::from_secs(14));
    assert_eq!(bench.system(SystemCounter::UnblockedPublications), 0);
    // Two timer intervals after the timeout at the latest.
    bench.run_for(Duration::from_secs(3));
    assert_eq!(bench.system(SystemCounter::UnblockedPublications), 1);
    assert_eq!(
        log.term(0)
            .atomic_i32(0)
            .load(taran_core::sync::Ordering::Relaxed),
        132
    );
}

#[test]
fn a_rejected_stream_has_no_subscriber_for_a_while() {
    let mut stream = Stream::new(IPC);
    let answers = stream.bench.ask(&Command::RejectImage {
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
    assert_eq!(stream.bench.system(SystemCounter::ImagesRejected), 1);
    // It is an error that somebody may look for, as a rejection by a distant subscriber is.
    let [(recorded, 1)] = &stream.bench.errors()[..] else {
        panic!("{:?}", stream.bench.errors())
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
    stream.bench.run_for(Duration::from_secs(9));
    assert!(available(&stream.bench.messages()).is_empty());
    stream.bench.run_for(Duration::from_secs(3));
    assert_eq!(available(&stream.bench.messages()).len(), 1);
    assert!(stream.log.is_connected());
}

#[test]
fn a_subscriber_that_rejects_gets_nothing_again_that_it_read_before_it_heard_of_it() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    let reject = Command::RejectImage {
        client_id: -1,
        correlation_id: 77,
        image_id: stream.image.image_id,
        position: 0,
        reason: b"no",
    };
    // Some of it before the driver has looked, the rest before the client has.
    let first = (published / 2) & !31;
    stream.consume_to(first);
    let answers = stream.bench.ask(&reject);
    assert_eq!(unavailable(&answers).len(), 1);
    stream.consume_to(published);
    stream.bench.run_for(Duration::from_secs(12));
    let joined = available(&stream.bench.messages());
    assert_eq!(joined.len(), 1);
    let joined = joined[0].position_counter_id;
    assert_eq!(stream.bench.value(joined), published);
    // The old one's counter is given back.
    let counters = stream.bench.counters();
    let is_position =
        |meta: &&taran_core::counters::CounterMeta| meta.type_id == type_id::SUBSCRIBER_POSITION;
    assert_eq!(counters.iter().filter(is_position).count(), 1);
}

#[test]
fn an_untethered_subscriber_that_lags_rests_and_comes_back() {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    let client_id = stream.client;
    stream.bench.send(&Command::AddSubscription {
        client_id,
        correlation_id: stream.bench.id(),
        stream_id: 10,
        channel: IPC,
    });
    stream.bench.settle();
    let fast = available(&stream.bench.messages()).remove(0);
    let published = stream.publish();
    stream.bench.set(fast.position_counter_id, published);
    stream.bench.run_for(Duration::from_secs(4));
    assert!(unavailable(&stream.bench.messages()).is_empty());
    assert_eq!(stream.limit(), TERM / 2);
    stream.bench.run_for(Duration::from_secs(3));
    let gone = unavailable(&stream.bench.messages());
    assert_eq!(
        gone,
        [(stream.image.image_id, stream.image.subscription_id)]
    );
    // It lingers, and still counts.
    assert_eq!(stream.limit(), TERM / 2);
    stream.bench.run_for(Duration::from_secs(6));
    assert_eq!(stream.limit(), published + TERM / 2);
    stream.bench.run_for(Duration::from_secs(11));
    let back = available(&stream.bench.messages()).remove(0);
    assert_eq!(back, stream.image);
    assert_eq!(
        stream.position(),
        published,
        "it joins where the others are"
    );
}

#[test]
fn a_position_beyond_the_end_of_the_stream_does_no_harm() {
    let mut stream = Stream::new(IPC);
    for position in [i64::MAX, i64::MIN, -64, 1 << 40, 33] {
        stream.consume_to(position);
        stream.bench.settle();
        assert!(stream.limit() <= TERM, "{position}: {}", stream.limit());
    }
}

/// The position counter of the other subscriber.
fn position_of_another(stream: &Stream) -> i32 {
    let counters = stream.bench.counters();
    counters
        .iter()
        .filter(|meta| meta.type_id == type_id::SUBSCRIBER_POSITION)
        .map(|meta| meta.id)
        .find(|id| *id != stream.image.position_counter_id)
        .unwrap()
}

#[test]
fn an_untethered_subscriber_that_comes_back_gets_nothing_again() {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    // One reads everything; one nothing, and that one is waited for.
    let [quick, slow] = [0; 2].map(|_| {
        stream.bench.send(&Command::AddSubscription {
            client_id: stream.client,
            correlation_id: stream.bench.id(),
            stream_id: 10,
            channel: IPC,
        });
        stream.bench.settle();
        available(&stream.bench.messages()).remove(0)
    });
    let published = stream.publish();
    stream.bench.set(quick.position_counter_id, published);
    stream.consume_to(4096);
    stream.bench.run_for(Duration::from_secs(8));
    assert_eq!(unavailable(&stream.bench.messages()).len(), 1);
    // It reads on until it hears of it, and says that it has read what was not published.
    stream.consume_to(published + 1000);
    stream.bench.run_for(Duration::from_secs(12));
    let joined = available(&stream.bench.messages());
    assert_eq!(joined.len(), 1);
    assert_eq!(stream.bench.value(joined[0].position_counter_id), published);
    assert_eq!(stream.bench.value(slow.position_counter_id), 0);
}

/// A stream that one subscriber has read, and an untethered one that does nothing has not.
fn lagging() -> Stream {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    stream
        .bench
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    stream.bench.drain();
    let reader = position_of_another(&stream);
    let published = stream.publish();
    stream.bench.set(reader, published);
    stream
}

fn close(stream: &mut Stream) {
    stream.bench.ask(&Command::RemovePublication {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        registration_id: stream.publication.correlation_id,
        revoke: false,
    });
}

#[test]
fn a_stream_ends_without_an_untethered_subscriber_that_lingers() {
    let mut stream = lagging();
    stream.bench.run_for(Duration::from_secs(7));
    assert_eq!(unavailable(&stream.bench.messages()).len(), 1);
    close(&mut stream);
    stream.bench.run_for(Duration::from_secs(3));
    assert_eq!(unavailable(&stream.bench.messages()).len(), 1);
    assert!(stream.bench.log_files().is_empty());
}

#[test]
fn a_stream_that_drains_gives_up_an_untethered_subscriber_in_time() {
    let mut stream = lagging();
    close(&mut stream);
    stream.bench.run_for(Duration::from_secs(3));
    assert!(unavailable(&stream.bench.messages()).is_empty());
    stream.bench.run_for(Duration::from_secs(6));
    assert_eq!(unavailable(&stream.bench.messages()).len(), 2);
    assert!(stream.bench.log_files().is_empty());
}

#[test]
fn a_position_that_cannot_be_moves_nobody_who_joins() {
    let mut stream = Stream::new(IPC);
    let published = stream.publish();
    stream.consume_to(published);
    stream.bench.settle();
    for position in [i64::MIN, -64, 33, published + 1, i64::MAX] {
        stream.consume_to(position);
        stream.bench.send(&Command::AddSubscription {
            client_id: stream.client,
            correlation_id: stream.bench.id(),
            stream_id: 10,
            channel: IPC,
        });
        stream.bench.settle();
        let joined = available(&stream.bench.messages()).remove(0);
        let at = stream.bench.value(joined.position_counter_id);
        assert_eq!(at, published, "{position}");
    }
}

#[test]
fn a_subscriber_that_was_dropped_for_good_does_not_join_after_a_rejection() {
    let mut stream = Stream::new("aeron:ipc?tether=false|rejoin=false");
    let (reader, _) = stream
        .bench
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    stream.bench.drain();
    let position = position_of_another(&stream);
    let published = stream.publish();
    stream.bench.set(position, published);
    stream.bench.run_for(Duration::from_secs(12));
    stream.bench.drain();
    stream.bench.ask(&Command::RejectImage {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        image_id: stream.image.image_id,
        position: 0,
        reason: b"no",
    });
    stream.bench.drain();
    stream.bench.run_for(Duration::from_secs(12));
    let joined = available(&stream.bench.messages());
    assert_eq!(joined.len(), 1);
    assert_eq!(joined[0].subscription_id, reader);
}

#[test]
fn a_publication_is_connected_at_once_when_its_only_subscriber_comes_back() {
    let mut stream = Stream::new("aeron:ipc?tether=false");
    let (registration_id, _) = stream
        .bench
        .add_subscription(stream.client, IPC, 10)
        .unwrap();
    stream.bench.drain();
    let position = position_of_another(&stream);
    let published = stream.publish();
    stream.bench.set(position, published);
    stream.bench.run_for(Duration::from_secs(12));
    assert_eq!(unavailable(&stream.bench.messages()).len(), 1);
    stream.bench.ask(&Command::RemoveSubscription {
        client_id: stream.client,
        correlation_id: stream.bench.id(),
        registration_id,
    });
    assert!(!stream.log.is_connected());
    for _ in 0..4_000 {
        stream.bench.run_for(Duration::from_millis(5));
        if !available(&stream.bench.messages()).is_empty() {
            assert!(stream.log.is_connected());
            return;
        }
    }
    panic!("it never came back");
}
