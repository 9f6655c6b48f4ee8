//! What was asked for is there.

use std::sync::Arc;

use taran_protocol::command::Command;
use taran_protocol::response::Response;

use super::logs::{self, Opened, Unusable};
use crate::counter::{Counter, CounterState};
use crate::error::AddError;
use crate::link::Link;
use crate::publication::{ExclusivePublication, Publication, PublicationFacts, PublicationState};
use crate::registry::{CounterEntry, PublicationEntry, Registry, Wish};
use crate::subscription::{Subscription, SubscriptionState};

/// Makes what was wished for out of the driver's response and hands it over. What can not be made is given back.
pub(super) fn fulfil(link: &Arc<Link>, correlation_id: i64, wish: Wish, response: &Response<'_>) {
    match (wish, *response) {
        (Wish::Publication { channel, promise }, Response::PublicationReady { .. }) => {
            let made = publication_facts(link, channel, response).map(Publication::new);
            let kept = made.and_then(|publication| {
                let handle = Some(Arc::downgrade(publication.handle()));
                let state = Arc::clone(publication.state());
                register_publication(link, PublicationEntry { state, handle })?;
                Ok(publication)
            });
            give_back_unless_made(link, correlation_id, &kept);
            promise.keep(kept);
        }
        (
            Wish::ExclusivePublication { channel, promise },
            Response::ExclusivePublicationReady { .. },
        ) => {
            let made =
                publication_facts(link, channel, response).and_then(ExclusivePublication::new);
            let kept = made.and_then(|publication| {
                let state = Arc::clone(publication.state());
                register_publication(
                    link,
                    PublicationEntry {
                        state,
                        handle: None,
                    },
                )?;
                Ok(publication)
            });
            give_back_unless_made(link, correlation_id, &kept);
            promise.keep(kept);
        }
        (
            Wish::Subscription {
                channel,
                stream_id,
                handlers,
                promise,
            },
            Response::SubscriptionReady {
                status_counter_id, ..
            },
        ) => {
            let state = SubscriptionState::new(
                correlation_id,
                channel,
                stream_id,
                status_counter_id,
                handlers,
            );
            let state = Arc::new(state);
            let registered = register(link, |registry| {
                registry
                    .subscriptions
                    .insert(correlation_id, Arc::clone(&state));
            });
            promise.keep(registered.map(|()| Subscription::new(Arc::clone(link), state)));
        }
        (Wish::Counter { promise }, Response::CounterReady { counter_id, .. }) => {
            let made = counter(link, correlation_id, counter_id, false);
            if made.is_err() {
                let undo = Command::RemoveCounter {
                    client_id: link.client_id,
                    correlation_id: link.next_correlation_id(),
                    registration_id: correlation_id,
                };
                link.send_or_keep(&undo);
            }
            promise.keep(made);
        }
        (
            Wish::StaticCounter {
                registration_id,
                promise,
            },
            Response::StaticCounter { counter_id, .. },
        ) => {
            promise.keep(counter(link, registration_id, counter_id, true));
        }
        (Wish::Operation { promise }, Response::OperationSuccess { .. }) => promise.keep(Ok(())),
        (Wish::SessionId { promise }, Response::NextAvailableSessionId { session_id, .. }) => {
            promise.keep(Ok(session_id));
        }
        (wish, _) => {
            if let Some(undo) =
                wish.undo(link.client_id, link.next_correlation_id(), correlation_id)
            {
                link.send_or_keep(&undo);
            }
            let expected = wish.expected();
            wish.fail(AddError::UnexpectedResponse { expected });
        }
    }
}

/// Registers something, unless the client has ended meanwhile: whoever ended it has emptied the registry.
fn register(link: &Link, register: impl FnOnce(&mut Registry)) -> Result<(), AddError> {
    let mut registry = link.registry();
    link.life.check()?;
    register(&mut registry);
    Ok(())
}

fn register_publication(link: &Link, entry: PublicationEntry) -> Result<(), AddError> {
    register(link, |registry| {
        registry
            .publications
            .insert(entry.state.registration_id, entry);
    })
}

fn give_back_unless_made<T>(link: &Link, registration_id: i64, made: &Result<T, AddError>) {
    if made.is_err() && !link.life.is_over() {
        // Not revoked: a shared stream may have other publishers.
        link.send_or_keep(&Command::RemovePublication {
            client_id: link.client_id,
            correlation_id: link.next_correlation_id(),
            registration_id,
            revoke: false,
        });
    }
}

fn publication_facts(
    link: &Arc<Link>,
    channel: String,
    response: &Response<'_>,
) -> Result<PublicationFacts, AddError> {
    let (Response::PublicationReady {
        correlation_id,
        registration_id,
        session_id,
        stream_id,
        limit_counter_id,
        status_counter_id,
        log_name,
    }
    | Response::ExclusivePublicationReady {
        correlation_id,
        registration_id,
        session_id,
        stream_id,
        limit_counter_id,
        status_counter_id,
        log_name,
    }) = *response
    else {
        return Err(AddError::UnexpectedResponse {
            expected: "ON_PUBLICATION_READY",
        });
    };
    let Opened { log, .. } = logs::open(link, log_name)
        .map_err(|Unusable { path, reason }| AddError::Log { path, reason })?;
    let limit = link
        .counters()
        .counter(limit_counter_id)
        .ok_or(AddError::NoSuchCounter {
            counter_id: limit_counter_id,
        })?;
    Ok(PublicationFacts {
        link: Arc::clone(link),
        state: Arc::new(PublicationState::new(
            correlation_id,
            registration_id,
            status_counter_id,
            Arc::clone(&log),
        )),
        channel,
        session_id,
        stream_id,
        limit,
        log,
    })
}

fn counter(
    link: &Arc<Link>,
    registration_id: i64,
    counter_id: i32,
    is_static: bool,
) -> Result<Counter, AddError> {
    let shared = link
        .counters()
        .counter(counter_id)
        .ok_or(AddError::NoSuchCounter { counter_id })?;
    let state = Arc::new(CounterState::new(registration_id));
    let counter = Counter::new(Arc::clone(link), Arc::clone(&state), shared, is_static);
    if is_static {
        // The counter outlives the client, the handle does not.
        register(link, |registry| {
            registry
                .static_counters
                .retain(|state| state.strong_count() != 0);
            registry.static_counters.push(Arc::downgrade(&state));
        })?;
    } else {
        let entry = CounterEntry {
            state,
            handle: Arc::downgrade(counter.handle()),
        };
        register(link, |registry| {
            drop(registry.counters.insert(registration_id, entry));
        })?;
    }
    Ok(counter)
}
