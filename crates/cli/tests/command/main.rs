//! The `taran` command as its users run it: as a process, with exit codes and texts.

mod bench;
mod documents;
mod driver;
mod event_log;
mod process;
mod tools;
mod traffic;
