//! What a client has asked for and what it has got.
//!
//! One lock guards it. It is never held while a user's function runs, a file is mapped or a resource is dropped: each
//! of those may come back for the lock. Ordered maps, so that a simulated client does the same in every run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use taran_protocol::command::Command;

use crate::counter::{Counter, CounterHandle, CounterState};
use crate::error::AddError;
use crate::handlers::ImageHandlers;
use crate::mapped_logs::MappedLogs;
use crate::pending::Promise;
use crate::publication::{ExclusivePublication, Publication, PublicationHandle, PublicationState};
use crate::subscription::{Subscription, SubscriptionState};

#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// Commands whose answer has not come, by correlation id.
    pub(crate) in_flight: BTreeMap<i64, InFlight>,
    /// By registration id, as all below.
    pub(crate) publications: BTreeMap<i64, PublicationEntry>,
    pub(crate) subscriptions: BTreeMap<i64, Arc<SubscriptionState>>,
    pub(crate) counters: BTreeMap<i64, CounterEntry>,
    pub(crate) static_counters: Vec<Weak<CounterState>>,
    pub(crate) logs: MappedLogs,
    /// Commands for which the driver's buffer had no room, in order.
    pub(crate) unsent: VecDeque<Encoded>,
}

/// A command on its way, or back.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// When the conductor first saw it; its time runs from there.
    pub(crate) since_ns: Option<i64>,
    pub(crate) wish: Wish,
}

/// What was asked for, with whatever is needed to make it when the driver agrees.
#[derive(Debug)]
pub(crate) enum Wish {
    Publication {
        channel: String,
        promise: Promise<Publication>,
    },
    ExclusivePublication {
        channel: String,
        promise: Promise<ExclusivePublication>,
    },
    Subscription {
        channel: String,
        stream_id: i32,
        handlers: ImageHandlers,
        promise: Promise<Subscription>,
    },
    Counter {
        promise: Promise<Counter>,
    },
    StaticCounter {
        registration_id: i64,
        promise: Promise<Counter>,
    },
    Operation {
        promise: Promise<()>,
    },
    SessionId {
        promise: Promise<i32>,
    },
}

impl Wish {
    /// Tells whoever waits that nothing comes of it. Not under the registry's lock.
    pub(crate) fn fail(self, error: AddError) {
        match self {
            Self::Publication { promise, .. } => promise.keep(Err(error)),
            Self::ExclusivePublication { promise, .. } => promise.keep(Err(error)),
            Self::Subscription { promise, .. } => promise.keep(Err(error)),
            Self::Counter { promise } | Self::StaticCounter { promise, .. } => {
                promise.keep(Err(error));
            }
            Self::Operation { promise } => promise.keep(Err(error)),
            Self::SessionId { promise } => promise.keep(Err(error)),
        }
    }

    /// The command that gives back what the driver may have made for this wish.
    pub(crate) fn undo(
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

    /// The response that belongs to it, for error texts.
    pub(crate) fn expected(&self) -> &'static str {
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
    /// For shared publications, to find them again. Never upgraded under the lock: the upgraded handle may turn out to
    /// be the last.
    pub(crate) handle: Option<Weak<PublicationHandle>>,
}

#[derive(Debug)]
pub(crate) struct CounterEntry {
    pub(crate) state: Arc<CounterState>,
    pub(crate) handle: Weak<CounterHandle>,
}

/// A command as it goes into the driver's buffer.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) type_id: i32,
    pub(crate) bytes: Vec<u8>,
}

impl Encoded {
    pub(crate) fn new(command: &Command<'_>) -> Self {
        let mut bytes = Vec::new();
        let type_id = command.encode(&mut bytes);
        Self { type_id, bytes }
    }
}
