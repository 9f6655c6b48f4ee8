//! What is done once per timer interval: clients that went away, and the lives of what they left behind
//! (spec/01 §10.2).

use taran_protocol::counter::SystemCounter;
use taran_protocol::response::Response;

use super::clients::{Departure, Publication};
use super::ipc;
use super::links::{announce_image, announce_ipc, attach_ipc, ipc_position};
use super::network::{ImageEvent, PublicationEvent};
use super::owners::Owners;
use super::subscribers::TetherEvent;
use super::subscriptions::Source;
use crate::boundary::{ReceiverCommand, SenderCommand, SubscriberPosition};

impl Owners {
    /// Returns the clients that are gone.
    pub(crate) fn on_timer(&mut self) -> Vec<i64> {
        let timeout_ms = self.settings.timers.client_liveness_ns / 1_000_000;
        let departures = self.clients.departures(self.now.epoch_millis, timeout_ms);
        for &departure in &departures {
            self.depart(departure);
        }
        self.logs.retry_stuck();
        self.tick_ipc();
        self.tick_network_publications();
        self.tick_images();
        departures
            .into_iter()
            .map(|departure| departure.client_id)
            .collect()
    }

    /// Lets go of everything a client held.
    fn depart(&mut self, departure: Departure) {
        let client_id = departure.client_id;
        let Some(client) = self.clients.remove(client_id) else {
            return;
        };
        if departure.timed_out {
            self.count(SystemCounter::ClientTimeouts);
            self.replies.send(&Response::ClientTimeout { client_id });
        }
        let heartbeat_id = client.heartbeat().id();
        self.replies.send(&Response::UnavailableCounter {
            registration_id: client_id,
            counter_id: heartbeat_id,
        });
        for link in client.into_links() {
            self.release_publication(link.publication);
        }
        for (registration_id, counter_id) in self.counters.take_all_of_client(client_id) {
            self.end_counter(registration_id, counter_id);
        }
        for subscription_id in self.subscriptions.of_client(client_id) {
            self.end_subscription(subscription_id);
        }
        self.counters.free(heartbeat_id);
    }

    /// One add command less refers to a publication.
    pub(crate) fn release_publication(&mut self, publication: Publication) {
        match publication {
            Publication::Ipc(id) => {
                if let Some(publication) = self.ipc.find(id) {
                    publication.remove_reference();
                }
            }
            Publication::Network(id) => self.networking.release_publication(id),
        }
    }

    fn tick_ipc(&mut self) {
        let mut done = Vec::new();
        let mut joinable = Vec::new();
        let mut unblocked = 0;
        let mut revoked = 0;
        {
            let Self {
                ipc,
                subscriptions,
                replies,
                counters,
                now,
                ..
            } = self;
            for publication in ipc.iter_mut() {
                let id = publication.registration_id;
                for event in publication.tick(now.nanos) {
                    match event {
                        ipc::Event::Ended { revoked: by_revoke } => {
                            revoked += usize::from(by_revoke);
                            for subscription_id in publication.subscribers.with_image() {
                                if let Some(subscription) = subscriptions.find(subscription_id) {
                                    replies.image_unavailable(id, subscription);
                                }
                            }
                        }
                        ipc::Event::Unblocked => unblocked += 1,
                        ipc::Event::CoolDownOver => joinable.push(id),
                        ipc::Event::Done => done.push(id),
                        ipc::Event::Tether(TetherEvent::Unavailable { subscription_id }) => {
                            if let Some(subscription) = subscriptions.find(subscription_id) {
                                replies.image_unavailable(id, subscription);
                            }
                        }
                        ipc::Event::Tether(TetherEvent::Rested {
                            subscription_id,
                            position,
                        }) => {
                            publication.rejoin(subscription_id, &position, now.nanos);
                            announce_ipc(replies, publication, subscription_id, position.id());
                        }
                        ipc::Event::Tether(TetherEvent::Dropped {
                            subscription_id,
                            position,
                        }) => {
                            publication.exclude(subscription_id);
                            counters.free(position.id());
                        }
                        ipc::Event::Tether(TetherEvent::Resting { .. }) => {}
                    }
                }
            }
        }
        self.system
            .get(SystemCounter::UnblockedPublications)
            .add(unblocked);
        self.system
            .get(SystemCounter::PublicationsRevoked)
            .add(revoked as i64);
        for id in joinable {
            self.join_ipc_subscriptions(id);
        }
        for id in done {
            self.free_ipc(id);
        }
    }

    /// Every subscription that wants the stream joins an IPC publication.
    pub(crate) fn join_ipc_subscriptions(&mut self, publication_id: i64) {
        let mut failures = Vec::new();
        {
            let Self {
                ipc,
                subscriptions,
                replies,
                counters,
                now,
                ..
            } = self;
            let Some(publication) = ipc.find(publication_id) else {
                return;
            };
            let (stream_id, session_id) =
                (publication.terms.stream_id, publication.terms.session_id);
            for subscription in subscriptions.matching(Source::Ipc, stream_id, session_id) {
                if publication.excludes(subscription.id) {
                    continue;
                }
                match ipc_position(counters, publication, subscription, now.nanos) {
                    Ok(subscriber) => attach_ipc(replies, publication, subscriber),
                    Err(failure) => failures.push(failure),
                }
            }
        }
        // The publisher is not at fault, and the subscription's command was answered long ago.
        for failure in failures {
            self.record(failure.code, &failure.text);
        }
    }

    fn free_ipc(&mut self, id: i64) {
        if let Some(publication) = self.ipc.remove(id) {
            let (log, counters) = publication.into_parts();
            for counter in counters {
                self.counters.free(counter.id());
            }
            self.logs.retire(log);
        }
    }
}

impl Owners {
    fn tick_network_publications(&mut self) {
        let now_ns = self.now.nanos;
        let mut unblocked = 0;
        let mut revoked = 0;
        let networking = &mut self.networking;
        for publication in networking.publications.iter_mut() {
            match publication.tick(now_ns) {
                None => {}
                Some(PublicationEvent::Unblocked) => unblocked += 1,
                Some(PublicationEvent::Revoked) => revoked += 1,
                Some(PublicationEvent::Done) => {
                    let (endpoint, publication) = (publication.endpoint, publication.id);
                    networking.sender.post(SenderCommand::RemovePublication {
                        endpoint,
                        publication,
                    });
                }
            }
        }
        self.system
            .get(SystemCounter::UnblockedPublications)
            .add(unblocked);
        self.system
            .get(SystemCounter::PublicationsRevoked)
            .add(revoked);
    }

    fn tick_images(&mut self) {
        let Self {
            networking,
            subscriptions,
            replies,
            counters,
            now,
            ..
        } = self;
        let mut left = Vec::new();
        for image in networking.images.iter_mut() {
            let (id, endpoint) = (image.id, image.endpoint);
            for event in image.tick(now.nanos) {
                match event {
                    ImageEvent::Ended => {
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
                    ImageEvent::Tether(TetherEvent::Resting { counter_id }) => {
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
                        counters.free(counter_id);
                    }
                    ImageEvent::Tether(TetherEvent::Rested {
                        subscription_id,
                        position,
                    }) => {
                        position.set(image.join_position());
                        image.subscribers.rejoin(subscription_id, now.nanos);
                        announce_image(replies, image, subscription_id, position.id());
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
            let (log, counters) = image.into_parts();
            self.counters.free_all(&counters);
            self.logs.retire(log);
        }
    }

    /// Every duty cycle: limits of publishers, and clean terms ahead of them.
    pub(crate) fn update_limits(&mut self) -> usize {
        let now_ns = self.now.nanos;
        self.ipc.update_limits()
            + self.networking.publications.update_limits()
            + self.networking.images.update(now_ns)
    }
}
