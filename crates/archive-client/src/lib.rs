//! Control protocol of an Aeron archive (`docs/spec/archive.md`).
//!
//! An archive records streams to disk and replays them. Clients send requests on a control stream and receive responses,
//! descriptors and signals on a response stream of their own.
//!
//! * [`protocol`] has a type for each message, with encoding and checked decoding.
//! * [`session`] connects a control session, without I/O.
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

pub mod codecs;
pub mod protocol;
pub mod session;
