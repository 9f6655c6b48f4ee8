// SPDX-License-Identifier: Apache-2.0
//! Table of events, one row each (docs/spec/uri-and-configuration.md §6).
//!
//! A row consists of variant, number, name, group and fields. Numbers and names are those of the official drivers, but those
//! of transport security, which has numbers that no official driver uses.

/// Group of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Frames on the wire; too frequent for the selection `admin`.
    Frames,
    /// Commands from clients.
    CommandsIn,
    /// Responses to clients.
    CommandsOut,
    /// Internal events of the driver.
    Internal,
}

/// Type of an event field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// 32-bit integer.
    Int,
    /// 64-bit integer.
    Long,
    /// IP address and port.
    Address,
    /// Text.
    Text,
    /// Command record: type id and bytes.
    Command,
    /// Response record: type id and bytes.
    Response,
    /// Leading bytes of a datagram.
    Frame,
}

/// Field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub kind: FieldKind,
}

/// Declaration of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventSpec {
    /// Event code.
    pub code: EventCode,
    /// Name in options and log lines.
    pub name: &'static str,
    /// Group.
    pub group: Group,
    /// Fields in record order.
    pub fields: &'static [Field],
}

macro_rules! events {
    ($($variant:ident = $number:literal $name:literal $group:ident [$($field:ident: $kind:ident),*];)*) => {
        /// Event of a driver.
        #[doc(alias = "DriverEventCode")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum EventCode {
            $(#[doc = concat!("`", $name, "`")] $variant = $number,)*
        }

        impl EventCode {
            /// Declarations of all events, ordered by number.
            pub const ALL: &'static [EventSpec] = &[
                $(EventSpec {
                    code: EventCode::$variant,
                    name: $name,
                    group: Group::$group,
                    fields: &[$(Field { name: stringify!($field), kind: FieldKind::$kind }),*],
                },)*
            ];
        }
    };
}

events! {
    FrameIn = 1 "FRAME_IN" Frames [source: Address, frame: Frame];
    FrameOut = 2 "FRAME_OUT" Frames [destination: Address, frame: Frame];
    CmdInAddPublication = 3 "CMD_IN_ADD_PUBLICATION" CommandsIn [command: Command];
    CmdInRemovePublication = 4 "CMD_IN_REMOVE_PUBLICATION" CommandsIn [command: Command];
    CmdInAddSubscription = 5 "CMD_IN_ADD_SUBSCRIPTION" CommandsIn [command: Command];
    CmdInRemoveSubscription = 6 "CMD_IN_REMOVE_SUBSCRIPTION" CommandsIn [command: Command];
    CmdOutPublicationReady = 7 "CMD_OUT_PUBLICATION_READY" CommandsOut [response: Response];
    CmdOutAvailableImage = 8 "CMD_OUT_AVAILABLE_IMAGE" CommandsOut [response: Response];
    SecureKeysRedrawn = 11 "SECURE_KEYS_REDRAWN" Internal [jumps: Long];
    CmdOutOnOperationSuccess = 12 "CMD_OUT_ON_OPERATION_SUCCESS" CommandsOut [response: Response];
    CmdInKeepaliveClient = 13 "CMD_IN_KEEPALIVE_CLIENT" CommandsIn [command: Command];
    RemovePublicationCleanup = 14 "REMOVE_PUBLICATION_CLEANUP" Internal [session_id: Int, stream_id: Int, channel: Text];
    RemoveSubscriptionCleanup = 15 "REMOVE_SUBSCRIPTION_CLEANUP" Internal [stream_id: Int, id: Long, channel: Text];
    RemoveImageCleanup = 16 "REMOVE_IMAGE_CLEANUP" Internal [session_id: Int, stream_id: Int, id: Long, channel: Text];
    CmdOutOnUnavailableImage = 17 "CMD_OUT_ON_UNAVAILABLE_IMAGE" CommandsOut [response: Response];
    SecureLinkUp = 18 "SECURE_LINK_UP" Internal [address: Address, peer: Text, suite: Text, channel: Text];
    SecureLinkDown = 19 "SECURE_LINK_DOWN" Internal [peer: Text, channel: Text];
    SecureKeyRotated = 20 "SECURE_KEY_ROTATED" Internal
        [session_id: Int, stream_id: Int, epoch: Long, why: Text, channel: Text];
    SecurePeerUnknown = 21 "SECURE_PEER_UNKNOWN" Internal [address: Address, fingerprint: Text];
    SecurePeerRefused = 22 "SECURE_PEER_REFUSED" Internal [peer: Text, why: Text, channel: Text];
    SendChannelCreation = 23 "SEND_CHANNEL_CREATION" Internal [channel: Text];
    ReceiveChannelCreation = 24 "RECEIVE_CHANNEL_CREATION" Internal [channel: Text];
    SendChannelClose = 25 "SEND_CHANNEL_CLOSE" Internal [channel: Text];
    ReceiveChannelClose = 26 "RECEIVE_CHANNEL_CLOSE" Internal [channel: Text];
    SecureOpenFailed = 27 "SECURE_OPEN_FAILED" Internal [source: Address, channel: Text];
    SecurePlainRefused = 28 "SECURE_PLAIN_REFUSED" Internal [source: Address, frame_type: Int, channel: Text];
    SecureTrustReloaded = 29 "SECURE_TRUST_RELOADED" Internal [keys: Int];
    CmdInAddDestination = 30 "CMD_IN_ADD_DESTINATION" CommandsIn [command: Command];
    CmdInRemoveDestination = 31 "CMD_IN_REMOVE_DESTINATION" CommandsIn [command: Command];
    CmdInAddExclusivePublication = 32 "CMD_IN_ADD_EXCLUSIVE_PUBLICATION" CommandsIn [command: Command];
    CmdOutExclusivePublicationReady = 33 "CMD_OUT_EXCLUSIVE_PUBLICATION_READY" CommandsOut [response: Response];
    CmdOutError = 34 "CMD_OUT_ERROR" CommandsOut [response: Response];
    CmdInAddCounter = 35 "CMD_IN_ADD_COUNTER" CommandsIn [command: Command];
    CmdInRemoveCounter = 36 "CMD_IN_REMOVE_COUNTER" CommandsIn [command: Command];
    CmdOutSubscriptionReady = 37 "CMD_OUT_SUBSCRIPTION_READY" CommandsOut [response: Response];
    CmdOutCounterReady = 38 "CMD_OUT_COUNTER_READY" CommandsOut [response: Response];
    CmdOutOnUnavailableCounter = 39 "CMD_OUT_ON_UNAVAILABLE_COUNTER" CommandsOut [response: Response];
    CmdInClientClose = 40 "CMD_IN_CLIENT_CLOSE" CommandsIn [command: Command];
    CmdInAddRcvDestination = 41 "CMD_IN_ADD_RCV_DESTINATION" CommandsIn [command: Command];
    CmdInRemoveRcvDestination = 42 "CMD_IN_REMOVE_RCV_DESTINATION" CommandsIn [command: Command];
    CmdOutOnClientTimeout = 43 "CMD_OUT_ON_CLIENT_TIMEOUT" CommandsOut [response: Response];
    CmdInTerminateDriver = 44 "CMD_IN_TERMINATE_DRIVER" CommandsIn [command: Command];
    UntetheredSubscriptionStateChange = 45 "UNTETHERED_SUBSCRIPTION_STATE_CHANGE" Internal
        [subscription_id: Long, stream_id: Int, session_id: Int, from: Text, to: Text];
    NameResolutionNeighborAdded = 46 "NAME_RESOLUTION_NEIGHBOR_ADDED" Internal [address: Address];
    NameResolutionNeighborRemoved = 47 "NAME_RESOLUTION_NEIGHBOR_REMOVED" Internal [address: Address];
    FlowControlReceiverAdded = 48 "FLOW_CONTROL_RECEIVER_ADDED" Internal
        [receiver_count: Int, receiver_id: Long, session_id: Int, stream_id: Int, channel: Text];
    FlowControlReceiverRemoved = 49 "FLOW_CONTROL_RECEIVER_REMOVED" Internal
        [receiver_count: Int, receiver_id: Long, session_id: Int, stream_id: Int, channel: Text];
    NameResolutionResolve = 50 "NAME_RESOLUTION_RESOLVE" Internal
        [duration_ns: Long, name: Text, is_re_resolution: Int, address: Text];
    TextData = 51 "TEXT_DATA" Internal [text: Text];
    NameResolutionLookup = 52 "NAME_RESOLUTION_LOOKUP" Internal
        [resolver: Text, duration_ns: Long, name: Text, is_re_lookup: Int, resolved_name: Text];
    // Declared by the official drivers, but logged by none of them, nor by this driver.
    NameResolutionHostName = 53 "NAME_RESOLUTION_HOST_NAME" Internal [duration_ns: Long, host_name: Text];
    NakSent = 54 "NAK_SENT" Internal
        [address: Address, session_id: Int, stream_id: Int, term_id: Int, term_offset: Int, length: Int];
    Resend = 55 "RESEND" Internal
        [session_id: Int, stream_id: Int, term_id: Int, term_offset: Int, length: Int, channel: Text];
    CmdInRemoveDestinationById = 56 "CMD_IN_REMOVE_DESTINATION_BY_ID" CommandsIn [command: Command];
    CmdInRejectImage = 57 "CMD_IN_REJECT_IMAGE" CommandsIn [command: Command];
    NakReceived = 58 "NAK_RECEIVED" Internal
        [address: Address, session_id: Int, stream_id: Int, term_id: Int, term_offset: Int, length: Int];
    PublicationRevoke = 59 "PUBLICATION_REVOKE" Internal
        [position: Long, session_id: Int, stream_id: Int, channel: Text];
    PublicationImageRevoke = 60 "PUBLICATION_IMAGE_REVOKE" Internal
        [position: Long, session_id: Int, stream_id: Int, source: Text];
}

impl EventCode {
    /// Returns the event number of the official drivers, below 64.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the event with this number.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        let specs = Self::ALL.iter();
        specs
            .map(|spec| spec.code)
            .find(|code| i32::from(code.number()) == number)
    }

    /// Returns the event of a client command by its type id. Some commands have none.
    #[must_use]
    pub fn of_command(type_id: i32) -> Option<Self> {
        Some(match type_id {
            0x01 => Self::CmdInAddPublication,
            0x02 => Self::CmdInRemovePublication,
            0x03 => Self::CmdInAddExclusivePublication,
            0x04 => Self::CmdInAddSubscription,
            0x05 => Self::CmdInRemoveSubscription,
            0x06 => Self::CmdInKeepaliveClient,
            0x07 => Self::CmdInAddDestination,
            0x08 => Self::CmdInRemoveDestination,
            0x09 | 0x0F => Self::CmdInAddCounter,
            0x0A => Self::CmdInRemoveCounter,
            0x0B => Self::CmdInClientClose,
            0x0C => Self::CmdInAddRcvDestination,
            0x0D => Self::CmdInRemoveRcvDestination,
            0x0E => Self::CmdInTerminateDriver,
            0x10 => Self::CmdInRejectImage,
            0x11 => Self::CmdInRemoveDestinationById,
            _ => return None,
        })
    }

    /// Returns the event of a response to clients by its type id. Some responses have none.
    #[must_use]
    pub fn of_response(type_id: i32) -> Option<Self> {
        Some(match type_id {
            0x0F01 => Self::CmdOutError,
            0x0F02 => Self::CmdOutAvailableImage,
            0x0F03 => Self::CmdOutPublicationReady,
            0x0F04 => Self::CmdOutOnOperationSuccess,
            0x0F05 => Self::CmdOutOnUnavailableImage,
            0x0F06 => Self::CmdOutExclusivePublicationReady,
            0x0F07 => Self::CmdOutSubscriptionReady,
            0x0F08 | 0x0F0B => Self::CmdOutCounterReady,
            0x0F09 => Self::CmdOutOnUnavailableCounter,
            0x0F0A => Self::CmdOutOnClientTimeout,
            _ => return None,
        })
    }

    /// Returns the declaration.
    #[must_use]
    pub fn spec(self) -> &'static EventSpec {
        let index = Self::ALL.binary_search_by_key(&self, |spec| spec.code);
        // A test ensures that the rows are sorted by number, so every event is found.
        &Self::ALL[index.unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sorted_by_number_and_fit_set() {
        assert!(EventCode::ALL.is_sorted_by(|a, b| a.code < b.code));
        for spec in EventCode::ALL {
            assert!(spec.code.number() < 64);
            assert_eq!(spec.code.spec().name, spec.name);
            assert_eq!(
                EventCode::from_number(i32::from(spec.code.number())),
                Some(spec.code)
            );
        }
        assert_eq!(EventCode::from_number(9), None);
    }

    #[test]
    fn variable_length_field_is_last() {
        for spec in EventCode::ALL {
            let rest = |field: &Field| {
                matches!(
                    field.kind,
                    FieldKind::Command | FieldKind::Response | FieldKind::Frame
                )
            };
            let inner = &spec.fields[..spec.fields.len() - 1];
            assert!(!inner.iter().any(rest), "{}", spec.name);
        }
    }
}
