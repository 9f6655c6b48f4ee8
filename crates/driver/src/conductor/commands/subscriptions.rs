//! Adding and removing subscriptions.

use std::sync::Arc;

use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::Response;
use taran_protocol::uri::{Channel, Role, SubscriptionParams};

use super::super::failure::Failure;
use super::super::features;
use super::super::links::{attach_ipc, ipc_position};
use super::super::owners::Owners;
use super::super::stop::Stop;
use super::super::subscribers::Subscriber;
use super::super::subscriptions::{Source, Subscription};
use super::super::waiting::Answers;

/// Status counter id that says "none": IPC has no channel of its own.
const NO_STATUS: i32 = -1;

/// An add command, its channel read.
#[derive(Debug)]
pub(super) struct NewSubscription {
    pub(super) client_id: i64,
    pub(super) id: i64,
    pub(super) stream_id: i32,
    pub(super) channel: Channel,
    pub(super) params: SubscriptionParams,
}

impl NewSubscription {
    /// The entry for the books.
    pub(super) fn entry(&self, source: Source) -> Subscription {
        Subscription {
            id: self.id,
            client_id: self.client_id,
            source,
            stream_id: self.stream_id,
            text: Arc::from(self.channel.uri().as_str()),
            channel: self.channel.clone(),
            params: self.params.clone(),
        }
    }
}

impl Owners {
    pub(super) fn add_subscription(
        &mut self,
        client_id: i64,
        id: i64,
        stream_id: i32,
        channel: &str,
        answers: &Answers,
    ) -> Result<(), Stop> {
        let channel = Channel::for_subscription(channel).map_err(Failure::from)?;
        features::check_channel(&channel, Role::Subscription)?;
        let defaults = &self.settings.subscription_defaults;
        let params = SubscriptionParams::new(&channel, defaults).map_err(Failure::from)?;
        let new = NewSubscription {
            client_id,
            id,
            stream_id,
            channel,
            params,
        };
        match &new.channel {
            Channel::Ipc(_) => Ok(self.add_ipc_subscription(&new)?),
            Channel::Udp(_) | Channel::Spy(_) => self.add_network_subscription(&new, answers),
        }
    }

    fn add_ipc_subscription(&mut self, new: &NewSubscription) -> Result<(), Failure> {
        let subscription = new.entry(Source::Ipc);
        self.subscriptions.check(&subscription)?;
        self.ensure_client(subscription.client_id)?;
        let positions = self.ipc_positions(&subscription)?;
        self.subscriptions.insert(subscription);
        self.replies.send(&Response::SubscriptionReady {
            correlation_id: new.id,
            status_counter_id: NO_STATUS,
        });
        for (publication_id, subscriber) in positions {
            if let Some(publication) = self.ipc.find(publication_id) {
                attach_ipc(&mut self.replies, publication, subscriber);
            }
        }
        Ok(())
    }

    /// A position on every publication that the subscription reads; all or none.
    fn ipc_positions(
        &mut self,
        subscription: &Subscription,
    ) -> Result<Vec<(i64, Subscriber)>, Failure> {
        let Self {
            ipc, counters, now, ..
        } = self;
        let mut positions: Vec<(i64, Subscriber)> = Vec::new();
        for publication in ipc.joinable(subscription.stream_id, subscription.params.session_id) {
            match ipc_position(counters, publication, subscription, now.nanos) {
                Ok(subscriber) => positions.push((publication.registration_id, subscriber)),
                Err(failure) => {
                    counters.free_all(positions.iter().map(|(_, subscriber)| &subscriber.position));
                    return Err(failure);
                }
            }
        }
        Ok(positions)
    }

    pub(super) fn remove_subscription(
        &mut self,
        correlation_id: i64,
        id: i64,
    ) -> Result<(), Failure> {
        if !self.end_subscription(id) {
            return Err(Failure::new(
                ErrorCode::UnknownSubscription,
                format!("unknown subscription: registration id {id}"),
            ));
        }
        self.succeed(correlation_id);
        Ok(())
    }

    /// Takes a subscription off everything it reads, without a word to its client; false if there is none.
    pub(in crate::conductor) fn end_subscription(&mut self, id: i64) -> bool {
        let Some(subscription) = self.subscriptions.remove(id) else {
            return false;
        };
        match subscription.source {
            Source::Ipc => {
                for publication in self.ipc.iter_mut() {
                    if let Some(position) = publication.remove_subscriber(id) {
                        self.counters.free(position.id());
                    }
                }
            }
            Source::Network(endpoint) => self.end_network_subscription(endpoint, &subscription),
        }
        true
    }
}
