// SPDX-License-Identifier: Apache-2.0
//! A client that waits for the answers of the archive.

use taran::idle::{Backoff, IdleStrategy};
use taran::{
    ChannelUri, Client, Clock, ExclusivePublication, Publication, Subscription, SystemClock,
};

use super::{
    ArchiveConnection, ArchiveContext, ArchiveEvent, Call, ConnectError, ReplayParams,
    ReplaySession, ResponseReplay,
};
use crate::protocol::{RecordingSignal, RecordingSignalEvent, SourceLocation};
use crate::session::{Recording, RequestError};

/// Recordings that [`ArchiveClient::recordings`] requests at once.
const PAGE: i32 = 100;

/// A client of an archive whose methods wait for the answers.
///
/// Without requests it must be [polled](Self::poll) now and then: the archive closes the session of a client that does not
/// read its responses, after minutes. When the archive is lost, calls fail with [`RequestError::Disconnected`]; connect
/// again then, or use a [`ReconnectingArchive`](super::ReconnectingArchive).
///
/// ```no_run
/// use taran_archive_client::ArchiveContext;
/// use taran_archive_client::protocol::SourceLocation;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = taran::Client::builder().connect()?;
/// let mut archive = ArchiveContext::new()
///     .control_channel("aeron:ipc")
///     .response_channel("aeron:ipc")
///     .connect(&client)?;
/// archive.start_recording("aeron:ipc", 1001, SourceLocation::LOCAL, false)?;
/// for recording in archive.recordings(0) {
///     let recording = recording?;
///     println!("{} of stream {}", recording.recording_id, recording.stream_id);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ArchiveClient {
    connection: ArchiveConnection,
    clock: SystemClock,
    idle: Backoff,
}

impl ArchiveClient {
    pub(super) fn connect(context: &ArchiveContext, client: &Client) -> Result<Self, ConnectError> {
        let (mut clock, mut idle) = (SystemClock::new(), Backoff::default());
        let mut connecting = context.connecting(client, clock.now().nanos)?;
        loop {
            if let Some(connection) = connecting.poll(clock.now().nanos)? {
                return Ok(Self {
                    connection,
                    clock,
                    idle,
                });
            }
            let work = client.run_invoked().unwrap_or(0);
            idle.idle(work, &mut std::thread::sleep);
        }
    }

    /// Returns the client that uses an established connection.
    #[must_use]
    pub fn of_connection(connection: ArchiveConnection) -> Self {
        Self {
            connection,
            clock: SystemClock::new(),
            idle: Backoff::default(),
        }
    }

    /// Returns the connection, for instance for requests without waiting.
    #[must_use]
    pub fn connection(&self) -> &ArchiveConnection {
        &self.connection
    }

    /// Returns the connection, for instance for requests without waiting.
    pub fn connection_mut(&mut self) -> &mut ArchiveConnection {
        &mut self.connection
    }

    /// Returns the connection.
    #[must_use]
    pub fn into_connection(self) -> ArchiveConnection {
        self.connection
    }

    /// Returns true until the archive is lost.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection.is_connected()
    }

    /// Receives what the archive has sent, without waiting. Returns the amount of work done.
    pub fn poll(&mut self) -> usize {
        let now_ns = self.clock.now().nanos;
        self.connection.client().run_invoked().unwrap_or(0) + self.connection.poll(now_ns)
    }

    /// Polls, and returns the oldest event that was not returned yet: a signal, or an error of a recording, replay or
    /// replication.
    pub fn poll_event(&mut self) -> Option<ArchiveEvent> {
        self.poll();
        self.connection.next_event()
    }

    /// Waits for a signal that `is_wanted`, at most for the message timeout. Other signals before it are dropped.
    ///
    /// # Errors
    /// An error that the archive has sent meanwhile; [`RequestError::Timeout`]; the archive is lost.
    pub fn wait_for_signal(
        &mut self,
        mut is_wanted: impl FnMut(&RecordingSignalEvent) -> bool,
    ) -> Result<RecordingSignalEvent, RequestError> {
        let timeout = self.connection.context().message_timeout;
        let begin_ns = self.clock.now().nanos;
        loop {
            let work = self.poll();
            while let Some(event) = self.connection.next_event() {
                match event {
                    ArchiveEvent::Signal(signal) if is_wanted(&signal) => return Ok(signal),
                    ArchiveEvent::Error(error) => return Err(error.into()),
                    _ => {}
                }
            }
            self.connection.check_connected()?;
            let waited_ns = self.clock.now().nanos.saturating_sub(begin_ns);
            if u128::from(waited_ns.unsigned_abs()) >= timeout.as_nanos() {
                return Err(RequestError::Timeout {
                    request: "wait for a signal",
                    after: timeout,
                });
            }
            self.idle.idle(work, &mut std::thread::sleep);
        }
    }

    /// Waits for a signal of a recording, like [`wait_for_signal`](Self::wait_for_signal).
    ///
    /// # Errors
    /// As for [`wait_for_signal`](Self::wait_for_signal).
    pub fn wait_for_signal_of(
        &mut self,
        recording_id: i64,
        signal: RecordingSignal,
    ) -> Result<RecordingSignalEvent, RequestError> {
        self.wait_for_signal(|event| event.recording_id == recording_id && event.signal == signal)
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// The error of the request.
    pub fn wait<T>(&mut self, mut call: Call<T>) -> Result<T, RequestError> {
        self.wait_until(|_, _| call.poll())
    }

    fn wait_until<T>(
        &mut self,
        mut poll: impl FnMut(&mut ArchiveConnection, i64) -> Option<Result<T, RequestError>>,
    ) -> Result<T, RequestError> {
        loop {
            let work = self.poll();
            let now_ns = self.clock.now().nanos;
            if let Some(outcome) = poll(&mut self.connection, now_ns) {
                return outcome;
            }
            self.idle.idle(work, &mut std::thread::sleep);
        }
    }

    /// Starts a replay. Returns its id, and with it the session id of the replayed stream. For a channel with
    /// `control-mode=response` use [`replay`](Self::replay).
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn start_replay(
        &mut self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<ReplaySession, RequestError> {
        let call =
            self.connection
                .start_replay(recording_id, replay_channel, replay_stream_id, params);
        self.wait(call)
    }

    /// Starts a replay, and returns it with a subscription that receives the replayed stream and nothing else. The channel
    /// may have port 0, or `control-mode=response`.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn replay(
        &mut self,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<(ReplaySession, Subscription), RequestError> {
        let request = super::requests::REPLAY.request;
        let driver = |reason| RequestError::Driver { request, reason };
        let invalid = |error: taran::UriError| RequestError::InvalidArgument {
            request,
            reason: error.to_string(),
        };
        let client = self.connection.client().clone();
        let uri = ChannelUri::parse(replay_channel).map_err(invalid)?;
        let is_wildcard = uri
            .get(taran::Param::Endpoint)
            .is_some_and(|endpoint| endpoint.ends_with(":0"));
        if !uri.is_response() && !is_wildcard {
            let session =
                self.start_replay(recording_id, replay_channel, replay_stream_id, params)?;
            let channel = session
                .subscription_channel(replay_channel)
                .map_err(invalid)?;
            let subscription = client
                .add_subscription(channel, replay_stream_id)
                .map_err(driver)?;
            return Ok((session, subscription));
        }
        // The archive has to know the port, or the response channel: the subscription comes first.
        let subscription = client
            .add_subscription(replay_channel, replay_stream_id)
            .map_err(driver)?;
        if uri.is_response() {
            let now_ns = self.clock.now().nanos;
            let mut replay = ResponseReplay::start(
                &mut self.connection,
                recording_id,
                &subscription,
                params,
                now_ns,
            );
            let session = self.wait_until(|connection, now_ns| replay.poll(connection, now_ns))?;
            return Ok((session, subscription));
        }
        let timeout = self.connection.context().message_timeout;
        let begin_ns = self.clock.now().nanos;
        let channel = self.wait_until(|_, now_ns| {
            let is_late = u128::from((now_ns - begin_ns).unsigned_abs()) >= timeout.as_nanos();
            match subscription.try_resolve_channel_endpoint_port() {
                Some(channel) => Some(Ok(channel)),
                None if is_late => Some(Err(RequestError::Timeout {
                    request: "resolve the port of the replay channel",
                    after: timeout,
                })),
                None => None,
            }
        })?;
        let session = self.start_replay(recording_id, &channel, replay_stream_id, params)?;
        Ok((session, subscription))
    }

    /// Adds a publication and starts to record it.
    ///
    /// # Errors
    /// The publication exists already, so that its beginning would not be recorded; see [`RequestError`].
    pub fn add_recorded_publication(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Publication, RequestError> {
        let request = "add a recorded publication";
        let publication = self
            .connection
            .client()
            .add_publication(channel, stream_id)
            .map_err(|reason| RequestError::Driver { request, reason })?;
        if !publication.is_original() {
            let reason = format!(
                "the media driver has a publication of {channel} and stream {stream_id} already, whose beginning would not \
                 be recorded; start a recording of it, or use an exclusive publication"
            );
            return Err(RequestError::InvalidArgument { request, reason });
        }
        self.record(channel, stream_id, publication.session_id())?;
        Ok(publication)
    }

    /// Adds an exclusive publication and starts to record it.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn add_recorded_exclusive_publication(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication, RequestError> {
        let request = "add a recorded publication";
        let publication = self
            .connection
            .client()
            .add_exclusive_publication(channel, stream_id)
            .map_err(|reason| RequestError::Driver { request, reason })?;
        self.record(channel, stream_id, publication.session_id())?;
        Ok(publication)
    }

    /// Stops the recording of a publication that was added to be recorded.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn stop_recording_of(
        &mut self,
        channel: &str,
        stream_id: i32,
        session_id: i32,
    ) -> Result<(), RequestError> {
        let channel = with_session_id(channel, session_id)?;
        self.stop_recording(&channel, stream_id)
    }

    fn record(
        &mut self,
        channel: &str,
        stream_id: i32,
        session_id: i32,
    ) -> Result<i64, RequestError> {
        let channel = with_session_id(channel, session_id)?;
        self.start_recording(&channel, stream_id, SourceLocation::LOCAL, false)
    }

    /// Returns all recordings with ids from `from_recording_id` on, in ascending order. They are requested in pages while
    /// the iterator is used; after an error it ends.
    pub fn recordings(&mut self, from_recording_id: i64) -> Recordings<'_> {
        Recordings {
            client: self,
            next_id: from_recording_id,
            filter: None,
            page: Vec::new().into_iter(),
            is_last_page: false,
        }
    }

    /// Like [`recordings`](Self::recordings), for recordings with a stream id whose original channel contains
    /// `channel_fragment`.
    pub fn recordings_for_uri(
        &mut self,
        from_recording_id: i64,
        channel_fragment: &str,
        stream_id: i32,
    ) -> Recordings<'_> {
        Recordings {
            filter: Some((channel_fragment.to_owned(), stream_id)),
            ..self.recordings(from_recording_id)
        }
    }

    /// Closes the session, like dropping the client. Recordings, replays and replications that it has started go on.
    pub fn close(self) {
        drop(self);
    }
}

fn with_session_id(channel: &str, session_id: i32) -> Result<String, RequestError> {
    ChannelUri::parse(channel)
        .and_then(|uri| uri.with_session_id(session_id))
        .map(|uri| uri.as_str().to_owned())
        .map_err(|error| RequestError::InvalidArgument {
            request: "record a publication",
            reason: error.to_string(),
        })
}

/// Iterator over recordings, requested in pages; returned by [`ArchiveClient::recordings`].
#[derive(Debug)]
pub struct Recordings<'a> {
    client: &'a mut ArchiveClient,
    next_id: i64,
    filter: Option<(String, i32)>,
    page: std::vec::IntoIter<Recording>,
    is_last_page: bool,
}

impl Iterator for Recordings<'_> {
    type Item = Result<Recording, RequestError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(recording) = self.page.next() {
                self.next_id = recording.recording_id.saturating_add(1);
                return Some(Ok(recording));
            }
            if self.is_last_page {
                return None;
            }
            let page = match &self.filter {
                None => self.client.list_recordings(self.next_id, PAGE),
                Some((fragment, stream_id)) => {
                    self.client
                        .list_recordings_for_uri(self.next_id, PAGE, fragment, *stream_id)
                }
            };
            match page {
                Ok(page) => {
                    self.is_last_page = page.len() < PAGE as usize;
                    self.page = page.into_iter();
                }
                Err(error) => {
                    self.is_last_page = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
