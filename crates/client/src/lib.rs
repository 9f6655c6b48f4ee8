//! Low-latency messaging that speaks Aeron: the client library.
//!
//! Messages travel in *streams*: what a [`Publication`] offers on a channel and stream id, each [`Subscription`] to the
//! same channel and stream id receives, in order, over UDP or shared memory. The work is done by a *media driver*, a
//! program of its own (`taran driver`, or any Aeron 1.51 driver) with which this library shares memory; see
//! [`Context`] for how to find it.
//!
//! ```
//! use taran::Context;
//! # use taran_driver::{DriverContext, MediaDriver};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536))?;
//!     # let directory = driver.aeron_dir();
//!     // Where the driver runs; without this line: AERON_DIR, or where drivers run by default.
//!     let client = Context::new().aeron_dir(directory).connect()?;
//!     let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
//!     let publication = client.add_publication("aeron:ipc", 1001)?;
//!
//!     while let Err(error) = publication.offer(b"hello") {
//!         if !error.is_retryable() {
//!             return Err(error.into());
//!         }
//!         std::thread::yield_now();
//!     }
//!     let mut received = false;
//!     while !received {
//!         subscription.poll(|message, header| {
//!             assert_eq!(message, b"hello");
//!             println!("received a message that ends at {}", header.position());
//!             received = true;
//!         }, 10)?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Results
//!
//! Nothing is reported by a special number or an exception. [`Publication::offer`] says by an [`OfferError`] why a
//! message was not taken: most of them pass, and offering again is the answer. Commands to the driver fail with an
//! [`AddError`], connecting with a [`ConnectError`]; their texts say what to do. What nobody asked for reaches the
//! handler set with [`Context::on_error`].
//!
//! # Ends
//!
//! Closing and dropping are the same. When either has returned, the thing is closed and no callback about it runs or
//! will run; memory stays mapped as long as something that can reach it lives. A driver that dies ends the client, not
//! the process: calls fail with [`Lost`], and the handler set with [`Context::on_close`] is told.
//!
//! # Threads
//!
//! A [`Client`] and a [`Publication`] can be cloned and used by many threads. An [`ExclusivePublication`] and a
//! [`Subscription`] belong to one thread at a time. One thread more runs the *client conductor*, which talks to the
//! driver and calls handlers; with [`Context::invoker`] there is none, and [`Client::invoke`] is called instead.
//! Offering, claiming and polling allocate nothing and take no lock.

#![forbid(unsafe_code)]

mod assembly;
mod callback;
mod channel_status;
mod client;
mod closing;
mod conductor;
mod connect;
mod context;
mod counter;
mod error;
mod handlers;
mod header;
mod image;
mod life;
mod linger;
mod link;
mod mapped_logs;
mod pending;
mod publication;
mod registry;
mod removal;
mod subscription;

/// A place in a stream: bytes since its beginning, frame headers and padding included.
pub type Position = i64;

pub use assembly::{
    ControlledFragmentAssembler, FragmentAssembler, ImageControlledFragmentAssembler,
    ImageFragmentAssembler,
};
pub use channel_status::ChannelStatus;
pub use client::Client;
pub use connect::{Connecting, DriverView, Progress};
pub use context::Context;
pub use counter::Counter;
pub use error::{
    AddError, ClientError, ConnectError, Lost, OfferError, PollError, RawPollError,
    RegistrationError,
};
pub use handlers::{HandlerId, ImageHandlers, PublicationError};
pub use header::Header;
pub use image::{Action, Block, Image, ImageView, LogFileError, PositionError, RawBlock};
pub use life::ClientEnd;
pub use pending::Pending;
pub use publication::{ExclusivePublication, Publication};
pub use subscription::Subscription;

pub use taran_core::clock::{Clock, ManualClock, Now, SystemClock};
pub use taran_core::counters::{CounterMeta, CounterState, CountersReader};
pub use taran_core::error_log::ErrorObservation;
pub use taran_core::idle;
pub use taran_core::memory::{FileStorage, MemoryStorage, Storage};
pub use taran_protocol::cnc::Version;
pub use taran_protocol::counter::{StreamKey, type_id as counter_type};
pub use taran_protocol::error_code::ErrorCode;
pub use taran_protocol::frame::FrameType;
pub use taran_protocol::log::{BlockError, FrameClaim as BufferClaim};
pub use taran_protocol::uri::{
    ChannelUri, ChannelUriBuilder, ControlMode, Media, Param, Tags, UriError,
};
