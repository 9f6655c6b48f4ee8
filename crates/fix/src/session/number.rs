// SPDX-License-Identifier: Apache-2.0
//! Messages of the peer on a session that is logged on: checks in their order, and the rules for numbers
//! (`docs/spec/fix-gateway.md` §3.5, §3.7).

use super::inbound::{Head, Type};
use super::machine::{Gap, Resetting};
use super::{
    DisconnectReason, Event, Inbound, MissingOrig, Now, Output, Session, State, ThrottleAction,
};
use crate::dict::{Fault, RejectReason, Validation};
use crate::wire::{Frame, Framed, Timestamp, tag, unsigned};

/// Defect without a tag.
const fn fault(reason: RejectReason) -> Fault {
    Fault {
        reason,
        tag: None,
        at: 0,
    }
}

/// Result of the checks of SendingTime and OrigSendingTime.
enum Times {
    Good,
    /// The message is rejected.
    Reject(Fault),
    /// The message is rejected and the session ends.
    Leave(Fault),
}

impl Session {
    /// Takes a message of a peer that is logged on.
    pub(super) fn in_session<O: Output>(&mut self, frame: Frame<'_>, now: Now, out: &mut O) {
        let head = Head::read(&frame);
        let kind = Type::of(frame.msg_type());
        self.last_received = now.monotonic;
        self.is_testing = false;
        if frame.begin_string() != self.config.begin_string.as_bytes() {
            self.log_out(b"Incorrect BeginString", None, now, out);
            return;
        }
        let Some(seq) = head.number() else {
            let reason = DisconnectReason::NoSequence;
            self.log_out_now(
                b"MsgSeqNum is missing or not a number",
                None,
                reason,
                now,
                out,
            );
            return;
        };
        let missing = [
            (tag::SENDER_COMP_ID, head.sender.is_none()),
            (tag::TARGET_COMP_ID, head.target.is_none()),
            (tag::SENDING_TIME, head.sending_time.is_none()),
        ];
        if let Some((tag, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            let fault = Fault::new(RejectReason::RequiredTagMissing, tag, 0);
            self.reject_and_consume(&frame, seq, fault, now, out);
            return;
        }
        if self.wrong_id(&head) {
            self.reject_and_consume(&frame, seq, fault(RejectReason::CompId), now, out);
            self.log_out(b"Incorrect SenderCompID or TargetCompID", None, now, out);
            return;
        }
        match self.check_times(&head, kind, now) {
            Times::Good => {}
            Times::Reject(fault) => {
                self.reject_and_consume(&frame, seq, fault, now, out);
                return;
            }
            Times::Leave(fault) => {
                self.reject_and_consume(&frame, seq, fault, now, out);
                self.log_out(b"SendingTime accuracy problem", None, now, out);
                return;
            }
        }
        if kind == Type::Logon {
            self.logon_in_session(&frame, &head, seq, now, out);
            return;
        }
        if self.resetting == Resetting::Sent {
            // A message of the numbers before the reset.
            if kind == Type::Logout {
                self.peer_logged_out(now, out);
            } else {
                out.event(Event::DuplicateIgnored { seq });
            }
            return;
        }
        let is_reset = kind == Type::SequenceReset && frame.get(tag::GAP_FILL_FLAG) != Some(b"Y");
        if is_reset {
            self.sequence_reset(&frame, seq, now, out);
        } else if seq == self.numbers.next_in {
            if self.tolerated.is_some_and(|(_, to)| seq > to) {
                self.tolerated = None;
            }
            self.take(&frame, &head, kind, seq, now, out);
            self.drain(now, out);
        } else if seq < self.numbers.next_in {
            self.low(&frame, &head, kind, seq, now, out);
        } else {
            self.high(&frame, kind, seq, now, out);
        }
    }

    pub(super) fn check_window(&self, time: Timestamp, now: Now) -> bool {
        let window = self.config.sending_time_window;
        window == 0 || time.nanos().abs_diff(now.wall.nanos()) <= window.unsigned_abs()
    }

    fn check_times(&self, head: &Head<'_>, kind: Type, now: Now) -> Times {
        let Some(time) = head.time() else {
            return Times::Reject(Fault::new(
                RejectReason::IncorrectFormat,
                tag::SENDING_TIME,
                0,
            ));
        };
        if !self.check_window(time, now) {
            return Times::Leave(fault(RejectReason::SendingTime));
        }
        if !head.is_poss_dup || (kind == Type::SequenceReset && self.is_quickfix()) {
            return Times::Good;
        }
        let Some(orig) = head.orig_sending_time else {
            let is_allowed = match self.config.allow_missing_orig {
                MissingOrig::None => false,
                MissingOrig::Admin => kind != Type::Application,
                MissingOrig::All => true,
            };
            let reason = RejectReason::RequiredTagMissing;
            return if is_allowed {
                Times::Good
            } else {
                Times::Reject(Fault::new(reason, tag::ORIG_SENDING_TIME, 0))
            };
        };
        match Timestamp::parse(orig) {
            None => {
                let reason = RejectReason::IncorrectFormat;
                Times::Reject(Fault::new(reason, tag::ORIG_SENDING_TIME, 0))
            }
            Some(orig) if orig > time => Times::Leave(fault(RejectReason::SendingTime)),
            Some(_) => Times::Good,
        }
    }

    /// Rejects a message; its number is used up if it is the expected one.
    fn reject_and_consume<O: Output>(
        &mut self,
        frame: &Frame<'_>,
        seq: u64,
        fault: Fault,
        now: Now,
        out: &mut O,
    ) {
        let is_next = seq == self.numbers.next_in;
        if is_next {
            self.numbers.next_in += 1;
        }
        self.reject(frame, seq, fault, now, out);
        if is_next {
            self.drain(now, out);
        }
    }

    /// Takes a message with the expected number.
    fn take<O: Output>(
        &mut self,
        frame: &Frame<'_>,
        head: &Head<'_>,
        kind: Type,
        seq: u64,
        now: Now,
        out: &mut O,
    ) {
        self.numbers.next_in = seq + 1;
        if let Err(fault) = self.check(frame, kind) {
            self.reject(frame, seq, fault, now, out);
            return;
        }
        match kind {
            Type::Heartbeat => self.drained(frame, now, out),
            Type::TestRequest => {
                if self.state == State::Active {
                    self.send_heartbeat(frame.get(tag::TEST_REQ_ID), now, out);
                }
            }
            Type::ResendRequest => self.serve(frame, seq, now, out),
            Type::Reject => Self::reject_received(frame, out),
            Type::SequenceReset => self.gap_fill(frame, seq, now, out),
            Type::Logout => self.peer_logged_out(now, out),
            // A Logon is handled before its number is looked at.
            Type::Logon => {}
            Type::Application => self.application(frame, head, seq, now, out),
        }
    }

    /// Checks type, structure and values.
    pub(super) fn check(&mut self, frame: &Frame<'_>, kind: Type) -> Result<(), Fault> {
        if !frame.msg_type().iter().all(u8::is_ascii_alphanumeric) {
            return Err(fault(RejectReason::InvalidMsgType));
        }
        let required = match kind {
            Type::TestRequest => &[tag::TEST_REQ_ID][..],
            Type::ResendRequest => &[tag::BEGIN_SEQ_NO, tag::END_SEQ_NO],
            Type::SequenceReset => &[tag::NEW_SEQ_NO],
            _ => &[],
        };
        if let Some(dictionary) = &self.config.dictionary {
            let checked = self.validator.validate(dictionary, frame);
            match checked {
                Err(found) if found.reason == RejectReason::InvalidMsgType => {
                    return Err(fault(RejectReason::InvalidMsgType));
                }
                other => other?,
            }
        } else if self.config.checks.level > Validation::None
            && let Some(Err(found)) = frame.fields().find(Result::is_err)
        {
            return Err(found.into());
        }
        let missing = required.iter().find(|tag| frame.get(**tag).is_none());
        match missing {
            Some(tag) => Err(Fault::new(RejectReason::RequiredTagMissing, *tag, 0)),
            None => Ok(()),
        }
    }

    fn reject_received<O: Output>(frame: &Frame<'_>, out: &mut O) {
        let seq = frame.get(tag::REF_SEQ_NUM).and_then(unsigned).unwrap_or(0);
        let text = frame.get(tag::TEXT).unwrap_or_default();
        out.event(Event::RejectReceived { seq, text });
    }

    fn application<O: Output>(
        &mut self,
        frame: &Frame<'_>,
        head: &Head<'_>,
        seq: u64,
        now: Now,
        out: &mut O,
    ) {
        if self.state == State::LogoutReceived {
            return;
        }
        let msg_type = frame.msg_type();
        let supported = &self.config.supported;
        if !supported.is_empty() && supported.iter().all(|name| name.as_bytes() != msg_type) {
            self.send_business_reject(frame, seq, 3, b"Unsupported Message Type", now, out);
            return;
        }
        if self.config.throttle_action != ThrottleAction::Delay
            && let Some(Err(_)) = self
                .inbound_bucket
                .as_mut()
                .map(|bucket| bucket.take(now.monotonic))
        {
            out.event(Event::Throttled { seq });
            let text = b"Throttle limit exceeded";
            if self.config.throttle_action == ThrottleAction::Logout {
                self.log_out(text, None, now, out);
            } else {
                self.send_business_reject(frame, seq, 8, text, now, out);
            }
            return;
        }
        if msg_type == b"j" {
            Self::reject_received(frame, out);
        }
        out.deliver(Inbound {
            frame: *frame,
            seq,
            epoch: self.numbers.epoch,
            is_poss_dup: head.is_poss_dup,
            is_poss_resend: head.is_poss_resend,
        });
    }

    fn gap_fill<O: Output>(&mut self, frame: &Frame<'_>, seq: u64, now: Now, out: &mut O) {
        match frame.get(tag::NEW_SEQ_NO).and_then(unsigned) {
            Some(next) if next > seq => self.numbers.next_in = next,
            Some(_) => {
                let fault = Fault::new(RejectReason::ValueOutOfRange, tag::NEW_SEQ_NO, 0);
                self.reject(frame, seq, fault, now, out);
            }
            None => {
                let fault = Fault::new(RejectReason::IncorrectFormat, tag::NEW_SEQ_NO, 0);
                self.reject(frame, seq, fault, now, out);
            }
        }
    }

    /// Takes a SequenceReset without GapFillFlag: its own number does not matter.
    fn sequence_reset<O: Output>(&mut self, frame: &Frame<'_>, seq: u64, now: Now, out: &mut O) {
        if let Err(found) = self.check(frame, Type::SequenceReset) {
            self.reject(frame, seq, found, now, out);
            return;
        }
        let Some(next) = frame.get(tag::NEW_SEQ_NO).and_then(unsigned) else {
            let fault = Fault::new(RejectReason::IncorrectFormat, tag::NEW_SEQ_NO, 0);
            self.reject(frame, seq, fault, now, out);
            return;
        };
        if next < self.numbers.next_in {
            self.reject(frame, seq, fault(RejectReason::ValueOutOfRange), now, out);
            return;
        }
        if self.gap.is_some() && next > self.numbers.next_in {
            let (from, to) = (self.numbers.next_in, next - 1);
            out.event(Event::InboundLost { from, to });
        }
        self.numbers.next_in = next;
        self.drain(now, out);
    }

    /// Takes a message with a number that has been used.
    fn low<O: Output>(
        &mut self,
        frame: &Frame<'_>,
        head: &Head<'_>,
        kind: Type,
        seq: u64,
        now: Now,
        out: &mut O,
    ) {
        let is_tolerated = self
            .tolerated
            .is_some_and(|(from, to)| (from..=to).contains(&seq));
        if head.is_poss_dup || is_tolerated {
            out.event(Event::DuplicateIgnored { seq });
            return;
        }
        if self.is_quickfix() {
            match kind {
                Type::ResendRequest => {
                    self.serve(frame, seq, now, out);
                    return;
                }
                Type::Logout => {
                    self.peer_logged_out(now, out);
                    return;
                }
                _ => {}
            }
        }
        self.too_low(seq, now, out);
    }

    pub(super) fn too_low<O: Output>(&mut self, received: u64, now: Now, out: &mut O) {
        let expected = self.numbers.next_in;
        let text = format!("MsgSeqNum too low, expecting {expected} but received {received}");
        out.event(Event::SequenceDispute { expected, received });
        self.log_out_now(
            text.as_bytes(),
            Some(9),
            DisconnectReason::SequenceTooLow,
            now,
            out,
        );
    }

    /// Takes a message before its turn.
    fn high<O: Output>(&mut self, frame: &Frame<'_>, kind: Type, seq: u64, now: Now, out: &mut O) {
        match kind {
            Type::ResendRequest => {
                // Served before our own request: else both sides would wait.
                if !self.handled.contains(&seq) {
                    self.handle_early(seq);
                    self.serve(frame, seq, now, out);
                }
            }
            Type::Logout if self.is_quickfix() => {
                self.peer_logged_out(now, out);
                return;
            }
            Type::Logout => {
                let by = now.monotonic.saturating_add(self.config.logout_timeout);
                self.logout_by.get_or_insert(by);
                self.keep_early(frame, seq, out);
            }
            _ => self.keep_early(frame, seq, out),
        }
        if self.state != State::Idle {
            self.missing(seq, now, out);
        }
    }

    /// Remembers a number whose message has been handled before its turn.
    pub(super) fn handle_early(&mut self, seq: u64) {
        // Bounded: a peer that sends more than this before it fills the gap repeats itself.
        if self.handled.len() < 64 {
            self.handled.push(seq);
        }
    }

    fn keep_early<O: Output>(&mut self, frame: &Frame<'_>, seq: u64, out: &mut O) {
        let bytes = frame.bytes();
        let is_full = self.early.len() >= self.config.early_messages
            || self.early_bytes + bytes.len() > self.config.early_bytes;
        if self.early.contains_key(&seq) {
            return;
        }
        if is_full {
            out.event(Event::EarlyDropped { seq });
            return;
        }
        self.early_bytes += bytes.len();
        self.early.insert(seq, bytes.into());
    }

    /// Notes that all messages from the expected one up to before `seen` are missing, and asks for them once.
    pub(super) fn missing<O: Output>(&mut self, seen: u64, now: Now, out: &mut O) {
        if let Some(gap) = &mut self.gap {
            gap.to = gap.to.max(seen);
            if let Some(tolerated) = &mut self.tolerated {
                tolerated.1 = gap.to;
            }
            return;
        }
        let from = self.numbers.next_in;
        out.event(Event::GapDetected { from, seen });
        self.gap = Some(Gap {
            to: seen,
            asked_end: 0,
            at: now.monotonic,
            next_in: from,
            tries: 0,
        });
        self.ask(now, out);
    }

    /// Sends a ResendRequest for the open gap.
    pub(super) fn ask<O: Output>(&mut self, now: Now, out: &mut O) {
        let from = self.numbers.next_in;
        let chunk = self.config.resend_chunk;
        let Some(gap) = &mut self.gap else {
            return;
        };
        gap.asked_end = if chunk == 0 {
            0
        } else {
            (from + chunk - 1).min(gap.to)
        };
        gap.at = now.monotonic;
        gap.next_in = from;
        gap.tries += 1;
        self.tolerated = Some((from, gap.to));
        let end = match gap.asked_end {
            0 if self.version < (4, 2) => 999_999,
            end => end,
        };
        self.admin(b"2", 0, now, out, |writer| {
            writer.unsigned(tag::BEGIN_SEQ_NO, from);
            writer.unsigned(tag::END_SEQ_NO, end);
        });
    }

    /// Handles early messages whose turn has come, and notes the progress of the gap.
    pub(super) fn drain<O: Output>(&mut self, now: Now, out: &mut O) {
        while self.state != State::Idle {
            let next = self.numbers.next_in;
            while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() < next) {
                self.early_bytes -= entry.remove().len();
            }
            if self.handled.contains(&next) {
                self.numbers.next_in += 1;
                continue;
            }
            let Some(bytes) = self.early.remove(&next) else {
                break;
            };
            self.early_bytes -= bytes.len();
            // The bytes were one frame when they were kept.
            if let Framed::Message(frame) = self.framer.next(&bytes) {
                let head = Head::read(&frame);
                let kind = Type::of(frame.msg_type());
                self.take(&frame, &head, kind, next, now, out);
            }
        }
        let next = self.numbers.next_in;
        self.handled.retain(|number| *number >= next);
        let Some(gap) = &mut self.gap else {
            return;
        };
        if next > gap.to {
            self.gap = None;
            out.event(Event::GapFilled { next_in: next });
        } else if next != gap.next_in {
            gap.next_in = next;
            gap.at = now.monotonic;
            gap.tries = 1;
            if gap.asked_end != 0 && next > gap.asked_end {
                gap.tries = 0;
                self.ask(now, out);
            }
        }
    }

    /// Takes the peer's Logout.
    pub(super) fn peer_logged_out<O: Output>(&mut self, now: Now, out: &mut O) {
        match self.state {
            State::LogoutSent => self.close(DisconnectReason::LoggedOut, now, out),
            State::Active => {
                self.send_logout(b"", None, now, out);
                self.enter(State::LogoutReceived, now);
                if self.is_quickfix() {
                    self.close(DisconnectReason::LoggedOut, now, out);
                }
            }
            _ => {}
        }
    }
}
