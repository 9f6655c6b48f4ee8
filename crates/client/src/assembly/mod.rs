//! Putting messages together that were sent in several fragments (`docs/spec/shared-memory.md §8.6`).
//!
//! A message longer than the mtu allows travels as several frames, and a poll delivers each on its own. An assembler
//! sits between the poll and the handler of whole messages:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let driver = taran_driver::MediaDriver::launch_embedded(
//! #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
//! # )?;
//! # let client = taran::Context::new().aeron_dir(driver.aeron_dir()).connect()?;
//! # let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
//! # let publication = client.add_publication("aeron:ipc", 1001)?;
//! # while publication.offer(&[7; 5000]).is_err() { std::thread::yield_now(); }
//! let mut assembler = taran::FragmentAssembler::new();
//! let mut messages = 0;
//! while messages == 0 {
//!     subscription.poll(assembler.wrap(|message, header| {
//!         assert_eq!(message.len(), 5000);
//!         println!("from session {}", header.session_id());
//!         messages += 1;
//!     }), 10)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A message in one fragment passes without a copy. The buffers of the others are kept, so that nothing is allocated
//! once the longest message has been seen. A message whose beginning was missed is left out.

mod builder;

use std::collections::HashMap;

use builder::Builder;

use crate::Action;
use crate::header::Header;

/// Where an assembler keeps its unfinished messages: one place per session.
#[derive(Debug, Default)]
struct Sessions {
    builders: HashMap<i32, Builder>,
}

impl Sessions {
    /// The builder this fragment belongs to; `None` if it continues a message whose beginning was not seen.
    fn builder_for(&mut self, header: &Header<'_>) -> Option<&mut Builder> {
        let session_id = header.session_id();
        if header.is_begin() {
            Some(self.builders.entry(session_id).or_default())
        } else {
            self.builders.get_mut(&session_id)
        }
    }
}

fn deliver(
    builder: &mut Builder,
    fragment: &[u8],
    header: &Header<'_>,
    deliver_to: &mut impl FnMut(&[u8], &Header<'_>),
) {
    if builder.push(fragment, header) {
        let (message, whole) = builder.message(header);
        deliver_to(message, &whole);
        builder.reset();
    }
}

fn deliver_controlled(
    builder: &mut Builder,
    fragment: &[u8],
    header: &Header<'_>,
    deliver_to: &mut impl FnMut(&[u8], &Header<'_>) -> Action,
) -> Action {
    let before = builder.mark();
    if !builder.push(fragment, header) {
        return Action::Continue;
    }
    let (message, whole) = builder.message(header);
    let action = deliver_to(message, &whole);
    if action == Action::Abort {
        builder.rewind(before);
    } else {
        builder.reset();
    }
    action
}

/// Puts messages of any number of sessions together.
///
/// Use one per subscription. The messages of different sessions may interleave.
#[derive(Debug, Default)]
pub struct FragmentAssembler {
    sessions: Sessions,
}

impl FragmentAssembler {
    /// An assembler with no message under construction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A fragment handler for `poll` that calls `deliver_to` with whole messages.
    pub fn wrap<'a, F>(&'a mut self, mut deliver_to: F) -> impl FnMut(&[u8], &Header<'_>) + 'a
    where
        F: FnMut(&[u8], &Header<'_>) + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                deliver_to(fragment, header);
            } else if let Some(builder) = self.sessions.builder_for(header) {
                deliver(builder, fragment, header, &mut deliver_to);
            }
        }
    }

    /// Frees the buffer of a session that has ended. True if there was one.
    pub fn forget_session(&mut self, session_id: i32) -> bool {
        self.sessions.builders.remove(&session_id).is_some()
    }

    /// Frees all buffers; messages under construction are dropped.
    pub fn clear(&mut self) {
        self.sessions.builders.clear();
    }
}

/// As [`FragmentAssembler`], for controlled polls.
///
/// When the handler aborts a message that took several fragments, its last fragment is delivered again by the next
/// poll, and with it the whole message.
#[derive(Debug, Default)]
pub struct ControlledFragmentAssembler {
    sessions: Sessions,
}

impl ControlledFragmentAssembler {
    /// An assembler with no message under construction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A fragment handler for `controlled_poll` that calls `deliver_to` with whole messages.
    pub fn wrap<'a, F>(
        &'a mut self,
        mut deliver_to: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Action + 'a
    where
        F: FnMut(&[u8], &Header<'_>) -> Action + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                return deliver_to(fragment, header);
            }
            match self.sessions.builder_for(header) {
                Some(builder) => deliver_controlled(builder, fragment, header, &mut deliver_to),
                None => Action::Continue,
            }
        }
    }

    /// Frees the buffer of a session that has ended. True if there was one.
    pub fn forget_session(&mut self, session_id: i32) -> bool {
        self.sessions.builders.remove(&session_id).is_some()
    }

    /// Frees all buffers; messages under construction are dropped.
    pub fn clear(&mut self) {
        self.sessions.builders.clear();
    }
}

/// Puts the messages of one image together, without looking a session up.
#[derive(Debug, Default)]
pub struct ImageFragmentAssembler {
    builder: Builder,
}

impl ImageFragmentAssembler {
    /// An assembler with no message under construction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A fragment handler for `Image::poll` that calls `deliver_to` with whole messages.
    pub fn wrap<'a, F>(&'a mut self, mut deliver_to: F) -> impl FnMut(&[u8], &Header<'_>) + 'a
    where
        F: FnMut(&[u8], &Header<'_>) + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                deliver_to(fragment, header);
            } else {
                deliver(&mut self.builder, fragment, header, &mut deliver_to);
            }
        }
    }
}

/// As [`ImageFragmentAssembler`], for controlled polls.
#[derive(Debug, Default)]
pub struct ImageControlledFragmentAssembler {
    builder: Builder,
}

impl ImageControlledFragmentAssembler {
    /// An assembler with no message under construction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A fragment handler for `Image::controlled_poll` that calls `deliver_to` with whole messages.
    pub fn wrap<'a, F>(
        &'a mut self,
        mut deliver_to: F,
    ) -> impl FnMut(&[u8], &Header<'_>) -> Action + 'a
    where
        F: FnMut(&[u8], &Header<'_>) -> Action + 'a,
    {
        move |fragment, header| {
            if header.is_whole() {
                return deliver_to(fragment, header);
            }
            deliver_controlled(&mut self.builder, fragment, header, &mut deliver_to)
        }
    }
}
