// SPDX-License-Identifier: Apache-2.0
//! Logon of both sides (`docs/spec/fix-gateway.md` §3.6).

use super::emit::{Post, post};
use super::inbound::{Head, Type};
use super::machine::Resetting;
use super::{DisconnectReason, Event, NextExpected, Now, Output, Role, Sent, Session, State};
use crate::wire::{Frame, Framed, tag, unsigned};

/// Result of the authentication of a Logon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication<'text> {
    /// The peer may log on.
    Accept,
    /// The peer may not. Without a text the connection is closed without an answer.
    Refuse {
        /// Text of the Logout.
        text: Option<&'text str>,
        /// SessionStatus of the Logout, for FIXT.
        status: Option<u64>,
    },
}

const SECOND: i64 = 1_000_000_000;

impl Session {
    /// Sends a Logon as the initiator.
    pub(super) fn initiate<O: Output>(&mut self, now: Now, out: &mut O) {
        let resets = self.config.reset_on_logon && self.version >= (4, 1);
        if resets {
            self.restart_numbers(out);
        }
        let interval = u64::from(self.config.heartbeat_interval);
        self.enter(State::LogonSent, now);
        self.send_logon(interval, resets, None, now, out);
    }

    /// Sends a Logon. `gap` is the first missing number if the peer's Logon showed one.
    fn send_logon<O: Output>(
        &mut self,
        interval: u64,
        resets: bool,
        gap: Option<u64>,
        now: Now,
        out: &mut O,
    ) {
        let config = &self.config;
        let next_expected = match config.next_expected {
            NextExpected::Send if self.version >= (4, 4) => {
                Some(gap.unwrap_or(self.numbers.next_in))
            }
            _ => None,
        };
        let letter = Post {
            seq: self.numbers.next_out,
            msg_type: b"A",
            sent: Sent::New,
            is_admin: true,
            room: config.logon_fields.len(),
        };
        let epoch = self.numbers.epoch;
        let is_fixt = self.version >= (5, 0);
        let is_sent = post(
            config,
            &mut self.buffer,
            epoch,
            now,
            &letter,
            out,
            |writer| {
                writer.unsigned(tag::ENCRYPT_METHOD, 0);
                writer.unsigned(tag::HEART_BT_INT, interval);
                if resets {
                    writer.boolean(tag::RESET_SEQ_NUM_FLAG, true);
                }
                if let Some(next) = next_expected {
                    writer.unsigned(tag::NEXT_EXPECTED_MSG_SEQ_NUM, next);
                }
                if let Some(version) = config.default_appl_ver_id.as_deref().filter(|_| is_fixt) {
                    writer.text(tag::DEFAULT_APPL_VER_ID, version.as_bytes());
                }
                if config.test_session {
                    writer.boolean(tag::TEST_MESSAGE_INDICATOR, true);
                }
                writer.encoded(&config.logon_fields);
            },
        );
        if is_sent {
            self.numbers.next_out += 1;
            self.last_sent = now.monotonic;
        }
    }

    /// Checks what each Logon needs. Nothing if one of it is missing or wrong; else the number and HeartBtInt.
    fn check_logon(&mut self, frame: &Frame<'_>, now: Now) -> Option<(u64, u64)> {
        let head = Head::read(frame);
        let seq = head.number().filter(|seq| *seq > 0)?;
        let time = head.time()?;
        let interval = frame.get(tag::HEART_BT_INT).and_then(unsigned)?;
        let is_plain = frame.get(tag::ENCRYPT_METHOD) == Some(b"0");
        let version = self.config.default_appl_ver_id.as_deref();
        let has_version = self.version < (5, 0)
            || frame.get(tag::DEFAULT_APPL_VER_ID) == version.map(str::as_bytes);
        let is_test = frame.get(tag::TEST_MESSAGE_INDICATOR) == Some(b"Y");
        let limits = u64::from(self.config.heartbeat_min)..=u64::from(self.config.heartbeat_max);
        let resets = frame.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y");
        let is_valid = frame.msg_type() == b"A"
            && frame.begin_string() == self.config.begin_string.as_bytes()
            && !self.wrong_id(&head)
            && self.check_window(time, now)
            && is_plain
            && has_version
            && is_test == self.config.test_session
            && limits.contains(&interval)
            && (!resets || seq == 1)
            && self.check(frame, Type::Logon).is_ok();
        is_valid.then_some((seq, interval))
    }

    /// Takes the first message as the acceptor. All failures end the connection without an answer.
    pub(super) fn first<O: Output>(&mut self, frame: Frame<'_>, now: Now, out: &mut O) {
        if self.check_logon(&frame, now).is_none() {
            self.close(DisconnectReason::InvalidLogon, now, out);
            return;
        }
        if self.config.authenticate {
            self.logon.clear();
            self.logon.extend_from_slice(frame.bytes());
            self.enter(State::Authenticating, now);
            out.event(Event::Authenticate {
                logon: frame.bytes(),
            });
        } else {
            self.accept(&frame, now, out);
        }
    }

    /// Takes the result of the authentication that [`Event::Authenticate`] asked for. Numbers are untouched until
    /// then. Pass the bytes that wait to [`receive`](Self::receive) afterwards.
    pub fn authenticated<O: Output>(&mut self, result: Authentication<'_>, now: Now, out: &mut O) {
        if self.state != State::Authenticating {
            return;
        }
        match result {
            Authentication::Accept => {
                let logon = std::mem::take(&mut self.logon);
                // The bytes were one frame when they were received.
                match self.framer.next(&logon) {
                    Framed::Message(frame) => self.accept(&frame, now, out),
                    _ => self.close(DisconnectReason::InvalidLogon, now, out),
                }
            }
            Authentication::Refuse { text, status } => {
                if let Some(text) = text {
                    self.send_logout(text.as_bytes(), status, now, out);
                }
                self.close(DisconnectReason::NotAuthenticated, now, out);
            }
        }
    }

    /// Takes a Logon that is valid and authenticated: judges its number, resets, answers.
    fn accept<O: Output>(&mut self, frame: &Frame<'_>, now: Now, out: &mut O) {
        let Some((seq, interval)) = self.check_logon(frame, now) else {
            self.close(DisconnectReason::InvalidLogon, now, out);
            return;
        };
        let resets = frame.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y");
        if resets || self.config.reset_on_logon {
            self.restart_numbers(out);
        }
        if seq < self.numbers.next_in {
            self.enter(State::Active, now);
            self.too_low(seq, now, out);
            return;
        }
        let theirs = self.theirs(frame);
        let next_out = self.numbers.next_out;
        if let Some(received) = theirs.filter(|theirs| *theirs > next_out) {
            self.dispute(next_out, received, now, out);
            return;
        }
        let is_early = seq > self.numbers.next_in;
        let gap = is_early.then_some(self.numbers.next_in);
        if !is_early {
            self.numbers.next_in += 1;
        }
        self.send_logon(interval, resets, gap, now, out);
        self.activate(frame, interval, now, out);
        self.after_logon(seq, is_early, theirs, next_out, now, out);
    }

    /// Returns the peer's NextExpectedMsgSeqNum, if it is honoured.
    fn theirs(&self, frame: &Frame<'_>) -> Option<u64> {
        let is_honoured = self.config.next_expected != NextExpected::Off && self.version >= (4, 4);
        frame
            .get(tag::NEXT_EXPECTED_MSG_SEQ_NUM)
            .and_then(unsigned)
            .filter(|_| is_honoured)
    }

    /// Ends a session whose peer expects a number that has not been sent.
    fn dispute<O: Output>(&mut self, expected: u64, received: u64, now: Now, out: &mut O) {
        out.event(Event::SequenceDispute { expected, received });
        let text = format!(
            "NextExpectedMsgSeqNum too high, expecting at most {expected} but received {received}"
        );
        self.enter(State::Active, now);
        self.log_out_now(
            text.as_bytes(),
            Some(10),
            DisconnectReason::SequenceTooHigh,
            now,
            out,
        );
    }

    /// Becomes active.
    fn activate<O: Output>(&mut self, frame: &Frame<'_>, interval: u64, now: Now, out: &mut O) {
        // At most a day, by the check of the configuration.
        self.heartbeat = i64::try_from(interval).unwrap_or(0).saturating_mul(SECOND);
        let limit = frame.get(tag::MAX_MESSAGE_SIZE).and_then(unsigned);
        self.peer_limit = limit
            .and_then(|limit| usize::try_from(limit).ok())
            .filter(|limit| *limit > 0);
        self.last_received = now.monotonic;
        self.is_testing = false;
        self.was_active = true;
        self.cancel_at = None;
        self.enter(State::Active, now);
        out.event(Event::Active);
    }

    /// Asks for what is missing and sends what the peer misses.
    fn after_logon<O: Output>(
        &mut self,
        seq: u64,
        is_early: bool,
        theirs: Option<u64>,
        logon: u64,
        now: Now,
        out: &mut O,
    ) {
        if let Some(theirs) = theirs.filter(|theirs| *theirs > 0 && *theirs < logon) {
            self.replay_from(theirs, logon - 1, now, out);
        }
        if !is_early {
            self.drain(now, out);
            return;
        }
        self.handle_early(seq);
        let is_told = theirs.is_some() && self.config.next_expected == NextExpected::Send;
        if is_told {
            self.expect(seq, now, out);
        } else {
            self.missing(seq, now, out);
        }
    }

    /// Notes a gap that NextExpectedMsgSeqNum asks for.
    fn expect<O: Output>(&mut self, seen: u64, now: Now, out: &mut O) {
        let from = self.numbers.next_in;
        out.event(Event::GapDetected { from, seen });
        self.tolerated = Some((from, seen));
        self.gap = Some(super::machine::Gap {
            to: seen,
            asked_end: 0,
            at: now.monotonic,
            next_in: from,
            tries: 1,
        });
    }

    /// Takes the answer to the Logon of an initiator.
    pub(super) fn answer<O: Output>(&mut self, frame: Frame<'_>, now: Now, out: &mut O) {
        if frame.msg_type() != b"A" {
            let is_logout = frame.msg_type() == b"5";
            let text = frame.get(tag::TEXT).unwrap_or_default();
            out.event(Event::LogonRefused { text });
            if is_logout {
                // A refusal that counts tells which number the peer expects; the next Logon follows it.
                let head = Head::read(&frame);
                if head.number() == Some(self.numbers.next_in) && !self.wrong_id(&head) {
                    self.numbers.next_in += 1;
                }
            }
            self.close(DisconnectReason::LogonRefused, now, out);
            return;
        }
        let Some((seq, interval)) = self.check_logon(&frame, now) else {
            self.close(DisconnectReason::InvalidLogon, now, out);
            return;
        };
        let resets = frame.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y");
        let asked = self.config.reset_on_logon && self.version >= (4, 1);
        if resets && !asked {
            self.restart_numbers(out);
            self.numbers.next_in = 2;
            self.send_logon(interval, true, None, now, out);
            self.activate(&frame, interval, now, out);
            return;
        }
        if seq < self.numbers.next_in {
            self.enter(State::Active, now);
            self.too_low(seq, now, out);
            return;
        }
        // Our Logon has been counted by the peer.
        let theirs = self.theirs(&frame);
        let next_out = self.numbers.next_out;
        if let Some(received) = theirs.filter(|theirs| *theirs > next_out) {
            self.dispute(next_out, received, now, out);
            return;
        }
        let is_early = seq > self.numbers.next_in;
        if !is_early {
            self.numbers.next_in += 1;
        }
        self.activate(&frame, interval, now, out);
        self.after_logon(seq, is_early, theirs, next_out, now, out);
    }

    /// Takes a Logon on a session that is logged on.
    pub(super) fn logon_in_session<O: Output>(
        &mut self,
        frame: &Frame<'_>,
        head: &Head<'_>,
        seq: u64,
        now: Now,
        out: &mut O,
    ) {
        let resets = frame.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y") && seq == 1;
        if resets && self.state == State::Active {
            let interval = self.heartbeat / SECOND;
            if self.resetting == Resetting::Sent {
                self.resetting = Resetting::No;
                self.numbers.next_in = 2;
                return;
            }
            self.resetting = Resetting::No;
            self.restart_numbers(out);
            self.numbers.next_in = 2;
            self.send_logon(interval.cast_unsigned(), true, None, now, out);
            return;
        }
        if self.state != State::Active {
            if seq == self.numbers.next_in {
                self.numbers.next_in += 1;
            }
            return;
        }
        match seq.cmp(&self.numbers.next_in) {
            std::cmp::Ordering::Less if head.is_poss_dup => {
                out.event(Event::DuplicateIgnored { seq });
            }
            std::cmp::Ordering::Less => self.too_low(seq, now, out),
            std::cmp::Ordering::Equal => {
                self.numbers.next_in += 1;
                self.log_out(b"Already logged on", None, now, out);
            }
            std::cmp::Ordering::Greater => self.log_out(b"Already logged on", None, now, out),
        }
    }

    /// Takes the answer to the TestRequest before a reset: everything sent before has been received.
    pub(super) fn drained<O: Output>(&mut self, frame: &Frame<'_>, now: Now, out: &mut O) {
        let Resetting::Draining(id) = self.resetting else {
            return;
        };
        let is_answer = frame.get(tag::TEST_REQ_ID).and_then(unsigned) == Some(id);
        if is_answer && self.state == State::Active {
            self.restart_numbers(out);
            self.resetting = Resetting::Sent;
            let interval = self.heartbeat / SECOND;
            self.send_logon(interval.cast_unsigned(), true, None, now, out);
        }
    }

    /// Returns true if this side sends the first Logon.
    #[must_use]
    pub fn is_initiator(&self) -> bool {
        self.config.role == Role::Initiator
    }
}
