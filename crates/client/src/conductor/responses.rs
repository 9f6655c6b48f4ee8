// SPDX-License-Identifier: Apache-2.0
//! Dispatch of the driver's responses.

use std::sync::Arc;

use taran_core::counters::CountersReader;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::{Response, ResponseError};

use super::{completion, image};
use crate::client_core::ClientCore;
use crate::error::{ClientError, Lost, RegistrationError};
use crate::handlers::{OnCounter, PublicationError};
use crate::registry::InFlight;

/// Processes a response. Responses to other clients are ignored.
pub(super) fn on_response(
    client: &Arc<ClientCore>,
    type_id: i32,
    bytes: &[u8],
) -> Result<(), Lost> {
    match Response::decode(type_id, bytes) {
        Ok(response) => dispatch(client, &response)?,
        // A newer driver may send responses that this client does not know.
        Err(ResponseError::Unknown(_)) => {}
        Err(error) => client.handlers.report(&ClientError::BadResponse {
            type_id,
            reason: error.to_string(),
        }),
    }
    Ok(())
}

fn dispatch(client: &Arc<ClientCore>, response: &Response<'_>) -> Result<(), Lost> {
    match *response {
        Response::PublicationReady { correlation_id, .. }
        | Response::ExclusivePublicationReady { correlation_id, .. }
        | Response::SubscriptionReady { correlation_id, .. }
        | Response::OperationSuccess { correlation_id }
        | Response::NextAvailableSessionId { correlation_id, .. }
        | Response::StaticCounter { correlation_id, .. } => {
            on_command_response(client, correlation_id, response);
        }
        Response::CounterReady {
            correlation_id,
            counter_id,
        } => {
            on_command_response(client, correlation_id, response);
            notify_counter(client, true, correlation_id, counter_id);
        }
        Response::UnavailableCounter {
            registration_id,
            counter_id,
        } => {
            notify_counter(client, false, registration_id, counter_id);
        }
        Response::AvailableImage {
            image_id,
            session_id,
            stream_id,
            subscription_id,
            position_counter_id,
            log_name,
            source_identity,
        } => image::on_available(
            client,
            &image::NewImage {
                image_id,
                session_id,
                stream_id,
                subscription_id,
                position_counter_id,
                log_name,
                source_identity,
            },
        ),
        Response::UnavailableImage {
            image_id,
            subscription_id,
            ..
        } => {
            image::on_unavailable(client, subscription_id, image_id);
        }
        Response::Error {
            correlation_id,
            error_code,
            message,
        } => on_error(client, correlation_id, error_code, message),
        Response::PublicationError { .. } => on_publication_error(client, response),
        Response::ClientTimeout { client_id } if client_id == client.client_id => {
            return Err(Lost::ClientTimeout {
                liveness: client.settings.client_liveness,
            });
        }
        Response::ClientTimeout { .. } => {}
    }
    Ok(())
}

/// Removes and returns the command in flight with a correlation id, if it belongs to this client.
fn take_in_flight(client: &ClientCore, correlation_id: i64) -> Option<InFlight> {
    let mut registry = client.registry();
    let in_flight = registry.in_flight.remove(&correlation_id);
    client.update_pending_commands(&registry);
    in_flight
}

fn on_command_response(client: &Arc<ClientCore>, correlation_id: i64, response: &Response<'_>) {
    if let Some(in_flight) = take_in_flight(client, correlation_id) {
        completion::complete(client, correlation_id, in_flight.request, response);
    }
}

fn on_error(client: &Arc<ClientCore>, correlation_id: i64, error_code: i32, message: &[u8]) {
    let code = ErrorCode::from_code(error_code);
    let text = String::from_utf8_lossy(message).into_owned();
    if code == ErrorCode::ChannelEndpointError {
        // For this error code the correlation id is the id of the channel's status counter.
        if let Ok(status_counter_id) = i32::try_from(correlation_id) {
            on_channel_error(client, status_counter_id, text);
        }
    } else if let Some(InFlight { request, .. }) = take_in_flight(client, correlation_id) {
        request.fail(
            RegistrationError {
                code,
                text,
                correlation_id,
            }
            .into(),
        );
    }
}

fn on_channel_error(client: &ClientCore, status_counter_id: i32, text: String) {
    let registration_ids: Vec<i64> = {
        let registry = client.registry();
        let publications = registry.publications.values();
        let subscriptions = registry.subscriptions.values();
        publications
            .map(|entry| (entry.state.status_counter_id, entry.state.registration_id))
            .chain(subscriptions.map(|state| (state.status_counter_id, state.registration_id)))
            .filter(|(status, _)| *status == status_counter_id)
            .map(|(_, registration_id)| registration_id)
            .collect()
    };
    if !registration_ids.is_empty() {
        client.handlers.report(&ClientError::ChannelEndpoint {
            status_counter_id,
            registration_ids,
            text,
        });
    }
}

fn on_publication_error(client: &ClientCore, response: &Response<'_>) {
    let Response::PublicationError {
        registration_id,
        destination_id,
        session_id,
        stream_id,
        receiver_id,
        group_tag,
        source,
        error_code,
        message,
    } = *response
    else {
        return;
    };
    let error = PublicationError {
        registration_id,
        destination_registration_id: (destination_id != -1).then_some(destination_id),
        session_id,
        stream_id,
        receiver_id,
        group_tag: (group_tag != -1).then_some(group_tag),
        source,
        code: ErrorCode::from_code(error_code),
        text: String::from_utf8_lossy(message).into_owned(),
    };
    let affected: Vec<_> = {
        let registry = client.registry();
        let entries = registry.publications.values();
        entries
            .filter(|entry| entry.state.original_registration_id == registration_id)
            .map(|entry| Arc::clone(&entry.state))
            .collect()
    };
    for publication in affected {
        publication.run_callback(|| {
            client.handlers.run(
                "publication error",
                &client.handlers.publication_error,
                |handler| handler(&error),
            );
        });
    }
}

/// Calls the counter handlers; the counter may belong to any client.
fn notify_counter(client: &ClientCore, is_available: bool, registration_id: i64, counter_id: i32) {
    let counters: &CountersReader = client.counters();
    let notify = |handler: &mut OnCounter| handler(counters, registration_id, counter_id);
    if is_available {
        client.handlers.run_all(
            "available counter",
            &client.handlers.available_counter,
            notify,
        );
    } else {
        client.handlers.run_all(
            "unavailable counter",
            &client.handlers.unavailable_counter,
            notify,
        );
    }
}
