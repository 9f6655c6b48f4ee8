// SPDX-License-Identifier: Apache-2.0
//! The log of a member: its publication or subscription, its recording, and replays of it.
//!
//! **Input**: the commands of the consensus core ([`Log::execute`]). **Output**: [`Log::poll`] returns the events that answer them,
//! and the growth of the recording. Nothing waits: each command is a state that polls driver and archive.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use taran::{
    ChannelUri, ChannelUriBuilder, Client, CommandError, ControlMode, ExclusivePublication, Image,
    Param, Pending, Subscription, UriError,
};
use taran_archive_client::protocol::SourceLocation;
use taran_archive_client::{ArchiveConnection, Call, ReplayParams, ReplaySession, RequestError};

use super::catchup::{CatchupReplays, CatchupRequest};
use super::config::ClusterConfig;
use super::destination::LogDestination;
use super::remote::{Fetch, FetchProgress, Leader, Replication};
use crate::consensus::{LogCommand, LogEvent, MemberId, Nanos};
use crate::members::host;

/// Type of the counter with the recorded position.
const RECORDING_POSITION: i32 = 100;

/// Distance from the live log at which a follower that catches up subscribes to it.
const MAX_LIVE_DISTANCE: i64 = 32 * 1024 * 1024;

/// Parameters of the log that never change: those of its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogParams {
    pub(super) recording_id: i64,
    pub(super) initial_term_id: i32,
    pub(super) term_length: usize,
    pub(super) mtu: usize,
}

/// Reason why a step failed. The core starts an election.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("the driver refused a command for the log: {0}")]
    Command(#[from] CommandError),
    #[error("the archive refused a request for the log: {0}")]
    Request(#[from] RequestError),
    #[error("a channel of the log is invalid: {0}")]
    Channel(#[from] UriError),
    #[error("the session of the leader's log is not known")]
    UnknownLeader,
    #[error("the snapshot cannot be written: {0}")]
    Snapshot(taran::OfferError),
    #[error("the replay of the own log ended at {position}, before {end}")]
    ReplayEnded { position: i64, end: i64 },
    #[error("the archive has not recorded the snapshot in time")]
    SnapshotTimeout,
    #[error("the log of member {leader} cannot be read: {reason}")]
    Remote { leader: MemberId, reason: String },
}

/// Activity of the member on the log.
enum Step {
    Idle,
    Publishing {
        pending: Option<Pending<ExclusivePublication>>,
        tag: i64,
        spy: Option<Pending<Subscription>>,
        recording: Option<Call<i64>>,
    },
    Replaying {
        call: Option<Call<ReplaySession>>,
        pending: Option<Pending<Subscription>>,
        to: i64,
    },
    Releasing {
        stop: Option<Call<bool>>,
        position: Option<Call<Option<i64>>>,
    },
    Joining(Box<Joining>),
    Fetching(Box<Fetch>),
    Replicating(Box<Replication>),
}

struct Joining {
    pending: Option<Pending<Subscription>>,
    channel: String,
    is_catchup: bool,
    has_opened: bool,
    recording: Option<Call<i64>>,
}

/// A log that services in containers join before the member consumes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogJoin {
    pub(super) channel: String,
    pub(super) stream_id: i32,
    pub(super) session_id: i32,
    pub(super) position: i64,
    pub(super) max_position: i64,
    pub(super) is_leader: bool,
}

/// Progress of services that join the image of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joined {
    Due,
    Requested,
    Done,
}

/// The image that the member consumes.
struct Reader {
    subscription: Subscription,
    channel: String,
    stream_id: i32,
    joined: Joined,
    session_id: Option<i32>,
    /// End of a replay; `i64::MAX` for a live log, `i64::MIN` for one that is not read yet.
    end: i64,
    /// Position of the image of a replay, once there is one.
    replayed: Option<i64>,
}

/// The log of a member.
pub(super) struct Log {
    client: Client,
    config: Arc<ClusterConfig>,
    params: LogParams,
    step: Step,
    publication: Option<ExclusivePublication>,
    reader: Option<Reader>,
    /// Reader of the own publication, which waits for the end of a replay.
    spy: Option<Reader>,
    /// Counter of the recording.
    counter: Option<i32>,
    append: i64,
    /// Session of the leader's log, and what else a follower knows of the leader.
    leader: Option<Leader>,
    live: Option<LogDestination>,
    catchup: Option<LogDestination>,
    /// Endpoint to which a leader replays its log, with the port that the socket has.
    catchup_endpoint: String,
    /// Replays for followers that catch up.
    replays: CatchupReplays,
    /// Endpoints of followers.
    endpoints: HashMap<MemberId, String>,
    /// Services in containers join each log.
    has_containers: bool,
    join: Option<LogJoin>,
    events: VecDeque<LogEvent>,
    errors: VecDeque<LogError>,
    /// Time of the last call.
    now: Nanos,
}

impl Log {
    pub(super) fn new(
        client: Client,
        config: Arc<ClusterConfig>,
        params: LogParams,
        append: i64,
        has_containers: bool,
    ) -> Self {
        Self {
            has_containers,
            join: None,
            client,
            config,
            params,
            step: Step::Idle,
            publication: None,
            reader: None,
            spy: None,
            counter: None,
            append,
            leader: None,
            live: None,
            catchup: None,
            catchup_endpoint: String::new(),
            replays: CatchupReplays::default(),
            endpoints: HashMap::new(),
            events: VecDeque::new(),
            errors: VecDeque::new(),
            now: 0,
        }
    }

    pub(super) const fn params(&self) -> &LogParams {
        &self.params
    }

    pub(super) fn publication(&mut self) -> Option<&mut ExclusivePublication> {
        self.publication.as_mut()
    }

    /// Returns the session of the log that is read or written.
    pub(super) fn session_id(&self) -> Option<i32> {
        match &self.publication {
            Some(publication) => Some(publication.session_id()),
            None => self.leader.as_ref().map(|leader| leader.log_session_id),
        }
    }

    /// Takes what an announcement tells about a leader.
    pub(super) fn set_leader(&mut self, leader: Leader) {
        self.leader = Some(leader);
    }

    /// Returns the endpoint to which this member wants a replay.
    pub(super) fn catchup_endpoint(&self) -> &str {
        &self.catchup_endpoint
    }

    /// Takes the endpoint to which a follower wants a replay.
    pub(super) fn set_catchup_endpoint(&mut self, follower: MemberId, endpoint: &str) {
        self.endpoints.insert(follower, endpoint.to_owned());
    }

    /// Returns the image that is consumed, with the position at which it ends.
    pub(super) fn image(&mut self) -> Option<(&mut Image, i64)> {
        // A spy on the own publication is not read before the log in front of it.
        let has_containers = self.has_containers;
        let reader = self
            .reader
            .as_mut()
            .filter(|it| it.end != i64::MIN && (it.joined == Joined::Done || !has_containers))?;
        let end = reader.end;
        let image = match reader.session_id {
            Some(session) => reader.subscription.image_mut(session),
            None => reader.subscription.images().first_mut(),
        };
        image.map(|image| (image, end))
    }

    pub(super) fn next_error(&mut self) -> Option<LogError> {
        self.errors.pop_front()
    }

    /// Executes a command of the core.
    pub(super) fn execute(
        &mut self,
        command: LogCommand,
        archive: &mut ArchiveConnection,
        now: Nanos,
    ) {
        self.now = now;
        if let Err(error) = self.try_execute(command, archive, now) {
            self.fail(error);
        }
    }

    fn try_execute(
        &mut self,
        command: LogCommand,
        archive: &mut ArchiveConnection,
        now: Nanos,
    ) -> Result<(), LogError> {
        match command {
            LogCommand::Release { .. } => self.release(archive),
            LogCommand::Publish { position, .. } => self.publish(position)?,
            LogCommand::Replay { from, to } => {
                let params = ReplayParams::new().position(from).length(to - from);
                let call = archive.start_replay(
                    self.params.recording_id,
                    &self.config.replay_channel,
                    self.config.replay_stream_id,
                    &params,
                );
                self.step = Step::Replaying {
                    call: Some(call),
                    pending: None,
                    to,
                };
            }
            // Recorded since it was created, so that nothing can be missing.
            LogCommand::Record { .. } => {
                self.read_own_publication();
                if !self.has_containers {
                    self.events.push_back(LogEvent::Recording);
                }
            }
            // The owner appends it.
            LogCommand::AppendTermEvent { .. } | LogCommand::AppendMembership => {}
            // No member changes the membership yet, so there is nothing to be found.
            LogCommand::Examine { to, .. } => {
                self.events.push_back(LogEvent::Examined { position: to });
            }
            LogCommand::StartCatchup { to, from } => self.start_catchup(to, from)?,
            LogCommand::StopCatchup { to } => self.replays.stop(to),
            LogCommand::OpenCatchup { .. } => self.join(true)?,
            LogCommand::JoinLive { .. } => self.join(false)?,
            LogCommand::CloseCatchup => {
                self.add_live()?;
                if let (Some(catchup), Some(reader)) = (self.catchup.take(), &self.reader) {
                    catchup.remove(&reader.subscription)?;
                }
            }
            LogCommand::ReadTermEvent { leader, position } => {
                let target = self.leader_of(leader)?;
                let fetch = Fetch::start(&self.client, &self.config, target, position, now)?;
                self.step = Step::Fetching(Box::new(fetch));
            }
            LogCommand::Replicate { leader, to, .. } => {
                let target = self.leader_of(leader)?;
                let recording_id = self.params.recording_id;
                let replication =
                    Replication::start(&self.config, target, recording_id, to, archive)?;
                self.step = Step::Replicating(Box::new(replication));
            }
        }
        Ok(())
    }

    fn leader_of(&self, member: MemberId) -> Result<&Leader, LogError> {
        self.leader
            .as_ref()
            .filter(|leader| leader.member_id == member)
            .ok_or(LogError::UnknownLeader)
    }

    fn fail(&mut self, error: LogError) {
        self.errors.push_back(error);
        if matches!(self.step, Step::Releasing { .. }) {
            // There is no way on without the end of the recording: it is asked for again.
            self.step = Step::Releasing {
                stop: None,
                position: None,
            };
            return;
        }
        self.step = Step::Idle;
        self.events.push_back(LogEvent::Failed);
    }

    fn release(&mut self, archive: &mut ArchiveConnection) {
        self.publication = None;
        self.close_reader();
        self.spy = None;
        self.join = None;
        self.counter = None;
        self.replays.stop_all();
        self.events.clear();
        let stop = archive.stop_recording_by_identity(self.params.recording_id);
        self.step = Step::Releasing {
            stop: Some(stop),
            position: None,
        };
    }

    /// Closes the subscription of the log with its destinations, which the subscriptions of archive and services would keep open.
    fn close_reader(&mut self) {
        let destinations = [self.live.take(), self.catchup.take()];
        let Some(reader) = self.reader.take() else {
            return;
        };
        for destination in destinations.into_iter().flatten() {
            if let Err(error) = destination.remove(&reader.subscription) {
                self.errors.push_back(error.into());
            }
        }
    }

    fn publish(&mut self, position: i64) -> Result<(), LogError> {
        let (tag, subscription_tag) = (
            self.client.next_correlation_id(),
            self.client.next_correlation_id(),
        );
        let uri = ChannelUri::parse(&self.config.log_channel)?;
        let is_single = self.config.members.all().len() == 1;
        let mut builder = ChannelUriBuilder::from_uri(&uri)
            .set(Param::Alias, "log")
            .set(Param::Mtu, self.params.mtu.to_string())
            .tags(tag, Some(subscription_tag))
            .initial_position(
                position,
                self.params.initial_term_id,
                self.params.term_length,
            );
        if uri.get(Param::Endpoint).is_none() && uri.media() == taran::Media::Udp {
            builder = builder
                .control_mode(ControlMode::Manual)
                .set(Param::SpiesSimulateConnection, is_single.to_string());
            if self.config.log_control_enable {
                let own = host(&self.config.own().log);
                builder = builder.set(Param::Control, format!("{own}:0"));
            }
        }
        let channel = builder.build()?;
        let pending = self
            .client
            .async_add_exclusive_publication(channel.as_str(), self.config.log_stream_id)?;
        self.step = Step::Publishing {
            pending: Some(pending),
            tag,
            spy: None,
            recording: None,
        };
        self.append = position;
        Ok(())
    }

    fn read_own_publication(&mut self) {
        let Some(publication) = &self.publication else {
            return;
        };
        if self.reader.is_none() {
            self.reader = self.spy.take();
        }
        if let Some(reader) = &mut self.reader {
            reader.session_id = Some(publication.session_id());
            reader.end = i64::MAX;
        }
    }

    /// Returns the log that the services have to join now; [`on_services_joined`](Self::on_services_joined) answers.
    pub(super) fn take_join(&mut self) -> Option<LogJoin> {
        self.join.take()
    }

    /// Goes on with the log that the services have joined.
    pub(super) fn on_services_joined(&mut self) {
        let is_leader = self.publication.is_some();
        if let Some(reader) = &mut self.reader
            && reader.joined == Joined::Requested
        {
            reader.joined = Joined::Done;
            if is_leader && reader.end == i64::MAX {
                self.events.push_back(LogEvent::Recording);
            }
        }
    }

    /// Asks the services to join the image of the reader, once it is there.
    fn request_join(&mut self) {
        let is_leader = self.publication.is_some();
        let Some(reader) = &mut self.reader else {
            return;
        };
        if !self.has_containers || reader.joined != Joined::Due || reader.end == i64::MIN {
            return;
        }
        let views = reader.subscription.image_views();
        let view = views.into_iter().find(|view| {
            reader
                .session_id
                .is_none_or(|session| session == view.session_id())
        });
        let Some(view) = view else {
            return;
        };
        let is_live = reader.end == i64::MAX;
        // An image that does not start at the end of the own log is not consumed.
        if is_live && view.join_position() != self.append {
            return;
        }
        reader.joined = Joined::Requested;
        self.join = Some(LogJoin {
            channel: reader.channel.clone(),
            stream_id: reader.stream_id,
            session_id: view.session_id(),
            position: view.join_position(),
            max_position: reader.end,
            is_leader: is_leader && is_live,
        });
    }

    fn start_catchup(&mut self, to: MemberId, from: i64) -> Result<(), LogError> {
        let (Some(publication), Some(endpoint)) = (&self.publication, self.endpoints.get(&to))
        else {
            return Ok(());
        };
        let channel = ChannelUri::parse(&self.config.catchup_channel)?
            .with("endpoint", endpoint)?
            .with("linger", "0")?
            .with("eos", "false")?
            .with("alias", &format!("catchup-followerId-{to}"))?
            .with_session_id(publication.session_id())?;
        let request = CatchupRequest {
            recording_id: self.params.recording_id,
            channel: channel.as_str().to_owned(),
            stream_id: self.config.log_stream_id,
            from,
        };
        self.replays.start(to, request);
        Ok(())
    }

    fn join(&mut self, is_catchup: bool) -> Result<(), LogError> {
        let session_id = self
            .leader
            .as_ref()
            .map(|leader| leader.log_session_id)
            .ok_or(LogError::UnknownLeader)?;
        self.close_reader();
        let tags = format!(
            "{},{}",
            self.client.next_correlation_id(),
            self.client.next_correlation_id()
        );
        let channel = ChannelUri::parse("aeron:udp")?
            .with("tags", &tags)?
            .with("control-mode", "manual")?
            .with("group", "true")?
            .with("rejoin", "false")?
            .with("alias", "log-cm")?
            .with_session_id(session_id)?;
        let channel = channel.as_str().to_owned();
        let pending = self
            .client
            .async_add_subscription(&channel, self.config.log_stream_id)?;
        self.step = Step::Joining(Box::new(Joining {
            pending: Some(pending),
            channel,
            is_catchup,
            has_opened: false,
            recording: None,
        }));
        Ok(())
    }

    /// Subscribes to the live log, unless that is done.
    fn add_live(&mut self) -> Result<(), LogError> {
        if let (None, Some(reader)) = (&self.live, &self.reader) {
            let endpoint = &self.config.own().log;
            self.live = Some(LogDestination::add(
                &reader.subscription,
                endpoint,
                self.now,
            )?);
        }
        Ok(())
    }

    /// Takes the driver's answers for the destinations.
    fn poll_destinations(&mut self) -> Result<(), LogError> {
        if let Some(reader) = &self.reader {
            for destination in [&mut self.live, &mut self.catchup].into_iter().flatten() {
                destination.poll(&reader.subscription, self.now)?;
            }
        }
        Ok(())
    }

    /// Proceeds, and returns the next event. Returns none if there is none now.
    pub(super) fn poll(&mut self, archive: &mut ArchiveConnection, now: Nanos) -> Option<LogEvent> {
        self.now = now;
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let proceeded = self.proceed(archive, now);
        if let Err(error) = proceeded.and_then(|()| self.poll_destinations()) {
            self.fail(error);
        }
        self.request_join();
        let refused = self.replays.poll(archive, now);
        self.errors.extend(refused.map(LogError::from));
        self.watch_recording();
        self.watch_replay();
        self.events.pop_front()
    }

    fn proceed(&mut self, archive: &mut ArchiveConnection, now: Nanos) -> Result<(), LogError> {
        match &mut self.step {
            Step::Idle => Ok(()),
            Step::Publishing { .. } => self.proceed_publishing(archive),
            Step::Replaying { .. } => self.proceed_replaying(),
            Step::Releasing { .. } => self.proceed_releasing(archive),
            Step::Joining(_) => self.proceed_joining(archive),
            Step::Fetching(fetch) => match fetch.poll(&self.client, now) {
                Ok(FetchProgress::Pending) => Ok(()),
                Ok(FetchProgress::Read { position, term }) => {
                    self.step = Step::Idle;
                    self.events
                        .push_back(LogEvent::TermEventRead { position, term });
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Step::Replicating(replication) => {
                let recorded = replication.poll(archive, &self.client)?;
                let end = replication.end();
                if let Some(position) = recorded {
                    self.append = self.append.max(position);
                    if position >= end {
                        self.step = Step::Idle;
                    }
                    self.events.push_back(LogEvent::Appended {
                        position: self.append,
                        flushed: self.append,
                    });
                }
                Ok(())
            }
        }
    }

    fn proceed_publishing(&mut self, archive: &mut ArchiveConnection) -> Result<(), LogError> {
        let Step::Publishing {
            pending,
            tag,
            spy,
            recording,
        } = &mut self.step
        else {
            return Ok(());
        };
        if let Some(result) = pending.as_mut().and_then(Pending::poll) {
            *pending = None;
            let publication = result?;
            let own = self.config.own().id;
            let is_manual = ChannelUri::parse(&self.config.log_channel)?
                .get(Param::Endpoint)
                .is_none();
            if is_manual {
                for member in self.config.members.all().iter().filter(|it| it.id != own) {
                    let destination = format!("aeron:udp?endpoint={}", member.log);
                    drop(publication.async_add_destination(&destination)?);
                }
            }
            let channel = format!(
                "aeron:udp?tags={tag}|session-id={}|alias=log",
                publication.session_id()
            );
            *recording = Some(archive.extend_recording(
                self.params.recording_id,
                &channel,
                self.config.log_stream_id,
                SourceLocation::LOCAL,
                true,
            ));
            let spied = format!("aeron-spy:{channel}");
            *spy = Some(
                self.client
                    .async_add_subscription(&spied, self.config.log_stream_id)?,
            );
            self.publication = Some(publication);
        }
        if let Some(result) = recording.as_mut().and_then(Call::poll) {
            *recording = None;
            result?;
        }
        if let Some(result) = spy.as_mut().and_then(Pending::poll) {
            *spy = None;
            let subscription = result?;
            // Nothing is read before the own log is consumed up to here.
            self.reader = Some(Reader {
                channel: subscription.channel().to_owned(),
                stream_id: subscription.stream_id(),
                joined: Joined::Due,
                subscription,
                session_id: None,
                end: i64::MIN,
                replayed: None,
            });
        }
        let is_prepared = pending.is_none() && recording.is_none() && spy.is_none();
        let session = self
            .publication
            .as_ref()
            .map(ExclusivePublication::session_id);
        let (Some(session), true) = (session, is_prepared) else {
            return Ok(());
        };
        let has_image = self
            .reader
            .as_ref()
            .is_some_and(|reader| reader.subscription.image(session).is_some());
        self.counter = self.find_active(Some(session));
        if has_image && self.counter.is_some() {
            // The spy waits beside a replay of the log before it.
            self.step = Step::Idle;
            self.events.push_back(LogEvent::Published);
        }
        Ok(())
    }

    fn proceed_replaying(&mut self) -> Result<(), LogError> {
        let Step::Replaying { call, pending, to } = &mut self.step else {
            return Ok(());
        };
        let to = *to;
        if let Some(result) = call.as_mut().and_then(Call::poll) {
            *call = None;
            let channel = result?.subscription_channel(&self.config.replay_channel)?;
            *pending = Some(
                self.client
                    .async_add_subscription(&channel, self.config.replay_stream_id)?,
            );
        }
        if let Some(result) = pending.as_mut().and_then(Pending::poll) {
            *pending = None;
            let subscription = result?;
            self.replaced(Reader {
                channel: subscription.channel().to_owned(),
                stream_id: subscription.stream_id(),
                joined: Joined::Due,
                subscription,
                session_id: None,
                end: to,
                replayed: None,
            });
        }
        Ok(())
    }

    /// Returns the counter of the log's recording of this session, once the archive has continued it at the end of the log.
    fn find_active(&self, session: Option<i32>) -> Option<i32> {
        let counter = find_recording(&self.client, self.params.recording_id, session)?;
        let position = self.client.counters().value(counter);
        position
            .is_some_and(|position| position >= self.append)
            .then_some(counter)
    }

    /// Reads a replay. A spy on the own publication is kept for later.
    fn replaced(&mut self, reader: Reader) {
        self.step = Step::Idle;
        self.spy = self
            .reader
            .take()
            .filter(|old| old.end == i64::MIN)
            .or(self.spy.take());
        self.reader = Some(reader);
    }

    fn proceed_releasing(&mut self, archive: &mut ArchiveConnection) -> Result<(), LogError> {
        let recording_id = self.params.recording_id;
        let Step::Releasing { stop, position } = &mut self.step else {
            return Ok(());
        };
        if let Some(call) = stop {
            let Some(result) = call.poll() else {
                return Ok(());
            };
            *stop = None;
            result?;
        }
        let call = position.get_or_insert_with(|| archive.stop_position(recording_id));
        let Some(result) = call.poll() else {
            return Ok(());
        };
        *position = None;
        if let Some(end) = result? {
            self.append = end;
            self.step = Step::Idle;
            self.events.push_back(LogEvent::Released { position: end });
        }
        Ok(())
    }

    fn proceed_joining(&mut self, archive: &mut ArchiveConnection) -> Result<(), LogError> {
        let Step::Joining(joining) = &mut self.step else {
            return Ok(());
        };
        let session = self.leader.as_ref().map(|leader| leader.log_session_id);
        if let Some(result) = joining.pending.as_mut().and_then(Pending::poll) {
            joining.pending = None;
            let subscription = result?;
            let endpoint = if joining.is_catchup {
                &self.config.own().catchup
            } else {
                &self.config.own().log
            };
            let destination = LogDestination::add(&subscription, endpoint, self.now)?;
            if joining.is_catchup {
                self.catchup = Some(destination);
            } else {
                self.live = Some(destination);
            }
            self.reader = Some(Reader {
                channel: subscription.channel().to_owned(),
                stream_id: subscription.stream_id(),
                joined: Joined::Due,
                subscription,
                session_id: session,
                end: i64::MAX,
                replayed: None,
            });
        }
        if joining.is_catchup && !joining.has_opened {
            let configured = &self.config.own().catchup;
            let opened = match (&self.catchup, &self.reader) {
                (Some(catchup), Some(reader)) => {
                    catchup_endpoint(configured, catchup, &reader.subscription)
                }
                _ => None,
            };
            if let Some(endpoint) = opened {
                joining.has_opened = true;
                self.catchup_endpoint = endpoint;
                self.events.push_back(LogEvent::CatchupOpened);
            }
        }
        let view = session.and_then(|session| self.reader.as_ref()?.subscription.image(session));
        let Some(view) = view else {
            return Ok(());
        };
        let position = view.join_position();
        if position != self.append {
            self.step = Step::Idle;
            self.events.push_back(LogEvent::Joined { position });
            return Ok(());
        }
        let call = joining.recording.get_or_insert_with(|| {
            archive.extend_recording(
                self.params.recording_id,
                &joining.channel,
                self.config.log_stream_id,
                SourceLocation::REMOTE,
                true,
            )
        });
        if let Some(result) = call.poll() {
            result?;
        }
        self.counter = self.find_active(session);
        if self.counter.is_some() {
            self.step = Step::Idle;
            self.events.push_back(LogEvent::Joined { position });
        }
        Ok(())
    }

    /// Fails if the replay of the own log ends before it was consumed.
    fn watch_replay(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        if reader.end == i64::MIN || reader.end == i64::MAX {
            return;
        }
        if let Some(image) = reader.subscription.images().first() {
            reader.replayed = Some(image.position());
        } else if let Some(position) = reader.replayed
            && position < reader.end
        {
            let end = reader.end;
            self.reader = None;
            self.fail(LogError::ReplayEnded { position, end });
        }
    }

    /// Reports the growth of the recording, and its end.
    fn watch_recording(&mut self) {
        let Some(counter) = self.counter else {
            return;
        };
        let counters = self.client.counters();
        let id = self.params.recording_id.to_le_bytes();
        let is_own = counters.type_id(counter) == Some(RECORDING_POSITION)
            && counters.key(counter).is_some_and(|key| key[..8] == id);
        let position = counters.value(counter);
        match position.filter(|_| is_own) {
            Some(position) if position > self.append => {
                self.append = position;
                self.events.push_back(LogEvent::Appended {
                    position,
                    flushed: position,
                });
            }
            Some(_) => {}
            None => {
                self.counter = None;
                let view = self.leader.as_ref().and_then(|leader| {
                    let reader = self.reader.as_ref()?;
                    reader.subscription.image(leader.log_session_id)
                });
                let is_ended =
                    self.publication.is_none() && view.is_some_and(|view| view.is_end_of_stream());
                self.events.push_back(if is_ended {
                    LogEvent::EndOfStream
                } else {
                    LogEvent::Failed
                });
            }
        }
    }

    /// Subscribes to the live log once the replay is close to it.
    pub(super) fn approach(&mut self, leader_position: i64) {
        let distance = (self.params.term_length as i64 / 4).min(MAX_LIVE_DISTANCE);
        if self.catchup.is_some()
            && self.counter.is_some()
            && self.append + distance >= leader_position
            && let Err(error) = self.add_live()
        {
            self.fail(error);
        }
    }

    /// Ends a replay that is consumed, and goes on with the own publication if there is one.
    pub(super) fn on_consumed(&mut self, position: i64) {
        if self
            .reader
            .as_ref()
            .is_some_and(|reader| reader.end <= position && reader.end != i64::MIN)
        {
            self.reader = self.spy.take();
        }
    }

    pub(super) fn append_position(&self) -> i64 {
        self.append
    }

    /// Takes a truncation of the recording.
    pub(super) fn on_truncated(&mut self, position: i64) {
        self.append = self.append.min(position);
    }
}

/// Returns the endpoint of a catch-up destination, once it is known: an endpoint with port 0 gets the port that its socket has.
fn catchup_endpoint(
    configured: &str,
    destination: &LogDestination,
    subscription: &Subscription,
) -> Option<String> {
    let (host, port) = configured.rsplit_once(':')?;
    if port.trim_start_matches('0').is_empty() {
        if !destination.is_added() {
            return None;
        }
        // The live log has its own socket only later.
        let address = subscription.local_socket_addresses().first().copied()?;
        return Some(format!("{host}:{}", address.port()));
    }
    Some(configured.to_owned())
}

/// Returns the counter of an active recording, of this session if one is given.
pub(super) fn find_recording(
    client: &Client,
    recording_id: i64,
    session_id: Option<i32>,
) -> Option<i32> {
    let id = recording_id.to_le_bytes();
    let session = session_id.map(i32::to_le_bytes);
    let found = client.counters().find(|meta| {
        meta.type_id == RECORDING_POSITION
            && meta.key[..8] == id
            && session.is_none_or(|session| meta.key[8..12] == session)
    });
    found.map(|meta| meta.id)
}
