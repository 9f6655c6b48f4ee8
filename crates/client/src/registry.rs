// SPDX-License-Identifier: Apache-2.0
//! The commands in flight and the open resources of a client.
//!
//! One lock guards the registry. It is never held while a callback runs, a file is mapped or a resource is dropped,
//! because each of these may take the lock. The maps are ordered so that simulated clients are deterministic.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use taran_protocol::command::Command;

use crate::counter::{Counter, CounterHandle, CounterState};
use crate::error::CommandError;
use crate::handlers::ImageHandlers;
use crate::mapped_logs::MappedLogs;
use crate::pending::Completer;
use crate::publication::{ExclusivePublication, Publication, PublicationHandle, PublicationState};
use crate::subscription::{Subscription, SubscriptionState};
use crate::trace::event;

/// Commands in flight, open resources and mapped logs of a client.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// Commands without a response, by correlation id.
    pub(crate) in_flight: BTreeMap<i64, InFlight>,
    /// Open publications by registration id; the maps below have the same key.
    pub(crate) publications: BTreeMap<i64, PublicationEntry>,
    pub(crate) subscriptions: BTreeMap<i64, Arc<SubscriptionState>>,
    pub(crate) counters: BTreeMap<i64, CounterEntry>,
    pub(crate) static_counters: Vec<Weak<CounterState>>,
    pub(crate) logs: MappedLogs,
    /// Commands for which the driver's buffer had no room, in order.
    pub(crate) queued: VecDeque<EncodedCommand>,
}

/// A command that was sent or queued.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Time at which the conductor first saw the command; the timeout starts there.
    pub(crate) since_ns: Option<i64>,
    pub(crate) request: Request,
}

/// A request, with the data to create the resource and the completer of its [`Pending`](crate::Pending).
#[derive(Debug)]
pub(crate) enum Request {
    Publication {
        channel: String,
        completer: Completer<Publication>,
    },
    ExclusivePublication {
        channel: String,
        completer: Completer<ExclusivePublication>,
    },
    Subscription {
        channel: String,
        stream_id: i32,
        handlers: ImageHandlers,
        completer: Completer<Subscription>,
    },
    Counter {
        completer: Completer<Counter>,
    },
    StaticCounter {
        registration_id: i64,
        completer: Completer<Counter>,
    },
    Operation {
        completer: Completer<()>,
    },
    SessionId {
        completer: Completer<i32>,
    },
}

impl Request {
    /// Completes the request with an error. Must be called without the registry's lock.
    pub(crate) fn fail(self, error: CommandError) {
        event!(debug, "command failed", error = error);
        match self {
            Self::Publication { completer, .. } => completer.complete(Err(error)),
            Self::ExclusivePublication { completer, .. } => completer.complete(Err(error)),
            Self::Subscription { completer, .. } => completer.complete(Err(error)),
            Self::Counter { completer } | Self::StaticCounter { completer, .. } => {
                completer.complete(Err(error));
            }
            Self::Operation { completer } => completer.complete(Err(error)),
            Self::SessionId { completer } => completer.complete(Err(error)),
        }
    }

    /// Returns the command that removes the resource that the driver may have created for this request.
    pub(crate) fn removal_command(
        &self,
        client_id: i64,
        correlation_id: i64,
        registration_id: i64,
    ) -> Option<Command<'static>> {
        match self {
            Self::Publication { .. } | Self::ExclusivePublication { .. } => {
                Some(Command::RemovePublication {
                    client_id,
                    correlation_id,
                    registration_id,
                    revoke: false,
                })
            }
            Self::Subscription { .. } => Some(Command::RemoveSubscription {
                client_id,
                correlation_id,
                registration_id,
            }),
            Self::Counter { .. } => Some(Command::RemoveCounter {
                client_id,
                correlation_id,
                registration_id,
            }),
            Self::StaticCounter { .. } | Self::Operation { .. } | Self::SessionId { .. } => None,
        }
    }

    /// Returns the name of the matching response, for error texts.
    pub(crate) fn expected_response(&self) -> &'static str {
        match self {
            Self::Publication { .. } => "ON_PUBLICATION_READY",
            Self::ExclusivePublication { .. } => "ON_EXCLUSIVE_PUBLICATION_READY",
            Self::Subscription { .. } => "ON_SUBSCRIPTION_READY",
            Self::Counter { .. } => "ON_COUNTER_READY",
            Self::StaticCounter { .. } => "ON_STATIC_COUNTER",
            Self::Operation { .. } => "ON_OPERATION_SUCCESS",
            Self::SessionId { .. } => "ON_NEXT_AVAILABLE_SESSION_ID",
        }
    }
}

#[derive(Debug)]
pub(crate) struct PublicationEntry {
    pub(crate) state: Arc<PublicationState>,
    /// Set for shared publications, for [`Client::find_publication`](crate::Client::find_publication). Must not be
    /// upgraded under the lock: the upgraded handle may be the last one, and its drop takes the lock.
    pub(crate) handle: Option<Weak<PublicationHandle>>,
}

#[derive(Debug)]
pub(crate) struct CounterEntry {
    pub(crate) state: Arc<CounterState>,
    pub(crate) handle: Weak<CounterHandle>,
}

/// A command as written to the driver's buffer.
#[derive(Debug)]
pub(crate) struct EncodedCommand {
    pub(crate) type_id: i32,
    pub(crate) bytes: Vec<u8>,
}

impl EncodedCommand {
    pub(crate) fn new(command: &Command<'_>) -> Self {
        let mut bytes = Vec::new();
        let type_id = command.encode(&mut bytes);
        Self { type_id, bytes }
    }
}
