// SPDX-License-Identifier: Apache-2.0
//! Frames, one of each kind.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use taran_protocol::frame::{
    DataHeader, ERROR_FRAME_LENGTH_MAX, ErrorFrame, FrameHeader, FrameType, IntoBytes, Nak,
    ResolutionEntry, ResponseSetup, Rttm, Setup, StatusMessage, StatusMessageWithTag,
    write_resolution,
};

use crate::Seed;

pub(crate) fn seeds() -> Vec<Seed> {
    frames()
        .into_iter()
        .map(|(name, frame)| Seed::new("frames", name, frame))
        .collect()
}

pub(crate) fn data(
    offset: i32,
    flags: u8,
    kind: FrameType,
    length: i32,
    payload: &[u8],
) -> Vec<u8> {
    let header = DataHeader {
        header: FrameHeader::new(length, flags, kind),
        term_offset: offset.into(),
        session_id: 7.into(),
        stream_id: 1001.into(),
        term_id: 3.into(),
        reserved_value: 0.into(),
    };
    let mut frame = [header.as_bytes(), payload].concat();
    frame.resize(frame.len().next_multiple_of(32), 0);
    frame
}

fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let message = StatusMessage {
        header: StatusMessage::header(0),
        session_id: 7.into(),
        stream_id: 1001.into(),
        consumption_term_id: 3.into(),
        consumption_term_offset: 64.into(),
        receiver_window: 4096.into(),
        receiver_id: 99.into(),
    };
    let tagged = StatusMessageWithTag {
        message: StatusMessage {
            header: StatusMessageWithTag::header(StatusMessage::EOS),
            ..message
        },
        group_tag: 5.into(),
    };
    let setup = Setup {
        header: Setup::header(Setup::GROUP),
        term_offset: 0.into(),
        session_id: 7.into(),
        stream_id: 1001.into(),
        initial_term_id: 3.into(),
        active_term_id: 3.into(),
        term_length: 65_536.into(),
        mtu: 1408.into(),
        ttl: 0.into(),
    };
    let nak = Nak {
        header: Nak::header(),
        session_id: 7.into(),
        stream_id: 1001.into(),
        term_id: 3.into(),
        term_offset: 64.into(),
        length: 128.into(),
    };
    let rttm = Rttm {
        header: Rttm::header(Rttm::REPLY),
        session_id: 7.into(),
        stream_id: 1001.into(),
        echo_timestamp: 5.into(),
        reception_delta: 6.into(),
        receiver_id: 99.into(),
    };
    let response = ResponseSetup {
        header: ResponseSetup::header(),
        session_id: 7.into(),
        stream_id: 1001.into(),
        response_session_id: 8.into(),
    };
    let mut error = [0; ERROR_FRAME_LENGTH_MAX];
    let error = ErrorFrame::write(&mut error, 7, 1001, 99, Some(5), 11, b"rejected");
    let data_frame = data(64, 0xC0, FrameType::DATA, 37, b"hello");
    let mut two = data_frame.clone();
    two.extend(data(128, 0x80, FrameType::PAD, 1024, b""));
    vec![
        ("data", data_frame),
        ("data-and-pad", two),
        ("heartbeat", data(64, 0xC0, FrameType::DATA, 0, b"")),
        ("revoked", data(64, 0xF0, FrameType::DATA, 0, b"")),
        ("status", message.as_bytes().to_vec()),
        ("status-tagged", tagged.as_bytes().to_vec()),
        ("setup", setup.as_bytes().to_vec()),
        ("nak", nak.as_bytes().to_vec()),
        ("rttm", rttm.as_bytes().to_vec()),
        ("response-setup", response.as_bytes().to_vec()),
        ("error", error.to_vec()),
        ("resolution", resolution()),
    ]
}

pub(crate) fn resolution() -> Vec<u8> {
    let entry = |is_self, address: SocketAddr, name| ResolutionEntry {
        is_self,
        address,
        age_ms: 10,
        name,
    };
    let four = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 7), 8050));
    let six = SocketAddr::from((Ipv6Addr::LOCALHOST, 8051));
    let entries = [
        entry(true, four, &b"driver-b"[..]),
        entry(false, six, b"driver-c"),
    ];
    let mut buffer = [0; 512];
    write_resolution(&mut buffer, entries).0.to_vec()
}
