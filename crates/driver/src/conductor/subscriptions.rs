// SPDX-License-Identifier: Apache-2.0
//! Subscriptions of all clients, and their matching with streams.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use taran_protocol::uri::{Channel, SubscriptionParams};

use super::failure::Failure;
use crate::boundary::EndpointId;

/// Origin of the streams of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Ipc,
    /// Network publications of this driver, read locally.
    Spy(SpiedChannel),
    Network(EndpointId),
}

/// Publications that a spy reads: those on the endpoint with this canonical form or this tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpiedChannel {
    pub(crate) canonical: Arc<str>,
    pub(crate) tag: Option<i64>,
}

/// Stream of a network publication, as matched with spies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpiedStream<'a> {
    /// Canonical form of the endpoint.
    pub(crate) canonical: &'a str,
    /// Channel tag of the endpoint.
    pub(crate) tag: Option<i64>,
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
}

/// A subscription of a client, or one local destination of a multi-destination subscription.
#[doc(alias = "SubscriptionLink")]
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    /// Correlation id of the command that added the subscription or destination.
    pub(crate) id: i64,
    /// Id of the subscription as known to its client.
    pub(crate) registration_id: i64,
    pub(crate) client_id: i64,
    pub(crate) source: Source,
    pub(crate) stream_id: i32,
    /// URI of the channel.
    pub(crate) text: Arc<str>,
    pub(crate) channel: Channel,
    pub(crate) params: SubscriptionParams,
    /// True for a response subscription whose session is still unknown.
    pub(crate) awaits_session: bool,
}

impl Subscription {
    /// Returns the session of a response subscription, if it is known.
    pub(crate) fn response_session(&self) -> Option<i32> {
        self.params.session_id.filter(|_| !self.awaits_session)
    }

    /// Returns true if the subscription matches the stream.
    fn matches(&self, source: &Source, stream_id: i32, session_id: i32) -> bool {
        self.source == *source && self.stream_id == stream_id && self.accepts_session(session_id)
    }

    fn accepts_session(&self, session_id: i32) -> bool {
        !self.awaits_session
            && self
                .params
                .session_id
                .is_none_or(|requested| requested == session_id)
    }

    /// Returns true if the subscription is a spy on the stream (docs/spec/wire.md §2.12). A match by tag includes every
    /// session.
    pub(crate) fn spies_on(&self, stream: &SpiedStream<'_>) -> bool {
        let Source::Spy(channel) = &self.source else {
            return false;
        };
        let is_same_tag = channel.tag.is_some() && channel.tag == stream.tag;
        let is_same_channel =
            *channel.canonical == *stream.canonical && self.accepts_session(stream.session_id);
        self.stream_id == stream.stream_id && (is_same_tag || is_same_channel)
    }
}

/// All subscriptions of the driver.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    entries: BTreeMap<i64, Subscription>,
    /// Stream id and entry id.
    streams: BTreeSet<(i32, i64)>,
    /// Registration id and entry id.
    registrations: BTreeSet<(i64, i64)>,
}

impl Subscriptions {
    pub(crate) fn find(&self, id: i64) -> Option<&Subscription> {
        self.entries.get(&id)
    }

    /// Rejects a subscription whose id is in use, or which conflicts with one that shares its images.
    pub(crate) fn check(&self, subscription: &Subscription) -> Result<(), Failure> {
        if self.entries.contains_key(&subscription.id) {
            return Err(Failure::generic(format!(
                "registration id {} is in use by another subscription",
                subscription.id
            )));
        }
        if !matches!(subscription.source, Source::Network(_)) {
            return Ok(());
        }
        let other = self.of_stream(subscription.stream_id).find(|other| {
            other.source == subscription.source
                && other.params.session_id == subscription.params.session_id
        });
        match other {
            None => Ok(()),
            Some(other) => Ok(subscription.params.check_compatible(
                &subscription.channel,
                &other.params,
                &other.channel,
            )?),
        }
    }

    /// Sets the session of a response subscription.
    pub(crate) fn set_response_session(&mut self, id: i64, session_id: i32) {
        if let Some(subscription) = self.entries.get_mut(&id) {
            subscription.params.session_id = Some(session_id);
            subscription.awaits_session = false;
        }
    }

    pub(crate) fn insert(&mut self, subscription: Subscription) {
        let id = subscription.id;
        self.streams.insert((subscription.stream_id, id));
        self.registrations
            .insert((subscription.registration_id, id));
        self.entries.insert(id, subscription);
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<Subscription> {
        let removed = self.entries.remove(&id)?;
        self.streams.remove(&(removed.stream_id, id));
        self.registrations.remove(&(removed.registration_id, id));
        Some(removed)
    }

    /// Returns the subscriptions of a stream on any channel, oldest first.
    fn of_stream(&self, stream_id: i32) -> impl Iterator<Item = &Subscription> {
        let ids = self
            .streams
            .range((stream_id, i64::MIN)..=(stream_id, i64::MAX));
        ids.filter_map(|(_, id)| self.entries.get(id))
    }

    /// Returns the subscriptions that match a stream, oldest first.
    pub(crate) fn matching(
        &self,
        source: &Source,
        stream_id: i32,
        session_id: i32,
    ) -> impl Iterator<Item = &Subscription> {
        self.of_stream(stream_id)
            .filter(move |s| s.matches(source, stream_id, session_id))
    }

    /// Returns the spies on a stream, oldest first.
    pub(crate) fn matching_spies(
        &self,
        stream: SpiedStream<'_>,
    ) -> impl Iterator<Item = &Subscription> {
        self.of_stream(stream.stream_id)
            .filter(move |s| s.spies_on(&stream))
    }

    /// Returns the ids of a subscription and its local destinations.
    pub(crate) fn of_registration(&self, registration_id: i64) -> Vec<i64> {
        let parts = (registration_id, i64::MIN)..=(registration_id, i64::MAX);
        self.registrations.range(parts).map(|&(_, id)| id).collect()
    }

    /// Returns the oldest local destination of a subscription with this URI.
    pub(crate) fn local_destination(&self, registration_id: i64, text: &str) -> Option<i64> {
        let mut parts = self.of_registration(registration_id).into_iter();
        parts.find(|id| {
            let part = self.entries.get(id);
            *id != registration_id && part.is_some_and(|part| *part.text == *text)
        })
    }

    /// Returns true if an endpoint has subscriptions.
    pub(crate) fn is_endpoint_used(&self, endpoint: EndpointId) -> bool {
        let mut entries = self.entries.values();
        entries.any(|subscription| subscription.source == Source::Network(endpoint))
    }

    /// Returns the number of subscriptions on an endpoint with exactly this stream and session.
    pub(crate) fn count(
        &self,
        endpoint: EndpointId,
        stream_id: i32,
        session_id: Option<i32>,
    ) -> usize {
        self.of_stream(stream_id)
            .filter(|s| {
                s.source == Source::Network(endpoint)
                    && !s.awaits_session
                    && s.params.session_id == session_id
            })
            .count()
    }

    /// Returns the ids of the subscriptions of a client.
    pub(crate) fn of_client(&self, client_id: i64) -> Vec<i64> {
        self.entries
            .values()
            .filter(|s| s.client_id == client_id)
            .map(|s| s.id)
            .collect()
    }
}
