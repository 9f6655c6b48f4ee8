//! Messages between members as plain values (`docs/spec/cluster.md` §4.1).
//!
//! [`ConsensusMessage`] has a variant per message that decides about leadership and the log. [`ConsensusMessage::consensus`] and
//! [`ConsensusMessage::new`] convert from and to the messages of the [core](crate::consensus), which have no fields that it does
//! not decide by: ids, sessions, endpoints.

mod message;
#[cfg(test)]
mod tests;
mod wire;

pub use message::*;

/// Value of ids, positions and terms that are not set.
pub const NULL_VALUE: i64 = -1;
