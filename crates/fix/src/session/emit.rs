// SPDX-License-Identifier: Apache-2.0
//! Messages that the session layer sends.

use super::{Config, DisconnectReason, Event, Now, Outbound, Output, Sent, Session, State};
use crate::dict::{Fault, RejectReason};
use crate::wire::{Frame, Header, Precision, Writer, tag};

/// Envelope of a message.
pub(super) struct Post<'bytes> {
    pub(super) seq: u64,
    pub(super) msg_type: &'bytes [u8],
    pub(super) sent: Sent,
    pub(super) is_admin: bool,
    /// Bytes that the fields behind the first header fields can need.
    pub(super) room: usize,
}

/// Room for the first header fields, both ends, and short fields of the session layer.
const ROOM: usize = 512;

/// Writes a message and passes it on. Returns false if a value cannot be encoded.
pub(super) fn post<O: Output>(
    config: &Config,
    buffer: &mut Vec<u8>,
    epoch: u32,
    now: Now,
    post: &Post<'_>,
    out: &mut O,
    fields: impl FnOnce(&mut Writer<'_>),
) -> bool {
    let size = ROOM + config.sender.len() + config.target.len() + post.room;
    if buffer.len() < size {
        buffer.resize(size, 0);
    }
    let header = Header {
        begin_string: config.begin_string.as_bytes(),
        msg_type: post.msg_type,
        sender: config.sender.as_bytes(),
        target: config.target.as_bytes(),
        seq: post.seq,
        sending_time: now.wall,
        precision: precision(config),
    };
    match header.write(buffer, fields) {
        Ok(bytes) => {
            out.send(Outbound {
                seq: post.seq,
                epoch,
                bytes,
                sent: post.sent,
                is_admin: post.is_admin,
            });
            true
        }
        Err(_) => false,
    }
}

/// Returns the digits of SendingTime: 4.0 and 4.1 know seconds only.
pub(super) fn precision(config: &Config) -> Precision {
    if config.version() < (4, 2) {
        Precision::Seconds
    } else {
        config.precision
    }
}

/// Routing fields of a message and those of its answer.
const ROUTES: [(u32, u32); 6] = [
    (tag::ON_BEHALF_OF_COMP_ID, tag::DELIVER_TO_COMP_ID),
    (tag::ON_BEHALF_OF_SUB_ID, tag::DELIVER_TO_SUB_ID),
    (tag::ON_BEHALF_OF_LOCATION_ID, tag::DELIVER_TO_LOCATION_ID),
    (tag::DELIVER_TO_COMP_ID, tag::ON_BEHALF_OF_COMP_ID),
    (tag::DELIVER_TO_SUB_ID, tag::ON_BEHALF_OF_SUB_ID),
    (tag::DELIVER_TO_LOCATION_ID, tag::ON_BEHALF_OF_LOCATION_ID),
];

fn route(frame: &Frame<'_>, writer: &mut Writer<'_>) {
    for (from, to) in ROUTES {
        if let Some(value) = frame.get(from) {
            writer.text(to, value);
        }
    }
}

impl Session {
    /// Sends a new message of the session layer. It goes out at once, even during a resend.
    pub(super) fn admin<O: Output>(
        &mut self,
        msg_type: &[u8],
        room: usize,
        now: Now,
        out: &mut O,
        fields: impl FnOnce(&mut Writer<'_>),
    ) {
        let letter = Post {
            seq: self.numbers.next_out,
            msg_type,
            sent: Sent::New,
            is_admin: true,
            room,
        };
        if post(
            &self.config,
            &mut self.buffer,
            self.numbers.epoch,
            now,
            &letter,
            out,
            fields,
        ) {
            self.numbers.next_out += 1;
            self.last_sent = now.monotonic;
        }
    }

    pub(super) fn send_heartbeat<O: Output>(&mut self, id: Option<&[u8]>, now: Now, out: &mut O) {
        let room = id.map_or(0, <[u8]>::len);
        self.admin(b"0", room, now, out, |writer| {
            if let Some(id) = id {
                writer.text(tag::TEST_REQ_ID, id);
            }
        });
    }

    /// Sends a TestRequest with the current number of tests as its id.
    pub(super) fn send_test<O: Output>(&mut self, now: Now, out: &mut O) {
        let id = self.tests;
        self.is_testing = true;
        self.admin(b"1", 0, now, out, |writer| {
            writer.unsigned(tag::TEST_REQ_ID, id);
        });
    }

    pub(super) fn send_logout<O: Output>(
        &mut self,
        text: &[u8],
        status: Option<u64>,
        now: Now,
        out: &mut O,
    ) {
        let has_status = self.version >= (5, 0);
        self.admin(b"5", text.len(), now, out, |writer| {
            if let Some(status) = status.filter(|_| has_status) {
                writer.unsigned(tag::SESSION_STATUS, status);
            }
            if !text.is_empty() {
                writer.text(tag::TEXT, text);
            }
        });
    }

    /// Sends a Logout and waits for the answer.
    pub(super) fn log_out<O: Output>(
        &mut self,
        text: &[u8],
        status: Option<u64>,
        now: Now,
        out: &mut O,
    ) {
        if self.state != State::Active {
            return;
        }
        self.send_logout(text, status, now, out);
        self.enter(State::LogoutSent, now);
    }

    /// Sends a Logout and closes the connection.
    pub(super) fn log_out_now<O: Output>(
        &mut self,
        text: &[u8],
        status: Option<u64>,
        reason: DisconnectReason,
        now: Now,
        out: &mut O,
    ) {
        if self.state == State::Active {
            self.send_logout(text, status, now, out);
        }
        self.close(reason, now, out);
    }

    /// Rejects a message. A Reject is never rejected.
    pub(super) fn reject<O: Output>(
        &mut self,
        frame: &Frame<'_>,
        seq: u64,
        fault: Fault,
        now: Now,
        out: &mut O,
    ) {
        let Fault { reason, tag, .. } = fault;
        out.event(Event::Rejected { seq, reason, tag });
        if frame.msg_type() == b"3" || self.state == State::LogoutReceived {
            return;
        }
        let version = self.version;
        let msg_type = frame.msg_type();
        self.admin(b"3", frame.bytes().len(), now, out, |writer| {
            route(frame, writer);
            writer.unsigned(tag::REF_SEQ_NUM, seq);
            if version < (4, 2) {
                // These versions have the tag in the text only.
                let mut text = [0; 80];
                writer.text(tag::TEXT, old_text(reason, tag, &mut text));
                return;
            }
            if let Some(tag) = tag {
                writer.int(tag::REF_TAG_ID, tag);
            }
            writer.text(tag::REF_MSG_TYPE, msg_type);
            if version >= reason.since() {
                writer.unsigned(tag::SESSION_REJECT_REASON, u64::from(reason.code()));
            }
            writer.text(tag::TEXT, reason.text().as_bytes());
        });
    }

    pub(super) fn send_business_reject<O: Output>(
        &mut self,
        frame: &Frame<'_>,
        seq: u64,
        reason: u16,
        text: &[u8],
        now: Now,
        out: &mut O,
    ) {
        if self.version < (4, 2) {
            self.admin(b"3", frame.bytes().len() + text.len(), now, out, |writer| {
                route(frame, writer);
                writer.unsigned(tag::REF_SEQ_NUM, seq);
                writer.text(tag::TEXT, text);
            });
            return;
        }
        let letter = Post {
            seq: self.numbers.next_out,
            msg_type: b"j",
            sent: Sent::New,
            is_admin: false,
            room: frame.bytes().len() + text.len(),
        };
        let epoch = self.numbers.epoch;
        let is_sent = post(
            &self.config,
            &mut self.buffer,
            epoch,
            now,
            &letter,
            out,
            |writer| {
                route(frame, writer);
                writer.unsigned(tag::REF_SEQ_NUM, seq);
                writer.text(tag::REF_MSG_TYPE, frame.msg_type());
                writer.unsigned(tag::BUSINESS_REJECT_REASON, u64::from(reason));
                if !text.is_empty() {
                    writer.text(tag::TEXT, text);
                }
            },
        );
        if is_sent {
            self.numbers.next_out += 1;
            self.last_sent = now.monotonic;
        }
    }
}

/// Writes the text of a Reject with the tag in parentheses.
fn old_text(reason: RejectReason, tag: Option<i64>, buffer: &mut [u8; 80]) -> &[u8] {
    use std::io::Write;
    let mut rest = &mut buffer[..];
    // The longest text has 56 bytes, a tag 20.
    let _ = match tag {
        Some(tag) => write!(rest, "{} ({tag})", reason.text()),
        None => write!(rest, "{}", reason.text()),
    };
    let left = rest.len();
    &buffer[..80 - left]
}
