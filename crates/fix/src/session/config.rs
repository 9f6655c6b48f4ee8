// SPDX-License-Identifier: Apache-2.0
//! Configuration of a session.

use std::sync::Arc;

use thiserror::Error;

use crate::dict::{Checks, Dictionary};
use crate::session::Schedule;
use crate::wire::{Precision, Resync, SOH, Timestamp};

/// Time of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of a clock that never goes back. Timers use it.
    pub monotonic: i64,
    /// Time of day. Messages carry it.
    pub wall: Timestamp,
}

/// Side of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Waits for a Logon.
    Acceptor,
    /// Sends a Logon.
    Initiator,
}

/// Rules where the standard and QuickFIX differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The standard.
    #[default]
    Standard,
    /// QuickFIX: ResendRequest and Logout are accepted whatever their number; a Logout is answered at once, even if
    /// messages are missing, and the connection closed; Rejects are not sent again; a SequenceReset with PossDupFlag
    /// needs no OrigSendingTime.
    Quickfix,
}

/// Use of NextExpectedMsgSeqNum (789).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NextExpected {
    /// Neither sent nor read.
    Off,
    /// Honoured in the peer's Logon.
    #[default]
    Accept,
    /// Honoured and sent.
    Send,
}

/// Messages with PossDupFlag that may lack OrigSendingTime (122).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingOrig {
    /// None.
    #[default]
    None,
    /// Messages of the session layer.
    Admin,
    /// All.
    All,
}

/// Ends of a connection after which the orders of a session are cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CancelOn {
    /// None.
    #[default]
    None,
    /// An end without Logout.
    Disconnect,
    /// An end after a Logout.
    Logout,
    /// Every end.
    Both,
}

/// Treatment of application messages beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThrottleAction {
    /// A BusinessMessageReject answers them.
    #[default]
    Reject,
    /// A Logout ends the connection.
    Logout,
    /// They stay in the receive buffer until the limit allows them.
    Delay,
}

/// Limit of application messages: a token bucket that holds `messages` and fills in `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleLimit {
    /// Number of messages per window, and the largest burst.
    pub messages: u32,
    /// Nanoseconds.
    pub window: i64,
}

/// Numbers of a session, which outlive its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Next number expected from the peer.
    pub next_in: u64,
    /// Next number to send.
    pub next_out: u64,
    /// Number of resets so far.
    pub epoch: u32,
    /// Period of the schedule that the numbers belong to.
    pub period: Option<i64>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            next_in: 1,
            next_out: 1,
            epoch: 0,
            period: None,
        }
    }
}

const SECOND: i64 = 1_000_000_000;

/// Configuration. Times are nanoseconds where not stated otherwise.
#[derive(Debug, Clone)]
pub struct Config {
    /// Side.
    pub role: Role,
    /// BeginString: `FIX.4.0` to `FIX.4.4`, or `FIXT.1.1`.
    pub begin_string: String,
    /// SenderCompID of what we send.
    pub sender: String,
    /// TargetCompID of what we send.
    pub target: String,
    /// Rules where the standard and QuickFIX differ.
    pub profile: Profile,
    /// Dictionary that messages are checked by. Without one only the session layer's own rules are checked.
    pub dictionary: Option<Arc<Dictionary>>,
    /// Choice of checks.
    pub checks: Checks,
    /// Application messages that the application handles; others are answered by a BusinessMessageReject. Empty: all.
    pub supported: Vec<String>,
    /// DefaultApplVerID, for FIXT only.
    pub default_appl_ver_id: Option<String>,
    /// Fields that are added to each Logon, encoded, such as Username and Password.
    pub logon_fields: Vec<u8>,
    /// A Logon waits for [`Session::authenticated`](super::Session::authenticated).
    pub authenticate: bool,
    /// TestMessageIndicator that a Logon must have.
    pub test_session: bool,
    /// HeartBtInt of an initiator, in seconds.
    pub heartbeat_interval: u32,
    /// Smallest HeartBtInt that an acceptor accepts, in seconds.
    pub heartbeat_min: u32,
    /// Largest HeartBtInt that an acceptor accepts, in seconds.
    pub heartbeat_max: u32,
    /// Percentage of HeartBtInt without anything received after which a TestRequest is sent.
    pub test_percent: u32,
    /// Percentage of HeartBtInt without anything received after which the connection is closed.
    pub dead_percent: u32,
    /// Both numbers start at 1 with each Logon.
    pub reset_on_logon: bool,
    /// Both numbers start at 1 after a Logout.
    pub reset_on_logout: bool,
    /// Both numbers start at 1 after an end without Logout.
    pub reset_on_disconnect: bool,
    /// Use of NextExpectedMsgSeqNum.
    pub next_expected: NextExpected,
    /// Largest difference of SendingTime and now; 0 turns the check off.
    pub sending_time_window: i64,
    /// Messages with PossDupFlag that may lack OrigSendingTime.
    pub allow_missing_orig: MissingOrig,
    /// Digits of SendingTime; FIX 4.0 and 4.1 always write seconds.
    pub precision: Precision,
    /// Time from the connection to an answered Logon.
    pub logon_timeout: i64,
    /// Time from a Logout to its answer.
    pub logout_timeout: i64,
    /// Time for authentication.
    pub auth_timeout: i64,
    /// Longest ResendRequest; 0 asks for everything at once.
    pub resend_chunk: u64,
    /// Time without progress after which a ResendRequest is repeated.
    pub resend_timeout: i64,
    /// Time for which new messages wait for the end of a resend.
    pub resend_hold: i64,
    /// Rejects are sent again, as the standard allows.
    pub resend_rejects: bool,
    /// Number of messages kept that arrive before their turn.
    pub early_messages: usize,
    /// Bytes of messages kept that arrive before their turn.
    pub early_bytes: usize,
    /// Largest BodyLength.
    pub max_message_size: usize,
    /// The point where framing goes on after a garbled message.
    pub resync: Resync,
    /// Number of garbled messages per minute after which the connection is closed.
    pub garbled_limit: u32,
    /// Time for the rest of a message.
    pub frame_timeout: i64,
    /// Limit of inbound application messages.
    pub throttle: Option<ThrottleLimit>,
    /// Treatment of inbound messages beyond the limit.
    pub throttle_action: ThrottleAction,
    /// Limit of outbound application messages.
    pub send_throttle: Option<ThrottleLimit>,
    /// Ends of a connection after which orders are cancelled.
    pub cancel_on: CancelOn,
    /// Time for the peer to be back before orders are cancelled.
    pub cancel_grace: i64,
    /// Times at which the session may be logged on.
    pub schedule: Schedule,
}

impl Config {
    /// Returns a configuration with defaults.
    #[must_use]
    pub fn new(role: Role, begin_string: &str, sender: &str, target: &str) -> Self {
        Self {
            role,
            begin_string: begin_string.to_owned(),
            sender: sender.to_owned(),
            target: target.to_owned(),
            profile: Profile::Standard,
            dictionary: None,
            checks: Checks::default(),
            supported: Vec::new(),
            default_appl_ver_id: None,
            logon_fields: Vec::new(),
            authenticate: false,
            test_session: false,
            heartbeat_interval: 30,
            heartbeat_min: 0,
            heartbeat_max: 3600,
            test_percent: 120,
            dead_percent: 240,
            reset_on_logon: false,
            reset_on_logout: false,
            reset_on_disconnect: false,
            next_expected: NextExpected::Accept,
            sending_time_window: 120 * SECOND,
            allow_missing_orig: MissingOrig::None,
            precision: Precision::Millis,
            logon_timeout: 10 * SECOND,
            logout_timeout: 2 * SECOND,
            auth_timeout: 5 * SECOND,
            resend_chunk: 0,
            resend_timeout: 10 * SECOND,
            resend_hold: 5 * SECOND,
            resend_rejects: true,
            early_messages: 1024,
            early_bytes: 1 << 20,
            max_message_size: 1 << 20,
            resync: Resync::Length,
            garbled_limit: 5,
            frame_timeout: 10 * SECOND,
            throttle: None,
            throttle_action: ThrottleAction::Reject,
            send_throttle: None,
            cancel_on: CancelOn::None,
            cancel_grace: 0,
            schedule: Schedule::always(),
        }
    }

    /// Checks the configuration.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let version = self.begin_string.as_bytes();
        if !matches!(
            version,
            b"FIX.4.0" | b"FIX.4.1" | b"FIX.4.2" | b"FIX.4.3" | b"FIX.4.4" | b"FIXT.1.1"
        ) {
            return Err(ConfigError::BeginString(self.begin_string.clone()));
        }
        for (name, value) in [("sender", &self.sender), ("target", &self.target)] {
            if value.is_empty() || value.as_bytes().contains(&SOH) || value.len() > 256 {
                return Err(ConfigError::CompId(name));
            }
        }
        if version == b"FIXT.1.1"
            && self
                .default_appl_ver_id
                .as_deref()
                .is_none_or(str::is_empty)
        {
            return Err(ConfigError::DefaultApplVerId);
        }
        if let Some(dictionary) = &self.dictionary {
            let found = dictionary.version().begin_string();
            if found != self.begin_string {
                let expected = self.begin_string.clone();
                return Err(ConfigError::Dictionary { expected, found });
            }
        }
        if self.heartbeat_min > self.heartbeat_max || self.test_percent >= self.dead_percent {
            return Err(ConfigError::Heartbeat);
        }
        if self.test_percent < 100
            || self.heartbeat_interval > 86_400
            || self.heartbeat_max > 86_400
        {
            return Err(ConfigError::Heartbeat);
        }
        let limits = [self.throttle, self.send_throttle];
        if limits
            .into_iter()
            .flatten()
            .any(|limit| limit.messages == 0 || limit.window < 1)
        {
            return Err(ConfigError::Throttle);
        }
        let is_ended = self.logon_fields.last().is_none_or(|last| *last == SOH);
        if !is_ended {
            return Err(ConfigError::LogonFields);
        }
        Ok(())
    }

    /// Returns major and minor number of the version; FIXT counts as 5.0.
    pub(super) fn version(&self) -> (u8, u8) {
        match self.begin_string.as_bytes() {
            [b'F', b'I', b'X', b'.', major, b'.', minor] => (major - b'0', minor - b'0'),
            _ => (5, 0),
        }
    }
}

/// Reason why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The version is not known.
    #[error("begin_string is {0:?}; expected FIX.4.0 to FIX.4.4 or FIXT.1.1")]
    BeginString(String),
    /// A CompID is empty, too long, or contains SOH.
    #[error("{0} is empty, longer than 256 bytes, or contains SOH")]
    CompId(&'static str),
    /// DefaultApplVerID is missing.
    #[error("FIXT.1.1 needs default_appl_ver_id, such as 9 for FIX 5.0 SP2")]
    DefaultApplVerId,
    /// The dictionary is one of another version.
    #[error("the dictionary is for {found}, the session speaks {expected}")]
    Dictionary {
        /// BeginString of the session.
        expected: String,
        /// BeginString of the dictionary.
        found: String,
    },
    /// The limits of heartbeats contradict each other.
    #[error(
        "heartbeat_min <= heartbeat_max <= 86400, heartbeat_interval <= 86400 and 100 <= test_percent < dead_percent \
        are needed"
    )]
    Heartbeat,
    /// A limit of messages is zero.
    #[error("a throttle needs at least one message and one nanosecond")]
    Throttle,
    /// The fields for Logon do not end with SOH.
    #[error("logon_fields have to end with SOH")]
    LogonFields,
}
