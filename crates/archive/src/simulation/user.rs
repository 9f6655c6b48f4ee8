//! A user of an archive: publishes streams, makes requests, and checks what comes back.

use std::fmt::Write as _;

use taran::{
    Client, ClientBuilder, Connecting, Counter, ExclusivePublication, Pending, Progress,
    Subscription,
};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{
    ArchiveConnecting, ArchiveConnection, ArchiveContext, Call, Recording, RecordingSubscription,
    ReplayParams, ReplaySession, RequestError,
};
use taran_protocol::position::align32;
use taran_sim::{AfterKill, CycleContext, HostEnv, Process, Violation};

use super::journal::{Journal, Message};

/// Time between attempts to connect.
const RETRY_NS: i64 = 100_000_000;
/// Messages that one duty cycle offers on a publication.
const OFFERS: usize = 4;
/// Fragments that one duty cycle takes from a replay.
const FRAGMENTS: usize = 16;
/// Time without progress after which a replay is given up.
const REPLAY_TIMEOUT_NS: i64 = 40_000_000_000;
/// Ports of recorded streams.
const STREAM_PORT: u16 = 40_500;
const SPIED_PORT: u16 = 40_600;
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
}

/// Addresses that a user needs.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    pub(super) own: String,
    pub(super) archive: String,
    pub(super) is_local: bool,
}

/// A replay that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedReplay {
    pub(super) recording_id: i64,
    pub(super) position: Option<i64>,
    /// Time in place of a position.
    pub(super) time_ms: Option<i64>,
    pub(super) length: Option<i64>,
    pub(super) until_now: bool,
    /// Position that the replay has to reach before it ends.
    pub(super) must_reach: Option<i64>,
}

struct Track {
    label: u32,
    stream_id: i32,
    channel: String,
    media: Media,
    pending: Option<Pending<ExclusivePublication>>,
    publication: Option<ExclusivePublication>,
    messages: u64,
    longest: usize,
    next: Option<(Message, Vec<u8>)>,
    count: u64,
}

enum Task {
    Started(Call<i64>),
    Stopped(Call<bool>),
    Extend(u32, Call<Option<Recording>>),
    Truncate(i64, i64, Call<i64>),
    Purge(i64, Call<i64>),
    PurgeSegments(i64, Call<i64>),
    DescribeToPurgeSegments(i64, u32, Call<Option<Recording>>),
    Replay(WantedReplay, String, i32, Call<ReplaySession>),
    List(Vec<(i64, i64)>, Call<Vec<Recording>>),
    ListSubscriptions(Call<Vec<RecordingSubscription>>),
    Done,
}

struct ReplayCheck {
    wanted: WantedReplay,
    stream_id: i32,
    pending: Option<Pending<Subscription>>,
    subscription: Option<Subscription>,
    has_image: bool,
    /// Position of the next frame; `None` before the first one.
    next: Option<i64>,
    started_at: i64,
    first: Option<i64>,
    last_progress_ns: i64,
    is_over: bool,
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
        self.tasks.is_empty() && self.replays.is_empty() && !self.wants_all_stopped
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

    fn connection(&mut self) -> Option<&mut ArchiveConnection> {
        match &mut self.link {
            Link::Connected(connection) if connection.is_connected() => Some(connection),
            _ => None,
        }
    }

    fn connected_client(&self) -> Option<&Client> {
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
        };
        let separator = if media == Media::Ipc { '?' } else { '|' };
        let mut published = format!("{channel}{separator}term-length=64k|mtu=1408");
        if media == Media::Spied {
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

    pub(super) fn list(&mut self, journal: &Journal) -> bool {
        let floors = journal
            .recordings()
            .filter(|(_, known)| !known.may_be_gone && !known.is_gone && !known.is_invalid)
            .map(|(id, known)| (id, known.floor))
            .collect();
        let Some(connection) = self.connection() else {
            return false;
        };
        let call = connection.list_recordings(0, 1_000);
        self.tasks.push(Task::List(floors, call));
        true
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
                while connection.next_event().is_some() {}
                if !connection.is_connected() {
                    self.link = Link::Idle(now_ns + RETRY_NS);
                }
                work
            }
            Link::Idle(_) => 0,
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

    fn poll_tasks(&mut self, now_ns: i64, journal: &mut Journal) -> Result<usize, Violation> {
        let mut work = 0;
        let mut at = 0;
        while at < self.tasks.len() {
            let task = std::mem::replace(&mut self.tasks[at], Task::Done);
            match self.advance(task, now_ns, journal)? {
                Task::Done => {
                    self.tasks.swap_remove(at);
                    work += 1;
                }
                task => {
                    self.tasks[at] = task;
                    at += 1;
                }
            }
        }
        Ok(work)
    }

    fn advance(
        &mut self,
        task: Task,
        now_ns: i64,
        journal: &mut Journal,
    ) -> Result<Task, Violation> {
        Ok(match task {
            Task::Started(mut call) => match call.poll() {
                None => Task::Started(call),
                Some(result) => checked(result)?.map_or(Task::Done, |_| Task::Done),
            },
            Task::Stopped(mut call) => match call.poll() {
                None => Task::Stopped(call),
                Some(result) => checked(result)?.map_or(Task::Done, |_| Task::Done),
            },
            Task::Extend(label, mut call) => match call.poll() {
                None => Task::Extend(label, call),
                Some(result) => {
                    if let Some(Some(recording)) = checked(result)? {
                        self.extend_recording(label, &recording, journal)
                    } else {
                        Task::Done
                    }
                }
            },
            Task::Truncate(recording_id, position, mut call) => match call.poll() {
                None => Task::Truncate(recording_id, position, call),
                Some(result) => {
                    if checked(result)?.is_some() {
                        journal.counts.truncations += 1;
                        journal.recording(recording_id).truncated_to = Some(position);
                    }
                    Task::Done
                }
            },
            Task::Purge(recording_id, mut call) => match call.poll() {
                None => Task::Purge(recording_id, call),
                Some(result) => {
                    if checked(result)?.is_some() {
                        journal.counts.purges += 1;
                        journal.recording(recording_id).is_gone = true;
                    }
                    Task::Done
                }
            },
            Task::DescribeToPurgeSegments(recording_id, segments, mut call) => match call.poll() {
                None => Task::DescribeToPurgeSegments(recording_id, segments, call),
                Some(result) => match checked(result)?.flatten() {
                    Some(recording) => self.purge_first_segments(&recording, segments, journal),
                    None => Task::Done,
                },
            },
            Task::PurgeSegments(recording_id, mut call) => match call.poll() {
                None => Task::PurgeSegments(recording_id, call),
                Some(result) => {
                    journal.counts.segment_purges += u64::from(checked(result)?.is_some());
                    Task::Done
                }
            },
            Task::Replay(wanted, channel, stream_id, mut call) => match call.poll() {
                None => Task::Replay(wanted, channel, stream_id, call),
                Some(result) => {
                    match (checked(result)?, wanted.must_reach) {
                        (Some(session), _) => {
                            self.subscribe(wanted, &channel, stream_id, session, now_ns);
                        }
                        (None, Some(_)) => {
                            return Err(Violation(format!(
                                "the archive refused the replay {wanted:?}"
                            )));
                        }
                        (None, None) => {}
                    }
                    Task::Done
                }
            },
            Task::List(floors, mut call) => match call.poll() {
                None => Task::List(floors, call),
                Some(result) => {
                    if let Some(found) = checked(result)? {
                        check_listing(&floors, &found, journal)?;
                    }
                    Task::Done
                }
            },
            Task::ListSubscriptions(mut call) => match call.poll() {
                None => Task::ListSubscriptions(call),
                Some(result) => {
                    let found = checked(result)?;
                    if found.as_ref().is_some_and(Vec::is_empty) {
                        self.wants_all_stopped = false;
                    }
                    for subscription in found.unwrap_or_default() {
                        if let Some(connection) = self.connection() {
                            let call = connection
                                .try_stop_recording_subscription(subscription.subscription_id);
                            self.tasks.push(Task::Stopped(call));
                        }
                    }
                    Task::Done
                }
            },
            Task::Done => Task::Done,
        })
    }

    fn extend_recording(
        &mut self,
        label: u32,
        recording: &Recording,
        journal: &mut Journal,
    ) -> Task {
        let Some(stop) = recording.stop_position else {
            return Task::Done;
        };
        if self.track(label).is_some() || recording.mtu_length != 1_408 {
            return Task::Done;
        }
        let media = match recording.original_channel.as_str() {
            "aeron:ipc" => Media::Ipc,
            channel if channel.ends_with(&SPIED_PORT.to_string()) => Media::Spied,
            _ => Media::Udp,
        };
        if self.addresses.is_local == (media == Media::Udp) {
            return Task::Done;
        }
        let term_length = i64::from(recording.term_buffer_length);
        let mut parameters = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            parameters,
            "|init-term-id={}|term-id={}|term-offset={}",
            recording.initial_term_id,
            recording
                .initial_term_id
                .wrapping_add((stop / term_length) as i32),
            stop % term_length
        );
        if !self.open(label, media, recording.stream_id, &parameters) {
            return Task::Done;
        }
        let (channel, location) = (recording.original_channel.clone(), location(media));
        let (id, stream_id) = (recording.recording_id, recording.stream_id);
        let Some(connection) = self.connection() else {
            return Task::Done;
        };
        journal.counts.extensions += 1;
        Task::Started(connection.extend_recording(id, &channel, stream_id, location, false))
    }

    fn purge_first_segments(
        &mut self,
        recording: &Recording,
        segments: u32,
        journal: &mut Journal,
    ) -> Task {
        let term_length = i64::from(recording.term_buffer_length);
        let first_base = recording.start_position / term_length * term_length;
        let position = first_base + i64::from(segments) * i64::from(recording.segment_file_length);
        let id = recording.recording_id;
        let Some(connection) = self.connection() else {
            return Task::Done;
        };
        let call = connection.purge_segments(id, position);
        let known = journal.recording(id);
        known.start_max = known.start_max.max(position);
        Task::PurgeSegments(id, call)
    }

    fn subscribe(
        &mut self,
        wanted: WantedReplay,
        channel: &str,
        stream_id: i32,
        session: ReplaySession,
        now_ns: i64,
    ) {
        let Ok(channel) = session.subscription_channel(channel) else {
            return;
        };
        let Some(client) = self.connected_client() else {
            return;
        };
        let Ok(pending) = client.async_add_subscription(channel, stream_id) else {
            return;
        };
        self.replays.push(ReplayCheck {
            wanted,
            stream_id,
            pending: Some(pending),
            subscription: None,
            has_image: false,
            next: wanted.position,
            started_at: wanted.position.unwrap_or(0),
            first: None,
            last_progress_ns: now_ns,
            is_over: false,
        });
    }

    fn poll_replays(&mut self, now_ns: i64, journal: &mut Journal) -> Result<usize, Violation> {
        let mut work = 0;
        for replay in &mut self.replays {
            work += replay.poll(now_ns, journal)?;
        }
        self.replays.retain(|replay| !replay.is_over);
        Ok(work)
    }
}

fn location(media: Media) -> SourceLocation {
    match media {
        Media::Udp => SourceLocation::REMOTE,
        Media::Ipc | Media::Spied => SourceLocation::LOCAL,
    }
}

/// Returns the answer; `None` if the archive refused, was lost, or did not answer in time. Other errors are violations.
fn checked<T>(result: Result<T, RequestError>) -> Result<Option<T>, Violation> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(RequestError::UnexpectedResponse { request, code }) => Err(Violation(format!(
            "the answer to the request to {request} is {code:?}"
        ))),
        Err(_) => Ok(None),
    }
}

fn check_listing(
    floors: &[(i64, i64)],
    found: &[Recording],
    journal: &mut Journal,
) -> Result<(), Violation> {
    journal.counts.listed += 1;
    for (id, floor) in floors {
        let known = journal.recording(*id);
        if known.may_be_gone || known.is_invalid {
            continue;
        }
        let floor = known.floor.min(*floor);
        let Some(recording) = found.iter().find(|recording| recording.recording_id == *id) else {
            return Err(Violation(format!("recording {id} is not listed")));
        };
        if let Some(stop) = recording.stop_position
            && stop < floor
        {
            return Err(Violation(format!(
                "recording {id} is listed with the stop position {stop}, and was acknowledged to {floor}"
            )));
        }
    }
    Ok(())
}

impl Track {
    fn poll(&mut self, random: &mut fastrand::Rng, journal: &mut Journal) -> usize {
        if let Some(pending) = &mut self.pending {
            match pending.poll() {
                None => return 0,
                Some(Ok(publication)) => {
                    journal.on_session(publication.session_id(), self.stream_id);
                    self.publication = Some(publication);
                }
                Some(Err(_)) => {}
            }
            self.pending = None;
        }
        let Some(publication) = &mut self.publication else {
            return 0;
        };
        let mut work = 0;
        while self.messages > 0 && work < OFFERS {
            let session_id = publication.session_id();
            let (message, payload) = self.next.get_or_insert_with(|| {
                let length = random.usize(1..=self.longest);
                let key = (u64::from(session_id.cast_unsigned()) << 32 | self.count)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let message = Message::new(length, key, 1_408);
                (message, message.payload())
            });
            match publication.offer(payload) {
                Ok(end) => {
                    journal
                        .ledger(self.stream_id)
                        .add(end - message.span(), session_id, *message);
                    self.next = None;
                    self.messages -= 1;
                    self.count += 1;
                    work += 1;
                }
                Err(error) if error.is_retryable() => break,
                Err(_) => {
                    self.publication = None;
                    return work;
                }
            }
        }
        work
    }
}

impl ReplayCheck {
    fn poll(&mut self, now_ns: i64, journal: &mut Journal) -> Result<usize, Violation> {
        if let Some(pending) = &mut self.pending {
            match pending.poll() {
                None => return Ok(0),
                Some(Ok(subscription)) => self.subscription = Some(subscription),
                Some(Err(_)) => self.is_over = true,
            }
            self.pending = None;
        }
        let Some(subscription) = &mut self.subscription else {
            return Ok(0);
        };
        let id = self.wanted.recording_id;
        let recorded_stream = journal.recording(id).stream_id;
        let mut failure = None;
        let (mut next, mut frames) = (self.next, 0);
        let first = &mut self.first;
        let polled = subscription.poll(
            |payload, header| {
                let end = header.position();
                let start = end - i64::from(align32(header.frame_length()));
                // Padding up to the end of a term is skipped.
                let is_next = next.is_none_or(|next| {
                    start == next
                        || (start > next && start % (64 << 10) == 0 && start - next < 64 << 10)
                });
                if !is_next {
                    failure = Some(format!(
                        "the replay of recording {id} goes on at {start} after {next:?}"
                    ));
                } else if let Err(text) = journal.check_frame(id, recorded_stream, start, payload) {
                    failure = Some(format!("replay: {text}"));
                }
                first.get_or_insert(start);
                next = Some(end);
                frames += 1;
            },
            FRAGMENTS,
        );
        if let Some(text) = failure {
            return Err(Violation(text));
        }
        self.next = next;
        journal.counts.replayed_frames += frames;
        let Ok(work) = polled else {
            self.is_over = true;
            return Ok(1);
        };
        let has_image = subscription.image_count() > 0;
        if work > 0 || has_image != self.has_image {
            self.last_progress_ns = now_ns;
        }
        let has_ended = self.has_image && !has_image && work == 0;
        self.has_image |= has_image;
        if has_ended {
            self.is_over = true;
            self.check_end(journal)?;
        } else if now_ns - self.last_progress_ns > REPLAY_TIMEOUT_NS {
            self.is_over = true;
            if self.wanted.must_reach.is_some() {
                return Err(Violation(format!(
                    "the replay {:?} stands at {:?}",
                    self.wanted, self.next
                )));
            }
        }
        Ok(work)
    }

    fn check_end(&mut self, journal: &mut Journal) -> Result<(), Violation> {
        journal.last_replay = self.first.map(|first| (first, self.next.unwrap_or(first)));
        let reached = self.next.unwrap_or(self.started_at);
        match self.wanted.must_reach {
            // The rest is padding, if anything.
            Some(end) if reached < end && (end % (64 << 10) != 0 || end - reached >= 64 << 10) => {
                Err(Violation(format!(
                    "the replay {:?} on stream {} ended at {reached} before {end}",
                    self.wanted, self.stream_id
                )))
            }
            Some(_) => {
                journal.counts.replays_complete += 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
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
        let done = self.cycle(context);
        done.map_err(|violation| context.shared::<Journal>().explain(violation))
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
            "user at {}: client {client}, archive {}, {} tracks, {} tasks, {} replays",
            self.addresses.own,
            self.is_connected(),
            self.tracks.len(),
            self.tasks.len(),
            self.replays.len()
        )
    }
}
