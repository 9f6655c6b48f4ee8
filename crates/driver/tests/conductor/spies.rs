// SPDX-License-Identifier: Apache-2.0
//! Spies: subscriptions that read publications of this driver without the network (docs/spec/wire.md §2.12, §3, §5.9).

use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_protocol::log::{ExclusiveAppender, LogBuffers};

use crate::fixture::{DriverFixture, Ready};
use crate::image_events::{Available, available, unavailable};

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const SIMULATING: &str = "aeron:udp?endpoint=localhost:40123|ssc=true";
const SPY: &str = "aeron-spy:aeron:udp?endpoint=localhost:40123";
const TERM: i64 = 64 * 1024;
const WINDOW: i64 = TERM / 2;
const SECOND: Duration = Duration::from_secs(1);

/// A network publication and its client.
struct Spied {
    driver: DriverFixture,
    client: i64,
    publication: Ready,
    log: LogBuffers,
    appender: ExclusiveAppender,
}

impl Spied {
    fn new(channel: &str) -> Self {
        Self::with_driver(DriverFixture::new(), channel)
    }

    fn with_driver(mut driver: DriverFixture, channel: &str) -> Self {
        let client = driver.client();
        let publication = driver.add_exclusive(client, channel, 10).unwrap();
        let log = driver.log(&publication.log);
        let appender = ExclusiveAppender::new(log.clone()).unwrap();
        Self {
            driver,
            client,
            publication,
            log,
            appender,
        }
    }

    /// Adds a spy that joins the publication.
    fn spy(&mut self, channel: &str) -> Available {
        let mut found = self.spies(channel);
        assert_eq!(found.len(), 1, "{channel}");
        found.remove(0)
    }

    /// Adds a spy and returns its images.
    fn spies(&mut self, channel: &str) -> Vec<Available> {
        let messages = self.driver.ask(&Command::AddSubscription {
            client_id: self.client,
            correlation_id: self.driver.id(),
            stream_id: 10,
            channel,
        });
        available(&messages)
    }

    /// Adds a receiver, which does not read and so limits the stream.
    fn receiver(&mut self) -> Available {
        self.driver.add_subscription(self.client, UDP, 10).unwrap();
        self.driver.run_for(SECOND);
        available(&self.driver.messages()).remove(0)
    }

    fn limit(&self) -> i64 {
        self.driver.value(self.publication.limit_counter_id)
    }

    fn sender_position(&self) -> i64 {
        let counters = self.driver.counters();
        let found = counters
            .iter()
            .find(|meta| meta.type_id == type_id::SENDER_POSITION);
        self.driver.value(found.unwrap().id)
    }

    /// Publishes up to the limit and returns the position.
    fn publish(&mut self) -> i64 {
        while self.appender.position() < self.limit() {
            let _ = self.appender.append(&[0xAB; 992], None);
        }
        self.driver.settle();
        self.appender.position()
    }

    fn read_to(&mut self, image: &Available, position: i64) {
        self.driver.set(image.position_counter_id, position);
        self.driver.settle();
    }

    fn close(&mut self, revoke: bool) {
        let command = Command::RemovePublication {
            client_id: self.client,
            correlation_id: self.driver.id(),
            registration_id: self.publication.correlation_id,
            revoke,
        };
        self.driver.ask(&command);
    }
}

#[test]
fn spy_receives_log_of_the_publication() {
    let mut spied = Spied::new(UDP);
    let image = spied.spy(SPY);
    assert_eq!(image.image_id, spied.publication.registration_id);
    assert_eq!(image.session_id, spied.publication.session_id);
    assert_eq!(image.log, spied.publication.log);
    assert_eq!(image.source, "aeron:ipc");
    let counters = spied.driver.counters();
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
fn limit_of_idle_network_publication_is_updated_without_delay() {
    let mut spied = Spied::new(UDP);
    let image = spied.receiver();
    let spy = spied.spy(SPY);
    for _ in 0..3 {
        spied.driver.run_for(Duration::from_millis(350));
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
fn spy_has_no_endpoint_and_joins_later_publications() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let (subscription, status) = driver.add_subscription(client, SPY, 10).unwrap();
    assert_eq!(status, -1);
    assert!(driver.network.open_ports().is_empty());
    for _ in 0..2 {
        let publication = driver.add_exclusive(client, UDP, 10).unwrap();
        let messages = driver.ask(&Command::ClientKeepalive {
            client_id: client,
            correlation_id: driver.id(),
        });
        assert!(
            available(&messages).is_empty(),
            "the image is announced with the publication"
        );
        assert_eq!(spies_of(&driver, &publication), [subscription]);
    }
}

/// Registration ids of the subscriptions that read a publication.
fn spies_of(driver: &DriverFixture, publication: &Ready) -> Vec<i64> {
    let counters = driver.counters().into_iter();
    counters
        .filter(|meta| {
            meta.type_id == type_id::SUBSCRIBER_POSITION
                && meta.reference_id == publication.registration_id
        })
        .map(|meta| meta.registration_id)
        .collect()
}

#[test]
fn spy_matches_by_channel_tag_and_session() {
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
fn spy_limits_the_publisher_but_not_the_sender() {
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
    // Without the spy, only the receiver limits the publisher.
    spied.driver.ask(&Command::RemoveSubscription {
        client_id: spied.client,
        correlation_id: spied.driver.id(),
        registration_id: spy.subscription_id,
    });
    assert_eq!(spied.limit(), published + WINDOW);
    assert!(spies_of(&spied.driver, &spied.publication).is_empty());
}

#[test]
fn spy_joins_at_sender_position() {
    let mut spied = Spied::new(UDP);
    spied.receiver();
    let published = spied.publish();
    let spy = spied.spy(SPY);
    assert_eq!(spied.driver.value(spy.position_counter_id), published);
}

#[test]
fn spy_alone_does_not_connect_publication() {
    let mut spied = Spied::new(UDP);
    spied.spy(SPY);
    spied.driver.run_for(SECOND);
    assert!(!spied.log.is_connected());
    assert_eq!(spied.limit(), 0);
}

#[test]
fn spies_simulate_connection_by_channel_or_option() {
    let by_option = DriverFixture::with(&[("aeron.spies.simulate.connection", "true")]);
    for mut spied in [Spied::new(SIMULATING), Spied::with_driver(by_option, UDP)] {
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
        spied.driver.ask(&Command::RemoveSubscription {
            client_id: spied.client,
            correlation_id: spied.driver.id(),
            registration_id: spy.subscription_id,
        });
        assert!(!spied.log.is_connected());
        assert_eq!(spied.limit(), read);
    }
}

#[test]
fn fastest_spy_moves_sender_and_slowest_limits_publisher() {
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
fn receiver_replaces_spy_simulated_connection() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    spied.read_to(&spy, published);
    let receiver = spied.receiver();
    assert_eq!(
        spied.driver.value(receiver.position_counter_id),
        published,
        "it joins where the spies are"
    );
    let published = spied.publish();
    spied.read_to(&spy, published);
    assert_eq!(spied.sender_position(), published);
    spied.read_to(&receiver, published);
    spied.driver.run_for(SECOND);
    assert_eq!(spied.limit(), published + WINDOW);
}

#[test]
fn closed_publication_waits_for_its_spies() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    spied.close(false);
    assert_eq!(spied.log.end_of_stream_position(), published);
    spied.driver.run_for(SECOND * 20);
    assert!(unavailable(&spied.driver.messages()).is_empty());
    // Another spy may join while there is data left to send.
    let second = spied.spy(SPY);
    for image in [&spy, &second] {
        spied.read_to(image, published);
    }
    spied.driver.run_for(SECOND * 2);
    assert!(spied.spies(SPY).is_empty());
    spied.driver.run_for(SECOND * 8);
    assert!(spies_of(&spied.driver, &spied.publication).is_empty());
    assert!(spied.driver.log_files().is_empty());
}

#[test]
fn revoked_publication_ends_for_its_spies_at_once() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    spied.close(true);
    spied.driver.run_for(SECOND * 2);
    let gone = unavailable(&spied.driver.messages());
    assert_eq!(gone, [(spy.image_id, spy.subscription_id)]);
    assert!(spied.log.is_revoked());
    assert_eq!(spied.log.end_of_stream_position(), published);
    assert_eq!(spied.driver.system(SystemCounter::PublicationsRevoked), 1);
    assert!(spied.spies(SPY).is_empty());
}

#[test]
fn lagging_untethered_spy_rests_and_rejoins() {
    let mut spied = Spied::new(SIMULATING);
    let fast = spied.spy(SPY);
    let slow = spied.spy("aeron-spy:aeron:udp?endpoint=localhost:40123|tether=false");
    let published = spied.publish();
    spied.read_to(&fast, published);
    spied.driver.run_for(SECOND * 4);
    assert!(unavailable(&spied.driver.messages()).is_empty());
    spied.driver.run_for(SECOND * 3);
    let gone = unavailable(&spied.driver.messages());
    assert_eq!(gone, [(slow.image_id, slow.subscription_id)]);
    assert_eq!(spied.limit(), WINDOW, "it lingers, and still counts");
    spied.driver.run_for(SECOND * 6);
    assert_eq!(spied.limit(), published + WINDOW, "it rests");
    let published = spied.publish();
    spied.read_to(&fast, published);
    spied.driver.run_for(SECOND * 11);
    let back = available(&spied.driver.messages()).remove(0);
    assert_eq!(back, slow);
    assert_eq!(spied.driver.value(slow.position_counter_id), published);
    spied.publish();
    spied.read_to(&fast, published + 4096);
    assert_eq!(spied.limit(), published + WINDOW, "it counts again");
}

#[test]
fn untethered_spy_without_rejoin_is_dropped() {
    let mut spied = Spied::new(SIMULATING);
    let fast = spied.spy(SPY);
    let channel = "aeron-spy:aeron:udp?endpoint=localhost:40123|tether=false|rejoin=false";
    let slow = spied.spy(channel);
    let published = spied.publish();
    spied.read_to(&fast, published);
    spied.driver.run_for(SECOND * 13);
    assert_eq!(
        unavailable(&spied.driver.messages()),
        [(slow.image_id, slow.subscription_id)]
    );
    assert_eq!(
        spies_of(&spied.driver, &spied.publication),
        [fast.subscription_id]
    );
    spied.driver.run_for(SECOND * 30);
    assert!(available(&spied.driver.messages()).is_empty());
}

#[test]
fn spy_position_beyond_publisher_position_is_ignored() {
    let mut spied = Spied::new(SIMULATING);
    let spy = spied.spy(SPY);
    let published = spied.publish();
    for lie in [i64::MAX, i64::MIN, -1, published + 32, 1 << 40] {
        spied.read_to(&spy, lie);
        assert!(spied.sender_position() <= published);
        assert!(spied.limit() <= published + WINDOW);
        spied.driver.run_for(SECOND);
    }
    spied.read_to(&spy, 4096 + 7);
    assert_eq!(spied.sender_position() % 32, 0);
    spied.read_to(&spy, published);
    assert_eq!(spied.sender_position(), published);
    assert!(spied.publish() > published);
    assert!(spied.driver.errors().is_empty());
}

#[test]
fn dead_client_frees_its_spies() {
    let mut spied = Spied::new(SIMULATING);
    let other = spied.driver.client();
    spied.driver.add_subscription(other, SPY, 10).unwrap();
    assert!(spied.log.is_connected());
    spied.driver.kill(other);
    spied.driver.run_for(SECOND * 12);
    assert!(!spied.log.is_connected());
    assert!(spies_of(&spied.driver, &spied.publication).is_empty());
}
