// SPDX-License-Identifier: Apache-2.0
//! Datagrams of remote hosts to each kind of send endpoint: unicast, multicast, manual and dynamic destinations, minimum and tagged flow control, requests and responses.

use std::cell::RefCell;
use std::net::SocketAddr;

use taran::{Publication, Subscription};

use crate::driver::wire::{self, Known};
use crate::driver::{DriverFixture, HERE, TIMES};
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per driver, and the interval of checks that all remote state has expired.
const INPUTS_PER_DRIVER: usize = 512;
const QUIET_EVERY: usize = 16;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 32;
/// Memory limit of the driver in bytes, under any load: receivers and destinations that remote hosts forge.
const HELD_MAX: isize = 8 << 20;
/// Timer ticks after which all destinations and receivers that are silent are removed.
const QUIET_TICKS: usize = 60;

const CHANNELS: [(&str, i32); 7] = [
    (
        "aeron:udp?endpoint=10.0.0.2:30001|control=10.0.0.1:21001|session-id=1",
        21,
    ),
    (
        "aeron:udp?endpoint=224.0.1.5:30001|interface=10.0.0.1|session-id=2|fc=min,g:1/1,t:100ms",
        22,
    ),
    (
        "aeron:udp?control=10.0.0.1:21003|control-mode=dynamic|session-id=3|fc=max",
        23,
    ),
    (
        "aeron:udp?control=10.0.0.1:21004|control-mode=dynamic|session-id=4|fc=tagged,g:5/1,t:100ms",
        24,
    ),
    (
        "aeron:udp?control=10.0.0.1:21005|control-mode=manual|session-id=5|max-resend=4",
        25,
    ),
    (
        "aeron:udp?control=10.0.0.1:21006|control-mode=response|session-id=6|response-correlation-id=prototype",
        26,
    ),
    (
        "aeron:udp?endpoint=10.0.0.3:30002|control=10.0.0.1:21007|session-id=7|linger=0|ssc=true",
        27,
    ),
];
const DESTINATIONS: [&str; 2] = [
    "aeron:udp?endpoint=10.0.0.2:30001",
    "aeron:udp?endpoint=host:30002",
];
/// Initial position of each publication, so that remote hosts can name valid positions.
const TERM: &str = "|init-term-id=0|term-id=0|term-offset=0|term-length=65536";

/// The driver and its publications.
struct Sending {
    driver: DriverFixture,
    publications: Vec<Publication>,
    /// Subscription of a response channel.
    _asking: Subscription,
    targets: Vec<SocketAddr>,
    known: Known,
    inputs: usize,
}

thread_local! {
    static SENDING: RefCell<ReusedState<Sending>> = const { RefCell::new(ReusedState::new()) };
}

/// Runs remote hosts that send to a sending driver.
pub fn run(bytes: &[u8]) {
    SENDING
        .with_borrow_mut(|state| state.run(bytes, INPUTS_PER_DRIVER, Sending::new, Sending::act));
}

impl Sending {
    fn new() -> Self {
        let mut driver = DriverFixture::start(&[]);
        let asking = driver.subscribe("aeron:udp?control=10.0.0.2:30002|control-mode=response", 28);
        let mut publications: Vec<Publication> = CHANNELS
            .iter()
            .map(|(channel, stream_id)| driver.publish(&format!("{channel}{TERM}"), *stream_id))
            .collect();
        let manual = publications[4].clone();
        for destination in DESTINATIONS {
            let pending = manual.async_add_destination(destination);
            driver.answer(pending.expect("the command ring has space"));
        }
        let request = format!(
            "aeron:udp?endpoint=10.0.0.2:30001|control=10.0.0.1:21008|session-id=8|response-correlation-id={}{TERM}",
            asking.registration_id()
        );
        publications.push(driver.publish(&request, 28));
        driver.set_baseline();
        Self {
            driver,
            publications,
            _asking: asking,
            targets: (21_001..=21_008)
                .map(|port| SocketAddr::from((HERE, port)))
                .collect(),
            known: Known {
                sessions: (1..=8).collect(),
                streams: (21..=28).collect(),
                terms: vec![0, 1, 2, -1, i64::from(i32::MAX)],
                receivers: vec![1, 2, 3, -1],
            },
            inputs: 0,
        }
    }

    fn act(&mut self, bytes: &[u8]) -> bool {
        let mut script = Script::new(bytes);
        for _ in 0..STEPS_MAX {
            if script.is_over() {
                break;
            }
            let what = script.u8();
            if what & 0xC0 == 0xC0 {
                self.driver
                    .step(TIMES[usize::from(what & 0x3F) % TIMES.len()]);
                continue;
            }
            if what & 0xC0 == 0x80 {
                self.offer(usize::from(what & 7), usize::from(script.u8()) * 16);
                continue;
            }
            // The multicast publication listens on its control group alone.
            let target = match what & 7 {
                1 => SocketAddr::from(([224, 0, 1, 6], 30_001)),
                target => self.targets[usize::from(target)],
            };
            let datagram = wire::datagram(&mut script, &self.known);
            self.driver
                .send(usize::from(what >> 3 & 3), target, &datagram);
            if what & 0x20 == 0 {
                self.driver.run_cycle();
            }
        }
        self.driver.run_cycle();
        self.check();
        self.driver.check_good_stream();
        self.inputs += 1;
        if self.inputs.is_multiple_of(QUIET_EVERY) {
            self.driver.rest(QUIET_TICKS);
            self.driver.check_baseline();
            self.driver.take_received();
            self.driver.check_counts(2, &["onPublicationError"]);
        }
        true
    }

    /// Offers a message; the result depends on the datagrams of remote hosts.
    fn offer(&mut self, index: usize, length: usize) {
        let publication = &self.publications[index % self.publications.len()];
        let before = publication.position();
        match publication.offer(&vec![7; length]) {
            Ok(position) => assert!(position > before),
            Err(error) => {
                assert!(error.is_retryable() || length > publication.max_message_length())
            }
        }
        self.driver.run_cycle();
    }

    /// Checks that no remote host ends a publication, moves it beyond its window, or moves its position back.
    fn check(&self) {
        for publication in &self.publications {
            assert!(!publication.is_closed());
            let window = publication.available_window();
            let term = publication.term_length() as i64;
            assert!(
                window <= term,
                "{window} bytes of window in terms of {term}"
            );
        }
        self.driver.check_held(HELD_MAX);
    }
}
