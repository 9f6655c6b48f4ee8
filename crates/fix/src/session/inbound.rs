// SPDX-License-Identifier: Apache-2.0
//! Fields of inbound messages that the session layer needs.

use crate::wire::{Frame, Framed, Framer, Resync, Timestamp, tag, unsigned};

/// Header of a message. Values are as written; they are checked one by one, in the order of the rules.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'bytes> {
    pub(super) seq: Option<&'bytes [u8]>,
    pub(super) sender: Option<&'bytes [u8]>,
    pub(super) target: Option<&'bytes [u8]>,
    pub(super) sending_time: Option<&'bytes [u8]>,
    pub(super) orig_sending_time: Option<&'bytes [u8]>,
    pub(super) is_poss_dup: bool,
    pub(super) is_poss_resend: bool,
}

impl<'bytes> Head<'bytes> {
    /// Reads the header: up to the first other field, or further if required fields are missing until then.
    pub(super) fn read(frame: &Frame<'bytes>) -> Self {
        let mut head = Self::default();
        for field in frame.fields().filter_map(Result::ok) {
            let slot = match field.tag {
                tag::MSG_SEQ_NUM => &mut head.seq,
                tag::SENDER_COMP_ID => &mut head.sender,
                tag::TARGET_COMP_ID => &mut head.target,
                tag::SENDING_TIME => &mut head.sending_time,
                tag::ORIG_SENDING_TIME => &mut head.orig_sending_time,
                tag::POSS_DUP_FLAG => {
                    head.is_poss_dup = field.value == b"Y";
                    continue;
                }
                tag::POSS_RESEND => {
                    head.is_poss_resend = field.value == b"Y";
                    continue;
                }
                other if !crate::wire::is_header(other) && head.is_complete() => break,
                _ => continue,
            };
            slot.get_or_insert(field.value);
        }
        head
    }

    const fn is_complete(&self) -> bool {
        self.seq.is_some()
            && self.sender.is_some()
            && self.target.is_some()
            && self.sending_time.is_some()
    }

    /// Returns the number of the message.
    pub(super) fn number(&self) -> Option<u64> {
        self.seq.and_then(unsigned)
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        self.sending_time.and_then(Timestamp::parse)
    }
}

/// Type of a message, as far as the session layer treats it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Heartbeat,
    TestRequest,
    ResendRequest,
    Reject,
    SequenceReset,
    Logout,
    Logon,
    Application,
}

impl Type {
    pub(super) const fn of(msg_type: &[u8]) -> Self {
        match msg_type {
            b"0" => Self::Heartbeat,
            b"1" => Self::TestRequest,
            b"2" => Self::ResendRequest,
            b"3" => Self::Reject,
            b"4" => Self::SequenceReset,
            b"5" => Self::Logout,
            b"A" => Self::Logon,
            _ => Self::Application,
        }
    }
}

/// First message of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First<'bytes> {
    /// More bytes are needed.
    Incomplete,
    /// A Logon of this peer to this one. The bytes go to the session with these ids, if it is not connected.
    Logon {
        /// BeginString.
        begin_string: &'bytes [u8],
        /// SenderCompID: the target of our session.
        sender: &'bytes [u8],
        /// TargetCompID: the sender of our session.
        target: &'bytes [u8],
    },
    /// Not a Logon: close the connection without an answer.
    Invalid,
}

/// Largest Logon.
const MAX_LOGON: usize = 4096;

/// Reads the first message of a connection, to find its session.
#[must_use]
pub fn first_message(bytes: &[u8]) -> First<'_> {
    match Framer::new(MAX_LOGON, Resync::Length).next(bytes) {
        Framed::Incomplete => First::Incomplete,
        Framed::Garbled { .. } => First::Invalid,
        Framed::Message(frame) => {
            let head = Head::read(&frame);
            match (head.sender, head.target) {
                (Some(sender), Some(target)) if frame.msg_type() == b"A" => First::Logon {
                    begin_string: frame.begin_string(),
                    sender,
                    target,
                },
                _ => First::Invalid,
            }
        }
    }
}
