// SPDX-License-Identifier: Apache-2.0
//! Acceptor against initiator over a link that splits, delays and drops: no gap, no duplicate, numbers that only rise.

use std::collections::BTreeMap;

use proptest::prelude::*;
use taran_fix::session::{
    Application, Config, DisconnectReason, Event, Inbound, NextExpected, Now, Numbers, Outbound,
    Output, Profile, Role, Sent, Session, State, Stored,
};
use taran_fix::wire::{Framed, Framer, Resync, Timestamp};

const SECOND: i64 = 1_000_000_000;

/// Journal, socket and application of one side.
#[derive(Default)]
struct Side {
    recorded: BTreeMap<u64, (bool, Vec<u8>)>,
    wire: Vec<u8>,
    delivered: Vec<u64>,
    last_in: u64,
    is_closed: bool,
}

/// Returns the field that identifies the content of a message.
fn content(bytes: &[u8]) -> Option<u64> {
    match Framer::new(1 << 20, Resync::Length).next(bytes) {
        Framed::Message(frame) => frame.get(11).and_then(taran_fix::wire::unsigned),
        _ => panic!("not a message"),
    }
}

impl Output for Side {
    fn send(&mut self, message: Outbound<'_>) {
        let known = self.recorded.get(&message.seq);
        match message.sent {
            Sent::New | Sent::Deferred => {
                let last = self.recorded.keys().next_back().copied().unwrap_or(0);
                assert_eq!(
                    message.seq,
                    last + 1,
                    "numbers are used once and without holes"
                );
                let entry = (message.is_admin, message.bytes.to_vec());
                self.recorded.insert(message.seq, entry);
            }
            Sent::Held => assert_eq!(known.map(|entry| &entry.1[..]), Some(message.bytes)),
            Sent::Replayed if message.is_admin => {}
            Sent::Replayed => {
                let (is_admin, bytes) = known.expect("recorded");
                assert!(!is_admin);
                assert_eq!(
                    content(bytes),
                    content(message.bytes),
                    "one number, one content"
                );
            }
        }
        if message.sent != Sent::Deferred {
            self.wire.extend_from_slice(message.bytes);
        }
    }

    fn deliver(&mut self, message: Inbound<'_>) {
        assert!(message.seq > self.last_in, "delivered once and in order");
        self.last_in = message.seq;
        let id = message.frame.get(11).and_then(taran_fix::wire::unsigned);
        self.delivered.push(id.expect("an id"));
    }

    fn event(&mut self, event: Event<'_>) {
        assert!(
            !matches!(event, Event::Garbled { .. } | Event::Rejected { .. }),
            "{event:?}"
        );
        assert!(!matches!(event, Event::SequenceDispute { .. }), "{event:?}");
    }

    fn disconnect(&mut self, _: DisconnectReason) {
        self.is_closed = true;
    }
}

struct End {
    session: Session,
    side: Side,
    /// Received and not consumed.
    inbox: Vec<u8>,
    /// Contents of all messages that the application has sent.
    sent: Vec<u64>,
}

impl End {
    fn receive(&mut self, bytes: &[u8], now: Now) {
        self.inbox.extend_from_slice(bytes);
        let consumed = self.session.receive(&self.inbox, now, &mut self.side);
        self.inbox.drain(..consumed);
    }

    /// Passes up to `limit` stored messages that the session wants.
    fn serve(&mut self, limit: usize, now: Now) {
        for _ in 0..limit {
            let Some(wanted) = self.session.wanted() else {
                break;
            };
            let seq = *wanted.start();
            let entry = self.side.recorded.get(&seq).cloned();
            let stored = match &entry {
                Some((_, bytes)) => Stored::Message(bytes),
                None => Stored::Skip,
            };
            self.session.stored(seq, stored, now, &mut self.side);
        }
    }

    fn send(&mut self, id: u64, now: Now) {
        let body = format!("11={id}\x01");
        let message = Application {
            msg_type: b"D",
            body: body.as_bytes(),
            header: b"",
        };
        if self.session.send(message, now, &mut self.side).is_ok() {
            self.sent.push(id);
        }
    }
}

struct World {
    ends: [End; 2],
    is_connected: bool,
    now: Now,
    random: fastrand::Rng,
    next_id: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let profile = if random.bool() {
            Profile::Standard
        } else {
            Profile::Quickfix
        };
        let next_expected = if random.bool() {
            NextExpected::Send
        } else {
            NextExpected::Accept
        };
        let chunk = [0, 0, 3][random.usize(..3)];
        let early = [2, 1024][random.usize(..2)];
        let end = |role, sender, target| {
            let mut config = Config::new(role, "FIX.4.4", sender, target);
            config.heartbeat_interval = 5;
            config.profile = profile;
            config.next_expected = next_expected;
            config.resend_chunk = chunk;
            config.early_messages = early;
            End {
                session: Session::new(config, Numbers::default()).expect("valid"),
                side: Side::default(),
                inbox: Vec::new(),
                sent: Vec::new(),
            }
        };
        Self {
            ends: [
                end(Role::Initiator, "A", "B"),
                end(Role::Acceptor, "B", "A"),
            ],
            is_connected: false,
            now: Now {
                monotonic: 0,
                wall: Timestamp::from_nanos(1_767_614_400 * SECOND),
            },
            random,
            next_id: 0,
        }
    }

    fn connect(&mut self) {
        for end in &mut self.ends {
            end.side.wire.clear();
            end.inbox.clear();
            end.side.is_closed = false;
            end.session.connected(self.now, &mut end.side);
        }
        self.is_connected = true;
    }

    fn disconnect(&mut self) {
        for end in &mut self.ends {
            end.session.disconnected(self.now, &mut end.side);
            end.side.wire.clear();
            end.inbox.clear();
        }
        self.is_connected = false;
    }

    /// Ends the connection where a session has closed it.
    fn settle(&mut self) {
        if self.is_connected && self.ends.iter().any(|end| end.side.is_closed) {
            self.disconnect();
        }
    }

    /// Moves up to `limit` bytes of one side to the other.
    fn carry(&mut self, from: usize, limit: usize) {
        let end = &mut self.ends[from];
        let length = end.side.wire.len().min(limit);
        let bytes: Vec<u8> = end.side.wire.drain(..length).collect();
        self.ends[1 - from].receive(&bytes, self.now);
    }

    fn pass(&mut self, time: i64) {
        let end_time = self.now.monotonic + time;
        loop {
            let deadlines = self
                .ends
                .iter()
                .filter_map(|end| end.session.next_deadline(self.now));
            let next = deadlines
                .min()
                .unwrap_or(i64::MAX)
                .max(self.now.monotonic + 1);
            let at = next.min(end_time);
            self.now.wall = Timestamp::from_nanos(self.now.wall.nanos() + at - self.now.monotonic);
            self.now.monotonic = at;
            for end in &mut self.ends {
                end.session.tick(self.now, &mut end.side);
            }
            if at >= end_time {
                return;
            }
        }
    }

    fn restart(&mut self, index: usize) {
        self.disconnect();
        let end = &mut self.ends[index];
        let config = end.session.config().clone();
        let numbers = end.session.numbers();
        end.session = Session::new(config, numbers).expect("valid");
    }

    fn step(&mut self) {
        let side = self.random.usize(..2);
        match self.random.u32(..100) {
            0..40 => {
                let limit = self.random.usize(1..300);
                self.carry(side, limit);
            }
            40..65 => {
                self.next_id += 1;
                let id = self.next_id;
                self.ends[side].send(id, self.now);
            }
            65..80 => {
                let limit = self.random.usize(1..4);
                self.ends[side].serve(limit, self.now);
            }
            80..90 => {
                let time = self.random.i64(1..2 * SECOND);
                self.pass(time);
            }
            90..95 if !self.is_connected => self.connect(),
            95..97 if self.is_connected => self.disconnect(),
            97 => self.restart(side),
            _ => {}
        }
        self.settle();
    }

    fn is_quiet(&self) -> bool {
        let [a, b] = &self.ends;
        let is_even = |one: &End, two: &End| {
            one.session.numbers().next_in == two.session.numbers().next_out
                && one.session.wanted().is_none()
                && !one.session.has_gap()
                && one.side.wire.is_empty()
                && one.session.state() == State::Active
        };
        is_even(a, b) && is_even(b, a)
    }

    /// Ends the faults, and returns true if both sides agree in time.
    fn recovers(&mut self) -> bool {
        for _ in 0..600 {
            if !self.is_connected {
                self.connect();
            }
            for _ in 0..20 {
                for side in 0..2 {
                    self.carry(side, usize::MAX);
                    self.ends[side].serve(usize::MAX, self.now);
                }
                self.settle();
            }
            if self.is_quiet()
                && self.ends[0].side.delivered == self.ends[1].sent
                && self.ends[1].side.delivered == self.ends[0].sent
            {
                return true;
            }
            self.pass(SECOND / 2);
            self.settle();
        }
        false
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    world.connect();
    for _ in 0..400 {
        world.step();
    }
    let recovered = world.recovers();
    let [a, b] = &world.ends;
    assert_eq!(
        a.side.delivered,
        b.sent,
        "seed {seed}: {:?} {:?}",
        a.session.numbers(),
        b.session.numbers()
    );
    assert_eq!(
        b.side.delivered,
        a.sent,
        "seed {seed}: {:?} {:?}",
        a.session.numbers(),
        b.session.numbers()
    );
    assert!(recovered, "seed {seed}: {:?} {:?}", a.session, b.session);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn sessions_over_failing_link_lose_and_double_nothing(seed: u64) {
        run(seed);
    }
}
