// SPDX-License-Identifier: Apache-2.0
//! The stream that the inputs must not disturb.

use taran::{OfferError, Publication, Subscription};

use super::DriverFixture;

/// Longest message: two datagrams.
const LENGTH_MAX: usize = 2000;

/// A publication and a subscription that exchange numbered messages.
#[derive(Debug, Default)]
pub(super) struct GoodStream {
    ends: Option<(Publication, Subscription)>,
    offered: u64,
    received: u64,
    partial: Vec<u8>,
}

impl GoodStream {
    pub(super) fn new(publication: Publication, subscription: Subscription) -> Self {
        Self {
            ends: Some((publication, subscription)),
            ..Self::default()
        }
    }

    /// Offers the next message.
    pub(super) fn offer(&mut self, driver: &mut DriverFixture) {
        let (publication, _) = self.ends.as_ref().expect("the stream was created");
        let message = message(self.offered);
        for _ in 0..200 {
            match publication.offer(&message) {
                Ok(_) => {
                    self.offered += 1;
                    return;
                }
                Err(OfferError::Closed) => panic!("the good publication was closed"),
                Err(_) => driver.step(std::time::Duration::from_millis(1)),
            }
        }
        panic!("the good publication accepts no message: {self:?}");
    }

    /// Polls the subscription. Returns true if all offered messages were received.
    pub(super) fn take(&mut self) -> bool {
        let (_, subscription) = self.ends.as_mut().expect("the stream was created");
        let polled = subscription.poll(
            |part, header| {
                self.partial.extend_from_slice(part);
                if header.is_end() {
                    assert_eq!(
                        self.partial,
                        message(self.received),
                        "message {}",
                        self.received
                    );
                    self.received += 1;
                    self.partial.clear();
                }
            },
            16,
        );
        assert!(polled.is_ok());
        assert!(self.received <= self.offered);
        self.received == self.offered
    }
}

fn message(number: u64) -> Vec<u8> {
    let length = 8 + (number as usize * 37) % (LENGTH_MAX - 8);
    let mut message = number.to_le_bytes().to_vec();
    message.resize(length, number as u8);
    message
}
