// SPDX-License-Identifier: Apache-2.0
//! The distinct error log: each distinct error once, with count and times (docs/spec/shared-memory.md §6.1).
//!
//! [`ErrorLog`] is the one writer. [`ErrorHandler`] shares it between the threads of a driver, counts
//! errors, and reports those that a full log cannot record. [`read`] reads a log, from any process.

mod handler;
mod log;
mod reader;

pub use handler::{ErrorHandler, ObservedError, Unlogged};
pub use log::{ErrorLog, ErrorLogFull};
pub use reader::{ErrorObservation, read};

use crate::overlay;
use crate::sync::{AtomicI32, AtomicI64};

/// Length of a record before its text.
const HEADER_LENGTH: usize = 24;
const ALIGNMENT: usize = 8;

overlay! {
    /// The head of a record; the text follows.
    struct Header: 24 {
        /// With the header; zero ends the log. Stored last, with release, which publishes the rest.
        0 => length: AtomicI32,
        4 => count: AtomicI32,
        8 => last_ms: AtomicI64,
        16 => first_ms: AtomicI64,
    }
}
