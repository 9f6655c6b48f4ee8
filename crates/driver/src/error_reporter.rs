//! Rate-limited reporting of errors on the data path.

use std::mem::Discriminant;

use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_net::NetError;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::CorruptFrame;

use crate::sender::MAX_LIVE_ENTRIES;

/// Time in which an error of a channel is recorded once: a send that fails does so in every duty cycle.
const SUPPRESSION_NS: i64 = 1_000_000_000;

/// Maximum number of errors recorded in that time.
const MAX_RECENT: usize = 64;

/// Records errors in the error log without formatting text in every duty cycle while a network is broken.
#[derive(Debug)]
pub(crate) struct ErrorReporter {
    handler: ErrorHandler,
    recent: Vec<RecentError>,
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
}

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
        }
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
