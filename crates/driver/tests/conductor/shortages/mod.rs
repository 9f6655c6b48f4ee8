//! Failure of every single allocation of a file, a descriptor or a counter, one at a time.
//!
//! A tour of everything that a client may ask for is made over and over; each time the next step that takes something
//! fails. Then exactly one answer of the tour is an error that says what is missing (of counters, which stay too few, any
//! number are); when the client has gone nothing is left, and the next tour, with enough of everything, succeeds.

mod counters;
mod descriptors;
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
const ANSWERS: &str = "aeron:udp?control=localhost:40600|control-mode=response";
const REQUESTS: &str = "aeron:udp?endpoint=localhost:40601";
const ANSWERED: &str =
    "aeron:udp?control=localhost:40602|control-mode=response|response-correlation-id=prototype";

/// Longer than all timeouts after the end of a client.
pub(crate) const AFTERMATH: Duration = Duration::from_secs(30);

/// Resources of the driver without clients.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    counters: usize,
    logs: Vec<String>,
    ports: Vec<u16>,
    mapped: i64,
}

impl Holdings {
    fn of(driver: &DriverFixture) -> Self {
        Self {
            counters: driver.counters().len(),
            logs: driver.log_files(),
            ports: driver.network.open_ports(),
            mapped: driver.system(SystemCounter::BytesCurrentlyMapped),
        }
    }
}

/// A client that adds every kind of resource.
pub(crate) struct Tourist<'a> {
    driver: &'a mut DriverFixture,
    client_id: i64,
    refusals: Vec<CommandError>,
}

impl Tourist<'_> {
    /// Adds every kind of resource, closes the client, and returns the errors.
    pub(crate) fn tour(driver: &mut DriverFixture) -> Vec<CommandError> {
        let client_id = driver.client();
        let mut tourist = Tourist {
            driver,
            client_id,
            refusals: Vec::new(),
        };
        for channel in ["aeron:ipc", UNICAST, DYNAMIC, GROUP] {
            tourist.publish(channel, false);
            tourist.publish(channel, true);
        }
        for channel in ["aeron:ipc", "aeron:spy", LISTENING, GROUP] {
            match channel {
                "aeron:spy" => tourist.subscribe(&format!("aeron-spy:{UNICAST}")),
                channel => tourist.subscribe(channel),
            };
        }
        if let Some(publication) = tourist.publish(MANUAL, false) {
            tourist.add_destination(publication);
        }
        if let Some(subscription) = tourist.subscribe(MANUAL) {
            for source in ["aeron:udp?endpoint=localhost:40500", "aeron:ipc"] {
                tourist.add_source(subscription, source);
            }
        }
        if let Some(answers) = tourist.subscribe(ANSWERS) {
            let request = format!("{REQUESTS}|response-correlation-id={answers}");
            tourist.publish(&request, false);
        }
        tourist.publish(ANSWERED, false);
        tourist.count();
        let refusals = tourist.refusals;
        driver.kill(client_id);
        refusals
    }

    fn ask(&mut self, command: &Command<'_>, correlation_id: i64) -> Option<i64> {
        let answers = self.driver.ask(command);
        let refused = answers
            .iter()
            .find_map(|message| error_response(message, correlation_id));
        let is_refused = refused.is_some();
        self.refusals.extend(refused);
        (!is_refused).then_some(correlation_id)
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

    fn count(&mut self) {
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
pub(crate) fn image_is_made(driver: &mut DriverFixture) -> bool {
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
fn expect_nothing_left(driver: &mut DriverFixture, before: &Holdings, when: &str) {
    driver.run_for(AFTERMATH);
    driver.drain();
    assert_eq!(
        Holdings::of(driver),
        *before,
        "{when}: {:?}",
        driver.labels()
    );
}

/// Checks that a tour without failures succeeds and leaves no resources.
fn expect_all_works(driver: &mut DriverFixture, before: &Holdings, when: &str) {
    let refusals = Tourist::tour(driver);
    assert!(refusals.is_empty(), "{when}: {refusals:?}");
    expect_nothing_left(driver, before, when);
}
