// SPDX-License-Identifier: Apache-2.0
//! Asynchronous errors, reported to the error handler.

use std::path::PathBuf;

use super::Lost;

/// An error of the client conductor that no call returns; passed to the handler set with
/// [`ClientBuilder::on_error`](crate::ClientBuilder::on_error).
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client is lost; the close handlers are called next.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// Responses of the driver were overwritten before this client read them. The client stays open: it recovers its
    /// images from the driver's counters, and commands in flight fail with
    /// [`CommandError::ResponseOverwritten`](crate::CommandError::ResponseOverwritten).
    #[error(
        "responses of the media driver were overwritten before this client read them ({count} times so far); \
         images were recovered from the counters"
    )]
    ResponsesOverwritten {
        /// Number of times that this has happened to this client.
        count: u64,
    },
    /// An image cannot be used. It back-pressures its publisher until the subscription is closed.
    #[error("image {correlation_id} of subscription {subscription_id} ({}) cannot be used: {reason}", .path.display())]
    Image {
        /// Correlation id of the image.
        correlation_id: i64,
        /// Registration id of the subscription.
        subscription_id: i64,
        /// Path of the log, as the driver named it.
        path: PathBuf,
        /// Reason why the image cannot be used.
        reason: String,
    },
    /// The driver reports the failure of a channel that this client uses.
    #[error(
        "a channel failed (status counter {status_counter_id}, registration ids {registration_ids:?}): {text}"
    )]
    ChannelEndpoint {
        /// Counter id of the channel's status indicator.
        status_counter_id: i32,
        /// Registration ids of this client's publications and subscriptions on the channel.
        registration_ids: Vec<i64>,
        /// Error message of the driver.
        text: String,
    },
    /// A response of the driver could not be decoded and was skipped.
    #[error(
        "a response of the media driver (type id {type_id}) could not be decoded and was skipped: {reason}"
    )]
    BadResponse {
        /// Type id of the response.
        type_id: i32,
        /// Reason why it could not be decoded.
        reason: String,
    },
    /// An environment variable looks like a misspelt option. It has no effect.
    #[error("{0}")]
    UnknownOption(String),
    /// The conductor's thread runs, but could not be pinned to the requested CPU.
    #[error("{reason}")]
    NotPinned {
        /// Reason why the thread could not be pinned.
        reason: String,
    },
    /// A callback panicked. The client stays open.
    #[error("the {callback} callback panicked: {text}")]
    CallbackPanicked {
        /// Name of the callback.
        callback: &'static str,
        /// Message of the panic.
        text: String,
    },
}

taran_core::debug_is_display!(ClientError);
