// SPDX-License-Identifier: Apache-2.0
//! The queue between two agents.

use std::sync::Arc;

use loom::thread;
use taran_core::queue::spsc;

use super::explore;

#[test]
fn values_arrive_once_and_in_order_through_reused_slots() {
    explore(4, || {
        let (mut sender, mut receiver) = spsc(2);
        let sending = thread::spawn(move || {
            let mut sent = 0;
            for value in 1..=4 {
                // Full is allowed; the slots of received values must be free for the next ones.
                if sender.try_send(Box::new(value)).is_err() {
                    break;
                }
                sent = value;
            }
            sent
        });
        let mut last = 0;
        for _ in 0..3 {
            if let Some(value) = receiver.try_recv() {
                last += 1;
                assert_eq!(last, *value);
            }
        }
        let sent = sending.join().unwrap();
        while let Some(value) = receiver.try_recv() {
            last += 1;
            assert_eq!(last, *value);
        }
        assert_eq!(sent, last);
    });
}

#[test]
fn remaining_values_are_dropped_once() {
    explore(4, || {
        let token = Arc::new(());
        let (mut sender, mut receiver) = spsc(4);
        let sent = Arc::clone(&token);
        let sending = thread::spawn(move || {
            for _ in 0..3 {
                sender.try_send(Arc::clone(&sent)).unwrap();
            }
        });
        drop(receiver.try_recv());
        drop(receiver);
        sending.join().unwrap();
        assert_eq!(1, Arc::strong_count(&token));
    });
}
