// SPDX-License-Identifier: Apache-2.0
//! Queue of ranges to retransmit. Each byte is sent at most once per pass over the queue.
//!
//! A NAK may be forged, so one request must not drop, delay or reject another. Adjacent and overlapping ranges are
//! merged. If there are too many, the two nearest are merged, including what lies between them. Ranges are served in
//! stream order from the end of the last one on, and then from the beginning: a range waits for at most twice the bytes
//! that may be retransmitted, however much is asked for in the meantime.

/// Range of the stream. It begins at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct StreamRange {
    pub(in super::super) position: i64,
    pub(in super::super) length: i64,
}

impl StreamRange {
    pub(super) fn end(&self) -> i64 {
        self.position + self.length
    }

    pub(super) fn contains(&self, position: i64) -> bool {
        (self.position..self.end()).contains(&position)
    }

    fn between(position: i64, end: i64) -> Self {
        Self {
            position,
            length: end - position,
        }
    }
}

/// Result of adding a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AddResult {
    /// All of it is queued already.
    Duplicate,
    /// Some of it was not queued yet.
    Added,
    /// As [`Added`](Self::Added), but the queue was full: ranges were merged, and more than was asked for will be sent.
    Coalesced,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    range: StreamRange,
    due_ns: i64,
    /// True if an earlier part of the range was sent.
    is_started: bool,
}

impl Pending {
    /// Returns a range that covers both.
    fn with(self, other: Self) -> Self {
        let (first, second) = if self.range.position <= other.range.position {
            (self, other)
        } else {
            (other, self)
        };
        let end = first.range.end().max(second.range.end());
        Self {
            range: StreamRange::between(first.range.position, end),
            due_ns: first.due_ns.min(second.due_ns),
            is_started: first.is_started,
        }
    }
}

/// Ranges to retransmit.
#[derive(Debug)]
pub(super) struct RetransmitQueue {
    /// In stream order. No range crosses the cursor.
    pending: Vec<Pending>,
    capacity: usize,
    /// Position that the current pass has reached; a frame begins there.
    cursor: i64,
    /// Bytes until the next pass begins, whatever is added in the meantime.
    pass_left: i64,
}

impl RetransmitQueue {
    /// Returns an empty queue. `capacity` is at least two, so that merging never extends a range across the cursor.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        debug_assert!(capacity >= 2);
        Self {
            pending: Vec::with_capacity(capacity + 1),
            capacity,
            cursor: i64::MIN,
            pass_left: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn add(&mut self, asked: StreamRange, due_ns: i64) -> AddResult {
        // What lies behind the cursor waits for the next pass, or a pass would never end.
        let cut = self.cursor.clamp(asked.position, asked.end());
        let parts = [
            StreamRange::between(asked.position, cut),
            StreamRange::between(cut, asked.end()),
        ];
        let parts = parts.into_iter().filter(|part| part.length > 0);
        let added = parts.map(|part| self.insert(part, due_ns));
        added.max().unwrap_or(AddResult::Duplicate)
    }

    /// Adds a range that lies on one side of the cursor.
    fn insert(&mut self, part: StreamRange, due_ns: i64) -> AddResult {
        let is_behind = part.position < self.cursor;
        let mut whole = Pending {
            range: part,
            due_ns,
            is_started: false,
        };
        let touches = |known: &StreamRange| {
            (known.position < self.cursor) == is_behind
                && known.position <= part.end()
                && part.position <= known.end()
        };
        let covers = |known: &StreamRange| {
            touches(known) && known.position <= part.position && part.end() <= known.end()
        };
        if let Some(known) = self.pending.iter_mut().find(|it| covers(&it.range)) {
            known.due_ns = known.due_ns.min(due_ns);
            return AddResult::Duplicate;
        }
        self.pending.retain(|known| {
            let is_merged = touches(&known.range);
            if is_merged {
                whole = whole.with(*known);
            }
            !is_merged
        });
        let start = whole.range.position;
        let place = self
            .pending
            .partition_point(|known| known.range.position < start);
        self.pending.insert(place, whole);
        if self.pending.len() <= self.capacity {
            return AddResult::Added;
        }
        self.merge_nearest();
        AddResult::Coalesced
    }

    fn merge_nearest(&mut self) {
        let is_behind = |pending: &Pending| pending.range.position < self.cursor;
        let pairs = self.pending.windows(2).enumerate();
        let nearest = pairs
            .filter(|(_, pair)| is_behind(&pair[0]) == is_behind(&pair[1]))
            .min_by_key(|(_, pair)| pair[1].range.position - pair[0].range.end());
        if let Some((first, _)) = nearest {
            let second = self.pending.remove(first + 1);
            self.pending[first] = self.pending[first].with(second);
        }
    }

    /// Returns the time at which the first of the ranges is due; `i64::MAX` without any.
    pub(super) fn first_due_ns(&self) -> i64 {
        let due = self.pending.iter().map(|pending| pending.due_ns);
        due.min().unwrap_or(i64::MAX)
    }

    /// Returns the next due range, and true if nothing of it was sent yet.
    pub(super) fn next_due(&mut self, now_ns: i64) -> Option<(StreamRange, bool)> {
        let is_due = |pending: &&Pending| pending.due_ns <= now_ns;
        let ahead = |cursor| {
            let mut due = self.pending.iter().filter(is_due);
            due.find(|pending| pending.range.position >= cursor)
        };
        let in_pass = (self.pass_left > 0).then(|| ahead(self.cursor)).flatten();
        let next = if let Some(next) = in_pass {
            *next
        } else {
            let next = *ahead(i64::MIN)?;
            let last = self.pending.last()?;
            self.cursor = i64::MIN;
            self.pass_left = last.range.end() - next.range.position;
            next
        };
        Some((next.range, !next.is_started))
    }

    /// Records that `advanced` bytes from the start of `next` were sent; more than its length if padding reaches beyond
    /// it.
    pub(super) fn on_sent(&mut self, next: StreamRange, advanced: i64) {
        self.advance(next, advanced, true);
    }

    /// Records that `advanced` bytes from the start of `next` were skipped and will not be sent.
    pub(super) fn on_skipped(&mut self, next: StreamRange, advanced: i64) {
        self.advance(next, advanced, false);
    }

    fn advance(&mut self, next: StreamRange, advanced: i64, was_sent: bool) {
        let (from, to) = (next.position, next.position + advanced);
        self.cursor = to;
        self.pass_left -= advanced;
        self.pending.retain_mut(|pending| {
            if (from..to).contains(&pending.range.position) {
                pending.range = StreamRange::between(to, pending.range.end());
                pending.is_started |= was_sent;
            }
            pending.range.length > 0
        });
    }

    /// Removes the range that begins at `position`.
    pub(super) fn remove_at(&mut self, position: i64) {
        self.pending
            .retain(|pending| pending.range.position != position);
    }
}
