//! What a publisher shall do.

use std::time::Duration;

use super::Lengths;

/// A publication and what is published on it.
#[derive(Clone, Debug)]
pub struct Publishing {
    pub(super) channel: String,
    pub(super) stream_id: i32,
    pub(super) exclusive: bool,
    pub(super) destinations: Vec<String>,
    pub(super) messages: u64,
    pub(super) lengths: Lengths,
    pub(super) burst: usize,
    pub(super) pause: Duration,
}

impl Publishing {
    /// A shared publication, on which nothing is published.
    #[must_use]
    pub fn new(channel: impl Into<String>, stream_id: i32) -> Self {
        Self {
            channel: channel.into(),
            stream_id,
            exclusive: false,
            destinations: Vec::new(),
            messages: 0,
            lengths: Lengths::Any,
            burst: 8,
            pause: Duration::ZERO,
        }
    }

    /// An exclusive publication, or not.
    #[must_use]
    pub fn exclusive(self, exclusive: bool) -> Self {
        Self { exclusive, ..self }
    }

    /// Adds a destination as soon as it is open: for channels under manual control.
    #[must_use]
    pub fn destination(mut self, channel: impl Into<String>) -> Self {
        self.destinations.push(channel.into());
        self
    }

    /// How many messages are published.
    #[must_use]
    pub fn messages(self, messages: u64) -> Self {
        Self { messages, ..self }
    }

    /// How long they are.
    #[must_use]
    pub fn lengths(self, lengths: Lengths) -> Self {
        Self { lengths, ..self }
    }

    /// How much time passes between two bursts, on average.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// How many are published in one turn at most.
    #[must_use]
    pub fn burst(self, burst: usize) -> Self {
        Self { burst, ..self }
    }
}
