//! Owners of streams: the peer whose key for a stream was installed first keeps it until its last key is closed and the image
//! is gone (docs/spec/transport-security.md §3.3).

use std::collections::BTreeMap;

/// Subscription endpoint, session id and stream id.
type Stream = (u64, (i32, i32));

struct Owner {
    name: String,
    keys: usize,
    has_image: bool,
}

/// Owners of the streams of all subscription endpoints.
#[derive(Default)]
pub(crate) struct Owners {
    streams: BTreeMap<Stream, Owner>,
}

impl Owners {
    /// Returns true if a peer owns the stream, or no other does.
    pub(crate) fn may_take(&self, stream: Stream, name: &str) -> bool {
        self.streams
            .get(&stream)
            .is_none_or(|owner| owner.name == name)
    }

    /// Returns the owner of a stream.
    pub(crate) fn of(&self, stream: Stream) -> Option<&str> {
        self.streams.get(&stream).map(|owner| owner.name.as_str())
    }

    /// Counts a key that was installed. An image may be made from now on.
    pub(crate) fn key_opened(&mut self, stream: Stream, name: &str) {
        let owner = self.streams.entry(stream).or_insert_with(|| Owner {
            name: name.to_owned(),
            keys: 0,
            has_image: true,
        });
        owner.keys += 1;
        owner.has_image = true;
    }

    /// Counts a key that was closed.
    pub(crate) fn key_closed(&mut self, stream: Stream) {
        if let Some(owner) = self.streams.get_mut(&stream) {
            owner.keys = owner.keys.saturating_sub(1);
        }
        self.release(stream);
    }

    /// Takes the news that there is no image, or none any more.
    pub(crate) fn image_gone(&mut self, stream: Stream) {
        if let Some(owner) = self.streams.get_mut(&stream) {
            owner.has_image = false;
        }
        self.release(stream);
    }

    /// Forgets a subscription endpoint that is gone with all its images.
    pub(crate) fn forget(&mut self, group: u64) {
        self.streams.retain(|(of, _), _| *of != group);
    }

    fn release(&mut self, stream: Stream) {
        let is_free = |owner: &Owner| owner.keys == 0 && !owner.has_image;
        if self.streams.get(&stream).is_some_and(is_free) {
            self.streams.remove(&stream);
        }
    }
}
