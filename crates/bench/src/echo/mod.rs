// SPDX-License-Identifier: Apache-2.0
//! The echo benchmark. The client sends at a fixed rate, the server sends everything back, and the client records each
//! round trip from the time at which the message was due.

mod client;
mod config;
mod progress;
mod run;
mod server;

pub use config::{EchoConfig, Role};
pub use run::run;
