// SPDX-License-Identifier: Apache-2.0
//! Publishers and subscribers of a scenario, and the record of sent messages.
//!
//! A [`Publisher`] fills its messages with a pattern derived from the stream and the message's index, and records each
//! in the [`Ledger`]. A [`Subscriber`] compares received messages with that record. Both run one duty cycle in each
//! step of their world, like agents.

mod images;
mod ledger;
mod pattern;
mod publication_handle;
mod publisher;
mod publisher_spec;
mod requests;
mod subscriber;
mod subscriber_spec;

pub use images::EndedImage;
pub use ledger::{Ledger, Message, MessageState, Stream, StreamKey};
pub use pattern::Lengths;
pub use publisher::Publisher;
pub use publisher_spec::PublisherSpec;
pub use requests::{Request, RequestKind};
pub use subscriber::{ReservedValues, Subscriber};
pub use subscriber_spec::SubscriberSpec;

pub(crate) use pattern::fill;

/// Returns true for an error after which the request is repeated: a resource that is still being closed.
fn is_transient(error: &taran::CommandError) -> bool {
    matches!(error, taran::CommandError::Registration(refused)
        if refused.code == taran::ErrorCode::ResourceTemporarilyUnavailable)
}
