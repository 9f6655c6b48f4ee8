//! Atomics shared by the conductor's and the sender's half of a network publication.

use taran_core::memory::prefetch_value;
use taran_core::sync::{AtomicBool, AtomicI64, Ordering};

/// What the two halves of a network publication see of each other, besides its log. Its counters are in memory that
/// clients write: they are to be looked at, and neither half believes them.
///
/// Setters named `sender_*` are called by the sender only, `conductor_*` by the conductor only. All loads acquire and
/// all stores release, so that whatever was done before a flag was raised is visible to whoever saw it.
#[derive(Debug, Default)]
pub struct PublicationShared {
    sender: SenderSide,
    conductor: ConductorSide,
}

/// Written by the sender. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct SenderSide {
    position: AtomicI64,
    has_receivers: AtomicBool,
    has_required_receivers: AtomicBool,
    unicast_end_of_stream_received: AtomicBool,
}

/// Written by the conductor. On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ConductorSide {
    is_end_of_stream: AtomicBool,
    is_revoked: AtomicBool,
}

impl PublicationShared {
    /// Nobody connected, not ended, nothing sent of what lies from `start_position` on.
    #[must_use]
    pub fn new(start_position: i64) -> Self {
        let shared = Self::default();
        shared.sender_position(start_position);
        shared
    }

    /// Up to where the stream was sent.
    #[must_use]
    pub fn position(&self) -> i64 {
        self.sender.position.load(Ordering::Acquire)
    }

    /// At least one receiver sent a status message within the connection timeout.
    #[must_use]
    pub fn has_receivers(&self) -> bool {
        self.sender.has_receivers.load(Ordering::Acquire)
    }

    /// Flow control has the receivers it requires. The publication is connected when this and
    /// [`Self::has_receivers`] hold, or when it has spies and simulates a connection for them (docs/spec/wire.md §3.6).
    #[must_use]
    pub fn has_required_receivers(&self) -> bool {
        self.sender.has_required_receivers.load(Ordering::Acquire)
    }

    /// Receivers are there, and those that are required.
    pub(crate) fn is_received(&self) -> bool {
        self.has_receivers() && self.has_required_receivers()
    }

    /// Asks for the memory that the sender writes.
    pub(crate) fn prefetch_sender_side(&self) {
        prefetch_value(&self.sender.position);
    }

    /// The one receiver of a unicast publication said that it has everything or leaves, and nobody has spoken since:
    /// linger may end early.
    #[must_use]
    pub fn is_unicast_end_of_stream_received(&self) -> bool {
        self.sender
            .unicast_end_of_stream_received
            .load(Ordering::Acquire)
    }

    /// Everything published was sent and nothing will follow: heartbeats carry EOS.
    #[must_use]
    pub fn is_end_of_stream(&self) -> bool {
        self.conductor.is_end_of_stream.load(Ordering::Acquire)
    }

    /// The publication was revoked: heartbeats carry EOS and REVOKED.
    #[must_use]
    pub fn is_revoked(&self) -> bool {
        self.conductor.is_revoked.load(Ordering::Acquire)
    }

    /// Conductor: the stream has ended (docs/spec/wire.md §3.10).
    pub fn conductor_end_of_stream(&self) {
        self.conductor
            .is_end_of_stream
            .store(true, Ordering::Release);
    }

    /// Conductor: the publication was revoked. Implies the end of the stream.
    pub fn conductor_revoke(&self) {
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
