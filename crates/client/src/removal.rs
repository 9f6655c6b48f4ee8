// SPDX-License-Identifier: Apache-2.0
//! Removal of resources, by handle or by registration id.

use std::sync::Arc;

use taran_protocol::command::Command;

use crate::client_core::ClientCore;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::registry::Request;
use crate::trace::event;

/// The kind of resource that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceKind {
    Publication,
    Subscription,
    Counter,
}

impl ResourceKind {
    fn name(self) -> &'static str {
        match self {
            Self::Publication => "publication",
            Self::Subscription => "subscription",
            Self::Counter => "counter",
        }
    }

    /// Returns true if the request is for a resource of this kind.
    fn matches(self, request: &Request) -> bool {
        match request {
            Request::Publication { .. } | Request::ExclusivePublication { .. } => {
                self == Self::Publication
            }
            Request::Subscription { .. } => self == Self::Subscription,
            Request::Counter { .. } => self == Self::Counter,
            Request::StaticCounter { .. }
            | Request::Operation { .. }
            | Request::SessionId { .. } => false,
        }
    }
}

impl ClientCore {
    /// Closes the resource with a registration id, or withdraws the request for it.
    pub(crate) fn remove(
        self: &Arc<Self>,
        kind: ResourceKind,
        registration_id: i64,
    ) -> Result<Pending<()>, CommandError> {
        self.state.check_open()?;
        if let Some(pending) = self.withdraw(kind, registration_id)? {
            return Ok(pending);
        }
        let unknown = || CommandError::UnknownRegistration {
            kind: kind.name(),
            registration_id,
        };
        // The state is cloned out of the lock before it is closed: closing waits for callbacks, which may take the
        // lock.
        match kind {
            ResourceKind::Publication => {
                let state = {
                    let registry = self.registry();
                    let entry = registry.publications.get(&registration_id);
                    entry.map(|entry| Arc::clone(&entry.state))
                };
                let state = state.ok_or_else(unknown)?;
                self.close_publication(&state)
            }
            ResourceKind::Subscription => {
                let state = self.registry().subscriptions.get(&registration_id).cloned();
                let state = state.ok_or_else(unknown)?;
                self.close_subscription(&state)
            }
            ResourceKind::Counter => {
                let state = {
                    let registry = self.registry();
                    let entry = registry.counters.get(&registration_id);
                    entry.map(|entry| Arc::clone(&entry.state))
                };
                let state = state.ok_or_else(unknown)?;
                self.close_counter(&state)
            }
        }
    }

    /// Withdraws a request that the driver has not answered. The driver executes commands in order, so it creates the
    /// resource and then removes it.
    fn withdraw(
        self: &Arc<Self>,
        kind: ResourceKind,
        registration_id: i64,
    ) -> Result<Option<Pending<()>>, CommandError> {
        let request = {
            let mut registry = self.registry();
            let is_requested = registry
                .in_flight
                .get(&registration_id)
                .is_some_and(|in_flight| kind.matches(&in_flight.request));
            if !is_requested {
                return Ok(None);
            }
            let in_flight = registry.in_flight.remove(&registration_id);
            self.update_pending_commands(&registry);
            in_flight.map(|in_flight| in_flight.request)
        };
        let removal = self.request_removal(kind, registration_id, false);
        if let Some(request) = request {
            request.fail(CommandError::Withdrawn);
        }
        removal.map(Some)
    }

    /// Sends the command that removes a resource.
    pub(crate) fn request_removal(
        self: &Arc<Self>,
        kind: ResourceKind,
        registration_id: i64,
        revoke: bool,
    ) -> Result<Pending<()>, CommandError> {
        event!(
            debug,
            "resource removed",
            kind = kind.name(),
            registration_id = registration_id,
        );
        let client_id = self.client_id;
        self.request_or_queue(|correlation_id| match kind {
            ResourceKind::Publication => Command::RemovePublication {
                client_id,
                correlation_id,
                registration_id,
                revoke,
            },
            ResourceKind::Subscription => Command::RemoveSubscription {
                client_id,
                correlation_id,
                registration_id,
            },
            ResourceKind::Counter => Command::RemoveCounter {
                client_id,
                correlation_id,
                registration_id,
            },
        })
    }
}
