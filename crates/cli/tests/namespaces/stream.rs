//! Numbered messages: offered in order, and looked at one by one as they arrive.

use taran::{Publication, Subscription};

use crate::driven::wait_until;

/// Bytes of a message.
pub(crate) const LENGTH: usize = 1000;

/// The writing end of a stream.
pub(crate) struct Writer {
    pub(crate) publication: Publication,
    next: u64,
}

/// The reading end of a stream.
pub(crate) struct Reader {
    pub(crate) subscription: Subscription,
    next: u64,
}

/// Message `number`: its number, then bytes that depend on it.
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

    /// Takes what is there; each message has to be the next one.
    fn take(&mut self) {
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

/// Writes `count` more messages and reads until each reader has all of them.
pub(crate) fn carry(writer: &mut Writer, readers: &mut [&mut Reader], count: u64) {
    let end = writer.next + count;
    wait_until("everybody has all messages", || {
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
            reader.take();
        }
        writer.next == end && readers.iter().all(|reader| reader.next == end)
    });
}
