//! The client against a driver that does what the test says, in virtual time.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

mod assembling;
mod commands;
mod connecting;
mod ends;
mod fake;
mod handling;
mod hostile;
mod images;
mod inquiries;
mod overwritten;
mod publishing;
mod removing;
mod threads;
