//! The sockets that channels share: one endpoint per canonical form, for sending and for receiving apart
//! (docs/spec/uri-and-configuration.md §1.6).

use std::collections::{BTreeMap, BTreeSet};

use taran_core::counters::Counter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::{Param, SubscriptionParams, TimestampOffset};

use super::super::failure::Failure;
use super::addresses::ResolvedChannel;
use crate::boundary::EndpointId;

/// Values of a channel status counter (docs/spec/shared-memory.md §5.9).
pub(crate) mod status {
    pub(crate) const ACTIVE: i64 = 1;
    pub(crate) const CLOSING: i64 = 2;
}

/// Lengths of socket buffers that a channel or an option asks for, bytes; `None`: the system's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WantedBuffers {
    pub(crate) send: Option<usize>,
    pub(crate) receive: Option<usize>,
    /// Not a buffer, but asked for and inherited like one: the time at which each datagram arrived.
    pub(crate) arrival_times: bool,
}

/// One open endpoint, as the conductor knows it. The sockets are with the sender or the receiver.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: EndpointId,
    pub(crate) resolved: ResolvedChannel,
    pub(crate) canonical: String,
    pub(crate) buffers: WantedBuffers,
    /// For sending to a group: the hops told in SETUP, 0 where neither channel nor option says any (docs/spec/wire.md §2.7).
    pub(crate) ttl: u8,
    /// For sending to several destinations: their number.
    pub(crate) destination_count: Option<Counter>,
    /// For receiving: what the subscription that opened it says about images.
    pub(crate) receive_params: Option<SubscriptionParams>,
    pub(crate) status: Counter,
    /// Where receivers or senders find it. None without a socket of its own (`control-mode=manual` of a subscription).
    pub(crate) port: Option<u16>,
    /// As `port`.
    pub(crate) local_address: Option<Counter>,
    /// Publications, or subscriptions and images, that use it.
    pub(crate) references: usize,
    pub(crate) closing: bool,
}

/// The open endpoints of one direction.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    entries: BTreeMap<EndpointId, Endpoint>,
    /// Those of a canonical form.
    forms: BTreeMap<String, BTreeSet<EndpointId>>,
    /// Channel tags, and who has them.
    tags: BTreeSet<(i64, EndpointId)>,
    uniques: u64,
}

impl Endpoints {
    /// The canonical form of a channel, with a number of its own where it cannot be shared.
    pub(crate) fn canonical(&mut self, resolved: &ResolvedChannel) -> String {
        let uniques = &mut self.uniques;
        resolved.channel.canonical_form(&resolved.roles, false, || {
            *uniques += 1;
            *uniques
        })
    }

    /// The endpoint that a channel shares: by tag, then by canonical form.
    pub(crate) fn matching(
        &self,
        resolved: &ResolvedChannel,
        canonical: &str,
    ) -> Result<Option<&Endpoint>, Failure> {
        let tag = resolved.channel.tags.channel;
        let by_tag = tag.and_then(|tag| {
            let tagged = (tag, EndpointId(i64::MIN))..=(tag, EndpointId(i64::MAX));
            let (_, id) = self.tags.range(tagged).next()?;
            self.entries.get(id)
        });
        if let Some(endpoint) = by_tag {
            let existing = &endpoint.resolved;
            resolved.channel.check_tag_match(
                &resolved.roles,
                &existing.channel,
                &existing.roles,
            )?;
            return endpoint.usable(resolved).map(Some);
        }
        let of_form = self.forms.get(canonical).into_iter().flatten();
        let mut of_form = of_form.filter_map(|id| self.entries.get(id));
        let by_form = of_form.find(|endpoint| {
            let existing_tag = endpoint.resolved.channel.tags.channel;
            let tags_differ = tag.is_some() && existing_tag.is_some() && tag != existing_tag;
            !tags_differ
        });
        by_form
            .map(|endpoint| endpoint.usable(resolved))
            .transpose()
    }

    pub(crate) fn contains(&self, id: EndpointId) -> bool {
        self.entries.contains_key(&id)
    }

    /// The ports of all of them, as long as their sockets are open.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.entries.values().filter_map(|endpoint| endpoint.port)
    }

    pub(crate) fn get(&self, id: EndpointId) -> Option<&Endpoint> {
        self.entries.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: EndpointId) -> Option<&mut Endpoint> {
        self.entries.get_mut(&id)
    }

    pub(crate) fn insert(&mut self, endpoint: Endpoint) {
        let id = endpoint.id;
        self.forms
            .entry(endpoint.canonical.clone())
            .or_default()
            .insert(id);
        if let Some(tag) = endpoint.resolved.channel.tags.channel {
            self.tags.insert((tag, id));
        }
        self.entries.insert(id, endpoint);
    }

    fn remove(&mut self, id: EndpointId) -> Option<Endpoint> {
        let endpoint = self.entries.remove(&id)?;
        if let Some(of_form) = self.forms.get_mut(&endpoint.canonical) {
            of_form.remove(&id);
            if of_form.is_empty() {
                self.forms.remove(&endpoint.canonical);
            }
        }
        if let Some(tag) = endpoint.resolved.channel.tags.channel {
            self.tags.remove(&(tag, id));
        }
        Some(endpoint)
    }

    pub(crate) fn add_reference(&mut self, id: EndpointId) {
        if let Some(endpoint) = self.entries.get_mut(&id) {
            endpoint.references += 1;
        }
    }

    /// One user less; true if that was the last, and the endpoint has to be taken from its agent.
    pub(crate) fn remove_reference(&mut self, id: EndpointId) -> bool {
        let Some(endpoint) = self.entries.get_mut(&id) else {
            return false;
        };
        endpoint.references = endpoint.references.saturating_sub(1);
        self.close_if_unused(id)
    }

    /// Marks an endpoint that nobody uses as closing; true if it was not before.
    pub(crate) fn close_if_unused(&mut self, id: EndpointId) -> bool {
        let Some(endpoint) = self.entries.get_mut(&id) else {
            return false;
        };
        let closes = endpoint.references == 0 && !endpoint.closing;
        if closes {
            endpoint.closing = true;
            endpoint.status.set(status::CLOSING);
        }
        closes
    }

    /// Its agent gave it back: the counters are for the caller to free.
    pub(crate) fn released(&mut self, id: EndpointId) -> Option<Vec<Counter>> {
        let endpoint = self.remove(id)?;
        let mut counters = vec![endpoint.status];
        counters.extend(endpoint.local_address);
        counters.extend(endpoint.destination_count);
        Some(counters)
    }
}

impl Endpoint {
    /// Publications on it have many receivers (docs/spec/wire.md §3.3).
    pub(crate) fn is_group(&self) -> bool {
        self.resolved.is_group()
    }

    /// Refuses a channel whose timestamps go elsewhere: an endpoint treats all its streams alike.
    fn check_timestamps(&self, asked: &ResolvedChannel) -> Result<(), Failure> {
        let (asks, has) = (&asked.channel, &self.resolved.channel);
        let (who, offsets) = if self.receive_params.is_some() {
            let media = (asks.media_receive_timestamp, has.media_receive_timestamp);
            let channel = (
                asks.channel_receive_timestamp,
                has.channel_receive_timestamp,
            );
            let offsets = [
                (Param::MediaReceiveTimestamp, media),
                (Param::ChannelReceiveTimestamp, channel),
            ];
            ("subscription", offsets.to_vec())
        } else {
            let channel = (asks.channel_send_timestamp, has.channel_send_timestamp);
            ("publication", vec![(Param::ChannelSendTimestamp, channel)])
        };
        for (param, (asks, has)) in offsets {
            if asks != has {
                let text = |offset: Option<TimestampOffset>| match offset {
                    None => "none".to_owned(),
                    Some(TimestampOffset::Reserved) => "reserved".to_owned(),
                    Some(TimestampOffset::Payload(bytes)) => bytes.to_string(),
                };
                return Err(Failure::generic(format!(
                    "option conflicts with existing {who}: {param}={} where it is {}, use the same or another endpoint: \
                     existingChannel={} channel={}",
                    text(asks),
                    text(has),
                    self.resolved.text(),
                    asked.text(),
                    param = param.key(),
                )));
            }
        }
        Ok(())
    }

    /// Refuses a channel that asks for other buffers, or that comes while the endpoint closes.
    fn usable(&self, asked: &ResolvedChannel) -> Result<&Self, Failure> {
        if self.closing {
            return Err(Failure::new(
                ErrorCode::ResourceTemporarilyUnavailable,
                format!(
                    "channel endpoint found in CLOSING state, please retry: channel={}",
                    asked.text()
                ),
            ));
        }
        let channel = &asked.channel;
        for (key, asked_length, existing) in [
            ("so-sndbuf", channel.send_buffer, self.buffers.send),
            ("so-rcvbuf", channel.receive_buffer, self.buffers.receive),
        ] {
            if let Some(length) = asked_length
                && existing != asked_length
            {
                return Err(Failure::generic(format!(
                    "{key}={length} does not match existing value of {}: existingChannel={} channel={}",
                    existing.unwrap_or(0),
                    self.resolved.text(),
                    asked.text()
                )));
            }
        }
        self.check_timestamps(asked)?;
        Ok(self)
    }
}
