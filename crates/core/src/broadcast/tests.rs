// SPDX-License-Identifier: Apache-2.0
//! The layout that other implementations see (docs/spec/shared-memory.md §4), lapped receivers, and damage.

use std::{collections::VecDeque, thread};

use proptest::prelude::*;

use super::*;
use crate::{memory::Region, sync::Ordering};

const INTENT: usize = 0;
const TAIL: usize = 8;
const LATEST: usize = 16;

fn buffer(capacity: usize) -> Region {
    Region::anonymous(capacity + TRAILER_LENGTH).unwrap()
}

fn trailer(region: &Region, field: usize) -> i64 {
    region
        .atomic_i64(region.len() - TRAILER_LENGTH + field)
        .load(Ordering::Relaxed)
}

fn set_trailer(region: &Region, field: usize, value: i64) {
    region
        .atomic_i64(region.len() - TRAILER_LENGTH + field)
        .store(value, Ordering::Relaxed);
}

fn receive(receiver: &mut Receiver) -> Result<Option<(i32, Vec<u8>)>, ReceiveError> {
    let mut message = None;
    let received =
        receiver.receive(|type_id, payload| message = Some((type_id, payload.to_vec())))?;
    assert_eq!(received, message.is_some());
    Ok(message)
}

#[test]
fn transmit_record_has_length_type_and_payload() {
    let region = buffer(128);
    let mut transmitter = Transmitter::open(&region).unwrap();
    let mut receiver = Receiver::open(&region).unwrap();
    assert_eq!(Ok(None), receive(&mut receiver));
    transmitter.transmit(7, b"hello").unwrap();
    transmitter.transmit(8, b"").unwrap();
    assert_eq!([13, 0, 0, 0, 7, 0, 0, 0], region.bytes(0, 8));
    assert_eq!(b"hello", region.bytes(8, 5));
    assert_eq!(
        [24, 24, 16],
        [INTENT, TAIL, LATEST].map(|field| trailer(&region, field))
    );

    assert_eq!(Ok(Some((7, b"hello".to_vec()))), receive(&mut receiver));
    assert_eq!(Ok(Some((8, vec![]))), receive(&mut receiver));
    assert_eq!(Ok(None), receive(&mut receiver));
}

#[test]
fn transmit_beyond_end_pads_and_wraps() {
    let region = buffer(128);
    let mut transmitter = Transmitter::open(&region).unwrap();
    let mut receiver = Receiver::open(&region).unwrap();
    for number in 0..30 {
        transmitter.transmit(1, &[number; 16]).unwrap();
        assert_eq!(Ok(Some((1, vec![number; 16]))), receive(&mut receiver));
    }
    // Five records of 24 bytes and 8 bytes of padding in each pass.
    assert_eq!(
        (8, -1),
        (
            region.atomic_i32(120).load(Ordering::Relaxed),
            region.atomic_i32(124).load(Ordering::Relaxed)
        )
    );
    assert_eq!(6 * 128 - 8, trailer(&region, TAIL));
    assert_eq!(0, receiver.lapped_count());
}

#[test]
fn open_receiver_starts_with_latest_message() {
    let region = buffer(128);
    let mut transmitter = Transmitter::open(&region).unwrap();
    transmitter.transmit(1, b"old").unwrap();
    transmitter.transmit(2, b"new").unwrap();
    let mut receiver = Receiver::open(&region).unwrap();
    assert_eq!(Ok(Some((2, b"new".to_vec()))), receive(&mut receiver));
}

#[test]
fn lapped_receiver_reports_it_and_continues_with_latest() {
    let region = buffer(128);
    let mut transmitter = Transmitter::open(&region).unwrap();
    let mut receiver = Receiver::open(&region).unwrap();
    for number in 0..8 {
        transmitter.transmit(1, &[number; 8]).unwrap();
    }
    let mut last = Receiver::open(&region).unwrap();
    assert_eq!(
        Ok(Some((1, vec![0; 8]))),
        receive(&mut receiver),
        "the buffer holds eight"
    );

    for number in 8..10 {
        transmitter.transmit(1, &[number; 8]).unwrap();
    }
    assert_eq!(
        Err(ReceiveError::Lapped { behind: 144 }),
        receive(&mut receiver)
    );
    assert_eq!(1, receiver.lapped_count());
    assert_eq!(Ok(Some((1, vec![9; 8]))), receive(&mut receiver));
    assert_eq!(Ok(None), receive(&mut receiver));
    for number in 7..10 {
        assert_eq!(Ok(Some((1, vec![number; 8]))), receive(&mut last));
    }
}

#[test]
fn record_being_overwritten_is_not_delivered() {
    let region = buffer(128);
    let mut transmitter = Transmitter::open(&region).unwrap();
    let mut receiver = Receiver::open(&region).unwrap();
    transmitter.transmit(1, b"message").unwrap();
    set_trailer(&region, INTENT, 128);
    assert!(receive(&mut Receiver::open(&region).unwrap()).is_ok());
    set_trailer(&region, INTENT, 136); // the transmitter has started to overwrite the record
    assert_eq!(
        Err(ReceiveError::Lapped { behind: 136 }),
        receive(&mut receiver)
    );
}

#[test]
fn transmit_invalid_message_is_rejected() {
    let region = buffer(128);
    let mut transmitter = Transmitter::open(&region).unwrap();
    assert_eq!(16, transmitter.max_message_length());
    assert_eq!(
        Err(TransmitError::BadTypeId(0)),
        transmitter.transmit(0, &[])
    );
    assert_eq!(
        Err(TransmitError::TooLong {
            length: 17,
            max: 16
        }),
        transmitter.transmit(1, &[0; 17])
    );
    assert_eq!(0, trailer(&region, INTENT));
    for length in [8, 127, 128, 128 + 8, 128 + 100] {
        let region = Region::anonymous(length).unwrap();
        assert_eq!(
            Some(BroadcastError::Length { length }),
            Receiver::open(&region).err()
        );
    }
}

#[test]
fn positions_wrap_around_at_i64_max() {
    let region = buffer(128);
    let start = i64::MAX - 127;
    for field in [INTENT, TAIL, LATEST] {
        set_trailer(&region, field, start);
    }
    let mut transmitter = Transmitter::open(&region).unwrap();
    let mut receiver = Receiver::open(&region).unwrap();
    for number in 0..30 {
        transmitter.transmit(1, &[number; 16]).unwrap();
        assert_eq!(Ok(Some((1, vec![number; 16]))), receive(&mut receiver));
    }
}

#[test]
fn receive_invalid_record_fails_and_skips_to_tail() {
    for length in [i32::MIN, -1, 0, 7, 25, 120, i32::MAX] {
        let region = buffer(128);
        let mut transmitter = Transmitter::open(&region).unwrap();
        let mut receiver = Receiver::open(&region).unwrap();
        transmitter.transmit(1, b"one").unwrap();
        transmitter.transmit(2, b"two").unwrap();
        region.atomic_i32(0).store(length, Ordering::Relaxed);
        assert_eq!(
            Err(ReceiveError::Corrupt {
                position: 0,
                length
            }),
            receive(&mut receiver)
        );
        assert_eq!(Ok(None), receive(&mut receiver));
        transmitter.transmit(3, b"three").unwrap();
        assert_eq!(Ok(Some((3, b"three".to_vec()))), receive(&mut receiver));
    }
}

#[test]
fn receiver_with_invalid_position_resynchronises() {
    let region = buffer(128);
    let mut transmitter = Transmitter::open(&region).unwrap();
    let mut receiver = Receiver::open(&region).unwrap();
    transmitter.transmit(1, b"one").unwrap();
    set_trailer(&region, LATEST, i64::MAX);
    set_trailer(&region, INTENT, 1 << 40);
    assert!(matches!(
        receive(&mut receiver),
        Err(ReceiveError::Lapped { .. })
    ));
    assert!(matches!(
        receive(&mut receiver),
        Err(ReceiveError::Corrupt { .. })
    ));
    transmitter.transmit(2, b"two").unwrap();
    assert_eq!(Ok(Some((2, b"two".to_vec()))), receive(&mut receiver));
}

/// The expected payload of a message, chosen so that a mixture of two messages is detected.
fn message(number: u32) -> Vec<u8> {
    let mut payload = number.to_le_bytes().to_vec();
    payload.resize(4 + (number % 61) as usize, number as u8);
    payload
}

#[test]
fn receivers_on_other_threads_get_intact_messages_in_order_or_are_lapped() {
    // Miri takes a thousand times as long per message.
    const COUNT: u32 = if cfg!(miri) { 100 } else { 60_000 };
    let region = buffer(512);
    let mut transmitter = Transmitter::open(&region).unwrap();
    let receivers = [0; 2].map(|_| Receiver::open(&region).unwrap());
    thread::scope(|scope| {
        for mut receiver in receivers {
            scope.spawn(move || {
                let mut last = 0;
                while last < COUNT {
                    match receive(&mut receiver) {
                        Ok(Some((type_id, payload))) => {
                            let number = type_id as u32;
                            assert!(number > last, "{number} after {last}");
                            assert_eq!(message(number), payload);
                            last = number;
                        }
                        Ok(None) => thread::yield_now(),
                        Err(ReceiveError::Lapped { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        scope.spawn(move || {
            for number in 1..=COUNT {
                transmitter
                    .transmit(number as i32, &message(number))
                    .unwrap();
                if number % 4 == 0 {
                    thread::yield_now();
                }
            }
        });
    });
}

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "property tests take hours under Miri")]
    fn receiver_gets_each_message_once_or_reports_lap(
        calls in prop::collection::vec(prop::option::of(0_usize..33), 0..200),
    ) {
        let region = buffer(256);
        let mut transmitter = Transmitter::open(&region).unwrap();
        let mut receiver = Receiver::open(&region).unwrap();
        let mut sent = VecDeque::new();
        for (number, call) in calls.into_iter().enumerate() {
            if let Some(length) = call {
                let payload = vec![number as u8; length];
                transmitter.transmit(number as i32 + 1, &payload).unwrap();
                sent.push_back((number as i32 + 1, payload));
                continue;
            }
            match receive(&mut receiver) {
                Ok(message) => prop_assert_eq!(sent.pop_front(), message),
                Err(error) => {
                    let is_lapped = matches!(error, ReceiveError::Lapped { behind: 257.. });
                    prop_assert!(is_lapped, "{}", error);
                    sent.drain(..sent.len() - 1);
                }
            }
        }
    }

    /// Otherwise permanent damage would keep a client busy and cause endless errors.
    #[test]
    #[cfg_attr(miri, ignore = "property tests take hours under Miri")]
    fn damaged_positions_do_not_cause_endless_records(
        positions in prop::array::uniform3(prop_oneof![any::<i64>(), -300_i64..300, any::<i32>().prop_map(|high| i64::from(high) << 32)]),
    ) {
        let region = buffer(128);
        let mut transmitter = Transmitter::open(&region).unwrap();
        let mut receiver = Receiver::open(&region).unwrap();
        for number in 0..5 {
            transmitter.transmit(1, &[number; 11]).unwrap();
        }
        for (field, position) in [INTENT, TAIL, LATEST].into_iter().zip(positions) {
            set_trailer(&region, field, position);
        }
        let calls = (0..40).take_while(|_| receive(&mut receiver) != Ok(None)).count();
        prop_assert!(calls < 40);
        // The receiver resynchronises within one pass of the buffer.
        for _ in 0..10 {
            transmitter.transmit(1, &[1; 9]).unwrap();
            let _ = receive(&mut receiver);
        }
        while receive(&mut receiver) != Ok(None) {}
        transmitter.transmit(2, b"intact").unwrap();
        prop_assert_eq!(Ok(Some((2, b"intact".to_vec()))), receive(&mut receiver));
    }

    /// Under AddressSanitizer this also checks that nothing outside the buffer is accessed.
    #[test]
    #[cfg_attr(miri, ignore = "property tests take hours under Miri")]
    fn receiver_recovers_after_arbitrary_writes(
        damage in prop::collection::vec((0_usize..35, prop_oneof![any::<i32>(), -2..40]), 0..60),
        misaligned in any::<bool>(),
    ) {
        let region = buffer(128);
        let mut transmitter = Transmitter::open(&region).unwrap();
        let mut receiver = Receiver::open(&region).unwrap();
        for (number, (index, value)) in damage.into_iter().enumerate() {
            transmitter.transmit(1, &vec![1; number % 17]).unwrap();
            if index < 32 {
                region.atomic_i32(index * 4).store(value, Ordering::Relaxed);
            } else {
                let value = if misaligned { i64::from(value) } else { i64::from(value) * 8 };
                set_trailer(&region, (index - 32) * 8, value);
            }
            let _ = receive(&mut receiver).map(|message| message.map(|(_, payload)| assert!(payload.len() <= 16)));
        }
        // Remaining damage is overwritten within one pass, and the receiver resynchronises.
        for _ in 0..20 {
            transmitter.transmit(1, &[1; 9]).unwrap();
            let _ = receive(&mut receiver);
        }
        while receive(&mut receiver) != Ok(None) {}
        transmitter.transmit(2, b"intact").unwrap();
        prop_assert_eq!(Ok(Some((2, b"intact".to_vec()))), receive(&mut receiver));
    }
}
