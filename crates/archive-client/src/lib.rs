// SPDX-License-Identifier: Apache-2.0
//! Client of an Aeron archive (`docs/spec/archive.md`).
//!
//! An archive records streams to disk and replays them. Clients send requests on a control stream and receive responses,
//! descriptors and signals on a response stream of their own.
//!
//! * [`protocol`] has a type for each message, with encoding and checked decoding.
//! * [`client`] has clients over crate `taran`; its types are also at the root.
//! * [`persistent`] reads a stream from its recording, and live from then on.
//! * [`replay_merge`] replays and merges with the live stream, in one image.
//! * [`session`] has the state machines of a control session, without I/O.
//! * [`codecs`] are the generated SBE codecs below it.
//!
//! ```
//! use taran_archive_client::protocol::{Message, Request, StartRecordingRequest2, SourceLocation};
//!
//! let request = StartRecordingRequest2 {
//!     control_session_id: 42,
//!     correlation_id: 7,
//!     stream_id: 1001,
//!     source_location: SourceLocation::LOCAL,
//!     auto_stop: false,
//!     channel: "aeron:ipc",
//! };
//! let mut buffer = [0; 128];
//! let length = request.encode(&mut buffer)?;
//! let decoded = Request::decode(&buffer[..length])?;
//! assert_eq!(decoded, Request::StartRecordingRequest2(request));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod client;
pub mod codecs;
pub mod persistent;
pub mod protocol;
pub mod replay_merge;
pub mod session;

pub use client::{
    ArchiveClient, ArchiveConnecting, ArchiveConnection, ArchiveContext, ArchiveEvent,
    AsyncArchive, Call, ConnectError, ReconnectingArchive, RecordingEvents, ReplayParams,
    ReplaySession, ReplicationParams, ResponseReplay,
};
pub use persistent::{
    PersistentError, PersistentEvent, PersistentOptions, PersistentState, PersistentSubscription,
    StartPosition,
};
pub use replay_merge::{MergeError, MergeOptions, MergeState, ReplayMerge};
pub use session::{ArchiveError, Credentials, Recording, RecordingSubscription, RequestError};
