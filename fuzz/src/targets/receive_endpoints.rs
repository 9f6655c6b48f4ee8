// SPDX-License-Identifier: Apache-2.0
//! Datagrams of remote hosts to each kind of receive endpoint: unicast, multicast, several transports, unreliable with cubic
//! congestion control and timestamps, one session, responses.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};

use taran::Subscription;

use crate::driver::wire::{self, Known};
use crate::driver::{DriverFixture, HERE, TIMES};
use crate::log;
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per driver, and the interval of checks that all remote state has expired.
const INPUTS_PER_DRIVER: usize = 512;
const QUIET_EVERY: usize = 16;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 32;
/// Memory limit of the driver in bytes, under any load: images, their senders, endpoints.
const HELD_MAX: isize = 8 << 20;
/// Timer ticks after which all images are removed.
const QUIET_TICKS: usize = 30;

const CHANNELS: [(&str, i32); 5] = [
    ("aeron:udp?endpoint=10.0.0.1:20001", 11),
    ("aeron:udp?endpoint=224.0.1.1:20002|interface=10.0.0.1", 12),
    (
        "aeron:udp?endpoint=10.0.0.1:20003|reliable=false|cc=cubic|media-rcv-ts-offset=reserved",
        13,
    ),
    (
        "aeron:udp?endpoint=10.0.0.1:20004|session-id=7|tether=false",
        14,
    ),
    (
        "aeron:udp?control-mode=response|control=10.0.0.2:20008|endpoint=10.0.0.1:20007",
        15,
    ),
];
const MANUAL: (&str, i32) = ("aeron:udp?control-mode=manual|group=true", 16);
const DESTINATIONS: [&str; 2] = [
    "aeron:udp?endpoint=10.0.0.1:20005",
    "aeron:udp?endpoint=224.0.1.3:20006|interface=10.0.0.1",
];

/// The driver and its subscriptions.
struct Receiving {
    driver: DriverFixture,
    subscriptions: Vec<Subscription>,
    targets: Vec<SocketAddr>,
    known: Known,
    inputs: usize,
}

thread_local! {
    static RECEIVING: RefCell<ReusedState<Receiving>> = const { RefCell::new(ReusedState::new()) };
}

/// Runs remote hosts that send to a receiving driver.
pub fn run(bytes: &[u8]) {
    RECEIVING.with_borrow_mut(|state| {
        state.run(bytes, INPUTS_PER_DRIVER, Receiving::new, Receiving::act)
    });
}

impl Receiving {
    fn new() -> Self {
        let mut driver = DriverFixture::start(&[]);
        let mut subscriptions: Vec<Subscription> = CHANNELS
            .iter()
            .map(|(channel, stream_id)| driver.subscribe(channel, *stream_id))
            .collect();
        let manual = driver.subscribe(MANUAL.0, MANUAL.1);
        for destination in DESTINATIONS {
            let pending = manual.async_add_destination(destination);
            driver.answer(pending.expect("the command ring has space"));
        }
        subscriptions.push(manual);
        driver.set_baseline();
        let here = |port| SocketAddr::from((HERE, port));
        let group = |last, port| SocketAddr::from((Ipv4Addr::new(224, 0, 1, last), port));
        Self {
            driver,
            subscriptions,
            targets: vec![
                here(20_001),
                group(1, 20_002),
                here(20_003),
                here(20_004),
                here(20_005),
                group(3, 20_006),
                here(20_007),
                // Data and control address of a group differ.
                group(2, 20_002),
            ],
            known: Known {
                sessions: vec![7, 1, 2, -1],
                streams: vec![11, 12, 13, 14, 15, 16],
                terms: vec![0, 1, 2, -1, i64::from(i32::MAX), i64::from(i32::MIN)],
                receivers: vec![0, 1],
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
                self.poll();
                continue;
            }
            let target = self.targets[usize::from(what & 7) % self.targets.len()];
            let datagram = wire::datagram(&mut script, &self.known);
            self.driver
                .send(usize::from(what >> 3 & 3), target, &datagram);
            if what & 0x20 == 0 {
                self.driver.run_cycle();
            }
        }
        self.driver.run_cycle();
        self.poll();
        self.driver.check_good_stream();
        self.driver.check_held(HELD_MAX);
        self.inputs += 1;
        if self.inputs.is_multiple_of(QUIET_EVERY) {
            self.rest();
        }
        true
    }

    /// Polls all subscriptions; received fragments are in order and in bounds.
    fn poll(&mut self) {
        for subscription in &mut self.subscriptions {
            let mut last = None;
            log::poll(subscription, |header| {
                let at = (header.session_id(), header.position());
                if let Some((session_id, position)) = last
                    && session_id == at.0
                {
                    assert!(position < at.1);
                }
                last = Some(at);
            });
        }
    }

    fn rest(&mut self) {
        for _ in 0..QUIET_TICKS {
            self.driver.step(crate::driver::TICK);
            self.poll();
        }
        self.driver.check_baseline();
        self.driver.take_received();
        self.driver
            .check_counts(2, &["insufficient", "no image for SETUP"]);
    }
}
