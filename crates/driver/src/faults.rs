//! Errors on the road.

use std::mem::Discriminant;

use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_net::NetError;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::CorruptFrame;

use crate::sender::MAX_PRESENT;

/// The same trouble of a channel is told once in this time: a send that fails does so in every duty cycle.
const QUIET_NS: i64 = 1_000_000_000;

/// Most troubles told in that time.
const MAX_TOLD: usize = 64;

/// Records errors without letting a broken network turn every duty cycle into string formatting.
#[derive(Debug)]
pub(crate) struct Faults {
    handler: ErrorHandler,
    told: Vec<Told>,
}

/// What was said a short while ago.
#[derive(Debug)]
struct Told {
    channel: Box<str>,
    cause: Cause,
    nanos: i64,
}

/// What makes two errors the same one.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    Network(Discriminant<NetError>, Option<i32>),
    Corrupt,
    Crowd,
}

/// A table of receivers is full.
#[derive(Debug, thiserror::Error)]
#[error(
    "more than {MAX_PRESENT} receivers: nothing is sent to the others where receivers announce themselves, and nobody \
     waits for them where the slowest counts; use several channels"
)]
struct Crowd;

impl Faults {
    pub(crate) fn new(handler: ErrorHandler) -> Self {
        Self {
            handler,
            told: Vec::new(),
        }
    }

    /// A process that maps the log wrote something into it that is no frame. The stream stands still there.
    #[cold]
    pub(crate) fn report_corrupt(&mut self, now: Now, channel: &str, error: &CorruptFrame) {
        self.tell(now, channel, Cause::Corrupt, error);
    }

    /// A receiver could not be taken, as there are too many.
    #[cold]
    pub(crate) fn report_crowd(&mut self, now: Now, channel: &str) {
        self.tell(now, channel, Cause::Crowd, &Crowd);
    }

    #[cold]
    pub(crate) fn report(&mut self, now: Now, channel: &str, error: &NetError) {
        let os_error = error.io().and_then(std::io::Error::raw_os_error);
        self.tell(
            now,
            channel,
            Cause::Network(std::mem::discriminant(error), os_error),
            error,
        );
    }

    fn tell(&mut self, now: Now, channel: &str, cause: Cause, error: &dyn std::error::Error) {
        self.told
            .retain(|told| now.nanos.saturating_sub(told.nanos) < QUIET_NS);
        let is_repeated = self
            .told
            .iter()
            .any(|told| told.cause == cause && *told.channel == *channel);
        if is_repeated || self.told.len() == MAX_TOLD {
            return;
        }
        self.handler.on_error(
            now.epoch_millis,
            ErrorCode::GenericError as i32,
            &ErrorCode::GenericError.record(&format!("{channel}: {error}")),
        );
        self.told.push(Told {
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

    fn report(faults: &mut Faults, now: Now, channel: &str) {
        faults.report_corrupt(now, channel, &CORRUPT);
    }

    #[test]
    fn troubles_that_alternate_are_each_told_once_a_second() {
        let handler = ErrorHandler::detached();
        let mut faults = Faults::new(handler.clone());
        for nanos in 0..100 {
            // The wall clock is set back in the middle of it.
            let now = Now {
                nanos,
                epoch_millis: if nanos < 50 { 1_000_000 } else { 0 },
            };
            report(&mut faults, now, "a");
            report(&mut faults, now, "b");
        }
        assert_eq!(handler.count(), 2);
        let later = Now {
            nanos: QUIET_NS,
            epoch_millis: 1,
        };
        report(&mut faults, later, "a");
        assert_eq!(handler.count(), 3);
    }

    #[test]
    fn there_is_a_limit_to_what_is_told_in_a_second() {
        let handler = ErrorHandler::detached();
        let mut faults = Faults::new(handler.clone());
        let now = Now {
            nanos: 0,
            epoch_millis: 0,
        };
        for channel in 0..1000 {
            report(&mut faults, now, &channel.to_string());
        }
        assert_eq!(handler.count() as usize, MAX_TOLD);
    }
}
