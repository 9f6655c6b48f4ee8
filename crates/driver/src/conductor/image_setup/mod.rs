// SPDX-License-Identifier: Apache-2.0
//! Creation of images from SETUP frames (docs/spec/wire.md §5.2).
//!
//! The receiver requests an image. The SETUP is validated and a log file requested, which takes time. When the file is
//! created, the SETUP is validated again, since everything may have changed, and the image is created. On any failure
//! the receiver is informed that there is no image, so that the next SETUP requests one again.

mod budget;
mod config;
mod congestion;
mod counters;
mod queue;

use std::sync::Arc;

use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::event::EventCode;
use taran_protocol::log::{LogBuffers, file_length};
use taran_protocol::option::OptionId;
use taran_protocol::position::FRAME_ALIGNMENT;

use super::failure::Failure;
use super::log_files::{LogFile, LogFolder, LogKey, LogRequest};
use super::log_reservation::LogDimensions;
use super::network::{Image, ImageParts, ImageTimeouts};
use super::state::ConductorState;
use super::subscribers::Subscribers;
use super::subscription_linking::LogDescriptor;
use crate::boundary::{
    CreateImage, EndpointId, ImageId, ImageShared, ReceiverCommand, ReceiverImageSpec,
    SubscriberPosition,
};
use crate::event_log::FieldValue;
use crate::receiver::ReceiverImage;
use budget::BudgetLimits;
use config::ImageConfig;

pub(crate) use budget::ImageBudget;
pub(crate) use queue::ImageQueue;

/// Bytes that are reserved for a new image, which has received nothing yet: the window and a datagram, but no less and
/// no more than this. A SETUP frame of 40 bytes causes the reservation.
const INITIAL_RESERVATION_MIN: i64 = 1024 * 1024;
const INITIAL_RESERVATION_MAX: i64 = 16 * 1024 * 1024;
const DATAGRAM_MAX: i64 = 64 * 1024;

fn initial_reservation(window: i32) -> i64 {
    (i64::from(window) + DATAGRAM_MAX).clamp(INITIAL_RESERVATION_MIN, INITIAL_RESERVATION_MAX)
}

/// An image that waits for its log file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingImage {
    ticket: u64,
    id: ImageId,
    /// Length of the file in bytes.
    length: usize,
    request: CreateImage,
}

/// Reason why a SETUP gets no image.
#[derive(Debug)]
enum ImageRefusal {
    /// The SETUP is invalid, or its source or stream exceeds a limit: recorded with source and session id.
    Request(Failure),
    /// Files or counters are short: recorded once for all sources.
    Resources(Failure),
}

impl From<Failure> for ImageRefusal {
    fn from(failure: Failure) -> Self {
        Self::Resources(failure)
    }
}

impl ConductorState {
    /// Queues a request of the receiver. On a secured channel there is no image for a stream that no peer may send any more.
    pub(crate) fn queue_image(&mut self, request: CreateImage) {
        let CreateImage {
            endpoint,
            session_id,
            stream_id,
            ..
        } = request;
        let of = self.networking.receive_endpoints.get(endpoint);
        let is_secured = of.is_some_and(|of| of.security.is_secured);
        if is_secured
            && !self
                .security
                .on_image_begun(endpoint, session_id, stream_id)
        {
            return self.ignore_setup(&request);
        }
        self.networking.image_queue.add(request);
    }

    /// Tells transport security that there is no image of a session, unless there is another one, or one is being made.
    pub(crate) fn on_image_gone(&mut self, endpoint: EndpointId, session_id: i32, stream_id: i32) {
        let networking = &self.networking;
        let has_other = networking.images.has_image(endpoint, session_id, stream_id)
            || networking.image_queue.has(endpoint, session_id, stream_id);
        if !has_other {
            self.security.on_image_gone(endpoint, session_id, stream_id);
        }
    }

    /// Starts the creation of the next requested image. Returns the number of images started.
    pub(crate) fn begin_image(&mut self) -> usize {
        let page_size = self.settings.file_page_size;
        let length = |request: &CreateImage| file_length(request.term_length, page_size);
        match self.networking.image_queue.next(length) {
            Some(request) => {
                self.on_image_requested(request);
                1
            }
            None => 0,
        }
    }

    fn on_image_requested(&mut self, request: CreateImage) {
        if self.networking.image_queue.awaits(&request) {
            // The receiver gets the answer to the first request, which it discarded when the last subscription was
            // removed.
            return;
        }
        match self.request_image_file(&request) {
            Ok(Some(pending)) => self.networking.image_queue.wait(pending),
            Ok(None) => self.ignore_setup(&request),
            Err(refusal) => self.refuse_image(&request, refusal),
        }
    }

    fn request_image_file(
        &mut self,
        request: &CreateImage,
    ) -> Result<Option<PendingImage>, ImageRefusal> {
        let Some(config) = self.validate_setup(request)? else {
            return Ok(None);
        };
        self.counters.check_remote_quota(config.counters())?;
        let id = ImageId(self.correlation_ids.next_correlation_id());
        let page_size = self.settings.file_page_size;
        let file = LogRequest {
            key: LogKey {
                folder: LogFolder::Images,
                id: id.0,
            },
            dimensions: LogDimensions {
                term_length: request.term_length,
                file_length: file_length(request.term_length, page_size),
                page_size,
            },
            start_position: config.join_position,
            reserve_to: config.join_position + initial_reservation(config.window),
            sparse: config.first.params.sparse,
        };
        let bytes = file.reserved_at_creation();
        self.check_budget(request, bytes)?;
        let ticket = self.logs.request(&file, self.now.epoch_millis)?;
        self.networking.image_budget.add(id, request, bytes);
        Ok(Some(PendingImage {
            ticket,
            id,
            length: file.dimensions.file_length,
            request: *request,
        }))
    }

    /// Checks that images which have received nothing yet leave space for this one.
    fn check_budget(&mut self, request: &CreateImage, bytes: u64) -> Result<(), ImageRefusal> {
        let settings = &self.settings.receiver;
        let limits = BudgetLimits {
            per_source: settings.pending_images_per_source,
            per_stream: settings.pending_images_per_stream,
        };
        let limits = limits.within(self.logs.capacity());
        let budget = &mut self.networking.image_budget;
        let Err(over) = budget.check(request, bytes, limits, self.now.nanos) else {
            return Ok(());
        };
        let (whose, option, configured, share) = if over.is_source {
            let option = OptionId::PendingImagesSourceLimit;
            let configured = settings.pending_images_per_source;
            ("its address", option, configured, "an eighth")
        } else {
            let option = OptionId::PendingImagesStreamLimit;
            let configured = settings.pending_images_per_stream;
            ("this stream", option, configured, "a quarter")
        };
        let (of, remedy) = if over.limit < configured {
            (share, "of the file system allows: make that larger")
        } else {
            (option.spec().property, "allows: raise that")
        };
        Err(ImageRefusal::Request(Failure::new(
            ErrorCode::StorageSpace,
            format!(
                "images from {whose} that have received nothing have {} bytes, this one needs {bytes}, the limit is {}, \
                 which is what {of} {remedy}, or look for a host that sends SETUP frames without data",
                over.used, over.limit,
            ),
        )))
    }

    /// Handles the created log file of an image, or the failure to create it.
    pub(crate) fn on_image_file(&mut self, pending: PendingImage, file: Result<LogFile, Failure>) {
        let id = pending.id;
        self.on_pending_image_file(pending, file);
        if !self.networking.images.contains(id) {
            self.networking.image_budget.remove(id);
        }
    }

    fn on_pending_image_file(&mut self, pending: PendingImage, file: Result<LogFile, Failure>) {
        let PendingImage { id, request, .. } = pending;
        let file = match file {
            Ok(file) => file,
            Err(failure) => return self.refuse_image(&request, failure.into()),
        };
        match self.validate_setup(&request) {
            Ok(Some(config)) => {
                if let Err(failure) = self.create_image(id, &request, &config, file) {
                    self.refuse_image(&request, failure.into());
                }
            }
            Ok(None) => {
                self.logs.retire(file);
                self.ignore_setup(&request);
            }
            Err(refusal) => {
                self.logs.retire(file);
                self.refuse_image(&request, refusal);
            }
        }
    }

    /// Records why a SETUP gets no image, and tells the receiver.
    fn refuse_image(&mut self, request: &CreateImage, refusal: ImageRefusal) {
        let channel = self.networking.receive_channel(request.endpoint);
        let stream_id = request.stream_id;
        let cause = format!("no image for SETUP: stream={stream_id} channel={channel}");
        let (details, code) = match refusal {
            ImageRefusal::Request(Failure { code, text }) => {
                let (source, session_id) = (request.source, request.session_id);
                let details = format!(
                    "no image for SETUP from {source}: {text}: session-id={session_id} stream={stream_id} \
                     channel={channel}"
                );
                (details, code)
            }
            ImageRefusal::Resources(Failure { code, text }) => (format!("{cause}: {text}"), code),
        };
        self.record_remote_error(code, &cause, &details);
        self.events
            .log(EventCode::TextData, &[FieldValue::Text(&details)]);
        self.ignore_setup(request);
    }

    /// Tells the receiver that a SETUP gets no image.
    fn ignore_setup(&mut self, request: &CreateImage) {
        self.networking
            .receiver
            .send(ReceiverCommand::ImageRefused {
                endpoint: request.endpoint,
                session_id: request.session_id,
                stream_id: request.stream_id,
            });
        self.on_image_gone(request.endpoint, request.session_id, request.stream_id);
    }

    fn create_image(
        &mut self,
        id: ImageId,
        request: &CreateImage,
        config: &ImageConfig,
        mut file: LogFile,
    ) -> Result<(), Failure> {
        file.set_stream(
            request.session_id,
            request.stream_id,
            &config.endpoint_channel,
        );
        let spec = config.log_spec(id, request, self.settings.file_page_size);
        let buffers = match LogBuffers::create(file.region(), &spec, 0) {
            Ok(buffers) => buffers,
            Err(error) => {
                self.logs.retire(file);
                return Err(Failure::generic(format!(
                    "cannot create the log of an image from {}: {error}",
                    request.source
                )));
            }
        };
        let congestion = match self.create_congestion_control(id, request, config) {
            Ok(created) => created,
            Err(failure) => {
                self.logs.retire(file);
                return Err(failure);
            }
        };
        let (mut counters, subscribers) = match self.image_counters(id, request, config) {
            Ok(created) => created,
            Err(failure) => {
                self.counters.free_all(&congestion.counters);
                self.logs.retire(file);
                return Err(failure);
            }
        };
        counters.congestion = congestion.counters;
        let window = congestion.control.initial_window().clamp(0, config.window);
        let room =
            file.reservation().position() - config.join_position - i64::from(FRAME_ALIGNMENT);
        let window = i32::try_from(room).map_or(window, |room| window.min(room));
        let shared = Arc::new(ImageShared::new(config.join_position, window));
        let receiver_spec = ReceiverImageSpec {
            id,
            endpoint: request.endpoint,
            transport: request.transport,
            session_id: request.session_id,
            stream_id: request.stream_id,
            log: buffers.clone(),
            join_position: config.join_position,
            mtu: request.mtu as usize,
            control: request.control,
            nak_delay: config.nak_delay(&self.settings.receiver),
            window: config.window,
            congestion_control: congestion.control,
            status_message_timeout_ns: self.settings.receiver.status_message_timeout_ns,
            liveness_timeout_ns: self.settings.receiver.image_liveness_ns,
            channel: Arc::clone(&config.endpoint_channel),
            source_identity: Arc::from(request.source.to_string()),
            high_water_mark: counters.high_water_mark.clone(),
            rebuild_position: counters.rebuild_position.clone(),
            naks_sent: counters.naks_sent.clone(),
            subscribers: receiver_positions(&subscribers),
            seed: self.random.u64(..),
            shared: Arc::clone(&shared),
        };
        let image = Image::new(
            ImageParts {
                id,
                endpoint: request.endpoint,
                session_id: request.session_id,
                stream_id: request.stream_id,
                source_identity: request.source.to_string(),
                rejoin: config.first.params.rejoin,
                wants_response: request.wants_response,
                subscribers,
                counters,
                file,
                buffers,
                shared,
                window: config.window,
                timeouts: ImageTimeouts {
                    status_message_ns: self.settings.receiver.status_message_timeout_ns,
                    liveness_ns: self.settings.receiver.image_liveness_ns,
                    untethered: config.endpoint_params.untethered,
                },
            },
            config.join_position,
            self.now.nanos,
        );
        if request.own_ttl > 0 && i32::from(request.own_ttl) < request.ttl {
            // Status messages may not reach the sender.
            self.count(SystemCounter::PossibleTtlAsymmetry);
        }
        self.register_image(image, receiver_spec);
        Ok(())
    }

    /// Registers a new image with clients and receiver.
    fn register_image(&mut self, image: Image, receiver_spec: ReceiverImageSpec) {
        for (subscription_id, counter_id) in image.subscribers.positions() {
            if let Some(subscription) = self.subscriptions.find(subscription_id) {
                let descriptor = LogDescriptor::image(&image);
                self.responses
                    .send_available_image(&descriptor, subscription, counter_id);
            }
        }
        let networking = &mut self.networking;
        networking
            .image_budget
            .watch(image.id, &receiver_spec.shared);
        networking.receive_endpoints.add_reference(image.endpoint);
        networking.images.insert(image);
        networking
            .receiver
            .send(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
                receiver_spec,
            ))));
    }
}

fn receiver_positions(subscribers: &Subscribers) -> Vec<SubscriberPosition> {
    let positions = subscribers.iter().map(|joined| joined.position.clone());
    positions
        .map(|position| SubscriberPosition { position })
        .collect()
}
