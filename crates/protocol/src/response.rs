// SPDX-License-Identifier: Apache-2.0
//! Responses from the driver to clients, as records of the to-clients broadcast buffer. Every client reads every
//! response and selects its own by id (docs/spec/shared-memory.md §9.2).

use std::net::SocketAddr;

pub use crate::message::{DecodeError as ResponseError, Malformed};

crate::message::messages! {
    /// Response from the driver to clients.
    pub enum Response {
        /// Failure of a command.
        0x0F01 Error {
            /// Correlation id of the command; for [`crate::error_code::ErrorCode::ChannelEndpointError`] the id of a
            /// status counter.
            correlation_id: i64,
            /// Error code, see [`crate::error_code::ErrorCode`].
            error_code: i32,
            /// Error message, not validated.
            message: &'a [u8],
        }
        /// New image of a subscription.
        0x0F02 AvailableImage {
            /// Correlation id of the image.
            image_id: i64,
            /// Session id.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// Registration id of the subscription.
            subscription_id: i64,
            /// Id of the subscriber position counter.
            position_counter_id: i32,
            /// Path of the log file.
            log_name: &'a str,
            /// Source of the stream: `aeron:ipc`, or address and port.
            source_identity: &'a str,
        }
        /// Completion of an added shared publication.
        0x0F03 PublicationReady {
            /// Correlation id of the command.
            correlation_id: i64,
            /// Registration id of the publication; that of an earlier command if the publication already existed.
            registration_id: i64,
            /// Session id.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// Id of the publisher limit counter.
            limit_counter_id: i32,
            /// Id of the channel status counter; −1 for IPC.
            status_counter_id: i32,
            /// Path of the log file.
            log_name: &'a str,
        }
        /// Completion of a command without a result.
        0x0F04 OperationSuccess {
            /// Correlation id of the command.
            correlation_id: i64,
        }
        /// Loss of an image of a subscription.
        0x0F05 UnavailableImage {
            /// Correlation id of the image.
            image_id: i64,
            /// Registration id of the subscription.
            subscription_id: i64,
            /// Stream id.
            stream_id: i32,
            /// Channel of the subscription.
            channel: &'a str,
        }
        /// Completion of an added exclusive publication.
        0x0F06 ExclusivePublicationReady {
            /// Correlation id of the command.
            correlation_id: i64,
            /// Registration id of the publication.
            registration_id: i64,
            /// Session id.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// Id of the publisher limit counter.
            limit_counter_id: i32,
            /// Id of the channel status counter; −1 for IPC.
            status_counter_id: i32,
            /// Path of the log file.
            log_name: &'a str,
        }
        /// Completion of an added subscription.
        0x0F07 SubscriptionReady {
            /// Correlation id of the command.
            correlation_id: i64,
            /// Id of the channel status counter; −1 for IPC and spies.
            status_counter_id: i32,
        }
        /// Completion of an added counter.
        0x0F08 CounterReady {
            /// Correlation id of the command.
            correlation_id: i64,
            /// Id of the counter.
            counter_id: i32,
        }
        /// Announcement that a counter is about to be freed.
        0x0F09 UnavailableCounter {
            /// Registration id of the counter.
            registration_id: i64,
            /// Id of the counter.
            counter_id: i32,
        }
        /// Expiry of a client whose keepalive timed out.
        0x0F0A ClientTimeout {
            /// Client id.
            client_id: i64,
        }
        /// Completion of an added static counter, new or existing.
        0x0F0B StaticCounter {
            /// Correlation id of the command.
            correlation_id: i64,
            /// Id of the counter.
            counter_id: i32,
        }
        /// Error about a publication reported by a receiver.
        0x0F0C PublicationError [at least 72] {
            /// Registration id of the publication.
            registration_id: i64,
            /// Registration id of the destination that the report came from; −1 if none.
            destination_id: i64,
            /// Session id.
            session_id: i32,
            /// Stream id.
            stream_id: i32,
            /// Receiver id; −1 for IPC.
            receiver_id: i64,
            /// Group tag of the receiver; −1 if none.
            group_tag: i64,
            /// Source address of the report.
            source: SocketAddr,
            /// Error code, see [`crate::error_code::ErrorCode`].
            error_code: i32,
            /// Error message, not validated.
            message: &'a [u8],
        }
        /// Session id that no publication of the stream uses.
        0x0F0D NextAvailableSessionId {
            /// Correlation id of the command.
            correlation_id: i64,
            /// Session id.
            session_id: i32,
        }
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
