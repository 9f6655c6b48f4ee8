// SPDX-License-Identifier: Apache-2.0
use proptest::prelude::*;

use super::*;

fn encoded(command: &Command<'_>) -> Vec<u8> {
    let mut bytes = vec![0xff; 9];
    assert_eq!(command.encode(&mut bytes), command.type_id());
    bytes
}

/// Concatenates little-endian fields: `q` 64 bits, `d` 32 bits, `s` raw bytes.
macro_rules! bytes {
    ($($kind:ident $value:expr),* $(,)?) => {{
        let mut out: Vec<u8> = Vec::new();
        $( bytes!(@$kind out $value); )*
        out
    }};
    (@q $out:ident $value:expr) => { $out.extend(i64::to_le_bytes($value)) };
    (@d $out:ident $value:expr) => { $out.extend(i32::to_le_bytes($value)) };
    (@s $out:ident $value:expr) => { $out.extend_from_slice($value) };
}

#[test]
fn encode_writes_specified_layouts() {
    let channel = "aeron:ipc";
    let (client_id, correlation_id) = (3, 4);
    let table: Vec<(Command<'_>, Vec<u8>)> = vec![
        (
            Command::AddPublication {
                client_id,
                correlation_id,
                stream_id: 1001,
                channel,
            },
            bytes!(q 3, q 4, d 1001, d 9, s b"aeron:ipc"),
        ),
        (
            Command::RemovePublication {
                client_id,
                correlation_id,
                registration_id: 8,
                revoke: true,
            },
            bytes!(q 3, q 4, q 8, q 1),
        ),
        (
            Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id: 1001,
                channel,
            },
            bytes!(q 3, q 4, q -1, d 1001, d 9, s b"aeron:ipc"),
        ),
        (
            Command::RemoveSubscription {
                client_id,
                correlation_id,
                registration_id: 8,
            },
            bytes!(q 3, q 4, q 8),
        ),
        (
            Command::ClientClose {
                client_id,
                correlation_id: -1,
            },
            bytes!(q 3, q -1),
        ),
        (
            Command::AddDestination {
                client_id,
                correlation_id,
                registration_id: 8,
                channel,
            },
            bytes!(q 3, q 4, q 8, d 9, s b"aeron:ipc"),
        ),
        (
            Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id: 1000,
                key: b"abcde",
                label: "xyz",
            },
            bytes!(q 3, q 4, d 1000, d 5, s b"abcde\0\0\0", d 3, s b"xyz"),
        ),
        (
            Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id: 8,
                counter_type_id: 1000,
                key: b"",
                label: "",
            },
            bytes!(q 3, q 4, q 8, d 1000, d 0, d 0),
        ),
        (
            Command::TerminateDriver {
                client_id,
                correlation_id: -1,
                token: b"let me",
            },
            bytes!(q 3, q -1, d 6, s b"let me"),
        ),
        (
            Command::RejectImage {
                client_id,
                correlation_id,
                image_id: 8,
                position: 96,
                reason: b"reason",
            },
            bytes!(q 3, q 4, q 8, q 96, d 6, s b"reason"),
        ),
        (
            Command::RejectImage {
                client_id,
                correlation_id,
                image_id: 8,
                position: 96,
                reason: b"",
            },
            bytes!(q 3, q 4, q 8, q 96, d 0, d 0),
        ),
        (
            Command::RemoveDestinationById {
                client_id,
                correlation_id,
                registration_id: 8,
                destination_id: 9,
            },
            bytes!(q 3, q 4, q 8, q 9),
        ),
        (
            Command::NextAvailableSessionId {
                client_id,
                correlation_id,
                stream_id: 1001,
            },
            bytes!(q 3, q 4, d 1001),
        ),
    ];
    for (command, bytes) in &table {
        assert_eq!(&encoded(command), bytes, "{command:?}");
        assert_eq!(&Command::decode(command.type_id(), bytes).unwrap(), command);
        assert_eq!(
            (command.client_id(), command.correlation_id()),
            ids(bytes).unwrap()
        );
    }
}

#[test]
fn type_ids_match_specification() {
    assert_eq!(Command::TYPE_IDS, (1..=0x12).collect::<Vec<_>>());
    let close = Command::ClientClose {
        client_id: 1,
        correlation_id: -1,
    };
    assert_eq!(close.type_id(), 0x0B);
    for unknown in [0, 0x13, -1, 0x0F01, i32::MAX] {
        assert_eq!(
            Command::decode(unknown, &[0; 64]),
            Err(CommandError::Unknown(unknown))
        );
    }
}

#[test]
fn decode_layouts_of_other_clients_succeeds() {
    // The removal command of older clients has no flags.
    let legacy = bytes!(q 3, q 4, q 8);
    assert!(matches!(
        Command::decode(0x02, &legacy),
        Ok(Command::RemovePublication { revoke: false, .. })
    ));
    // The rejection of the Java client ends after the reason; that of the C client has spare bytes and unset ids.
    let java = bytes!(q 0, q 0, q 8, q 96, d 0);
    assert_eq!(java.len(), 36);
    assert!(matches!(
        Command::decode(0x10, &java),
        Ok(Command::RejectImage { reason: b"", .. })
    ));
    let c = bytes!(q 0, q 0, q 8, q 96, d 2, s b"no\0\0\0\0\0");
    assert!(matches!(
        Command::decode(0x10, &c),
        Ok(Command::RejectImage { reason: b"no", .. })
    ));
    // The Java client adds four spare bytes to counter commands.
    let counter = bytes!(q 3, q 4, d 1000, d 1, s b"k\0\0\0", d 1, s b"l", d 0);
    assert!(matches!(
        Command::decode(0x09, &counter),
        Ok(Command::AddCounter {
            key: b"k",
            label: "l",
            ..
        })
    ));
}

fn reason(type_id: i32, bytes: &[u8]) -> (&'static str, Malformed) {
    match Command::decode(type_id, bytes) {
        Err(CommandError::Malformed { field, reason, .. }) => (field, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn decode_with_invalid_length_fails() {
    let too_short = |offset, needed, length| Malformed::TooShort {
        offset,
        needed,
        length,
    };
    assert_eq!(
        reason(0x0B, &[0; 15]),
        ("correlation_id", too_short(8, 8, 15))
    );
    let channel = bytes!(q 3, q 4, d 1, d 10, s b"aeron:ipc");
    assert_eq!(reason(0x01, &channel), ("channel", too_short(24, 10, 33)));
    let negative = bytes!(q 3, q 4, d 1, d -1, s b"aeron:ipc");
    assert_eq!(
        reason(0x01, &negative),
        ("channel", Malformed::NegativeLength(-1))
    );
    let huge = bytes!(q 3, q 4, d 1, d i32::MAX, s b"aeron:ipc");
    assert_eq!(
        reason(0x01, &huge),
        ("channel", too_short(24, i32::MAX as usize, 33))
    );
    // The C driver validates only the fixed part of these three.
    let label = bytes!(q 3, q 4, d 1, d 4, s b"key.", d 5, s b"labe");
    assert_eq!(reason(0x09, &label), ("label", too_short(32, 5, 36)));
    let key = bytes!(q 3, q 4, q 8, d 1, d 64, s b"key.");
    assert_eq!(reason(0x0F, &key), ("key", too_short(32, 64, 36)));
    assert_eq!(
        reason(0x0E, &bytes!(q 3, q 4, d 1)),
        ("token", too_short(20, 1, 20))
    );
    // A key whose padding runs past the end of the message.
    let padding = bytes!(q 3, q 4, d 1, d 3, s b"key");
    assert_eq!(reason(0x09, &padding), ("label", too_short(28, 4, 27)));
    assert_eq!(
        reason(0x02, &bytes!(q 3, q 4, q 8, d 1)),
        ("revoke", too_short(24, 8, 28))
    );
    let text = bytes!(q 3, q 4, d 1, d 2, s b"\xff\xfe");
    assert_eq!(reason(0x01, &text), ("channel", Malformed::NotText));
}

proptest! {
    #[test]
    fn decode_random_bytes_never_panics_and_round_trips(
        type_id in -1i32..0x15, bytes in proptest::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..80)
    ) {
        if let Ok(command) = Command::decode(type_id, &bytes) {
            let again = encoded(&command);
            prop_assert_eq!(Command::decode(type_id, &again), Ok(command));
        }
    }

    #[test]
    fn add_counter_round_trips_and_truncation_fails(
        client_id in any::<i64>(), correlation_id in any::<i64>(), counter_type_id in any::<i32>(),
        key in proptest::collection::vec(any::<u8>(), 0..150), label in ".{0,60}"
    ) {
        let command = Command::AddCounter { client_id, correlation_id, counter_type_id, key: &key, label: &label };
        let bytes = encoded(&command);
        prop_assert_eq!(bytes.len(), 28 + key.len().next_multiple_of(4) + label.len());
        prop_assert_eq!(Command::decode(0x09, &bytes), Ok(command));
        // Decoding fails for every truncation.
        for cut in 0..bytes.len() {
            prop_assert!(Command::decode(0x09, &bytes[..cut]).is_err());
        }
    }
}
