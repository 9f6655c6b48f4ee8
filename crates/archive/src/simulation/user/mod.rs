// SPDX-License-Identifier: Apache-2.0
//! A user of an archive: publishes streams, makes requests, and checks what comes back.

mod replay;
mod task;
mod track;

use taran::{Client, ClientBuilder, Connecting, Counter, Pending, Progress};
use taran_archive_client::protocol::{RecordingSignal, RecordingSignalEvent};
use taran_archive_client::{
    ArchiveConnecting, ArchiveConnection, ArchiveContext, ArchiveEvent, ReplayParams,
    ReplicationParams,
};
use taran_sim::{AfterKill, CycleContext, HostEnv, Process, Violation};

use super::journal::{Journal, Role};
use replay::ReplayCheck;
pub(super) use replay::WantedReplay;
use task::{Task, location};
use track::Track;

/// Time between attempts to connect.
const RETRY_NS: i64 = 100_000_000;
/// Ports of recorded streams.
const STREAM_PORT: u16 = 40_500;
const SPIED_PORT: u16 = 40_600;
/// Port at which receivers of streams with several destinations ask for them.
const CONTROL_PORT: u16 = 40_700;
/// Stream of requests to archives.
const CONTROL_STREAM: i32 = 10;
/// First port of replays.
const REPLAY_PORT: u16 = 42_000;

/// Way of a stream into the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Media {
    Ipc,
    /// From another host.
    Udp,
    /// Of the archive's own driver.
    Spied,
    /// Of the archive's own driver, for all receivers that ask.
    Shared,
}

/// Addresses that a user needs.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    pub(super) own: String,
    /// Address of the archive that records the streams.
    pub(super) archive: String,
    /// True if the user's archive is on the same host.
    pub(super) is_local: bool,
    /// The archive to which the user is connected.
    pub(super) role: Role,
}

/// A replication that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedReplication {
    /// Recording of the source.
    pub(super) source: i64,
    /// Recording of the replica to extend.
    pub(super) destination: Option<i64>,
    pub(super) stop: Option<i64>,
    /// Session of the replay; `None` for that of the recording.
    pub(super) session_id: Option<i32>,
    /// True if the replication joins the live stream.
    pub(super) is_live: bool,
}

enum ClientState {
    Connecting(Box<Connecting>, i64),
    Connected(Client),
    Lost(String),
    Closed,
}

enum Link {
    Idle(i64),
    Connecting(Box<ArchiveConnecting>),
    Connected(Box<ArchiveConnection>),
}

/// A process with a client of the driver and one of the archive.
pub(super) struct UserProcess {
    addresses: Addresses,
    client: ClientState,
    link: Link,
    tracks: Vec<Track>,
    tasks: Vec<Task>,
    replays: Vec<ReplayCheck>,
    /// Active replications by id, with their sources.
    replications: Vec<(i64, i64)>,
    signals: Vec<RecordingSignalEvent>,
    /// The error that came last without a request.
    last_error: String,
    /// Replays are not read.
    holds_replays: bool,
    wants_all_stopped: bool,
    counters: Vec<(Pending<Counter>, Option<Counter>, i64)>,
    random: fastrand::Rng,
    /// Clients that were lost; see the archive.
    kept: Vec<ClientState>,
}

impl UserProcess {
    pub(super) fn start(env: &mut HostEnv, addresses: Addresses) -> Self {
        let nothing: [(&str, &str); 0] = [];
        let builder = ClientBuilder::with_environment(nothing)
            .aeron_dir(env.aeron_dir())
            .storage(env.storage())
            .invoker(true)
            .client_name("user")
            .on_error(|_| {});
        Self {
            addresses,
            client: ClientState::Connecting(Box::new(builder.connecting()), i64::MIN),
            link: Link::Idle(i64::MIN),
            tracks: Vec::new(),
            tasks: Vec::new(),
            replays: Vec::new(),
            replications: Vec::new(),
            signals: Vec::new(),
            last_error: String::new(),
            holds_replays: false,
            wants_all_stopped: false,
            counters: Vec::new(),
            random: fastrand::Rng::with_seed(env.random().u64(..)),
            kept: Vec::new(),
        }
    }

    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Returns true if the driver is lost: the user has to be started again.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.client, ClientState::Lost(_))
    }

    pub(super) fn is_connected(&self) -> bool {
        matches!(&self.link, Link::Connected(connection) if connection.is_connected())
    }

    /// Returns true if nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
            && self.replays.is_empty()
            && self.replications.is_empty()
            && !self.wants_all_stopped
    }

    /// Returns true if a recording is being replicated, or requests have no answers yet.
    pub(super) fn is_replicating(&self, source: i64) -> bool {
        let mut sources = self.replications.iter().map(|(_, source)| *source);
        !self.tasks.is_empty() || sources.any(|found| found == source)
    }

    pub(super) fn has_published_all(&self) -> bool {
        self.tracks
            .iter()
            .all(|track| track.messages == 0 && track.pending.is_none())
    }

    /// Returns true if a stream is open and all its messages are published.
    pub(super) fn has_published(&self, label: u32) -> bool {
        let track = self.tracks.iter().find(|track| track.label == label);
        track.is_some_and(|track| track.messages == 0 && track.publication.is_some())
    }

    /// Returns stream id and position of a stream that is open.
    pub(super) fn published(&self, label: u32) -> Option<(i32, i64)> {
        let track = self.tracks.iter().find(|track| track.label == label)?;
        let publication = track.publication.as_ref()?;
        Some((track.stream_id, publication.position()))
    }

    pub(super) fn connection(&mut self) -> Option<&mut ArchiveConnection> {
        match &mut self.link {
            Link::Connected(connection) if connection.is_connected() => Some(connection),
            _ => None,
        }
    }

    pub(super) fn connected_client(&self) -> Option<&Client> {
        match &self.client {
            ClientState::Connected(client) => Some(client),
            _ => None,
        }
    }

    // --- operations ---

    /// Publishes messages on a stream, and opens it before if it is not open.
    pub(super) fn publish(
        &mut self,
        (label, media): (u32, Media),
        (messages, longest): (u64, usize),
        journal: &mut Journal,
    ) -> bool {
        if self.track(label).is_none() {
            let stream_id = journal.new_stream_id();
            let media = if self.addresses.is_local {
                media
            } else {
                Media::Udp
            };
            if !self.open(label, media, stream_id, "") {
                return false;
            }
        }
        let Some(track) = self.track(label) else {
            return false;
        };
        track.messages += messages;
        track.longest = longest;
        true
    }

    fn track(&mut self, label: u32) -> Option<&mut Track> {
        self.tracks.iter_mut().find(|track| track.label == label)
    }

    fn open(&mut self, label: u32, media: Media, stream_id: i32, parameters: &str) -> bool {
        let Addresses { own, archive, .. } = &self.addresses;
        let channel = match media {
            Media::Ipc => "aeron:ipc".to_owned(),
            Media::Udp => format!("aeron:udp?endpoint={archive}:{STREAM_PORT}"),
            Media::Spied => format!("aeron:udp?endpoint={own}:{SPIED_PORT}"),
            Media::Shared => shared_channel(own),
        };
        let separator = if media == Media::Ipc { '?' } else { '|' };
        let mut published = format!("{channel}{separator}term-length=64k|mtu=1408");
        if matches!(media, Media::Spied | Media::Shared) {
            published.push_str("|ssc=true");
        }
        published.push_str(parameters);
        let Some(client) = self.connected_client() else {
            return false;
        };
        let Ok(pending) = client.async_add_exclusive_publication(published, stream_id) else {
            return false;
        };
        self.tracks.push(Track {
            label,
            stream_id,
            channel,
            media,
            pending: Some(pending),
            publication: None,
            messages: 0,
            longest: 100,
            next: None,
            count: 0,
        });
        true
    }

    /// Closes the publication of a stream.
    pub(super) fn close_track(&mut self, label: u32) -> bool {
        let before = self.tracks.len();
        self.tracks.retain(|track| track.label != label);
        self.tracks.len() < before
    }

    pub(super) fn close_all_tracks(&mut self) {
        self.tracks.clear();
    }

    pub(super) fn record(&mut self, label: u32, auto_stop: bool) -> bool {
        let Some(track) = self.track(label) else {
            return false;
        };
        let (channel, stream_id) = (track.channel.clone(), track.stream_id);
        let location = location(track.media);
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.start_recording(&channel, stream_id, location, auto_stop);
        self.tasks.push(Task::Started(call));
        true
    }

    pub(super) fn stop_recording(&mut self, recording_id: i64) -> bool {
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.stop_recording_by_identity(recording_id);
        self.tasks.push(Task::Stopped(call));
        true
    }

    /// Stops all recording subscriptions, one after the other.
    pub(super) fn stop_all(&mut self) {
        self.wants_all_stopped = true;
    }

    /// Extends a stopped recording with a new publication.
    pub(super) fn extend(&mut self, label: u32, recording_id: i64) -> bool {
        if self.track(label).is_some() {
            return false;
        }
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.list_recording(recording_id);
        self.tasks.push(Task::Extend(label, call));
        true
    }

    pub(super) fn truncate(
        &mut self,
        recording_id: i64,
        position: i64,
        journal: &mut Journal,
    ) -> bool {
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.truncate_recording(recording_id, position);
        let known = journal.recording(recording_id);
        known.floor = known.floor.min(position);
        known.was_truncated = true;
        self.tasks
            .push(Task::Truncate(recording_id, position, call));
        true
    }

    pub(super) fn purge(&mut self, recording_id: i64, journal: &mut Journal) -> bool {
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.purge_recording(recording_id);
        journal.recording(recording_id).may_be_gone = true;
        self.tasks.push(Task::Purge(recording_id, call));
        true
    }

    /// Purges the first segments of a recording.
    pub(super) fn purge_segments(&mut self, recording_id: i64, segments: u32) -> bool {
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.list_recording(recording_id);
        self.tasks
            .push(Task::DescribeToPurgeSegments(recording_id, segments, call));
        true
    }

    pub(super) fn replay(
        &mut self,
        wanted: WantedReplay,
        is_ipc: bool,
        journal: &mut Journal,
    ) -> bool {
        let number = journal.new_replay_number();
        let channel = if is_ipc && self.addresses.is_local {
            "aeron:ipc".to_owned()
        } else {
            let port = REPLAY_PORT + (number % 1_000) as u16;
            format!("aeron:udp?endpoint={}:{port}", self.addresses.own)
        };
        let mut params = ReplayParams::new();
        if let Some(position) = wanted.position {
            params = params.position(position);
        }
        if let Some(time_ms) = wanted.time_ms {
            params = params.from_time_ms(time_ms);
        }
        if let Some(length) = wanted.length {
            params = params.length(length);
        }
        if wanted.until_now {
            params = params.until_now();
        }
        let stream_id = 10_000 + number;
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.start_replay(wanted.recording_id, &channel, stream_id, &params);
        self.tasks
            .push(Task::Replay(wanted, channel, stream_id, call));
        true
    }

    /// Replicates a recording of the source to the user's archive.
    pub(super) fn replicate(&mut self, wanted: WantedReplication) -> bool {
        let Addresses { own, archive, .. } = &self.addresses;
        let source = format!(
            "aeron:udp?endpoint={archive}:{}",
            super::archive::CONTROL_PORT
        );
        let mut params =
            ReplicationParams::new().source_response_channel(format!("aeron:udp?endpoint={own}:0"));
        if let Some(destination) = wanted.destination {
            params = params.destination(destination);
        }
        if let Some(stop) = wanted.stop {
            params = params.stop_position(stop);
        }
        if let Some(session_id) = wanted.session_id {
            params = params.session_id(session_id);
        }
        if wanted.is_live {
            let live = format!("{}|endpoint={own}:0", shared_channel(archive));
            params = params.live_destination(live);
        }
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.replicate(wanted.source, &source, CONTROL_STREAM, &params);
        self.tasks.push(Task::Replicate(wanted, call));
        true
    }

    /// Stops a replication.
    pub(super) fn stop_replication(&mut self) -> bool {
        let Some((id, _)) = self.replications.first().copied() else {
            return false;
        };
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.try_stop_replication(id);
        self.tasks.push(Task::Stopped(call));
        true
    }

    pub(super) fn list(&mut self, journal: &Journal) -> bool {
        let floors = journal
            .recordings()
            .filter(|(_, known)| !known.may_be_gone && !known.is_gone && !known.is_unavailable)
            .map(|(id, known)| (id, known.floor))
            .collect();
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.list_recordings(0, 1_000);
        self.tasks.push(Task::List(floors, call));
        true
    }

    /// Reads no replays for now, or reads them again.
    pub(super) fn hold_replays(&mut self, is_held: bool) {
        self.holds_replays = is_held;
    }

    /// Adds a counter with a value, which is kept as long as the client.
    pub(super) fn add_counter(&mut self, type_id: i32, key: &[u8], value: i64) {
        if let ClientState::Connected(client) = &self.client
            && let Ok(pending) = client.async_add_counter(type_id, key, "a consumer")
        {
            self.counters.push((pending, None, value));
        }
    }

    /// Closes the session and the client in order.
    pub(super) fn close(&mut self) {
        self.tasks.clear();
        self.replays.clear();
        self.replications.clear();
        self.tracks.clear();
        self.counters.clear();
        self.link = Link::Idle(i64::MAX);
        if let ClientState::Connected(client) =
            std::mem::replace(&mut self.client, ClientState::Closed)
        {
            client.close();
        }
    }

    // --- duty cycle ---

    fn poll_client(&mut self, context: &CycleContext<'_>) -> usize {
        let now = context.now();
        match &mut self.client {
            ClientState::Connecting(connecting, retry_at_ns) if now.nanos >= *retry_at_ns => {
                match connecting.poll(now) {
                    Ok(Progress::Connected(client)) => {
                        self.client = ClientState::Connected(client);
                        1
                    }
                    Ok(Progress::Wait(_)) => {
                        *retry_at_ns = now.nanos + RETRY_NS;
                        0
                    }
                    Err(error) => {
                        self.lose(error.to_string());
                        1
                    }
                }
            }
            ClientState::Connected(client) => {
                let work = client.do_work(now);
                if let Some(reason) = client.close_reason() {
                    self.lose(reason.to_string());
                }
                work
            }
            _ => 0,
        }
    }

    fn lose(&mut self, text: String) {
        let state = std::mem::replace(&mut self.client, ClientState::Lost(text));
        self.kept.push(state);
    }

    fn poll_link(&mut self, context: &CycleContext<'_>) -> usize {
        let now_ns = context.now().nanos;
        match &mut self.link {
            Link::Idle(retry_at_ns) if now_ns >= *retry_at_ns => {
                let ClientState::Connected(client) = &self.client else {
                    return 0;
                };
                let Addresses {
                    own,
                    archive,
                    is_local,
                    ..
                } = &self.addresses;
                let base = ArchiveContext::new();
                let archive_context = if *is_local {
                    base.control_channel("aeron:ipc")
                        .response_channel("aeron:ipc")
                } else {
                    base.control_channel(format!(
                        "aeron:udp?endpoint={archive}:{}",
                        super::archive::CONTROL_PORT
                    ))
                    .response_channel(format!("aeron:udp?endpoint={own}:0"))
                };
                self.link = match archive_context.connecting(client, now_ns) {
                    Ok(connecting) => Link::Connecting(Box::new(connecting)),
                    Err(_) => Link::Idle(now_ns + RETRY_NS),
                };
                1
            }
            Link::Connecting(connecting) => match connecting.poll(now_ns) {
                Ok(None) => 0,
                Ok(Some(connection)) => {
                    self.link = Link::Connected(Box::new(connection));
                    1
                }
                Err(_) => {
                    self.link = Link::Idle(now_ns + RETRY_NS);
                    1
                }
            },
            Link::Connected(connection) => {
                let work = connection.poll(now_ns);
                while let Some(event) = connection.next_event() {
                    match event {
                        ArchiveEvent::Signal(signal) => self.signals.push(signal),
                        ArchiveEvent::Error(error) => self.last_error = error.to_string(),
                        _ => {}
                    }
                }
                if !connection.is_connected() {
                    // Their ends are not told.
                    self.replications.clear();
                    self.link = Link::Idle(now_ns + RETRY_NS);
                }
                work
            }
            Link::Idle(_) => 0,
        }
    }

    /// Takes note of what became of replications. Their ids come with answers before.
    fn take_signals(&mut self, journal: &mut Journal) {
        for signal in std::mem::take(&mut self.signals) {
            let of_signal = |(id, _): &(i64, i64)| *id == signal.correlation_id;
            let Some(at) = self.replications.iter().position(of_signal) else {
                continue;
            };
            match signal.signal {
                RecordingSignal::REPLICATE | RecordingSignal::EXTEND => {
                    journal.on_replica(signal.recording_id, self.replications[at].1);
                }
                RecordingSignal::MERGE => {
                    journal.recording(signal.recording_id).was_merged = true;
                    journal.counts.merges += 1;
                }
                RecordingSignal::ReplicateEnd => {
                    self.replications.swap_remove(at);
                    journal.counts.replications_ended += 1;
                }
                _ => {}
            }
        }
    }

    fn poll_tracks(&mut self, journal: &mut Journal) -> usize {
        let mut work = 0;
        let random = &mut self.random;
        for track in &mut self.tracks {
            work += track.poll(random, journal);
        }
        // A publication that the driver refused, or has taken away.
        self.tracks.retain(|track| {
            track.pending.is_some() || track.publication.as_ref().is_some_and(|it| !it.is_closed())
        });
        work
    }
}

/// Returns the channel of streams for all receivers that ask at a host.
fn shared_channel(address: &str) -> String {
    format!("aeron:udp?control={address}:{CONTROL_PORT}|control-mode=dynamic")
}

impl UserProcess {
    /// Runs one duty cycle.
    fn cycle(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let mut work = self.poll_client(context);
        if self.connected_client().is_none() {
            return Ok(work);
        }
        for (pending, counter, value) in &mut self.counters {
            if counter.is_none()
                && let Some(Ok(added)) = pending.poll()
            {
                added.set(*value);
                *counter = Some(added);
            }
        }
        work += self.poll_link(context);
        let now_ns = context.now().nanos;
        let journal = context.shared::<Journal>();
        work += self.poll_tracks(journal);
        work += self.poll_tasks(now_ns, journal)?;
        self.take_signals(journal);
        work += self.poll_replays(now_ns, journal)?;
        if self.wants_all_stopped
            && self.tasks.is_empty()
            && let Some(connection) = self.connection()
        {
            let call = connection.list_recording_subscriptions(0, 100, "", None);
            self.tasks.push(Task::ListSubscriptions(call));
        }
        Ok(work)
    }
}

impl Process for UserProcess {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        context.shared::<Journal>().select(self.addresses.role);
        let done = self.cycle(context);
        let journal = context.shared::<Journal>();
        let done = done.map_err(|violation| journal.explain(violation));
        journal.select(Role::Source);
        done
    }

    fn agents(&self, agents: &mut Vec<usize>) {
        if !matches!(self.client, ClientState::Lost(_) | ClientState::Closed) {
            agents.push(0);
        }
    }

    fn on_kill(&mut self) -> AfterKill {
        AfterKill::Keep
    }

    fn describe(&self) -> String {
        let client = match &self.client {
            ClientState::Connecting(..) => "connecting".to_owned(),
            ClientState::Connected(_) => "connected".to_owned(),
            ClientState::Lost(text) => format!("lost: {text}"),
            ClientState::Closed => "closed".to_owned(),
        };
        format!(
            "user at {}: client {client}, archive {}, {} tracks, {} tasks, {} replays, {} replications, last error: {}",
            self.addresses.own,
            self.is_connected(),
            self.tracks.len(),
            self.tasks.len(),
            self.replays.len(),
            self.replications.len(),
            self.last_error
        )
    }
}
