// SPDX-License-Identifier: Apache-2.0
//! Commands from clients to the driver, as records of the to-driver ring buffer (docs/spec/shared-memory.md §9.1).

pub use crate::message::{DecodeError as CommandError, Malformed};

/// Wraps [`crate::message::messages!`] and adds the two ids that every command starts with.
macro_rules! commands {
    (
        $(
            $(#[$doc:meta])*
            $id:literal $variant:ident $([at least $least:literal])? {
                $( $(#[$field_doc:meta])* $([$unused:ident])? $field:ident: $type:ty ),* $(,)?
            }
        )+
    ) => {
        crate::message::messages! {
            /// Command from a client to the driver.
            #[doc(alias = "ControlProtocolEvents")]
            pub enum Command {
                $(
                    $(#[$doc])*
                    $id $variant $([at least $least])? {
                        /// Client id; some clients leave it unset.
                        client_id: i64,
                        /// Correlates the responses with the command. Becomes the registration id of an added resource.
                        correlation_id: i64,
                        $( $(#[$field_doc])* $([$unused])? $field: $type ),*
                    }
                )+
            }
        }

        impl Command<'_> {
            /// Returns the client id.
            #[must_use]
            pub const fn client_id(&self) -> i64 {
                match *self {
                    $( Self::$variant { client_id, .. } => client_id, )+
                }
            }

            /// Returns the correlation id.
            #[must_use]
            pub const fn correlation_id(&self) -> i64 {
                match *self {
                    $( Self::$variant { correlation_id, .. } => correlation_id, )+
                }
            }
        }
    };
}

commands! {
    /// Adds a publication, shared by all clients that add the same channel and stream.
    0x01 AddPublication {
        /// Stream id.
        stream_id: i32,
        /// Channel URI.
        channel: &'a str,
    }
    /// Removes a shared or exclusive publication.
    0x02 RemovePublication {
        /// Registration id of the publication.
        registration_id: i64,
        /// Revokes the publication: ends it at once instead of draining it.
        revoke: bool,
    }
    /// Adds an exclusive publication, which has a single writer.
    0x03 AddExclusivePublication {
        /// Stream id.
        stream_id: i32,
        /// Channel URI.
        channel: &'a str,
    }
    /// Adds a subscription.
    0x04 AddSubscription {
        /// Stream id.
        [unused] stream_id: i32,
        /// Channel URI.
        channel: &'a str,
    }
    /// Removes a subscription.
    0x05 RemoveSubscription {
        /// Registration id of the subscription.
        registration_id: i64,
    }
    /// Keepalive of a client. Current clients update their heartbeat counter instead.
    0x06 ClientKeepalive {}
    /// Adds a destination to a publication with manual control mode.
    0x07 AddDestination {
        /// Registration id of the publication.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Removes a destination from a publication by its URI.
    0x08 RemoveDestination {
        /// Registration id of the publication.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Allocates a counter with the lifetime of the client.
    0x09 AddCounter {
        /// Type id of the counter.
        counter_type_id: i32,
        /// Key; may be empty.
        key: &'a [u8],
        /// Label; may be empty.
        label: &'a str,
    }
    /// Frees a counter.
    0x0A RemoveCounter {
        /// Registration id of the counter.
        registration_id: i64,
    }
    /// Closes the client and frees its resources. The correlation id is −1.
    0x0B ClientClose {}
    /// Adds a destination to a subscription with manual control mode.
    0x0C AddReceiveDestination {
        /// Registration id of the subscription.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Removes a destination from a subscription.
    0x0D RemoveReceiveDestination {
        /// Registration id of the subscription.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Requests termination of the driver. Both ids are ignored.
    0x0E TerminateDriver {
        /// Token for the termination validator of the driver.
        token: &'a [u8],
    }
    /// Allocates a counter that outlives the client, or finds the existing one.
    0x0F AddStaticCounter {
        /// Identifies the counter together with its type id.
        registration_id: i64,
        /// Type id of the counter.
        counter_type_id: i32,
        /// Key; may be empty.
        key: &'a [u8],
        /// Label; may be empty.
        label: &'a str,
    }
    /// Rejects an image. Some clients leave both ids unset.
    0x10 RejectImage [at least 40] {
        /// Correlation id of the image.
        image_id: i64,
        /// Position of the rejection.
        position: i64,
        /// Reason reported to the publication, ASCII; at most 1023 bytes are accepted by the driver.
        reason: &'a [u8],
    }
    /// Removes a destination from a publication by its registration id.
    0x11 RemoveDestinationById {
        /// Registration id of the publication.
        registration_id: i64,
        /// Registration id of the destination: the correlation id of the command that added it.
        destination_id: i64,
    }
    /// Requests a session id that no publication of the stream uses.
    0x12 NextAvailableSessionId {
        /// Stream id.
        stream_id: i32,
    }
}

/// Returns client id and correlation id of a command, even if it cannot be decoded, so that the driver can respond.
/// Returns `None` if the record is too short for them.
#[must_use]
pub fn ids(bytes: &[u8]) -> Option<(i64, i64)> {
    let (client_id, rest) = bytes.split_first_chunk()?;
    let (correlation_id, _) = rest.split_first_chunk()?;
    Some((
        i64::from_le_bytes(*client_id),
        i64::from_le_bytes(*correlation_id),
    ))
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
