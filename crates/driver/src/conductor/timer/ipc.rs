// SPDX-License-Identifier: Apache-2.0
//! Timer handling of IPC publications.

use taran_protocol::counter::SystemCounter;

use super::super::clients::PublicationRef;
use super::super::events::{log_publication_removed, log_publication_revoked};
use super::super::ipc::Event;
use super::super::state::ConductorState;
use super::PUBLICATIONS_PER_CYCLE;
use super::untethered::Notifier;

impl ConductorState {
    /// Ticks the next publications of the sweep.
    pub(super) fn tick_ipc(&mut self) {
        let Some(from) = self.timer_sweep.ipc else {
            return;
        };
        let mut done = Vec::new();
        let mut joinable = Vec::new();
        let Self {
            ipc,
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
        let (publications, next) = ipc.range_mut(from, PUBLICATIONS_PER_CYCLE);
        timer_sweep.ipc = next;
        for publication in publications {
            let id = publication.registration_id;
            let config = &publication.config;
            let (stream_id, session_id) = (config.stream_id, config.session_id);
            for event in publication.tick(now.nanos) {
                match event {
                    Event::Ended { revoked } => {
                        if revoked {
                            system.get(SystemCounter::PublicationsRevoked).increment();
                            log_publication_revoked(events, &publication.config, &publication.log);
                        }
                        notifier.notify_unavailable(id, publication.subscribers.with_image());
                    }
                    Event::Unblocked => {
                        system.get(SystemCounter::UnblockedPublications).increment();
                    }
                    Event::CoolDownOver => {
                        notifier
                            .counters
                            .free_all(&publication.take_detached_positions());
                        joinable.push(id);
                    }
                    Event::Done => done.push(id),
                    Event::Untethered(untethered_event) => {
                        untethered_event.log(events, stream_id, session_id);
                        // No agent tracks these positions.
                        notifier.on_untethered_event(
                            publication,
                            untethered_event,
                            now.nanos,
                            |_| {},
                        );
                    }
                }
            }
        }
        for id in joinable {
            self.join_subscriptions(PublicationRef::Ipc(id));
        }
        for id in done {
            self.free_ipc(id);
        }
    }

    fn free_ipc(&mut self, id: i64) {
        if let Some(publication) = self.ipc.remove(id) {
            log_publication_removed(&self.events, &publication.config);
            let (log, counters) = publication.into_parts();
            self.counters.free_all(&counters);
            self.logs.retire(log);
        }
    }
}
