// SPDX-License-Identifier: Apache-2.0
//! Service of the peer's ResendRequests (`docs/spec/fix-gateway.md` §3.7).

use std::ops::RangeInclusive;

use super::emit::{Post, post, precision};
use super::inbound::Type;
use super::{DisconnectReason, Event, Now, Outbound, Output, Sent, Session, State, Stored};
use crate::dict::{Fault, RejectReason};
use crate::wire::{Frame, Framed, Framer, Resync, Writer, seal, tag, unsigned};

/// Resend in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replay {
    from: u64,
    /// Next message to look at.
    next: u64,
    /// Last message of the request.
    to: u64,
    /// First and last of the messages that were deferred meanwhile; they follow the request.
    held: Option<(u64, u64)>,
    /// First of a run of messages that a gap fill replaces.
    run: Option<u64>,
    started: i64,
}

impl Replay {
    /// Returns the number of the last message that is wanted without a break.
    fn last(&self) -> u64 {
        match self.held {
            Some((_, last)) if self.is_holding() => last,
            _ => self.to,
        }
    }

    /// Returns true if the request is served and held messages follow.
    const fn is_holding(&self) -> bool {
        self.next > self.to
    }
}

const MINUTE: i64 = 60_000_000_000;
/// Number of equal requests in a minute after which the peer is in a loop.
const MAX_EQUAL: u32 = 5;

impl Session {
    /// Returns the numbers of the stored messages that a resend needs, in order; pass each to
    /// [`stored`](Self::stored).
    #[must_use]
    pub fn wanted(&self) -> Option<RangeInclusive<u64>> {
        self.replay.map(|replay| replay.next..=replay.last())
    }

    /// Returns true if a new message has to wait for the resend in progress, which then includes it.
    pub(super) fn hold(&mut self, seq: u64, now: Now) -> bool {
        let hold = self.config.resend_hold;
        match &mut self.replay {
            Some(replay) if now.monotonic - replay.started <= hold => {
                let first = replay.held.map_or(seq, |(first, _)| first);
                replay.held = Some((first, seq));
                true
            }
            _ => false,
        }
    }

    /// Takes a ResendRequest.
    pub(super) fn serve<O: Output>(&mut self, frame: &Frame<'_>, seq: u64, now: Now, out: &mut O) {
        let mut bounds = [0; 2];
        for (bound, tag) in bounds.iter_mut().zip([tag::BEGIN_SEQ_NO, tag::END_SEQ_NO]) {
            let Some(value) = frame.get(tag) else {
                let fault = Fault::new(RejectReason::RequiredTagMissing, tag, 0);
                self.reject(frame, seq, fault, now, out);
                return;
            };
            let Some(number) = unsigned(value) else {
                let fault = Fault::new(RejectReason::IncorrectFormat, tag, 0);
                self.reject(frame, seq, fault, now, out);
                return;
            };
            *bound = number;
        }
        let [from, end] = bounds;
        let last = self.numbers.next_out - 1;
        let is_open = end == 0 || (end == 999_999 && self.version <= (4, 2));
        let to = if is_open { last } else { end.min(last) };
        if from == 0 || from > to {
            let fault = Fault::new(RejectReason::ValueOutOfRange, tag::BEGIN_SEQ_NO, 0);
            self.reject(frame, seq, fault, now, out);
            return;
        }
        if self.is_loop(from, end, now) {
            let reason = DisconnectReason::ResendLoop;
            self.log_out_now(b"Too many equal ResendRequests", None, reason, now, out);
            return;
        }
        self.replay_from(from, to, now, out);
    }

    /// Counts equal requests that come again after they were served.
    fn is_loop(&mut self, from: u64, end: u64, now: Now) -> bool {
        match &mut self.last_request {
            Some((last_from, last_end, since, count))
                if (*last_from, *last_end) == (from, end) && now.monotonic - *since < MINUTE =>
            {
                *count += 1;
                *count > MAX_EQUAL
            }
            last => {
                *last = Some((from, end, now.monotonic, 1));
                false
            }
        }
    }

    /// Starts a resend; one in progress goes on or begins again.
    pub(super) fn replay_from<O: Output>(&mut self, from: u64, to: u64, now: Now, out: &mut O) {
        match self.replay {
            // What is still to come includes it.
            Some(replay)
                if from >= replay.next
                    && to <= replay.to
                    && replay.run.is_none_or(|run| from >= run) => {}
            Some(replay) => {
                self.flush(replay.next, now, out);
                // What has been sent of the held messages, or is in the request, is not held any more.
                let held = replay.held.and_then(|(first, last)| {
                    let sent = if replay.next > replay.to {
                        replay.next - 1
                    } else {
                        0
                    };
                    let first = first.max(sent + 1).max(to + 1);
                    (first <= last).then_some((first, last))
                });
                self.replay = Some(Replay {
                    from,
                    next: from,
                    to,
                    held,
                    run: None,
                    started: replay.started,
                });
            }
            None => {
                self.replay = Some(Replay {
                    from,
                    next: from,
                    to,
                    held: None,
                    run: None,
                    started: now.monotonic,
                });
            }
        }
    }

    /// Takes the stored message with the first number of [`wanted`](Self::wanted); others are ignored.
    pub fn stored<O: Output>(&mut self, seq: u64, stored: Stored<'_>, now: Now, out: &mut O) {
        let Some(replay) = self.replay.filter(|replay| replay.next == seq) else {
            return;
        };
        let frame = match stored {
            Stored::Message(bytes) => whole(bytes),
            Stored::Skip => None,
        };
        let frame = frame.filter(|frame| match Type::of(frame.msg_type()) {
            Type::Application => true,
            Type::Reject => self.config.resend_rejects && !self.is_quickfix(),
            _ => false,
        });
        if let Some(frame) = frame {
            self.flush(seq, now, out);
            if replay.is_holding() {
                let is_admin = Type::of(frame.msg_type()) != Type::Application;
                out.send(Outbound {
                    seq,
                    epoch: self.numbers.epoch,
                    bytes: frame.bytes(),
                    sent: Sent::Held,
                    is_admin,
                });
            } else {
                self.repeat(&frame, seq, now, out);
            }
            self.last_sent = now.monotonic;
        } else if let Some(replay) = self.replay.as_mut().filter(|replay| !replay.is_holding()) {
            replay.run.get_or_insert(seq);
        }
        if seq == replay.to {
            self.flush(seq + 1, now, out);
            let (from, to) = (replay.from, replay.to);
            out.event(Event::ResendServed { from, to });
        }
        let Some(replay) = &mut self.replay else {
            return;
        };
        replay.next = seq + 1;
        if replay.next > replay.to {
            match replay.held {
                Some((first, last)) if replay.next <= last => replay.next = replay.next.max(first),
                _ => self.replay = None,
            }
        }
    }

    /// Sends a gap fill for the open run, which ends before `next`.
    fn flush<O: Output>(&mut self, next: u64, now: Now, out: &mut O) {
        let Some(run) = self.replay.as_mut().and_then(|replay| replay.run.take()) else {
            return;
        };
        if self.state == State::Idle {
            return;
        }
        let letter = Post {
            seq: run,
            msg_type: b"4",
            sent: Sent::Replayed,
            is_admin: true,
            room: 0,
        };
        let digits = precision(&self.config);
        let epoch = self.numbers.epoch;
        post(
            &self.config,
            &mut self.buffer,
            epoch,
            now,
            &letter,
            out,
            |writer| {
                writer.boolean(tag::POSS_DUP_FLAG, true);
                writer.timestamp(tag::ORIG_SENDING_TIME, now.wall, digits);
                writer.boolean(tag::GAP_FILL_FLAG, true);
                writer.unsigned(tag::NEW_SEQ_NO, next);
            },
        );
        self.last_sent = now.monotonic;
    }

    /// Sends a message again: the same bytes but PossDupFlag, SendingTime, OrigSendingTime, and both ends of the frame.
    fn repeat<O: Output>(&mut self, frame: &Frame<'_>, seq: u64, now: Now, out: &mut O) {
        let size = frame.bytes().len() + 128;
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        let digits = precision(&self.config);
        let written = seal(&mut self.buffer, frame.begin_string(), |writer| {
            again(frame, now, digits, writer);
        });
        if let Ok(bytes) = written {
            out.send(Outbound {
                seq,
                epoch: self.numbers.epoch,
                bytes,
                sent: Sent::Replayed,
                is_admin: Type::of(frame.msg_type()) != Type::Application,
            });
        }
    }
}

fn again(frame: &Frame<'_>, now: Now, digits: crate::wire::Precision, writer: &mut Writer<'_>) {
    let mut fields = frame.fields();
    while let Some(field) = fields.next() {
        // What was recorded was encoded by this session; anything else is copied as it is.
        let Ok(field) = field else {
            continue;
        };
        if field.tag != tag::SENDING_TIME {
            writer.text(field.tag, field.value);
            continue;
        }
        writer.boolean(tag::POSS_DUP_FLAG, true);
        writer.timestamp(tag::SENDING_TIME, now.wall, digits);
        writer.text(tag::ORIG_SENDING_TIME, field.value);
        // The fields behind SendingTime keep their bytes.
        let rest = frame.bytes().get(fields.position()..frame.body_end());
        writer.encoded(rest.unwrap_or_default());
        return;
    }
}

/// Returns the frame of stored bytes, if they are one.
fn whole(bytes: &[u8]) -> Option<Frame<'_>> {
    match Framer::new(usize::MAX, Resync::Length).next(bytes) {
        Framed::Message(frame) if frame.bytes().len() == bytes.len() => Some(frame),
        _ => None,
    }
}
