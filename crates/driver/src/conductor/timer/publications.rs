// SPDX-License-Identifier: Apache-2.0
//! Timer handling of network publications and their spies.

use taran_protocol::counter::SystemCounter;

use super::super::events::log_publication_revoked;
use super::super::network::PublicationEvent;
use super::super::state::ConductorState;
use super::PUBLICATIONS_PER_CYCLE;
use super::untethered::{Notifier, TrackPosition};
use crate::boundary::SenderCommand;

impl ConductorState {
    /// Ticks the next publications of the sweep.
    pub(super) fn tick_network_publications(&mut self) {
        let Some(from) = self.timer_sweep.network else {
            return;
        };
        let Self {
            networking,
            subscriptions,
            responses,
            counters,
            system,
            now,
            events,
            timer_sweep,
            ..
        } = self;
        let mut notifier = Notifier {
            responses,
            subscriptions,
            counters,
        };
        let (publications, next) = networking
            .publications
            .range_mut(from, PUBLICATIONS_PER_CYCLE);
        timer_sweep.network = next;
        for found in publications {
            let (endpoint, publication) = (found.endpoint, found.id);
            let (stream_id, session_id) = (found.config.stream_id, found.config.session_id);
            for event in found.tick(now.nanos) {
                match event {
                    PublicationEvent::Ended { revoked } => {
                        if revoked {
                            system.get(SystemCounter::PublicationsRevoked).increment();
                            log_publication_revoked(events, &found.config, &found.log);
                        }
                        notifier.notify_unavailable(publication.0, found.spies.with_image());
                    }
                    PublicationEvent::Unblocked => {
                        system.get(SystemCounter::UnblockedPublications).increment();
                    }
                    PublicationEvent::Untethered(untethered_event) => {
                        untethered_event.log(events, stream_id, session_id);
                        notifier.on_untethered_event(found, untethered_event, now.nanos, |track| {
                            networking.sender.send(match track {
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
