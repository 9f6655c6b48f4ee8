//! What users want to be told, and how they are told.
//!
//! All callbacks run on the client conductor: its thread, or the thread that invokes it. They may use the client, and
//! close whatever they like, but they must not wait for the driver: use the `async_` calls there.

use std::net::SocketAddr;

use taran_core::counters::CountersReader;
use taran_protocol::error_code::ErrorCode;

use crate::callback::{Callback, CallbackList, Panicked};
use crate::error::ClientError;
use crate::image::ImageView;
use crate::life::ClientEnd;

pub(crate) type OnImage = dyn FnMut(&ImageView) + Send;
pub(crate) type OnCounter = dyn FnMut(&CountersReader, i64, i32) + Send;
pub(crate) type OnPublicationError = dyn FnMut(&PublicationError) + Send;
pub(crate) type OnError = dyn FnMut(&ClientError) + Send;
pub(crate) type OnClose = dyn FnMut(ClientEnd) + Send;

/// Id of the handlers that the context has set, which nobody removes. Correlation ids of a driver are never negative.
const OF_CONTEXT: i64 = -1;

/// Names a handler that was added to a client, for [`Client::remove_handler`](crate::Client::remove_handler).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandlerId(pub(crate) i64);

/// A receiver's complaint about a publication of this client, for instance that a subscriber rejected its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationError {
    /// Registration id of the stream's publication, see
    /// [`Publication::original_registration_id`](crate::Publication::original_registration_id).
    pub registration_id: i64,
    /// Registration id of the destination the complaint came from, if it is known.
    pub destination_registration_id: Option<i64>,
    /// Session of the publication.
    pub session_id: i32,
    /// Stream of the publication.
    pub stream_id: i32,
    /// Id of the receiver; −1 for IPC.
    pub receiver_id: i64,
    /// Group of the receiver, if it has one.
    pub group_tag: Option<i64>,
    /// Where the complaint came from.
    pub source: SocketAddr,
    /// What kind of complaint it is.
    pub code: ErrorCode,
    /// The receiver's explanation.
    pub text: String,
}

/// Handlers for the whole client, as boxed by the context.
#[derive(Default)]
pub(crate) struct HandlerSet {
    pub(crate) available_image: Option<Box<OnImage>>,
    pub(crate) unavailable_image: Option<Box<OnImage>>,
    pub(crate) available_counter: Option<Box<OnCounter>>,
    pub(crate) unavailable_counter: Option<Box<OnCounter>>,
    pub(crate) publication_error: Option<Box<OnPublicationError>>,
    pub(crate) error: Option<Box<OnError>>,
    pub(crate) close: Option<Box<OnClose>>,
}

/// Handlers for the whole client, in use.
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
            available_counter: CallbackList::new(OF_CONTEXT, set.available_counter),
            unavailable_counter: CallbackList::new(OF_CONTEXT, set.unavailable_counter),
            publication_error: Callback::new(set.publication_error),
            error: Callback::new(Some(set.error.unwrap_or_else(print))),
            close: CallbackList::new(OF_CONTEXT, set.close),
        }
    }

    /// Ends all of them: none runs afterwards.
    pub(crate) fn take_away(&self) {
        self.available_image.take_away();
        self.unavailable_image.take_away();
        self.available_counter.take_away();
        self.unavailable_counter.take_away();
        self.publication_error.take_away();
        self.error.take_away();
        self.close.take_away();
    }

    /// Runs a callback; reports a panic of it.
    pub(crate) fn run<F: ?Sized>(
        &self,
        name: &'static str,
        callback: &Callback<F>,
        with: impl FnOnce(&mut F),
    ) {
        self.report_panic(name, callback.call(with));
    }

    /// Runs all callbacks of a list; reports their panics.
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

    /// Tells the error handler. Its own panic has nobody left to be told to.
    pub(crate) fn report(&self, error: &ClientError) {
        drop(self.error.call(|handler| handler(error)));
    }
}

/// Handlers for the images of one subscription; what is not set is left to the client's handlers.
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
pub struct ImageHandlers {
    pub(crate) available: Option<Box<OnImage>>,
    pub(crate) unavailable: Option<Box<OnImage>>,
}

impl ImageHandlers {
    /// No handlers.
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

    /// Calls `handler` when an image has ended; not when the subscription itself is closed.
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
