//! Spies: subscriptions that read what this driver sends, without the network (docs/spec/wire.md §2.12, §3, §5.9).

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::log::{ExclusiveAppender, LogBuffers};

use crate::bench::{Bench, Ready};
use crate::told::{Available, available, unavailable};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const SIMULATING: &str = "aeron:udp?endpoint=localhost:40123|ssc=true";
const SPY: &str = "aeron-spy:aeron:udp?endpoint=localhost:40123";
const TERM: i64 = 64 * 1024;
const WINDOW: i64 = TERM / 2;
const SECOND: Duration = Duration::from_secs(1);

/// A publication to the network, and a client that publishes on it.
struct Spied {
    bench: Bench,
    client: i64,
    publication: Ready,
    log: LogBuffers,
    appender: ExclusiveAppender,
}

impl Spied {
    fn new(channel: &str) -> Self {
        Self::in_bench(Bench::new(), channel)
    }

    fn in_bench(mut bench: Bench, channel: &str) -> Self {
        let client = bench.client();
        let publication = bench.add_exclusive(client, channel, 10).unwrap();
        let log = bench.log(&publication.log);
        let appender = ExclusiveAppender::new(log.clone()).unwrap();
        Self {
            bench,
            client,
            publication,
            log,
            appender,
        }
    }

    /// A spy that joins the publication.
    fn spy(&mut self, channel: &str) -> Available {
        let mut found = self.spies(channel);
        assert_eq!(found.len(), 1, "{channel}");
        found.remove(0)
    }

    /// Adds a spy; what it is told of images.
    fn spies(&mut self, channel: &str) -> Vec<Available> {
        let messages = self.bench.ask(&Command::AddSubscription {
            client_id: self.client,
            correlation_id: self.bench.id(),
            stream_id: 10,
            channel,
        });
        available(&messages)
    }

    /// A receiver that reads everything at once is not there: it holds the stream back like any other.
    fn receiver(&mut self) -> Available {
        self.bench.add_subscription(self.client, UDP, 10).unwrap();
        self.bench.run_for(SECOND);
        available(&self.bench.messages()).remove(0)
    }

    fn limit(&self) -> i64 {
        self.bench.value(self.publication.limit_counter_id)
    }

    fn sender_position(&self) -> i64 {
        let counters = self.bench.counters();
        let found = counters
            .iter()
            .find(|meta| meta.type_id == type_id::SENDER_POSITION);
        self.bench.value(found.unwrap().id)
    }

    /// Publishes up to the limit, and returns how far that came.
    fn publish(&mut self) -> i64 {
        while self.appender.position() < self.limit() {
            let _ = self.appender.append(&[0xAB; 992], None);
        }
        self.bench.settle();
        self.appender.position()
    }

    fn read_to(&mut self, image: &Available, position: i64) {
        self.bench.set(image.position_counter_id, position);
        self.bench.settle();
    }

    fn close(&mut self, revoke: bool) {
        let command = Command::RemovePublication {
            client_id: self.client,
            correlation_id: self.bench.id(),
            registration_id: self.publication.correlation_id,
            revoke,
        };
        self.bench.ask(&command);
    }
}

#[test]
fn a_spy_is_told_of_the_publication_itself() {
    let mut spied = Spied::new(UDP);
    let image = spied.spy(SPY);
    assert_eq!(image.image_id, spied.publication.registration_id);
    assert_eq!(image.session_id, spied.publication.session_id);
    assert_eq!(image.log, spied.publication.log);
    assert_eq!(image.source, "aeron:ipc");
    let counters = spied.bench.counters();
    let position = counters
        .iter()
        .find(|meta| meta.id == image.position_counter_id);
    let position = position.unwrap();
    assert_eq!(position.type_id, type_id::SUBSCRIBER_POSITION);
    assert_eq!(position.registration_id, image.subscription_id);
    assert_eq!(position.reference_id, image.image_id);
    assert_eq!(
        position.label.to_string(),
        format!(
            "sub-pos: {} {} 10 {SPY} @0",
            image.subscription_id, image.session_id
        )
    );
}

/// Several times around the logs, with a pause now and then, and no time in between.
#[test]
fn who_was_silent_for_long_is_let_on_as_soon_as_before() {
    let mut spied = Spied::new(UDP);
    let image = spied.receiver();
    let spy = spied.spy(SPY);
    for _ in 0..3 {
        spied.bench.run_for(Duration::from_millis(350));
        for _ in 0..12 {
            let published = spied.publish();
            assert_eq!(spied.sender_position(), published);
            spied.read_to(&image, published);
            assert!(spied.limit() < published + WINDOW, "the spy has not read");
            spied.read_to(&spy, published);
            assert_eq!(spied.limit(), published + WINDOW);
        }
    }
}

#[test]
fn a_spy_has_no_channel_of_its_own_and_joins_publications_that_come_later() {
    let mut bench = Bench::new();
    let client = bench.client();
    let (subscription, status) = bench.add_subscription(client, SPY, 10).unwrap();
    assert_eq!(status, -1);
    assert!(bench.wires.open_ports().is_empty());
    for _ in 0..2 {
        let publication = bench.add_exclusive(client, UDP, 10).unwrap();
        let messages = bench.ask(&Command::ClientKeepalive {
            client_id: client,
            correlation_id: bench.id(),
        });
        assert!(available(&messages).is_empty(), "told with the publication");
        assert_eq!(spies_of(&bench, &publication), [subscription]);
    }
}

/// Registration ids of the subscriptions that read a publication.
fn spies_of(bench: &Bench, publication: &Ready) -> Vec<i64> {
    let counters = bench.counters().into_iter();
    counters
        .filter(|meta| {
            meta.type_id == type_id::SUBSCRIBER_POSITION
                && meta.reference_id == publication.registration_id
        })
        .map(|meta| meta.registration_id)
        .collect()
}

#[test]
fn a_spy_reads_what_its_channel_its_tag_and_its_session_say() {
    let mut spied = Spied::new("aeron:udp?endpoint=localhost:40123|tags=7|session-id=5");
    for (channel, sees) in [
        (SPY, true),
        ("aeron-spy:aeron:udp?endpoint=localhost:40124", false),
        ("aeron-spy:aeron:udp?endpoint=127.0.0.1:40123", false),
        (
            "aeron-spy:aeron:udp?endpoint=localhost:40123|session-id=5",
            true,
        ),
        (
            "aeron-spy:aeron:udp?endpoint=localhost:40123|session-id=6",
            false,
        ),
        ("aeron-spy:aeron:udp?tags=7", true),
        ("aeron-spy:aeron:udp?tags=8", false),
        // The tag alone decides, as in the official drivers.
        ("aeron-spy:aeron:udp?tags=7|session-id=6", true),
        ("aeron-spy:aeron:udp?endpoint=localhost:40999|tags=7", true),
    ] {
        assert_eq!(spied.spies(channel).len(), usize::from(sees), "{channel}");
    }
}

#[test]
fn a_spy_holds_the_publisher_back_but_not_the_sender() {
    let mut spied = Spied::new(UDP);
    let receiver = spied.receiver();
    let spy = spied.spy(SPY);
    let published = spied.publish();
    assert!(published >= WINDOW);
    assert_eq!(spied.sender_position(), published);
    spied.read_to(&receiver, published);
    assert_eq!(spied.limit(), WINDOW, "the spy has read nothing");
    spied.read_to(&spy, 4096);
    assert_eq!(spied.limit(), 4096 + WINDOW);
    let published = spied.publish();
    assert_eq!(spied.sender_position(), published);
    // Without it the receiver alone counts.
    spied.bench.ask(&Command::RemoveSubscription {
        client_id: spied.client,
        correlation_id: spied.bench.id(),
        registration_id: spy.subscription_id,
    });
    assert_eq!(spied.limit(), published + WINDOW);
    assert!(spies_of(&spied.bench, &spied.publication).is_empty());
}

#[test]
fn a_spy_joins_where_the_sender_is() {
    let mut spied = Spied::new(UDP);
    spied.receiver();
    let published = spied.publish();
    let spy = spied.spy(SPY);
    assert_eq!(spied.bench.value(spy.position_counter_id), published);
}

#[test]
fn a_spy_alone_does_not_connect_a_publication() {
    let mut spied = Spied::new(UDP);
    spied.spy(SPY);
    spied.bench.run_for(SECOND);
    assert!(!spied.log.is_connected());
    assert_eq!(spied.limit(), 0);
}

#[test]
fn spies_simulate_a_connection_where_channel_or_option_say_so() {
    let by_option = Bench::with(&[("aeron.spies.simulate.connection", "true")]);
    for mut spied in [Spied::new(SIMULATING), Spied::in_bench(by_option, UDP)] {
        let spy = spied.spy(SPY);
        assert!(spied.log.is_connected());
        let mut read = 0;
        // Many times around the log.
        while read < 10 * TERM {
            assert_eq!(spied.limit(), read + WINDOW);
            let published = spied.publish();
            assert!(published > read);
            spied.read_to(&spy, published);
            assert_eq!(spied.sender_position(), published);
            read = published;
        }
        spied.bench.ask(&Command::RemoveSubscription {
            client_id: spied.client,
            correlation_id: spied.bench.id(),
            registration_id: spy.subscription_id,
        });
        assert!(!spied.log.is_connected());
        assert_eq!(spied.limit(), read);
    }
}

#[test]
fn the_fastest_spy_moves_the_stream_and_the_slowest_holds_the_publisher() {
    let mut spied = Spied::new(SIMULATING);
    let fast = spied.spy(SPY);
    let slow = spied.spy(SPY);
    let published = spied.publish();
    spied.read_to(&fast, published);
    assert_eq!(spied.sender_position(), published);
    assert_eq!(spied.limit(), WINDOW);
    spied.read_to(&slow, 8192);
    assert_eq!(spied.limit(), 8192 + WINDOW);
}

#[test]
fn a_receiver_takes_over_from_the_spies() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    spied.read_to(&spy, published);
    let receiver = spied.receiver();
    assert_eq!(
        spied.bench.value(receiver.position_counter_id),
        published,
        "it joins where the spies are"
    );
    let published = spied.publish();
    spied.read_to(&spy, published);
    assert_eq!(spied.sender_position(), published);
    spied.read_to(&receiver, published);
    spied.bench.run_for(SECOND);
    assert_eq!(spied.limit(), published + WINDOW);
}

#[test]
fn a_closed_publication_waits_for_its_spies() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    spied.close(false);
    assert_eq!(spied.log.end_of_stream_position(), published);
    spied.bench.run_for(SECOND * 20);
    assert!(unavailable(&spied.bench.messages()).is_empty());
    // Another may join as long as there is something left to send.
    let second = spied.spy(SPY);
    for image in [&spy, &second] {
        spied.read_to(image, published);
    }
    spied.bench.run_for(SECOND * 2);
    assert!(spied.spies(SPY).is_empty());
    spied.bench.run_for(SECOND * 8);
    assert!(spies_of(&spied.bench, &spied.publication).is_empty());
    assert!(spied.bench.log_files().is_empty());
}

#[test]
fn a_revoked_publication_is_gone_for_its_spies_at_once() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    spied.close(true);
    spied.bench.run_for(SECOND * 2);
    let gone = unavailable(&spied.bench.messages());
    assert_eq!(gone, [(spy.image_id, spy.subscription_id)]);
    assert!(spied.log.is_revoked());
    assert_eq!(spied.log.end_of_stream_position(), published);
    assert_eq!(spied.bench.system(SystemCounter::PublicationsRevoked), 1);
    assert!(spied.spies(SPY).is_empty());
}

#[test]
fn an_untethered_spy_that_lags_rests_and_comes_back() {
    let mut spied = Spied::new(SIMULATING);
    let fast = spied.spy(SPY);
    let slow = spied.spy("aeron-spy:aeron:udp?endpoint=localhost:40123|tether=false");
    let published = spied.publish();
    spied.read_to(&fast, published);
    spied.bench.run_for(SECOND * 4);
    assert!(unavailable(&spied.bench.messages()).is_empty());
    spied.bench.run_for(SECOND * 3);
    let gone = unavailable(&spied.bench.messages());
    assert_eq!(gone, [(slow.image_id, slow.subscription_id)]);
    assert_eq!(spied.limit(), WINDOW, "it lingers, and still counts");
    spied.bench.run_for(SECOND * 6);
    assert_eq!(spied.limit(), published + WINDOW, "it rests");
    let published = spied.publish();
    spied.read_to(&fast, published);
    spied.bench.run_for(SECOND * 11);
    let back = available(&spied.bench.messages()).remove(0);
    assert_eq!(back, slow);
    assert_eq!(spied.bench.value(slow.position_counter_id), published);
    spied.publish();
    spied.read_to(&fast, published + 4096);
    assert_eq!(spied.limit(), published + WINDOW, "it counts again");
}

#[test]
fn an_untethered_spy_that_does_not_rejoin_is_dropped_for_good() {
    let mut spied = Spied::new(SIMULATING);
    let fast = spied.spy(SPY);
    let channel = "aeron-spy:aeron:udp?endpoint=localhost:40123|tether=false|rejoin=false";
    let slow = spied.spy(channel);
    let published = spied.publish();
    spied.read_to(&fast, published);
    spied.bench.run_for(SECOND * 13);
    assert_eq!(
        unavailable(&spied.bench.messages()),
        [(slow.image_id, slow.subscription_id)]
    );
    assert_eq!(
        spies_of(&spied.bench, &spied.publication),
        [fast.subscription_id]
    );
    spied.bench.run_for(SECOND * 30);
    assert!(available(&spied.bench.messages()).is_empty());
}

#[test]
fn what_a_spy_claims_to_have_read_moves_nothing_that_was_not_published() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    for lie in [i64::MAX, i64::MIN, -1, published + 32, 1 << 40] {
        spied.read_to(&spy, lie);
        assert!(spied.sender_position() <= published);
        assert!(spied.limit() <= published + WINDOW);
        spied.bench.run_for(SECOND);
    }
    spied.read_to(&spy, 4096 + 7);
    assert_eq!(spied.sender_position() % 32, 0);
    spied.read_to(&spy, published);
    assert_eq!(spied.sender_position(), published);
    assert!(spied.publish() > published);
    assert!(spied.bench.errors().is_empty());
}

#[test]
fn a_client_that_dies_takes_its_spies_along() {
    let mut spied = Spied::new(SIMULATING);
    let other = spied.bench.client();
    spied.bench.add_subscription(other, SPY, 10).unwrap();
    assert!(spied.log.is_connected());
    spied.bench.kill(other);
    spied.bench.run_for(SECOND * 12);
    assert!(!spied.log.is_connected());
    assert!(spies_of(&spied.bench, &spied.publication).is_empty());
}
