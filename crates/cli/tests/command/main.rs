//! The `taran` command as a process: exit codes and output.

mod bench;
mod config;
mod doctor;
mod documents;
mod driver;
mod event_log;
mod fix;
mod hostile;
mod keys;
mod metrics;
#[path = "../shared/own_address.rs"]
mod own_address;
mod process;
mod recordings;
mod running;
mod sbe;
mod streams;
mod tools;
mod traffic;
