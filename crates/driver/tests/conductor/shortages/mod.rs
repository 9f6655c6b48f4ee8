// SPDX-License-Identifier: Apache-2.0
//! Failure of every single allocation of a file, a descriptor or a counter, one at a time.
//!
//! A client adds every kind of resource that a client can request, repeatedly; each time the next allocation fails. Exactly one
//! response must then be an error that names the missing resource (for counters, which stay exhausted: each request that needs
//! more). After the client has closed no resource remains, and the next sequence succeeds.

mod counters;
mod descriptors;
mod pages;
mod space;
mod tables;

use std::net::SocketAddr;
use std::time::Duration;

use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{IntoBytes, Setup};

use crate::fixture::{CommandError, DriverFixture, error_response};
use crate::image_events::available;

const UNICAST: &str = "aeron:udp?endpoint=localhost:40123";
pub(crate) const LISTENING: &str = "aeron:udp?endpoint=localhost:40200";
const PORT: u16 = 40_200;
const MANUAL: &str = "aeron:udp?control-mode=manual";
const DYNAMIC: &str = "aeron:udp?control=localhost:40300|control-mode=dynamic|fc=min";
const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40400|interface=10.1.2.3";
const RESPONSES: &str = "aeron:udp?control=localhost:40600|control-mode=response";
const REQUEST_PUBLICATION: &str = "aeron:udp?endpoint=localhost:40601";
const RESPONSE_PUBLICATION: &str =
    "aeron:udp?control=localhost:40602|control-mode=response|response-correlation-id=prototype";

/// Longer than the sum of all timeouts after a client has closed.
pub(crate) const ALL_TIMEOUTS: Duration = Duration::from_secs(30);

/// Resources of the driver without clients.
#[derive(Debug, PartialEq, Eq)]
struct Resources {
    counters: usize,
    logs: Vec<String>,
    ports: Vec<u16>,
    mapped: i64,
}

impl Resources {
    fn of(driver: &DriverFixture) -> Self {
        Self {
            counters: driver.counters().len(),
            logs: driver.log_files(),
            ports: driver.network.open_ports(),
            mapped: driver.system(SystemCounter::BytesCurrentlyMapped),
        }
    }
}

/// A sequence of commands of one client that adds every kind of resource.
pub(crate) struct ResourceSequence<'a> {
    driver: &'a mut DriverFixture,
    client_id: i64,
    rejections: Vec<CommandError>,
}

impl ResourceSequence<'_> {
    /// Adds every kind of resource, closes the client, and returns the errors.
    pub(crate) fn run(driver: &mut DriverFixture) -> Vec<CommandError> {
        let client_id = driver.client();
        let mut sequence = ResourceSequence {
            driver,
            client_id,
            rejections: Vec::new(),
        };
        for channel in ["aeron:ipc", UNICAST, DYNAMIC, GROUP] {
            sequence.publish(channel, false);
            sequence.publish(channel, true);
        }
        for channel in ["aeron:ipc", "aeron:spy", LISTENING, GROUP] {
            match channel {
                "aeron:spy" => sequence.subscribe(&format!("aeron-spy:{UNICAST}")),
                channel => sequence.subscribe(channel),
            };
        }
        if let Some(publication) = sequence.publish(MANUAL, false) {
            sequence.add_destination(publication);
        }
        if let Some(subscription) = sequence.subscribe(MANUAL) {
            for source in ["aeron:udp?endpoint=localhost:40500", "aeron:ipc"] {
                sequence.add_source(subscription, source);
            }
        }
        if let Some(subscription) = sequence.subscribe(RESPONSES) {
            let request = format!("{REQUEST_PUBLICATION}|response-correlation-id={subscription}");
            sequence.publish(&request, false);
        }
        sequence.publish(RESPONSE_PUBLICATION, false);
        sequence.add_counter();
        let rejections = sequence.rejections;
        driver.kill(client_id);
        rejections
    }

    fn ask(&mut self, command: &Command<'_>, correlation_id: i64) -> Option<i64> {
        let responses = self.driver.ask(command);
        let rejected = responses
            .iter()
            .find_map(|message| error_response(message, correlation_id));
        let is_rejected = rejected.is_some();
        self.rejections.extend(rejected);
        (!is_rejected).then_some(correlation_id)
    }

    fn publish(&mut self, channel: &str, exclusive: bool) -> Option<i64> {
        let (client_id, correlation_id, stream_id) = (self.client_id, self.driver.id(), 10);
        let command = if exclusive {
            Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            }
        } else {
            Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            }
        };
        self.ask(&command, correlation_id)
    }

    fn subscribe(&mut self, channel: &str) -> Option<i64> {
        let (client_id, correlation_id, stream_id) = (self.client_id, self.driver.id(), 10);
        let command = Command::AddSubscription {
            client_id,
            correlation_id,
            stream_id,
            channel,
        };
        self.ask(&command, correlation_id)
    }

    fn add_destination(&mut self, registration_id: i64) {
        let (client_id, correlation_id, channel) = (self.client_id, self.driver.id(), UNICAST);
        let command = Command::AddDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        };
        self.ask(&command, correlation_id);
    }

    fn add_source(&mut self, registration_id: i64, channel: &str) {
        let (client_id, correlation_id) = (self.client_id, self.driver.id());
        let command = Command::AddReceiveDestination {
            client_id,
            correlation_id,
            registration_id,
            channel,
        };
        self.ask(&command, correlation_id);
    }

    fn add_counter(&mut self) {
        let (client_id, correlation_id) = (self.client_id, self.driver.id());
        let command = Command::AddCounter {
            client_id,
            correlation_id,
            counter_type_id: 1_001,
            key: b"",
            label: "of a client",
        };
        self.ask(&command, correlation_id);
    }
}

/// Delivers a SETUP of a subscribed stream and returns true if an image was created.
pub(crate) fn creates_image(driver: &mut DriverFixture) -> bool {
    driver.messages();
    let setup = Setup {
        header: Setup::header(0),
        term_offset: 0.into(),
        session_id: 77.into(),
        stream_id: 10.into(),
        initial_term_id: 5.into(),
        active_term_id: 5.into(),
        term_length: (64 * 1024).into(),
        mtu: 1_408.into(),
        ttl: 0.into(),
    };
    let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
    driver.network.deliver(peer, PORT, setup.as_bytes());
    driver.settle();
    !available(&driver.messages()).is_empty()
}

/// Checks that the client left no resources.
fn assert_nothing_left(driver: &mut DriverFixture, before: &Resources, when: &str) {
    driver.run_for(ALL_TIMEOUTS);
    driver.drain();
    assert_eq!(
        Resources::of(driver),
        *before,
        "{when}: {:?}",
        driver.labels()
    );
}

/// Checks that a sequence without failures succeeds and leaves no resources.
fn assert_sequence_succeeds(driver: &mut DriverFixture, before: &Resources, when: &str) {
    let rejections = ResourceSequence::run(driver);
    assert!(rejections.is_empty(), "{when}: {rejections:?}");
    assert_nothing_left(driver, before, when);
}
