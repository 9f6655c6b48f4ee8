// SPDX-License-Identifier: Apache-2.0
//! Reassembly of fragmented messages (`docs/spec/shared-memory.md §8.6`).

mod message_builder;

use std::collections::HashMap;

use message_builder::MessageBuilder;

use crate::Action;
use crate::header::Header;

/// Message builders by session id.
#[derive(Debug, Default)]
struct Sessions {
    builders: HashMap<i32, MessageBuilder>,
}

impl Sessions {
    /// Returns the builder for a fragment; `None` if the first fragment of its message was missed.
    fn builder_for(&mut self, header: &Header<'_>) -> Option<&mut MessageBuilder> {
        let session_id = header.session_id();
        if header.is_begin() {
            Some(self.builders.entry(session_id).or_default())
        } else {
            self.builders.get_mut(&session_id)
        }
    }
}

fn deliver(
    builder: &mut MessageBuilder,
    fragment: &[u8],
    header: &Header<'_>,
    handler: &mut impl FnMut(&[u8], &Header<'_>),
) {
    if builder.push(fragment, header) {
        let (message, whole) = builder.message(header);
        handler(message, &whole);
        builder.reset();
    }
}

fn deliver_controlled(
    builder: &mut MessageBuilder,
    fragment: &[u8],
    header: &Header<'_>,
    handler: &mut impl FnMut(&[u8], &Header<'_>) -> Action,
) -> Action {
    let before = builder.checkpoint();
    if !builder.push(fragment, header) {
        return Action::Continue;
    }
    let (message, whole) = builder.message(header);
    let action = handler(message, &whole);
    if action == Action::Abort {
        builder.restore(before);
    } else {
        builder.reset();
    }
    action
}

fn try_deliver<E>(
    builder: &mut MessageBuilder,
    fragment: &[u8],
    header: &Header<'_>,
    handler: &mut impl FnMut(&[u8], &Header<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let before = builder.checkpoint();
    if !builder.push(fragment, header) {
        return Ok(());
    }
    let (message, whole) = builder.message(header);
    let outcome = handler(message, &whole);
    if outcome.is_err() {
        builder.restore(before);
    } else {
        builder.reset();
    }
    outcome
}

/// Reassembles the messages of any number of sessions.
///
/// A message longer than [`max_payload_length`](crate::Publication::max_payload_length) is sent as several frames, and a
/// poll delivers each of them separately. An assembler wraps the handler of whole messages into a fragment handler for
/// the poll. Use one per subscription. The fragments of different sessions may interleave.
///
/// An unfragmented message is passed on without a copy. The buffers for the others are reused, so that nothing is
/// allocated once the longest message has been received. A message whose first fragment was missed is discarded.
///
/// ```
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # ).unwrap();
/// # let directory = driver.aeron_dir();
/// # let client = taran::Client::builder().aeron_dir(directory).connect()?;
/// # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
/// # let publication = client.add_publication("aeron:ipc", 1001)?;
/// # while publication.offer(&[7; 5000]).is_err() { std::thread::yield_now(); }
/// let mut assembler = taran::FragmentAssembler::new();
/// let mut messages = 0;
/// while messages == 0 {
///     subscription.poll(assembler.wrap(|message, header| {
///         assert_eq!(message.len(), 5000);
///         println!("from session {}", header.session_id());
///         messages += 1;
///     }), 10)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct FragmentAssembler {
    sessions: Sessions,
}

impl FragmentAssembler {
    /// Creates an assembler.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a fragment handler for `poll` that calls `handler` with whole messages.
    pub fn wrap<'a, F>(&'a mut self, mut handler: F) -> impl FnMut(&[u8], &Header<'_>) + 'a
    where
        F: FnMut(&[u8], &Header<'_>) + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                handler(fragment, header);
            } else if let Some(builder) = self.sessions.builder_for(header) {
                deliver(builder, fragment, header, &mut handler);
            }
        }
    }

    /// Like [`wrap`](Self::wrap), for `try_poll`. If the handler fails for a fragmented message, a later poll delivers
    /// its last fragment again, and with it the whole message.
    pub fn try_wrap<'a, E, F>(
        &'a mut self,
        mut handler: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Result<(), E> + 'a
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<(), E> + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                return handler(fragment, header);
            }
            match self.sessions.builder_for(header) {
                Some(builder) => try_deliver(builder, fragment, header, &mut handler),
                None => Ok(()),
            }
        }
    }

    /// Frees the buffer of a session that has ended. Returns true if there was one.
    pub fn free_session_buffer(&mut self, session_id: i32) -> bool {
        self.sessions.builders.remove(&session_id).is_some()
    }

    /// Frees all buffers; incomplete messages are discarded.
    pub fn clear(&mut self) {
        self.sessions.builders.clear();
    }
}

/// Like [`FragmentAssembler`], for controlled polls.
///
/// If the handler aborts a fragmented message, the next poll delivers the last fragment again, and with it the whole
/// message.
#[derive(Debug, Default)]
pub struct ControlledFragmentAssembler {
    sessions: Sessions,
}

impl ControlledFragmentAssembler {
    /// Creates an assembler.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a fragment handler for `controlled_poll` that calls `handler` with whole messages.
    pub fn wrap<'a, F>(
        &'a mut self,
        mut handler: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Action + 'a
    where
        F: FnMut(&[u8], &Header<'_>) -> Action + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                return handler(fragment, header);
            }
            match self.sessions.builder_for(header) {
                Some(builder) => deliver_controlled(builder, fragment, header, &mut handler),
                None => Action::Continue,
            }
        }
    }

    /// Frees the buffer of a session that has ended. Returns true if there was one.
    pub fn free_session_buffer(&mut self, session_id: i32) -> bool {
        self.sessions.builders.remove(&session_id).is_some()
    }

    /// Frees all buffers; incomplete messages are discarded.
    pub fn clear(&mut self) {
        self.sessions.builders.clear();
    }
}

/// Reassembles the messages of one image, without a lookup by session.
#[derive(Debug, Default)]
pub struct ImageFragmentAssembler {
    builder: MessageBuilder,
}

impl ImageFragmentAssembler {
    /// Creates an assembler.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a fragment handler for `Image::poll` that calls `handler` with whole messages.
    pub fn wrap<'a, F>(&'a mut self, mut handler: F) -> impl FnMut(&[u8], &Header<'_>) + 'a
    where
        F: FnMut(&[u8], &Header<'_>) + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                handler(fragment, header);
            } else {
                deliver(&mut self.builder, fragment, header, &mut handler);
            }
        }
    }

    /// Like [`wrap`](Self::wrap), for `Image::try_poll`. If the handler fails for a fragmented message, the next poll
    /// delivers its last fragment again, and with it the whole message.
    pub fn try_wrap<'a, E, F>(
        &'a mut self,
        mut handler: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Result<(), E> + 'a
    where
        F: FnMut(&[u8], &Header<'_>) -> Result<(), E> + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                return handler(fragment, header);
            }
            try_deliver(&mut self.builder, fragment, header, &mut handler)
        }
    }
}

/// Like [`ImageFragmentAssembler`], for controlled polls.
#[derive(Debug, Default)]
pub struct ImageControlledFragmentAssembler {
    builder: MessageBuilder,
}

impl ImageControlledFragmentAssembler {
    /// Creates an assembler.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a fragment handler for `Image::controlled_poll` that calls `handler` with whole messages.
    pub fn wrap<'a, F>(
        &'a mut self,
        mut handler: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Action + 'a
    where
        F: FnMut(&[u8], &Header<'_>) -> Action + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                return handler(fragment, header);
            }
            deliver_controlled(&mut self.builder, fragment, header, &mut handler)
        }
    }
}
