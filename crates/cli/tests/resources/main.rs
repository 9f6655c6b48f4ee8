//! Real processes that run out of what the system gives: commands get typed errors, streams go on, and so does
//! everything when the shortage is over.
//!
//! Each single step that may fail is failed in virtual time by `crates/driver/tests/conductor/shortages`; here is that the
//! system's own answers arrive the same way. Full file systems are in `bad_input/space.rs`.

#[allow(dead_code, reason = "shared with the tests of bad input")]
#[path = "../bad_input/attach.rs"]
mod attach;

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[path = "../shared/own_address.rs"]
mod own_address;

mod descriptors;
