// SPDX-License-Identifier: Apache-2.0
//! The broadcast buffer: a transmitter that never waits, and receivers that copy records which may be overwritten.

use loom::thread;
use taran_core::{
    broadcast::{ReceiveError, Receiver, TRAILER_LENGTH, Transmitter},
    memory::Region,
};

use super::explore;

fn buffer(capacity: usize) -> (Transmitter, Receiver) {
    let region = Region::anonymous(capacity + TRAILER_LENGTH).unwrap();
    (
        Transmitter::open(&region).unwrap(),
        Receiver::open(&region).unwrap(),
    )
}

fn payload(type_id: i32) -> [u8; 4] {
    [type_id as u8; 4]
}

/// Results of some receive calls: message types in order, and the number of times the receiver was lapped.
fn receive(receiver: &mut Receiver, calls: usize, last: &mut i32) -> usize {
    let mut lapped = 0;
    for _ in 0..calls {
        let received = receiver.receive(|type_id, bytes| {
            assert_eq!(payload(type_id), bytes, "a mixture of two messages");
            assert!(type_id > *last, "{type_id} after {last}");
            *last = type_id;
        });
        match received {
            Ok(_) => {}
            Err(ReceiveError::Lapped { .. }) => lapped += 1,
            Err(error) => panic!("{error}"),
        }
    }
    lapped
}

/// Transmits while a receiver receives. Afterwards the receiver gets the last message; all messages if it was never lapped.
fn transmit_and_receive(preemptions: usize, before: i32, messages: i32) {
    explore(preemptions, move || {
        let (mut transmitter, mut receiver) = buffer(32);
        let mut send =
            move |type_id: i32| transmitter.transmit(type_id, &payload(type_id)).unwrap();
        (1..=before).for_each(&mut send);
        let transmitting = thread::spawn(move || (before + 1..=messages).for_each(send));
        let mut last = 0;
        let lapped = receive(&mut receiver, 2, &mut last);
        transmitting.join().unwrap();
        receive(&mut receiver, 4, &mut last);
        assert_eq!(messages, last);
        assert!(lapped <= 2);
    });
}

#[test]
fn receiver_that_keeps_up_gets_every_message() {
    explore(4, || {
        let (mut transmitter, mut receiver) = buffer(32);
        let transmitting = thread::spawn(move || {
            for type_id in 1..=2 {
                transmitter.transmit(type_id, &payload(type_id)).unwrap();
            }
        });
        let mut last = 0;
        assert_eq!(0, receive(&mut receiver, 2, &mut last));
        transmitting.join().unwrap();
        assert_eq!(0, receive(&mut receiver, 2, &mut last));
        assert_eq!(2, last);
    });
}

#[test]
fn record_overwritten_during_copy_is_not_delivered() {
    transmit_and_receive(5, 2, 3);
}

#[test]
fn receiver_lapped_repeatedly_gets_last_message() {
    transmit_and_receive(3, 2, 4);
}

#[test]
fn padding_overwritten_during_read_is_detected() {
    overwrite_padding(5);
}

#[test]
fn padding_and_next_record_overwritten_during_read_are_detected() {
    overwrite_padding(6);
}

fn overwrite_padding(messages: i32) {
    explore(4, move || {
        let (mut transmitter, mut receiver) = buffer(32);
        // 8 and 16 bytes, then 8 of padding and 16 at the beginning, then 8 right before the padding and 8 over it.
        let bytes = |type_id: i32| vec![type_id as u8; [0, 0, 4, 4, 0, 0, 4][type_id as usize]];
        let mut send = move |type_id| transmitter.transmit(type_id, &bytes(type_id)).unwrap();
        let mut last = 0;
        let mut receive = move || {
            let received = receiver.receive(|type_id, payload| {
                assert_eq!(bytes(type_id), payload);
                assert!(type_id > last, "{type_id} after {last}");
                last = type_id;
            });
            assert!(
                matches!(received, Ok(_) | Err(ReceiveError::Lapped { .. })),
                "{received:?}"
            );
            last
        };
        (1..=2).for_each(&mut send);
        assert_eq!(1, receive());
        assert_eq!(2, receive());
        send(3);
        let transmitting = thread::spawn(move || (4..=messages).for_each(send));
        receive();
        transmitting.join().unwrap();
        while receive() < messages {}
    });
}
