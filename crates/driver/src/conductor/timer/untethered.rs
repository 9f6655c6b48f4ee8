//! Handling of untethered subscribers, common to IPC publications, network publications and images.

use taran_core::counters::Counter;

use super::super::counters::Counters;
use super::super::ipc::IpcPublication;
use super::super::network::{Image, NetworkPublication};
use super::super::response_sender::ResponseSender;
use super::super::subscribers::UntetheredEvent;
use super::super::subscription_linking::LogDescriptor;
use super::super::subscriptions::Subscriptions;

/// A log with untethered subscribers.
pub(super) trait SubscribedLog {
    /// Returns the descriptor of the log.
    fn readable(&self) -> LogDescriptor<'_>;

    /// Rejoins a rested subscriber.
    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64);
}

impl SubscribedLog for Image {
    fn readable(&self) -> LogDescriptor<'_> {
        LogDescriptor::image(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

impl SubscribedLog for IpcPublication {
    fn readable(&self) -> LogDescriptor<'_> {
        LogDescriptor::ipc(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

impl SubscribedLog for NetworkPublication {
    fn readable(&self) -> LogDescriptor<'_> {
        LogDescriptor::spied(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

/// Change of the positions that an agent tracks.
#[derive(Debug)]
pub(super) enum TrackPosition {
    Start(Counter),
    /// Counter id of the position.
    Stop(i32),
}

/// Handles untethered events and notifies clients.
pub(super) struct Notifier<'a> {
    pub(super) replies: &'a mut ResponseSender,
    pub(super) subscriptions: &'a Subscriptions,
    pub(super) counters: &'a mut Counters,
}

impl Notifier<'_> {
    /// Handles a state change of a subscriber. `track` passes position changes to the agent.
    pub(super) fn tethered<T: SubscribedLog>(
        &mut self,
        log: &mut T,
        step: UntetheredEvent,
        now_ns: i64,
        mut follow: impl FnMut(TrackPosition),
    ) {
        match step {
            UntetheredEvent::Unavailable { subscription_id } => {
                if let Some(subscription) = self.subscriptions.find(subscription_id) {
                    self.replies
                        .image_unavailable(log.readable().image_id(), subscription);
                }
            }
            UntetheredEvent::Resting { counter_id, .. } => follow(TrackPosition::Stop(counter_id)),
            UntetheredEvent::Dropped { position, .. } => {
                follow(TrackPosition::Stop(position.id()));
                self.counters.free_followed(position.id());
            }
            UntetheredEvent::Rested {
                subscription_id,
                position,
            } => {
                log.rejoin(subscription_id, &position, now_ns);
                if let Some(subscription) = self.subscriptions.find(subscription_id) {
                    self.replies
                        .image_available(&log.readable(), subscription, position.id());
                }
                follow(TrackPosition::Start(position));
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
