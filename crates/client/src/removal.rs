//! Giving resources back to the driver, by their handles or by their ids.

use std::sync::Arc;

use taran_protocol::command::Command;

use crate::error::AddError;
use crate::link::Link;
use crate::pending::Pending;
use crate::registry::Wish;

/// What is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Publication,
    Subscription,
    Counter,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Publication => "publication",
            Self::Subscription => "subscription",
            Self::Counter => "counter",
        }
    }

    /// Whether the wish is for one of these.
    fn is_wished_by(self, wish: &Wish) -> bool {
        match wish {
            Wish::Publication { .. } | Wish::ExclusivePublication { .. } => {
                self == Self::Publication
            }
            Wish::Subscription { .. } => self == Self::Subscription,
            Wish::Counter { .. } => self == Self::Counter,
            Wish::StaticCounter { .. } | Wish::Operation { .. } | Wish::SessionId { .. } => false,
        }
    }
}

impl Link {
    /// Closes what this client has under a registration id, or withdraws what it has asked for.
    pub(crate) fn remove(
        self: &Arc<Self>,
        kind: Kind,
        registration_id: i64,
    ) -> Result<Pending<()>, AddError> {
        self.life.check()?;
        if let Some(pending) = self.withdraw(kind, registration_id)? {
            return Ok(pending);
        }
        let unknown = || AddError::UnknownRegistration {
            what: kind.name(),
            registration_id,
        };
        // Each is taken out of the lock before it is closed: closing waits for callbacks, which may take the lock.
        match kind {
            Kind::Publication => {
                let state = {
                    let registry = self.registry();
                    let entry = registry.publications.get(&registration_id);
                    entry.map(|entry| Arc::clone(&entry.state))
                };
                let state = state.ok_or_else(unknown)?;
                self.close_publication(&state)
            }
            Kind::Subscription => {
                let state = self.registry().subscriptions.get(&registration_id).cloned();
                let state = state.ok_or_else(unknown)?;
                self.close_subscription(&state)
            }
            Kind::Counter => {
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

    /// Takes an add back that the driver has not answered. The driver takes commands in order, so it makes the resource
    /// and gives it up.
    fn withdraw(
        self: &Arc<Self>,
        kind: Kind,
        registration_id: i64,
    ) -> Result<Option<Pending<()>>, AddError> {
        let wish = {
            let mut registry = self.registry();
            let is_wished = registry
                .in_flight
                .get(&registration_id)
                .is_some_and(|in_flight| kind.is_wished_by(&in_flight.wish));
            if !is_wished {
                return Ok(None);
            }
            let in_flight = registry.in_flight.remove(&registration_id);
            self.note_in_flight(&registry);
            in_flight.map(|in_flight| in_flight.wish)
        };
        let removal = self.give_back(kind, registration_id, false);
        if let Some(wish) = wish {
            wish.fail(AddError::Withdrawn);
        }
        removal.map(Some)
    }

    /// Tells the driver.
    pub(crate) fn give_back(
        self: &Arc<Self>,
        kind: Kind,
        registration_id: i64,
        revoke: bool,
    ) -> Result<Pending<()>, AddError> {
        let client_id = self.client_id;
        self.ask_or_keep(|correlation_id| match kind {
            Kind::Publication => Command::RemovePublication {
                client_id,
                correlation_id,
                registration_id,
                revoke,
            },
            Kind::Subscription => Command::RemoveSubscription {
                client_id,
                correlation_id,
                registration_id,
            },
            Kind::Counter => Command::RemoveCounter {
                client_id,
                correlation_id,
                registration_id,
            },
        })
    }
}
