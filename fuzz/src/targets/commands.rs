// SPDX-License-Identifier: Apache-2.0
//! A hostile client of a driver: commands with arbitrary fields, records of arbitrary bytes, and arbitrary bytes over the
//! shared memory.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Duration;

use taran_core::broadcast::Receiver;
use taran_core::memory::Region;
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::Cnc;
use taran_protocol::command::Command;
use taran_protocol::response::Response;

use crate::driver::{CLIENT_TIMEOUT, DriverFixture, TICK};
use crate::script::Script;
use crate::story::ReusedState;

/// Inputs per driver, and the interval of checks that all hostile clients have timed out.
const INPUTS_PER_DRIVER: usize = 256;
const QUIET_EVERY: usize = 8;
/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 24;
/// Memory limit of the driver in bytes: publications and subscriptions of eight inputs, and an error record for each text.
const HELD_MAX: isize = 64 << 20;

const CHANNELS: [&str; 22] = [
    "aeron:ipc",
    "aeron:ipc?term-length=64k|session-id=3",
    "aeron:udp?endpoint=10.0.0.1:23001",
    "aeron:udp?endpoint=10.0.0.1:23001|session-id=5|tags=1,2",
    "aeron:udp?endpoint=10.0.0.1:0",
    "aeron:udp?endpoint=224.0.1.7:23002|interface=10.0.0.1",
    "aeron:udp?control=10.0.0.1:23003|control-mode=dynamic|fc=min",
    "aeron:udp?control-mode=manual|tags=3",
    "aeron:udp?control-mode=response|control=10.0.0.1:23004",
    "aeron:udp?tags=1",
    "aeron-spy:aeron:udp?endpoint=10.0.0.1:23001",
    "aeron-spy:aeron:udp?tags=3",
    "aeron:udp?endpoint=host:23005",
    "aeron:udp?endpoint=unknown:23005",
    "aeron:udp?endpoint=10.0.0.1:23006|term-length=1g",
    "aeron:udp?endpoint=10.0.0.1:23007|mtu=8k|init-term-id=5|term-id=7|term-offset=64|term-length=128k",
    "aeron:udp?endpoint=10.0.0.1:23001|session-id=tag:2",
    "aeron:udp?endpoint=10.0.0.1:23001|tether=false|rejoin=false|group=true|cc=cubic",
    "aeron:udp?endpoint=10.0.0.2:23008|ssc=true|linger=0|max-resend=3|eos=false",
    "aeron:udp?endpoint=[::1]:23009",
    "aeron:udp",
    "",
];

/// Channels whose resources outlive their client by more than the driver's own timeouts.
const LASTING: [&str; 6] = [
    "aeron:udp?endpoint=10.0.0.1:23001|linger=20s",
    "aeron:udp?control=10.0.0.1:23003|control-mode=dynamic|fc=min,g:7/1,t:9223372036854775807ns",
    "aeron:udp?endpoint=10.0.0.1:23010|untethered-window-limit-timeout=1ns|untethered-resting-timeout=9000d",
    "aeron:udp?endpoint=10.0.0.1:23001|untethered-linger-timeout=0|tether=false",
    "aeron:udp?endpoint=10.0.0.2:23008|ssc=true|linger=106751d|pub-wnd=64k",
    "aeron:ipc?linger=9223372036854775807ns",
];

const TIMES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(20),
    Duration::from_millis(200),
    Duration::from_millis(600),
];

/// The driver, its shared memory, and the ids that responses contained.
struct CommandFuzzer {
    driver: DriverFixture,
    cnc: Cnc,
    producer: Producer,
    /// Ids of the well-behaved client and of its resources: the only ids that inputs must not name.
    good: Range<i64>,
    clients: [i64; 3],
    /// Ids of the latest commands.
    ids: Vec<i64>,
    inputs: usize,
}

/// Damage that an input has done other than by commands.
#[derive(Clone, Copy, Debug, Default)]
struct Damage {
    /// Number of damaged words of the ring: each may be the start of a record that blocks the driver.
    ring: u32,
    rest: bool,
    /// Not damage: the requested resources outlive the final check of the target.
    lasts: bool,
}

thread_local! {
    static COMMANDING: RefCell<ReusedState<CommandFuzzer>> = const { RefCell::new(ReusedState::new()) };
}

/// Runs a hostile client.
pub fn run(bytes: &[u8]) {
    COMMANDING.with_borrow_mut(|state| {
        state.run(
            bytes,
            INPUTS_PER_DRIVER,
            CommandFuzzer::new,
            CommandFuzzer::act,
        )
    });
}

impl CommandFuzzer {
    fn new() -> Self {
        let mut driver = DriverFixture::start(&[]);
        driver.set_baseline();
        let cnc = driver.cnc();
        let producer = Producer::open(&cnc.to_driver).expect("the ring is valid");
        // Far from the ids of earlier inputs.
        let first = producer.next_correlation_id();
        for _ in 0..10_000 {
            producer.next_correlation_id();
        }
        let clients = [(); 3].map(|()| producer.next_correlation_id());
        Self {
            driver,
            cnc,
            producer,
            good: 0..first + 5_000,
            clients,
            ids: vec![clients[0]],
            inputs: 0,
        }
    }

    fn act(&mut self, bytes: &[u8]) -> bool {
        let mut script = Script::new(bytes);
        let mut damage = Damage::default();
        for _ in 0..STEPS_MAX {
            if script.is_over() {
                break;
            }
            let what = script.u8();
            match what >> 6 {
                3 => self.driver.step(TIMES[usize::from(what) % TIMES.len()]),
                2 => {
                    // Rarely, because the driver is replaced after damage, and starting one is slow.
                    match what & 0x38 {
                        0x38 => self.scribble(&mut script, &mut damage),
                        0x30 => {
                            damage.lasts = true;
                            self.lasting(&mut script);
                        }
                        _ => self.record(&mut script),
                    }
                    self.driver.run_cycle();
                }
                _ => {
                    self.command(&mut script);
                    if what & 1 == 0 {
                        self.driver.run_cycle();
                    }
                }
            }
        }
        self.driver.run_cycle();
        self.driver.run_cycle();
        if damage.ring > 0 || damage.rest {
            self.driver.rest(3);
            self.check_alive(damage);
            return false;
        }
        self.driver.check_good_stream();
        self.driver.check_held(HELD_MAX);
        if damage.lasts {
            return false;
        }
        self.inputs += 1;
        if self.inputs.is_multiple_of(QUIET_EVERY) {
            self.driver.check_baseline();
        }
        true
    }

    /// Sends a command whose fields are near valid ones.
    fn command(&mut self, script: &mut Script<'_>) {
        let kind = script.u8();
        let client_id = if kind & 0x80 == 0 {
            self.clients[script.below(3)]
        } else {
            script.near(&[-1, 0, self.clients[0]])
        };
        let correlation_id = if kind & 0x40 == 0 {
            self.producer.next_correlation_id()
        } else {
            script.near(&self.ids)
        };
        self.ids.push(correlation_id);
        if self.ids.len() > 16 {
            self.ids.remove(0);
        }
        let registration_id = script.near(&self.ids);
        let stream_id = script.below(4) as i32;
        let choice = script.below(CHANNELS.len() + 1);
        let own = String::from_utf8_lossy(if choice == CHANNELS.len() {
            script.chunk()
        } else {
            b""
        });
        let channel = CHANNELS.get(choice).copied().unwrap_or(&own);
        let command = match kind % 18 {
            0 => Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            1 => Command::RemovePublication {
                client_id,
                correlation_id,
                registration_id,
                revoke: stream_id & 1 == 0,
            },
            2 => Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            3 | 4 => Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            5 => Command::RemoveSubscription {
                client_id,
                correlation_id,
                registration_id,
            },
            6 => Command::ClientKeepalive {
                client_id,
                correlation_id,
            },
            7 => Command::AddDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
            8 => Command::RemoveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
            9 => Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id: stream_id,
                key: script.take(20),
                label: channel,
            },
            10 => Command::RemoveCounter {
                client_id,
                correlation_id,
                registration_id,
            },
            11 => Command::ClientClose {
                client_id,
                correlation_id,
            },
            12 => Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
            13 => Command::RemoveReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
            14 => Command::TerminateDriver {
                client_id,
                correlation_id,
                token: script.take(20),
            },
            15 => Command::RejectImage {
                client_id,
                correlation_id,
                image_id: registration_id,
                position: script.near(&[0, 64, 1 << 40]),
                reason: script.take(20),
            },
            16 => Command::RemoveDestinationById {
                client_id,
                correlation_id,
                registration_id,
                destination_id: script.near(&self.ids),
            },
            _ => Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id,
            },
        };
        let mut payload = Vec::new();
        let type_id = command.encode(&mut payload);
        if !asks_for_time(&payload) {
            self.write(type_id, &payload);
        }
    }

    /// Sends a record of arbitrary bytes.
    fn record(&self, script: &mut Script<'_>) {
        let type_id = match script.u8() {
            // Static counters outlive their clients.
            0x0F => return,
            small @ 0..0x20 => small.into(),
            _ => script.i32(),
        };
        let payload = script.chunk();
        if type_id != 0x0F && !asks_for_time(payload) {
            self.write(type_id, payload);
        }
    }

    /// Resources that outlive their client: static counters, channels with timeouts of their own, and arbitrary records
    /// that may request either.
    fn lasting(&self, script: &mut Script<'_>) {
        let kind = script.u8();
        let client_id = self.clients[script.below(3)];
        let correlation_id = self.producer.next_correlation_id();
        let stream_id = script.below(4) as i32;
        let channel = LASTING[script.below(LASTING.len())];
        let command = match kind % 6 {
            0 | 1 => Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id: script.near(&self.ids),
                counter_type_id: script.near(&[0, 1, i64::from(i32::MAX), -1]) as i32,
                key: script.take(20),
                label: channel,
            },
            2 => Command::AddPublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            3 => Command::AddExclusivePublication {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            4 => Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
            _ => return self.write(i32::from(script.u8() & 0x1F), script.chunk()),
        };
        let mut payload = Vec::new();
        let type_id = command.encode(&mut payload);
        self.write(type_id, &payload);
    }

    fn write(&self, type_id: i32, payload: &[u8]) {
        if !self.is_about_good_things(payload) {
            // The client may have filled the ring itself.
            let _ = self.producer.write(type_id, payload);
        }
    }

    /// Returns true if a record may name a resource of the good client, which the protocol allows every client to do.
    fn is_about_good_things(&self, payload: &[u8]) -> bool {
        let words = payload.windows(8).step_by(4);
        let mut ids = words.map(|word| i64::from_le_bytes(word.try_into().unwrap_or_default()));
        // Neither zero nor minus one is the id of a client.
        ids.any(|id| id > 0 && self.good.contains(&id))
            || payload.windows(5).any(|part| part == b"20000")
    }

    /// Writes arbitrary bytes over shared memory, near the parts in use.
    fn scribble(&self, script: &mut Script<'_>, damage: &mut Damage) {
        let area = script.u8();
        let (region, starts): (&Region, [usize; 4]) = match area % 6 {
            0 | 1 => {
                let capacity = self.producer.capacity();
                let near = self.producer.size() & (capacity - 1);
                (
                    &self.cnc.to_driver,
                    [near, 0, capacity + 128, capacity + 384],
                )
            }
            2 => {
                damage.rest = true;
                let capacity = self.cnc.to_clients.len() - 128;
                (&self.cnc.to_clients, [0, 64, capacity, capacity + 8])
            }
            3 => {
                damage.rest = true;
                (&self.cnc.counters_values, [0, 46 * 128, 64 * 128, 80 * 128])
            }
            4 => {
                damage.rest = true;
                (
                    &self.cnc.counters_metadata,
                    [0, 46 * 512, 64 * 512, 80 * 512],
                )
            }
            _ => {
                damage.rest = true;
                (&self.cnc.error_log, [0, 8, 64, 1024])
            }
        };
        let start = starts[script.below(4)] + usize::from(script.u16() & 0x1FFF) * 4;
        let length = script.below(33);
        let bytes = script.take(length);
        if area % 6 < 2 {
            damage.ring += 1 + bytes.len() as u32 / 8;
        }
        let start = start % region.len();
        region.copy_racing_in(start & !7, &bytes[..bytes.len().min(region.len() - start)]);
    }

    /// Checks that after damage to shared memory the driver keeps its heartbeat; after damage to the ring only, that it also
    /// executes commands again.
    fn check_alive(&mut self, damage: Damage) {
        self.producer_beats();
        if damage.rest {
            return;
        }
        let mut responses = Receiver::open(&self.cnc.to_clients).expect("it is not damaged");
        let mut pending = None;
        let timeout = damage.ring * (CLIENT_TIMEOUT + 2 * TICK) + CLIENT_TIMEOUT;
        let end = self.driver.clock.read().nanos + timeout.as_nanos() as i64;
        while self.driver.clock.read().nanos < end {
            self.driver.clock.advance(TICK);
            self.driver.settle();
            if pending.is_none() {
                let mut payload = Vec::new();
                let command = Command::NextAvailableSessionId {
                    client_id: self.clients[2],
                    correlation_id: i64::MAX - 7,
                    stream_id: 1,
                };
                let type_id = command.encode(&mut payload);
                pending = self.producer.write(type_id, &payload).ok();
            }
            let mut answered = false;
            loop {
                let received = responses.receive(|type_id, bytes| {
                    let answer = Response::decode(type_id, bytes);
                    answered |= matches!(
                        answer,
                        Ok(Response::NextAvailableSessionId { correlation_id, .. })
                            if correlation_id == i64::MAX - 7
                    );
                });
                if !matches!(received, Ok(true)) {
                    break;
                }
            }
            if answered {
                return;
            }
            if self.producer.size() == 0 {
                // The command may have been dropped with the damaged records.
                pending = None;
            }
        }
        panic!("no response: {}", self.driver.errors().join("\n"));
    }

    fn producer_beats(&mut self) {
        self.driver.rest(3);
        let age = self.driver.clock.read().epoch_millis - self.producer.consumer_heartbeat_ms();
        assert!(
            (0..=1000).contains(&age),
            "the last heartbeat is {age} ms old"
        );
    }
}

/// Returns true if a record may request a resource that outlives its client by more than the driver's own timeouts.
fn asks_for_time(payload: &[u8]) -> bool {
    let behind = |text: &'static [u8]| {
        let found = payload.windows(text.len()).enumerate();
        let found = found.filter(move |(_, part)| *part == text);
        found.map(move |(at, _)| &payload[at + text.len()..])
    };
    behind(b"timeout").next().is_some()
        || behind(b",t:").next().is_some()
        || behind(b"linger=").any(|value| !value.starts_with(b"0|"))
}
