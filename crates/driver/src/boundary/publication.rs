// SPDX-License-Identifier: Apache-2.0
//! Atomics shared by the conductor's and the sender's half of a network publication.

use taran_core::memory::prefetch_value;
use taran_core::sync::{AtomicBool, AtomicI64, Ordering};

/// State shared by the two halves of a network publication, besides its log. The position counters of the publication
/// lie in memory that clients can write; they are for observation only, and neither half reads them back.
///
/// Methods named `sender_*` are called by the sender only, `conductor_*` by the conductor only. All loads are Acquire
/// and all stores are Release: what was written before a flag was set is visible to a reader of the flag.
#[derive(Debug, Default)]
pub(crate) struct PublicationShared {
    sender: SenderSide,
    conductor: ConductorSide,
}

/// Fields written by the sender, on their own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct SenderSide {
    position: AtomicI64,
    has_receivers: AtomicBool,
    has_required_receivers: AtomicBool,
    unicast_end_of_stream_received: AtomicBool,
}

/// Fields written by the conductor, on their own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ConductorSide {
    is_end_of_stream: AtomicBool,
    is_revoked: AtomicBool,
}

impl PublicationShared {
    /// Creates the state of an open publication without receivers; data from `start_position` on is unsent.
    #[must_use]
    pub(crate) fn new(start_position: i64) -> Self {
        let shared = Self::default();
        shared.sender_position(start_position);
        shared
    }

    /// Returns the sender position: all data before it has been sent.
    #[must_use]
    pub(crate) fn position(&self) -> i64 {
        self.sender.position.load(Ordering::Acquire)
    }

    /// Returns true if a receiver sent a status message within the connection timeout.
    #[must_use]
    pub(crate) fn has_receivers(&self) -> bool {
        self.sender.has_receivers.load(Ordering::Acquire)
    }

    /// Returns true if flow control has the receivers it requires. The publication is connected when this and
    /// [`Self::has_receivers`] are true, or when it has spies that simulate a connection (docs/spec/wire.md §3.6).
    #[must_use]
    pub(crate) fn has_required_receivers(&self) -> bool {
        self.sender.has_required_receivers.load(Ordering::Acquire)
    }

    /// Returns true if there are receivers, including the required ones.
    pub(crate) fn is_connected(&self) -> bool {
        self.has_receivers() && self.has_required_receivers()
    }

    /// Prefetches the cache line that the sender writes.
    pub(crate) fn prefetch_sender_side(&self) {
        prefetch_value(&self.sender.position);
    }

    /// Returns true if the last status message of the only receiver of a unicast publication carried EOS: linger may
    /// end early.
    #[must_use]
    pub(crate) fn is_unicast_end_of_stream_received(&self) -> bool {
        self.sender
            .unicast_end_of_stream_received
            .load(Ordering::Acquire)
    }

    /// Returns true if all data was sent and no more will follow: heartbeats carry EOS.
    #[must_use]
    pub(crate) fn is_end_of_stream(&self) -> bool {
        self.conductor.is_end_of_stream.load(Ordering::Acquire)
    }

    /// Returns true if the publication was revoked: heartbeats carry EOS and REVOKED.
    #[must_use]
    pub(crate) fn is_revoked(&self) -> bool {
        self.conductor.is_revoked.load(Ordering::Acquire)
    }

    /// Called by the conductor: the stream has ended (docs/spec/wire.md §3.10).
    pub(crate) fn conductor_end_of_stream(&self) {
        self.conductor
            .is_end_of_stream
            .store(true, Ordering::Release);
    }

    /// Called by the conductor: the publication was revoked, which also ends the stream.
    pub(crate) fn conductor_revoke(&self) {
        self.conductor.is_revoked.store(true, Ordering::Release);
        self.conductor
            .is_end_of_stream
            .store(true, Ordering::Release);
    }

    pub(crate) fn sender_position(&self, position: i64) {
        self.sender.position.store(position, Ordering::Release);
    }

    pub(crate) fn sender_receivers(&self, has_receivers: bool, has_required_receivers: bool) {
        self.sender
            .has_required_receivers
            .store(has_required_receivers, Ordering::Release);
        self.sender
            .has_receivers
            .store(has_receivers, Ordering::Release);
    }

    pub(crate) fn sender_unicast_end_of_stream(&self, is_received: bool) {
        self.sender
            .unicast_end_of_stream_received
            .store(is_received, Ordering::Release);
    }
}
