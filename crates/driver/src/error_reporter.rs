// SPDX-License-Identifier: Apache-2.0
//! Rate-limited reporting of errors on the data path.

use std::mem::Discriminant;
use std::net::SocketAddr;

use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_net::NetError;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::frame::{FrameHeader, FromBytes};
use taran_protocol::log::CorruptFrame;

use crate::sender::MAX_LIVE_ENTRIES;

/// Time in which an error of a channel is recorded once: a send that fails does so in every duty cycle.
const SUPPRESSION_NS: i64 = 1_000_000_000;

/// Maximum number of errors recorded in that time.
const MAX_RECENT: usize = 64;

/// Maximum number of sources of secured frames recorded in an hour: their addresses are unproved, and each is another line.
const MAX_SECURED_PEERS: usize = 64;
const HOUR_NS: i64 = 3_600_000_000_000;

/// Records errors in the error log without formatting text in every duty cycle while a network is broken.
#[derive(Debug)]
pub(crate) struct ErrorReporter {
    handler: ErrorHandler,
    recent: Vec<RecentError>,
    secured_peers: SecuredPeers,
}

/// Sources of secured frames that were recorded, by channel.
#[derive(Debug, Default)]
struct SecuredPeers {
    hour: i64,
    known: Vec<(Box<str>, SocketAddr)>,
}

/// An error that was recorded within [`SUPPRESSION_NS`].
#[derive(Debug)]
struct RecentError {
    channel: Box<str>,
    cause: Cause,
    nanos: i64,
}

/// Identity of an error: two errors of a channel with equal causes are the same.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    Network(Discriminant<NetError>, Option<i32>),
    Corrupt,
    TooManyReceivers,
    SecuredPeer,
}

/// A peer sends frames of transport security to a plain channel.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} sends frames of Taran transport security, and this channel is plain here: set taran.secure.mode=all, or \
     taran.secure=true in the channel with taran.secure.mode=channels. Nothing of that peer is taken"
)]
struct SecuredPeer(SocketAddr);

/// A table of receivers is full.
#[derive(Debug, thiserror::Error)]
#[error(
    "more than {MAX_LIVE_ENTRIES} receivers: the others are not added as dynamic destinations and not counted by min flow \
     control; use several channels"
)]
struct TooManyReceivers;

impl ErrorReporter {
    pub(crate) fn new(handler: ErrorHandler) -> Self {
        Self {
            handler,
            recent: Vec::new(),
            secured_peers: SecuredPeers::default(),
        }
    }

    /// Records the source of a datagram that no plain channel takes, once for each channel, if it is a frame of transport
    /// security.
    #[cold]
    pub(crate) fn report_if_secured(
        &mut self,
        now: Now,
        channel: &str,
        source: SocketAddr,
        datagram: &[u8],
    ) {
        let header = FrameHeader::ref_from_prefix(datagram);
        if !header.is_ok_and(|(header, _)| header.frame_type().is_transport_security()) {
            return;
        }
        let SecuredPeers { hour, known } = &mut self.secured_peers;
        if *hour != now.nanos / HOUR_NS {
            *hour = now.nanos / HOUR_NS;
            known.clear();
        }
        let is_known = known
            .iter()
            .any(|(of, peer)| **of == *channel && *peer == source);
        if is_known || known.len() >= MAX_SECURED_PEERS {
            return;
        }
        known.push((channel.into(), source));
        self.record(now, channel, Cause::SecuredPeer, &SecuredPeer(source));
    }

    /// Records that the log contains an invalid frame, written by a process that maps it. The stream does not advance
    /// beyond.
    #[cold]
    pub(crate) fn report_corrupt(&mut self, now: Now, channel: &str, error: &CorruptFrame) {
        self.record(now, channel, Cause::Corrupt, error);
    }

    /// Records that a receiver was not added to a full table.
    #[cold]
    pub(crate) fn report_too_many_receivers(&mut self, now: Now, channel: &str) {
        self.record(now, channel, Cause::TooManyReceivers, &TooManyReceivers);
    }

    /// Records a network error.
    #[cold]
    pub(crate) fn report(&mut self, now: Now, channel: &str, error: &NetError) {
        let os_error = error.io().and_then(std::io::Error::raw_os_error);
        self.record(
            now,
            channel,
            Cause::Network(std::mem::discriminant(error), os_error),
            error,
        );
    }

    fn record(&mut self, now: Now, channel: &str, cause: Cause, error: &dyn std::error::Error) {
        self.recent
            .retain(|recent| now.nanos.saturating_sub(recent.nanos) < SUPPRESSION_NS);
        let is_repeated = self
            .recent
            .iter()
            .any(|recent| recent.cause == cause && *recent.channel == *channel);
        if is_repeated || self.recent.len() == MAX_RECENT {
            return;
        }
        self.handler.on_error(
            now.epoch_millis,
            ErrorCode::GenericError as i32,
            &ErrorCode::GenericError.record(&format!("{channel}: {error}")),
        );
        self.recent.push(RecentError {
            channel: channel.into(),
            cause,
            nanos: now.nanos,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORRUPT: CorruptFrame = CorruptFrame {
        offset: 0,
        length: 1,
    };

    fn report(reporter: &mut ErrorReporter, now: Now, channel: &str) {
        reporter.report_corrupt(now, channel, &CORRUPT);
    }

    #[test]
    fn report_alternating_errors_records_each_once_per_second() {
        let handler = ErrorHandler::detached();
        let mut reporter = ErrorReporter::new(handler.clone());
        for nanos in 0..100 {
            // The wall clock is set back halfway.
            let now = Now {
                nanos,
                epoch_millis: if nanos < 50 { 1_000_000 } else { 0 },
            };
            report(&mut reporter, now, "a");
            report(&mut reporter, now, "b");
        }
        assert_eq!(handler.count(), 2);
        let later = Now {
            nanos: SUPPRESSION_NS,
            epoch_millis: 1,
        };
        report(&mut reporter, later, "a");
        assert_eq!(handler.count(), 3);
    }

    #[test]
    fn report_if_secured_records_each_source_once_and_a_bounded_number() {
        let handler = ErrorHandler::detached();
        let mut reporter = ErrorReporter::new(handler.clone());
        let mut now = Now {
            nanos: 0,
            epoch_millis: 0,
        };
        let source = |number: u16| SocketAddr::from(([10, 0, 0, 9], number));
        // Length 40, version 0, flags 0, types BACK, HELLO and one that is none of transport security.
        let frame = |kind: u16| {
            [
                [40, 0, 0, 0, 0, 0],
                [kind as u8, (kind >> 8) as u8, 0, 0, 0, 0],
            ]
            .concat()
        };
        for (kind, number) in [(0x5451, 1), (0x5453, 1), (0x5458, 2), (0x544F, 3)] {
            reporter.report_if_secured(now, "channel", source(number), &frame(kind));
            now.nanos += SUPPRESSION_NS;
        }
        reporter.report_if_secured(now, "channel", source(4), &[1, 2, 3]);
        assert_eq!(handler.count(), 1);
        for number in 0..1_000 {
            now.nanos += SUPPRESSION_NS;
            reporter.report_if_secured(now, "channel", source(number), &frame(0x5452));
        }
        assert_eq!(handler.count() as usize, MAX_SECURED_PEERS);
    }

    #[test]
    fn report_many_distinct_errors_is_limited() {
        let handler = ErrorHandler::detached();
        let mut reporter = ErrorReporter::new(handler.clone());
        let now = Now {
            nanos: 0,
            epoch_millis: 0,
        };
        for channel in 0..1000 {
            report(&mut reporter, now, &channel.to_string());
        }
        assert_eq!(handler.count() as usize, MAX_RECENT);
    }
}
