// SPDX-License-Identifier: Apache-2.0
//! Results of the session machine.

use thiserror::Error;

use crate::dict::RejectReason;
use crate::wire::Frame;

/// Receiver of everything that a session decides. The session calls it in the order of its decisions.
pub trait Output {
    /// Takes a message: [`Sent`] says whether it is to be recorded, transmitted, or both.
    fn send(&mut self, message: Outbound<'_>);
    /// Takes an application message of the peer, once and in order.
    fn deliver(&mut self, message: Inbound<'_>);
    /// Takes an event.
    fn event(&mut self, event: Event<'_>);
    /// Closes the connection. The session is offline then, and ignores what the connection received.
    fn disconnect(&mut self, reason: DisconnectReason);
}

/// Use of an outbound message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// New: record, then transmit.
    New,
    /// New: record only; it is transmitted as [`Sent::Held`] after the resend in progress, or resent later.
    Deferred,
    /// Recorded before, transmitted for the first time.
    Held,
    /// Recorded and transmitted before, or a gap fill in place of such messages: transmit only.
    Replayed,
}

/// Message to send.
#[derive(Debug, Clone, Copy)]
pub struct Outbound<'bytes> {
    /// MsgSeqNum.
    pub seq: u64,
    /// Number of resets before.
    pub epoch: u32,
    /// Whole message.
    pub bytes: &'bytes [u8],
    /// Use.
    pub sent: Sent,
    /// True for messages of the session layer.
    pub is_admin: bool,
}

/// Application message of the peer.
#[derive(Debug, Clone, Copy)]
pub struct Inbound<'bytes> {
    /// Message.
    pub frame: Frame<'bytes>,
    /// MsgSeqNum.
    pub seq: u64,
    /// Number of resets before.
    pub epoch: u32,
    /// True if the peer sent it again.
    pub is_poss_dup: bool,
    /// True if the peer may have sent its content with another number.
    pub is_poss_resend: bool,
}

/// Message of the application.
#[derive(Debug, Clone, Copy, Default)]
pub struct Application<'bytes> {
    /// MsgType.
    pub msg_type: &'bytes [u8],
    /// Encoded fields of the body, each with its delimiter.
    pub body: &'bytes [u8],
    /// Encoded fields that belong to the header, such as PossResend or SenderSubID; often empty.
    pub header: &'bytes [u8],
}

/// Stored message that a resend needs.
#[derive(Debug, Clone, Copy)]
pub enum Stored<'bytes> {
    /// The message as it was recorded.
    Message(&'bytes [u8]),
    /// There is none, or it is not to be sent again: a gap fill takes its place.
    Skip,
}

/// Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'text> {
    /// A Logon waits for authentication. `logon` is the whole message.
    Authenticate {
        /// Message.
        logon: &'text [u8],
    },
    /// Both sides are logged on.
    Active,
    /// The peer refused our Logon.
    LogonRefused {
        /// Text of its Logout; empty if there is none.
        text: &'text [u8],
    },
    /// Both numbers start at 1 again.
    Reset {
        /// Number of resets, with this one.
        epoch: u32,
    },
    /// Messages of the peer are missing.
    GapDetected {
        /// First missing number.
        from: u64,
        /// Number of the message that showed it.
        seen: u64,
    },
    /// No messages of the peer are missing any more.
    GapFilled {
        /// Next number.
        next_in: u64,
    },
    /// The peer's ResendRequest has been served.
    ResendServed {
        /// First number.
        from: u64,
        /// Last number.
        to: u64,
    },
    /// The peer declared messages lost that had been asked for.
    InboundLost {
        /// First lost number.
        from: u64,
        /// Last lost number.
        to: u64,
    },
    /// The peer's view of the numbers contradicts ours; an operator has to decide.
    SequenceDispute {
        /// The number that one side has.
        expected: u64,
        /// The number that the other side has.
        received: u64,
    },
    /// A message of the peer was rejected.
    Rejected {
        /// Its number.
        seq: u64,
        /// Reason.
        reason: RejectReason,
        /// Tag.
        tag: Option<i64>,
    },
    /// The peer rejected a message, by Reject (3) or BusinessMessageReject (j).
    RejectReceived {
        /// Number of our message.
        seq: u64,
        /// Text; empty if there is none.
        text: &'text [u8],
    },
    /// A message that had been received before was ignored.
    DuplicateIgnored {
        /// Its number.
        seq: u64,
    },
    /// Bytes were dropped that are not a message.
    Garbled {
        /// Reason.
        reason: crate::wire::Garbled,
        /// Number of bytes.
        length: usize,
    },
    /// A message before its turn was dropped, because the queue is full. It has to be sent again.
    EarlyDropped {
        /// Its number.
        seq: u64,
    },
    /// An inbound application message exceeded the limit.
    Throttled {
        /// Its number.
        seq: u64,
    },
    /// The connection has ended.
    Disconnected {
        /// Reason.
        reason: DisconnectReason,
    },
    /// The orders of the session have to be cancelled.
    CancelOrders,
}

/// Reason of the end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// Both sides logged out, or the peer did.
    LoggedOut,
    /// The peer did not answer a Logout.
    LogoutTimeout,
    /// The connection was closed or lost.
    PeerClosed,
    /// Nothing was received, not even an answer to a TestRequest.
    HeartbeatTimeout,
    /// No Logon, or no answer to one.
    LogonTimeout,
    /// The first message was not a valid Logon for this session.
    InvalidLogon,
    /// Authentication failed.
    NotAuthenticated,
    /// The peer refused our Logon.
    LogonRefused,
    /// A number below the expected one.
    SequenceTooLow,
    /// The peer expects a number that we have not sent.
    SequenceTooHigh,
    /// A message without a usable MsgSeqNum.
    NoSequence,
    /// Missing messages were not sent again.
    GapNotFilled,
    /// The peer asked for the same messages again and again.
    ResendLoop,
    /// Too many bytes that are not messages, or too long a message.
    Garbled,
    /// A message was not completed in time.
    FrameTimeout,
    /// The session may not be logged on at this time.
    OutOfSchedule,
    /// The application asked for it.
    Requested,
}

/// Reason why a message of the application is not taken. Nothing was sent or numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// A Logout has been sent or received.
    #[error("the session is logging out")]
    LoggingOut,
    /// Numbers are being reset.
    #[error("a reset of the numbers is in progress")]
    Resetting,
    /// The limit of outbound messages is reached.
    #[error("the limit of outbound messages allows the next one at {until} ns")]
    Throttled {
        /// Monotonic time at which the next message is allowed.
        until: i64,
    },
    /// The message is longer than the peer takes.
    #[error("the message has {length} bytes, the peer takes at most {limit} (MaxMessageSize)")]
    TooLargeForPeer {
        /// Length.
        length: usize,
        /// Limit.
        limit: usize,
    },
    /// The message is longer than the session's own limit.
    #[error("the message has {length} bytes, at most {limit} are allowed (max_message_size)")]
    TooLarge {
        /// Length.
        length: usize,
        /// Limit.
        limit: usize,
    },
    /// The message is one of the session layer, or its MsgType, header or body is not encoded properly.
    #[error("the message cannot be sent: {0}")]
    Invalid(&'static str),
}
