// SPDX-License-Identifier: Apache-2.0
//! Datagrams to send, as data.

use std::net::SocketAddr;

/// Bytes to send to one destination: one datagram, or consecutive datagrams of equal length (a GSO batch).
///
/// The payload may be of any length; backends split it into messages that one of their calls can carry.
///
/// Exhaustive, as the other descriptions of datagrams: layers and backends copy them field by field, and a field that one
/// of them left out would be lost.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The destination, or `None` for the peer that the transport is connected to.
    pub destination: Option<SocketAddr>,
    /// The bytes of all datagrams. Nothing is sent for an empty payload.
    pub payload: &'a [u8],
    /// Length of each datagram in bytes; the last may be shorter. If zero, or not less than the length of the payload,
    /// the payload is one datagram.
    pub segment_size: usize,
}

impl<'a> Transmit<'a> {
    /// One datagram to the connected peer.
    #[must_use]
    pub fn connected(payload: &'a [u8]) -> Self {
        Self {
            destination: None,
            payload,
            segment_size: payload.len(),
        }
    }

    /// One datagram to `destination`.
    #[must_use]
    pub fn to(destination: SocketAddr, payload: &'a [u8]) -> Self {
        Self {
            destination: Some(destination),
            payload,
            segment_size: payload.len(),
        }
    }

    /// Returns the same transmit, split into datagrams of `segment_size` bytes.
    #[must_use]
    pub fn segmented(self, segment_size: usize) -> Self {
        Self {
            segment_size,
            ..self
        }
    }

    /// Returns the length of each datagram but the last; never zero.
    #[must_use]
    pub fn stride(&self) -> usize {
        stride(self.payload.len(), self.segment_size)
    }

    /// For layers: returns the layout of these datagrams with `expansion` more bytes each.
    #[must_use]
    pub fn expanded(&self, expansion: usize) -> TransmitLayout {
        let stride = self.stride();
        TransmitLayout {
            destination: self.destination,
            length: self.payload.len() + self.payload.len().div_ceil(stride) * expansion,
            segment_size: stride + expansion,
        }
    }

    /// For layers: returns how many bytes of the payload are accepted if `accepted` bytes of
    /// [`expanded`](Self::expanded) are.
    #[must_use]
    pub fn accepted(&self, accepted: usize, expansion: usize) -> usize {
        let stride = self.stride();
        let datagrams = accepted.div_ceil(stride + expansion);
        (datagrams * stride).min(self.payload.len())
    }

    /// Returns the datagrams in order.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.payload.chunks(self.stride())
    }
}

fn stride(length: usize, segment_size: usize) -> usize {
    match segment_size {
        0 => length.max(1),
        size => size.min(length).max(1),
    }
}

/// Datagrams to write and send ([`Transport::send_with`](crate::Transport::send_with)): a [`Transmit`] whose bytes do
/// not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitLayout {
    /// The destination, or `None` for the peer that the transport is connected to.
    pub destination: Option<SocketAddr>,
    /// Bytes of all datagrams.
    pub length: usize,
    /// Length of each datagram in bytes; the last may be shorter. If zero, or not less than `length`, there is one
    /// datagram.
    pub segment_size: usize,
}

impl TransmitLayout {
    /// Returns the length of each datagram but the last; never zero.
    #[must_use]
    pub fn stride(&self) -> usize {
        stride(self.length, self.segment_size)
    }

    /// Returns the lengths of the datagrams in order.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = usize> + use<> {
        let (length, stride) = (self.length, self.stride());
        (0..length.div_ceil(stride)).map(move |index| stride.min(length - index * stride))
    }
}

/// Memory for datagrams on their way to a backend that lends none of its own
/// ([`Transport::send_with`](crate::Transport::send_with)). Holds the longest GSO batch. Pages that are never used are
/// never touched.
#[derive(Clone, Debug)]
pub struct TransmitScratch {
    memory: Box<[u8]>,
}

impl TransmitScratch {
    /// Bytes of the memory: no datagram is longer.
    pub const LENGTH: usize = 65_536;

    /// Allocates the memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            memory: vec![0; Self::LENGTH].into_boxed_slice(),
        }
    }

    /// Calls `write` for each datagram of `layout`, which must not be longer than the memory, and `send` with as many as
    /// the memory holds, until all are sent or `send` accepts less. Returns the number of accepted bytes.
    pub(crate) fn send<E>(
        &mut self,
        layout: TransmitLayout,
        write: &mut dyn FnMut(usize, &mut [u8]),
        mut send: impl FnMut(Transmit<'_>) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let stride = layout.stride();
        let capacity = self.memory.len() / stride * stride;
        let (mut accepted, mut index) = (0, 0);
        while accepted < layout.length {
            let piece = &mut self.memory[..capacity.min(layout.length - accepted)];
            for datagram in piece.chunks_mut(stride) {
                write(index, datagram);
                index += 1;
            }
            let transmit = Transmit {
                destination: layout.destination,
                payload: piece,
                segment_size: stride,
            };
            match send(transmit) {
                Ok(bytes) => {
                    accepted += bytes;
                    if bytes < transmit.payload.len() {
                        break;
                    }
                }
                Err(error) if accepted == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(accepted)
    }
}

impl Default for TransmitScratch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(length: usize, segment_size: usize) -> Vec<usize> {
        let payload = vec![0; length];
        let transmit = Transmit::connected(&payload).segmented(segment_size);
        transmit.datagrams().map(<[u8]>::len).collect()
    }

    #[test]
    fn datagrams_splits_the_payload_by_segment_size() {
        assert_eq!(lengths(10, 4), [4, 4, 2]);
        assert_eq!(lengths(8, 4), [4, 4]);
        assert_eq!(lengths(8, 8), [8]);
        assert_eq!(lengths(8, 9), [8]);
        assert_eq!(lengths(8, 0), [8]);
        assert_eq!(lengths(0, 0), [0; 0]);
    }

    #[test]
    fn expanded_layout_has_the_same_datagrams_with_more_bytes() {
        for (length, segment_size) in [(10, 4), (8, 4), (8, 0), (8, 9), (1, 1), (0, 0)] {
            let payload = vec![0; length];
            let transmit = Transmit::connected(&payload).segmented(segment_size);
            let layout = transmit.expanded(16);
            let expected: Vec<_> = transmit.datagrams().map(|plain| plain.len() + 16).collect();
            assert_eq!(layout.lengths().collect::<Vec<_>>(), expected);
            // Any number of whole datagrams.
            let (mut sealed, mut plain) = (0, 0);
            assert_eq!(transmit.accepted(sealed, 16), plain);
            for datagram in transmit.datagrams() {
                sealed += datagram.len() + 16;
                plain += datagram.len();
                assert_eq!(transmit.accepted(sealed, 16), plain);
            }
        }
    }

    /// Sends a layout of seven datagrams, of which each call of `send` gets three at most; returns the result, the
    /// written indices and the offered lengths.
    fn send_in_pieces(
        mut send: impl FnMut(usize) -> Result<usize, ()>,
    ) -> (Result<usize, ()>, Vec<usize>, Vec<usize>) {
        let layout = TransmitLayout {
            destination: None,
            length: 130_005,
            segment_size: 20_000,
        };
        let (mut written, mut offered) = (Vec::new(), Vec::new());
        let result = TransmitScratch::new().send(
            layout,
            &mut |index, datagram| {
                assert_eq!(Some(datagram.len()), layout.lengths().nth(index));
                written.push(index);
            },
            |transmit| {
                offered.push(transmit.payload.len());
                send(transmit.payload.len())
            },
        );
        (result, written, offered)
    }

    #[test]
    fn scratch_sends_long_layouts_in_pieces_of_whole_datagrams() {
        let (sent, written, offered) = send_in_pieces(Ok);
        assert_eq!(sent, Ok(130_005));
        assert_eq!(written, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(offered, [60_000, 60_000, 10_005]);
    }

    #[test]
    fn scratch_ends_at_a_short_send_or_an_error() {
        let (sent, written, _) = send_in_pieces(|length| Ok(length.min(20_000)));
        assert_eq!((sent, written), (Ok(20_000), vec![0, 1, 2]));
        let (sent, written, _) = send_in_pieces(|_| Err(()));
        assert_eq!((sent, written), (Err(()), vec![0, 1, 2]));
        let mut results = [Ok(60_000), Err(())].into_iter();
        let (sent, written, _) = send_in_pieces(|_| results.next().unwrap());
        assert_eq!((sent, written), (Ok(60_000), vec![0, 1, 2, 3, 4, 5]));
    }
}
