// SPDX-License-Identifier: Apache-2.0
//! Endpoints shared by channels: one per canonical form and direction (docs/spec/uri-and-configuration.md §1.6).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use taran_core::counters::Counter;
use taran_net::BufferLimits;
pub(crate) use taran_protocol::counter::channel_status as status;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::position::FRAME_ALIGNMENT;
use taran_protocol::uri::{Param, SubscriptionParams, TimestampOffset};

use super::super::failure::Failure;
use super::addresses::ResolvedChannel;
use crate::boundary::EndpointId;
use crate::secured::policy::ChannelSecurity;

/// Length of the headers of IPv4 and UDP.
const IPV4_HEADERS: usize = 28;
/// Length of the headers of IPv6 and UDP.
const IPV6_HEADERS: usize = 48;

/// Socket buffer lengths requested by a channel or an option, in bytes; `None`: the system default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestedBuffers {
    pub(crate) send: Option<usize>,
    pub(crate) receive: Option<usize>,
    /// Not a buffer length, but requested and inherited like one: receive timestamps.
    pub(crate) arrival_times: bool,
    /// Limits of the channel's backend; `None`: those of the driver's default backend.
    pub(crate) limits: Option<BufferLimits>,
}

/// Conductor's view of an open endpoint. The sender or the receiver owns the sockets.
#[doc(alias = "SendChannelEndpoint")]
#[doc(alias = "ReceiveChannelEndpoint")]
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: EndpointId,
    pub(crate) security: ChannelSecurity,
    pub(crate) resolved: ResolvedChannel,
    pub(crate) canonical: String,
    pub(crate) buffers: RequestedBuffers,
    /// Send endpoint of a group: the TTL for SETUP; 0 if neither channel nor option sets one (docs/spec/wire.md §2.7).
    pub(crate) ttl: u8,
    /// Send endpoint: the longest datagram that its socket sends, and the bytes that layers add to it.
    pub(crate) max_datagram: usize,
    pub(crate) expansion: usize,
    /// Send endpoint with a connected socket: its peer, and the path MTU when it was opened.
    pub(crate) path_mtu: Option<(SocketAddr, usize)>,
    /// Send endpoint with destinations: counter of their number.
    pub(crate) destination_count: Option<Counter>,
    /// Receive endpoint: id in its status messages; 0 of a send endpoint.
    pub(crate) receiver_id: i64,
    /// Receive endpoint: image parameters of the subscription that opened it.
    pub(crate) receive_params: Option<SubscriptionParams>,
    pub(crate) status: Counter,
    /// Port that peers send to. `None` without a socket of its own (subscription with `control-mode=manual`).
    pub(crate) port: Option<u16>,
    /// Counter of the bound address; `None` as for `port`.
    pub(crate) local_address: Option<Counter>,
    /// Number of publications, or of subscriptions and images, that use the endpoint.
    pub(crate) references: usize,
    pub(crate) closing: bool,
}

/// Open endpoints of one direction.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    entries: BTreeMap<EndpointId, Endpoint>,
    /// Endpoints by canonical form.
    by_canonical_form: BTreeMap<String, BTreeSet<EndpointId>>,
    /// Channel tag and endpoint id.
    tags: BTreeSet<(i64, EndpointId)>,
    next_unique: u64,
}

impl Endpoints {
    /// Returns the canonical form of a channel, made unique by a number if it cannot be shared.
    pub(crate) fn canonical(&mut self, resolved: &ResolvedChannel) -> String {
        let next_unique = &mut self.next_unique;
        resolved.channel.canonical_form(&resolved.roles, false, || {
            *next_unique += 1;
            *next_unique
        })
    }

    /// Returns the endpoint that a channel shares: by tag, then by canonical form.
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
            return endpoint.check_usable(resolved).map(Some);
        }
        let of_form = self.by_canonical_form.get(canonical).into_iter().flatten();
        let mut of_form = of_form.filter_map(|id| self.entries.get(id));
        let by_form = of_form.find(|endpoint| {
            let existing_tag = endpoint.resolved.channel.tags.channel;
            let tags_differ = tag.is_some() && existing_tag.is_some() && tag != existing_tag;
            !tags_differ
        });
        by_form
            .map(|endpoint| endpoint.check_usable(resolved))
            .transpose()
    }

    pub(crate) fn contains(&self, id: EndpointId) -> bool {
        self.entries.contains_key(&id)
    }

    /// Returns the ports of all open endpoints.
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
        self.by_canonical_form
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
        if let Some(of_form) = self.by_canonical_form.get_mut(&endpoint.canonical) {
            of_form.remove(&id);
            if of_form.is_empty() {
                self.by_canonical_form.remove(&endpoint.canonical);
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

    /// Removes a reference. Returns true if it was the last, so that the endpoint must be removed from its agent.
    pub(crate) fn remove_reference(&mut self, id: EndpointId) -> bool {
        let Some(endpoint) = self.entries.get_mut(&id) else {
            return false;
        };
        endpoint.references = endpoint.references.saturating_sub(1);
        self.close_if_unused(id)
    }

    /// Marks an unused endpoint as closing. Returns true if it was not closing before.
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

    /// Removes an endpoint released by its agent. The caller frees the returned counters.
    pub(crate) fn on_released(&mut self, id: EndpointId) -> Option<Vec<Counter>> {
        let endpoint = self.remove(id)?;
        let mut counters = vec![endpoint.status];
        counters.extend(endpoint.local_address);
        counters.extend(endpoint.destination_count);
        Some(counters)
    }
}

impl Endpoint {
    /// Returns a warning if sealed datagrams of a publication are longer than the path takes in one piece
    /// (docs/spec/transport-security.md §2.8).
    pub(crate) fn path_warning(&self, mtu: usize) -> Option<String> {
        let (peer, path) = self.path_mtu.filter(|_| self.security.is_secured)?;
        let headers = if peer.is_ipv4() {
            IPV4_HEADERS
        } else {
            IPV6_HEADERS
        };
        let expansion = self.expansion;
        let packet = mtu + expansion + headers;
        if packet <= path {
            return None;
        }
        let fitting = path.saturating_sub(headers + expansion);
        let fitting = fitting - fitting % FRAME_ALIGNMENT as usize;
        Some(format!(
            "path MTU {path} to {peer}: use mtu={fitting}. With mtu={mtu}, a sealed datagram makes a packet of {packet} bytes \
             ({expansion} of transport security, {headers} of IP and UDP), which is fragmented or lost: channel={}",
            self.resolved.text()
        ))
    }

    /// Returns true if publications on it have group semantics (docs/spec/wire.md §3.3).
    pub(crate) fn is_group(&self) -> bool {
        self.resolved.is_group()
    }

    /// Rejects a channel with other timestamp offsets: an endpoint has the same ones for all its streams.
    fn check_timestamps(&self, requested: &ResolvedChannel) -> Result<(), Failure> {
        let (new, existing) = (&requested.channel, &self.resolved.channel);
        let (kind, offsets) = if self.receive_params.is_some() {
            let media = (
                new.media_receive_timestamp,
                existing.media_receive_timestamp,
            );
            let channel = (
                new.channel_receive_timestamp,
                existing.channel_receive_timestamp,
            );
            let offsets = [
                (Param::MediaReceiveTimestamp, media),
                (Param::ChannelReceiveTimestamp, channel),
            ];
            ("subscription", offsets.to_vec())
        } else {
            let channel = (new.channel_send_timestamp, existing.channel_send_timestamp);
            ("publication", vec![(Param::ChannelSendTimestamp, channel)])
        };
        for (param, (new, existing)) in offsets {
            if new != existing {
                let text = |offset: Option<TimestampOffset>| match offset {
                    None => "none".to_owned(),
                    Some(TimestampOffset::Reserved) => "reserved".to_owned(),
                    Some(TimestampOffset::Payload(bytes)) => bytes.to_string(),
                };
                return Err(Failure::generic(format!(
                    "option conflicts with existing {kind}: {param}={} but the endpoint has {}, use the same value or \
                     another endpoint: existingChannel={} channel={}",
                    text(new),
                    text(existing),
                    self.resolved.text(),
                    requested.text(),
                    param = param.key(),
                )));
            }
        }
        Ok(())
    }

    /// Rejects a channel that names another network backend.
    fn check_backend(&self, requested: &ResolvedChannel) -> Result<(), Failure> {
        let existing = &self.resolved.backend;
        match &requested.channel.backend {
            Some(backend) if backend != existing => Err(Failure::generic(format!(
                "{key}={backend} does not match existing value of {existing}, use the same value or another endpoint: \
                 existingChannel={} channel={}",
                self.resolved.text(),
                requested.text(),
                key = Param::Backend.key(),
            ))),
            _ => Ok(()),
        }
    }

    /// Rejects a channel with other buffer lengths, or any channel while the endpoint is closing.
    fn check_usable(&self, requested: &ResolvedChannel) -> Result<&Self, Failure> {
        if self.closing {
            return Err(Failure::new(
                ErrorCode::ResourceTemporarilyUnavailable,
                format!(
                    "channel endpoint found in CLOSING state, please retry: channel={}",
                    requested.text()
                ),
            ));
        }
        let channel = &requested.channel;
        for (key, requested_length, existing) in [
            ("so-sndbuf", channel.send_buffer, self.buffers.send),
            ("so-rcvbuf", channel.receive_buffer, self.buffers.receive),
        ] {
            if let Some(length) = requested_length
                && existing != requested_length
            {
                return Err(Failure::generic(format!(
                    "{key}={length} does not match existing value of {}: existingChannel={} channel={}",
                    existing.unwrap_or(0),
                    self.resolved.text(),
                    requested.text()
                )));
            }
        }
        self.check_backend(requested)?;
        self.check_timestamps(requested)?;
        Ok(self)
    }
}
