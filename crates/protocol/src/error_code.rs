// SPDX-License-Identifier: Apache-2.0
//! Error codes of driver responses and error frames, declared once (docs/spec/shared-memory.md §9.3).

macro_rules! error_codes {
    ($($(#[$doc:meta])* $code:literal $variant:ident $name:literal $meaning:literal)+) => {
        /// Error code of a failed command or a rejected image.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum ErrorCode {
            /// A code unknown to this version.
            Unknown = -1,
            $($(#[$doc])* $variant = $code,)+
        }

        impl ErrorCode {
            /// All known codes, in numeric order.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),+];

            /// Returns the error with this code, or [`ErrorCode::Unknown`].
            #[must_use]
            pub const fn from_code(code: i32) -> Self {
                match code {
                    $($code => Self::$variant,)+
                    _ => Self::Unknown,
                }
            }

            /// Returns the name of the code in the specification.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Unknown => "UNKNOWN_CODE_VALUE",
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the description of the code in error log records of the official C driver.
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
    /// Unused.
    0 Unused "UNUSED" "generic error, see message"
    /// The channel URI or the destination is invalid.
    1 InvalidChannel "INVALID_CHANNEL" "invalid channel"
    /// No subscription has the registration id.
    2 UnknownSubscription "UNKNOWN_SUBSCRIPTION" "unknown subscription"
    /// No publication has the registration id.
    3 UnknownPublication "UNKNOWN_PUBLICATION" "unknown publication"
    /// The channel endpoint of a resource failed. The correlation id field of the response carries the status counter
    /// id.
    4 ChannelEndpointError "CHANNEL_ENDPOINT_ERROR" "channel endpoint error"
    /// No counter has the registration id.
    5 UnknownCounter "UNKNOWN_COUNTER" "unknown counter"
    /// The type id of the command is unknown to the driver.
    6 UnknownCommandTypeId "UNKNOWN_COMMAND_TYPE_ID" "unknown command type id"
    /// The command is too short for its type, or a field is invalid.
    7 MalformedCommand "MALFORMED_COMMAND" "malformed command"
    /// The command is not supported by the driver.
    8 NotSupported "NOT_SUPPORTED" "not supported"
    /// A host name cannot be resolved.
    9 UnknownHost "UNKNOWN_HOST" "unknown host"
    /// The resource is closing: retry.
    10 ResourceTemporarilyUnavailable "RESOURCE_TEMPORARILY_UNAVAILABLE" "resource temporarily unavailable"
    /// Any other error, including most parameter validation.
    11 GenericError "GENERIC_ERROR" "generic error, see message"
    /// The storage has no space for a log.
    12 StorageSpace "STORAGE_SPACE" "insufficient storage space"
    /// A subscriber rejected the image.
    13 ImageRejected "IMAGE_REJECTED" "image rejected"
    /// The publication was revoked.
    14 PublicationRevoked "PUBLICATION_REVOKED" "publication revoked"
}

impl ErrorCode {
    /// Returns the numeric code.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// Returns a record for the distinct error log: a line with code and description in the format of the official C
    /// driver, for users who search for it, followed by `text`.
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
