// SPDX-License-Identifier: Apache-2.0
//! Counters of a new image, and the positions of its subscribers.

use taran_protocol::counter::StreamCounter;

use super::super::counters::StreamIdentity;
use super::super::failure::Failure;
use super::super::network::ImageCounters;
use super::super::state::ConductorState;
use super::super::subscribers::Subscribers;
use super::super::subscription_linking::join;
use super::config::ImageConfig;
use crate::boundary::{CreateImage, ImageId};

impl ConductorState {
    /// Allocates the counters of a new image and its subscribers; all or none.
    pub(super) fn image_counters(
        &mut self,
        id: ImageId,
        request: &CreateImage,
        config: &ImageConfig,
    ) -> Result<(ImageCounters, Subscribers), Failure> {
        let identity = StreamIdentity {
            registration_id: id.0,
            session_id: request.session_id,
            stream_id: request.stream_id,
            channel: &config.first.text,
        };
        let owner_id = config.first.client_id;
        let positions = [
            StreamCounter::RECEIVER_HIGH_WATER_MARK,
            StreamCounter::RECEIVER_POSITION,
        ];
        let [high_water_mark, rebuild_position] =
            self.counters
                .stream(positions, &identity, owner_id, config.join_position)?;
        let naks = [StreamCounter::RECEIVER_NAKS_SENT];
        let naks_sent = match self.counters.stream(naks, &identity, owner_id, 0) {
            Ok([naks_sent]) => naks_sent,
            Err(failure) => {
                self.counters
                    .free_all([&high_water_mark, &rebuild_position]);
                return Err(failure);
            }
        };
        let counters = ImageCounters {
            high_water_mark,
            rebuild_position,
            naks_sent,
            congestion: Vec::new(),
        };
        match self.join_all(id, request, config) {
            Ok(subscribers) => Ok((counters, subscribers)),
            Err(failure) => {
                self.counters.free_all(counters.all());
                Err(failure)
            }
        }
    }

    /// Creates a position at the start of the image for every subscription; all or none.
    fn join_all(
        &mut self,
        id: ImageId,
        request: &CreateImage,
        config: &ImageConfig,
    ) -> Result<Subscribers, Failure> {
        let mut subscribers = Subscribers::default();
        let (join_position, now_ns) = (config.join_position, self.now.nanos);
        for subscription in config.subscriptions() {
            let (counters, session_id) = (&mut self.counters, request.session_id);
            match join(
                counters,
                id.0,
                session_id,
                join_position,
                subscription,
                now_ns,
            ) {
                Ok(subscriber) => subscribers.add(subscriber),
                Err(failure) => {
                    counters.free_all(subscribers.iter().map(|joined| &joined.position));
                    return Err(failure);
                }
            }
        }
        Ok(subscribers)
    }
}
