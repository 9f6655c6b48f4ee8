// SPDX-License-Identifier: Apache-2.0
//! Invariants that must always hold. Each checker is independent and reports a [`Violation`].

pub mod clients;
pub mod connections;
pub mod counter_consistency;
pub mod delivery;
pub mod flow;
pub mod image_termination;
pub mod leaks;
pub mod liveness;
pub mod once;
pub mod positions;
pub mod sealed;
pub mod streams;

/// Description of a violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Returns a [`Violation`] with a formatted text.
macro_rules! violation {
    ($($text:tt)+) => {
        return Err($crate::check::Violation(format!($($text)+)))
    };
}
pub(crate) use violation;
