//! Timer handling of IPC publications.

use taran_protocol::counter::SystemCounter;

use super::super::clients::PublicationRef;
use super::super::events::{publication_ends, publication_revoked};
use super::super::ipc::Event;
use super::super::state::ConductorState;
use super::PUBLICATIONS_PER_CYCLE;
use super::untethered::Notifier;

impl ConductorState {
    /// Ticks the next publications of the sweep.
    pub(super) fn tick_ipc(&mut self) {
        let Some(from) = self.ticking.ipc else {
            return;
        };
        let mut done = Vec::new();
        let mut joinable = Vec::new();
        let Self {
            ipc,
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
        let (publications, next) = ipc.portion(from, PUBLICATIONS_PER_CYCLE);
        ticking.ipc = next;
        for publication in publications {
            let id = publication.registration_id;
            let terms = &publication.terms;
            let (stream_id, session_id) = (terms.stream_id, terms.session_id);
            for event in publication.tick(now.nanos) {
                match event {
                    Event::Ended { revoked } => {
                        if revoked {
                            system.get(SystemCounter::PublicationsRevoked).increment();
                            publication_revoked(events, &publication.terms, &publication.log);
                        }
                        told.unavailable(id, publication.subscribers.with_image());
                    }
                    Event::Unblocked => {
                        system.get(SystemCounter::UnblockedPublications).increment();
                    }
                    Event::CoolDownOver => {
                        told.counters.free_all(&publication.release_set_aside());
                        joinable.push(id);
                    }
                    Event::Done => done.push(id),
                    Event::Untethered(step) => {
                        step.log(events, stream_id, session_id);
                        // No agent tracks these positions.
                        told.tethered(publication, step, now.nanos, |_| {});
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
            publication_ends(&self.events, &publication.terms);
            let (log, counters) = publication.into_parts();
            self.counters.free_all(&counters);
            self.logs.retire(log);
        }
    }
}
