// SPDX-License-Identifier: Apache-2.0
//! Subscriptions: polls and the handlers of images.

use std::ffi::{c_char, c_void};

use taran::{
    Action, ControlledFragmentAssembler, FragmentAssembler, Header, ImageHandlers, ImageView,
    Subscription,
};

use crate::call::{Context, Single, check_result, free, give, number, object, status, text, truth};
use crate::client::{Call, taran_client_t};
use crate::error::{Failure, c_string, taran_error_t};

/// A subscription. One thread at a time uses it.
#[derive(Debug)]
pub struct taran_subscription_t(Single<Polled>);

#[derive(Debug)]
struct Polled {
    subscription: Subscription,
    assembler: FragmentAssembler,
    controlled_assembler: ControlledFragmentAssembler,
}

/// Fields of the frame of a fragment. Of an assembled message, the header of its last fragment. Valid until the handler
/// returns.
#[repr(C)]
#[derive(Debug)]
pub struct taran_header_t {
    /// Position in the stream after the fragment.
    pub position: i64,
    /// Value that the publisher has set.
    pub reserved_value: i64,
    /// Session id of the publication.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Id of the term.
    pub term_id: i32,
    /// Offset of the frame in its term, in bytes.
    pub term_offset: i32,
    /// Flags of the frame: 0x80 for the first fragment of a message, 0x40 for the last.
    pub flags: u8,
}

/// Continuation of a controlled poll after a fragment.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum taran_action_t {
    /// End the poll of this image. The fragment is not consumed: the next poll delivers it again.
    TARAN_ACTION_ABORT = 1,
    /// End the poll of this image after this fragment.
    TARAN_ACTION_BREAK = 2,
    /// Tell the publisher at once that this fragment is consumed, and go on.
    TARAN_ACTION_COMMIT = 3,
    /// Go on.
    TARAN_ACTION_CONTINUE = 4,
}

/// Receives a fragment or message. Runs in the call of the poll. The data is valid until the handler returns.
pub type taran_fragment_handler_t = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        data: *const u8,
        length: usize,
        header: *const taran_header_t,
    ),
>;

/// Like taran_fragment_handler_t; returns a taran_action_t. Another value ends the poll of the image, which then fails with
/// INVALID_ARGUMENT; the fragment is not consumed.
pub type taran_controlled_handler_t = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        data: *const u8,
        length: usize,
        header: *const taran_header_t,
    ) -> i32,
>;

/// A stream of a publisher, as a subscription sees it. Valid until the handler returns.
#[repr(C)]
#[derive(Debug)]
pub struct taran_image_t {
    /// Id of the image.
    pub correlation_id: i64,
    /// Position of the subscription in the stream.
    pub position: i64,
    /// Session id of the publication.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Address of the publisher, or "aeron:ipc".
    pub source_identity: *const c_char,
}

/// Receives an image. Runs on the client's thread: it must not wait for the driver.
pub type taran_image_handler_t =
    Option<unsafe extern "C" fn(context: *mut c_void, image: *const taran_image_t)>;

/// Handlers of the images of a subscription; each may be NULL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct taran_image_handlers_t {
    /// A publisher was found: its messages follow.
    pub available: taran_image_handler_t,
    /// The image has ended, or the client has lost its driver.
    pub unavailable: taran_image_handler_t,
    /// Passed to the handlers.
    pub context: *mut c_void,
}

type OnImage = unsafe extern "C" fn(*mut c_void, *const taran_image_t);

/// Calls a handler of images.
fn notify(handler: OnImage, context: Context, image: &ImageView) {
    let source_identity = c_string(image.source_identity());
    let image = taran_image_t {
        correlation_id: image.correlation_id(),
        position: image.position(),
        session_id: image.session_id(),
        stream_id: image.stream_id(),
        source_identity: source_identity.as_ptr(),
    };
    // SAFETY: the caller of `taran_client_add_subscription` promises that the handlers may be called until the subscription is
    // closed, and the client calls none after that. The image lives until the handler returns.
    unsafe { handler(context.0, &raw const image) }
}

/// Returns the handlers as those of the client.
fn image_handlers(handlers: &taran_image_handlers_t) -> ImageHandlers {
    let context = Context(handlers.context);
    let mut made = ImageHandlers::new();
    if let Some(handler) = handlers.available {
        made = made.on_available(move |image| notify(handler, context, image));
    }
    if let Some(handler) = handlers.unavailable {
        made = made.on_unavailable(move |image| notify(handler, context, image));
    }
    made
}

#[inline]
fn header(header: &Header<'_>) -> taran_header_t {
    taran_header_t {
        position: header.position(),
        reserved_value: header.reserved_value(),
        session_id: header.session_id(),
        stream_id: header.stream_id(),
        term_id: header.term_id(),
        term_offset: header.term_offset(),
        flags: header.flags(),
    }
}

/// Adds a subscription and waits for the driver. `handlers` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_add_subscription(
    client: *const taran_client_t,
    channel: *const c_char,
    stream_id: i32,
    handlers: *const taran_image_handlers_t,
    subscription: *mut *mut taran_subscription_t,
) -> i32 {
    status(|| {
        check_result(subscription)?;
        // SAFETY: the handle, the text and the handlers follow the rules of the header; NULL stands for no handlers.
        let (client, channel, handlers) =
            unsafe { (Call::of(client)?, text(channel)?, handlers.as_ref()) };
        let handlers = handlers.map(image_handlers).unwrap_or_default();
        let added = client.add_subscription_with(channel, stream_id, handlers)?;
        let polled = Polled {
            subscription: added,
            assembler: FragmentAssembler::new(),
            controlled_assembler: ControlledFragmentAssembler::new(),
        };
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe { give(subscription, taran_subscription_t(Single::new(polled))) }
    })
}

/// Runs a poll whose handler receives fragments.
///
/// # Safety
/// The handle, the handler and its context follow the rules of the header.
unsafe fn poll(
    subscription: *const taran_subscription_t,
    handler: taran_fragment_handler_t,
    context: *mut c_void,
    poll: impl FnOnce(&mut Polled, &mut dyn FnMut(&[u8], &Header<'_>)) -> Result<usize, Failure>,
) -> i64 {
    number(|| {
        // SAFETY: the caller's promise.
        let subscription = unsafe { object(subscription) }?;
        let handler = handler.ok_or(Failure::invalid("the handler is NULL"))?;
        let mut deliver = |data: &[u8], frame: &Header<'_>| {
            let header = header(frame);
            // SAFETY: a function of the caller, with its context; what it gets lives until it returns.
            unsafe { handler(context, data.as_ptr(), data.len(), &raw const header) }
        };
        let polled = subscription.0.with(|polled| poll(polled, &mut deliver))?;
        // At most the number of fragments in memory.
        Ok(polled as i64)
    })
}

/// Calls `handler` with at most `fragment_limit` fragments. Returns their number, or an error: CLOSED or DRIVER_LOST end all polls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_poll(
    subscription: *const taran_subscription_t,
    handler: taran_fragment_handler_t,
    context: *mut c_void,
    fragment_limit: usize,
) -> i64 {
    // SAFETY: as for this function.
    unsafe {
        poll(subscription, handler, context, |polled, deliver| {
            Ok(polled.subscription.poll(deliver, fragment_limit)?)
        })
    }
}

/// Like taran_subscription_poll(), but `handler` receives whole messages: fragmented ones are assembled in memory of the
/// subscription.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_poll_messages(
    subscription: *const taran_subscription_t,
    handler: taran_fragment_handler_t,
    context: *mut c_void,
    fragment_limit: usize,
) -> i64 {
    // SAFETY: as for this function.
    unsafe {
        poll(subscription, handler, context, |polled, deliver| {
            let Polled {
                subscription,
                assembler,
                ..
            } = polled;
            Ok(subscription.poll(assembler.wrap(deliver), fragment_limit)?)
        })
    }
}

/// Runs a poll whose handler controls how it continues.
///
/// # Safety
/// The handle, the handler and its context follow the rules of the header.
unsafe fn controlled_poll(
    subscription: *const taran_subscription_t,
    handler: taran_controlled_handler_t,
    context: *mut c_void,
    poll: impl FnOnce(
        &mut Polled,
        &mut dyn FnMut(&[u8], &Header<'_>) -> Action,
    ) -> Result<usize, Failure>,
) -> i64 {
    number(|| {
        // SAFETY: the caller's promise.
        let subscription = unsafe { object(subscription) }?;
        let handler = handler.ok_or(Failure::invalid("the handler is NULL"))?;
        let mut unknown = None;
        let mut deliver = |data: &[u8], frame: &Header<'_>| {
            if unknown.is_some() {
                return Action::Abort;
            }
            let header = header(frame);
            // SAFETY: a function of the caller, with its context; what it gets lives until it returns.
            let action = unsafe { handler(context, data.as_ptr(), data.len(), &raw const header) };
            action_of(action).unwrap_or_else(|| {
                unknown = Some(action);
                Action::Abort
            })
        };
        let polled = subscription.0.with(|polled| poll(polled, &mut deliver))?;
        if let Some(action) = unknown {
            return Err(Failure::new(
                taran_error_t::TARAN_ERROR_INVALID_ARGUMENT,
                format!("the handler returned {action}, which is not a taran_action_t"),
            ));
        }
        Ok(polled as i64)
    })
}

fn action_of(value: i32) -> Option<Action> {
    const ACTIONS: [(taran_action_t, Action); 4] = [
        (taran_action_t::TARAN_ACTION_ABORT, Action::Abort),
        (taran_action_t::TARAN_ACTION_BREAK, Action::Break),
        (taran_action_t::TARAN_ACTION_COMMIT, Action::Commit),
        (taran_action_t::TARAN_ACTION_CONTINUE, Action::Continue),
    ];
    ACTIONS
        .iter()
        .find(|(known, _)| *known as i32 == value)
        .map(|(_, action)| *action)
}

/// Like taran_subscription_poll(), but `handler` returns how the poll of the image goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_controlled_poll(
    subscription: *const taran_subscription_t,
    handler: taran_controlled_handler_t,
    context: *mut c_void,
    fragment_limit: usize,
) -> i64 {
    // SAFETY: as for this function.
    unsafe {
        controlled_poll(subscription, handler, context, |polled, deliver| {
            Ok(polled
                .subscription
                .controlled_poll(deliver, fragment_limit)?)
        })
    }
}

/// Like taran_subscription_controlled_poll(), but `handler` receives whole messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_controlled_poll_messages(
    subscription: *const taran_subscription_t,
    handler: taran_controlled_handler_t,
    context: *mut c_void,
    fragment_limit: usize,
) -> i64 {
    // SAFETY: as for this function.
    unsafe {
        controlled_poll(subscription, handler, context, |polled, deliver| {
            let Polled {
                subscription,
                controlled_assembler,
                ..
            } = polled;
            Ok(subscription.controlled_poll(controlled_assembler.wrap(deliver), fragment_limit)?)
        })
    }
}

/// Returns 1 if the subscription is open and has an image, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_is_connected(
    subscription: *const taran_subscription_t,
) -> i32 {
    truth(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(subscription) }?
            .0
            .with(|polled| Ok(polled.subscription.is_connected()))
    })
}

/// Returns the number of images.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_image_count(
    subscription: *const taran_subscription_t,
) -> i64 {
    number(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(subscription) }?
            .0
            .with(|polled| Ok(polled.subscription.image_count() as i64))
    })
}

/// Closes the subscription. Waits for a handler of its images that runs on another thread; after that none runs. Fails with IN_USE
/// while a poll runs. A second close has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_close(
    subscription: *const taran_subscription_t,
) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(subscription) }?.0.take().map(drop)
    })
}

/// Closes the subscription unless it is closed, and frees its handle. Fails with IN_USE while a poll runs. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_subscription_free(subscription: *mut taran_subscription_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { free(subscription, |subscription| subscription.0.take().map(drop)) }
    })
}
