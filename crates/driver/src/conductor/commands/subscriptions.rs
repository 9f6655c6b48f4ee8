// SPDX-License-Identifier: Apache-2.0
//! Commands that add and remove subscriptions.

use std::sync::Arc;

use taran_protocol::error_code::ErrorCode;
use taran_protocol::event::EventCode;
use taran_protocol::uri::{Channel, SubscriptionParams};

use super::super::command_error::CommandError;
use super::super::deferred_commands::ResolvedPrerequisites;
use super::super::failure::Failure;
use super::super::state::ConductorState;
use super::super::subscriptions::{Source, Subscription};
use crate::event_log::FieldValue;

/// An add command with its parsed channel.
#[derive(Debug)]
pub(super) struct NewSubscription {
    pub(super) client_id: i64,
    pub(super) id: i64,
    pub(super) stream_id: i32,
    pub(super) channel: Channel,
    pub(super) params: SubscriptionParams,
}

impl NewSubscription {
    /// Returns the entry for the subscriptions of the driver.
    pub(super) fn entry(&self, source: Source) -> Subscription {
        Subscription {
            id: self.id,
            registration_id: self.id,
            client_id: self.client_id,
            source,
            stream_id: self.stream_id,
            text: Arc::from(self.channel.uri().as_str()),
            channel: self.channel.clone(),
            params: self.params.clone(),
            awaits_session: self.params.is_response,
        }
    }
}

impl ConductorState {
    pub(super) fn add_subscription(
        &mut self,
        client_id: i64,
        id: i64,
        stream_id: i32,
        channel: &str,
        prerequisites: &ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        let channel = Channel::for_subscription(channel).map_err(Failure::from)?;
        let defaults = &self.settings.subscription_defaults;
        let params = SubscriptionParams::new(&channel, defaults).map_err(Failure::from)?;
        if matches!(channel, Channel::Udp(_)) {
            // The option, if set, replaces `cc` of each channel.
            let accepts_names = self.networking.congestion_control.is_some()
                || self.settings.receiver.congestion_control.is_some();
            params
                .check_images(&channel, accepts_names)
                .map_err(Failure::from)?;
        }
        let new = NewSubscription {
            client_id,
            id,
            stream_id,
            channel,
            params,
        };
        match &new.channel {
            Channel::Ipc(_) => Ok(self.add_ipc_subscription(&new)?),
            Channel::Udp(_) => self.add_network_subscription(&new, prerequisites),
            Channel::Spy(spied) => self.add_spy(&new, spied, prerequisites),
        }
    }

    pub(super) fn remove_subscription(
        &mut self,
        correlation_id: i64,
        id: i64,
    ) -> Result<(), Failure> {
        if !self.close_subscription(id) {
            return Err(Failure::new(
                ErrorCode::UnknownSubscription,
                format!("unknown subscription: registration id {id}"),
            ));
        }
        self.respond_success(correlation_id);
        Ok(())
    }

    /// Removes a subscription and its local destinations without a response. Returns false if it does not exist.
    pub(in crate::conductor) fn close_subscription(&mut self, id: i64) -> bool {
        if self
            .subscriptions
            .find(id)
            .is_none_or(|found| found.registration_id != id)
        {
            return false;
        }
        for part in self.subscriptions.of_registration(id) {
            let Some(subscription) = self.subscriptions.remove(part) else {
                continue;
            };
            if part == id {
                self.events.log(
                    EventCode::RemoveSubscriptionCleanup,
                    &[
                        FieldValue::Int(subscription.stream_id),
                        FieldValue::Long(id),
                        FieldValue::Text(&subscription.text),
                    ],
                );
            }
            match subscription.source {
                Source::Ipc | Source::Spy(_) => self.close_local_subscription(&subscription),
                Source::Network(endpoint) => {
                    self.close_network_subscription(endpoint, &subscription);
                }
            }
        }
        true
    }
}
