//! From a SETUP to an image (spec/02 §5.2).

use std::sync::Arc;

use taran_protocol::counter::StreamCounter;
use taran_protocol::log::{LogBuffers, LogKind, LogSpec};
use taran_protocol::position::TermGeometry;
use taran_protocol::uri::{CongestionControl, Group, SubscriptionParams};

use super::counters::StreamIdentity;
use super::failure::Failure;
use super::links::{announce_image, image_position};
use super::log_files::{LogFile, LogFolder};
use super::network::{Image, ImageCounters, ImageParts, ImageTimeouts};
use super::owners::Owners;
use super::subscribers::Subscribers;
use super::subscriptions::{Source, Subscription};
use crate::boundary::{
    CongestionControlSpec, CreateImage, ImageId, ImageShared, NakDelaySpec, ReceiverCommand,
    ReceiverImageSpec, SubscriberPosition,
};
use crate::receiver::ReceiverImage;

/// What is decided about a new image before anything is allocated.
struct Plan {
    id: ImageId,
    join_position: i64,
    window: i32,
    is_group: bool,
    /// What the subscription that opened the endpoint says.
    endpoint_params: SubscriptionParams,
    endpoint_channel: Arc<str>,
    /// Everybody who wants the stream, the oldest first; at least one.
    subscriptions: Vec<Subscription>,
}

impl Owners {
    /// Makes the image that a SETUP asks for, or tells the receiver that there will be none.
    pub(crate) fn on_image_requested(&mut self, request: &CreateImage) {
        let made = match self.plan_image(request) {
            Ok(Some(plan)) => self.make_image(request, &plan),
            Ok(None) => Ok(false),
            Err(failure) => Err(failure),
        };
        match made {
            Ok(true) => return,
            Ok(false) => {}
            Err(failure) => self.record(failure.code, &failure.text),
        }
        let &CreateImage {
            endpoint,
            session_id,
            stream_id,
            ..
        } = request;
        self.networking
            .receiver
            .post(ReceiverCommand::ImageRefused {
                endpoint,
                session_id,
                stream_id,
            });
    }

    /// Checks everything first; nothing if nobody wants the stream any more.
    fn plan_image(&self, request: &CreateImage) -> Result<Option<Plan>, Failure> {
        let Some(endpoint) = self.networking.receive_endpoints.get(request.endpoint) else {
            return Ok(None);
        };
        let Some(endpoint_params) = &endpoint.receive_params else {
            return Ok(None);
        };
        let subscriptions: Vec<Subscription> = self
            .subscriptions
            .matching(
                Source::Network(request.endpoint),
                request.stream_id,
                request.session_id,
            )
            .cloned()
            .collect();
        let Some(first) = subscriptions.first() else {
            return Ok(None);
        };
        let unsound = |what: String| {
            Failure::generic(format!(
                "no image for SETUP from {}: {what}: session-id={} stream={} channel={}",
                request.source,
                request.session_id,
                request.stream_id,
                endpoint.resolved.text()
            ))
        };
        let geometry = TermGeometry::new(request.initial_term_id, request.term_length)
            .map_err(|error| unsound(error.to_string()))?;
        let window = endpoint_params
            .receiver_window
            .min(request.term_length as usize / 2);
        if request.mtu <= 0 || request.mtu as usize > window {
            return Err(unsound(format!(
                "mtu={} of the sender is greater than the receiver window of {window} bytes, raise rcv-wnd or \
                 aeron.rcv.initial.window.length",
                request.mtu
            )));
        }
        match &endpoint_params.congestion_control {
            CongestionControl::Static => {}
            CongestionControl::Cubic => {
                return Err(unsound(
                    "congestion control cubic is not built yet".to_owned(),
                ));
            }
            CongestionControl::Unknown(name) => {
                return Err(unsound(format!(
                    "unknown congestion control cc={name}, must be static or cubic"
                )));
            }
        }
        let is_group = match first.params.group {
            Group::Yes => true,
            Group::No => false,
            Group::Infer => endpoint.resolved.roles.multicast || request.is_group,
        };
        Ok(Some(Plan {
            id: ImageId(self.correlation_ids.next_correlation_id()),
            join_position: geometry.position(request.active_term_id, request.term_offset),
            window: window as i32,
            is_group,
            endpoint_params: endpoint_params.clone(),
            endpoint_channel: Arc::from(endpoint.resolved.text()),
            subscriptions,
        }))
    }

    fn make_image(&mut self, request: &CreateImage, plan: &Plan) -> Result<bool, Failure> {
        let Some(first) = plan.subscriptions.first() else {
            return Ok(false);
        };
        let identity = StreamIdentity {
            registration_id: plan.id.0,
            session_id: request.session_id,
            stream_id: request.stream_id,
            channel: &first.text,
        };
        let positions = [
            StreamCounter::RECEIVER_HIGH_WATER_MARK,
            StreamCounter::RECEIVER_POSITION,
        ];
        let [high_water_mark, rebuild_position] =
            self.counters
                .stream(positions, &identity, first.client_id, plan.join_position)?;
        let naks = [StreamCounter::RECEIVER_NAKS_SENT];
        let counters = match self.counters.stream(naks, &identity, first.client_id, 0) {
            Ok([naks_sent]) => ImageCounters {
                high_water_mark,
                rebuild_position,
                naks_sent,
            },
            Err(failure) => {
                self.counters
                    .free_all([&high_water_mark, &rebuild_position]);
                return Err(failure);
            }
        };
        let subscribers = match self.join_all(request, plan) {
            Ok(subscribers) => subscribers,
            Err(failure) => {
                self.counters.free_all(counters.all());
                return Err(failure);
            }
        };
        match self.make_image_log(request, plan) {
            Ok((file, buffers)) => {
                let shared = Arc::new(ImageShared::new(
                    plan.join_position,
                    plan.window,
                    self.now.nanos,
                ));
                let spec =
                    self.receiver_half(request, plan, &buffers, &counters, &subscribers, &shared);
                let timeouts = ImageTimeouts {
                    status_message_ns: self.settings.receiver.status_message_timeout_ns,
                    liveness_ns: self.settings.receiver.image_liveness_ns,
                    untethered: plan.endpoint_params.untethered,
                };
                let image = Image::new(
                    ImageParts {
                        id: plan.id,
                        endpoint: request.endpoint,
                        session_id: request.session_id,
                        stream_id: request.stream_id,
                        source_identity: request.source.to_string(),
                        rejoin: first.params.rejoin,
                        subscribers,
                        counters,
                        file,
                        buffers,
                        shared,
                        timeouts,
                    },
                    plan.join_position,
                    self.now.nanos,
                );
                for (subscription_id, counter_id) in image.subscribers.positions() {
                    announce_image(&mut self.replies, &image, subscription_id, counter_id);
                }
                self.networking
                    .receive_endpoints
                    .add_reference(request.endpoint);
                self.networking.images.insert(image);
                self.networking
                    .receiver
                    .post(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
                        spec,
                    ))));
                Ok(true)
            }
            Err(failure) => {
                self.counters.free_all(counters.all());
                self.counters
                    .free_all(subscribers.iter().map(|subscriber| &subscriber.position));
                Err(failure)
            }
        }
    }

    /// A position at the start of the image for everybody; all or none.
    fn join_all(&mut self, request: &CreateImage, plan: &Plan) -> Result<Subscribers, Failure> {
        let mut subscribers = Subscribers::default();
        let now_ns = self.now.nanos;
        for subscription in &plan.subscriptions {
            let counters = &mut self.counters;
            let joined = image_position(
                counters,
                plan.id,
                request.session_id,
                subscription,
                plan.join_position,
                now_ns,
            );
            match joined {
                Ok(subscriber) => subscribers.add(subscriber),
                Err(failure) => {
                    self.counters
                        .free_all(subscribers.iter().map(|subscriber| &subscriber.position));
                    return Err(failure);
                }
            }
        }
        Ok(subscribers)
    }

    fn make_image_log(
        &mut self,
        request: &CreateImage,
        plan: &Plan,
    ) -> Result<(LogFile, LogBuffers), Failure> {
        let params = &plan.endpoint_params;
        let first = plan.subscriptions.first();
        let wanted = self
            .networking
            .receive_endpoints
            .get(request.endpoint)
            .map(|e| e.buffers)
            .unwrap_or_default();
        let buffers = self.networking.sockets.log_buffers(Some(wanted));
        let spec = LogSpec {
            correlation_id: plan.id.0,
            page_size: self.settings.file_page_size,
            mtu: request.mtu,
            receiver_window: plan.window,
            send_buffer: buffers.send,
            receive_buffer: buffers.receive,
            untethered_window_limit_timeout_ns: params.untethered.window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered.linger_ns(),
            untethered_resting_timeout_ns: params.untethered.resting_timeout_ns,
            is_group: plan.is_group,
            is_response: params.is_response,
            is_rejoining: params.rejoin,
            is_reliable: first.is_none_or(|s| s.params.reliable),
            is_sparse: first.is_none_or(|s| s.params.sparse),
            is_tethered: params.tether,
            ..LogSpec::new(
                LogKind::Image,
                request.session_id,
                request.stream_id,
                request.initial_term_id,
                request.term_length,
            )
        };
        let file = self
            .logs
            .create(LogFolder::Images, plan.id.0, &spec, self.now.epoch_millis)?;
        match LogBuffers::create(file.region(), &spec, 0) {
            Ok(buffers) => Ok((file, buffers)),
            Err(error) => {
                self.logs.retire(file);
                Err(Failure::generic(format!(
                    "cannot make the log of an image from {}: {error}",
                    request.source
                )))
            }
        }
    }

    fn receiver_half(
        &mut self,
        request: &CreateImage,
        plan: &Plan,
        buffers: &LogBuffers,
        counters: &ImageCounters,
        subscribers: &Subscribers,
        shared: &Arc<ImageShared>,
    ) -> ReceiverImageSpec {
        let settings = &self.settings.receiver;
        ReceiverImageSpec {
            id: plan.id,
            endpoint: request.endpoint,
            transport: request.transport,
            session_id: request.session_id,
            stream_id: request.stream_id,
            log: buffers.clone(),
            join_position: plan.join_position,
            mtu: request.mtu as usize,
            source: request.source,
            control: request.control,
            nak_delay: self.nak_delay(plan),
            congestion_control: CongestionControlSpec::Static {
                window: plan.window,
            },
            status_message_timeout_ns: settings.status_message_timeout_ns,
            liveness_timeout_ns: settings.image_liveness_ns,
            channel: Arc::clone(&plan.endpoint_channel),
            source_identity: Arc::from(request.source.to_string()),
            high_water_mark: counters.high_water_mark.clone(),
            rebuild_position: counters.rebuild_position.clone(),
            naks_sent: counters.naks_sent.clone(),
            subscribers: subscribers
                .iter()
                .map(|subscriber| SubscriberPosition {
                    position: subscriber.position.clone(),
                })
                .collect(),
            seed: self.random.u64(..),
            shared: Arc::clone(shared),
        }
    }

    fn nak_delay(&self, plan: &Plan) -> NakDelaySpec {
        let settings = &self.settings.receiver;
        let is_reliable = plan.subscriptions.first().is_none_or(|s| s.params.reliable);
        if !is_reliable {
            return NakDelaySpec::Unreliable;
        }
        if plan.is_group {
            return NakDelaySpec::Group {
                max_backoff_ns: settings.nak_max_backoff_ns,
                group_size: settings.nak_group_size,
            };
        }
        let delay_ns = plan.endpoint_params.nak_delay_ns.max(1_000);
        NakDelaySpec::Unicast {
            delay_ns,
            retry_ns: delay_ns.saturating_mul(settings.nak_retry_ratio),
        }
    }
}
