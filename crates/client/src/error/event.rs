//! Errors that nobody asked for: they reach the error handler.

use std::path::PathBuf;

use super::Lost;

/// Something that went wrong while the client conductor did its work; given to the handler set with
/// [`Context::on_error`](crate::Context::on_error).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client is lost; the close handler is called next.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The driver wrote responses faster than this client read them, and some were lost. The client goes on: it has
    /// compared what it knows with the driver's counters; commands in flight fail with
    /// [`AddError::ResponseOverwritten`](crate::AddError::ResponseOverwritten).
    #[error(
        "responses of the media driver were overwritten before this client read them (for the {count}. time); images \
         were taken from the counters again"
    )]
    ResponsesOverwritten {
        /// How often it has happened to this client.
        count: u64,
    },
    /// An image could not be used. Its publisher stays under back-pressure from this subscription until that is
    /// closed.
    #[error("image {correlation_id} of subscription {subscription_id} ({}) can not be used: {reason}", .path.display())]
    Image {
        /// Correlation id of the image.
        correlation_id: i64,
        /// Registration id of the subscription.
        subscription_id: i64,
        /// Where the driver says the log is.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The driver reports that the channel of resources of this client failed.
    #[error(
        "a channel failed (status counter {status_counter_id}, registration ids {registration_ids:?}): {text}"
    )]
    ChannelEndpoint {
        /// Counter id of the channel's status indicator.
        status_counter_id: i32,
        /// Registration ids of the publications and subscriptions of this client that use the channel.
        registration_ids: Vec<i64>,
        /// The driver's explanation.
        text: String,
    },
    /// A message from the driver was not understood. It was skipped.
    #[error(
        "a message of the media driver (type id {type_id}) was not understood and skipped: {reason}"
    )]
    BadResponse {
        /// Type id of the message.
        type_id: i32,
        /// What is wrong with it.
        reason: String,
    },
    /// An environment variable looks like a misspelt option. It has no effect.
    #[error("{0}")]
    UnknownOption(String),
    /// The conductor's thread runs, but not on the CPU that was asked for.
    #[error("{reason}")]
    NotPinned {
        /// Why.
        reason: String,
    },
    /// A callback panicked. The client goes on.
    #[error("the {callback} callback panicked: {text}")]
    CallbackPanicked {
        /// Which callback.
        callback: &'static str,
        /// Text of the panic.
        text: String,
    },
}
