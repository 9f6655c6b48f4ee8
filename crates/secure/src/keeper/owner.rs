// SPDX-License-Identifier: Apache-2.0
//! Owners of streams: the peer whose key for a stream was installed first keeps it until its last key is closed and the image
//! is gone (docs/spec/transport-security.md §3.3).
//!
//! Contract: `key_opened` and `key_closed` for each key, `image_begun` when an image is about to be made, `image_gone` when
//! it is gone or was not made, `on_tick` at the time of `next_deadline`.

use std::collections::BTreeMap;

use super::SECOND;

/// Subscription endpoint, session id and stream id.
type Stream = (u64, (i32, i32));

/// An owner without keys and image keeps the stream this long: a SETUP that its last key opened may be on its way to
/// become an image.
const GRACE: u64 = 10 * SECOND;

struct Owner {
    name: String,
    keys: usize,
    has_image: bool,
    /// Time since which it has been seen without keys and image.
    idle_since: Option<u64>,
}

impl Owner {
    const fn is_idle(&self) -> bool {
        self.keys == 0 && !self.has_image
    }
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

    /// Counts a key that was installed.
    pub(crate) fn key_opened(&mut self, stream: Stream, name: &str) {
        let owner = self.streams.entry(stream).or_insert_with(|| Owner {
            name: name.to_owned(),
            keys: 0,
            has_image: false,
            idle_since: None,
        });
        owner.keys += 1;
        owner.idle_since = None;
    }

    /// Counts a key that was closed.
    pub(crate) fn key_closed(&mut self, stream: Stream) {
        if let Some(owner) = self.streams.get_mut(&stream) {
            owner.keys = owner.keys.saturating_sub(1);
        }
    }

    /// Takes the news that an image is about to be made. Returns false if the stream has no owner.
    pub(crate) fn image_begun(&mut self, stream: Stream) -> bool {
        let owner = self.streams.get_mut(&stream);
        owner.is_some_and(|owner| {
            owner.has_image = true;
            owner.idle_since = None;
            true
        })
    }

    /// Takes the news that there is no image, or none any more.
    pub(crate) fn image_gone(&mut self, stream: Stream) {
        let Some(owner) = self.streams.get_mut(&stream) else {
            return;
        };
        owner.has_image = false;
        if owner.is_idle() {
            self.streams.remove(&stream);
        }
    }

    /// Forgets the owners that have been without keys and image for long enough.
    pub(crate) fn on_tick(&mut self, now: u64) {
        self.streams.retain(|_, owner| {
            if !owner.is_idle() {
                return true;
            }
            let since = *owner.idle_since.get_or_insert(now);
            now < since + GRACE
        });
    }

    /// Returns the time at which `on_tick` has something to do; none if all owners have keys or images.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let idle = self.streams.values().filter(|owner| owner.is_idle());
        // The time since when is taken at the next tick.
        idle.map(|owner| owner.idle_since.map_or(0, |since| since + GRACE))
            .min()
    }

    /// Returns the number of streams with an owner.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Forgets a subscription endpoint that is gone with all its images.
    pub(crate) fn forget(&mut self, group: u64) {
        self.streams.retain(|(of, _), _| *of != group);
    }
}
