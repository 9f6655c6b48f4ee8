//! The `taran` command as its users run it: as a process, with exit codes and texts.

mod bench;
mod config;
mod documents;
mod driver;
mod event_log;
mod hostile;
mod metrics;
#[path = "../shared/own_address.rs"]
mod own_address;
mod process;
mod running;
mod sbe;
mod streams;
mod tools;
mod traffic;
