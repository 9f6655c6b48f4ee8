// SPDX-License-Identifier: Apache-2.0
//! Drivers on separate machines: each test creates network namespaces joined by virtual links, runs `taran driver` in
//! each, and lets the kernel drop datagrams. These tests cover interfaces, multicast groups across machines, broken
//! paths, and backends of `taran-net` between two machines. They are skipped, with a message, where namespaces are not available; with `TARAN_REQUIRE_NAMESPACES=1` they
//! fail instead.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

mod machine_driver;
mod machines;
mod stream;

mod backends;
mod groups;
mod loss;
mod paths;
#[cfg(feature = "secure")]
mod security;
