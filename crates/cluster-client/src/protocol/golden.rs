// SPDX-License-Identifier: Apache-2.0
//! Messages beside the bytes that the official codecs write for them (`golden.txt`, from `cluster-golden` of the interop programs).

use super::*;

fn lines() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    include_str!("golden.txt").lines().map(|line| {
        let (name, hex) = line.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (name, (0..hex.len()).step_by(2).map(byte).collect())
    })
}

fn golden(name: &str) -> Vec<u8> {
    lines().find(|(found, _)| *found == name).unwrap().1
}

/// Decodes a message by each stream that has it, and returns its encoded forms.
fn again(bytes: &[u8]) -> Vec<Vec<u8>> {
    fn encoded<E: std::fmt::Debug>(encode: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Vec<u8> {
        let mut buffer = vec![0; 512];
        let length = encode(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer
    }
    let mut all = Vec::new();
    all.extend(IngressMessage::decode(bytes).map(|it| encoded(|buffer| it.encode(buffer))));
    all.extend(EgressMessage::decode(bytes).map(|it| encoded(|buffer| it.encode(buffer))));
    all.extend(LogMessage::decode(bytes).map(|it| encoded(|buffer| it.encode(buffer))));
    all.extend(ServiceRequest::decode(bytes).map(|it| encoded(|buffer| it.encode(buffer))));
    all.extend(ServiceCommand::decode(bytes).map(|it| encoded(|buffer| it.encode(buffer))));
    all.extend(SnapshotMessage::decode(bytes).map(|it| encoded(|buffer| it.encode(buffer))));
    all
}

#[test]
fn each_message_is_encoded_as_the_official_codecs_do() {
    let mut count = 0;
    for (name, bytes) in lines() {
        let encoded = again(&bytes);
        assert!(!encoded.is_empty(), "no stream has {name}");
        for found in encoded {
            assert_eq!(found, bytes, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 32);
}

#[test]
fn fields_of_official_messages_have_their_values() {
    let bytes = golden("SessionEvent");
    let expected = SessionEvent {
        cluster_session_id: 3,
        correlation_id: 41,
        leadership_term_id: 7,
        leader_member_id: 2,
        code: EventCode::REDIRECT,
        version: Some(PROTOCOL_VERSION),
        leader_heartbeat_timeout_ns: Some(10_000_000_000),
        detail: "0=a:1,1=b:2",
    };
    assert_eq!(
        EgressMessage::decode(&bytes),
        Ok(EgressMessage::SessionEvent(expected))
    );
    let bytes = golden("NewLeadershipTermEvent");
    let expected = NewLeadershipTermEvent {
        leadership_term_id: 7,
        log_position: 960,
        timestamp: 1_700_000_000_000,
        term_base_log_position: 864,
        leader_member_id: 2,
        log_session_id: -77,
        time_unit: Some(ClusterTimeUnit::NANOS),
        app_version: Some(1),
    };
    assert_eq!(
        LogMessage::decode(&bytes),
        Ok(LogMessage::NewLeadershipTermEvent(expected))
    );
    let bytes = golden("ClusterSession");
    let Ok(SnapshotMessage::ClusterSession(session)) = SnapshotMessage::decode(&bytes) else {
        panic!("no session");
    };
    assert_eq!(session.close_reason, CloseReason::NULL);
    assert_eq!(session.response_channel, "aeron:ipc");
}

#[test]
fn official_message_that_is_cut_is_malformed() {
    for (name, bytes) in lines() {
        for cut in 0..bytes.len() {
            assert!(again(&bytes[..cut]).is_empty(), "{name} cut at {cut}");
        }
    }
}

#[test]
fn official_message_with_a_changed_byte_is_read_or_refused() {
    for (_, bytes) in lines() {
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = again(&changed);
            }
        }
    }
}

#[test]
fn connect_request_of_an_older_client_has_no_client_info() {
    let mut bytes = golden("SessionConnectRequest");
    bytes.truncate(bytes.len() - 4 - "name=x version=1.51.0".len());
    bytes[6..8].copy_from_slice(&13_u16.to_le_bytes());
    let Ok(IngressMessage::SessionConnectRequest(request)) = IngressMessage::decode(&bytes) else {
        panic!("no request");
    };
    assert_eq!(request.client_info, "");
    assert_eq!(request.encoded_credentials, [1, 2, 3, 0xff]);
}

#[test]
fn payload_follows_the_block_of_any_length() {
    let mut bytes = golden("SessionMessageHeader");
    bytes.extend_from_slice(b"payload");
    let (header, payload) = split(&bytes).unwrap();
    assert_eq!((header.cluster_session_id, payload), (3, &b"payload"[..]));
    // A newer version, whose block has 8 bytes more.
    bytes.splice(32..32, [0; 8]);
    bytes[0] = 32;
    assert_eq!(split(&bytes).unwrap().1, b"payload");
    bytes.truncate(31);
    assert!(split(&bytes).is_err());
}
