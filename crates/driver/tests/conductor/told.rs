//! What clients are told of images.

use taran_protocol::response::Response;

use crate::bench::Message;

/// An image as a subscriber was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) image_id: i64,
    pub(crate) session_id: i32,
    pub(crate) subscription_id: i64,
    pub(crate) position_counter_id: i32,
    pub(crate) log: String,
    pub(crate) source: String,
}

/// Images that were announced.
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

/// Image and subscription of each that is gone.
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
