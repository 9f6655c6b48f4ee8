// SPDX-License-Identifier: Apache-2.0
//! Image events that the driver sends to clients.

use taran_protocol::response::Response;

use crate::fixture::Message;

/// Contents of an available-image event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) image_id: i64,
    pub(crate) session_id: i32,
    pub(crate) subscription_id: i64,
    pub(crate) position_counter_id: i32,
    pub(crate) log: String,
    pub(crate) source: String,
}

/// Returns the available-image events among the messages.
pub(crate) fn available(messages: &[Message]) -> Vec<Available> {
    let found = messages.iter().filter_map(|message| match message.get() {
        Response::AvailableImage {
            image_id,
            session_id,
            subscription_id,
            position_counter_id,
            log_name,
            source_identity,
            ..
        } => Some(Available {
            image_id,
            session_id,
            subscription_id,
            position_counter_id,
            log: log_name.to_owned(),
            source: source_identity.to_owned(),
        }),
        _ => None,
    });
    found.collect()
}

/// Returns image id and subscription id of the unavailable-image events among the messages.
pub(crate) fn unavailable(messages: &[Message]) -> Vec<(i64, i64)> {
    let found = messages.iter().filter_map(|message| match message.get() {
        Response::UnavailableImage {
            image_id,
            subscription_id,
            ..
        } => Some((image_id, subscription_id)),
        _ => None,
    });
    found.collect()
}
