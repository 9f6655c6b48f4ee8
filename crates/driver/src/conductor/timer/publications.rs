//! Timer handling of network publications and their spies.

use taran_protocol::counter::SystemCounter;

use super::super::events::publication_revoked;
use super::super::network::PublicationEvent;
use super::super::state::ConductorState;
use super::PUBLICATIONS_PER_CYCLE;
use super::untethered::{Notifier, TrackPosition};
use crate::boundary::SenderCommand;

impl ConductorState {
    /// Ticks the next publications of the sweep.
    pub(super) fn tick_network_publications(&mut self) {
        let Some(from) = self.ticking.network else {
            return;
        };
        let Self {
            networking,
            subscriptions,
            replies,
            counters,
            system,
            now,
            events,
            ticking,
            ..
        } = self;
        let mut told = Notifier {
            replies,
            subscriptions,
            counters,
        };
        let (publications, next) = networking
            .publications
            .portion(from, PUBLICATIONS_PER_CYCLE);
        ticking.network = next;
        for found in publications {
            let (endpoint, publication) = (found.endpoint, found.id);
            let (stream_id, session_id) = (found.terms.stream_id, found.terms.session_id);
            for event in found.tick(now.nanos) {
                match event {
                    PublicationEvent::Ended { revoked } => {
                        if revoked {
                            system.get(SystemCounter::PublicationsRevoked).increment();
                            publication_revoked(events, &found.terms, &found.log);
                        }
                        told.unavailable(publication.0, found.spies.with_image());
                    }
                    PublicationEvent::Unblocked => {
                        system.get(SystemCounter::UnblockedPublications).increment();
                    }
                    PublicationEvent::Untethered(step) => {
                        step.log(events, stream_id, session_id);
                        told.tethered(found, step, now.nanos, |follow| {
                            networking.sender.send(match follow {
                                TrackPosition::Start(position) => SenderCommand::AddSpy {
                                    endpoint,
                                    publication,
                                    position,
                                },
                                TrackPosition::Stop(counter_id) => SenderCommand::RemoveSpy {
                                    endpoint,
                                    publication,
                                    counter_id,
                                },
                            });
                        });
                    }
                    PublicationEvent::Done => {
                        networking.sender.send(SenderCommand::RemovePublication {
                            endpoint,
                            publication,
                        });
                    }
                }
            }
        }
    }
}
