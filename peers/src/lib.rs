// SPDX-License-Identifier: Apache-2.0
//! Shared code of the programs of this package.
//!
//! * `compare` runs the other programs and writes their results as tables, JSON and an HTML page.
//! * `drivers` runs our driver or the official C driver, alone or embedded under our client.
//! * `clients` runs our client or the official C client on a running driver.
//! * `archives` runs our archive, and loads on an archive of either implementation.
//! * `clusters` runs a member of our cluster, and loads on a cluster of either implementation.

#![forbid(unsafe_code)]

#[cfg(feature = "ours")]
pub mod bench;
pub mod measured;
