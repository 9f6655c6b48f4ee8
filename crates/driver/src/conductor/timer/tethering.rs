//! Handling of untethered subscribers, common to IPC publications, network publications and images.

use taran_core::counters::Counter;

use super::super::counters::Counters;
use super::super::ipc::IpcPublication;
use super::super::links::Readable;
use super::super::network::{Image, NetworkPublication};
use super::super::replies::Replies;
use super::super::subscribers::TetherEvent;
use super::super::subscriptions::Subscriptions;

/// A log with untethered subscribers.
pub(super) trait Tethering {
    /// Returns the descriptor of the log.
    fn readable(&self) -> Readable<'_>;

    /// Rejoins a rested subscriber.
    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64);
}

impl Tethering for Image {
    fn readable(&self) -> Readable<'_> {
        Readable::image(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

impl Tethering for IpcPublication {
    fn readable(&self) -> Readable<'_> {
        Readable::ipc(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

impl Tethering for NetworkPublication {
    fn readable(&self) -> Readable<'_> {
        Readable::spied(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

/// Change of the positions that an agent tracks.
#[derive(Debug)]
pub(super) enum Follow {
    Begin(Counter),
    /// Counter id of the position.
    End(i32),
}

/// Handles untethered events and notifies clients.
pub(super) struct Told<'a> {
    pub(super) replies: &'a mut Replies,
    pub(super) subscriptions: &'a Subscriptions,
    pub(super) counters: &'a mut Counters,
}

impl Told<'_> {
    /// Handles a state change of a subscriber. `track` passes position changes to the agent.
    pub(super) fn tethered<T: Tethering>(
        &mut self,
        log: &mut T,
        step: TetherEvent,
        now_ns: i64,
        mut follow: impl FnMut(Follow),
    ) {
        match step {
            TetherEvent::Unavailable { subscription_id } => {
                if let Some(subscription) = self.subscriptions.find(subscription_id) {
                    self.replies
                        .image_unavailable(log.readable().image_id(), subscription);
                }
            }
            TetherEvent::Resting { counter_id, .. } => follow(Follow::End(counter_id)),
            TetherEvent::Dropped { position, .. } => {
                follow(Follow::End(position.id()));
                self.counters.free_followed(position.id());
            }
            TetherEvent::Rested {
                subscription_id,
                position,
            } => {
                log.rejoin(subscription_id, &position, now_ns);
                if let Some(subscription) = self.subscriptions.find(subscription_id) {
                    self.replies
                        .image_available(&log.readable(), subscription, position.id());
                }
                follow(Follow::Begin(position));
            }
        }
    }

    /// Reports the image as unavailable to its subscribers.
    pub(super) fn unavailable(&mut self, image_id: i64, readers: impl Iterator<Item = i64>) {
        for subscription_id in readers {
            if let Some(subscription) = self.subscriptions.find(subscription_id) {
                self.replies.image_unavailable(image_id, subscription);
            }
        }
    }
}
