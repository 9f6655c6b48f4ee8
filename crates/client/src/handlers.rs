// SPDX-License-Identifier: Apache-2.0
//! Handlers that the application registers.
//!
//! All handlers run on the client conductor: on its thread, or on the thread that invokes it. They may use the client
//! and close resources, but must not wait for the driver; they use the `async_` methods instead.

use std::net::SocketAddr;

use taran_core::counters::CountersReader;
use taran_protocol::error_code::ErrorCode;

use crate::callback::{Callback, CallbackList, Panicked};
use crate::client_state::CloseReason;
use crate::connect::WaitingForDriver;
use crate::error::ClientError;
use crate::image::ImageView;
use crate::trace::event;

pub(crate) type OnImage = dyn FnMut(&ImageView) + Send;
pub(crate) type OnCounter = dyn FnMut(&CountersReader, i64, i32) + Send;
pub(crate) type OnPublicationError = dyn FnMut(&PublicationError) + Send;
pub(crate) type OnError = dyn FnMut(&ClientError) + Send;
pub(crate) type OnClose = dyn FnMut(CloseReason) + Send;
pub(crate) type OnWaiting = dyn FnOnce(&WaitingForDriver) + Send;

/// Id of the handlers set with the builder, which cannot be removed. Correlation ids of a driver are never negative.
const CONTEXT_HANDLER_ID: i64 = -1;

/// Identifies a handler that was added to a client, for [`Client::remove_handler`](crate::Client::remove_handler).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandlerId(pub(crate) i64);

/// An error that a receiver has reported for a publication of this client, for instance that a subscriber rejected its
/// image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "PublicationErrorFrame")]
pub struct PublicationError {
    /// Registration id of the publication that created the stream; see
    /// [`Publication::original_registration_id`](crate::Publication::original_registration_id).
    pub registration_id: i64,
    /// Registration id of the destination that the error came from, if known.
    pub destination_registration_id: Option<i64>,
    /// Session id of the publication.
    pub session_id: i32,
    /// Stream id of the publication.
    pub stream_id: i32,
    /// Id of the receiver; −1 for IPC.
    pub receiver_id: i64,
    /// Group tag of the receiver, if it has one.
    pub group_tag: Option<i64>,
    /// Address that the error came from.
    pub source: SocketAddr,
    /// Error code.
    pub code: ErrorCode,
    /// The receiver's error message.
    pub text: String,
}

/// Client-wide handlers, as set in the builder.
#[derive(Default)]
pub(crate) struct HandlerSet {
    pub(crate) available_image: Option<Box<OnImage>>,
    pub(crate) unavailable_image: Option<Box<OnImage>>,
    pub(crate) available_counter: Option<Box<OnCounter>>,
    pub(crate) unavailable_counter: Option<Box<OnCounter>>,
    pub(crate) publication_error: Option<Box<OnPublicationError>>,
    pub(crate) error: Option<Box<OnError>>,
    pub(crate) close: Option<Box<OnClose>>,
    pub(crate) waiting: Option<Box<OnWaiting>>,
}

/// Client-wide handlers in use.
#[derive(Debug)]
pub(crate) struct Handlers {
    pub(crate) available_image: Callback<OnImage>,
    pub(crate) unavailable_image: Callback<OnImage>,
    pub(crate) available_counter: CallbackList<OnCounter>,
    pub(crate) unavailable_counter: CallbackList<OnCounter>,
    pub(crate) publication_error: Callback<OnPublicationError>,
    pub(crate) error: Callback<OnError>,
    pub(crate) close: CallbackList<OnClose>,
}

impl Handlers {
    pub(crate) fn new(set: HandlerSet) -> Self {
        let print = || -> Box<OnError> { Box::new(|error| eprintln!("taran client: {error}")) };
        Self {
            available_image: Callback::new(set.available_image),
            unavailable_image: Callback::new(set.unavailable_image),
            available_counter: CallbackList::new(CONTEXT_HANDLER_ID, set.available_counter),
            unavailable_counter: CallbackList::new(CONTEXT_HANDLER_ID, set.unavailable_counter),
            publication_error: Callback::new(set.publication_error),
            error: Callback::new(Some(set.error.unwrap_or_else(print))),
            close: CallbackList::new(CONTEXT_HANDLER_ID, set.close),
        }
    }

    /// Disables all handlers; none runs afterwards.
    pub(crate) fn disable(&self) {
        self.available_image.disable();
        self.unavailable_image.disable();
        self.available_counter.disable();
        self.unavailable_counter.disable();
        self.publication_error.disable();
        self.error.disable();
        self.close.disable();
    }

    /// Runs a callback and reports its panic.
    pub(crate) fn run<F: ?Sized>(
        &self,
        name: &'static str,
        callback: &Callback<F>,
        with: impl FnOnce(&mut F),
    ) {
        self.report_panic(name, callback.call(with));
    }

    /// Runs all callbacks of a list and reports their panics.
    pub(crate) fn run_all<F: ?Sized>(
        &self,
        name: &'static str,
        callbacks: &CallbackList<F>,
        mut with: impl FnMut(&mut F),
    ) {
        for callback in callbacks.all() {
            self.run(name, &callback, &mut with);
        }
    }

    pub(crate) fn report_panic(&self, callback: &'static str, outcome: Result<(), Panicked>) {
        if let Err(Panicked(text)) = outcome {
            self.report(&ClientError::CallbackPanicked { callback, text });
        }
    }

    /// Calls the error handler. A panic of the error handler itself is discarded.
    pub(crate) fn report(&self, error: &ClientError) {
        event!(error, "client error", error = error);
        drop(self.error.call(|handler| handler(error)));
    }
}

/// Handlers for the images of one subscription. Events without a handler here go to the handlers of the builder.
///
/// ```
/// use taran::ImageHandlers;
///
/// let handlers = ImageHandlers::new()
///     .on_available(|image| println!("session {} from {}", image.session_id(), image.source_identity()))
///     .on_unavailable(|image| println!("session {} ended at {}", image.session_id(), image.position()));
/// # let _ = handlers;
/// ```
#[derive(Default)]
#[doc(alias = "AvailableImageHandler")]
#[doc(alias = "UnavailableImageHandler")]
pub struct ImageHandlers {
    pub(crate) available: Option<Box<OnImage>>,
    pub(crate) unavailable: Option<Box<OnImage>>,
}

impl ImageHandlers {
    /// Creates a set without handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `handler` when the subscription has a new image.
    #[must_use]
    pub fn on_available(mut self, handler: impl FnMut(&ImageView) + Send + 'static) -> Self {
        self.available = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when an image has become unavailable; not when the subscription itself is closed.
    #[must_use]
    pub fn on_unavailable(mut self, handler: impl FnMut(&ImageView) + Send + 'static) -> Self {
        self.unavailable = Some(Box::new(handler));
        self
    }
}

impl std::fmt::Debug for ImageHandlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImageHandlers")
            .field("available", &self.available.is_some())
            .field("unavailable", &self.unavailable.is_some())
            .finish()
    }
}
