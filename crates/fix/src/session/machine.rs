// SPDX-License-Identifier: Apache-2.0
//! The session machine: its state, and the inputs that are not messages of the peer.

use std::collections::BTreeMap;

use super::emit::{Post, post};
use super::inbound::{Head, Type};
use super::resend::Replay;
use super::throttle::Bucket;
use super::{
    Application, CancelOn, Config, ConfigError, DisconnectReason, Event, Now, Numbers, Output,
    Profile, Role, SendError, Sent, ThrottleAction,
};
use crate::dict::Validator;
use crate::wire::{Fields, Framed, Framer, Garbled, SOH, tag};

/// State of the connection of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Not connected.
    Idle,
    /// Connected, waiting for a Logon (acceptor).
    Connected,
    /// The Logon waits for authentication (acceptor).
    Authenticating,
    /// Connected, a Logon has been sent (initiator).
    LogonSent,
    /// Logged on.
    Active,
    /// A Logout has been sent, its answer is awaited.
    LogoutSent,
    /// A Logout has been answered; the peer closes.
    LogoutReceived,
}

/// Missing messages of the peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap {
    /// Highest number seen.
    pub(super) to: u64,
    /// Last number asked for; 0 for all.
    pub(super) asked_end: u64,
    /// Time of the request, or of the last progress.
    pub(super) at: i64,
    /// Next number at that time.
    pub(super) next_in: u64,
    /// Number of requests without progress.
    pub(super) tries: u32,
}

/// Progress of a reset that this side asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resetting {
    No,
    /// A TestRequest is out: everything sent before its answer has been received.
    Draining(u64),
    /// A Logon with ResetSeqNumFlag is out.
    Sent,
}

/// Largest incomplete message before a Logon.
const MAX_BEFORE_LOGON: usize = 4096;
const MINUTE: i64 = 60_000_000_000;

/// Session layer of one session, with acceptor or initiator role.
///
/// Inputs are [`connected`](Self::connected), [`receive`](Self::receive), [`disconnected`](Self::disconnected),
/// [`authenticated`](Self::authenticated), [`send`](Self::send), [`logout`](Self::logout), [`reset`](Self::reset),
/// [`disconnect`](Self::disconnect), [`stored`](Self::stored) and [`tick`](Self::tick), each with the time and an
/// [`Output`] that takes the results before the input returns. After each input, messages that a resend needs are in
/// [`wanted`](Self::wanted), and [`next_deadline`](Self::next_deadline) is the time for the next `tick`. Inputs may come
/// in any order; one that does not fit the state is ignored or is an error. [`numbers`](Self::numbers) is what has to
/// survive a restart.
#[derive(Debug)]
pub struct Session {
    pub(super) config: Config,
    pub(super) version: (u8, u8),
    pub(super) numbers: Numbers,
    pub(super) state: State,
    /// Monotonic time of the last change of `state`.
    pub(super) since: i64,
    pub(super) framer: Framer,
    pub(super) validator: Validator,
    pub(super) buffer: Vec<u8>,
    pub(super) heartbeat: i64,
    pub(super) last_sent: i64,
    pub(super) last_received: i64,
    /// A TestRequest is out since the last message.
    pub(super) is_testing: bool,
    /// Earliest time to give up on a silent peer, after a late tick.
    pub(super) dead_after: i64,
    pub(super) tests: u64,
    pub(super) partial_since: Option<i64>,
    pub(super) garbled: (i64, u32),
    pub(super) gap: Option<Gap>,
    pub(super) early: BTreeMap<u64, Box<[u8]>>,
    pub(super) early_bytes: usize,
    /// Numbers of early messages that were handled at once.
    pub(super) handled: Vec<u64>,
    /// Numbers asked for, which the peer may send again without PossDupFlag.
    pub(super) tolerated: Option<(u64, u64)>,
    pub(super) logout_by: Option<i64>,
    pub(super) replay: Option<Replay>,
    pub(super) last_request: Option<(u64, u64, i64, u32)>,
    pub(super) resetting: Resetting,
    pub(super) logon: Vec<u8>,
    pub(super) peer_limit: Option<usize>,
    pub(super) was_active: bool,
    pub(super) cancel_at: Option<i64>,
    pub(super) inbound_bucket: Option<Bucket>,
    pub(super) outbound_bucket: Option<Bucket>,
    pub(super) delayed_until: Option<i64>,
}

impl Session {
    /// Returns a session that is not connected.
    ///
    /// # Errors
    ///
    /// A configuration that cannot be used.
    pub fn new(config: Config, numbers: Numbers) -> Result<Self, ConfigError> {
        config.check()?;
        let version = config.version();
        let framer = Framer::new(config.max_message_size, config.resync);
        let validator = Validator::new(config.checks);
        Ok(Self {
            version,
            numbers: Numbers {
                next_in: numbers.next_in.max(1),
                next_out: numbers.next_out.max(1),
                ..numbers
            },
            state: State::Idle,
            since: 0,
            framer,
            validator,
            buffer: Vec::new(),
            heartbeat: 0,
            last_sent: 0,
            last_received: 0,
            is_testing: false,
            dead_after: i64::MIN,
            tests: 0,
            partial_since: None,
            garbled: (0, 0),
            gap: None,
            early: BTreeMap::new(),
            early_bytes: 0,
            handled: Vec::new(),
            tolerated: None,
            logout_by: None,
            replay: None,
            last_request: None,
            resetting: Resetting::No,
            logon: Vec::new(),
            peer_limit: None,
            was_active: false,
            cancel_at: None,
            inbound_bucket: None,
            outbound_bucket: None,
            delayed_until: None,
            config,
        })
    }

    /// Returns the configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the numbers.
    #[must_use]
    pub const fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Returns the state of the connection.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Returns true if messages of the peer are missing and have been asked for.
    #[must_use]
    pub const fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns the number of bytes kept for messages that arrived before their turn.
    #[must_use]
    pub const fn early_bytes(&self) -> usize {
        self.early_bytes
    }

    pub(super) fn enter(&mut self, state: State, now: Now) {
        self.state = state;
        self.since = now.monotonic;
    }

    /// Takes a new connection. An initiator sends its Logon.
    pub fn connected<O: Output>(&mut self, now: Now, out: &mut O) {
        if self.state != State::Idle {
            return;
        }
        self.last_sent = now.monotonic;
        self.last_received = now.monotonic;
        self.heartbeat = 0;
        self.is_testing = false;
        self.dead_after = i64::MIN;
        self.garbled = (now.monotonic, 0);
        self.was_active = false;
        let full = |limit| Bucket::full(limit, now.monotonic);
        self.inbound_bucket = self.config.throttle.map(full);
        self.outbound_bucket = self.config.send_throttle.map(full);
        self.enter(State::Connected, now);
        if self.config.schedule.period(now.wall).is_none() {
            self.close(DisconnectReason::OutOfSchedule, now, out);
            return;
        }
        self.follow_schedule(now, out);
        if self.config.role == Role::Initiator {
            self.initiate(now, out);
        }
    }

    /// Takes the end of the connection by the peer or the network.
    pub fn disconnected<O: Output>(&mut self, now: Now, out: &mut O) {
        if self.state == State::Idle {
            return;
        }
        let is_logged_out = self.state == State::LogoutReceived;
        let reason = if is_logged_out {
            DisconnectReason::LoggedOut
        } else {
            DisconnectReason::PeerClosed
        };
        self.ended(reason, now, out);
    }

    /// Closes the connection without a Logout.
    pub fn disconnect<O: Output>(&mut self, now: Now, out: &mut O) {
        if self.state != State::Idle {
            self.close(DisconnectReason::Requested, now, out);
        }
    }

    /// Sends a Logout; the connection ends with its answer. Without a logged-on peer it ends at once.
    pub fn logout<O: Output>(&mut self, text: &str, now: Now, out: &mut O) {
        match self.state {
            State::Active => self.log_out(text.as_bytes(), None, now, out),
            State::Connected | State::Authenticating | State::LogonSent => {
                self.close(DisconnectReason::Requested, now, out);
            }
            State::Idle | State::LogoutSent | State::LogoutReceived => {}
        }
    }

    /// Makes both numbers start at 1: at once if not connected, else by a Logon with ResetSeqNumFlag after a TestRequest
    /// has been answered. Returns false if the state does not allow it, or the version has no such flag.
    pub fn reset<O: Output>(&mut self, now: Now, out: &mut O) -> bool {
        match self.state {
            State::Idle => {
                self.restart_numbers(out);
                true
            }
            State::Active if self.resetting == Resetting::No && self.version >= (4, 1) => {
                self.tests += 1;
                self.resetting = Resetting::Draining(self.tests);
                self.send_test(now, out);
                true
            }
            _ => false,
        }
    }

    pub(super) fn restart_numbers<O: Output>(&mut self, out: &mut O) {
        self.numbers.next_in = 1;
        self.numbers.next_out = 1;
        self.numbers.epoch = self.numbers.epoch.wrapping_add(1);
        self.forget_gap();
        self.replay = None;
        self.last_request = None;
        let epoch = self.numbers.epoch;
        out.event(Event::Reset { epoch });
    }

    pub(super) fn forget_gap(&mut self) {
        self.gap = None;
        self.early.clear();
        self.early_bytes = 0;
        self.handled.clear();
        self.tolerated = None;
        self.logout_by = None;
    }

    /// Closes the connection.
    pub(super) fn close<O: Output>(&mut self, reason: DisconnectReason, now: Now, out: &mut O) {
        out.disconnect(reason);
        self.ended(reason, now, out);
    }

    fn ended<O: Output>(&mut self, reason: DisconnectReason, now: Now, out: &mut O) {
        self.enter(State::Idle, now);
        self.forget_gap();
        self.replay = None;
        self.last_request = None;
        self.resetting = Resetting::No;
        self.partial_since = None;
        self.delayed_until = None;
        self.peer_limit = None;
        self.logon.clear();
        out.event(Event::Disconnected { reason });
        if !self.was_active {
            return;
        }
        self.was_active = false;
        let is_orderly = matches!(
            reason,
            DisconnectReason::LoggedOut | DisconnectReason::LogoutTimeout
        );
        let (resets, cancels) = if is_orderly {
            let cancels = matches!(self.config.cancel_on, CancelOn::Logout | CancelOn::Both);
            (self.config.reset_on_logout, cancels)
        } else {
            let cancels = matches!(self.config.cancel_on, CancelOn::Disconnect | CancelOn::Both);
            (self.config.reset_on_disconnect, cancels)
        };
        if resets {
            self.restart_numbers(out);
        }
        if cancels {
            if self.config.cancel_grace <= 0 {
                out.event(Event::CancelOrders);
            } else {
                self.cancel_at = Some(now.monotonic.saturating_add(self.config.cancel_grace));
            }
        }
    }

    /// Takes received bytes that have not been consumed before, and returns the number of bytes consumed. The caller
    /// keeps the rest and passes it again, with what follows. Nothing is consumed while authentication is pending.
    pub fn receive<O: Output>(&mut self, bytes: &[u8], now: Now, out: &mut O) -> usize {
        let mut consumed = 0;
        self.delayed_until = None;
        loop {
            match self.state {
                State::Idle => return bytes.len(),
                State::Authenticating => return consumed,
                _ => {}
            }
            let rest = &bytes[consumed..];
            match self.framer.next(rest) {
                Framed::Message(frame) => {
                    if self.is_delayed(frame.msg_type(), now) {
                        return consumed;
                    }
                    consumed += frame.bytes().len();
                    self.partial_since = None;
                    match self.state {
                        State::Connected => self.first(frame, now, out),
                        State::LogonSent => self.answer(frame, now, out),
                        _ => self.in_session(frame, now, out),
                    }
                }
                Framed::Garbled { reason, length } => {
                    consumed += length;
                    self.partial_since = None;
                    self.drop_garbled(reason, length, now, out);
                }
                Framed::Incomplete => {
                    let is_logging_on = matches!(self.state, State::Connected | State::LogonSent);
                    // The framer keeps a byte or two of what it drops; only a message begins with this one.
                    if rest.first() != Some(&b'8') {
                        self.partial_since = None;
                    } else if is_logging_on && rest.len() > MAX_BEFORE_LOGON {
                        self.close(DisconnectReason::InvalidLogon, now, out);
                    } else {
                        self.partial_since.get_or_insert(now.monotonic);
                    }
                    return consumed;
                }
            }
        }
    }

    /// Returns true if the limit of inbound messages delays this one.
    fn is_delayed(&mut self, msg_type: &[u8], now: Now) -> bool {
        let is_concerned = self.config.throttle_action == ThrottleAction::Delay
            && self.state == State::Active
            && Type::of(msg_type) == Type::Application;
        if !is_concerned {
            return false;
        }
        match self
            .inbound_bucket
            .as_mut()
            .map(|bucket| bucket.take(now.monotonic))
        {
            Some(Err(until)) => {
                self.delayed_until = Some(until);
                true
            }
            _ => false,
        }
    }

    fn drop_garbled<O: Output>(&mut self, reason: Garbled, length: usize, now: Now, out: &mut O) {
        out.event(Event::Garbled { reason, length });
        if self.state == State::Connected {
            self.close(DisconnectReason::InvalidLogon, now, out);
            return;
        }
        if let Garbled::TooLong { .. } = reason {
            if self.state == State::Active {
                self.send_logout(b"Message too long", None, now, out);
            }
            self.close(DisconnectReason::Garbled, now, out);
            return;
        }
        if now.monotonic - self.garbled.0 > MINUTE {
            self.garbled = (now.monotonic, 0);
        }
        self.garbled.1 += 1;
        let limit = match self.state {
            State::LogonSent => self.config.garbled_limit.min(3),
            _ => self.config.garbled_limit,
        };
        if self.garbled.1 > limit {
            self.close(DisconnectReason::Garbled, now, out);
        }
    }

    /// Numbers and sends a message of the application, and returns its number. A session that is not logged on numbers
    /// and records it; the peer asks for it after the next Logon.
    ///
    /// The encoded fields are taken as they are: an encoder that refuses delimiters in values has to make them.
    ///
    /// # Errors
    ///
    /// Nothing is numbered or sent then.
    pub fn send<O: Output>(
        &mut self,
        message: Application<'_>,
        now: Now,
        out: &mut O,
    ) -> Result<u64, SendError> {
        check_application(&message)?;
        let is_active = match self.state {
            State::LogoutSent | State::LogoutReceived => return Err(SendError::LoggingOut),
            State::Active if self.resetting != Resetting::No => return Err(SendError::Resetting),
            State::Active => true,
            _ => false,
        };
        let Application {
            msg_type,
            body,
            header,
        } = message;
        let names = self.config.sender.len() + self.config.target.len();
        // Tags, numbers and time of the header, both ends.
        let length = body.len() + header.len() + names + 128;
        let limit = self.config.max_message_size;
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        if let Some(limit) = self.peer_limit.filter(|limit| length > *limit) {
            return Err(SendError::TooLargeForPeer { length, limit });
        }
        if let Some(bucket) = self.outbound_bucket.as_mut().filter(|_| is_active)
            && let Err(until) = bucket.take(now.monotonic)
        {
            return Err(SendError::Throttled { until });
        }
        let seq = self.numbers.next_out;
        let is_held = self.hold(seq, now);
        let sent = if is_active && !is_held {
            Sent::New
        } else {
            Sent::Deferred
        };
        let letter = Post {
            seq,
            msg_type,
            sent,
            is_admin: false,
            room: body.len() + header.len(),
        };
        let is_sent = post(
            &self.config,
            &mut self.buffer,
            self.numbers.epoch,
            now,
            &letter,
            out,
            |writer| {
                writer.encoded(header);
                writer.encoded(body);
            },
        );
        if !is_sent {
            return Err(SendError::Invalid("a field cannot be encoded"));
        }
        self.numbers.next_out += 1;
        if sent == Sent::New {
            self.last_sent = now.monotonic;
        }
        Ok(seq)
    }

    /// Answers a delivered message by a BusinessMessageReject; a version without it gets a Reject.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn reject_business<O: Output>(
        &mut self,
        message: &super::Inbound<'_>,
        reason: u16,
        text: &str,
        now: Now,
        out: &mut O,
    ) -> Result<(), SendError> {
        if self.state != State::Active {
            return Err(SendError::LoggingOut);
        }
        self.send_business_reject(
            &message.frame,
            message.seq,
            reason,
            text.as_bytes(),
            now,
            out,
        );
        Ok(())
    }

    /// Returns true if the profile is that of QuickFIX.
    pub(super) fn is_quickfix(&self) -> bool {
        self.config.profile == Profile::Quickfix
    }

    /// Checks that a message is for this session. Returns the first wrong id.
    pub(super) fn wrong_id(&self, head: &Head<'_>) -> bool {
        head.sender != Some(self.config.target.as_bytes())
            || head.target != Some(self.config.sender.as_bytes())
    }
}

fn check_application(message: &Application<'_>) -> Result<(), SendError> {
    let is_type = (1..=4).contains(&message.msg_type.len())
        && message.msg_type.iter().all(u8::is_ascii_graphic);
    if !is_type || Type::of(message.msg_type) != Type::Application {
        return Err(SendError::Invalid(
            "MsgType is not one of an application message",
        ));
    }
    let is_ended = |fields: &[u8]| fields.last().is_none_or(|last| *last == SOH);
    if !is_ended(message.body) || !is_ended(message.header) {
        return Err(SendError::Invalid("header and body have to end with SOH"));
    }
    for field in Fields::new(message.header, 0, message.header.len()) {
        let is_own = |own: u32| {
            matches!(
                own,
                tag::BEGIN_STRING
                    | tag::BODY_LENGTH
                    | tag::CHECK_SUM
                    | tag::MSG_SEQ_NUM
                    | tag::MSG_TYPE
                    | tag::POSS_DUP_FLAG
                    | tag::SENDER_COMP_ID
                    | tag::SENDING_TIME
                    | tag::TARGET_COMP_ID
                    | tag::ORIG_SENDING_TIME
            )
        };
        match field {
            Ok(field) if !is_own(field.tag) => {}
            Ok(_) => {
                return Err(SendError::Invalid(
                    "the header has a field that the session writes",
                ));
            }
            Err(_) => return Err(SendError::Invalid("the header is not encoded properly")),
        }
    }
    Ok(())
}
