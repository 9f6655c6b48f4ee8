// SPDX-License-Identifier: Apache-2.0
//! Control sessions as state machines without I/O: inputs are messages, send results and the time; outputs are requests
//! and decisions.

mod calls;
mod connect;
mod error;
mod recording;

pub use calls::{CallSpec, Calls, Completion, Expected, Reply, Routed};
pub use connect::{
    Connect, ConnectOptions, ConnectProgress, Credentials, Established, SessionError,
};
pub use error::{ArchiveError, RequestError};
pub(crate) use recording::some_unless_null;
pub use recording::{Recording, RecordingSubscription};
