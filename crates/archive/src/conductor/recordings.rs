// SPDX-License-Identifier: Apache-2.0
//! Starting, extending and stopping recordings (`docs/spec/archive.md` §2.3, §4.1).

use taran::{Counter, Image, ImageHandlers, ImageView, Pending, Subscription};
use taran_archive_client::protocol::{ErrorCode, RecordingSignal, SourceLocation};
use taran_protocol::event::ArchiveEventCode;
use taran_storage::{DiskError, Request as DiskRequest};

use super::catalog_store::Ticket;
use super::request::{Refusal, Requester};
use super::truncation::PendingFileOperation;
use super::{ConductorCore, Deferred, ImageEvent};
use crate::channel::RecordedChannel;
use crate::counters::CounterSpec;
use crate::files::{AddError, NewRecording};
use crate::recorder::{RecorderCommand, RecorderReport, RecordingSpec, WriterStart};
use crate::session::Signal;

/// Length of a source identity in bytes that is allowed for.
const SOURCE_IDENTITY_LENGTH: usize = 100;
/// Id of a recording subscription that the driver has not added yet.
const NOT_ADDED: i64 = -1;

/// Returns the refusal of a recording for which the catalog has no room.
fn no_room(error: AddError) -> Refusal {
    Refusal {
        code: match error {
            AddError::Full { .. } => ErrorCode::StorageSpace,
            _ => ErrorCode::Generic,
        },
        ..Refusal::logged(error)
    }
}

/// A request to record a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordingRequest<'a> {
    /// The recording to extend.
    pub(super) extends: Option<i64>,
    /// The replication that extends it.
    pub(super) replication: Option<i64>,
    pub(super) channel: &'a str,
    pub(super) stream_id: i32,
    pub(super) source_location: SourceLocation,
    pub(super) auto_stop: bool,
}

/// A [`RecordingRequest`] that waits.
#[derive(Clone, Debug)]
pub(super) struct WantedRecording {
    extends: Option<i64>,
    replication: Option<i64>,
    channel: String,
    stream_id: i32,
    source_location: SourceLocation,
    auto_stop: bool,
}

/// A recording subscription that the driver has not added yet.
#[derive(Debug)]
pub(super) struct PendingSubscription {
    pending: Pending<Subscription>,
    wanted: WantedRecording,
    recorded: RecordedChannel,
    to: Requester,
}

/// A subscription whose images are recorded.
#[derive(Debug)]
pub(super) struct RecordingSubscription {
    pub(super) subscription: Subscription,
    pub(super) recorded: RecordedChannel,
    wanted: WantedRecording,
    to: Requester,
    /// Number of recordings of its images.
    references: usize,
    /// True if no new image is recorded.
    is_stopped: bool,
}

/// A recording whose catalog entry or counter is not there yet.
#[derive(Debug)]
pub(super) struct PendingRecording {
    pub(super) start: WriterStart,
    image: Image,
    counter: Option<Counter>,
    pending_counter: Pending<Counter>,
    ticket: Ticket,
    subscription_id: i64,
    to: Requester,
}

/// A recording in the recorder.
#[derive(Debug)]
pub(super) struct ActiveRecording {
    pub(super) counter: Counter,
    image: ImageView,
    subscription_id: i64,
    to: Requester,
}

impl ActiveRecording {
    pub(super) fn image(&self) -> &ImageView {
        &self.image
    }

    pub(super) fn subscription_id(&self) -> i64 {
        self.subscription_id
    }
}

impl WantedRecording {
    pub(super) fn stream_id(&self) -> i32 {
        self.stream_id
    }
}

impl RecordingSubscription {
    /// Returns true if the subscription is listed, and can be stopped by its channel.
    pub(super) fn is_listed(&self) -> bool {
        !self.is_stopped
    }

    pub(super) fn stream_id(&self) -> i32 {
        self.wanted.stream_id()
    }
}

impl ConductorCore {
    pub(super) fn start_recording(&mut self, request: &RecordingRequest<'_>, to: Requester) {
        if let Err(refusal) = self.check_recording(request) {
            self.refuse_recording(request.replication, to, &refusal);
            return;
        }
        let wanted = WantedRecording {
            extends: request.extends,
            replication: request.replication,
            channel: request.channel.to_owned(),
            stream_id: request.stream_id,
            source_location: request.source_location,
            auto_stop: request.auto_stop,
        };
        let path = self.directory();
        self.submit(
            DiskRequest::Space { path },
            PendingFileOperation::Space { wanted, to },
        );
    }

    fn check_recording(&self, request: &RecordingRequest<'_>) -> Result<(), Refusal> {
        self.check_recording_count()?;
        let Some(recording_id) = request.extends else {
            // Twice the channel, and the source identity.
            let texts = 2 * request.channel.len() + SOURCE_IDENTITY_LENGTH;
            return self.catalog.check_room(texts).map_err(no_room);
        };
        let found = self.known(recording_id)?;
        if found.stream_id != request.stream_id {
            return Err(Refusal::new(
                ErrorCode::UnknownRecording,
                format!(
                    "the recording {recording_id} has stream id {} and not {}",
                    found.stream_id, request.stream_id
                ),
            ));
        }
        self.check_extension(recording_id)
    }

    fn check_recording_count(&self) -> Result<(), Refusal> {
        let (active, max) = (self.active_recordings(), self.config.max_recordings);
        if active < max {
            return Ok(());
        }
        Err(Refusal::new(
            ErrorCode::MaxRecordings,
            format!(
                "{active} recordings are active and {max} allowed: stop one, or raise \
                 aeron.archive.max.concurrent.recordings"
            ),
        ))
    }

    fn active_recordings(&self) -> usize {
        self.recordings.len() + self.pending_recordings.len()
    }

    /// Checks that a recording can be extended now.
    fn check_extension(&self, recording_id: i64) -> Result<(), Refusal> {
        if self.is_active(recording_id) {
            return Err(Refusal::new(
                ErrorCode::ActiveRecording,
                format!("the recording {recording_id} is active: stop it before it is extended"),
            ));
        }
        self.check_no_deletion(recording_id)
    }

    pub(super) fn is_active(&self, recording_id: i64) -> bool {
        self.recordings.contains_key(&recording_id)
            || self
                .pending_recordings
                .iter()
                .any(|recording| recording.start.recording_id == recording_id)
    }

    /// Returns the recorded position of an active recording.
    pub(super) fn recorded_position(&self, recording_id: i64) -> Option<i64> {
        let active = self.recordings.get(&recording_id);
        let pending = || {
            self.pending_recordings
                .iter()
                .find(|recording| recording.start.recording_id == recording_id)
        };
        active
            .map(|recording| recording.counter.get())
            .or_else(|| pending().map(|recording| recording.start.position))
    }

    /// Goes on with a request when the free space is known.
    pub(super) fn subscribe(
        &mut self,
        wanted: WantedRecording,
        to: Requester,
        free: Result<u64, DiskError>,
    ) {
        let replication = wanted.replication;
        if !self.is_replicating(replication) {
            return;
        }
        let subscribed = free
            .map_err(Refusal::logged)
            .and_then(|free| self.try_subscribe(wanted, to, free));
        if let Err(refusal) = subscribed {
            self.refuse_recording(replication, to, &refusal);
        }
    }

    fn refuse_recording(&mut self, replication: Option<i64>, to: Requester, refusal: &Refusal) {
        self.refuse(to, refusal);
        self.on_replication_subscription(replication, None);
    }

    fn try_subscribe(
        &mut self,
        wanted: WantedRecording,
        to: Requester,
        free: u64,
    ) -> Result<(), Refusal> {
        let threshold = self.config.low_storage_threshold;
        if free <= threshold {
            let directory = self.directory();
            return Err(Refusal::new(
                ErrorCode::StorageSpace,
                format!(
                    "{free} bytes are free in {}, and no recording starts at {threshold} or less: free some space, or \
                     lower aeron.archive.low.storage.space.threshold",
                    directory.display()
                ),
            ));
        }
        let is_local = wanted.source_location == SourceLocation::LOCAL;
        let recorded = RecordedChannel::new(&wanted.channel, wanted.stream_id, is_local)
            .map_err(Refusal::logged)?;
        if self.keys.contains_key(&recorded.key) {
            return Err(Refusal::new(
                ErrorCode::ActiveSubscription,
                format!(
                    "the stream {} is being recorded from {}: stop that first",
                    wanted.stream_id, wanted.channel
                ),
            ));
        }
        let events = self.image_sender.clone();
        let on_available = move |image: &ImageView| {
            // The conductor ends before the client does.
            let _ = events.send(ImageEvent::Available {
                subscription_id: image.subscription_registration_id(),
                correlation_id: image.correlation_id(),
            });
        };
        let handlers = ImageHandlers::new().on_available(on_available);
        let pending = self
            .client
            .async_add_subscription_with(&recorded.subscribed, wanted.stream_id, handlers)
            .map_err(Refusal::logged)?;
        self.keys.insert(recorded.key.clone(), NOT_ADDED);
        self.pending_subscriptions.push(PendingSubscription {
            pending,
            wanted,
            recorded,
            to,
        });
        Ok(())
    }

    pub(super) fn poll_pending_subscriptions(&mut self) -> usize {
        let mut work = 0;
        let mut at = 0;
        while at < self.pending_subscriptions.len() {
            let Some(result) = self.pending_subscriptions[at].pending.poll() else {
                at += 1;
                continue;
            };
            work += 1;
            let added = self.pending_subscriptions.swap_remove(at);
            let replication = added.wanted.replication;
            match result {
                Ok(_) if !self.is_replicating(replication) => {
                    self.keys.remove(&added.recorded.key);
                }
                Ok(subscription) => {
                    let id = subscription.registration_id();
                    self.keys.insert(added.recorded.key.clone(), id);
                    self.subscriptions.insert(
                        id,
                        RecordingSubscription {
                            subscription,
                            recorded: added.recorded,
                            wanted: added.wanted,
                            to: added.to,
                            references: 0,
                            is_stopped: false,
                        },
                    );
                    self.respond(added.to, Ok(id));
                    self.on_replication_subscription(replication, Some(id));
                }
                Err(error) => {
                    self.keys.remove(&added.recorded.key);
                    // The endpoint of the replication before this one may be closing.
                    if let Some(replication) = replication
                        && error.is_retryable()
                    {
                        self.on_replication_unavailable(replication, error.to_string());
                        continue;
                    }
                    self.refuse_recording(replication, added.to, &Refusal::logged(error));
                }
            }
        }
        work
    }

    // --- images ---

    pub(super) fn on_recording_image(&mut self, subscription_id: i64, correlation_id: i64) {
        let Some(found) = self.subscriptions.get_mut(&subscription_id) else {
            return;
        };
        if found.is_stopped {
            return;
        }
        let Some(image) = found
            .subscription
            .take_image_by_correlation_id(correlation_id)
        else {
            return;
        };
        let to = found.to;
        let is_auto_stop = found.wanted.auto_stop;
        if let Err(refusal) = self.record_image(subscription_id, image) {
            self.log(refusal.code, &refusal.text);
            self.refuse(to, &refusal);
            if is_auto_stop {
                self.stop_subscription(subscription_id);
            }
        }
    }

    fn record_image(&mut self, subscription_id: i64, image: Image) -> Result<(), Refusal> {
        self.check_recording_count()?;
        let Some(found) = self.subscriptions.get(&subscription_id) else {
            return Ok(());
        };
        let (to, extends) = (found.to, found.wanted.extends);
        let (recording_id, ticket) = match extends {
            Some(recording_id) => (recording_id, self.extend_entry(recording_id, to, &image)?),
            None => self.add_entry(subscription_id, &image)?,
        };
        let descriptor = self.known(recording_id)?;
        let layout = descriptor.layout().map_err(Refusal::logged)?;
        let spec = CounterSpec::recording_position(
            recording_id,
            image.session_id(),
            image.stream_id(),
            &descriptor.texts.stripped_channel,
            image.source_identity(),
            self.archive_id,
        );
        let counter = self
            .client
            .async_add_counter(spec.type_id, &spec.key, &spec.label);
        let pending_counter = match counter {
            Ok(pending) => pending,
            Err(error) => {
                self.stop_entry(recording_id, image.join_position());
                return Err(Refusal::logged(error));
            }
        };
        self.pending_recordings.push(PendingRecording {
            start: WriterStart {
                recording_id,
                layout,
                position: image.join_position(),
                is_extension: extends.is_some(),
            },
            image,
            counter: None,
            pending_counter,
            ticket,
            subscription_id,
            to,
        });
        if let Some(found) = self.subscriptions.get_mut(&subscription_id) {
            found.references += 1;
        }
        Ok(())
    }

    fn add_entry(&mut self, subscription_id: i64, image: &Image) -> Result<(i64, Ticket), Refusal> {
        let Some(found) = self.subscriptions.get(&subscription_id) else {
            return Err(Refusal::logged("the recording was stopped"));
        };
        // Term lengths are at most 2^30.
        let term_length = image.term_length() as i32;
        let segment_length = self.config.segment_length as i32;
        let new = NewRecording {
            start_timestamp: self.now.epoch_millis,
            start_position: image.join_position(),
            initial_term_id: image.initial_term_id(),
            segment_file_length: segment_length.max(term_length),
            term_buffer_length: term_length,
            mtu_length: image.mtu() as i32,
            session_id: image.session_id(),
            stream_id: image.stream_id(),
            stripped_channel: &found.recorded.stripped,
            original_channel: &found.wanted.channel,
            source_identity: image.source_identity(),
        };
        let (id, change) = self.catalog.add(&new).map_err(no_room)?;
        Ok((id, self.store.submit(change)))
    }

    fn extend_entry(
        &mut self,
        recording_id: i64,
        to: Requester,
        image: &Image,
    ) -> Result<Ticket, Refusal> {
        self.check_extension(recording_id)?;
        let found = self.known(recording_id)?;
        for (name, of_image, of_recording) in [
            ("position", image.join_position(), found.stop_position),
            (
                "initial term id",
                image.initial_term_id().into(),
                found.initial_term_id.into(),
            ),
            (
                "term length",
                image.term_length() as i64,
                found.term_buffer_length.into(),
            ),
            ("MTU", image.mtu() as i64, found.mtu_length.into()),
        ] {
            if of_image != of_recording {
                return Err(Refusal::new(
                    ErrorCode::InvalidExtension,
                    format!(
                        "the stream does not continue the recording {recording_id}: its {name} is {of_image} and has to \
                         be {of_recording}"
                    ),
                ));
            }
        }
        let extended = self.catalog.extend(
            recording_id,
            to.session_id,
            to.correlation_id,
            image.session_id(),
        );
        let change = extended.map_err(Refusal::logged)?;
        Ok(self.store.submit(change))
    }

    pub(super) fn poll_pending_recordings(&mut self) -> usize {
        let applied = self.store.applied();
        let mut work = 0;
        let mut at = 0;
        while at < self.pending_recordings.len() {
            let pending = &mut self.pending_recordings[at];
            let polled = match pending.counter {
                None => pending.pending_counter.poll(),
                Some(_) => None,
            };
            match polled {
                Some(Ok(counter)) => pending.counter = Some(counter),
                Some(Err(error)) => {
                    let failed = self.pending_recordings.swap_remove(at);
                    self.stop_entry(failed.start.recording_id, failed.start.position);
                    self.refuse(failed.to, &Refusal::logged(error));
                    self.release(failed.subscription_id);
                    work += 1;
                    continue;
                }
                None => {}
            }
            if pending.counter.is_none() || pending.ticket > applied {
                at += 1;
                continue;
            }
            work += 1;
            let ready = self.pending_recordings.swap_remove(at);
            self.start_in_recorder(ready);
        }
        work
    }

    fn start_in_recorder(&mut self, ready: PendingRecording) {
        let PendingRecording {
            start,
            image,
            counter,
            subscription_id,
            to,
            ..
        } = ready;
        let Some(counter) = counter else { return };
        counter.set(start.position);
        let signal = if start.is_extension {
            RecordingSignal::EXTEND
        } else {
            RecordingSignal::START
        };
        let recording_id = start.recording_id;
        self.signal(
            to.session_id,
            &Signal {
                correlation_id: to.correlation_id,
                recording_id,
                subscription_id,
                position: start.position,
                signal,
            },
        );
        let found = self.subscriptions.get(&subscription_id);
        let original_channel = found
            .map(|found| found.wanted.channel.clone())
            .unwrap_or_default();
        let is_stopped = found.is_none_or(|found| found.is_stopped);
        self.recordings.insert(
            recording_id,
            ActiveRecording {
                counter: counter.clone(),
                image: image.view().clone(),
                subscription_id,
                to,
            },
        );
        self.counters.recordings.increment();
        self.events.log(
            ArchiveEventCode::RecordingSessionStateChange,
            format_args!(
                "recordingId={recording_id}, INIT -> RECORDING, position={}, reason=\"\"",
                start.position
            ),
        );
        self.start_time_index(recording_id, start.position);
        self.to_recorder
            .send(RecorderCommand::Start(Box::new(RecordingSpec {
                start,
                image,
                position: counter,
                original_channel,
            })));
        if is_stopped {
            self.to_recorder
                .send(RecorderCommand::Stop { recording_id });
        }
    }

    // --- stopping ---

    pub(super) fn stop_recording(&mut self, channel: &str, stream_id: i32) -> Result<i64, Refusal> {
        let recorded = RecordedChannel::new(channel, stream_id, false).map_err(Refusal::logged)?;
        match self.keys.get(&recorded.key).copied() {
            Some(id) if id != NOT_ADDED => {
                self.stop_subscription(id);
                Ok(0)
            }
            _ => Err(Refusal::new(
                ErrorCode::UnknownSubscription,
                format!("the stream {stream_id} is not recorded from {channel}"),
            )),
        }
    }

    pub(super) fn stop_recording_subscription(&mut self, id: i64) -> Result<i64, Refusal> {
        if self
            .subscriptions
            .get(&id)
            .is_some_and(RecordingSubscription::is_listed)
        {
            self.stop_subscription(id);
            return Ok(0);
        }
        Err(Refusal::new(
            ErrorCode::UnknownSubscription,
            format!("there is no recording subscription {id}"),
        ))
    }

    pub(super) fn stop_recording_by_identity(&mut self, recording_id: i64) -> Result<i64, Refusal> {
        self.known(recording_id)?;
        let Some(active) = self.recordings.get(&recording_id) else {
            return Ok(0);
        };
        let subscription_id = active.subscription_id;
        let found = self.subscriptions.get(&subscription_id);
        let is_listed = found.is_some_and(RecordingSubscription::is_listed);
        self.to_recorder
            .send(RecorderCommand::Stop { recording_id });
        // Other images of the subscription go on, and can be stopped by its channel.
        if found.is_some_and(|found| found.references == 1) {
            self.stop_subscription(subscription_id);
        }
        Ok(i64::from(is_listed))
    }

    /// Records no new images of a subscription, and stops its recordings.
    pub(super) fn stop_subscription(&mut self, id: i64) {
        let Some(found) = self.subscriptions.get_mut(&id) else {
            return;
        };
        if !found.is_stopped {
            found.is_stopped = true;
            self.keys.remove(&found.recorded.key);
        }
        let of_subscription = self
            .recordings
            .iter()
            .filter(|(_, active)| active.subscription_id == id);
        let ids: Vec<_> = of_subscription
            .map(|(recording_id, _)| *recording_id)
            .collect();
        for recording_id in ids {
            self.to_recorder
                .send(RecorderCommand::Stop { recording_id });
        }
        self.close_unused_subscription(id);
    }

    fn close_unused_subscription(&mut self, id: i64) {
        let is_unused = self
            .subscriptions
            .get(&id)
            .is_some_and(|found| found.is_stopped && found.references == 0);
        if is_unused {
            self.subscriptions.remove(&id);
        }
    }

    /// Takes note that a recording of a subscription has ended.
    fn release(&mut self, subscription_id: i64) {
        let Some(found) = self.subscriptions.get_mut(&subscription_id) else {
            return;
        };
        found.references = found.references.saturating_sub(1);
        if found.wanted.auto_stop {
            self.stop_subscription(subscription_id);
        } else {
            self.close_unused_subscription(subscription_id);
        }
    }

    fn stop_entry(&mut self, recording_id: i64, position: i64) {
        match self
            .catalog
            .stop(recording_id, position, self.now.epoch_millis)
        {
            Ok(change) => {
                self.store.submit(change);
            }
            Err(error) => self.log(ErrorCode::Generic, &error.to_string()),
        }
    }

    pub(super) fn poll_recorder(&mut self) -> usize {
        let mut work = 0;
        while let Some(report) = self.from_recorder.try_recv() {
            work += 1;
            match report {
                RecorderReport::Held { recording_id, text } => {
                    let text = format!(
                        "recording {recording_id} holds its publisher back until there is space: {text}"
                    );
                    self.log(ErrorCode::StorageSpace, &text);
                    self.held.insert(recording_id);
                }
                RecorderReport::Resumed { recording_id } => {
                    self.held.remove(&recording_id);
                }
                RecorderReport::Abandoned { recording_id } => self.abandoned.push(recording_id),
                RecorderReport::Stopped {
                    recording_id,
                    position,
                    failure,
                } => {
                    let failure = failure.map(|failure| Refusal {
                        code: if failure.is_full {
                            ErrorCode::StorageSpace
                        } else {
                            ErrorCode::Generic
                        },
                        text: failure.text,
                        is_logged: true,
                    });
                    self.held.remove(&recording_id);
                    self.on_recording_stopped(recording_id, position, failure.as_ref());
                }
            }
        }
        if work > 0 {
            self.counters.held.set(self.held.len() as i64);
        }
        work
    }

    fn on_recording_stopped(
        &mut self,
        recording_id: i64,
        position: i64,
        failure: Option<&Refusal>,
    ) {
        let Some(active) = self.recordings.remove(&recording_id) else {
            return;
        };
        self.counters.recordings.add(-1);
        self.events.log(
            ArchiveEventCode::RecordingSessionStateChange,
            format_args!(
                "recordingId={recording_id}, RECORDING -> STOPPED, position={position}, reason=\"{}\"",
                failure.map_or("", |refusal| &refusal.text)
            ),
        );
        self.stop_time_index(recording_id, position);
        let to = active.to;
        if let Some(refusal) = failure {
            self.refuse(to, refusal);
        }
        let replication = self
            .subscriptions
            .get(&active.subscription_id)
            .and_then(|found| found.wanted.replication);
        self.on_replica_ended(replication, position, failure.is_some());
        let signal = Signal {
            correlation_id: to.correlation_id,
            recording_id,
            subscription_id: active.subscription_id,
            position,
            signal: RecordingSignal::STOP,
        };
        match self
            .catalog
            .stop(recording_id, position, self.now.epoch_millis)
        {
            Ok(change) => self.after(change, Deferred::Signal(to.session_id, signal)),
            Err(error) => {
                self.log(ErrorCode::Generic, &error.to_string());
                self.signal(to.session_id, &signal);
            }
        }
        self.release(active.subscription_id);
    }
}
