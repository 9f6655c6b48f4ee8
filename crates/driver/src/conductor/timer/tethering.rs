//! What is done about subscribers that may be left behind, whatever it is that they read.

use taran_core::counters::Counter;

use super::super::counters::Counters;
use super::super::ipc::IpcPublication;
use super::super::links::Readable;
use super::super::network::{Image, NetworkPublication};
use super::super::replies::Replies;
use super::super::subscribers::TetherEvent;
use super::super::subscriptions::Subscriptions;

/// A log with such subscribers.
pub(super) trait Tethering {
    /// As clients are told of it.
    fn readable(&self) -> Readable<'_>;

    /// A rested subscriber comes back.
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

/// What the agent that follows the positions of a log has to know.
#[derive(Debug)]
pub(super) enum Follow {
    Begin(Counter),
    /// Of the counter with this id.
    End(i32),
}

/// Those who are told.
pub(super) struct Told<'a> {
    pub(super) replies: &'a mut Replies,
    pub(super) subscriptions: &'a Subscriptions,
    pub(super) counters: &'a mut Counters,
}

impl Told<'_> {
    /// Does what a step of a subscriber calls for. `follow` passes on to the agent what it has to know.
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

    /// Tells everybody who reads a log that it is gone.
    pub(super) fn unavailable(&mut self, image_id: i64, readers: impl Iterator<Item = i64>) {
        for subscription_id in readers {
            if let Some(subscription) = self.subscriptions.find(subscription_id) {
                self.replies.image_unavailable(image_id, subscription);
            }
        }
    }
}
