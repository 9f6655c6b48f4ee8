// SPDX-License-Identifier: Apache-2.0
//! The FIX session machine by sequences of inputs: numbers only rise within an epoch, memory is bounded, messages are delivered
//! once and in order.

use taran_fix::session::{
    Application, Authentication, Config, DisconnectReason, Event, Inbound, NextExpected, Now,
    Numbers, Outbound, Output, Profile, Role, Sent, Session, State, Stored,
};
use taran_fix::wire::{Timestamp, checksum};

/// Results, with what has to hold for them.
#[derive(Default)]
struct Checked {
    epoch: u32,
    last_out: u64,
    last_in: u64,
    is_closed: bool,
}

impl Output for Checked {
    fn send(&mut self, message: Outbound<'_>) {
        if message.epoch != self.epoch {
            self.epoch = message.epoch;
            self.last_out = 0;
            self.last_in = 0;
        }
        if matches!(message.sent, Sent::New | Sent::Deferred) {
            assert!(self.last_out == 0 || message.seq == self.last_out + 1);
            self.last_out = message.seq;
        } else {
            assert!(message.seq <= self.last_out || self.last_out == 0);
        }
        assert!(message.bytes.starts_with(b"8=FIX"));
    }

    fn deliver(&mut self, message: Inbound<'_>) {
        if message.epoch == self.epoch {
            assert!(message.seq > self.last_in);
            self.last_in = message.seq;
        }
    }

    fn event(&mut self, event: Event<'_>) {
        if let Event::Reset { epoch } = event {
            self.epoch = epoch;
            self.last_out = 0;
            self.last_in = 0;
        }
        assert!(!format!("{event:?}").is_empty());
    }

    fn disconnect(&mut self, _: DisconnectReason) {
        self.is_closed = true;
    }
}

/// Largest number of bytes that are kept for early messages.
const EARLY: usize = 400;

/// Text of a time that is valid now.
fn time(now: Now) -> String {
    now.wall.to_string()[..21].to_owned()
}

/// Runs a script: the first byte selects the configuration, each line is an input.
pub fn run(bytes: &[u8]) {
    let Some((first, script)) = bytes.split_first() else {
        return;
    };
    let role = if first & 1 == 0 {
        Role::Acceptor
    } else {
        Role::Initiator
    };
    let begin = if first & 2 == 0 { "FIX.4.4" } else { "FIX.4.1" };
    let mut config = Config::new(role, begin, "A", "B");
    config.profile = if first & 4 == 0 {
        Profile::Standard
    } else {
        Profile::Quickfix
    };
    config.next_expected = if first & 8 == 0 {
        NextExpected::Accept
    } else {
        NextExpected::Send
    };
    config.authenticate = first & 16 != 0;
    config.reset_on_logon = first & 32 != 0;
    config.resend_chunk = u64::from(first >> 6);
    config.early_bytes = EARLY;
    let Ok(mut session) = Session::new(config, Numbers::default()) else {
        return;
    };
    let mut now = Now {
        monotonic: 0,
        wall: Timestamp::from_nanos(1_767_614_400_000_000_000),
    };
    let mut out = Checked::default();
    let mut pending = Vec::new();
    let mut before = session.numbers();
    for line in script.split(|byte| *byte == b'\n').take(64) {
        let (code, rest) = line
            .split_first()
            .map_or((b' ', line), |(code, rest)| (*code, rest));
        match code {
            b'>' => pending.extend(message(begin, rest, now)),
            b'=' => pending.extend_from_slice(rest),
            b'c' => session.connected(now, &mut out),
            b'd' => session.disconnected(now, &mut out),
            b'x' => session.disconnect(now, &mut out),
            b'l' => session.logout("bye", now, &mut out),
            b'r' => {
                session.reset(now, &mut out);
            }
            b'a' => session.authenticated(Authentication::Accept, now, &mut out),
            b't' => {
                let seconds = i64::from(rest.first().copied().unwrap_or(1));
                now.monotonic += seconds * 1_000_000_000;
                now.wall = Timestamp::from_nanos(now.wall.nanos() + seconds * 1_000_000_000);
                session.tick(now, &mut out);
            }
            b's' => {
                let application = Application {
                    msg_type: b"D",
                    body: b"11=x\x01",
                    header: b"",
                };
                let _ = session.send(application, now, &mut out);
            }
            _ => {
                if let Some(wanted) = session.wanted() {
                    let bytes = message(begin, b"D|11=x", now);
                    let is_there = rest.first().is_some_and(|byte| byte & 1 == 1);
                    let stored = if is_there {
                        Stored::Message(&bytes)
                    } else {
                        Stored::Skip
                    };
                    session.stored(*wanted.start(), stored, now, &mut out);
                }
            }
        }
        let consumed = session.receive(&pending, now, &mut out);
        assert!(consumed <= pending.len());
        pending.drain(..consumed);
        if std::mem::take(&mut out.is_closed) {
            assert_eq!(session.state(), State::Idle);
            pending.clear();
        }
        let after = session.numbers();
        if after.epoch == before.epoch {
            assert!(after.next_in >= before.next_in && after.next_out >= before.next_out);
        }
        assert!(session.early_bytes() <= EARLY);
        if let Some(deadline) = session.next_deadline(now) {
            assert!(deadline > i64::MIN);
        }
        before = after;
    }
}

/// Makes a message of `TYPE|FIELDS` with a header; a number is taken as 34 if it comes first.
fn message(begin: &str, fields: &[u8], now: Now) -> Vec<u8> {
    let text: Vec<u8> = fields
        .iter()
        .map(|byte| if *byte == b'|' { 1 } else { *byte })
        .collect();
    let mut body = b"35=".to_vec();
    body.extend(&text);
    body.extend(format!("\x0149=B\x0156=A\x0152={}\x01", time(now)).into_bytes());
    let mut bytes = format!("8={begin}\x019={}\x01", body.len()).into_bytes();
    bytes.extend(body);
    let sum = checksum(&bytes);
    bytes.extend(format!("10={sum:03}\x01").into_bytes());
    bytes
}
