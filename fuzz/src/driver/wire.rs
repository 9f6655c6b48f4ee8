// SPDX-License-Identifier: Apache-2.0
//! Datagrams from scripts: arbitrary bytes, or frames whose fields are near valid ones.

use taran_protocol::frame::{
    DataHeader, ERROR_FRAME_LENGTH_MAX, ErrorFrame, FrameHeader, FrameType, IntoBytes, Nak,
    ResponseSetup, Rttm, Setup, StatusMessage, StatusMessageWithTag,
};

use crate::script::Script;

/// Identifiers of the attacked streams that a remote may know. No list is empty.
#[derive(Clone, Debug)]
pub struct Known {
    /// Session ids.
    pub sessions: Vec<i64>,
    /// Stream ids.
    pub streams: Vec<i64>,
    /// Term ids.
    pub terms: Vec<i64>,
    /// Receiver ids.
    pub receivers: Vec<i64>,
}

/// Offsets in a term of 64 KiB, and lengths of frames.
const OFFSETS: [i64; 7] = [0, 32, 64, 1024, 1408, 65_504, 65_536];
const LENGTHS: [i64; 8] = [0, 32, 33, 64, 256, 1376, 1408, 65_536];
const WINDOWS: [i64; 5] = [0, 1408, 8192, 32_768, 131_072];
const TIMES: [i64; 4] = [0, 1_000_000_000_000, 1_000_000_000, i64::MAX];

/// Longest payload of a generated frame.
const PAYLOAD_MAX: usize = 256;

/// Generates one datagram.
pub fn datagram(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    let kind = script.u8();
    let mut datagram = match kind % 10 {
        0 => script.chunk().to_vec(),
        1 => setup(script, known),
        2 | 3 => data(script, known),
        4 => status(script, known),
        5 => nak(script, known),
        6 => rttm(script, known),
        7 => error(script, known),
        8 => response_setup(script, known),
        _ => heartbeat(script, known),
    };
    // The highest bit requests damage: a byte is changed, or the end is cut off.
    if kind & 0x80 != 0 && !datagram.is_empty() {
        let at = usize::from(script.u8()) % datagram.len();
        match script.u8() {
            0 => datagram.truncate(at),
            change => datagram[at] ^= change,
        }
    }
    datagram
}

/// Truncates to the low 32 bits.
fn low_half(number: i64) -> i32 {
    number as i32
}

fn setup(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    Setup {
        header: Setup::header(script.u8() & (Setup::GROUP | Setup::SEND_RESPONSE_SETUP)),
        session_id: low_half(script.near(&known.sessions)).into(),
        stream_id: low_half(script.near(&known.streams)).into(),
        initial_term_id: low_half(script.near(&known.terms)).into(),
        active_term_id: low_half(script.near(&known.terms)).into(),
        term_offset: low_half(script.near(&OFFSETS)).into(),
        term_length: low_half(script.near(&[65_536, 131_072, 1 << 20, 1 << 30])).into(),
        mtu: low_half(script.near(&[1408, 64, 32, 8192, 65_504])).into(),
        ttl: low_half(script.near(&[0, 1, 255])).into(),
    }
    .as_bytes()
    .to_vec()
}

fn header(script: &mut Script<'_>, known: &Known) -> DataHeader {
    DataHeader {
        header: FrameHeader::new(0, 0, FrameType::DATA),
        session_id: low_half(script.near(&known.sessions)).into(),
        stream_id: low_half(script.near(&known.streams)).into(),
        term_id: low_half(script.near(&known.terms)).into(),
        term_offset: low_half(script.near(&OFFSETS)).into(),
        reserved_value: 0.into(),
    }
}

/// Returns up to four consecutive frames.
fn data(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    let mut header = header(script, known);
    let mut datagram = Vec::new();
    for _ in 0..=script.below(4) {
        let length = low_half(script.near(&LENGTHS));
        let kind = if script.u8() & 1 == 0 {
            FrameType::DATA
        } else {
            FrameType::PAD
        };
        header.header = FrameHeader::new(length, script.u8(), kind);
        datagram.extend_from_slice(header.as_bytes());
        let payload = usize::try_from(length).unwrap_or(0).saturating_sub(32);
        let on_wire = if kind == FrameType::PAD {
            0
        } else {
            payload.min(PAYLOAD_MAX)
        };
        let end = (datagram.len() + on_wire).next_multiple_of(32);
        datagram.resize(end, 0xDA);
        let next = header
            .term_offset
            .get()
            .wrapping_add(length.wrapping_add(31) & !31);
        header.term_offset = next.into();
    }
    datagram
}

fn heartbeat(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    let mut header = header(script, known);
    header.header = FrameHeader::new(0, script.u8(), FrameType::DATA);
    header.as_bytes().to_vec()
}

fn status(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    let flags = script.u8() & (StatusMessage::SEND_SETUP | StatusMessage::EOS);
    let message = StatusMessage {
        header: StatusMessage::header(flags),
        session_id: low_half(script.near(&known.sessions)).into(),
        stream_id: low_half(script.near(&known.streams)).into(),
        consumption_term_id: low_half(script.near(&known.terms)).into(),
        consumption_term_offset: low_half(script.near(&OFFSETS)).into(),
        receiver_window: low_half(script.near(&WINDOWS)).into(),
        receiver_id: script.near(&known.receivers).into(),
    };
    if script.u8() & 1 == 0 {
        return message.as_bytes().to_vec();
    }
    StatusMessageWithTag {
        message: StatusMessage {
            header: StatusMessageWithTag::header(flags),
            ..message
        },
        group_tag: script.near(&[5, 0]).into(),
    }
    .as_bytes()
    .to_vec()
}

fn nak(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    Nak {
        header: Nak::header(),
        session_id: low_half(script.near(&known.sessions)).into(),
        stream_id: low_half(script.near(&known.streams)).into(),
        term_id: low_half(script.near(&known.terms)).into(),
        term_offset: low_half(script.near(&OFFSETS)).into(),
        length: low_half(script.near(&LENGTHS)).into(),
    }
    .as_bytes()
    .to_vec()
}

fn rttm(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    Rttm {
        header: Rttm::header(script.u8() & Rttm::REPLY),
        session_id: low_half(script.near(&known.sessions)).into(),
        stream_id: low_half(script.near(&known.streams)).into(),
        echo_timestamp: script.near(&TIMES).into(),
        reception_delta: script.near(&TIMES).into(),
        receiver_id: script.near(&known.receivers).into(),
    }
    .as_bytes()
    .to_vec()
}

fn error(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    let mut buffer = [0; ERROR_FRAME_LENGTH_MAX];
    let tag = (script.u8() & 1 != 0).then_some(5);
    ErrorFrame::write(
        &mut buffer,
        low_half(script.near(&known.sessions)),
        low_half(script.near(&known.streams)),
        script.near(&known.receivers),
        tag,
        low_half(script.near(&[0, 4, 11, 20])),
        script.take(16),
    )
    .to_vec()
}

fn response_setup(script: &mut Script<'_>, known: &Known) -> Vec<u8> {
    ResponseSetup {
        header: ResponseSetup::header(),
        session_id: low_half(script.near(&known.sessions)).into(),
        stream_id: low_half(script.near(&known.streams)).into(),
        response_session_id: low_half(script.near(&known.sessions)).into(),
    }
    .as_bytes()
    .to_vec()
}
