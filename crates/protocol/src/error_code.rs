//! Error codes of driver responses and error frames (`docs/spec/shared-memory.md §9.3`), declared once.

macro_rules! error_codes {
    ($($(#[$doc:meta])* $code:literal $variant:ident $name:literal $meaning:literal)+) => {
        /// What went wrong with a command, or why an image was rejected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum ErrorCode {
            /// A code this version does not know.
            Unknown = -1,
            $($(#[$doc])* $variant = $code,)+
        }

        impl ErrorCode {
            /// Every known code, in numeric order.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),+];

            /// The error with this code, or [`ErrorCode::Unknown`].
            #[must_use]
            pub const fn from_code(code: i32) -> Self {
                match code {
                    $($code => Self::$variant,)+
                    _ => Self::Unknown,
                }
            }

            /// Name of the code in the specification.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Unknown => "UNKNOWN_CODE_VALUE",
                    $(Self::$variant => $name,)+
                }
            }

            /// What the official C driver calls the code in the records of its error log.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    Self::Unknown => "unknown error code",
                    $(Self::$variant => $meaning,)+
                }
            }
        }
    };
}

error_codes! {
    /// Not used.
    0 Unused "UNUSED" "generic error, see message"
    /// Bad URI, wrong destination.
    1 InvalidChannel "INVALID_CHANNEL" "invalid channel"
    /// No subscription has this registration id.
    2 UnknownSubscription "UNKNOWN_SUBSCRIPTION" "unknown subscription"
    /// No publication has this registration id.
    3 UnknownPublication "UNKNOWN_PUBLICATION" "unknown publication"
    /// The channel of a resource failed; the correlation id field carries the status counter id.
    4 ChannelEndpointError "CHANNEL_ENDPOINT_ERROR" "channel endpoint error"
    /// No counter has this registration id.
    5 UnknownCounter "UNKNOWN_COUNTER" "unknown counter"
    /// The driver does not know the type of the command.
    6 UnknownCommandTypeId "UNKNOWN_COMMAND_TYPE_ID" "unknown command type id"
    /// The command is too short for its type, or its lengths do not add up.
    7 MalformedCommand "MALFORMED_COMMAND" "malformed command"
    /// Known, but not supported by this driver.
    8 NotSupported "NOT_SUPPORTED" "not supported"
    /// A host name could not be resolved.
    9 UnknownHost "UNKNOWN_HOST" "unknown host"
    /// The resource is about to close: try again.
    10 ResourceTemporarilyUnavailable "RESOURCE_TEMPORARILY_UNAVAILABLE" "resource temporarily unavailable"
    /// Anything else, most parameter validation included.
    11 GenericError "GENERIC_ERROR" "generic error, see message"
    /// No space for a log.
    12 StorageSpace "STORAGE_SPACE" "insufficient storage space"
    /// A subscriber rejected the image.
    13 ImageRejected "IMAGE_REJECTED" "image rejected"
    /// The publication was revoked.
    14 PublicationRevoked "PUBLICATION_REVOKED" "publication revoked"
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// A record of the distinct error log: the code and its meaning in a line as the official C driver writes it, which
    /// is what its users look for, then `text`.
    #[must_use]
    pub fn record(self, text: &str) -> String {
        format!("(-{}) {}\n{text}", self.code(), self.meaning())
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dense_and_round_trip() {
        for (index, &code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(code.code(), index as i32);
            assert_eq!(ErrorCode::from_code(code.code()), code);
        }
        assert_eq!(ErrorCode::ALL.len(), 15);
    }

    #[test]
    fn record_starts_as_in_official_driver() {
        assert_eq!(
            ErrorCode::UnknownHost.record("endpoint=nowhere:1"),
            "(-9) unknown host\nendpoint=nowhere:1"
        );
    }

    #[test]
    fn from_code_of_later_version_is_unknown() {
        for code in [15, -1, -2, i32::MAX, i32::MIN] {
            assert_eq!(ErrorCode::from_code(code), ErrorCode::Unknown);
        }
        assert_eq!(ErrorCode::Unknown.code(), -1);
    }
}
