//! Who publishes and consumes, and the record of what was sent.
//!
//! A [`Publisher`] fills its messages with a pattern made from the stream and the index of the message in it, and writes
//! each into the [`Ledger`]; a [`Subscriber`] holds what it gets against that. Both take one turn in each step of their
//! world, like any other agent.

mod handle;
mod images;
mod ledger;
mod pattern;
mod publisher;
mod publishing;
mod requests;
mod subscriber;
mod subscribing;

pub use images::EndedImage;
pub use ledger::{Fate, Ledger, Message, Stream, StreamKey};
pub use pattern::Lengths;
pub use publisher::Publisher;
pub use publishing::Publishing;
pub use requests::{Request, What};
pub use subscriber::{Stamps, Subscriber};
pub use subscribing::Subscribing;

pub(crate) use pattern::fill;

/// True for an answer of the driver after which one asks again: what was closed last is still about to go.
fn passes(error: &taran::AddError) -> bool {
    matches!(error, taran::AddError::Registration(refused)
        if refused.code == taran::ErrorCode::ResourceTemporarilyUnavailable)
}
