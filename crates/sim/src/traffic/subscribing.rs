//! What a subscriber shall do.

/// A subscription and how it is consumed.
#[derive(Clone, Debug)]
pub struct Subscribing {
    pub(super) channel: String,
    pub(super) stream_id: i32,
    pub(super) limit: usize,
    pub(super) laziness: f64,
    pub(super) is_lossy: bool,
    pub(super) sources: Vec<String>,
}

impl Subscribing {
    /// A subscription that is polled in most turns.
    #[must_use]
    pub fn new(channel: impl Into<String>, stream_id: i32) -> Self {
        Self {
            channel: channel.into(),
            stream_id,
            limit: 32,
            laziness: 0.1,
            is_lossy: false,
            sources: Vec::new(),
        }
    }

    /// Messages may be missing: for channels that say `reliable=false`. Those that come must still be in order and
    /// intact.
    #[must_use]
    pub fn lossy(self) -> Self {
        Self {
            is_lossy: true,
            ..self
        }
    }

    /// Adds a source as soon as it is open: for channels under manual control.
    #[must_use]
    pub fn source(mut self, channel: impl Into<String>) -> Self {
        self.sources.push(channel.into());
        self
    }

    /// How many fragments a poll delivers at most.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// In which part of its turns the subscriber does nothing, from 0 to 1.
    #[must_use]
    pub fn laziness(self, laziness: f64) -> Self {
        Self { laziness, ..self }
    }
}
