// SPDX-License-Identifier: Apache-2.0
//! Publication of the progress of recordings (`docs/spec/archive.md` §4.4).

use taran::ExclusivePublication;
use taran_archive_client::protocol::{
    Message, RecordingProgress, RecordingStarted, RecordingStopped,
};

use crate::session::encode;

/// Attempts to publish a start or a stop.
const ATTEMPTS: usize = 3;

/// The publication of recording events, if there is one. Events are dropped without a subscriber and under back-pressure.
#[derive(Debug, Default)]
pub(crate) struct RecordingEvents {
    publication: Option<ExclusivePublication>,
    buffer: Vec<u8>,
}

impl RecordingEvents {
    pub(crate) fn new(publication: Option<ExclusivePublication>) -> Self {
        Self {
            publication,
            buffer: Vec::new(),
        }
    }

    pub(super) fn started(&mut self, event: &RecordingStarted<'_>) {
        self.publish(event, ATTEMPTS);
    }

    /// Returns false if the event was not published; the next one tells more.
    pub(super) fn progress(&mut self, event: &RecordingProgress) -> bool {
        self.publish(event, 1)
    }

    pub(super) fn stopped(&mut self, event: &RecordingStopped) {
        self.publish(event, ATTEMPTS);
    }

    fn publish(&mut self, event: &impl Message, attempts: usize) -> bool {
        let Some(publication) = &mut self.publication else {
            return true;
        };
        let length = encode(event, &mut self.buffer);
        for _ in 0..attempts {
            match publication.offer(&self.buffer[..length]) {
                Ok(_) => return true,
                Err(error) if error.is_retryable() => {}
                Err(_) => return false,
            }
        }
        false
    }
}
