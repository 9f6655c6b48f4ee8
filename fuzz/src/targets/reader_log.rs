// SPDX-License-Identifier: Apache-2.0
//! A hostile subscriber of a driver: arbitrary bytes in the log of an image, which the receiver maps too. The receiver
//! inserts frames there, receives segment runs directly into it, scans it for gaps and fills them.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use taran::{Publication, Storage, Subscription};
use taran_core::memory::Region;

use crate::driver::DriverFixture;
use crate::log;
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per driver; each leaves an image that has to end.
const INPUTS_PER_DRIVER: usize = 64;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 32;
/// Memory limit of the driver in bytes: the streams of some inputs, and an error record for each way to be broken.
const HELD_MAX: isize = 16 << 20;
const QUIET_EVERY: usize = 8;

/// Terms long enough for direct receive; gaps are repaired on the first channel, and filled with padding on the second.
const PUBLISHED: &str = "|init-term-id=0|term-id=0|term-offset=0|term-length=256k|linger=0";
const ENDPOINTS: [&str; 2] = [
    "aeron:udp?endpoint=127.0.0.1:24001",
    "aeron:udp?endpoint=127.0.0.1:24002|reliable=false",
];
const STREAM: i32 = 51;
/// Length of a datagram, and number of datagrams offered at once, which makes long segment runs.
const MESSAGE: [u8; 1376] = [3; 1376];
const MESSAGES: [usize; 4] = [1, 8, 24, 47];

const TIMES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(600),
];

/// The driver.
struct Reading {
    driver: DriverFixture,
    /// Keep the endpoints open, so that no input has to wait for one that is closing.
    _anchors: Vec<(Publication, Subscription)>,
    inputs: usize,
}

thread_local! {
    static READING: RefCell<ReusedState<Reading>> = const { RefCell::new(ReusedState::new()) };
}

/// Runs a hostile subscriber.
pub fn run(bytes: &[u8]) {
    READING
        .with_borrow_mut(|state| state.run(bytes, INPUTS_PER_DRIVER, Reading::new, Reading::act));
}

impl Reading {
    fn new() -> Self {
        let mut driver = DriverFixture::start(&[]);
        let anchors = ENDPOINTS.map(|channel| {
            let subscription = driver.subscribe(channel, STREAM);
            (driver.publish(&published(channel), STREAM), subscription)
        });
        driver.set_baseline();
        Self {
            driver,
            _anchors: anchors.into(),
            inputs: 0,
        }
    }

    fn act(&mut self, bytes: &[u8]) -> bool {
        let mut script = Script::new(bytes);
        let channel = ENDPOINTS[script.below(2)];
        // A stream of its own, so that the subscription does not join the log of an earlier input.
        self.inputs += 1;
        let stream_id = STREAM + self.inputs as i32;
        let mut subscription = self.driver.subscribe(channel, stream_id);
        let publication = self.driver.publish(&published(channel), stream_id);
        let region = self.image_log(&mut subscription);
        for _ in 0..STEPS_MAX {
            if script.is_over() {
                break;
            }
            let what = script.u8();
            match what & 7 {
                0 | 1 => log::frame(&region, &mut script),
                2 => log::metadata(&region, &mut script),
                3 => self
                    .driver
                    .step(TIMES[usize::from(what >> 3) % TIMES.len()]),
                4 => {
                    self.driver.run_cycle();
                    log::poll(&mut subscription, |_| ());
                }
                _ => {
                    for _ in 0..MESSAGES[usize::from(what >> 3) % MESSAGES.len()] {
                        // The rest is offered in the next step.
                        let _ = publication.offer(&MESSAGE);
                    }
                    self.driver.run_cycle();
                    log::poll(&mut subscription, |_| ());
                }
            }
        }
        self.driver.step(Duration::from_millis(1));
        log::poll(&mut subscription, |_| ());
        self.driver.check_good_stream();
        drop((publication, subscription));
        self.driver.run_cycle();
        self.driver.check_held(HELD_MAX);
        if self.inputs.is_multiple_of(QUIET_EVERY) {
            self.driver.check_baseline();
        }
        true
    }

    /// The log of the only image, as a subscribing process maps it: writable, as the protocol requires.
    fn image_log(&mut self, subscription: &mut Subscription) -> Region {
        for _ in 0..200 {
            if let Some(image) = subscription.images().first() {
                let log = self.driver.storage.open(Path::new(image.log_path()));
                return log.expect("the log exists");
            }
            self.driver.step(Duration::from_millis(1));
        }
        panic!("no image: {}", self.driver.errors().join("\n"));
    }
}

/// Returns the channel of the publication that sends to an endpoint.
fn published(endpoint: &str) -> String {
    let endpoint = endpoint.trim_end_matches("|reliable=false");
    format!("{endpoint}{PUBLISHED}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without direct receive the target would not show how damage affects it.
    #[test]
    fn what_is_offered_makes_long_trains() {
        let mut reading = Reading::new();
        let mut subscription = reading.driver.subscribe(ENDPOINTS[0], 99);
        let publication = reading.driver.publish(&published(ENDPOINTS[0]), 99);
        reading.image_log(&mut subscription);
        for _ in 0..40 {
            for _ in 0..MESSAGES[3] {
                let _ = publication.offer(&MESSAGE);
            }
            reading.driver.run_cycle();
            log::poll(&mut subscription, |_| ());
        }
        let direct = reading.driver.network.counts().direct_receives;
        assert!(
            direct > 10,
            "{direct} GSO batches were received into the term buffer"
        );
    }
}
