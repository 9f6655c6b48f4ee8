// SPDX-License-Identifier: Apache-2.0
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::codecs::control;

/// Bytes of a message for each template id of the protocol, with a block and data of `fill`.
fn bytes_of(template_id: u16, version: u16, block_length: u16, body: &[u8]) -> Vec<u8> {
    let header = [
        block_length,
        template_id,
        control::SCHEMA_ID as u16,
        version,
    ];
    let mut bytes: Vec<u8> = header.iter().flat_map(|part| part.to_le_bytes()).collect();
    bytes.extend_from_slice(body);
    bytes
}

fn encoded(request: &Request<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let length = request.encode(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

#[test]
fn request_of_each_kind_decodes_to_itself() {
    let requests = [
        Request::AuthConnectRequest(AuthConnectRequest {
            correlation_id: 1,
            response_stream_id: 20,
            version: ProtocolVersion::CURRENT,
            response_channel: "aeron:udp?endpoint=localhost:0",
            encoded_credentials: b"secret",
            client_info: "name=test version=0.1.0 commit=none",
        }),
        Request::CloseSessionRequest(CloseSessionRequest {
            control_session_id: 42,
        }),
        Request::StopReplayRequest(StopReplayRequest {
            control_session_id: 42,
            correlation_id: 2,
            replay_session_id: 3,
        }),
        Request::ReplicateRequest2(ReplicateRequest2 {
            control_session_id: 42,
            correlation_id: 3,
            src_recording_id: 4,
            dst_recording_id: NULL_VALUE,
            stop_position: NULL_VALUE,
            channel_tag_id: 5,
            subscription_tag_id: 6,
            src_control_stream_id: 10,
            file_io_max_length: 65_536,
            replication_session_id: -7,
            src_control_channel: "aeron:udp?endpoint=source:8010",
            live_destination: "",
            replication_channel: "aeron:udp?endpoint=here:0",
            encoded_credentials: &[0, 255],
            src_response_channel: "",
        }),
    ];
    for request in requests {
        assert_eq!(Request::decode(&encoded(&request)), Ok(request));
    }
}

#[test]
fn request_of_older_version_has_defaults_for_later_fields() {
    let request = Request::ReplayRequest(ReplayRequest {
        control_session_id: 42,
        correlation_id: 1,
        recording_id: 2,
        position: 64,
        length: NULL_VALUE,
        replay_stream_id: 1001,
        file_io_max_length: 4096,
        replay_token: 99,
        replay_channel: "aeron:ipc",
    });
    let mut bytes = encoded(&request);
    // Version 6 had neither `fileIoMaxLength` nor `replayToken`: 12 bytes less of block.
    bytes[0..2].copy_from_slice(&44_u16.to_le_bytes());
    bytes[6..8].copy_from_slice(&6_u16.to_le_bytes());
    bytes.drain(8 + 44..8 + 56);
    let Ok(Request::ReplayRequest(old)) = Request::decode(&bytes) else {
        panic!("{:?}", Request::decode(&bytes));
    };
    assert_eq!((old.file_io_max_length, old.replay_token), (-1, -1));
    assert_eq!((old.position, old.replay_channel), (64, "aeron:ipc"));
}

#[test]
fn connect_without_version_has_version_zero() {
    let body = [
        [0; 8].as_slice(),
        &20_i32.to_le_bytes(),
        &0_u32.to_le_bytes(),
    ]
    .concat();
    let bytes = bytes_of(ConnectRequest::TEMPLATE_ID, 1, 12, &body);
    let Ok(Request::ConnectRequest(connect)) = Request::decode(&bytes) else {
        panic!("{:?}", Request::decode(&bytes));
    };
    assert_eq!((connect.version.raw(), connect.version.major()), (0, 0));
}

#[test]
fn decode_of_event_as_request_names_template() {
    let ping = Ping {
        control_session_id: 1,
    };
    let mut buffer = [0; 64];
    let length = ping.encode(&mut buffer).unwrap();
    assert_eq!(
        Request::decode(&buffer[..length]),
        Err(MessageError::UnexpectedTemplate { template_id: 106 })
    );
    assert_eq!(Event::decode(&buffer[..length]), Ok(Event::Ping(ping)));
}

#[test]
fn decode_of_other_schema_is_an_error() {
    let mut bytes = bytes_of(Ping::TEMPLATE_ID, 13, 8, &[0; 8]);
    bytes[4] += 1;
    assert!(matches!(
        Event::decode(&bytes),
        Err(MessageError::Malformed(_))
    ));
}

#[test]
fn decode_of_invalid_text_and_boolean_names_field() {
    let request = Request::StartRecordingRequest2(StartRecordingRequest2 {
        control_session_id: 1,
        correlation_id: 2,
        stream_id: 3,
        source_location: SourceLocation::REMOTE,
        auto_stop: true,
        channel: "aeron:ipc",
    });
    let bytes = encoded(&request);
    let mut damaged = bytes.clone();
    damaged[8 + 24] = 2;
    assert_eq!(
        Request::decode(&damaged),
        Err(MessageError::InvalidBoolean {
            field: "auto_stop",
            value: 2
        })
    );
    let mut damaged = bytes;
    *damaged.last_mut().unwrap() = 0xFF;
    assert_eq!(
        Request::decode(&damaged),
        Err(MessageError::InvalidText { field: "channel" })
    );
}

#[test]
fn encode_into_short_buffer_is_an_error() {
    let request = KeepAliveRequest {
        control_session_id: 1,
        correlation_id: 2,
    };
    let length = request.encode(&mut [0; 64]).unwrap();
    assert!(request.encode(&mut vec![0; length - 1]).is_err());
    assert_eq!(request.encode(&mut vec![0; length]), Ok(length));
}

#[test]
fn error_code_keeps_unknown_values() {
    for raw in -1..=20 {
        assert_eq!(ErrorCode::from_raw(raw).raw(), raw);
    }
    assert_eq!(ErrorCode::from_raw(16), ErrorCode::InvalidPosition);
    assert_eq!(ErrorCode::from_raw(17), ErrorCode::Other(17));
    assert_eq!(ErrorCode::UnknownRecording.to_string(), "UNKNOWN_RECORDING");
}

proptest! {
    #[test]
    fn decoders_accept_any_bytes(
        template_id in 0_u16..110,
        version in 0_u16..16,
        block_length in 0_u16..120,
        body in vec(any::<u8>(), 0..200),
    ) {
        let bytes = bytes_of(template_id, version, block_length, &body);
        if let Ok(request) = Request::decode(&bytes) {
            // Fields of older versions get defaults; after that nothing changes any more.
            let again = encoded(&request);
            prop_assert_eq!(Request::decode(&again), Ok(request));
        }
        let _ = Event::decode(&bytes);
        let _ = RecordingEvent::decode(&bytes);
    }

    #[test]
    fn response_decodes_to_itself(ids: [i64; 3], code in 0..4, text in "[ -~]{0,300}") {
        let response = ControlResponse {
            control_session_id: ids[0],
            correlation_id: ids[1],
            relevant_id: ids[2],
            code: ControlResponseCode::from_raw(code),
            version: ProtocolVersion::CURRENT,
            error_message: &text,
        };
        let mut buffer = [0; 512];
        let length = response.encode(&mut buffer).unwrap();
        prop_assert_eq!(Event::decode(&buffer[..length]), Ok(Event::ControlResponse(response)));
    }
}

#[test]
fn text_of_a_message_has_all_fields_and_no_secrets_or_line_breaks() {
    let request = Request::ReplayRequest(ReplayRequest {
        control_session_id: 1,
        correlation_id: 2,
        recording_id: 3,
        position: 4,
        length: -1,
        replay_stream_id: 6,
        file_io_max_length: 7,
        replay_token: 8,
        replay_channel: "aeron:ipc\n[x]",
    });
    assert_eq!(
        request.to_string(),
        "controlSessionId=1, correlationId=2, recordingId=3, position=4, length=-1, replayStreamId=6, \
         fileIoMaxLength=7, replayToken=8, replayChannel=aeron:ipc\\n[x]"
    );
    assert_eq!(request.template_id(), 6);
    let connect = AuthConnectRequest {
        correlation_id: 1,
        response_stream_id: 2,
        version: ProtocolVersion::new(1, 12, 0),
        response_channel: "aeron:ipc",
        encoded_credentials: b"secret",
        client_info: "me",
    };
    let text = connect.to_string();
    assert!(
        text.contains("encodedCredentials=<6 bytes>") && !text.contains("secret"),
        "{text}"
    );
    assert!(text.contains("version=1.12.0"), "{text}");
}
