// SPDX-License-Identifier: Apache-2.0
//! Datagrams of remote hosts to the socket for name resolution by gossip.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use taran_protocol::frame::{ResolutionEntry, write_resolution};

use crate::driver::{DriverFixture, HERE, PORTS, REMOTE_HOSTS};
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per driver, and the interval of checks that all remote state has expired.
const INPUTS_PER_DRIVER: usize = 512;
const QUIET_EVERY: usize = 16;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 32;
/// Memory limit of the driver in bytes: its tables of names and neighbors.
const HELD_MAX: isize = 4 << 20;
/// Timer ticks after which silent neighbors and their names are removed.
const QUIET_TICKS: usize = 60;

const NAMES: [&[u8]; 5] = [b"A", b"B", b"driver-c", b"host", b"\xFF\x00"];

const TIMES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(600),
];

/// The driver.
struct Gossiping {
    driver: DriverFixture,
    inputs: usize,
}

thread_local! {
    static GOSSIPING: RefCell<ReusedState<Gossiping>> = const { RefCell::new(ReusedState::new()) };
}

/// Sends resolution frames of remote hosts.
pub fn run(bytes: &[u8]) {
    GOSSIPING.with_borrow_mut(|state| {
        state.run(bytes, INPUTS_PER_DRIVER, Gossiping::new, Gossiping::act)
    });
}

impl Gossiping {
    fn new() -> Self {
        let mut driver = DriverFixture::start(&[
            ("aeron.driver.resolver.name", "A"),
            ("aeron.driver.resolver.interface", "10.0.0.1:8050"),
            ("aeron.driver.resolver.bootstrap.neighbor", "10.0.0.2:30001"),
            ("aeron.driver.resolver.neighbor.timeout", "300ms"),
            ("aeron.driver.resolver.self.resolution.interval", "40ms"),
            ("aeron.driver.resolver.neighbor.resolution.interval", "60ms"),
            (
                "aeron.driver.resolver.bootstrap.neighbor.resolution.interval",
                "200ms",
            ),
        ]);
        driver.set_baseline();
        Self { driver, inputs: 0 }
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
            let datagram = if what & 0xC0 == 0x80 {
                script.chunk().to_vec()
            } else {
                resolution(&mut script)
            };
            let target = SocketAddr::from((HERE, 8050));
            self.driver
                .send(usize::from(what >> 3 & 3), target, &datagram);
            self.driver.run_cycle();
        }
        self.driver.run_cycle();
        self.driver.check_good_stream();
        self.driver.check_held(HELD_MAX);
        self.inputs += 1;
        if self.inputs.is_multiple_of(QUIET_EVERY) {
            self.driver.rest(QUIET_TICKS);
            self.driver.check_baseline();
            self.driver.take_received();
            self.driver.check_counts(1, &[]);
        }
        true
    }
}

/// Returns up to four entries, with damage where the script requests it.
fn resolution(script: &mut Script<'_>) -> Vec<u8> {
    let what = script.u8();
    let mut entries = Vec::new();
    for _ in 0..=what & 3 {
        let choice = script.u8();
        let ip: IpAddr = match choice & 7 {
            0 | 1 => REMOTE_HOSTS[usize::from(choice & 1)].into(),
            2 => HERE.into(),
            3 => [0, 0, 0, 0].into(),
            4 => [224, 0, 1, 1].into(),
            5 => Ipv6Addr::LOCALHOST.into(),
            6 => [127, 0, 0, 1].into(),
            _ => script.i32().to_le_bytes().into(),
        };
        let port = match choice >> 3 & 3 {
            0 | 1 => PORTS[usize::from(choice >> 3 & 1)],
            2 => 8050,
            _ => script.u16(),
        };
        let name = match choice >> 5 {
            known @ 0..5 => NAMES[usize::from(known)],
            _ => {
                let length = script.below(64);
                script.take(length)
            }
        };
        entries.push(ResolutionEntry {
            is_self: what & 0x10 != 0,
            address: SocketAddr::new(ip, port),
            age_ms: script.near(&[0, 10, 100_000, -1]) as i32,
            name,
        });
    }
    let mut buffer = [0; 512];
    let mut datagram = write_resolution(&mut buffer, entries).0.to_vec();
    if what & 0x80 != 0 && !datagram.is_empty() {
        let at = usize::from(script.u8()) % datagram.len();
        datagram[at] ^= script.u8();
    }
    datagram
}
