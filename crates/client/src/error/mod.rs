//! Error types, one per kind of operation, and [`Error`], to which all of them convert. Each text says what was expected,
//! what was found and what to do.

mod any;
mod client;
mod command;
mod connect;
mod lost;
mod offer;

pub use any::Error;
pub use client::ClientError;
pub use command::{CommandError, RegistrationError};
pub use connect::ConnectError;
pub use lost::Lost;
pub use offer::{OfferError, PollError, RawPollError};

/// Implements `Debug` with the text of `Display`, which has all values of the error. A `main` that fails and `unwrap`
/// print `Debug`.
macro_rules! debug_is_display {
    ($($error:ty),+) => {
        $(
            impl std::fmt::Debug for $error {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    std::fmt::Display::fmt(self, f)
                }
            }
        )+
    };
}
pub(crate) use debug_is_display;
