//! What has arrived, as data.

use std::net::{Ipv4Addr, SocketAddr};

/// Bytes of a slot: the largest UDP datagram, and the longest train that the kernel coalesces.
const SLOT_LENGTH: usize = 65_536;

/// Distance of slots. The extra lines keep the starts of slots, where headers are, out of the same cache sets.
const SLOT_PITCH: usize = SLOT_LENGTH + 5 * 64;

/// Buffers for arriving datagrams, allocated once, and what each holds.
///
/// A slot holds a [`DatagramRun`]: one datagram, or several of one source that arrived together. Readers who do not care go
/// through [`datagrams`](Self::datagrams), which cuts trains up.
#[derive(Debug)]
pub struct ReceiveBatch {
    memory: Box<[u8]>,
    slots: usize,
    /// How many of them may be filled.
    open: usize,
    filled: Vec<Received>,
}

/// What a backend put into a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Who sent it.
    pub source: SocketAddr,
    /// Bytes in the slot.
    pub length: usize,
    /// Length of each datagram but the last, which may be shorter. Equal to `length` for a lone datagram.
    pub stride: usize,
    /// When it arrived, in nanoseconds since 1970, where the transport was asked to say so.
    pub timestamp_ns: Option<i64>,
}

/// Datagrams of one source that lie back to back.
#[derive(Clone, Copy, Debug)]
pub struct DatagramRun<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// The bytes of all datagrams.
    pub payload: &'a [u8],
    /// Length of each datagram but the last, which may be shorter; never zero.
    pub stride: usize,
    /// When it arrived, in nanoseconds since 1970, where the transport was asked to say so.
    pub timestamp_ns: Option<i64>,
}

/// One datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// Its bytes.
    pub payload: &'a [u8],
    /// When it arrived, in nanoseconds since 1970, where the transport was asked to say so.
    pub timestamp_ns: Option<i64>,
}

impl<'a> DatagramRun<'a> {
    /// The datagrams of the train in order. An empty datagram is a train of one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let empty = self.payload.is_empty().then_some(self.payload);
        empty.into_iter().chain(self.payload.chunks(self.stride))
    }

    /// The number of datagrams.
    #[must_use]
    pub fn count(&self) -> usize {
        self.payload.len().div_ceil(self.stride).max(1)
    }
}

impl ReceiveBatch {
    /// A batch of `slots` (at least one) slots of 64 KiB. Memory that is never received into is never touched.
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

    /// The number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// True if nothing has arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.filled.is_empty()
    }

    /// The number of datagrams that arrived.
    #[must_use]
    pub fn datagram_count(&self) -> usize {
        self.datagram_runs().map(|train| train.count()).sum()
    }

    /// The number of bytes that arrived.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.filled.iter().map(|received| received.length).sum()
    }

    /// What arrived, slot by slot.
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

    /// What arrived, datagram by datagram.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.datagram_runs().flat_map(|train| {
            train.datagrams().map(move |payload| Datagram {
                source: train.source,
                payload,
                timestamp_ns: train.timestamp_ns,
            })
        })
    }

    /// Forgets what arrived.
    pub fn clear(&mut self) {
        self.filled.clear();
    }

    /// Forgets what arrived, and lets at most so many slots (one at least) be filled until this is called again.
    pub fn clear_to(&mut self, slots: usize) {
        self.clear();
        self.open = slots.clamp(1, self.slots);
    }

    /// True if no slot is free: more may have arrived.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled.len() >= self.open
    }

    /// For backends: the free slots in the order in which [`commit`](Self::commit) takes them.
    pub fn free_slots(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let used = self.filled.len() * SLOT_PITCH;
        let end = used.max(self.open * SLOT_PITCH);
        self.memory[used..end]
            .chunks_exact_mut(SLOT_PITCH)
            .map(|slot| &mut slot[..SLOT_LENGTH])
    }

    /// For backends: the next free slot now holds what `received` says. Ignored when no slot is free.
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

    /// Lends each datagram for writing, with the time of its arrival.
    pub fn for_each_mut(&mut self, mut act: impl FnMut(&mut [u8], Option<i64>)) {
        let slots = self.memory.chunks_exact_mut(SLOT_PITCH);
        for (received, slot) in self.filled.iter().zip(slots) {
            let stride = received.stride.max(1);
            for datagram in slot[..received.length].chunks_mut(stride) {
                act(datagram, received.timestamp_ns);
            }
        }
    }

    /// For decorators: keeps the datagrams that `keep` approves of, in their order, and forgets the others.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let mut kept = 0;
        for index in 0..self.filled.len() {
            let mut received = self.filled[index];
            let start = index * SLOT_PITCH;
            let stride = received.stride.max(1);
            let is_lone_and_empty = received.length == 0;
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
            if written == 0 && !(is_lone_and_empty && keep(&[])) {
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

    /// For backends that have their own buffers: copies one datagram (cut off at 64 KiB) into the next free slot.
    /// False if no slot is free.
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

    /// What was received in two pieces, elsewhere, goes into the next free slot after all. False if no slot is free.
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

    /// Like [`push`](Self::push), but appends to the train in the last slot where the datagram fits in: same source, same
    /// timestamp, not longer than the train's others, and no short one before it.
    pub fn push_coalesced(
        &mut self,
        source: SocketAddr,
        timestamp_ns: Option<i64>,
        datagram: &[u8],
    ) -> bool {
        let last_slot = self.filled.len().saturating_sub(1) * SLOT_PITCH;
        if let Some(last) = self.filled.last_mut()
            && last.source == source
            && last.timestamp_ns == timestamp_ns
            && last.stride > 0
            && last.length % last.stride == 0
            && (1..=last.stride).contains(&datagram.len())
            && last.length + datagram.len() <= SLOT_LENGTH
        {
            let start = last_slot + last.length;
            self.memory[start..start + datagram.len()].copy_from_slice(datagram);
            last.length += datagram.len();
            return true;
        }
        self.push(source, timestamp_ns, datagram)
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
    fn trains_are_cut_into_datagrams() {
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
    fn datagrams_coalesce_until_a_short_one_or_another_source() {
        let mut batch = ReceiveBatch::new(4);
        for (port, length) in [(1, 8), (1, 8), (1, 3), (1, 3), (2, 3), (2, 4)] {
            assert!(batch.push_coalesced(source(port), None, &[0; 8][..length]));
        }
        assert_eq!(lengths(&batch), [8, 8, 3, 3, 3, 4]);
        assert_eq!(
            batch
                .datagram_runs()
                .map(|train| train.payload.len())
                .collect::<Vec<_>>(),
            [19, 3, 3, 4]
        );
    }

    #[test]
    fn what_is_not_kept_leaves_no_trace() {
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
    fn datagrams_can_be_written_one_by_one() {
        let mut batch = ReceiveBatch::new(4);
        for (port, payload) in [(1, "aaaa"), (1, "bb"), (2, "cccc")] {
            assert!(batch.push_coalesced(source(port), Some(port.into()), payload.as_bytes()));
        }
        batch.for_each_mut(|datagram, time| datagram[1] = time.unwrap() as u8);
        let seen: Vec<&[u8]> = batch.datagrams().map(|datagram| datagram.payload).collect();
        assert_eq!(seen, [&b"a\x01aa"[..], b"b\x01", b"c\x02cc"]);
    }

    #[test]
    fn a_train_never_outgrows_its_slot() {
        let mut batch = ReceiveBatch::new(2);
        let datagram = vec![7; 40_000];
        assert!(batch.push_coalesced(source(1), None, &datagram));
        assert!(batch.push_coalesced(source(1), None, &datagram));
        assert!(!batch.push_coalesced(source(1), None, &datagram));
        assert_eq!(lengths(&batch), [40_000, 40_000]);
    }
}
