//! The lives of network publications, and of the spies on them.

use taran_protocol::counter::SystemCounter;

use super::super::events::publication_revoked;
use super::super::links::Readable;
use super::super::network::PublicationEvent;
use super::super::owners::Owners;
use super::super::subscribers::TetherEvent;
use crate::boundary::SenderCommand;

impl Owners {
    pub(super) fn tick_network_publications(&mut self) {
        let Self {
            networking,
            subscriptions,
            replies,
            counters,
            system,
            now,
            events,
            ..
        } = self;
        for found in networking.publications.iter_mut() {
            let (endpoint, publication) = (found.endpoint, found.id);
            let remove_spy = |counter_id| SenderCommand::RemoveSpy {
                endpoint,
                publication,
                counter_id,
            };
            let (stream_id, session_id) = (found.terms.stream_id, found.terms.session_id);
            for event in found.tick(now.nanos) {
                if let PublicationEvent::Tether(tether) = &event {
                    tether.log(events, stream_id, session_id);
                }
                match event {
                    PublicationEvent::Ended { revoked } => {
                        if revoked {
                            system.get(SystemCounter::PublicationsRevoked).increment();
                            publication_revoked(events, &found.terms, &found.log);
                        }
                        for subscription_id in found.spies.with_image() {
                            if let Some(subscription) = subscriptions.find(subscription_id) {
                                replies.image_unavailable(publication.0, subscription);
                            }
                        }
                    }
                    PublicationEvent::Unblocked => {
                        system.get(SystemCounter::UnblockedPublications).increment();
                    }
                    PublicationEvent::Tether(TetherEvent::Unavailable { subscription_id }) => {
                        if let Some(subscription) = subscriptions.find(subscription_id) {
                            replies.image_unavailable(publication.0, subscription);
                        }
                    }
                    PublicationEvent::Tether(TetherEvent::Resting { counter_id, .. }) => {
                        networking.sender.post(remove_spy(counter_id));
                    }
                    PublicationEvent::Tether(TetherEvent::Dropped { position, .. }) => {
                        networking.sender.post(remove_spy(position.id()));
                        counters.free_followed(position.id());
                    }
                    PublicationEvent::Tether(TetherEvent::Rested {
                        subscription_id,
                        position,
                    }) => {
                        found.rejoin(subscription_id, &position, now.nanos);
                        if let Some(subscription) = subscriptions.find(subscription_id) {
                            let readable = Readable::spied(found);
                            replies.image_available(&readable, subscription, position.id());
                        }
                        networking.sender.post(SenderCommand::AddSpy {
                            endpoint,
                            publication,
                            position,
                        });
                    }
                    PublicationEvent::Done => {
                        networking.sender.post(SenderCommand::RemovePublication {
                            endpoint,
                            publication,
                        });
                    }
                }
            }
        }
    }
}
