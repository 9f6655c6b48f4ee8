// SPDX-License-Identifier: Apache-2.0
//! Congestion control of a new image (docs/spec/wire.md §5.7): supplied by the application, or named by the channel or
//! the options.

use taran_core::counters::Counter;
use taran_protocol::counter::StreamCounter;
use taran_protocol::uri::CongestionControl as Requested;

use super::super::counters::StreamIdentity;
use super::super::failure::Failure;
use super::super::state::ConductorState;
use super::config::ImageConfig;
use crate::boundary::{CreateImage, ImageId};
use crate::congestion::{CongestionControl, Cubic, CubicSpec, ImageParams, StaticWindow};

/// A congestion control and the counters to be freed with its image.
pub(super) struct CongestionControlHandle {
    pub(super) control: Box<dyn CongestionControl>,
    pub(super) counters: Vec<Counter>,
}

impl CongestionControlHandle {
    fn without_counters(control: Box<dyn CongestionControl>) -> Self {
        Self {
            control,
            counters: Vec::new(),
        }
    }
}

impl ConductorState {
    pub(super) fn create_congestion_control(
        &mut self,
        id: ImageId,
        request: &CreateImage,
        config: &ImageConfig,
    ) -> Result<CongestionControlHandle, Failure> {
        if let Some(supplier) = &mut self.networking.congestion_control
            && let Some(control) = (supplier.0)(&ImageParams {
                channel: &config.endpoint_channel,
                session_id: request.session_id,
                stream_id: request.stream_id,
                term_length: request.term_length,
                mtu: request.mtu,
                max_window: config.window,
            })
        {
            return Ok(CongestionControlHandle::without_counters(control));
        }
        match &config.congestion_control {
            Requested::Static => Ok(CongestionControlHandle::without_counters(Box::new(
                StaticWindow::new(config.window),
            ))),
            Requested::Cubic => self.create_cubic(id, request, config),
            Requested::Unknown(name) => Err(Failure::generic(format!(
                "unknown congestion control, must be static or cubic: cc={name}"
            ))),
        }
    }

    fn create_cubic(
        &mut self,
        id: ImageId,
        request: &CreateImage,
        config: &ImageConfig,
    ) -> Result<CongestionControlHandle, Failure> {
        let identity = StreamIdentity {
            registration_id: id.0,
            session_id: request.session_id,
            stream_id: request.stream_id,
            channel: &config.endpoint_channel,
        };
        let kinds = [StreamCounter::CUBIC_ROUND_TRIP, StreamCounter::CUBIC_WINDOW];
        let counters = self.counters.stream(kinds, &identity, -1, 0)?;
        let [round_trip_counter, window_counter] = counters.clone();
        let settings = &self.settings.receiver.cubic;
        Ok(CongestionControlHandle {
            control: Box::new(Cubic::new(CubicSpec {
                mtu: request.mtu,
                max_window: config.window,
                measures_round_trip: settings.measures_round_trip,
                initial_round_trip_ns: settings.initial_round_trip_ns,
                is_tcp_friendly: settings.is_tcp_friendly,
                round_trip_counter,
                window_counter,
            })),
            counters: counters.into(),
        })
    }
}
