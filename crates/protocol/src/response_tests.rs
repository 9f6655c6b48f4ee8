// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

fn encoded(response: &Response<'_>) -> Vec<u8> {
    let mut bytes = vec![0xff; 100];
    assert_eq!(response.encode(&mut bytes), response.type_id());
    bytes
}

fn round_trips(response: &Response<'_>, expected: &[u8]) {
    assert_eq!(encoded(response), expected, "{response:?}");
    assert_eq!(
        &Response::decode(response.type_id(), expected).unwrap(),
        response
    );
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn short_responses_round_trip() {
    let id = 0x0102_0304_0506_0708i64;
    let q = [8, 7, 6, 5, 4, 3, 2, 1];
    round_trips(&Response::OperationSuccess { correlation_id: id }, &q);
    round_trips(&Response::ClientTimeout { client_id: id }, &q);
    let with_minus_one = [&q[..], &[255; 4]].concat();
    round_trips(
        &Response::SubscriptionReady {
            correlation_id: id,
            status_counter_id: -1,
        },
        &with_minus_one,
    );
    round_trips(
        &Response::CounterReady {
            correlation_id: id,
            counter_id: -1,
        },
        &with_minus_one,
    );
    round_trips(
        &Response::UnavailableCounter {
            registration_id: id,
            counter_id: -1,
        },
        &with_minus_one,
    );
    round_trips(
        &Response::StaticCounter {
            correlation_id: id,
            counter_id: -1,
        },
        &with_minus_one,
    );
    round_trips(
        &Response::NextAvailableSessionId {
            correlation_id: id,
            session_id: -1,
        },
        &with_minus_one,
    );
    let error = Response::Error {
        correlation_id: id,
        error_code: 11,
        message: b"no",
    };
    round_trips(
        &error,
        &[&q[..], &[11, 0, 0, 0, 2, 0, 0, 0], b"no"].concat(),
    );
}

#[test]
fn available_image_aligns_second_text_to_four_bytes() {
    let image = Response::AvailableImage {
        image_id: 7,
        session_id: -2,
        stream_id: 1001,
        subscription_id: 5,
        position_counter_id: 60,
        log_name: "/dev/shm/x",
        source_identity: "aeron:ipc",
    };
    let bytes = encoded(&image);
    assert_eq!(
        (i64_at(&bytes, 0), i32_at(&bytes, 8), i32_at(&bytes, 12)),
        (7, -2, 1001)
    );
    assert_eq!(
        (i64_at(&bytes, 16), i32_at(&bytes, 24), i32_at(&bytes, 28)),
        (5, 60, 10)
    );
    assert_eq!(
        (&bytes[32..42], i32_at(&bytes, 44)),
        (&b"/dev/shm/x"[..], 9)
    );
    assert_eq!(&bytes[48..], b"aeron:ipc");
    assert_eq!(Response::decode(0x0F02, &bytes), Ok(image));
}

#[test]
fn publication_ready_round_trips() {
    let ready = Response::PublicationReady {
        correlation_id: 1,
        registration_id: 2,
        session_id: 3,
        stream_id: 4,
        limit_counter_id: 5,
        status_counter_id: -1,
        log_name: "/l",
    };
    let bytes = encoded(&ready);
    assert_eq!((i64_at(&bytes, 0), i64_at(&bytes, 8)), (1, 2));
    assert_eq!(
        (16..36)
            .step_by(4)
            .map(|at| i32_at(&bytes, at))
            .collect::<Vec<_>>(),
        [3, 4, 5, -1, 2]
    );
    assert_eq!(&bytes[36..], b"/l");
    assert_eq!(Response::decode(0x0F03, &bytes), Ok(ready));
    assert!(matches!(
        Response::decode(0x0F06, &bytes),
        Ok(Response::ExclusivePublicationReady { log_name: "/l", .. })
    ));
}

#[test]
fn unavailable_image_round_trips() {
    let image = Response::UnavailableImage {
        image_id: 1,
        subscription_id: 2,
        stream_id: 3,
        channel: "aeron:ipc",
    };
    let bytes = encoded(&image);
    assert_eq!(
        (i64_at(&bytes, 8), i32_at(&bytes, 16), i32_at(&bytes, 20)),
        (2, 3, 9)
    );
    assert_eq!(&bytes[24..], b"aeron:ipc");
}

#[test]
fn publication_error_has_minimum_length_of_c_client() {
    let error = |source: &str, message| Response::PublicationError {
        registration_id: 1,
        destination_id: -1,
        session_id: 3,
        stream_id: 4,
        receiver_id: 5,
        group_tag: -1,
        source: source.parse().unwrap(),
        error_code: 13,
        message,
    };
    let v4 = error("127.0.0.1:513", b"");
    let bytes = encoded(&v4);
    assert_eq!(bytes.len(), 72);
    assert_eq!(bytes[40..48], [1, 0, 1, 2, 127, 0, 0, 1]);
    assert_eq!(bytes[48..60], [0; 12]);
    assert_eq!((i32_at(&bytes, 60), i32_at(&bytes, 64)), (13, 0));
    assert_eq!(Response::decode(0x0F0C, &bytes), Ok(v4));

    let v6 = error("[fd00::c]:1", b"rejected");
    let bytes = encoded(&v6);
    assert_eq!(
        (bytes.len(), bytes[40], bytes[59], &bytes[68..]),
        (76, 2, 12, &b"rejected"[..])
    );
    assert_eq!(Response::decode(0x0F0C, &bytes), Ok(v6));

    let mut bad = bytes;
    bad[40] = 3;
    assert!(matches!(
        Response::decode(0x0F0C, &bad),
        Err(ResponseError::Malformed {
            field: "source",
            reason: Malformed::AddressType(3),
            ..
        })
    ));
}

#[test]
fn type_ids_match_specification() {
    assert_eq!(Response::TYPE_IDS, (0x0F01..=0x0F0D).collect::<Vec<_>>());
    assert_eq!(
        Response::decode(0x0F0E, &[0; 100]),
        Err(ResponseError::Unknown(0x0F0E))
    );
}

proptest! {
    #[test]
    fn decode_random_bytes_never_panics_and_round_trips(
        type_id in 0x0F00i32..0x0F0F, bytes in proptest::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..100)
    ) {
        if let Ok(response) = Response::decode(type_id, &bytes) {
            let again = encoded(&response);
            prop_assert_eq!(Response::decode(type_id, &again), Ok(response));
        }
    }
}
