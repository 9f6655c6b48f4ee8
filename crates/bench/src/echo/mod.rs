//! The echo benchmark: one side sends at a fixed rate, the other sends everything back, and the first records how
//! long each round trip took, counted from the moment at which the message was due.

mod client;
mod config;
mod progress;
mod run;
mod server;

pub use config::{EchoConfig, Role};
pub use run::run;
