//! Work done once per timer interval: client timeouts and the states of publications and images
//! (docs/spec/shared-memory.md §10.2).

mod images;
mod ipc;
mod publications;
mod untethered;

use taran_protocol::counter::SystemCounter;
use taran_protocol::response::Response;

use super::clients::{ClientExit, PublicationRef};
use super::state::ConductorState;
use crate::poll_schedule::AgentLoad;

/// Maximum number of publications of each kind ticked per duty cycle, so that ten thousand do not stall a cycle.
const PUBLICATIONS_PER_CYCLE: usize = 128;

/// Positions of the timer in the publications; `None` when all have been ticked.
#[derive(Debug, Default)]
pub(crate) struct TimerSweep {
    ipc: Option<usize>,
    network: Option<usize>,
}

impl TimerSweep {
    /// Starts a sweep, unless one is in progress.
    fn begin(&mut self) {
        self.ipc.get_or_insert(0);
        self.network.get_or_insert(0);
    }

    fn is_going_on(&self) -> bool {
        self.ipc.is_some() || self.network.is_some()
    }
}

impl ConductorState {
    /// Handles the timer. Returns the ids of removed clients.
    pub(crate) fn on_timer(&mut self) -> Vec<i64> {
        let timeout_ns = self.settings.timers.client_liveness_ns;
        let departures = self.clients.departures(self.now.nanos, timeout_ns);
        for &departure in &departures {
            self.depart(departure);
        }
        self.logs.retry_stuck();
        self.ticking.begin();
        self.go_on_ticking();
        self.tick_images();
        departures
            .into_iter()
            .map(|departure| departure.client_id)
            .collect()
    }

    /// Removes a client and releases all its resources.
    fn depart(&mut self, departure: ClientExit) {
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
        for publication in client.into_publications() {
            self.release_publication(publication);
        }
        for (registration_id, counter_id) in self.counters.take_all_of_client(client_id) {
            self.end_counter(registration_id, counter_id);
        }
        for subscription_id in self.subscriptions.of_client(client_id) {
            self.end_subscription(subscription_id);
        }
        self.counters.free(heartbeat_id);
    }

    /// Removes the reference of an add command to a publication.
    pub(crate) fn release_publication(&mut self, publication: PublicationRef) {
        match publication {
            PublicationRef::Ipc(id) => {
                if let Some(publication) = self.ipc.find(id) {
                    publication.remove_reference();
                }
            }
            PublicationRef::Network(id) => self.networking.release_publication(id),
        }
    }

    /// Continues the timer sweep over publications. Called in every duty cycle.
    pub(crate) fn go_on_ticking(&mut self) -> usize {
        let is_ticking = self.ticking.is_going_on();
        if is_ticking {
            self.tick_ipc();
            self.tick_network_publications();
        }
        usize::from(is_ticking)
    }

    /// Updates publisher limits and free positions, and cleans terms. Called in every duty cycle.
    pub(crate) fn update_limits(&mut self, pace: AgentLoad) -> usize {
        let now_ns = self.now.nanos;
        self.settle_responses();
        self.ipc.update_limits(now_ns, pace)
            + self.networking.publications.update_limits(now_ns, pace)
            + self.networking.images.update(now_ns, pace)
    }
}
