//! Destinations that are part of a resource: added on each driver.
//!
//! Contract: [`Destinations::begin`] when the resource was made, [`Destinations::do_work`] once per duty cycle after that,
//! [`Destinations::end`] when its driver is lost. `do_work` brings the destinations of the resource in line with the list
//! of the handle; [`Destinations::is_settled`] is true when each was tried.

use std::sync::Arc;

use taran_core::clock::Now;
use taran_protocol::command::Command;

use super::RETRY_NS;
use crate::client_core::ClientCore;
use crate::counter::Counter;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::publication::{ExclusivePublication, Publication};
use crate::registry::Request;
use crate::subscription::Subscription;

/// A resource that can be made anew.
pub(super) trait Resource: Send {
    /// Returns what sends the commands for its destinations, if it can have any. The handle owns the resource itself.
    fn destination_port(&self) -> Option<DestinationPort>;
}

impl Resource for Publication {
    fn destination_port(&self) -> Option<DestinationPort> {
        Some(DestinationPort::of_publication(self.core()))
    }
}

impl Resource for ExclusivePublication {
    fn destination_port(&self) -> Option<DestinationPort> {
        Some(DestinationPort::of_publication(self.core()))
    }
}

impl Resource for Subscription {
    fn destination_port(&self) -> Option<DestinationPort> {
        Some(DestinationPort {
            client: Arc::clone(self.client()),
            registration_id: self.registration_id(),
            receives: true,
        })
    }
}

impl Resource for Counter {
    fn destination_port(&self) -> Option<DestinationPort> {
        None
    }
}

/// Sends commands for the destinations of one publication or subscription.
pub(super) struct DestinationPort {
    client: Arc<ClientCore>,
    registration_id: i64,
    /// True for a subscription.
    receives: bool,
}

impl DestinationPort {
    fn of_publication(core: &crate::publication::PublicationCore) -> Self {
        Self {
            client: Arc::clone(&core.client),
            registration_id: core.state.original_registration_id,
            receives: false,
        }
    }

    fn send(&self, channel: &str, adds: bool) -> Result<Pending<()>, CommandError> {
        let (client_id, registration_id) = (self.client.client_id, self.registration_id);
        self.client.request(
            |completer| Request::Operation { completer },
            |correlation_id| match (self.receives, adds) {
                (false, true) => Command::AddDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel,
                },
                (false, false) => Command::RemoveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel,
                },
                (true, true) => Command::AddReceiveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel,
                },
                (true, false) => Command::RemoveReceiveDestination {
                    client_id,
                    correlation_id,
                    registration_id,
                    channel,
                },
            },
        )
    }
}

/// The destinations of one resource on the current driver.
#[derive(Default)]
pub(super) struct Destinations {
    port: Option<DestinationPort>,
    /// The list of the handle, as of `version`.
    wanted: Vec<String>,
    version: Option<u64>,
    known: Vec<Destination>,
}

struct Destination {
    channel: String,
    state: State,
}

enum State {
    Adding(Pending<()>),
    Added,
    Removing(Pending<()>),
    /// The driver has refused it, or has not answered; it is tried again at this time.
    Failed {
        next_attempt_ns: i64,
    },
    /// Removed, or failed and no longer wanted.
    Gone,
}

impl Destinations {
    pub(super) fn begin(&mut self, port: Option<DestinationPort>) {
        self.port = port;
    }

    pub(super) fn end(&mut self) {
        self.port = None;
        self.known.clear();
    }

    /// Returns true if the list of the handle has another version than the one that is known.
    pub(super) fn is_outdated(&self, version: u64) -> bool {
        self.version != Some(version)
    }

    /// Takes the list of the handle over.
    pub(super) fn set_wanted(&mut self, wanted: Vec<String>, version: u64) {
        self.wanted = wanted;
        self.version = Some(version);
    }

    /// Returns true if each wanted destination was added or refused.
    pub(super) fn is_settled(&self) -> bool {
        let is_tried = |channel: &String| {
            self.known.iter().any(|known| {
                known.channel == *channel
                    && matches!(known.state, State::Added | State::Failed { .. })
            })
        };
        self.port.is_none() || self.wanted.iter().all(is_tried)
    }

    /// Returns true if a wanted destination is missing because the driver has refused it.
    pub(super) fn has_failed(&self) -> bool {
        let mut known = self.known.iter();
        known.any(|known| matches!(known.state, State::Failed { .. }))
    }

    /// Sends commands and takes their results. `on_failure` gets each error. Returns the amount of work done.
    pub(super) fn do_work(&mut self, now: Now, mut on_failure: impl FnMut(CommandError)) -> usize {
        let Some(port) = &self.port else { return 0 };
        let mut work = 0;
        for channel in &self.wanted {
            if self.known.iter().all(|known| known.channel != *channel) {
                self.known.push(Destination {
                    channel: channel.clone(),
                    state: State::Failed {
                        next_attempt_ns: i64::MIN,
                    },
                });
            }
        }
        for known in &mut self.known {
            let is_wanted = self.wanted.contains(&known.channel);
            if let Some(next) = known.advance(port, is_wanted, now, &mut on_failure) {
                known.state = next;
                work += 1;
            }
        }
        self.known
            .retain(|known| !matches!(known.state, State::Gone));
        work
    }
}

impl Destination {
    /// Returns the next state, if the destination leaves the current one.
    fn advance(
        &mut self,
        port: &DestinationPort,
        is_wanted: bool,
        now: Now,
        on_failure: &mut impl FnMut(CommandError),
    ) -> Option<State> {
        let mut failed = |error| {
            on_failure(error);
            State::Failed {
                next_attempt_ns: now.nanos.saturating_add(RETRY_NS),
            }
        };
        match &mut self.state {
            State::Adding(pending) => Some(match pending.poll()? {
                Ok(()) => State::Added,
                Err(error) => failed(error),
            }),
            // What cannot be removed is left to the driver.
            State::Removing(pending) => Some(match pending.poll()? {
                Ok(()) => State::Gone,
                Err(error) => {
                    failed(error);
                    State::Gone
                }
            }),
            State::Added if is_wanted => None,
            State::Added => Some(match port.send(&self.channel, false) {
                Ok(pending) => State::Removing(pending),
                Err(error) => {
                    failed(error);
                    State::Gone
                }
            }),
            State::Failed { .. } if !is_wanted => Some(State::Gone),
            State::Failed { next_attempt_ns } if now.nanos < *next_attempt_ns => None,
            State::Failed { .. } => Some(match port.send(&self.channel, true) {
                Ok(pending) => State::Adding(pending),
                Err(error) => failed(error),
            }),
            State::Gone => None,
        }
    }
}
