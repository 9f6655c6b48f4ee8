//! Cutting a train of datagrams where one pass into the log must end.

use taran_net::Train;

/// Bytes of a data header.
const HEADER: usize = 32;

/// Datagrams that lie back to back on the wire and, by what their headers say, in one term of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRun<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) stride: usize,
}

impl<'a> SegmentRun<'a> {
    pub(super) fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.stride)
    }

    /// One by one. An empty datagram is one.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let empty = self.bytes.is_empty().then_some(self.bytes);
        empty.into_iter().chain(self.bytes.chunks(self.stride))
    }
}

/// The runs of a train, each as long as can be.
pub(super) fn runs<'a>(train: &Train<'a>) -> impl Iterator<Item = SegmentRun<'a>> + use<'a> {
    let stride = train.stride;
    let mut rest = Some(train.payload);
    std::iter::from_fn(move || {
        let (bytes, behind) = rest?.split_at(run_length(rest?, stride));
        rest = (!behind.is_empty()).then_some(behind);
        Some(SegmentRun { bytes, stride })
    })
}

/// Length of the first run. Whether its frames are sound is not looked at here.
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

/// Whether a train is one run, of which the first header lies elsewhere than what comes behind it.
pub(super) fn is_one_run(header: &[u8], body: &[u8], stride: usize) -> bool {
    stride >= HEADER
        && (stride..HEADER + body.len()).step_by(stride).all(|at| {
            let next = body.get(at - HEADER..at);
            next.is_some_and(|next| continues_run(header, next, at))
        })
}

/// Whether a header that comes `at` bytes behind the first one belongs there.
fn continues_run(first: &[u8], next: &[u8], at: usize) -> bool {
    term_offset(next) == term_offset(first).wrapping_add(at as u32) && key(next) == key(first)
}

/// Session, stream and term.
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

    /// Runs of a train of datagrams, each given as (session, offset, length), all of the first one's length.
    fn cut(datagrams: &[(i32, i32, usize)]) -> Vec<usize> {
        let mut payload = Vec::new();
        for &(session_id, offset, length) in datagrams {
            payload.extend(DataHeader::heartbeat(0xC0, session_id, 1, 1, offset).as_bytes());
            payload.resize(payload.len() + length - HEADER, 0);
        }
        let train = Train {
            source: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            payload: &payload,
            stride: datagrams[0].2,
            timestamp_ns: None,
        };
        assert_eq!(
            runs(&train).map(|run| run.bytes.len()).sum::<usize>(),
            payload.len()
        );
        runs(&train).map(|run| run.count()).collect()
    }

    #[test]
    fn contiguous_datagrams_are_one_run_with_a_short_tail() {
        assert_eq!(cut(&[(7, 0, 64), (7, 64, 64), (7, 128, 32)]), [3]);
    }

    #[test]
    fn another_stream_or_a_jump_cuts() {
        assert_eq!(cut(&[(7, 0, 64), (8, 64, 64), (8, 128, 64)]), [1, 2]);
        assert_eq!(cut(&[(7, 0, 64), (7, 64, 64), (7, 192, 64)]), [2, 1]);
    }

    #[test]
    fn short_and_empty_datagrams_stand_alone() {
        let source = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let lengths = |payload: &[u8], stride| {
            let train = Train {
                source,
                payload,
                stride,
                timestamp_ns: None,
            };
            runs(&train)
                .map(|run| run.datagrams().map(<[u8]>::len).collect())
                .collect::<Vec<Vec<_>>>()
        };
        assert_eq!(lengths(&[], 1), [[0]]);
        assert_eq!(lengths(&[0; 10], 4), [[4], [4], [2]]);
        assert_eq!(lengths(&[0; 31], 31), [[31]]);
    }
}
