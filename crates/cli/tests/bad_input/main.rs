// SPDX-License-Identifier: Apache-2.0
//! Errors from a user's point of view: absent drivers, unusable directories, lack of memory, invalid channels, occupied
//! ports, malformed datagrams. Each yields a typed error whose text names the object, its value, the required value and
//! the remedy. The tests use real drivers, clients and files.

#![expect(clippy::unwrap_used, reason = "tests report failures by panics")]

#[allow(dead_code, reason = "shared with the tests of the command")]
#[path = "../command/process.rs"]
mod process;

#[path = "../shared/own_address.rs"]
mod own_address;

#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;

mod absent;
mod attach;
mod channels;
mod datagrams;
mod directories;
mod drills;
mod floods;
mod garbage;
mod mounts;
mod names;
mod offers;
mod ports;
mod sharing;
mod space;
mod texts;
