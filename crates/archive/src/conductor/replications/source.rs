// SPDX-License-Identifier: Apache-2.0
//! The client of a source archive.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use taran::{Client, Subscription};
use taran_archive_client::{
    ArchiveConnecting, ArchiveConnection, ArchiveContext, ArchiveEvent, Call, Credentials,
    Recording, ReplayParams, ReplaySession, ResponseReplay,
};

use crate::config::ArchiveConfig;
use crate::replication::{Extent, Replication};

/// The connection to a source archive, with the requests under way.
pub(super) struct Source {
    context: SourceContext,
    recording_id: i64,
    link: Link,
    descriptor: Option<Call<Option<Recording>>>,
    position: Option<Call<Option<i64>>>,
    replay: Option<StartingReplay>,
}

/// Options of the connection.
pub(super) struct SourceContext {
    context: ArchiveContext,
    channel: String,
    is_challenged: Arc<AtomicBool>,
}

enum Link {
    None,
    Connecting(Box<ArchiveConnecting>),
    Connected(Box<ArchiveConnection>),
}

enum StartingReplay {
    Call(Call<ReplaySession>),
    Response(Box<ResponseReplay>),
}

/// Credentials of a replication, which has no answer to challenges.
struct FixedCredentials {
    encoded: Vec<u8>,
    is_challenged: Arc<AtomicBool>,
}

impl Credentials for FixedCredentials {
    fn credentials(&mut self) -> Vec<u8> {
        self.encoded.clone()
    }

    fn on_challenge(&mut self, _: &[u8]) -> Vec<u8> {
        self.is_challenged.store(true, Ordering::Relaxed);
        Vec::new()
    }
}

/// Returns the options for the client of a source archive.
pub(super) fn context(
    config: &ArchiveConfig,
    channel: &str,
    stream_id: i32,
    response_channel: &str,
    credentials: &[u8],
    name: &str,
) -> SourceContext {
    let is_challenged = Arc::new(AtomicBool::new(false));
    let response_channel = match response_channel {
        "" => config.replication_response_channel.as_deref().unwrap_or(""),
        own => own,
    };
    let timeout = Duration::from_nanos(config.message_timeout_ns.unsigned_abs());
    let context = ArchiveContext::new()
        .control_channel(channel)
        .control_stream_id(stream_id)
        .response_channel(response_channel)
        .response_stream_id(config.replication_response_stream_id)
        .property(
            "aeron.archive.control.term.buffer.length",
            config.control_term_length.to_string(),
        )
        .property(
            "aeron.archive.control.term.buffer.sparse",
            config.control_term_sparse.to_string(),
        )
        .property(
            "aeron.archive.control.mtu.length",
            config.control_mtu.to_string(),
        )
        .message_timeout(timeout)
        .client_name(name)
        .credentials(FixedCredentials {
            encoded: credentials.to_vec(),
            is_challenged: Arc::clone(&is_challenged),
        });
    SourceContext {
        context,
        channel: channel.to_owned(),
        is_challenged,
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("channel", &self.context.channel)
            .field("recording_id", &self.recording_id)
            .field("is_connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

impl Source {
    pub(super) fn new(context: SourceContext, recording_id: i64) -> Self {
        Self {
            context,
            recording_id,
            link: Link::None,
            descriptor: None,
            position: None,
            replay: None,
        }
    }

    /// Returns the recording and the control channel of its archive, for texts.
    pub(super) fn name(&self) -> String {
        format!(
            "recording {} of {}",
            self.recording_id, self.context.channel
        )
    }

    pub(super) fn is_connected(&self) -> bool {
        match &self.link {
            Link::Connected(connection) => connection.is_connected(),
            Link::None | Link::Connecting(_) => false,
        }
    }

    pub(super) fn connect(&mut self, client: &Client, now_ns: i64) -> Result<(), String> {
        let connecting = self.context.context.connecting(client, now_ns);
        let connecting = connecting.map_err(|error| error.to_string())?;
        self.link = Link::Connecting(Box::new(connecting));
        Ok(())
    }

    pub(super) fn describe(&mut self) {
        let id = self.recording_id;
        self.descriptor = self.connection().map(|archive| archive.list_recording(id));
    }

    pub(super) fn ask_position(&mut self) {
        let id = self.recording_id;
        self.position = self
            .connection()
            .map(|archive| archive.recording_position(id));
    }

    pub(super) fn start_replay(&mut self, channel: &str, stream_id: i32, params: &ReplayParams) {
        let id = self.recording_id;
        self.replay = self.connection().map(|archive| {
            StartingReplay::Call(archive.start_replay(id, channel, stream_id, params))
        });
    }

    pub(super) fn start_response_replay(
        &mut self,
        subscription: &Subscription,
        params: &ReplayParams,
        now_ns: i64,
    ) {
        let id = self.recording_id;
        self.replay = self.connection().map(|archive| {
            let replay = ResponseReplay::start(archive, id, subscription, params, now_ns);
            StartingReplay::Response(Box::new(replay))
        });
    }

    pub(super) fn stop_replay(&mut self, session: ReplaySession) {
        if let Some(archive) = self.connection() {
            // The source also ends a replay without a subscriber.
            drop(archive.stop_replay(session));
        }
    }

    fn connection(&mut self) -> Option<&mut ArchiveConnection> {
        match &mut self.link {
            Link::Connected(connection) => Some(connection),
            Link::None | Link::Connecting(_) => None,
        }
    }

    /// Gives the news of the source to a replication; `destination` is the extent of the recording that it extends.
    pub(super) fn poll(
        &mut self,
        replication: &mut Replication,
        destination: Option<Extent>,
        now_ns: i64,
    ) {
        self.poll_connecting(replication, now_ns);
        let Link::Connected(archive) = &mut self.link else {
            return;
        };
        archive.poll(now_ns);
        while let Some(event) = archive.next_event() {
            match event {
                ArchiveEvent::Error(error) => replication.on_source_error(error.to_string()),
                ArchiveEvent::Malformed(error) => replication.on_source_error(error.to_string()),
                // Signals of the source, and newer events, mean nothing here.
                _ => {}
            }
        }
        if let Some(outcome) = self.descriptor.as_mut().and_then(Call::poll) {
            self.descriptor = None;
            replication.on_described(outcome, destination);
        }
        if let Some(outcome) = self.position.as_mut().and_then(Call::poll) {
            self.position = None;
            replication.on_source_position(outcome);
        }
        let outcome = match &mut self.replay {
            None => None,
            Some(StartingReplay::Call(call)) => call.poll(),
            Some(StartingReplay::Response(replay)) => replay.poll(archive, now_ns),
        };
        if let Some(outcome) = outcome {
            self.replay = None;
            replication.on_replay(outcome);
        }
    }

    fn poll_connecting(&mut self, replication: &mut Replication, now_ns: i64) {
        let Link::Connecting(connecting) = &mut self.link else {
            return;
        };
        let outcome = connecting.poll(now_ns);
        if self.context.is_challenged.load(Ordering::Relaxed) {
            self.link = Link::None;
            let text = "the source archive asks for more than credentials, which replications have no answer to";
            replication.on_connected(Err(text.to_owned()));
            return;
        }
        match outcome {
            Ok(None) => {}
            Ok(Some(connection)) => {
                self.link = Link::Connected(Box::new(connection));
                replication.on_connected(Ok(()));
            }
            Err(error) => {
                self.link = Link::None;
                replication.on_connected(Err(error.to_string()));
            }
        }
    }
}
