// SPDX-License-Identifier: Apache-2.0
//! Validation of a SETUP, and the configuration of the image that follows from it (docs/spec/wire.md §5.2).

use std::iter;
use std::sync::Arc;

use taran_protocol::log::{LogKind, LogSpec};
use taran_protocol::position::TermGeometry;
use taran_protocol::uri::{CongestionControl, Group, SubscriptionParams};

use super::super::failure::Failure;
use super::super::publication_config::LogSocketBuffers;
use super::super::state::ConductorState;
use super::super::subscriptions::{Source, Subscription};
use super::ImageRefusal;
use crate::boundary::{CreateImage, ImageId, NakDelaySpec};
use crate::context::ReceiverSettings;

/// Counters of an image: high-water mark, position, NAKs, and at most two of its congestion control.
const COUNTERS: usize = 5;

/// Configuration of a new image, derived from its SETUP, its endpoint and its subscriptions.
pub(super) struct ImageConfig {
    pub(super) join_position: i64,
    /// Receiver window in bytes.
    pub(super) window: i32,
    pub(super) congestion_control: CongestionControl,
    pub(super) is_group: bool,
    /// Parameters of the subscription that opened the endpoint.
    pub(super) endpoint_params: SubscriptionParams,
    pub(super) endpoint_channel: Arc<str>,
    /// The oldest matching subscription, which determines the shared parameters.
    pub(super) first: Subscription,
    others: Vec<Subscription>,
    buffers: LogSocketBuffers,
}

impl ImageConfig {
    /// Returns all matching subscriptions, oldest first.
    pub(super) fn subscriptions(&self) -> impl Iterator<Item = &Subscription> {
        iter::once(&self.first).chain(&self.others)
    }

    /// Returns an upper bound of the number of counters: those of the image and one per subscriber.
    pub(super) fn counters(&self) -> usize {
        COUNTERS + 1 + self.others.len()
    }

    /// Returns the metadata of the image's log.
    pub(super) fn log_spec(&self, id: ImageId, request: &CreateImage, page_size: i32) -> LogSpec {
        let params = &self.endpoint_params;
        LogSpec {
            correlation_id: id.0,
            page_size,
            mtu: request.mtu,
            receiver_window: self.window,
            send_buffer: self.buffers.send,
            receive_buffer: self.buffers.receive,
            untethered_window_limit_timeout_ns: params.untethered.window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered.linger_ns(),
            untethered_resting_timeout_ns: params.untethered.resting_timeout_ns,
            is_group: self.is_group,
            is_response: params.is_response,
            is_rejoining: params.rejoin,
            is_reliable: self.first.params.reliable,
            is_sparse: self.first.params.sparse,
            is_tethered: params.tether,
            ..LogSpec::new(
                LogKind::Image,
                request.session_id,
                request.stream_id,
                request.initial_term_id,
                request.term_length,
            )
        }
    }

    /// Returns the NAK timing.
    pub(super) fn nak_delay(&self, settings: &ReceiverSettings) -> NakDelaySpec {
        if !self.first.params.reliable {
            return NakDelaySpec::Unreliable;
        }
        if self.is_group {
            return NakDelaySpec::Group {
                max_backoff_ns: settings.nak_max_backoff_ns,
                group_size: settings.nak_group_size,
            };
        }
        let delay_ns = self.endpoint_params.nak_delay_ns.max(1_000);
        NakDelaySpec::Unicast {
            delay_ns,
            retry_ns: delay_ns.saturating_mul(settings.nak_retry_ratio),
        }
    }
}

impl ConductorState {
    /// Validates a request. Returns `None` if the stream has no subscription, or already has an image for them.
    pub(super) fn validate_setup(
        &self,
        request: &CreateImage,
    ) -> Result<Option<ImageConfig>, ImageRefusal> {
        let Some(endpoint) = self.networking.receive_endpoints.get(request.endpoint) else {
            return Ok(None);
        };
        let Some(params) = &endpoint.receive_params else {
            return Ok(None);
        };
        let (stream_id, session_id) = (request.stream_id, request.session_id);
        let images = &self.networking.images;
        if images.has_receiving_image(request.endpoint, session_id, stream_id) {
            return Ok(None);
        }
        let source = Source::Network(request.endpoint);
        let mut matching = self.subscriptions.matching(&source, stream_id, session_id);
        let Some(first) = matching.next() else {
            return Ok(None);
        };
        let channel = endpoint.resolved.text();
        let window = params
            .receiver_window
            .min(request.term_length.unsigned_abs() as usize / 2);
        let congestion_control = self.settings.receiver.congestion_control.as_ref();
        let congestion_control = congestion_control.unwrap_or(&params.congestion_control);
        let invalid = |reason: String| ImageRefusal::Request(Failure::generic(reason));
        let join_position = check(request, window).map_err(invalid)?;
        let is_group = match first.params.group {
            Group::Yes => true,
            Group::No => false,
            Group::Infer => endpoint.resolved.roles.multicast || request.is_group,
        };
        Ok(Some(ImageConfig {
            join_position,
            window: window as i32,
            congestion_control: congestion_control.clone(),
            is_group,
            endpoint_params: params.clone(),
            endpoint_channel: Arc::from(channel),
            first: first.clone(),
            others: matching.cloned().collect(),
            buffers: self.networking.sockets.log_buffers(Some(endpoint.buffers)),
        }))
    }
}

/// Returns the join position, or the error in the SETUP.
fn check(request: &CreateImage, window: usize) -> Result<i64, String> {
    let geometry = TermGeometry::new(request.initial_term_id, request.term_length)
        .map_err(|error| error.to_string())?;
    let position = geometry.position(request.active_term_id, request.term_offset);
    if position < 0 {
        return Err("its active term precedes its initial term".to_owned());
    }
    if position >= geometry.max_position() {
        return Err("its position space is exhausted".to_owned());
    }
    if request.mtu <= 0 || request.mtu as usize > window {
        return Err(format!(
            "mtuLength={} > initialWindowLength={window}, raise rcv-wnd or aeron.rcv.initial.window.length",
            request.mtu
        ));
    }
    Ok(position)
}
