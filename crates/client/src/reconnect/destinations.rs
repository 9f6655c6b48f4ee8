// SPDX-License-Identifier: Apache-2.0
//! Destinations that are part of a resource: added on each driver.
//!
//! Contract: [`Destinations::begin`] when the resource was made, [`Destinations::do_work`] once per duty cycle after that,
//! [`Destinations::end`] when its driver is lost. `do_work` brings the destinations of the resource in line with the list
//! of the handle; [`Destinations::is_settled`] is true when each was tried. A command that fails is repeated after a pause. Only
//! an addition that the driver refuses for good is not: its next attempt is on the next connection.
//!
//! A driver does not deduplicate destinations. So a destination that it may have, because the answer to its command was
//! lost, is removed before it is added again; the driver executes the commands of a client in order. A destination of a
//! lost connection is removed in the same way if the next connection is to the same driver, where a publication of the
//! same channel can have kept it. A new driver has none.

use std::sync::Arc;

use taran_core::clock::Now;
use taran_protocol::command::Command;
use taran_protocol::error_code::ErrorCode;

use super::RETRY_NS;
use super::refusal::is_final;
use crate::client_core::{ClientCore, DriverIdentity};
use crate::counter::Counter;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::publication::{ExclusivePublication, Publication};
use crate::registry::Request;
use crate::subscription::Subscription;
use crate::trace::event;

/// Time of an attempt that is not made.
const NEVER: i64 = i64::MAX;

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

    /// Returns the driver that executes the commands.
    fn driver(&self) -> DriverIdentity {
        self.client.driver_identity()
    }

    fn add(&self, channel: &str) -> Result<Pending<()>, CommandError> {
        let (client_id, registration_id) = (self.client.client_id, self.registration_id);
        self.client.request(
            |completer| Request::Operation { completer },
            |correlation_id| {
                if self.receives {
                    Command::AddReceiveDestination {
                        client_id,
                        correlation_id,
                        registration_id,
                        channel,
                    }
                } else {
                    Command::AddDestination {
                        client_id,
                        correlation_id,
                        registration_id,
                        channel,
                    }
                }
            },
        )
    }

    /// Removes the destination that a command has added: one of a publication by the id of that command, because others can
    /// have added the same channel to it. The protocol identifies one of a subscription by its channel.
    fn remove(&self, channel: &str, destination_id: i64) -> Result<Pending<()>, CommandError> {
        let (client_id, registration_id) = (self.client.client_id, self.registration_id);
        self.client.request(
            |completer| Request::Operation { completer },
            |correlation_id| {
                if self.receives {
                    Command::RemoveReceiveDestination {
                        client_id,
                        correlation_id,
                        registration_id,
                        channel,
                    }
                } else {
                    Command::RemoveDestinationById {
                        client_id,
                        correlation_id,
                        registration_id,
                        destination_id,
                    }
                }
            },
        )
    }
}

/// The destinations of one resource on the current driver.
#[derive(Default)]
pub(super) struct Destinations {
    port: Option<DestinationPort>,
    /// The driver of the destinations in `known`.
    driver: Option<DriverIdentity>,
    /// The list of the handle, as of `version`.
    wanted: Vec<String>,
    version: Option<u64>,
    known: Vec<Destination>,
}

struct Destination {
    channel: String,
    state: State,
    /// The last failure, until the destination is as wanted.
    failure: Option<CommandError>,
}

enum State {
    /// The driver does not have it. It is added at this time.
    Absent { next_attempt_ns: i64 },
    /// The command that adds it has no answer yet.
    Adding(Pending<()>),
    /// The driver has it; with the id of the command that has added it.
    Added { id: i64 },
    /// The driver may have it. It is removed at this time, before it is added again.
    Unresolved { id: i64, next_attempt_ns: i64 },
    /// The command that removes it has no answer yet.
    Removing { id: i64, pending: Pending<()> },
    /// Absent and not wanted.
    Gone,
}

impl Destinations {
    pub(super) fn begin(&mut self, port: Option<DestinationPort>) {
        let driver = port.as_ref().map(DestinationPort::driver);
        if driver != self.driver {
            self.known.clear();
        }
        self.driver = driver;
        self.port = port;
    }

    pub(super) fn end(&mut self) {
        self.port = None;
        for known in &mut self.known {
            if let Some(id) = known.id() {
                known.state = State::Unresolved {
                    id,
                    next_attempt_ns: i64::MIN,
                };
                // The next connection tries it again.
                known.failure = None;
            }
        }
        self.known
            .retain(|known| matches!(known.state, State::Unresolved { .. }));
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

    /// Returns true if each wanted destination was added, or has failed.
    pub(super) fn is_settled(&self) -> bool {
        let is_tried = |channel: &String| {
            self.known.iter().any(|known| {
                known.channel == *channel
                    && (known.failure.is_some() || matches!(known.state, State::Added { .. }))
            })
        };
        self.port.is_none() || self.wanted.iter().all(is_tried)
    }

    /// Returns the failure of the first destination that is not as wanted after one.
    pub(super) fn failure(&self) -> Option<&CommandError> {
        self.known.iter().find_map(|known| known.failure.as_ref())
    }

    /// Sends commands and takes their results. Returns the amount of work done.
    pub(super) fn do_work(&mut self, now: Now) -> usize {
        let Some(port) = &self.port else { return 0 };
        let mut work = 0;
        for channel in &self.wanted {
            if self.known.iter().all(|known| known.channel != *channel) {
                self.known.push(Destination {
                    channel: channel.clone(),
                    state: State::Absent {
                        next_attempt_ns: i64::MIN,
                    },
                    failure: None,
                });
            }
        }
        for known in &mut self.known {
            let is_wanted = self.wanted.contains(&known.channel);
            if let Some(next) = known.advance(port, is_wanted, now) {
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
    /// Returns the id of the command that has added it, if the driver can have it.
    fn id(&self) -> Option<i64> {
        match &self.state {
            State::Adding(pending) => Some(pending.registration_id()),
            State::Added { id } | State::Unresolved { id, .. } | State::Removing { id, .. } => {
                Some(*id)
            }
            State::Absent { .. } | State::Gone => None,
        }
    }

    /// Returns the next state, if the destination leaves the current one.
    fn advance(&mut self, port: &DestinationPort, is_wanted: bool, now: Now) -> Option<State> {
        let failure = &mut self.failure;
        let channel = &self.channel;
        // Keeps an error and returns the time of the next attempt.
        let mut failed = |error: CommandError| {
            *failure = Some(error);
            now.nanos.saturating_add(RETRY_NS)
        };
        // The same for an addition: no attempt on this connection if the driver refuses it for good.
        let mut not_added = |error: CommandError| {
            if !is_final(&error, Some(channel)) {
                return failed(error);
            }
            event!(
                warn,
                "the media driver refuses a destination",
                channel = channel,
                error = error
            );
            failed(error);
            NEVER
        };
        match &mut self.state {
            State::Absent { .. } if !is_wanted => Some(State::Gone),
            State::Absent { next_attempt_ns } if now.nanos < *next_attempt_ns => None,
            State::Absent { .. } => Some(match port.add(&self.channel) {
                Ok(pending) => State::Adding(pending),
                Err(error) => State::Absent {
                    next_attempt_ns: not_added(error),
                },
            }),
            State::Adding(pending) => Some(match pending.poll()? {
                Ok(()) => {
                    self.failure = None;
                    State::Added {
                        id: pending.registration_id(),
                    }
                }
                Err(error @ CommandError::Registration(_)) => State::Absent {
                    next_attempt_ns: not_added(error),
                },
                // The driver may have executed the command.
                Err(error) => State::Unresolved {
                    id: pending.registration_id(),
                    next_attempt_ns: failed(error),
                },
            }),
            State::Added { .. } if is_wanted => None,
            State::Unresolved {
                next_attempt_ns, ..
            } if now.nanos < *next_attempt_ns => None,
            State::Added { id } | State::Unresolved { id, .. } => {
                let id = *id;
                Some(match port.remove(&self.channel, id) {
                    Ok(pending) => State::Removing { id, pending },
                    Err(error) => State::Unresolved {
                        id,
                        next_attempt_ns: failed(error),
                    },
                })
            }
            State::Removing { id, pending } => Some(match pending.poll()? {
                Ok(()) => absent(is_wanted),
                Err(error) if is_unknown_to_driver(&error) => absent(is_wanted),
                Err(error) => State::Unresolved {
                    id: *id,
                    next_attempt_ns: failed(error),
                },
            }),
            State::Gone => None,
        }
    }
}

/// Returns the state of a destination that the driver does not have.
fn absent(is_wanted: bool) -> State {
    if is_wanted {
        State::Absent {
            next_attempt_ns: i64::MIN,
        }
    } else {
        State::Gone
    }
}

/// Returns true if the driver has refused to remove what it does not have.
fn is_unknown_to_driver(error: &CommandError) -> bool {
    let CommandError::Registration(refusal) = error else {
        return false;
    };
    matches!(
        refusal.code,
        ErrorCode::UnknownSubscription | ErrorCode::UnknownPublication
    )
}
