// SPDX-License-Identifier: Apache-2.0
//! Parameters and results of requests.

use taran::{ChannelUri, Position, UriError};

use crate::protocol::NULL_VALUE;

/// Parameters of a replay. The default replays from the start of the recording, and follows it while it is active.
///
/// ```
/// use taran_archive_client::ReplayParams;
///
/// let params = ReplayParams::new().position(4096).length(1024);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayParams {
    pub(crate) position: Position,
    pub(crate) length: i64,
    pub(crate) limit_counter_id: Option<i32>,
    pub(crate) file_io_max_length: i32,
    pub(crate) replay_token: i64,
}

impl Default for ReplayParams {
    fn default() -> Self {
        Self::new()
    }
}

/// Lowest time that archives take for one.
pub(crate) const TIME_MIN_MS: i64 = 1 << 31;

/// Returns the position that stands for a time on the wire (`docs/archive.md`).
pub(crate) fn position_of_time(time_ms: i64) -> i64 {
    time_ms.saturating_mul(-32)
}

impl ReplayParams {
    /// Length of a replay that ends at the position that the recording has now.
    const ALL_AND_STOP: i64 = -2;

    /// Creates the default parameters.
    #[must_use]
    pub fn new() -> Self {
        Self {
            position: NULL_VALUE,
            length: NULL_VALUE,
            limit_counter_id: None,
            file_io_max_length: -1,
            replay_token: NULL_VALUE,
        }
    }

    /// Sets the position to start at, the start of a frame. Default: the start of the recording.
    #[must_use]
    pub fn position(mut self, position: Position) -> Self {
        self.position = position;
        self
    }

    /// Starts where the recording was at a time, in milliseconds since 1970 UTC: nothing that was recorded at that time or later
    /// is left out, and up to a second before it may be replayed too (`taran.archive.time.index.interval`). The position is
    /// that of the first fragment. Taran's archives only; an archive of Aeron refuses the replay with
    /// [`INVALID_POSITION`](crate::protocol::ErrorCode::InvalidPosition).
    #[must_use]
    pub fn from_time_ms(mut self, time_ms: i64) -> Self {
        self.position = position_of_time(time_ms);
        self
    }

    /// Sets the length in bytes. Default: the rest of the recording; an active recording is followed until it ends.
    #[must_use]
    pub fn length(mut self, length: i64) -> Self {
        self.length = length;
        self
    }

    /// Ends the replay at the position that the recording has when the replay starts.
    #[must_use]
    pub fn until_now(mut self) -> Self {
        self.length = Self::ALL_AND_STOP;
        self
    }

    /// Bounds the position of the replay by a counter, in place of the recorded position.
    #[must_use]
    pub fn bounded_by(mut self, counter_id: i32) -> Self {
        self.limit_counter_id = Some(counter_id);
        self
    }

    /// Limits the bytes that the archive reads and sends at once, and so the rate of the replay; at least the MTU of the
    /// recording. Default: the archive's `aeron.archive.file.io.max.length`.
    #[must_use]
    pub fn file_io_max_length(mut self, bytes: i32) -> Self {
        self.file_io_max_length = bytes;
        self
    }

    pub(crate) fn token(mut self, token: i64) -> Self {
        self.replay_token = token;
        self
    }
}

/// A replay that an archive has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReplaySession(i64);

impl ReplaySession {
    /// Returns the replay with this id.
    #[must_use]
    pub fn from_id(id: i64) -> Self {
        Self(id)
    }

    /// Returns the id of the replay, by which it is stopped.
    #[must_use]
    pub fn id(self) -> i64 {
        self.0
    }

    /// Returns the session id of the replayed stream.
    #[must_use]
    pub fn session_id(self) -> i32 {
        // The low half of the id.
        self.0 as i32
    }

    /// Returns the channel with the session id of the replayed stream, for a subscription to nothing else.
    ///
    /// # Errors
    /// The channel is invalid.
    pub fn subscription_channel(self, replay_channel: &str) -> Result<String, UriError> {
        let uri = ChannelUri::parse(replay_channel)?.with_session_id(self.session_id())?;
        Ok(uri.as_str().to_owned())
    }
}

/// Parameters of a replication. The default makes a new recording, and copies the source until it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationParams {
    pub(crate) dst_recording_id: i64,
    pub(crate) stop_position: Position,
    pub(crate) channel_tag_id: i64,
    pub(crate) subscription_tag_id: i64,
    pub(crate) file_io_max_length: i32,
    pub(crate) replication_session_id: i32,
    pub(crate) live_destination: String,
    pub(crate) replication_channel: String,
    pub(crate) src_response_channel: String,
    pub(crate) encoded_credentials: Vec<u8>,
}

impl Default for ReplicationParams {
    fn default() -> Self {
        Self {
            dst_recording_id: NULL_VALUE,
            stop_position: NULL_VALUE,
            channel_tag_id: NULL_VALUE,
            subscription_tag_id: NULL_VALUE,
            file_io_max_length: -1,
            replication_session_id: -1,
            live_destination: String::new(),
            replication_channel: String::new(),
            src_response_channel: String::new(),
            encoded_credentials: Vec::new(),
        }
    }
}

impl ReplicationParams {
    /// Creates the default parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Extends an existing recording, in place of a new one.
    #[must_use]
    pub fn destination(mut self, recording_id: i64) -> Self {
        self.dst_recording_id = recording_id;
        self
    }

    /// Ends the replication at a position.
    #[must_use]
    pub fn stop_position(mut self, position: Position) -> Self {
        self.stop_position = position;
        self
    }

    /// Sets the tags of the channel and subscription that the replication uses.
    #[must_use]
    pub fn tags(mut self, channel: i64, subscription: i64) -> Self {
        self.channel_tag_id = channel;
        self.subscription_tag_id = subscription;
        self
    }

    /// Merges with the live stream at this destination when the replication has caught up.
    #[must_use]
    pub fn live_destination(mut self, channel: impl Into<String>) -> Self {
        self.live_destination = channel.into();
        self
    }

    /// Sets the channel for the replay from the source. Default: that of the archive's configuration.
    #[must_use]
    pub fn replication_channel(mut self, channel: impl Into<String>) -> Self {
        self.replication_channel = channel.into();
        self
    }

    /// Sets the channel for the responses of the source archive.
    #[must_use]
    pub fn source_response_channel(mut self, channel: impl Into<String>) -> Self {
        self.src_response_channel = channel.into();
        self
    }

    /// Sets the credentials for the source archive.
    #[must_use]
    pub fn credentials(mut self, credentials: impl Into<Vec<u8>>) -> Self {
        self.encoded_credentials = credentials.into();
        self
    }

    /// Limits the bytes that the source archive reads and sends at once.
    #[must_use]
    pub fn file_io_max_length(mut self, bytes: i32) -> Self {
        self.file_io_max_length = bytes;
        self
    }

    /// Sets the session id of the replay from the source, so that recordings with the same session id can be replicated at
    /// once. Not for a replication with a live destination.
    #[must_use]
    pub fn session_id(mut self, session_id: i32) -> Self {
        self.replication_session_id = session_id;
        self
    }
}
