// SPDX-License-Identifier: Apache-2.0
//! Wake conditions of idle publications and images: progress of the other half.

use std::sync::Arc;

use crate::boundary::{ImageShared, PublicationShared};
use crate::poll_schedule::WakeCondition;

/// Unchanged while the sender position and the presence of receivers are.
#[derive(Debug)]
pub(crate) struct SenderWakeCondition {
    shared: Arc<PublicationShared>,
    position: i64,
    is_connected: bool,
}

impl SenderWakeCondition {
    pub(super) fn new(shared: &Arc<PublicationShared>) -> Self {
        Self {
            position: shared.position(),
            is_connected: shared.is_connected(),
            shared: Arc::clone(shared),
        }
    }

    /// Returns the sender position of the snapshot.
    pub(super) fn position(&self) -> i64 {
        self.position
    }
}

impl WakeCondition for SenderWakeCondition {
    fn is_unchanged(&self) -> bool {
        self.shared.position() == self.position && self.shared.is_connected() == self.is_connected
    }

    fn prefetch(&self) {
        self.shared.prefetch_sender_side();
    }
}

/// Unchanged while the receiver schedules no status message with a new position, needs no more pages, and the stream has
/// not ended.
#[derive(Debug)]
pub(crate) struct ReceiverWakeCondition {
    shared: Arc<ImageShared>,
    status_position: i64,
    demand_position: i64,
}

impl ReceiverWakeCondition {
    pub(super) fn new(
        shared: &Arc<ImageShared>,
        status_position: i64,
        demand_position: i64,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            status_position,
            demand_position,
        }
    }
}

impl WakeCondition for ReceiverWakeCondition {
    fn is_unchanged(&self) -> bool {
        self.shared.status_position() == self.status_position
            && self.shared.demand_position() == self.demand_position
            && !self.shared.has_ended()
    }

    fn prefetch(&self) {
        self.shared.prefetch_receiver_side();
    }
}
