//! Control sessions as state machines without I/O: inputs are messages, send results and the time; outputs are requests
//! and decisions.

mod connect;

pub use connect::{
    Connect, ConnectOptions, ConnectProgress, Credentials, Established, SessionError,
};
