//! How a batch of transmits becomes messages for the kernel.

use std::net::SocketAddr;

use crate::Transmit;

/// Segments of a train per message. Kernels before 6.9 stop at 64, later ones at 128.
const MAX_SEGMENTS: usize = 64;

/// Bytes of a message: the largest UDP payload over IPv4.
const MAX_MESSAGE_LENGTH: usize = 65_507;

/// What the kernel is trusted to segment; shrinks when it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Longer segments are sent one by one: the route's MTU does not allow them. Zero: the kernel segments nothing.
    max_segment_size: usize,
}

/// One message for the kernel: a datagram, or a train that it segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) destination: Option<SocketAddr>,
    pub(super) payload: &'a [u8],
    /// Present if the kernel is to segment.
    pub(super) segment_size: Option<u16>,
}

/// A place in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    batch: &'a [Transmit<'a>],
    /// Bytes of the first transmit that are done.
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(batch: &'a [Transmit<'a>]) -> Self {
        Self { batch, offset: 0 }
    }

    /// Takes the next message, or `None` at the end of the batch.
    pub(super) fn next(&mut self, cut: Cut) -> Option<Message<'a>> {
        loop {
            let (transmit, following) = self.batch.split_first()?;
            let rest = transmit.payload.get(self.offset..).unwrap_or_default();
            if rest.is_empty() {
                (self.batch, self.offset) = (following, 0);
                continue;
            }
            let stride = transmit.stride();
            let length = (stride * cut.segments(stride)).min(rest.len());
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

impl Cut {
    /// Segments whatever a message can hold.
    pub(super) const FULL: Self = Self {
        max_segment_size: MAX_MESSAGE_LENGTH,
    };

    /// Segments nothing.
    pub(super) const PLAIN: Self = Self {
        max_segment_size: 0,
    };

    /// What to begin with on another route.
    pub(super) fn renewed(self) -> Self {
        if self == Self::PLAIN {
            self
        } else {
            Self::FULL
        }
    }

    /// The number of datagrams of that size that may go into one message.
    fn segments(self, segment_size: usize) -> usize {
        if segment_size > self.max_segment_size {
            return 1;
        }
        (MAX_MESSAGE_LENGTH / segment_size).clamp(1, MAX_SEGMENTS)
    }

    /// The most datagrams that may go into one message.
    pub(super) fn max_segments(self) -> usize {
        if self.max_segment_size == 0 {
            1
        } else {
            MAX_SEGMENTS
        }
    }

    /// What is left after the kernel refused segments of that size with error number `error`; `None` if the error has
    /// nothing to do with segmentation.
    pub(super) fn after_refusal(self, segment_size: u16, error: i32) -> Option<Self> {
        match error {
            // Segment and headers exceed the MTU of the route (EINVAL in older kernels).
            libc::EMSGSIZE | libc::EINVAL => Some(Self {
                max_segment_size: self.max_segment_size.min(usize::from(segment_size) - 1),
            }),
            // The device cannot compute checksums, or the kernel does not know the request.
            libc::EIO | libc::EOPNOTSUPP | libc::ENOPROTOOPT => Some(Self::PLAIN),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (length, segment size) of each message.
    fn messages(batch: &[Transmit<'_>], cut: Cut) -> Vec<(usize, Option<u16>)> {
        let mut cursor = Cursor::new(batch);
        std::iter::from_fn(|| cursor.next(cut))
            .map(|message| (message.payload.len(), message.segment_size))
            .collect()
    }

    #[test]
    fn a_train_becomes_as_few_messages_as_the_kernel_allows() {
        let payload = vec![0; 100 * 1_408 + 32];
        let train = Transmit::connected(&payload).segmented(1_408);
        let full = 46 * 1_408;
        assert_eq!(
            messages(&[train], Cut::FULL),
            [
                (full, Some(1_408)),
                (full, Some(1_408)),
                (8 * 1_408 + 32, Some(1_408))
            ]
        );
        assert_eq!(messages(&[train], Cut::PLAIN).len(), 101);
        assert_eq!(
            messages(&[train.segmented(32)], Cut::FULL)[0],
            (64 * 32, Some(32))
        );
    }

    #[test]
    fn lone_datagrams_are_not_segmented() {
        let payload = vec![0; 65_507];
        let batch = [
            Transmit::connected(&payload),
            Transmit::connected(&[]),
            Transmit::connected(&payload[..10]).segmented(0),
            Transmit::connected(&payload[..10]).segmented(9),
        ];
        assert_eq!(
            messages(&batch, Cut::FULL),
            [(65_507, None), (10, None), (10, Some(9))]
        );
    }

    #[test]
    fn a_refused_size_is_sent_plainly_and_a_smaller_one_is_not() {
        let payload = vec![0; 16_384];
        let cut = Cut::FULL.after_refusal(8_192, libc::EMSGSIZE).unwrap();
        assert_eq!(
            messages(&[Transmit::connected(&payload).segmented(8_192)], cut),
            [(8_192, None); 2]
        );
        assert_eq!(
            messages(&[Transmit::connected(&payload).segmented(8_191)], cut)[0],
            (16_384, Some(8_191))
        );
        assert_eq!(cut.after_refusal(1_408, libc::EIO), Some(Cut::PLAIN));
        assert_eq!(cut.after_refusal(1_408, libc::EPERM), None);
        assert_eq!(Cut::PLAIN.max_segments(), 1);
    }
}
