// SPDX-License-Identifier: Apache-2.0
//! Streams of numbered messages whose order and contents are checked.

use taran::{Publication, Subscription};

use crate::machine_driver::wait_until;

/// Length of a message in bytes.
pub(crate) const LENGTH: usize = 1000;

/// The publishing side of a stream.
pub(crate) struct Writer {
    pub(crate) publication: Publication,
    next: u64,
}

/// The subscribing side of a stream.
pub(crate) struct Reader {
    pub(crate) subscription: Subscription,
    next: u64,
}

/// Returns message `number`: the number, then bytes derived from it.
fn message(number: u64) -> [u8; LENGTH] {
    let mut bytes = [number as u8; LENGTH];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

impl Writer {
    pub(crate) fn new(publication: Publication) -> Writer {
        Writer {
            publication,
            next: 0,
        }
    }

    pub(crate) fn await_connected(&self) {
        wait_until("the publication is connected", || {
            self.publication.is_connected()
        });
    }
}

impl Reader {
    pub(crate) fn new(subscription: Subscription) -> Reader {
        Reader {
            subscription,
            next: 0,
        }
    }

    /// Polls, and checks that each message is the next one.
    fn poll(&mut self) {
        let next = &mut self.next;
        let taken = self.subscription.poll(
            |bytes, _| {
                assert_eq!(bytes, message(*next), "message {next}");
                *next += 1;
            },
            64,
        );
        taken.unwrap();
    }
}

/// Publishes `count` more messages and polls until each reader has received them.
pub(crate) fn exchange(writer: &mut Writer, readers: &mut [&mut Reader], count: u64) {
    let end = writer.next + count;
    wait_until("all subscribers have all messages", || {
        for _ in 0..64 {
            let is_taken = writer.next < end
                && match writer.publication.offer(&message(writer.next)) {
                    Ok(_) => true,
                    Err(error) => {
                        assert!(error.is_retryable(), "message {}: {error}", writer.next);
                        false
                    }
                };
            if !is_taken {
                break;
            }
            writer.next += 1;
        }
        for reader in readers.iter_mut() {
            reader.poll();
        }
        writer.next == end && readers.iter().all(|reader| reader.next == end)
    });
}
