// SPDX-License-Identifier: Apache-2.0
//! Messages of the control protocol as plain values.
//!
//! [`Request`] is what clients send, [`Event`] is what archives send on response streams, [`RecordingEvent`] what they
//! publish on the recording events channel. Each has a variant per message and `decode`; each message is a struct with
//! public fields and [`Message::encode`]. Fields that older senders lack have the value that the archive assumes for them:
//! -1 for ids, positions and lengths, empty text, version 0.

mod error_code;
mod events;
mod fields;
mod message;
mod requests;
#[cfg(test)]
mod tests;
mod version;
mod wire;

pub use crate::codecs::control::types::{ControlResponseCode, RecordingSignal, SourceLocation};
pub use error_code::ErrorCode;
pub use events::*;
pub use message::{Message, MessageError};
pub use requests::*;
pub use version::ProtocolVersion;

/// Value of ids, positions, lengths and timestamps that are not set.
pub const NULL_VALUE: i64 = -1;
