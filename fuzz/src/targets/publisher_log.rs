// SPDX-License-Identifier: Apache-2.0
//! A hostile publisher of a driver: arbitrary bytes in the logs of its publications, which the sender scans, the conductor
//! cleans, and spies and subscribers read, and arbitrary values of their counters.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use taran::{ExclusivePublication, Publication, Storage, Subscription};
use taran_core::memory::Region;

use crate::driver::DriverFixture;
use crate::log::{self, POSITIONS};
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per driver; each leaves publications that may never drain.
const INPUTS_PER_DRIVER: usize = 64;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 32;
/// Memory limit of the driver in bytes: the publications of some inputs, and an error record for each kind of damage.
const HELD_MAX: isize = 16 << 20;
const QUIET_EVERY: usize = 8;

const CHANNELS: [&str; 3] = [
    "aeron:udp?endpoint=10.0.0.1:22001|init-term-id=0|term-id=0|term-offset=0|linger=0",
    "aeron:ipc?init-term-id=0|term-id=0|term-offset=0",
    "aeron:udp?endpoint=10.0.0.2:30001|init-term-id=0|term-id=0|term-offset=0|ssc=true|linger=0",
];
const SUBSCRIPTIONS: [&str; 3] = [
    "aeron:udp?endpoint=10.0.0.1:22001",
    "aeron:ipc",
    "aeron-spy:aeron:udp?endpoint=10.0.0.2:30001",
];
const STREAM: i32 = 41;

const TIMES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(600),
];

/// The driver.
struct Publishing {
    driver: DriverFixture,
    /// Keep the endpoints open, so that no input has to wait for one that is closing.
    _anchors: Vec<(Publication, Subscription)>,
    inputs: usize,
}

/// A publication with several writers, or with one: the driver cleans and unblocks their logs in different ways.
enum Either {
    Shared(Publication),
    Exclusive(Box<ExclusivePublication>),
}

thread_local! {
    static PUBLISHING: RefCell<ReusedState<Publishing>> = const { RefCell::new(ReusedState::new()) };
}

/// Runs a hostile publisher.
pub fn run(bytes: &[u8]) {
    PUBLISHING.with_borrow_mut(|state| {
        state.run(bytes, INPUTS_PER_DRIVER, Publishing::new, Publishing::act)
    });
}

impl Publishing {
    fn new() -> Self {
        let mut driver = DriverFixture::start(&[]);
        let anchors = CHANNELS.iter().zip(SUBSCRIPTIONS).map(|(channel, source)| {
            let subscription = driver.subscribe(source, STREAM);
            (driver.publish(channel, STREAM), subscription)
        });
        let anchors = anchors.collect();
        driver.set_baseline();
        Self {
            driver,
            _anchors: anchors,
            inputs: 0,
        }
    }

    fn act(&mut self, bytes: &[u8]) -> bool {
        let mut script = Script::new(bytes);
        let choice = script.below(6);
        let (is_exclusive, choice) = (choice >= 3, choice % 3);
        // A stream of its own, so that the publication does not join the log of an earlier input.
        self.inputs += 1;
        let stream_id = STREAM + self.inputs as i32;
        let mut subscription = self.driver.subscribe(SUBSCRIPTIONS[choice], stream_id);
        let mut publication = if is_exclusive {
            let exclusive = self.driver.publish_exclusive(CHANNELS[choice], stream_id);
            Either::Exclusive(Box::new(exclusive))
        } else {
            Either::Shared(self.driver.publish(CHANNELS[choice], stream_id))
        };
        for _ in 0..4 {
            self.driver.step(Duration::from_millis(1));
        }
        let region = self.log(&publication);
        for _ in 0..STEPS_MAX {
            if script.is_over() {
                break;
            }
            let what = script.u8();
            match what & 7 {
                0..=2 => log::frame(&region, &mut script),
                3 => log::metadata(&region, &mut script),
                4 => publication.offer(&vec![1; usize::from(script.u8()) * 16]),
                5 => {
                    let counter = self
                        .driver
                        .parts
                        .counters
                        .counter(publication.position_limit_id());
                    if let Some(counter) = counter {
                        counter.set(script.near(&POSITIONS));
                    }
                }
                6 => self
                    .driver
                    .step(TIMES[usize::from(what >> 3) % TIMES.len()]),
                _ => {
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

    /// Returns the log of a publication, as its publishing process maps it.
    fn log(&self, publication: &Either) -> Region {
        let name = format!("/fuzz/publications/{}.logbuffer", publication.id());
        let log = self.driver.storage.open(Path::new(&name));
        log.expect("the log exists")
    }
}

impl Either {
    fn id(&self) -> i64 {
        match self {
            Self::Shared(shared) => shared.original_registration_id(),
            Self::Exclusive(exclusive) => exclusive.original_registration_id(),
        }
    }

    fn position_limit_id(&self) -> i32 {
        match self {
            Self::Shared(shared) => shared.position_limit_id(),
            Self::Exclusive(exclusive) => exclusive.position_limit_id(),
        }
    }

    /// Offers a message; the result depends on the bytes written before.
    fn offer(&mut self, message: &[u8]) {
        let _ = match self {
            Self::Shared(shared) => shared.offer(message),
            Self::Exclusive(exclusive) => exclusive.offer(message),
        };
    }
}
