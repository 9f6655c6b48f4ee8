// SPDX-License-Identifier: Apache-2.0
//! Counters that every process of the machine can read (docs/spec/shared-memory.md §5).
//!
//! A counter is a 128 byte record of values (the count and three ids) and a 512 byte record of
//! metadata. One thread, the driver's conductor, allocates and frees them through the [`CounterTable`]. The holder of a
//! [`Counter`] updates it without locks. A [`CountersReader`] reads all of them, at any time, from any process.
//!
//! A freed id is reused after a delay only, so that holders of the old counter can detect that it was freed.

mod counter;
mod label;
mod layout;
mod reader;
mod table;

pub use counter::Counter;
pub use label::Label;
pub use layout::{KEY_LENGTH, LABEL_LENGTH, METADATA_LENGTH, VALUES_LENGTH};
pub use reader::{CounterMeta, CounterState, CountersReader};
pub use table::{CounterSpec, CounterTable, CountersFull};

/// The id that means "no counter".
pub const NULL_COUNTER_ID: i32 = -1;

#[cfg(test)]
mod model;
