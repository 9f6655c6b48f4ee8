//! Datagrams to send, as data.

use std::net::SocketAddr;

/// Bytes to send to one destination: one datagram, or consecutive datagrams of equal length (a GSO batch).
///
/// The payload may be of any length; backends split it into messages that one of their calls can carry.
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
        match self.segment_size {
            0 => self.payload.len().max(1),
            size => size.min(self.payload.len()).max(1),
        }
    }

    /// Returns the datagrams in order.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        self.payload.chunks(self.stride())
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
}
