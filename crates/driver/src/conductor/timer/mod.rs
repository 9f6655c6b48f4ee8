// SPDX-License-Identifier: Apache-2.0
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

    /// Returns true while a sweep is in progress.
    pub(crate) fn is_active(&self) -> bool {
        self.ipc.is_some() || self.network.is_some()
    }
}

impl ConductorState {
    /// Handles the timer. Returns the ids of removed clients.
    pub(crate) fn on_timer(&mut self) -> Vec<i64> {
        let timeout_ns = self.settings.timers.client_liveness_ns;
        let expired = self.clients.expired(self.now.nanos, timeout_ns);
        for &exit in &expired {
            self.remove_client(exit);
        }
        self.logs.retry_deletions();
        self.networking.sockets.network.on_timer(self.now.nanos);
        self.timer_sweep.begin();
        self.resume_sweep();
        self.tick_images();
        expired.into_iter().map(|exit| exit.client_id).collect()
    }

    /// Removes a client and releases all its resources.
    fn remove_client(&mut self, exit: ClientExit) {
        let client_id = exit.client_id;
        let Some(client) = self.clients.remove(client_id) else {
            return;
        };
        if exit.timed_out {
            self.count(SystemCounter::ClientTimeouts);
            self.responses.send(&Response::ClientTimeout { client_id });
        }
        let heartbeat_id = client.heartbeat().id();
        self.responses.send(&Response::UnavailableCounter {
            registration_id: client_id,
            counter_id: heartbeat_id,
        });
        for publication in client.into_publications() {
            self.release_publication(publication);
        }
        for (registration_id, counter_id) in self.counters.take_client_counters(client_id) {
            self.release_client_counter(registration_id, counter_id);
        }
        for subscription_id in self.subscriptions.of_client(client_id) {
            self.close_subscription(subscription_id);
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
    pub(crate) fn resume_sweep(&mut self) -> usize {
        let is_sweeping = self.timer_sweep.is_active();
        if is_sweeping {
            self.tick_ipc();
            self.tick_network_publications();
        }
        usize::from(is_sweeping)
    }

    /// Updates publisher limits and free positions, and cleans terms. Called in every duty cycle.
    pub(crate) fn update_limits(&mut self, load: AgentLoad) -> usize {
        let now = self.now;
        self.stop_completed_response_setups();
        let Self {
            ipc,
            networking,
            logs,
            ..
        } = self;
        ipc.update_limits(logs, now, load)
            + networking.publications.update_limits(logs, now, load)
            + networking.images.update(logs, now, load)
    }
}
