//! Numbers that anyone on the machine can watch (docs/spec/shared-memory.md §5).
//!
//! A counter is a 128 byte record of values (the count and three ids) and a 512 byte record that
//! says what it is. One thread, the driver's conductor, hands them out and takes them back: the
//! [`CounterTable`]. Whoever has a [`Counter`] updates it without asking anyone. A
//! [`CountersReader`] sees all of them, at any time, from any process.
//!
//! A freed id rests for a while before it is used again, so that who still holds it finds out first.

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
