// SPDX-License-Identifier: Apache-2.0
//! Flows: pairs of publishers and subscribers that must deliver once the network is restored.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::route::{self, Route, parameter, publication_routes, subscription_routes};
use super::runner::{KnownPublisher, KnownSubscriber, Runner};
use crate::{PublisherId, SubscriberId};

/// A publisher and a subscriber that must receive its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) publisher: PublisherId,
    pub(super) subscriber: SubscriberId,
    /// Kind of channel, for the coverage table.
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// A possible flow.
pub(super) struct Candidate<'t> {
    pub(super) from: &'t KnownPublisher,
    pub(super) to: &'t KnownSubscriber,
    pub(super) is_spy: bool,
}

impl Runner<'_> {
    /// Returns all live flows.
    pub(super) fn live_flows(&self) -> Vec<Flow> {
        let mut flows = Vec::new();
        for from in self.publishers.values() {
            let publisher = self.world.publisher(from.id);
            let is_revoked = publisher
                .key()
                .is_some_and(|key| self.revoked.contains(&key));
            let is_live = self.is_live(from.client) && publisher.is_open();
            if !is_live || is_revoked || publisher.is_holding() {
                continue;
            }
            let candidates: Vec<_> = self
                .subscribers
                .values()
                .filter_map(|to| self.candidate(from, to))
                .collect();
            if self.is_connected_by(from, &candidates) {
                flows.extend(candidates.iter().map(|it| self.flow(it)));
            }
            flows.extend(
                self.response_flow(from)
                    .map(|candidate| self.flow(&candidate)),
            );
        }
        flows
    }

    fn flow(&self, Candidate { from, to, .. }: &Candidate<'_>) -> Flow {
        Flow {
            publisher: from.id,
            subscriber: to.id,
            kind: kind(&from.channel, &to.channel),
            text: format!(
                "{:?} on {} of host {} to {:?} on {} of host {}",
                from.id,
                from.channel,
                self.world.host_of(from.client).number(),
                to.id,
                to.channel,
                self.world.host_of(to.client).number()
            ),
        }
    }

    /// Returns the candidate flow if a publisher reaches a live subscriber.
    pub(super) fn candidate<'t>(
        &self,
        from: &'t KnownPublisher,
        to: &'t KnownSubscriber,
    ) -> Option<Candidate<'t>> {
        let is_live = self.is_live(to.client) && self.world.subscriber(to.id).is_open();
        if !is_live || from.stream != to.stream {
            return None;
        }
        if self.is_session_excluded(from, to) {
            return None;
        }
        let route = self.shared_route(from, to)?;
        let is_spy = route::is_spy_route(&route);
        Some(Candidate { from, to, is_spy })
    }

    /// Returns the route on which a subscriber receives a publisher's stream, if any.
    pub(super) fn shared_route(
        &self,
        from: &KnownPublisher,
        to: &KnownSubscriber,
    ) -> Option<Route> {
        let session = parameter(&to.channel, "session-id");
        if session.is_some() && session != parameter(&from.channel, "session-id") {
            return None;
        }
        let host = self.world.host_of(from.client).number();
        let sent = publication_routes(&from.channel, &from.destinations, host);
        let received = self.routes_of(to);
        sent.into_iter().find(|route| received.contains(route))
    }

    /// Returns the flow of responses to a requester, if the image of its requests still exists. With two response
    /// publications for one requester it is not known which one the requester receives.
    fn response_flow<'t>(&'t self, from: &'t KnownPublisher) -> Option<Candidate<'t>> {
        let source = from.responds_to?;
        let is_same = |it: &&KnownPublisher| {
            let other = it.responds_to.map(|other| other.requests);
            other == Some(source.requests)
        };
        let is_only = self.publishers.values().filter(is_same).count() == 1;
        let listener = self.world.subscriber(source.subscriber);
        let requester = listener
            .stream_of(source.image)
            .filter(|requester| *requester == source.requests)?;
        let is_requester = |(_, it): &(&u32, &KnownPublisher)| {
            let publisher = self.world.publisher(it.id);
            publisher.key() == Some(requester) && publisher.is_open() && self.is_live(it.client)
        };
        let (label, _) = self.publishers.iter().find(is_requester)?;
        let to = self
            .subscribers
            .get(self.response_subscribers.get(label)?)?;
        let is_open = self.is_live(to.client) && self.world.subscriber(to.id).is_open();
        (is_only && listener.is_open() && is_open).then_some(Candidate {
            from,
            to,
            is_spy: false,
        })
    }

    /// Returns the routes of a subscriber.
    fn routes_of(&self, to: &KnownSubscriber) -> Vec<Route> {
        let sources = self.world.subscriber(to.id).sources().map(str::to_owned);
        let host = self.world.host_of(to.client).number();
        subscription_routes(&to.channel, &sources.collect::<Vec<_>>(), host)
    }

    /// Returns true if a subscriber gets no further image of a publisher's session because a subscription with
    /// `rejoin=false` has lost one. The driver excludes the session from that stream on that socket, for later
    /// subscriptions too, until no subscription is left (`DriverConductor.transitionToLinger`, `DataPacketDispatcher`)
    /// or the driver ends.
    fn is_session_excluded(&self, from: &KnownPublisher, to: &KnownSubscriber) -> bool {
        // Other streams of that session are excluded as well.
        let session = self
            .world
            .publisher(from.id)
            .key()
            .map(|key| key.session_id);
        let (host, routes) = (self.world.host_of(to.client), self.routes_of(to));
        self.subscribers.values().any(|it| {
            let ended = self.world.subscriber(it.id).ended();
            it.driver_generation == self.world.driver_generation(host)
                && parameter(&it.channel, "rejoin") == Some("false")
                && it.stream == to.stream
                && self.world.host_of(it.client) == host
                && self.routes_of(it).iter().any(|at| routes.contains(at))
                && ended
                    .iter()
                    .any(|image| Some(image.key.session_id) == session)
        })
    }

    /// Returns true if the receivers of a publication suffice to connect it.
    pub(super) fn is_connected_by(
        &self,
        from: &KnownPublisher,
        candidates: &[Candidate<'_>],
    ) -> bool {
        let (tag, minimum) = flow_control_group(&from.channel);
        let in_group = candidates.iter().filter(|it| !it.is_spy);
        let in_group =
            in_group.filter(|it| tag.is_none() || parameter(&it.to.channel, "gtag") == tag);
        let drivers: BTreeSet<_> = in_group
            .map(|it| self.world.host_of(it.to.client))
            .collect();
        let has_counted_spy = parameter(&from.channel, "ssc") == Some("true")
            && candidates.iter().any(|it| it.is_spy);
        // Receivers without the tag connect a publication too, but flow control does not wait for them.
        let received = candidates.iter().any(|it| !it.is_spy);
        drivers.len() >= minimum && (received || has_counted_spy)
    }
}

/// Returns the number of receivers that flow control requires on this channel.
pub(super) fn required_receivers(channel: &str) -> usize {
    flow_control_group(channel).1
}

/// Returns the tag and the number of receivers that the flow control of a channel requires.
fn flow_control_group(channel: &str) -> (Option<&str>, usize) {
    let Some(control) = parameter(channel, "fc") else {
        return (None, 0);
    };
    let Some(flow_control_group) = control.split(',').find_map(|part| part.strip_prefix("g:"))
    else {
        return (None, 0);
    };
    let (tag, minimum) = flow_control_group
        .split_once('/')
        .unwrap_or((flow_control_group, "0"));
    (
        Some(tag).filter(|tag| !tag.is_empty()),
        minimum.parse().unwrap_or(0),
    )
}

fn kind(from: &str, to: &str) -> &'static str {
    if to.starts_with("aeron-spy:") {
        "spy"
    } else if to.contains("control-mode=manual") {
        "several sources"
    } else if from.starts_with("aeron:ipc") {
        "ipc"
    } else if from.contains("control-mode=manual") {
        "manual destinations"
    } else if from.contains("control-mode=dynamic") {
        "dynamic destinations"
    } else if is_multicast(from) {
        "multicast"
    } else if from.contains("control-mode=response") {
        "responses"
    } else if from.contains("response-correlation-id") {
        "requests"
    } else {
        "unicast"
    }
}

/// Returns true if a publication may have several receivers.
pub(super) fn may_have_several_receivers(channel: &str) -> bool {
    let modes = ["manual", "dynamic"];
    is_multicast(channel)
        || parameter(channel, "control-mode").is_some_and(|it| modes.contains(&it))
}

/// Returns true for a multicast channel.
fn is_multicast(channel: &str) -> bool {
    let endpoint = parameter(channel, "endpoint").and_then(|text| text.parse::<SocketAddr>().ok());
    endpoint.is_some_and(|endpoint| endpoint.ip().is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_derived_from_the_channels() {
        let unicast = "aeron:udp?endpoint=10.0.0.1:1";
        for (from, to, expected) in [
            ("aeron:udp?endpoint=224.20.30.1:1", "", "multicast"),
            ("aeron:udp?mtu=1408|endpoint=[ff02::21]:1", "", "multicast"),
            ("aeron:udp?endpoint=[fd00::1]:1", "", "unicast"),
            (unicast, "aeron-spy:aeron:udp?endpoint=10.0.0.1:1", "spy"),
            (unicast, "aeron:udp?control-mode=manual", "several sources"),
            (
                "aeron:udp?control-mode=response|control=10.0.0.1:1",
                "",
                "responses",
            ),
        ] {
            assert_eq!(kind(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn flow_control_group_is_parsed_from_the_channel() {
        assert_eq!(flow_control_group("aeron:udp?endpoint=a:1"), (None, 0));
        assert_eq!(
            flow_control_group("aeron:udp?fc=min,g:/2|mtu=1408"),
            (None, 2)
        );
        assert_eq!(
            flow_control_group("aeron:udp?fc=tagged,g:7/3,t:3s"),
            (Some("7"), 3)
        );
        assert_eq!(
            flow_control_group("aeron:udp?fc=tagged,g:7,t:3s"),
            (Some("7"), 0)
        );
    }
}
