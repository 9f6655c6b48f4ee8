// SPDX-License-Identifier: Apache-2.0
//! Splits a GRO batch into segment runs that can be inserted in one pass.

use taran_net::DatagramRun;

/// Length of a data header in bytes.
const HEADER: usize = 32;

/// Contiguous datagrams that, according to their headers, are adjacent in one term of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRun<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) stride: usize,
}

impl<'a> SegmentRun<'a> {
    pub(super) fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.stride)
    }

    /// Returns the datagrams. An empty run is one empty datagram.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let empty = self.bytes.is_empty().then_some(self.bytes);
        empty.into_iter().chain(self.bytes.chunks(self.stride))
    }
}

/// Splits a GRO batch into the longest possible runs.
pub(super) fn runs<'a>(
    gro_batch: &DatagramRun<'a>,
) -> impl Iterator<Item = SegmentRun<'a>> + use<'a> {
    let stride = gro_batch.stride;
    let mut rest = Some(gro_batch.payload);
    std::iter::from_fn(move || {
        let (bytes, behind) = rest?.split_at(run_length(rest?, stride));
        rest = (!behind.is_empty()).then_some(behind);
        Some(SegmentRun { bytes, stride })
    })
}

/// Returns the length of the first run. Frames are not validated here.
fn run_length(bytes: &[u8], stride: usize) -> usize {
    let Some(first) = bytes.get(..HEADER) else {
        return bytes.len().min(stride);
    };
    let mut end = stride.min(bytes.len());
    while let Some(next) = bytes.get(end..end + HEADER) {
        if !continues_run(first, next, end) {
            break;
        }
        end = (end + stride).min(bytes.len());
    }
    end
}

/// Returns true if a GRO batch is a single run; its first header is stored apart from the remainder.
pub(super) fn is_one_run(header: &[u8], body: &[u8], stride: usize) -> bool {
    stride >= HEADER
        && (stride..HEADER + body.len()).step_by(stride).all(|at| {
            let next = body.get(at - HEADER..at);
            next.is_some_and(|next| continues_run(header, next, at))
        })
}

/// Returns true if the header `next`, `at` bytes behind the header `first`, continues its run.
fn continues_run(first: &[u8], next: &[u8], at: usize) -> bool {
    term_offset(next) == term_offset(first).wrapping_add(at as u32) && key(next) == key(first)
}

/// Session id, stream id and term id.
fn key(header: &[u8]) -> &[u8] {
    &header[12..24]
}

fn term_offset(header: &[u8]) -> u32 {
    u32::from_le_bytes([header[8], header[9], header[10], header[11]])
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use taran_protocol::frame::{DataHeader, IntoBytes};

    use super::*;

    /// Lengths in datagrams of the runs of a GRO batch. Each datagram is given as (session, offset, length); all have
    /// the first one's length.
    fn cut(datagrams: &[(i32, i32, usize)]) -> Vec<usize> {
        let mut payload = Vec::new();
        for &(session_id, offset, length) in datagrams {
            payload.extend(DataHeader::heartbeat(0xC0, session_id, 1, 1, offset).as_bytes());
            payload.resize(payload.len() + length - HEADER, 0);
        }
        let gro_batch = DatagramRun {
            source: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            payload: &payload,
            stride: datagrams[0].2,
            timestamp_ns: None,
        };
        assert_eq!(
            runs(&gro_batch).map(|run| run.bytes.len()).sum::<usize>(),
            payload.len()
        );
        runs(&gro_batch).map(|run| run.count()).collect()
    }

    #[test]
    fn runs_contiguous_datagrams_with_short_tail_are_one_run() {
        assert_eq!(cut(&[(7, 0, 64), (7, 64, 64), (7, 128, 32)]), [3]);
    }

    #[test]
    fn runs_split_at_other_stream_or_gap() {
        assert_eq!(cut(&[(7, 0, 64), (8, 64, 64), (8, 128, 64)]), [1, 2]);
        assert_eq!(cut(&[(7, 0, 64), (7, 64, 64), (7, 192, 64)]), [2, 1]);
    }

    #[test]
    fn runs_short_and_empty_datagrams_are_separate_runs() {
        let source = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let lengths = |payload: &[u8], stride| {
            let gro_batch = DatagramRun {
                source,
                payload,
                stride,
                timestamp_ns: None,
            };
            runs(&gro_batch)
                .map(|run| run.datagrams().map(<[u8]>::len).collect())
                .collect::<Vec<Vec<_>>>()
        };
        assert_eq!(lengths(&[], 1), [[0]]);
        assert_eq!(lengths(&[0; 10], 4), [[4], [4], [2]]);
        assert_eq!(lengths(&[0; 31], 31), [[31]]);
    }
}
