//! The lives of images.

use taran_protocol::event::EventCode;

use super::super::links::Readable;
use super::super::network::ImageEvent;
use super::super::owners::Owners;
use super::super::subscribers::TetherEvent;
use crate::boundary::{ReceiverCommand, SubscriberPosition};
use crate::event_log::Fact;

impl Owners {
    pub(super) fn tick_images(&mut self) {
        let Self {
            networking,
            subscriptions,
            replies,
            counters,
            now,
            events,
            ..
        } = self;
        let mut left = Vec::new();
        for image in networking.images.iter_mut() {
            let (id, endpoint) = (image.id, image.endpoint);
            for event in image.tick(now.nanos) {
                if let ImageEvent::Tether(tether) = &event {
                    tether.log(events, image.stream_id, image.session_id);
                }
                match event {
                    ImageEvent::Ended => {
                        if image.is_revoked() {
                            events.log(
                                EventCode::PublicationImageRevoke,
                                &[
                                    Fact::Long(image.end_of_stream_position()),
                                    Fact::Int(image.session_id),
                                    Fact::Int(image.stream_id),
                                    Fact::Text(&image.source_identity),
                                ],
                            );
                        }
                        left.push(endpoint);
                        for subscription_id in image.subscribers.with_image() {
                            if let Some(subscription) = subscriptions.find(subscription_id) {
                                replies.image_unavailable(id.0, subscription);
                            }
                        }
                        networking.receiver.post(ReceiverCommand::RemoveImage {
                            endpoint,
                            image: id,
                        });
                        if image.rejoin {
                            let (session_id, stream_id) = (image.session_id, image.stream_id);
                            networking.receiver.post(ReceiverCommand::RemoveCoolDown {
                                endpoint,
                                session_id,
                                stream_id,
                            });
                        }
                    }
                    ImageEvent::Tether(TetherEvent::Unavailable { subscription_id }) => {
                        if let Some(subscription) = subscriptions.find(subscription_id) {
                            replies.image_unavailable(id.0, subscription);
                        }
                    }
                    ImageEvent::Tether(TetherEvent::Resting { counter_id, .. }) => {
                        networking.receiver.post(ReceiverCommand::RemoveSubscriber {
                            endpoint,
                            image: id,
                            counter_id,
                        });
                    }
                    ImageEvent::Tether(TetherEvent::Dropped { position, .. }) => {
                        let counter_id = position.id();
                        networking.receiver.post(ReceiverCommand::RemoveSubscriber {
                            endpoint,
                            image: id,
                            counter_id,
                        });
                        counters.free_followed(counter_id);
                    }
                    ImageEvent::Tether(TetherEvent::Rested {
                        subscription_id,
                        position,
                    }) => {
                        position.set(image.join_position());
                        image.subscribers.rejoin(subscription_id, now.nanos);
                        if let Some(subscription) = subscriptions.find(subscription_id) {
                            let readable = Readable::image(image);
                            replies.image_available(&readable, subscription, position.id());
                        }
                        let subscriber = SubscriberPosition { position };
                        networking.receiver.post(ReceiverCommand::AddSubscriber {
                            endpoint,
                            image: id,
                            subscriber,
                        });
                    }
                }
            }
        }
        for endpoint in left {
            networking.leave_receive_endpoint(endpoint);
        }
        for image in self.networking.images.take_done() {
            self.events.log(
                EventCode::RemoveImageCleanup,
                &[
                    Fact::Int(image.session_id),
                    Fact::Int(image.stream_id),
                    Fact::Long(image.id.0),
                    Fact::Text(self.networking.receive_channel(image.endpoint)),
                ],
            );
            let (log, counters) = image.into_parts();
            self.counters.free_all(&counters);
            self.logs.retire(log);
        }
    }
}
