// SPDX-License-Identifier: Apache-2.0
//! Splitting a batch of transmits into messages for the kernel.

use std::net::SocketAddr;

use crate::Transmit;

/// Segments per message. The limit is 64 in kernels before 6.9 and 128 in later ones.
const MAX_SEGMENTS: usize = 64;

/// Bytes of a message: the largest UDP payload over IPv4.
const MAX_MESSAGE_LENGTH: usize = 65_507;

/// Limit of the segment size for which the kernel performs the segmentation; reduced when the kernel rejects a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentLimiter {
    /// Longer segments are sent as single datagrams, because the route's MTU does not allow them. Zero disables
    /// segmentation.
    max_segment_size: usize,
}

/// One message for the kernel: a datagram, or a GSO batch that the kernel segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) destination: Option<SocketAddr>,
    pub(super) payload: &'a [u8],
    /// Present if the kernel segments the payload.
    pub(super) segment_size: Option<u16>,
}

/// A position in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchCursor<'a> {
    batch: &'a [Transmit<'a>],
    /// Bytes of the first transmit before the position.
    offset: usize,
}

impl<'a> BatchCursor<'a> {
    pub(super) fn new(batch: &'a [Transmit<'a>]) -> Self {
        Self { batch, offset: 0 }
    }

    /// Returns the next message and advances, or `None` at the end of the batch.
    pub(super) fn next(&mut self, limiter: SegmentLimiter) -> Option<Message<'a>> {
        loop {
            let (transmit, following) = self.batch.split_first()?;
            let rest = transmit.payload.get(self.offset..).unwrap_or_default();
            if rest.is_empty() {
                (self.batch, self.offset) = (following, 0);
                continue;
            }
            let stride = transmit.stride();
            let length = (stride * limiter.segments_per_message(stride)).min(rest.len());
            self.offset += length;
            return Some(Message {
                destination: transmit.destination,
                payload: &rest[..length],
                segment_size: if length > stride {
                    u16::try_from(stride).ok()
                } else {
                    None
                },
            });
        }
    }
}

impl SegmentLimiter {
    /// Segmentation of every size that fits a message.
    pub(super) const FULL: Self = Self {
        max_segment_size: MAX_MESSAGE_LENGTH,
    };

    /// No segmentation.
    pub(super) const DISABLED: Self = Self {
        max_segment_size: 0,
    };

    /// Returns the initial limit for another route.
    pub(super) fn reset_for_route(self) -> Self {
        if self == Self::DISABLED {
            self
        } else {
            Self::FULL
        }
    }

    /// Returns the number of datagrams of that size that one message may hold.
    fn segments_per_message(self, segment_size: usize) -> usize {
        if segment_size > self.max_segment_size {
            return 1;
        }
        (MAX_MESSAGE_LENGTH / segment_size).clamp(1, MAX_SEGMENTS)
    }

    /// Returns the largest number of datagrams that one message may hold.
    pub(super) fn max_segments(self) -> usize {
        if self.max_segment_size == 0 {
            1
        } else {
            MAX_SEGMENTS
        }
    }

    /// Returns the limit after the kernel rejected segments of that size with error number `error`; `None` if the error
    /// is unrelated to segmentation.
    pub(super) fn after_rejection(self, segment_size: u16, error: i32) -> Option<Self> {
        match error {
            // Segment and headers exceed the MTU of the route (EINVAL in older kernels).
            libc::EMSGSIZE | libc::EINVAL => Some(Self {
                max_segment_size: self.max_segment_size.min(usize::from(segment_size) - 1),
            }),
            // The device cannot compute checksums, or the kernel does not know the request.
            libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT => Some(Self::DISABLED),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (length, segment size) of each message.
    fn messages(batch: &[Transmit<'_>], limiter: SegmentLimiter) -> Vec<(usize, Option<u16>)> {
        let mut cursor = BatchCursor::new(batch);
        std::iter::from_fn(|| cursor.next(limiter))
            .map(|message| (message.payload.len(), message.segment_size))
            .collect()
    }

    #[test]
    fn batch_becomes_as_few_messages_as_the_kernel_allows() {
        let payload = vec![0; 100 * 1_408 + 32];
        let run = Transmit::connected(&payload).segmented(1_408);
        let full = 46 * 1_408;
        assert_eq!(
            messages(&[run], SegmentLimiter::FULL),
            [
                (full, Some(1_408)),
                (full, Some(1_408)),
                (8 * 1_408 + 32, Some(1_408))
            ]
        );
        assert_eq!(messages(&[run], SegmentLimiter::DISABLED).len(), 101);
        assert_eq!(
            messages(&[run.segmented(32)], SegmentLimiter::FULL)[0],
            (64 * 32, Some(32))
        );
    }

    #[test]
    fn single_datagrams_are_not_segmented() {
        let payload = vec![0; 65_507];
        let batch = [
            Transmit::connected(&payload),
            Transmit::connected(&[]),
            Transmit::connected(&payload[..10]).segmented(0),
            Transmit::connected(&payload[..10]).segmented(9),
        ];
        assert_eq!(
            messages(&batch, SegmentLimiter::FULL),
            [(65_507, None), (10, None), (10, Some(9))]
        );
    }

    #[test]
    fn rejected_size_is_sent_unsegmented_and_smaller_ones_segmented() {
        let payload = vec![0; 16_384];
        let limiter = SegmentLimiter::FULL
            .after_rejection(8_192, libc::EMSGSIZE)
            .unwrap();
        assert_eq!(
            messages(&[Transmit::connected(&payload).segmented(8_192)], limiter),
            [(8_192, None); 2]
        );
        assert_eq!(
            messages(&[Transmit::connected(&payload).segmented(8_191)], limiter)[0],
            (16_384, Some(8_191))
        );
        assert_eq!(
            limiter.after_rejection(1_408, libc::EIO),
            Some(SegmentLimiter::DISABLED)
        );
        assert_eq!(limiter.after_rejection(1_408, libc::EPERM), None);
        assert_eq!(SegmentLimiter::DISABLED.max_segments(), 1);
    }
}
