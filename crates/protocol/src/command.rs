//! Commands of a client to the driver, as records of the to-driver ring buffer (`docs/spec/shared-memory.md §9.1`).

pub use crate::message::{DecodeError as CommandError, Malformed};

/// Wraps [`crate::message::messages!`]: every command starts with the same two ids.
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
            /// A command of a client to the driver.
            pub enum Command {
                $(
                    $(#[$doc])*
                    $id $variant $([at least $least])? {
                        /// The client; some senders leave it unset.
                        client_id: i64,
                        /// Ties the responses to the command; becomes the registration id of what an add makes.
                        correlation_id: i64,
                        $( $(#[$field_doc])* $([$unused])? $field: $type ),*
                    }
                )+
            }
        }

        impl Command<'_> {
            /// The client.
            #[must_use]
            pub const fn client_id(&self) -> i64 {
                match *self {
                    $( Self::$variant { client_id, .. } => client_id, )+
                }
            }

            /// Ties the responses to the command.
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
    /// Add a publication, shared with others of the same channel and stream.
    0x01 AddPublication {
        /// Stream id.
        stream_id: i32,
        /// Channel URI.
        channel: &'a str,
    }
    /// Remove a publication of either kind.
    0x02 RemovePublication {
        /// The publication.
        registration_id: i64,
        /// End it at once, instead of letting it drain.
        revoke: bool,
    }
    /// Add a publication with one writer.
    0x03 AddExclusivePublication {
        /// Stream id.
        stream_id: i32,
        /// Channel URI.
        channel: &'a str,
    }
    /// Add a subscription.
    0x04 AddSubscription {
        /// Stream id.
        [unused] stream_id: i32,
        /// Channel URI.
        channel: &'a str,
    }
    /// Remove a subscription.
    0x05 RemoveSubscription {
        /// The subscription.
        registration_id: i64,
    }
    /// The client lives. Clients write their heartbeat counter instead.
    0x06 ClientKeepalive {}
    /// Add a destination to a publication under manual control.
    0x07 AddDestination {
        /// The publication.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Remove a destination from a publication by its URI.
    0x08 RemoveDestination {
        /// The publication.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Allocate a counter that lives as long as the client.
    0x09 AddCounter {
        /// Type of the counter.
        counter_type_id: i32,
        /// Key, may be empty.
        key: &'a [u8],
        /// Label, may be empty.
        label: &'a str,
    }
    /// Free a counter.
    0x0A RemoveCounter {
        /// The counter.
        registration_id: i64,
    }
    /// The client closes; its resources are freed. The correlation id is −1.
    0x0B ClientClose {}
    /// Add a destination to a subscription under manual control.
    0x0C AddReceiveDestination {
        /// The subscription.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Remove a destination from a subscription.
    0x0D RemoveReceiveDestination {
        /// The subscription.
        registration_id: i64,
        /// URI of the destination.
        channel: &'a str,
    }
    /// Ask the driver to terminate. Neither id needs to mean anything.
    0x0E TerminateDriver {
        /// For the driver's validator.
        token: &'a [u8],
    }
    /// Allocate a counter that outlives the client, or find it.
    0x0F AddStaticCounter {
        /// Identifies the counter, together with its type.
        registration_id: i64,
        /// Type of the counter.
        counter_type_id: i32,
        /// Key, may be empty.
        key: &'a [u8],
        /// Label, may be empty.
        label: &'a str,
    }
    /// Reject an image. Some senders leave both ids unset.
    0x10 RejectImage [at least 40] {
        /// Correlation id of the image.
        image_id: i64,
        /// Position at which it is rejected.
        position: i64,
        /// Text for the publication, ASCII; the driver allows 1023 bytes.
        reason: &'a [u8],
    }
    /// Remove a destination from a publication by its registration id.
    0x11 RemoveDestinationById {
        /// The publication.
        registration_id: i64,
        /// The destination: correlation id of the command that added it.
        destination_id: i64,
    }
    /// Ask for a session id that no publication of the stream uses.
    0x12 NextAvailableSessionId {
        /// Stream id.
        stream_id: i32,
    }
}

/// Client id and correlation id of a command, also of one that can not be decoded: enough to answer it. `None` if the
/// record is too short for them.
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
