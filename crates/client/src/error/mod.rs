//! Error types, one per kind of operation. Each text says what was expected, what was found and what to do.

mod add;
mod client;
mod connect;
mod lost;
mod offer;

pub use add::{AddError, RegistrationError};
pub use client::ClientError;
pub use connect::ConnectError;
pub use lost::Lost;
pub use offer::{OfferError, PollError, RawPollError};
