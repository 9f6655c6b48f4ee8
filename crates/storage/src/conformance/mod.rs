// SPDX-License-Identifier: Apache-2.0
//! The conformance suites of [`Disk`](crate::Disk) and [`DiskQueue`](crate::DiskQueue) implementations.
//!
//! The tests of an implementation call [`disk::run`] and [`queue::run`]. The suites panic with the violated rule.

pub mod disk;
mod failing;
pub mod queue;

pub use failing::{FailingDisk, Failures};

use std::fmt::Display;

/// Returns the value of an operation that the rules do not allow to fail.
fn must<T, E: Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("an operation that must succeed: {error}"),
    }
}
