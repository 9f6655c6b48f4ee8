//! One response of the driver: what it means and whom it concerns.

use std::sync::Arc;

use taran_core::counters::CountersReader;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::{Response, ResponseError};

use super::{image, ready};
use crate::error::{ClientError, Lost, RegistrationError};
use crate::handlers::{OnCounter, PublicationError};
use crate::link::Link;
use crate::registry::InFlight;

/// Takes a response in. Responses to other clients pass unnoticed.
pub(super) fn respond(link: &Arc<Link>, type_id: i32, bytes: &[u8]) -> Result<(), Lost> {
    match Response::decode(type_id, bytes) {
        Ok(response) => dispatch(link, &response)?,
        // A newer driver may say more than this client knows.
        Err(ResponseError::Unknown(_)) => {}
        Err(error) => link.handlers.report(&ClientError::BadResponse {
            type_id,
            reason: error.to_string(),
        }),
    }
    Ok(())
}

fn dispatch(link: &Arc<Link>, response: &Response<'_>) -> Result<(), Lost> {
    match *response {
        Response::PublicationReady { correlation_id, .. }
        | Response::ExclusivePublicationReady { correlation_id, .. }
        | Response::SubscriptionReady { correlation_id, .. }
        | Response::OperationSuccess { correlation_id }
        | Response::NextAvailableSessionId { correlation_id, .. }
        | Response::StaticCounter { correlation_id, .. } => answer(link, correlation_id, response),
        Response::CounterReady {
            correlation_id,
            counter_id,
        } => {
            answer(link, correlation_id, response);
            tell_counter(link, true, correlation_id, counter_id);
        }
        Response::UnavailableCounter {
            registration_id,
            counter_id,
        } => {
            tell_counter(link, false, registration_id, counter_id);
        }
        Response::AvailableImage {
            image_id,
            session_id,
            stream_id,
            subscription_id,
            position_counter_id,
            log_name,
            source_identity,
        } => image::available(
            link,
            &image::Announced {
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
            image::unavailable(link, subscription_id, image_id);
        }
        Response::Error {
            correlation_id,
            error_code,
            message,
        } => refused(link, correlation_id, error_code, message),
        Response::PublicationError { .. } => publication_error(link, response),
        Response::ClientTimeout { client_id } if client_id == link.client_id => {
            return Err(Lost::ClientTimeout {
                liveness: link.settings.client_liveness,
            });
        }
        Response::ClientTimeout { .. } => {}
    }
    Ok(())
}

/// Takes the command out of the waiting ones, if it is ours.
fn take(link: &Link, correlation_id: i64) -> Option<InFlight> {
    let mut registry = link.registry();
    let in_flight = registry.in_flight.remove(&correlation_id);
    link.note_in_flight(&registry);
    in_flight
}

fn answer(link: &Arc<Link>, correlation_id: i64, response: &Response<'_>) {
    if let Some(in_flight) = take(link, correlation_id) {
        ready::fulfil(link, correlation_id, in_flight.wish, response);
    }
}

fn refused(link: &Arc<Link>, correlation_id: i64, error_code: i32, message: &[u8]) {
    let code = ErrorCode::from_code(error_code);
    let text = String::from_utf8_lossy(message).into_owned();
    if code == ErrorCode::ChannelEndpointError {
        // Here the correlation id is that of the channel's status counter.
        if let Ok(status_counter_id) = i32::try_from(correlation_id) {
            channel_failed(link, status_counter_id, text);
        }
    } else if let Some(InFlight { wish, .. }) = take(link, correlation_id) {
        wish.fail(
            RegistrationError {
                code,
                text,
                correlation_id,
            }
            .into(),
        );
    }
}

fn channel_failed(link: &Link, status_counter_id: i32, text: String) {
    let registration_ids: Vec<i64> = {
        let registry = link.registry();
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
        link.handlers.report(&ClientError::ChannelEndpoint {
            status_counter_id,
            registration_ids,
            text,
        });
    }
}

fn publication_error(link: &Link, response: &Response<'_>) {
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
    let concerned: Vec<_> = {
        let registry = link.registry();
        let entries = registry.publications.values();
        entries
            .filter(|entry| entry.state.original_registration_id == registration_id)
            .map(|entry| Arc::clone(&entry.state))
            .collect()
    };
    for publication in concerned {
        publication.call_back(|| {
            link.handlers.run(
                "publication error",
                &link.handlers.publication_error,
                |handler| handler(&error),
            );
        });
    }
}

/// Tells of a counter, of whatever client.
fn tell_counter(link: &Link, is_available: bool, registration_id: i64, counter_id: i32) {
    let counters: &CountersReader = link.counters();
    let tell = |handler: &mut OnCounter| handler(counters, registration_id, counter_id);
    if is_available {
        link.handlers
            .run_all("available counter", &link.handlers.available_counter, tell);
    } else {
        link.handlers.run_all(
            "unavailable counter",
            &link.handlers.unavailable_counter,
            tell,
        );
    }
}
