// SPDX-License-Identifier: Apache-2.0
//! Plan of one send: the committed bytes of a term, cut into datagrams.

use taran_core::memory::Region;
use taran_core::sync::Ordering;
use taran_protocol::log::{self, CorruptFrame, RunLimit, Scan};

/// Maximum number of segment runs per plan: what one batched send takes.
pub(super) const MAX_RUNS: usize = 16;

/// Maximum bytes per plan: about what one GSO send carries, and not less than the largest datagram.
pub(super) const MAX_BATCH_BYTES: i32 = 65_504;

/// SegmentRun of datagrams of equal length, the last of which may be shorter, at an offset of the term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentRun {
    pub(super) offset: usize,
    pub(super) frames: log::SegmentRun,
}

/// Limits of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes that flow control, or the NAK, permits.
    pub(super) window: i64,
    /// Length of the largest datagram in bytes.
    pub(super) mtu: i32,
    /// Maximum number of datagrams.
    pub(super) datagrams: i32,
}

/// Segment runs in stream order, all from one term.
#[derive(Debug)]
pub(super) struct SendPlan {
    runs: [SegmentRun; MAX_RUNS],
    count: usize,
    bytes: usize,
    is_blocked: bool,
    is_full: bool,
}

impl SendPlan {
    /// Returns a plan of what is committed in `term` from `offset` on, within the bounds. Each datagram contains as
    /// many whole frames as fit and is never delayed to fill it (docs/spec/wire.md §3.4).
    ///
    /// # Errors
    /// The first frame is corrupt, or larger than any datagram. A later frame of that kind ends the plan and is
    /// reported by the next one.
    pub(super) fn scan(term: &Region, offset: i32, bounds: Bounds) -> Result<Self, CorruptFrame> {
        let none = SegmentRun {
            offset: 0,
            frames: log::SegmentRun {
                length: 0,
                segment: 0,
                padding: 0,
            },
        };
        let mut plan = Self {
            runs: [none; MAX_RUNS],
            count: 0,
            bytes: 0,
            is_blocked: false,
            is_full: false,
        };
        let mut at = offset;
        // Padding needs only 32 bytes of the window itself, but reduces the window of what follows by all of its
        // length.
        let mut window = bounds.window;
        let mut bytes = MAX_BATCH_BYTES;
        let mut datagrams = bounds.datagrams;
        while plan.count < MAX_RUNS && datagrams > 0 && window > 0 && at < term.len() as i32 {
            let limit = RunLimit {
                datagram: bounds.mtu,
                window: window.min(i64::from(bytes)) as i32,
                datagrams,
                bytes,
            };
            match log::scan_run(term, at, &limit) {
                Ok(Scan::Ready(frames)) => {
                    plan.runs[plan.count] = SegmentRun {
                        offset: at as usize,
                        frames,
                    };
                    plan.count += 1;
                    plan.bytes += frames.length as usize;
                    at += frames.advance();
                    window -= i64::from(frames.advance());
                    bytes -= frames.length;
                    datagrams -= frames.datagrams();
                }
                Ok(Scan::OverLimit) if plan.count == 0 && window >= i64::from(bounds.mtu) => {
                    let length = term.atomic_i32(at as usize).load(Ordering::Acquire);
                    return Err(CorruptFrame { offset: at, length });
                }
                Ok(Scan::OverLimit) => {
                    plan.is_blocked = plan.count == 0;
                    break;
                }
                Err(error) if plan.count == 0 => return Err(error),
                Ok(Scan::Empty) | Err(_) => break,
            }
        }
        plan.is_full = bytes < bounds.mtu || datagrams == 0 || plan.count == MAX_RUNS;
        Ok(plan)
    }

    /// Returns true if there is a frame at `offset`. Avoids the initialization of a plan, which has room for many runs.
    pub(super) fn has_data(term: &Region, offset: i32) -> bool {
        // Pairs with the release store by which the publisher commits a frame.
        term.atomic_i32(offset as usize).load(Ordering::Acquire) > 0
    }

    /// Returns true if there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if there is nothing to send because the first frame does not fit the window.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Returns true if the plan was ended by its own limits, so that more may be committed.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the bytes on the wire.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn runs(&self) -> &[SegmentRun] {
        &self.runs[..self.count]
    }

    /// Returns the only datagram of the plan; `None` if there are more.
    pub(super) fn single_datagram(&self) -> Option<&SegmentRun> {
        match self.runs() {
            [run] if run.frames.length <= run.frames.segment && !self.is_full => Some(run),
            _ => None,
        }
    }

    /// Returns the bytes by which the position advances when the first `accepted` bytes of the plan were sent.
    pub(super) fn advance(&self, accepted: usize) -> i64 {
        let mut left = accepted as i64;
        let mut moved = 0;
        for run in self.runs() {
            if left < i64::from(run.frames.length) {
                return moved + left;
            }
            left -= i64::from(run.frames.length);
            moved += i64::from(run.frames.advance());
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use taran_protocol::position::align32;

    use super::*;

    const ALL: Bounds = Bounds {
        window: 1 << 20,
        mtu: 1408,
        datagrams: 1024,
    };

    /// A term of 64 KiB with frames of these lengths; a negative length is padding.
    fn term(lengths: &[i32]) -> Region {
        let term = Region::anonymous(65_536).unwrap();
        let mut at = 0;
        for &length in lengths {
            let kind = i32::from(length > 0);
            term.atomic_i32(at + 4)
                .store(kind << 16 | 0xC000, Ordering::Relaxed);
            term.atomic_i32(at).store(length.abs(), Ordering::Release);
            at += align32(length.abs()) as usize;
        }
        term
    }

    fn runs(plan: &SendPlan) -> Vec<(usize, i32, i32, i32)> {
        plan.runs()
            .iter()
            .map(|run| {
                (
                    run.offset,
                    run.frames.length,
                    run.frames.segment,
                    run.frames.padding,
                )
            })
            .collect()
    }

    #[test]
    fn scan_of_empty_term_is_empty() {
        let plan = SendPlan::scan(&term(&[]), 0, ALL).unwrap();
        assert!(plan.is_empty() && !plan.is_blocked());
    }

    #[test]
    fn scan_of_equal_datagrams_is_one_run_with_short_tail() {
        // 320 bytes each in the log: four to a datagram.
        let plan = SendPlan::scan(&term(&[320; 10]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 3200, 1280, 0)]);
        assert_eq!(plan.advance(3200), 3200);
        assert_eq!(plan.advance(1280), 1280);
    }

    #[test]
    fn scan_with_longer_datagram_starts_new_run() {
        let plan = SendPlan::scan(&term(&[1000, 1400, 1400, 64, 1400]), 0, ALL).unwrap();
        assert_eq!(
            runs(&plan),
            [
                (0, 1024, 1024, 0),
                (1024, 2880, 1408, 0),
                (3904, 1408, 1408, 0)
            ]
        );
        assert_eq!(plan.bytes(), 5312);
    }

    #[test]
    fn scan_of_padding_sends_header_and_advances_by_its_length() {
        let plan = SendPlan::scan(&term(&[37, -640, 37]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608), (704, 64, 64, 0)]);
        assert_eq!(
            (plan.advance(64), plan.advance(96), plan.advance(160)),
            (64, 704, 768)
        );
    }

    #[test]
    fn scan_ends_at_end_of_term() {
        let plan = SendPlan::scan(&term(&[-65_536]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 32, 32, 65_504)]);
        assert_eq!(plan.advance(32), 65_536);
    }

    #[test]
    fn scan_is_limited_by_window_and_blocked_by_larger_frame() {
        let plan = SendPlan::scan(
            &term(&[320; 10]),
            0,
            Bounds {
                window: 1500,
                ..ALL
            },
        )
        .unwrap();
        assert_eq!(runs(&plan), [(0, 1280, 1280, 0)]);
        let plan = SendPlan::scan(&term(&[320; 10]), 0, Bounds { window: 319, ..ALL }).unwrap();
        assert!(plan.is_empty() && plan.is_blocked());
    }

    #[test]
    fn scan_with_oversized_first_frame_is_an_error() {
        let plan = SendPlan::scan(&term(&[64, 1440]), 0, ALL).unwrap();
        assert_eq!(runs(&plan), [(0, 64, 64, 0)]);
        let error = SendPlan::scan(&term(&[64, 1440]), 64, ALL).unwrap_err();
        assert_eq!((error.offset, error.length), (64, 1440));
    }

    #[test]
    fn scan_ends_behind_padding_beyond_window() {
        let bounds = |window| Bounds { window, ..ALL };
        let term = term(&[64, -640, 64]);
        let plan = SendPlan::scan(&term, 0, bounds(704)).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608)]);
        let plan = SendPlan::scan(&term, 0, bounds(767)).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608)]);
        let plan = SendPlan::scan(&term, 0, bounds(768)).unwrap();
        assert_eq!(runs(&plan), [(0, 96, 96, 608), (704, 64, 64, 0)]);
    }

    #[test]
    fn scan_is_limited_by_datagram_count() {
        let plan = SendPlan::scan(
            &term(&[320; 40]),
            0,
            Bounds {
                datagrams: 2,
                ..ALL
            },
        )
        .unwrap();
        assert_eq!(runs(&plan), [(0, 2560, 1280, 0)]);
        assert!(plan.is_full());
    }

    #[test]
    fn scan_is_limited_to_runs_of_one_send() {
        let mut lengths = Vec::new();
        for step in 0..20 {
            lengths.extend([800 + 32 * step, 1400]);
        }
        let plan = SendPlan::scan(&term(&lengths), 0, ALL).unwrap();
        assert_eq!(plan.runs().len(), MAX_RUNS);
        assert!(plan.is_full());
    }

    #[test]
    fn scan_is_limited_to_bytes_of_one_gso_send() {
        let whole = 65_536 / 32;
        let plan = SendPlan::scan(&term(&vec![32; whole]), 0, ALL).unwrap();
        assert_eq!(plan.bytes(), MAX_BATCH_BYTES as usize);
        assert!(plan.is_full());
        let plan = SendPlan::scan(&term(&vec![32; whole - 50]), 0, ALL).unwrap();
        assert!(!plan.is_full(), "there is room for another datagram");
    }

    #[test]
    fn scan_ends_before_frame_length_beyond_term() {
        for length in [65_537, i32::MAX, i32::MAX - 31, 31, 1] {
            let plan = SendPlan::scan(&term(&[64, length]), 0, ALL).unwrap();
            assert_eq!(runs(&plan), [(0, 64, 64, 0)], "{length}");
        }
    }
}
