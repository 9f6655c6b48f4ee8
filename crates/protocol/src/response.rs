//! Responses of the driver to its clients, as records of the to-clients broadcast buffer (`docs/spec/shared-memory.md §9.2`). Every client
//! sees every response and picks its own by the ids.

use std::net::SocketAddr;

pub use crate::message::{DecodeError as ResponseError, Malformed};

crate::message::messages! {
    /// A response of the driver.
    pub enum Response {
        /// A command failed.
        0x0F01 Error {
            /// The command; for [`crate::error_code::ErrorCode::ChannelEndpointError`] the id of a status counter.
            correlation_id: i64,
            /// See [`crate::error_code::ErrorCode`].
            error_code: i32,
            /// Text for people, as sent.
            message: &'a [u8],
        }
        /// A subscription has a new image.
        0x0F02 AvailableImage {
            /// The image.
            image_id: i64,
            /// Session of the stream.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// The subscription.
            subscription_id: i64,
            /// Counter that holds the subscriber's position.
            position_counter_id: i32,
            /// Path of the log.
            log_name: &'a str,
            /// Who sends: `aeron:ipc`, or address and port.
            source_identity: &'a str,
        }
        /// A shared publication is ready.
        0x0F03 PublicationReady {
            /// The command.
            correlation_id: i64,
            /// The publication; an earlier command's id if it was there already.
            registration_id: i64,
            /// Session of the stream.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// Counter that holds the publication's limit.
            limit_counter_id: i32,
            /// Counter that holds the channel's status; −1 for IPC.
            status_counter_id: i32,
            /// Path of the log.
            log_name: &'a str,
        }
        /// A command was done and has no other result.
        0x0F04 OperationSuccess {
            /// The command.
            correlation_id: i64,
        }
        /// A subscription lost an image.
        0x0F05 UnavailableImage {
            /// The image.
            image_id: i64,
            /// The subscription.
            subscription_id: i64,
            /// Stream id.
            stream_id: i32,
            /// Channel of the subscription.
            channel: &'a str,
        }
        /// An exclusive publication is ready.
        0x0F06 ExclusivePublicationReady {
            /// The command.
            correlation_id: i64,
            /// The publication.
            registration_id: i64,
            /// Session of the stream.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// Counter that holds the publication's limit.
            limit_counter_id: i32,
            /// Counter that holds the channel's status; −1 for IPC.
            status_counter_id: i32,
            /// Path of the log.
            log_name: &'a str,
        }
        /// A subscription is ready.
        0x0F07 SubscriptionReady {
            /// The command.
            correlation_id: i64,
            /// Counter that holds the channel's status; −1 for IPC and spies.
            status_counter_id: i32,
        }
        /// A counter was allocated.
        0x0F08 CounterReady {
            /// The command.
            correlation_id: i64,
            /// The counter.
            counter_id: i32,
        }
        /// A counter is about to be freed.
        0x0F09 UnavailableCounter {
            /// Registration id of the counter.
            registration_id: i64,
            /// The counter.
            counter_id: i32,
        }
        /// The driver gave up on a client.
        0x0F0A ClientTimeout {
            /// The client.
            client_id: i64,
        }
        /// A static counter was allocated, or found.
        0x0F0B StaticCounter {
            /// The command.
            correlation_id: i64,
            /// The counter.
            counter_id: i32,
        }
        /// A receiver reported an error about a publication.
        0x0F0C PublicationError [at least 72] {
            /// The publication.
            registration_id: i64,
            /// The destination the report came from; −1 if none.
            destination_id: i64,
            /// Session of the stream.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// The receiver; −1 for IPC.
            receiver_id: i64,
            /// The receiver's group; −1 if none.
            group_tag: i64,
            /// Where the report came from.
            source: SocketAddr,
            /// See [`crate::error_code::ErrorCode`].
            error_code: i32,
            /// Text for people, as sent.
            message: &'a [u8],
        }
        /// A session id that no publication of the stream uses.
        0x0F0D NextAvailableSessionId {
            /// The command.
            correlation_id: i64,
            /// The session id.
            session_id: i32,
        }
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
