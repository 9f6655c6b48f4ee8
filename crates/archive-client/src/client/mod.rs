// SPDX-License-Identifier: Apache-2.0
//! Clients of an archive over crate `taran`: [`ArchiveConnection`] is polled, [`ArchiveClient`] blocks,
//! [`AsyncArchive`] is for asynchronous tasks, [`ReconnectingArchive`] connects again when an archive was lost.

mod asynchronous;
mod blocking;
mod call;
mod channels;
mod connecting;
mod connection;
mod context;
mod error;
mod events;
mod params;
mod reconnect;
mod requests;
mod response_replay;

pub use asynchronous::AsyncArchive;
pub use blocking::{ArchiveClient, Recordings};
pub use call::Call;
pub use connecting::ArchiveConnecting;
pub use connection::ArchiveConnection;
pub use context::ArchiveContext;
pub use error::{ArchiveEvent, ConnectError};
pub use events::RecordingEvents;
pub use params::{ReplayParams, ReplaySession, ReplicationParams};
pub(crate) use params::{TIME_MIN_MS, position_of_time};
pub use reconnect::ReconnectingArchive;
pub use response_replay::ResponseReplay;
