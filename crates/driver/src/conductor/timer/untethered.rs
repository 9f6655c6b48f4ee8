// SPDX-License-Identifier: Apache-2.0
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
    fn log_descriptor(&self) -> LogDescriptor<'_>;

    /// Rejoins a rested subscriber.
    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64);
}

impl SubscribedLog for Image {
    fn log_descriptor(&self) -> LogDescriptor<'_> {
        LogDescriptor::image(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

impl SubscribedLog for IpcPublication {
    fn log_descriptor(&self) -> LogDescriptor<'_> {
        LogDescriptor::ipc(self)
    }

    fn rejoin(&mut self, subscription_id: i64, position: &Counter, now_ns: i64) {
        self.rejoin(subscription_id, position, now_ns);
    }
}

impl SubscribedLog for NetworkPublication {
    fn log_descriptor(&self) -> LogDescriptor<'_> {
        LogDescriptor::spy(self)
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
    pub(super) responses: &'a mut ResponseSender,
    pub(super) subscriptions: &'a Subscriptions,
    pub(super) counters: &'a mut Counters,
}

impl Notifier<'_> {
    /// Handles a state change of a subscriber. `track` passes position changes to the agent.
    pub(super) fn on_untethered_event<T: SubscribedLog>(
        &mut self,
        log: &mut T,
        event: UntetheredEvent,
        now_ns: i64,
        mut track: impl FnMut(TrackPosition),
    ) {
        match event {
            UntetheredEvent::Unavailable { subscription_id } => {
                if let Some(subscription) = self.subscriptions.find(subscription_id) {
                    self.responses
                        .send_unavailable_image(log.log_descriptor().image_id(), subscription);
                }
            }
            UntetheredEvent::Resting { counter_id, .. } => track(TrackPosition::Stop(counter_id)),
            UntetheredEvent::Dropped { position, .. } => {
                track(TrackPosition::Stop(position.id()));
                self.counters.free_tracked(position.id());
            }
            UntetheredEvent::Rested {
                subscription_id,
                position,
            } => {
                log.rejoin(subscription_id, &position, now_ns);
                if let Some(subscription) = self.subscriptions.find(subscription_id) {
                    self.responses.send_available_image(
                        &log.log_descriptor(),
                        subscription,
                        position.id(),
                    );
                }
                track(TrackPosition::Start(position));
            }
        }
    }

    /// Reports the image as unavailable to its subscribers.
    pub(super) fn notify_unavailable(
        &mut self,
        image_id: i64,
        subscriptions: impl Iterator<Item = i64>,
    ) {
        for subscription_id in subscriptions {
            if let Some(subscription) = self.subscriptions.find(subscription_id) {
                self.responses
                    .send_unavailable_image(image_id, subscription);
            }
        }
    }
}
