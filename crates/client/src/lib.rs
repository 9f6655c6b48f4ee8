// SPDX-License-Identifier: Apache-2.0
//! Low-latency messaging that speaks Aeron: the client library.
//!
//! Messages are sent in *streams*: each [`Subscription`] to a channel and stream id receives, in order, what each
//! [`Publication`] on the same channel and stream id offers, over UDP or shared memory. A *media driver* transports the
//! messages. It is a separate program (`taran driver`, or any Aeron 1.51 driver) that shares memory with this library;
//! [`ClientBuilder`] describes how it is found.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use taran::Client;
//! use taran::idle::{IdleStrategy, Yield};
//! # use taran_driver::{DriverContext, MediaDriver};
//!
//! fn main() -> Result<(), taran::Error> {
//!     # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
//!     # let directory = driver.aeron_dir();
//!     // The directory of the driver. Without this line: AERON_DIR, or the default directory.
//!     let client = Client::builder().aeron_dir(directory).connect()?;
//!     let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
//!     let publication = client.add_publication("aeron:ipc", 1001)?;
//!
//!     // Offers again while the receiver connects or has to catch up, for at most ten seconds.
//!     let deadline = Instant::now() + Duration::from_secs(10);
//!     let mut idle = Yield;
//!     publication.offer_until(b"hello", deadline, &mut idle)?;
//!
//!     let mut received = 0;
//!     while received == 0 && Instant::now() < deadline {
//!         received = subscription.poll(|message, header| {
//!             assert_eq!(message, b"hello");
//!             println!("received a message that ends at {}", header.position());
//!         }, 10)?;
//!         idle.idle(received, &mut std::thread::sleep);
//!     }
//!     assert_eq!(received, 1, "no message was received within ten seconds");
//!     Ok(())
//! }
//! ```
//!
//! # Results
//!
//! Results are typed; there are no special return values. [`Publication::offer`] returns an [`OfferError`] if a message
//! was not accepted; most causes are temporary, and the message is offered again: [`Publication::offer_until`] and
//! [`Publication::retry_until`] do so up to a deadline. Commands to the driver fail with a
//! [`CommandError`], connecting with a [`ConnectError`]; all errors convert to [`Error`], and their texts say what to do.
//! Asynchronous errors are passed to the handler set with [`ClientBuilder::on_error`].
//!
//! # Closing
//!
//! Closing and dropping are equivalent. After either has returned, the resource is closed and no callback about it
//! runs. Memory stays mapped while any handle refers to it. If the driver dies, the client is lost but the process
//! continues: calls fail with [`Lost`], and the handler set with [`ClientBuilder::on_close`] is called.
//!
//! A [`ReconnectingClient`] connects to the next driver by itself, and adds its publications, subscriptions and counters
//! anew. Destinations that are added to a handle are part of it, and its streams and sinks go on with the next driver.
//! Static counters, handlers of the client and images that were taken are left to the application.
//!
//! # Threads
//!
//! A [`Client`] and a [`Publication`] can be cloned and used by many threads. An [`ExclusivePublication`] and a
//! [`Subscription`] belong to one thread at a time. The *client conductor*, which communicates with the driver and
//! calls handlers, runs on a thread of its own; with [`ClientBuilder::invoker`] there is no such thread, and the application
//! calls [`Client::invoke`], which takes no lock while it has nothing to do (on the system clock). Offering, claiming and polling do not
//! allocate and take no lock.
//!
//! # Asynchronous tasks
//!
//! Commands return a [`Pending`], which is a future. With the feature `async`, `Subscription::into_async` makes a
//! `futures_core::Stream` of messages, and `Publication::into_async` a `futures_sink::Sink`; their methods `poll` and
//! `offer` neither copy nor allocate. Tasks are woken by a `Reactor`, an agent of this crate, so that any runtime can be
//! used.
//!
//! # Features
//!
//! None is enabled by default.
//!
//! * `async`: `AsyncSubscription`, `AsyncPublication` and `Reactor`, see above.
//! * `tracing`: connections, resources, images and errors as events of the crate `tracing`, with the target `taran`. Offers
//!   and polls emit none.

#![forbid(unsafe_code)]

mod assembly;
#[cfg(feature = "async")]
mod asynchronous;
mod builder;
mod callback;
mod channel_status;
mod client;
mod client_core;
mod client_state;
mod close_mark;
mod closing;
mod conductor;
mod connect;
mod counter;
mod error;
mod handlers;
mod header;
mod idle_cycle;
mod image;
pub mod limit;
mod mapped_logs;
mod pending;
mod publication;
mod reconnect;
mod registry;
mod removal;
mod resource_linger;
mod subscription;
mod trace;

/// A position in a stream: the number of bytes since its beginning, including frame headers and padding.
pub type Position = i64;

pub use assembly::{
    ControlledFragmentAssembler, FragmentAssembler, ImageControlledFragmentAssembler,
    ImageFragmentAssembler,
};
#[cfg(feature = "async")]
pub use asynchronous::{
    AsyncPublication, AsyncReconnecting, AsyncSubscription, IntoAsync, Message, Offer, Reactor,
    ReactorError,
};
pub use builder::ClientBuilder;
pub use channel_status::ChannelStatus;
pub use client::Client;
pub use client_state::CloseReason;
pub use connect::{Connecting, DriverView, Progress, WaitingForDriver};
pub use counter::Counter;
pub use error::{
    ClientError, CommandError, ConnectError, Error, Lost, OfferError, PollError, RawPollError,
    RegistrationError,
};
pub use handlers::{HandlerId, ImageHandlers, PublicationError};
pub use header::Header;
pub use image::{Action, Block, Image, ImageView, LogFileError, PositionError, RawBlock};
pub use pending::Pending;
pub use publication::{ExclusivePublication, Publication};
pub use reconnect::{ConnectionState, Reconnecting, ReconnectingClient};
pub use subscription::Subscription;

pub use taran_core::clock::{Clock, ManualClock, Now, SystemClock};
pub use taran_core::counters::{CounterMeta, CounterState, CountersReader};
pub use taran_core::error_log::ErrorObservation;
pub use taran_core::idle;
pub use taran_core::memory::{FileStorage, MemoryStorage, Storage, StoredFile};
pub use taran_protocol::cnc::Version;
pub use taran_protocol::counter::{StreamKey, type_id as counter_type};
pub use taran_protocol::error_code::ErrorCode;
pub use taran_protocol::frame::FrameType;
pub use taran_protocol::log::{BlockError, FrameClaim as BufferClaim};
pub use taran_protocol::uri::{
    ChannelUri, ChannelUriBuilder, ControlMode, Media, Param, Tags, UriError,
};
