// SPDX-License-Identifier: Apache-2.0
//! Recording events (`docs/spec/archive.md` §4.4).

use taran::{Client, CommandError, FragmentAssembler, PollError, Subscription};

use super::ArchiveContext;
use crate::protocol::{MessageError, RecordingEvent};

/// Receives the events that an archive publishes about all its recordings, if it has `aeron.archive.recording.events.enabled`.
///
/// Events are sent without a guarantee: an archive drops those that a slow subscriber has no room for.
///
/// ```no_run
/// use taran_archive_client::{ArchiveContext, RecordingEvents};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = taran::Client::builder().connect()?;
/// let context = ArchiveContext::new()
///     .recording_events_channel("aeron:udp?control-mode=dynamic|control=archive.example:8030|endpoint=client.example:0");
/// let mut events = RecordingEvents::subscribe(&client, &context)?;
/// events.poll(|event| println!("{event:?}"), 10)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RecordingEvents {
    subscription: Subscription,
    assembler: FragmentAssembler,
    malformed: u64,
}

impl RecordingEvents {
    /// Subscribes to the recording events channel of a context.
    ///
    /// # Errors
    /// The media driver refuses the channel; the client is closed.
    pub fn subscribe(client: &Client, context: &ArchiveContext) -> Result<Self, CommandError> {
        let subscription =
            client.add_subscription(&context.events_channel, context.events_stream_id)?;
        Ok(Self::of_subscription(subscription))
    }

    /// Returns the events that a subscription receives.
    #[must_use]
    pub fn of_subscription(subscription: Subscription) -> Self {
        Self {
            subscription,
            assembler: FragmentAssembler::new(),
            malformed: 0,
        }
    }

    /// Calls `handler` with up to `fragment_limit` events, and returns the number of fragments.
    ///
    /// # Errors
    /// The subscription is closed, or the driver is lost.
    pub fn poll(
        &mut self,
        mut handler: impl FnMut(&RecordingEvent<'_>),
        fragment_limit: usize,
    ) -> Result<usize, PollError> {
        let malformed = &mut self.malformed;
        let on_message =
            |message: &[u8], _: &taran::Header<'_>| match RecordingEvent::decode(message) {
                Ok(event) => handler(&event),
                Err(MessageError::UnexpectedTemplate { .. }) => {}
                Err(_) => *malformed += 1,
            };
        self.subscription
            .poll(self.assembler.wrap(on_message), fragment_limit)
    }

    /// Returns the number of messages that could not be decoded.
    #[must_use]
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns the subscription.
    #[must_use]
    pub fn subscription(&self) -> &Subscription {
        &self.subscription
    }
}
