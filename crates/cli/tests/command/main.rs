// SPDX-License-Identifier: Apache-2.0
//! The `taran` command as a process: exit codes and output.

mod bench;
mod commands;
mod commit;
mod config;
mod console;
mod dashboard;
mod demo;
mod doctor;
mod documents;
mod driver;
mod event_log;
mod fix;
mod generated;
mod hostile;
mod init;
mod keys;
mod members;
mod metrics;
mod mistakes;
#[path = "../shared/own_address.rs"]
mod own_address;
#[allow(dead_code, reason = "not all of it is used here")]
#[path = "../shared/own_namespaces.rs"]
mod own_namespaces;
mod packaging;
mod previous;
mod process;
mod recordings;
mod running;
mod sbe;
mod streams;
mod tools;
mod top;
mod traffic;
