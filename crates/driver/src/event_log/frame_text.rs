// SPDX-License-Identifier: Apache-2.0
//! Text form of datagrams.

use std::fmt::Write;

use taran_protocol::frame::{DataHeader, Frame, FrameHeader, FrameType, FromBytes};

/// Appends the text form of a datagram of which at least the beginning is given.
pub(super) fn append(text: &mut String, bytes: &[u8]) {
    // Here and below: writing to a string does not fail.
    if let Ok((header, _)) = DataHeader::ref_from_prefix(bytes)
        && header.header.version == 0
        && matches!(header.header.frame_type(), FrameType::DATA | FrameType::PAD)
    {
        // Only the beginning of a long datagram was captured, so it cannot be validated as a whole.
        let kind = match header.header.frame_type() {
            FrameType::PAD => "PAD",
            _ => "DATA",
        };
        let _ = write!(
            text,
            "type={kind} flags={} frame_length={} session_id={} stream_id={} term_id={} term_offset={}",
            flags(header.header.flags),
            header.header.frame_length,
            header.session_id,
            header.stream_id,
            header.term_id,
            header.term_offset
        );
        return;
    }
    match Frame::parse(bytes) {
        Ok(frame) => append_frame(text, &frame, bytes),
        Err(error) => {
            let _ = write!(text, "invalid: {error}");
        }
    }
}

fn append_frame(text: &mut String, frame: &Frame<'_>, bytes: &[u8]) {
    let flags = FrameHeader::ref_from_prefix(bytes)
        .map(|(header, _)| flags(header.flags))
        .unwrap_or_default();
    let _ = match frame {
        // Handled above.
        Frame::Data(_) => Ok(()),
        Frame::Nak(nak) => write!(
            text,
            "type=NAK flags={flags} session_id={} stream_id={} term_id={} term_offset={} length={}",
            nak.session_id, nak.stream_id, nak.term_id, nak.term_offset, nak.length
        ),
        Frame::StatusMessage(status) => {
            let message = status.message;
            let written = write!(
                text,
                "type=SM flags={flags} session_id={} stream_id={} consumption_term_id={} consumption_term_offset={} \
                 receiver_window={} receiver_id={}",
                message.session_id,
                message.stream_id,
                message.consumption_term_id,
                message.consumption_term_offset,
                message.receiver_window,
                message.receiver_id
            );
            if let Some(tag) = status.group_tag() {
                let _ = write!(text, " group_tag={tag}");
            }
            written
        }
        Frame::Error(error) => write!(
            text,
            "type=ERR flags={flags} session_id={} stream_id={} receiver_id={} error_code={} text={}",
            error.header.session_id,
            error.header.stream_id,
            error.header.receiver_id,
            error.header.error_code,
            error.text.escape_ascii()
        ),
        Frame::Setup(setup) => write!(
            text,
            "type=SETUP flags={flags} session_id={} stream_id={} initial_term_id={} active_term_id={} term_offset={} \
             term_length={} mtu={} ttl={}",
            setup.session_id,
            setup.stream_id,
            setup.initial_term_id,
            setup.active_term_id,
            setup.term_offset,
            setup.term_length,
            setup.mtu,
            setup.ttl
        ),
        Frame::Rttm(rttm) => write!(
            text,
            "type=RTT flags={flags} session_id={} stream_id={} echo_timestamp={} reception_delta={} receiver_id={}",
            rttm.session_id,
            rttm.stream_id,
            rttm.echo_timestamp,
            rttm.reception_delta,
            rttm.receiver_id
        ),
        Frame::Resolution(entries) => {
            let _ = text.write_str("type=RES");
            for entry in (*entries).flatten() {
                let _ = write!(
                    text,
                    " {}={}{}",
                    entry.name.escape_ascii(),
                    entry.address,
                    if entry.is_self { " (self)" } else { "" }
                );
            }
            Ok(())
        }
        Frame::ResponseSetup(setup) => write!(
            text,
            "type=RSP_SETUP flags={flags} session_id={} stream_id={} response_session_id={}",
            setup.session_id, setup.stream_id, setup.response_session_id
        ),
    };
}

fn flags(flags: u8) -> String {
    format!("{flags:08b}")
}
