// SPDX-License-Identifier: Apache-2.0
//! Commands that add and remove network subscriptions.

use taran_protocol::response::Response;

use super::super::command_error::CommandError;
use super::super::deferred_commands::ResolvedPrerequisites;
use super::super::failure::Failure;
use super::super::state::ConductorState;
use super::super::subscribers::Subscriber;
use super::super::subscription_linking::{LogDescriptor, join};
use super::super::subscriptions::{Source, Subscription};
use super::subscriptions::NewSubscription;
use crate::boundary::{EndpointId, ImageId, ReceiverCommand, SubscriberPosition};
use crate::secured::policy::{End, check_shared};

impl ConductorState {
    pub(super) fn add_network_subscription(
        &mut self,
        new: &NewSubscription,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let Some(udp) = new.channel.udp() else {
            return Err(Failure::generic("not a UDP channel").into());
        };
        let resolved = self.resolve_channel(udp, prerequisites)?;
        let canonical = self.networking.receive_endpoints.canonical(&resolved);
        let existing = self
            .networking
            .receive_endpoints
            .matching(&resolved, &canonical)?;
        let requested = existing.map_or_else(
            || self.networking.sockets.requested_buffers(&resolved),
            |e| e.buffers,
        );
        if let Some(existing) = existing {
            let security = self.security.decide(&resolved, End::Receiver)?;
            check_shared(&existing.security, &security, &resolved.channel)?;
        }
        let endpoint_id = existing.map(|endpoint| endpoint.id);
        let receive_buffer = self.networking.sockets.receive_buffer(requested);
        new.params
            .check_receive_buffer(receive_buffer, &new.channel)
            .map_err(Failure::from)?;
        // A new endpoint gets the id of its first subscription.
        let subscription = new.entry(Source::Network(endpoint_id.unwrap_or(EndpointId(new.id))));
        self.subscriptions.check(&subscription)?;
        self.ensure_client(new.client_id)?;
        let endpoint_id = match endpoint_id {
            Some(id) => id,
            None => self.open_receive_endpoint(new, resolved, canonical)?,
        };
        // Only an existing endpoint has images, so a failure here leaves no unused new endpoint behind.
        let positions = self.image_positions(endpoint_id, &subscription)?;
        self.register_network_subscription(endpoint_id, subscription);
        let status_counter_id = self
            .networking
            .receive_endpoints
            .get(endpoint_id)
            .map_or(-1, |e| e.status.id());
        self.responses.send(&Response::SubscriptionReady {
            correlation_id: new.id,
            status_counter_id,
        });
        for (image_id, subscriber) in positions {
            self.attach_image(image_id, subscriber);
        }
        Ok(())
    }

    /// Adds a subscription to an endpoint, and informs the receiver if it is the first with this stream and session.
    fn register_network_subscription(&mut self, endpoint: EndpointId, subscription: Subscription) {
        let (stream_id, session_id) = (subscription.stream_id, subscription.params.session_id);
        let is_first = !subscription.awaits_session
            && self.subscriptions.count(endpoint, stream_id, session_id) == 0;
        self.subscriptions.insert(subscription);
        self.networking.receive_endpoints.add_reference(endpoint);
        if is_first {
            self.security
                .add_subscription(endpoint, session_id, stream_id);
            self.networking
                .receiver
                .send(ReceiverCommand::AddSubscription {
                    endpoint,
                    stream_id,
                    session_id,
                });
        }
    }

    /// Creates a position for every image that the subscription reads; all or none.
    fn image_positions(
        &mut self,
        endpoint: EndpointId,
        subscription: &Subscription,
    ) -> Result<Vec<(ImageId, Subscriber)>, Failure> {
        let Self {
            networking,
            counters,
            now,
            ..
        } = self;
        let mut positions: Vec<(ImageId, Subscriber)> = Vec::new();
        if subscription.awaits_session {
            return Ok(positions);
        }
        let session_id = subscription.params.session_id;
        for image in networking
            .images
            .joinable(endpoint, subscription.stream_id, session_id)
        {
            let join_position = image.join_position();
            match join(
                counters,
                image.id.0,
                image.session_id,
                join_position,
                subscription,
                now.nanos,
            ) {
                Ok(subscriber) => positions.push((image.id, subscriber)),
                Err(failure) => {
                    counters.free_all(positions.iter().map(|(_, subscriber)| &subscriber.position));
                    return Err(failure);
                }
            }
        }
        Ok(positions)
    }

    /// Joins a response subscription to the existing images of its session.
    pub(in crate::conductor) fn join_response_images(&mut self, id: i64, endpoint: EndpointId) {
        let Some(subscription) = self.subscriptions.find(id).cloned() else {
            return;
        };
        match self.image_positions(endpoint, &subscription) {
            Ok(positions) => {
                for (image_id, subscriber) in positions {
                    self.attach_image(image_id, subscriber);
                }
            }
            // The command of the subscription was answered earlier.
            Err(failure) => self.record(failure.code, &failure.text),
        }
    }

    /// Attaches a subscriber to an existing image and announces the image to its client.
    fn attach_image(&mut self, image_id: ImageId, subscriber: Subscriber) {
        let Self {
            networking,
            subscriptions,
            responses,
            ..
        } = self;
        let Some(image) = networking.images.get_mut(image_id) else {
            return;
        };
        let position = subscriber.position.clone();
        if let Some(subscription) = subscriptions.find(subscriber.subscription_id) {
            responses.send_available_image(
                &LogDescriptor::image(image),
                subscription,
                position.id(),
            );
        }
        image.subscribers.add(subscriber);
        networking.receiver.send(ReceiverCommand::AddSubscriber {
            endpoint: image.endpoint,
            image: image_id,
            subscriber: SubscriberPosition { position },
        });
    }

    /// Removes a subscription from its images and its endpoint.
    pub(super) fn close_network_subscription(
        &mut self,
        endpoint: EndpointId,
        subscription: &Subscription,
    ) {
        let Self {
            networking,
            counters,
            subscriptions,
            security,
            ..
        } = self;
        for image in networking
            .images
            .iter_mut()
            .filter(|image| image.endpoint == endpoint)
        {
            if let Some(removed) = image.subscribers.remove(subscription.id) {
                let counter_id = removed.position.id();
                let image = image.id;
                networking.receiver.send(ReceiverCommand::RemoveSubscriber {
                    endpoint,
                    image,
                    counter_id,
                });
                counters.free_tracked(counter_id);
            }
        }
        let (stream_id, session_id) = (subscription.stream_id, subscription.params.session_id);
        if !subscription.awaits_session && subscriptions.count(endpoint, stream_id, session_id) == 0
        {
            security.remove_subscription(endpoint, session_id, stream_id);
            networking
                .receiver
                .send(ReceiverCommand::RemoveSubscription {
                    endpoint,
                    stream_id,
                    session_id,
                });
        }
        networking.release_receive_endpoint(endpoint);
    }
}
