// SPDX-License-Identifier: Apache-2.0
//! Checks of opened frames against what their key is for (docs/spec/transport-security.md §2.2).

use taran_protocol::frame::{DATA_HEADER_LENGTH, DataHeader, Frame, FromBytes, StatusMessage};

/// Reason why an authentic datagram is dropped: its author may not send it.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutOfBounds {
    /// The plain datagram violates a rule of the wire.
    #[error("the plain datagram is invalid")]
    Invalid,
    /// A frame of the other direction, or of transport security.
    #[error("a frame of the wrong direction")]
    Direction,
    /// A frame of another session or stream.
    #[error("a frame of another session or stream")]
    Stream,
    /// A later frame of the datagram differs from the first in session, stream, term or version.
    #[error("a later frame of the datagram differs from the first")]
    LaterFrame,
    /// A receiver id that the link does not carry.
    #[error("the receiver id of another receiver")]
    ReceiverId,
}

taran_core::debug_is_display!(OutOfBounds);

/// Checks a datagram that a sender sealed for a stream: DATA, PAD, heartbeats and RTTM.
///
/// # Errors
/// A frame in it is not the sender's to send.
#[inline]
pub fn check_forward(plain: &[u8], session_id: i32, stream_id: i32) -> Result<(), OutOfBounds> {
    let stream = match Frame::parse(plain).map_err(|_| OutOfBounds::Invalid)? {
        Frame::Data(data) => {
            check_later_frames(data.header(), plain)?;
            (data.session_id(), data.stream_id())
        }
        Frame::Rttm(rttm) => (rttm.session_id.get(), rttm.stream_id.get()),
        _ => return Err(OutOfBounds::Direction),
    };
    if stream == (session_id, stream_id) {
        Ok(())
    } else {
        Err(OutOfBounds::Stream)
    }
}

/// Checks that all frames of a DATA datagram belong together, so that none names a foreign session.
#[inline]
fn check_later_frames(first: &DataHeader, plain: &[u8]) -> Result<(), OutOfBounds> {
    let mut at = 0;
    while let Some(rest) = plain.get(at..).filter(|rest| !rest.is_empty()) {
        let (header, _) = DataHeader::ref_from_prefix(rest).map_err(|_| OutOfBounds::Invalid)?;
        if header.session_id != first.session_id
            || header.stream_id != first.stream_id
            || header.term_id != first.term_id
            || header.header.version != first.header.version
        {
            return Err(OutOfBounds::LaterFrame);
        }
        let length = header.header.frame_length.get();
        if length == 0 {
            // A heartbeat is alone in its datagram.
            return if plain.len() == DATA_HEADER_LENGTH as usize {
                Ok(())
            } else {
                Err(OutOfBounds::Invalid)
            };
        }
        if length < DATA_HEADER_LENGTH {
            return Err(OutOfBounds::Invalid);
        }
        // Padding may cover more than the datagram.
        at += (length as usize).next_multiple_of(32);
    }
    Ok(())
}

/// Checks a datagram that a receiver sealed: SM, NAK, ERR, RTTM, RSP_SETUP and RES. `is_granted` tells whether the link
/// holds a key of a stream.
///
/// # Errors
/// A frame in it is not this receiver's to send.
#[inline]
pub fn check_back(
    plain: &[u8],
    receiver_id: i64,
    mut is_granted: impl FnMut(i32, i32) -> bool,
) -> Result<(), OutOfBounds> {
    let (session_id, stream_id, receiver) =
        match Frame::parse(plain).map_err(|_| OutOfBounds::Invalid)? {
            Frame::StatusMessage(status) => {
                let message: &StatusMessage = status.message;
                let stream = (message.session_id.get(), message.stream_id.get());
                if message.asks_for_setup() && stream == (0, 0) {
                    return same_receiver(message.receiver_id.get(), receiver_id);
                }
                (stream.0, stream.1, Some(message.receiver_id.get()))
            }
            Frame::Nak(nak) => (nak.session_id.get(), nak.stream_id.get(), None),
            Frame::Error(error) => (
                error.header.session_id.get(),
                error.header.stream_id.get(),
                Some(error.header.receiver_id.get()),
            ),
            Frame::Rttm(rttm) => (
                rttm.session_id.get(),
                rttm.stream_id.get(),
                Some(rttm.receiver_id.get()),
            ),
            Frame::ResponseSetup(setup) => (setup.session_id.get(), setup.stream_id.get(), None),
            Frame::Resolution(_) => return Ok(()),
            _ => return Err(OutOfBounds::Direction),
        };
    if let Some(receiver) = receiver {
        same_receiver(receiver, receiver_id)?;
    }
    if is_granted(session_id, stream_id) {
        Ok(())
    } else {
        Err(OutOfBounds::Stream)
    }
}

fn same_receiver(one: i64, other: i64) -> Result<(), OutOfBounds> {
    if one == other {
        Ok(())
    } else {
        Err(OutOfBounds::ReceiverId)
    }
}
