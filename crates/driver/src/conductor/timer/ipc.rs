//! The lives of IPC publications.

use taran_protocol::counter::SystemCounter;

use super::super::clients::Publication;
use super::super::events::{publication_ends, publication_revoked};
use super::super::ipc::Event;
use super::super::links::Readable;
use super::super::owners::Owners;
use super::super::subscribers::TetherEvent;

impl Owners {
    pub(super) fn tick_ipc(&mut self) {
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
            ..
        } = self;
        for publication in ipc.iter_mut() {
            let id = publication.registration_id;
            let terms = &publication.terms;
            let (stream_id, session_id) = (terms.stream_id, terms.session_id);
            for event in publication.tick(now.nanos) {
                if let Event::Tether(tether) = &event {
                    tether.log(events, stream_id, session_id);
                }
                match event {
                    Event::Ended { revoked } => {
                        if revoked {
                            system.get(SystemCounter::PublicationsRevoked).increment();
                            publication_revoked(events, &publication.terms, &publication.log);
                        }
                        for subscription_id in publication.subscribers.with_image() {
                            if let Some(subscription) = subscriptions.find(subscription_id) {
                                replies.image_unavailable(id, subscription);
                            }
                        }
                    }
                    Event::Unblocked => {
                        system.get(SystemCounter::UnblockedPublications).increment();
                    }
                    Event::CoolDownOver => joinable.push(id),
                    Event::Done => done.push(id),
                    Event::Tether(TetherEvent::Unavailable { subscription_id }) => {
                        if let Some(subscription) = subscriptions.find(subscription_id) {
                            replies.image_unavailable(id, subscription);
                        }
                    }
                    Event::Tether(TetherEvent::Rested {
                        subscription_id,
                        position,
                    }) => {
                        publication.rejoin(subscription_id, &position, now.nanos);
                        if let Some(subscription) = subscriptions.find(subscription_id) {
                            let readable = Readable::ipc(publication);
                            replies.image_available(&readable, subscription, position.id());
                        }
                    }
                    Event::Tether(TetherEvent::Dropped { position, .. }) => {
                        counters.free(position.id());
                    }
                    Event::Tether(TetherEvent::Resting { .. }) => {}
                }
            }
        }
        for id in joinable {
            self.join_subscriptions(Publication::Ipc(id));
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
