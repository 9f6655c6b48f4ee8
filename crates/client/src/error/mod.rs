// SPDX-License-Identifier: Apache-2.0
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
