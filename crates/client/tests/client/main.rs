// SPDX-License-Identifier: Apache-2.0
//! Tests of the client with a fake driver, in virtual time.

#![allow(clippy::unwrap_used)] // a test fails by panicking, also in its helpers

mod accessors;
mod assembly;
mod asynchronous;
mod closing;
mod commands;
mod connect;
mod fake_driver;
mod handlers;
mod hostile;
mod images;
mod overrun;
mod publications;
mod reconnect;
mod removal;
mod threads;
mod traits;
