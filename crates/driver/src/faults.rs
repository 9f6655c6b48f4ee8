//! Errors on the road.

use std::mem::Discriminant;

use taran_core::clock::Now;
use taran_core::error_log::ErrorHandler;
use taran_net::NetError;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::log::CorruptFrame;

/// The same trouble is told once in this time: a send that fails does so in every duty cycle.
const QUIET_MS: i64 = 1_000;

/// Records errors without letting a broken network turn every duty cycle into string formatting.
#[derive(Debug)]
pub(crate) struct Faults {
    handler: ErrorHandler,
    last: Option<(Cause, i64)>,
}

/// What makes two errors the same one.
#[derive(Debug, PartialEq, Eq)]
enum Cause {
    Network(Discriminant<NetError>, Option<i32>),
    Corrupt,
}

impl Faults {
    pub(crate) fn new(handler: ErrorHandler) -> Self {
        Self {
            handler,
            last: None,
        }
    }

    /// A process that maps the log wrote something into it that is no frame. The stream stands still there.
    #[cold]
    pub(crate) fn report_corrupt(&mut self, now: Now, channel: &str, error: &CorruptFrame) {
        self.tell(now, channel, Cause::Corrupt, error);
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
        let is_repeated = self
            .last
            .as_ref()
            .is_some_and(|(last, told_ms)| *last == cause && now.epoch_millis - told_ms < QUIET_MS);
        if !is_repeated {
            self.handler.on_error(
                now.epoch_millis,
                ErrorCode::GenericError as i32,
                &format!("{channel}: {error}"),
            );
            self.last = Some((cause, now.epoch_millis));
        }
    }
}
