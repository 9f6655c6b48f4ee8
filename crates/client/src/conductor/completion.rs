// SPDX-License-Identifier: Apache-2.0
//! Completion of requests that the driver has answered.

use std::sync::Arc;

use taran_protocol::command::Command;
use taran_protocol::response::Response;

use super::logs::{self, OpenedLog, UnusableLog};
use crate::client_core::ClientCore;
use crate::counter::{Counter, CounterState};
use crate::error::CommandError;
use crate::publication::{ExclusivePublication, Publication, PublicationCore, PublicationState};
use crate::registry::{CounterEntry, PublicationEntry, Registry, Request};
use crate::subscription::{Subscription, SubscriptionState};
use crate::trace::event;

/// Creates the requested resource from the driver's response and completes the request. If that fails, the resource is
/// removed from the driver.
pub(super) fn complete(
    client: &Arc<ClientCore>,
    correlation_id: i64,
    request: Request,
    response: &Response<'_>,
) {
    match (request, *response) {
        (Request::Publication { channel, completer }, Response::PublicationReady { .. }) => {
            let result = publication_core(client, channel, response).map(Publication::new);
            let registered = result.and_then(|publication| {
                let handle = Some(Arc::downgrade(publication.handle()));
                let state = Arc::clone(publication.state());
                register_publication(client, PublicationEntry { state, handle })?;
                event!(
                    debug,
                    "publication added",
                    registration_id = correlation_id,
                    channel = publication.channel(),
                    stream_id = publication.stream_id(),
                    session_id = publication.session_id(),
                );
                Ok(publication)
            });
            remove_on_error(client, correlation_id, &registered);
            completer.complete(registered);
        }
        (
            Request::ExclusivePublication { channel, completer },
            Response::ExclusivePublicationReady { .. },
        ) => {
            let result =
                publication_core(client, channel, response).and_then(ExclusivePublication::new);
            let registered = result.and_then(|publication| {
                let state = Arc::clone(publication.state());
                register_publication(
                    client,
                    PublicationEntry {
                        state,
                        handle: None,
                    },
                )?;
                event!(
                    debug,
                    "exclusive publication added",
                    registration_id = correlation_id,
                    channel = publication.channel(),
                    stream_id = publication.stream_id(),
                    session_id = publication.session_id(),
                );
                Ok(publication)
            });
            remove_on_error(client, correlation_id, &registered);
            completer.complete(registered);
        }
        (
            Request::Subscription {
                channel,
                stream_id,
                handlers,
                completer,
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
            let registered = register(client, |registry| {
                registry
                    .subscriptions
                    .insert(correlation_id, Arc::clone(&state));
            });
            if registered.is_ok() {
                event!(
                    debug,
                    "subscription added",
                    registration_id = correlation_id,
                    channel = state.channel,
                    stream_id = state.stream_id,
                );
            }
            completer.complete(registered.map(|()| Subscription::new(Arc::clone(client), state)));
        }
        (Request::Counter { completer }, Response::CounterReady { counter_id, .. }) => {
            let result = counter(client, correlation_id, counter_id, false);
            if result.is_err() {
                let removal_command = Command::RemoveCounter {
                    client_id: client.client_id,
                    correlation_id: client.next_correlation_id(),
                    registration_id: correlation_id,
                };
                client.send_or_queue(&removal_command);
            } else {
                event!(
                    debug,
                    "counter added",
                    registration_id = correlation_id,
                    counter_id = counter_id,
                );
            }
            completer.complete(result);
        }
        (
            Request::StaticCounter {
                registration_id,
                completer,
            },
            Response::StaticCounter { counter_id, .. },
        ) => {
            completer.complete(counter(client, registration_id, counter_id, true));
        }
        (Request::Operation { completer }, Response::OperationSuccess { .. }) => {
            completer.complete(Ok(()));
        }
        (Request::SessionId { completer }, Response::NextAvailableSessionId { session_id, .. }) => {
            completer.complete(Ok(session_id));
        }
        (request, _) => {
            if let Some(removal_command) = request.removal_command(
                client.client_id,
                client.next_correlation_id(),
                correlation_id,
            ) {
                client.send_or_queue(&removal_command);
            }
            let expected = request.expected_response();
            request.fail(CommandError::UnexpectedResponse { expected });
        }
    }
}

/// Registers a resource unless the client was closed meanwhile, which has emptied the registry.
fn register(client: &ClientCore, register: impl FnOnce(&mut Registry)) -> Result<(), CommandError> {
    let mut registry = client.registry();
    client.state.check_open()?;
    register(&mut registry);
    Ok(())
}

fn register_publication(client: &ClientCore, entry: PublicationEntry) -> Result<(), CommandError> {
    register(client, |registry| {
        registry
            .publications
            .insert(entry.state.registration_id, entry);
    })
}

fn remove_on_error<T>(client: &ClientCore, registration_id: i64, result: &Result<T, CommandError>) {
    if result.is_err() && !client.state.is_closed() {
        // Without revoking: a shared stream may have other publishers.
        client.send_or_queue(&Command::RemovePublication {
            client_id: client.client_id,
            correlation_id: client.next_correlation_id(),
            registration_id,
            revoke: false,
        });
    }
}

fn publication_core(
    client: &Arc<ClientCore>,
    channel: String,
    response: &Response<'_>,
) -> Result<PublicationCore, CommandError> {
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
        return Err(CommandError::UnexpectedResponse {
            expected: "ON_PUBLICATION_READY",
        });
    };
    let OpenedLog { log, .. } = logs::open(client, log_name)
        .map_err(|UnusableLog { path, reason }| CommandError::Log { path, reason })?;
    let limit = client
        .counters()
        .counter(limit_counter_id)
        .ok_or(CommandError::NoSuchCounter {
            counter_id: limit_counter_id,
        })?;
    Ok(PublicationCore {
        client: Arc::clone(client),
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
    client: &Arc<ClientCore>,
    registration_id: i64,
    counter_id: i32,
    is_static: bool,
) -> Result<Counter, CommandError> {
    let shared = client
        .counters()
        .counter(counter_id)
        .ok_or(CommandError::NoSuchCounter { counter_id })?;
    let state = Arc::new(CounterState::new(registration_id));
    let counter = Counter::new(Arc::clone(client), Arc::clone(&state), shared, is_static);
    if is_static {
        // The counter outlives the client, the handles do not.
        register(client, |registry| {
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
        register(client, |registry| {
            drop(registry.counters.insert(registration_id, entry));
        })?;
    }
    Ok(counter)
}
