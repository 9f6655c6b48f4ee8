// SPDX-License-Identifier: Apache-2.0
//! Counters of transport security (docs/spec/transport-security.md §4.5). A driver has them if `taran.secure.mode` is not
//! `off`.

macro_rules! secure_counters {
    ($($variant:ident = $type_id:literal, $label:literal;)*) => {
        /// Counter of transport security, found by its type id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum SecureCounter {
            $(#[doc = $label] $variant,)*
        }

        impl SecureCounter {
            /// All counters in order of their type ids.
            pub const ALL: [SecureCounter; 14] = [$(SecureCounter::$variant,)*];

            /// Returns the type id.
            #[must_use]
            pub const fn type_id(self) -> i32 {
                match self { $(SecureCounter::$variant => $type_id,)* }
            }

            /// Returns the label.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(SecureCounter::$variant => $label,)* }
            }
        }
    };
}

secure_counters! {
    Transports = 1050, "secure: transports";
    BytesSealed = 1051, "secure: bytes sealed";
    BytesOpened = 1052, "secure: bytes opened";
    FailedOpens = 1053, "secure: failed opens";
    Replayed = 1054, "secure: replayed or too old";
    UnknownKeys = 1055, "secure: unknown key id";
    PlainRefused = 1056, "secure: plain frames refused";
    OutOfBounds = 1057, "secure: out of bounds";
    Handshakes = 1058, "secure: handshakes done";
    HandshakesRefused = 1059, "secure: handshakes refused";
    CookiesSent = 1060, "secure: cookies sent";
    Rotations = 1061, "secure: key rotations";
    RefusedSends = 1062, "secure: sends refused for lack of key or limit";
    Links = 1063, "secure: links up";
}

/// Type id of the counter of the links of one channel. Its label names their peers.
pub const SECURE_CHANNEL_TYPE_ID: i32 = 1_064;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_ids_follow_each_other() {
        for (index, counter) in SecureCounter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, index);
            assert_eq!(counter.type_id(), 1_050 + index as i32);
        }
    }
}
