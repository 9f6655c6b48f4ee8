// SPDX-License-Identifier: Apache-2.0
//! Real processes that exhaust system resources: commands fail with typed errors, streams continue, and everything
//! recovers when resources are available again.
//!
//! `crates/driver/tests/conductor/shortages` injects failures of each single step in virtual time; these tests check
//! that errors of the real system arrive the same way. Full file systems are tested in `bad_input/space.rs`.

#[allow(dead_code, reason = "shared with the tests of bad input")]
#[path = "../bad_input/attach.rs"]
mod attach;

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[path = "../shared/own_address.rs"]
mod own_address;

mod descriptors;
