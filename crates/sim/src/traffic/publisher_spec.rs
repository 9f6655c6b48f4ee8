// SPDX-License-Identifier: Apache-2.0
//! Specification of a publisher.

use std::time::Duration;

use super::Lengths;

/// A publication and its messages.
#[derive(Clone, Debug)]
pub struct PublisherSpec {
    pub(super) channel: String,
    pub(super) stream_id: i32,
    pub(super) exclusive: bool,
    pub(super) destinations: Vec<String>,
    pub(super) messages: u64,
    pub(super) lengths: Lengths,
    pub(super) burst: usize,
    pub(super) pause: Duration,
}

impl PublisherSpec {
    /// A shared publication on which nothing is published.
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

    /// Selects an exclusive or a shared publication.
    #[must_use]
    pub fn exclusive(self, exclusive: bool) -> Self {
        Self { exclusive, ..self }
    }

    /// Adds a destination as soon as the publication is open, for `control-mode=manual`.
    #[must_use]
    pub fn destination(mut self, channel: impl Into<String>) -> Self {
        self.destinations.push(channel.into());
        self
    }

    /// Sets the number of messages.
    #[must_use]
    pub fn messages(self, messages: u64) -> Self {
        Self { messages, ..self }
    }

    /// Sets the distribution of message lengths.
    #[must_use]
    pub fn lengths(self, lengths: Lengths) -> Self {
        Self { lengths, ..self }
    }

    /// Sets the average time between two bursts.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Sets the maximum number of messages per duty cycle.
    #[must_use]
    pub fn burst(self, burst: usize) -> Self {
        Self { burst, ..self }
    }
}
