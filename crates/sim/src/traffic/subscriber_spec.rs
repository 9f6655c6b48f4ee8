// SPDX-License-Identifier: Apache-2.0
//! Specification of a subscriber.

/// A subscription and how it is consumed.
#[derive(Clone, Debug)]
pub struct SubscriberSpec {
    pub(super) channel: String,
    pub(super) stream_id: i32,
    pub(super) limit: usize,
    pub(super) skip_rate: f64,
    pub(super) is_lossy: bool,
    pub(super) sources: Vec<String>,
}

impl SubscriberSpec {
    /// A subscription that is polled in most duty cycles.
    #[must_use]
    pub fn new(channel: impl Into<String>, stream_id: i32) -> Self {
        Self {
            channel: channel.into(),
            stream_id,
            limit: 32,
            skip_rate: 0.1,
            is_lossy: false,
            sources: Vec::new(),
        }
    }

    /// Allows missing messages, for channels with `reliable=false`. The messages delivered must still be in order and
    /// intact.
    #[must_use]
    pub fn lossy(self) -> Self {
        Self {
            is_lossy: true,
            ..self
        }
    }

    /// Adds a source as soon as the subscription is open, for `control-mode=manual`.
    #[must_use]
    pub fn source(mut self, channel: impl Into<String>) -> Self {
        self.sources.push(channel.into());
        self
    }

    /// Sets the fragment limit of a poll.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets the share of duty cycles without a poll, from 0 to 1.
    #[must_use]
    pub fn skip_rate(self, skip_rate: f64) -> Self {
        Self { skip_rate, ..self }
    }
}
