// SPDX-License-Identifier: Apache-2.0
//! Timer handling of images.

use taran_protocol::event::EventCode;

use super::super::network::ImageEvent;
use super::super::state::ConductorState;
use super::untethered::{Notifier, TrackPosition};
use crate::boundary::{ReceiverCommand, SubscriberPosition};
use crate::event_log::FieldValue;

impl ConductorState {
    pub(super) fn tick_images(&mut self) {
        let Self {
            networking,
            subscriptions,
            responses,
            counters,
            now,
            events,
            ..
        } = self;
        let mut notifier = Notifier {
            responses,
            subscriptions,
            counters,
        };
        let mut released_endpoints = Vec::new();
        for image in networking.images.iter_mut() {
            let (id, endpoint) = (image.id, image.endpoint);
            for event in image.tick(now.nanos) {
                match event {
                    ImageEvent::Ended => {
                        if image.is_revoked() {
                            events.log(
                                EventCode::PublicationImageRevoke,
                                &[
                                    FieldValue::Long(image.end_of_stream_position()),
                                    FieldValue::Int(image.session_id),
                                    FieldValue::Int(image.stream_id),
                                    FieldValue::Text(&image.source_identity),
                                ],
                            );
                        }
                        released_endpoints.push(endpoint);
                        notifier.notify_unavailable(id.0, image.subscribers.with_image());
                        networking.receiver.send(ReceiverCommand::RemoveImage {
                            endpoint,
                            image: id,
                        });
                        if image.rejoin {
                            let (session_id, stream_id) = (image.session_id, image.stream_id);
                            networking.receiver.send(ReceiverCommand::RemoveCoolDown {
                                endpoint,
                                session_id,
                                stream_id,
                            });
                        }
                    }
                    ImageEvent::Untethered(untethered_event) => {
                        untethered_event.log(events, image.stream_id, image.session_id);
                        notifier.on_untethered_event(image, untethered_event, now.nanos, |track| {
                            networking.receiver.send(match track {
                                TrackPosition::Start(position) => ReceiverCommand::AddSubscriber {
                                    endpoint,
                                    image: id,
                                    subscriber: SubscriberPosition { position },
                                },
                                TrackPosition::Stop(counter_id) => {
                                    ReceiverCommand::RemoveSubscriber {
                                        endpoint,
                                        image: id,
                                        counter_id,
                                    }
                                }
                            });
                        });
                    }
                }
            }
        }
        for endpoint in released_endpoints {
            networking.release_receive_endpoint(endpoint);
        }
        for image in self.networking.images.take_done() {
            self.events.log(
                EventCode::RemoveImageCleanup,
                &[
                    FieldValue::Int(image.session_id),
                    FieldValue::Int(image.stream_id),
                    FieldValue::Long(image.id.0),
                    FieldValue::Text(self.networking.receive_channel(image.endpoint)),
                ],
            );
            self.networking.image_budget.remove(image.id);
            self.on_image_gone(image.endpoint, image.session_id, image.stream_id);
            let (log, counters) = image.into_parts();
            self.counters.free_all(&counters);
            self.logs.retire(log);
        }
    }
}
