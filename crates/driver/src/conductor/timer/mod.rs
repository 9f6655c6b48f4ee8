//! What is done once per timer interval: clients that went away, and the lives of what they left behind
//! (spec/01 §10.2).

mod images;
mod ipc;
mod publications;
mod tethering;

use taran_protocol::counter::SystemCounter;
use taran_protocol::response::Response;

use super::clients::{Departure, Publication};
use super::owners::Owners;

impl Owners {
    /// Returns the clients that are gone.
    pub(crate) fn on_timer(&mut self) -> Vec<i64> {
        let timeout_ns = self.settings.timers.client_liveness_ns;
        let departures = self.clients.departures(self.now.nanos, timeout_ns);
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

    /// Every duty cycle: limits of publishers, and clean terms ahead of them.
    pub(crate) fn update_limits(&mut self) -> usize {
        let now_ns = self.now.nanos;
        self.settle_responses();
        self.ipc.update_limits()
            + self.networking.publications.update_limits()
            + self.networking.images.update(now_ns)
    }
}
