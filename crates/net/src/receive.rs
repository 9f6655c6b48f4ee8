// SPDX-License-Identifier: Apache-2.0
//! Received datagrams, as data.

use std::net::{Ipv4Addr, SocketAddr};

/// Bytes of a slot: the largest UDP datagram, and the longest run that the kernel coalesces (GRO).
const SLOT_LENGTH: usize = 65_536;

/// Distance of slots in bytes. The extra cache lines keep the starts of slots, where the headers are, out of the same
/// cache sets.
const SLOT_PITCH: usize = SLOT_LENGTH + 5 * 64;

/// Receive buffers, allocated once, and the description of their contents.
///
/// A slot holds a [`DatagramRun`]: one datagram, or several of one source that the kernel coalesced (GRO).
/// [`datagrams`](Self::datagrams) iterates over single datagrams.
#[derive(Clone, Debug)]
pub struct ReceiveBatch {
    memory: Box<[u8]>,
    slots: usize,
    /// Number of slots that may be filled.
    open: usize,
    filled: Vec<Received>,
}

/// Description of a filled slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Address of the sender.
    pub source: SocketAddr,
    /// Bytes in the slot.
    pub length: usize,
    /// Length of each datagram but the last, which may be shorter. Equal to `length` for a single datagram.
    pub stride: usize,
    /// Arrival time in nanoseconds since 1970, if the transport was opened with receive timestamps.
    pub timestamp_ns: Option<i64>,
}

/// Consecutive datagrams of one source in one buffer, as the kernel coalesced them (GRO).
#[derive(Clone, Copy, Debug)]
pub struct DatagramRun<'a> {
    /// Address of the sender.
    pub source: SocketAddr,
    /// The bytes of all datagrams.
    pub payload: &'a [u8],
    /// Length of each datagram but the last, which may be shorter; never zero.
    pub stride: usize,
    /// Arrival time in nanoseconds since 1970, if the transport was opened with receive timestamps.
    pub timestamp_ns: Option<i64>,
}

/// One received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Address of the sender.
    pub source: SocketAddr,
    /// The bytes of the datagram.
    pub payload: &'a [u8],
    /// Arrival time in nanoseconds since 1970, if the transport was opened with receive timestamps.
    pub timestamp_ns: Option<i64>,
}

impl<'a> DatagramRun<'a> {
    /// Returns the datagrams of the run in order. An empty datagram is a run of one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let empty = self.payload.is_empty().then_some(self.payload);
        empty.into_iter().chain(self.payload.chunks(self.stride))
    }

    /// Returns the number of datagrams.
    #[must_use]
    pub fn count(&self) -> usize {
        self.payload.len().div_ceil(self.stride).max(1)
    }
}

impl ReceiveBatch {
    /// A batch of `slots` (at least one) slots of 64 KiB. The pages of slots that are never filled are never touched.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let slots = slots.max(1);
        Self {
            memory: vec![0; slots * SLOT_PITCH].into_boxed_slice(),
            slots,
            open: slots,
            filled: Vec::with_capacity(slots),
        }
    }

    /// Returns the number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Returns true if the batch holds no datagram.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    /// Returns the number of datagrams.
    #[must_use]
    pub fn datagram_count(&self) -> usize {
        self.datagram_runs().map(|run| run.count()).sum()
    }

    /// Returns the number of bytes of all datagrams.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.filled.iter().map(|received| received.length).sum()
    }

    /// Returns the filled slots in order.
    pub fn datagram_runs(&self) -> impl ExactSizeIterator<Item = DatagramRun<'_>> {
        let slots = self.memory.chunks_exact(SLOT_PITCH);
        self.filled
            .iter()
            .zip(slots)
            .map(|(received, slot)| DatagramRun {
                source: received.source,
                payload: &slot[..received.length],
                stride: received.stride.max(1),
                timestamp_ns: received.timestamp_ns,
            })
    }

    /// Returns the datagrams in order.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.datagram_runs().flat_map(|run| {
            run.datagrams().map(move |payload| Datagram {
                source: run.source,
                payload,
                timestamp_ns: run.timestamp_ns,
            })
        })
    }

    /// Clears the batch.
    pub fn clear(&mut self) {
        self.filled.clear();
    }

    /// Clears the batch, and limits the slots that may be filled to `slots` (at least one) until the next call of this
    /// method.
    pub fn clear_to(&mut self, slots: usize) {
        self.clear();
        self.open = slots.clamp(1, self.slots);
    }

    /// Returns true if no slot is free; more datagrams may be waiting in the transport.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled.len() >= self.open
    }

    /// For backends: returns the free slots in the order in which [`commit`](Self::commit) takes them.
    pub fn free_slots(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let used = self.filled.len() * SLOT_PITCH;
        let end = used.max(self.open * SLOT_PITCH);
        self.memory[used..end]
            .chunks_exact_mut(SLOT_PITCH)
            .map(|slot| &mut slot[..SLOT_LENGTH])
    }

    /// For backends: marks the next free slot as filled, as described by `received`. Ignored if no slot is free.
    pub fn commit(&mut self, received: Received) {
        debug_assert!(
            received.length <= SLOT_LENGTH,
            "a slot cannot hold {} bytes",
            received.length
        );
        if !self.is_full() {
            let length = received.length.min(SLOT_LENGTH);
            self.filled.push(Received { length, ..received });
        }
    }

    /// Calls `act` with each datagram, for writing, and its arrival time.
    pub fn for_each_mut(&mut self, mut act: impl FnMut(&mut [u8], Option<i64>)) {
        let slots = self.memory.chunks_exact_mut(SLOT_PITCH);
        for (received, slot) in self.filled.iter().zip(slots) {
            let stride = received.stride.max(1);
            for datagram in slot[..received.length].chunks_mut(stride) {
                act(datagram, received.timestamp_ns);
            }
        }
    }

    /// For decorators: keeps the datagrams for which `keep` returns true, in order, and removes the others.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let mut kept = 0;
        for index in 0..self.filled.len() {
            let mut received = self.filled[index];
            let start = index * SLOT_PITCH;
            let stride = received.stride.max(1);
            let is_empty_datagram = received.length == 0;
            let (mut read, mut written) = (0, 0);
            while read < received.length {
                let end = (read + stride).min(received.length);
                if keep(&self.memory[start + read..start + end]) {
                    self.memory
                        .copy_within(start + read..start + end, start + written);
                    written += end - read;
                }
                read = end;
            }
            if written == 0 && !(is_empty_datagram && keep(&[])) {
                continue;
            }
            received.length = written;
            received.stride = received.stride.min(written);
            self.memory
                .copy_within(start..start + written, kept * SLOT_PITCH);
            self.filled[kept] = received;
            kept += 1;
        }
        self.filled.truncate(kept);
    }

    /// For backends with their own buffers: copies one datagram (truncated at 64 KiB) into the next free slot. Returns
    /// false if no slot is free.
    pub fn push(&mut self, source: SocketAddr, timestamp_ns: Option<i64>, datagram: &[u8]) -> bool {
        let Some(slot) = self.free_slots().next() else {
            return false;
        };
        let length = datagram.len().min(SLOT_LENGTH);
        slot[..length].copy_from_slice(&datagram[..length]);
        self.filled.push(Received {
            source,
            length,
            stride: length,
            timestamp_ns,
        });
        true
    }

    /// Copies a datagram or run that was received in two parts
    /// ([`Transport::receive_parts`](crate::Transport::receive_parts)) into the next free slot. Returns false if no
    /// slot is free.
    pub fn push_parts(&mut self, received: Received, parts: [&[u8]; 2]) -> bool {
        let Some(slot) = self.free_slots().next() else {
            return false;
        };
        let mut end = 0;
        for part in parts {
            let part = &part[..part.len().min(SLOT_LENGTH - end)];
            slot[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
        self.filled.push(Received {
            length: end,
            ..received
        });
        true
    }

    /// As [`push`](Self::push), but appends to the run in the last slot if the datagram fits there: same source and
    /// timestamp, not longer than the other datagrams of the run, and no shorter datagram before it.
    pub fn push_coalesced(
        &mut self,
        source: SocketAddr,
        timestamp_ns: Option<i64>,
        datagram: &[u8],
    ) -> bool {
        let length = datagram.len().min(SLOT_LENGTH);
        self.push_coalesced_with(source, timestamp_ns, length, |room| {
            room.copy_from_slice(&datagram[..length]);
            true
        })
    }

    /// As [`push_coalesced`](Self::push_coalesced), for a datagram of `length` bytes (at most 64 KiB) that `write` writes
    /// into the slot: a layer opens a sealed datagram there, a backend verifies a checksum while it copies. If `write`
    /// returns false, the datagram is dropped. Returns false if no slot is free; `write` is not called then.
    pub fn push_coalesced_with(
        &mut self,
        source: SocketAddr,
        timestamp_ns: Option<i64>,
        length: usize,
        write: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        let length = length.min(SLOT_LENGTH);
        let last_slot = self.filled.len().saturating_sub(1) * SLOT_PITCH;
        if let Some(last) = self.filled.last_mut()
            && last.source == source
            && last.timestamp_ns == timestamp_ns
            && last.stride > 0
            && last.length % last.stride == 0
            && (1..=last.stride).contains(&length)
            && last.length + length <= SLOT_LENGTH
        {
            let start = last_slot + last.length;
            if write(&mut self.memory[start..start + length]) {
                last.length += length;
            }
            return true;
        }
        let Some(slot) = self.free_slots().next() else {
            return false;
        };
        if write(&mut slot[..length]) {
            self.filled.push(Received {
                source,
                length,
                stride: length,
                timestamp_ns,
            });
        }
        true
    }
}

impl Default for Received {
    fn default() -> Self {
        Self {
            source: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            length: 0,
            stride: 0,
            timestamp_ns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    fn lengths(batch: &ReceiveBatch) -> Vec<usize> {
        batch
            .datagrams()
            .map(|datagram| datagram.payload.len())
            .collect()
    }

    #[test]
    fn datagrams_iterates_over_the_segments_of_runs() {
        let mut batch = ReceiveBatch::new(2);
        batch.free_slots().next().unwrap()[..10].copy_from_slice(b"aaaabbbbcc");
        batch.commit(Received {
            source: source(1),
            length: 10,
            stride: 4,
            timestamp_ns: None,
        });
        assert!(batch.push(source(2), Some(7), b""));
        assert!(batch.is_full());
        assert!(!batch.push(source(3), None, b"x"));
        let seen: Vec<_> = batch
            .datagrams()
            .map(|d| (d.source.port(), d.payload.to_vec(), d.timestamp_ns))
            .collect();
        assert_eq!(
            seen,
            [
                (1, b"aaaa".to_vec(), None),
                (1, b"bbbb".to_vec(), None),
                (1, b"cc".to_vec(), None),
                (2, b"".to_vec(), Some(7))
            ]
        );
        assert_eq!((batch.datagram_count(), batch.bytes()), (4, 10));
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.free_slots().len(), 2);
    }

    #[test]
    fn push_coalesced_starts_a_new_slot_after_a_short_datagram_or_at_another_source() {
        let mut batch = ReceiveBatch::new(4);
        for (port, length) in [(1, 8), (1, 8), (1, 3), (1, 3), (2, 3), (2, 4)] {
            assert!(batch.push_coalesced(source(port), None, &[0; 8][..length]));
        }
        assert_eq!(lengths(&batch), [8, 8, 3, 3, 3, 4]);
        assert_eq!(
            batch
                .datagram_runs()
                .map(|run| run.payload.len())
                .collect::<Vec<_>>(),
            [19, 3, 3, 4]
        );
    }

    #[test]
    fn retain_removes_rejected_datagrams() {
        let mut batch = ReceiveBatch::new(4);
        for (port, payload) in [
            (1, "aaaa"),
            (1, "bbbb"),
            (1, "cc"),
            (2, ""),
            (3, "dddd"),
            (3, "e"),
        ] {
            assert!(batch.push_coalesced(source(port), None, payload.as_bytes()));
        }
        let mut seen = Vec::new();
        batch.retain(|datagram| {
            seen.push(datagram.to_vec());
            !datagram.starts_with(b"a") && !datagram.starts_with(b"d")
        });
        assert_eq!(seen, [&b"aaaa"[..], b"bbbb", b"cc", b"", b"dddd", b"e"]);
        let kept = |batch: &ReceiveBatch| -> Vec<(u16, Vec<u8>)> {
            let datagrams = batch.datagrams();
            datagrams
                .map(|d| (d.source.port(), d.payload.to_vec()))
                .collect()
        };
        assert_eq!(
            kept(&batch),
            [
                (1, b"bbbb".to_vec()),
                (1, b"cc".to_vec()),
                (2, b"".to_vec()),
                (3, b"e".to_vec())
            ]
        );
        batch.retain(|datagram| datagram == b"cc" || datagram == b"e");
        assert_eq!(kept(&batch), [(1, b"cc".to_vec()), (3, b"e".to_vec())]);
        assert_eq!(batch.free_slots().len(), 2);
        batch.retain(|_| false);
        assert!(batch.is_empty());
    }

    #[test]
    fn for_each_mut_visits_each_datagram() {
        let mut batch = ReceiveBatch::new(4);
        for (port, payload) in [(1, "aaaa"), (1, "bb"), (2, "cccc")] {
            assert!(batch.push_coalesced(source(port), Some(port.into()), payload.as_bytes()));
        }
        batch.for_each_mut(|datagram, time| datagram[1] = time.unwrap() as u8);
        let seen: Vec<&[u8]> = batch.datagrams().map(|datagram| datagram.payload).collect();
        assert_eq!(seen, [&b"a\x01aa"[..], b"b\x01", b"c\x02cc"]);
    }

    #[test]
    fn push_coalesced_with_rejected_datagram_leaves_nothing() {
        let mut batch = ReceiveBatch::new(2);
        let mut push = |length, byte: Option<u8>| {
            batch.push_coalesced_with(source(1), None, length, |room| {
                room.fill(byte.unwrap_or(0xff));
                byte.is_some()
            })
        };
        assert!(push(4, None), "rejected in a new slot");
        assert!(push(4, Some(1)));
        assert!(push(4, None), "rejected in the last slot");
        assert!(push(2, Some(2)));
        assert!(push(3, Some(3)));
        assert!(!push(4, None), "no slot is free");
        let seen: Vec<_> = batch.datagram_runs().map(|run| run.payload).collect();
        assert_eq!(seen, [&[1, 1, 1, 1, 2, 2][..], &[3, 3, 3]]);
    }

    #[test]
    fn push_coalesced_never_exceeds_the_slot() {
        let mut batch = ReceiveBatch::new(2);
        let datagram = vec![7; 40_000];
        assert!(batch.push_coalesced(source(1), None, &datagram));
        assert!(batch.push_coalesced(source(1), None, &datagram));
        assert!(!batch.push_coalesced(source(1), None, &datagram));
        assert_eq!(lengths(&batch), [40_000, 40_000]);
    }
}
