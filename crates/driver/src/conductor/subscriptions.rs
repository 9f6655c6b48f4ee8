//! Who wants which stream: the subscriptions of all clients, and which of them match a stream that appears.

use std::collections::BTreeMap;
use std::sync::Arc;

use taran_protocol::uri::{Channel, SubscriptionParams};

use super::failure::Failure;
use crate::boundary::EndpointId;

/// Where a subscription takes its streams from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Ipc,
    Network(EndpointId),
}

/// One subscription of one client.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    /// Correlation id of the command that added it.
    pub(crate) id: i64,
    pub(crate) client_id: i64,
    pub(crate) source: Source,
    pub(crate) stream_id: i32,
    /// The channel's text.
    pub(crate) text: Arc<str>,
    pub(crate) channel: Channel,
    pub(crate) params: SubscriptionParams,
}

impl Subscription {
    /// Whether it takes that stream.
    fn matches(&self, source: Source, stream_id: i32, session_id: i32) -> bool {
        self.source == source
            && self.stream_id == stream_id
            && self
                .params
                .session_id
                .is_none_or(|wanted| wanted == session_id)
    }
}

/// All subscriptions of the driver.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    entries: BTreeMap<i64, Subscription>,
}

impl Subscriptions {
    pub(crate) fn find(&self, id: i64) -> Option<&Subscription> {
        self.entries.get(&id)
    }

    /// Refuses a subscription whose id is taken, or that contradicts one that shares its images.
    pub(crate) fn check(&self, subscription: &Subscription) -> Result<(), Failure> {
        if self.entries.contains_key(&subscription.id) {
            return Err(Failure::generic(format!(
                "registration id {} is in use by another subscription",
                subscription.id
            )));
        }
        if subscription.source == Source::Ipc {
            return Ok(());
        }
        let companion = self.entries.values().find(|other| {
            other.source == subscription.source
                && other.stream_id == subscription.stream_id
                && other.params.session_id == subscription.params.session_id
        });
        match companion {
            None => Ok(()),
            Some(other) => Ok(subscription.params.check_compatible(
                &subscription.channel,
                &other.params,
                &other.channel,
            )?),
        }
    }

    pub(crate) fn insert(&mut self, subscription: Subscription) {
        self.entries.insert(subscription.id, subscription);
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<Subscription> {
        self.entries.remove(&id)
    }

    /// The subscriptions that take a stream, oldest first.
    pub(crate) fn matching(
        &self,
        source: Source,
        stream_id: i32,
        session_id: i32,
    ) -> impl Iterator<Item = &Subscription> {
        self.entries
            .values()
            .filter(move |s| s.matches(source, stream_id, session_id))
    }

    /// How many subscriptions on an endpoint want a stream in exactly this way.
    pub(crate) fn count(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> usize {
        self.entries
            .values()
            .filter(|s| {
                s.source == Source::Network(endpoint)
                    && s.stream_id == stream_id
                    && s.params.session_id == session_id
            })
            .count()
    }

    /// Ids of the subscriptions of a client.
    pub(crate) fn of_client(&self, client_id: i64) -> Vec<i64> {
        self.entries
            .values()
            .filter(|s| s.client_id == client_id)
            .map(|s| s.id)
            .collect()
    }
}
