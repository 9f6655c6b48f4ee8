//! Which subscribers must hear which publishers, once the network is whole.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::place::{self, Place, heard_at, parameter, sent_to};
use super::teller::{Publishing, Subscribing, Teller};
use crate::{PublisherId, SubscriberId};

/// A publisher, and a subscriber that must hear it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) publisher: PublisherId,
    pub(super) subscriber: SubscriberId,
    /// By what kind of channel, for the table.
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// How a flow is meant to be moved.
pub(super) struct Candidate<'t> {
    pub(super) from: &'t Publishing,
    pub(super) to: &'t Subscribing,
    pub(super) is_spied: bool,
}

impl Teller {
    /// All flows that live at present.
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
                .filter_map(|to| self.meet(from, to))
                .collect();
            if self.is_connected_by(from, &candidates) {
                flows.extend(candidates.iter().map(|it| self.flow(it)));
            }
            flows.extend(self.answered(from).map(|candidate| self.flow(&candidate)));
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

    /// Whether a live subscriber is reached by a publisher.
    pub(super) fn meet<'t>(
        &self,
        from: &'t Publishing,
        to: &'t Subscribing,
    ) -> Option<Candidate<'t>> {
        let is_live = self.is_live(to.client) && self.world.subscriber(to.id).is_open();
        if !is_live || from.stream != to.stream {
            return None;
        }
        if self.has_given_up(from, to) {
            return None;
        }
        let place = self.leads(from, to)?;
        let is_spied = place::is_spied(&place);
        Some(Candidate { from, to, is_spied })
    }

    /// Where what a publisher sends is heard by a subscriber, if anywhere.
    pub(super) fn leads(&self, from: &Publishing, to: &Subscribing) -> Option<Place> {
        let session = parameter(&to.channel, "session-id");
        if session.is_some() && session != parameter(&from.channel, "session-id") {
            return None;
        }
        let host = self.world.host_of(from.client).number();
        let sent = sent_to(&from.channel, &from.destinations, host);
        let heard = self.places_of(to);
        sent.into_iter().find(|place| heard.contains(place))
    }

    /// Who must hear answers: whoever asked, as long as he is heard under the image that is answered. If he was ever
    /// answered by two, one of them may be the one whom he listens to.
    fn answered<'t>(&'t self, from: &'t Publishing) -> Option<Candidate<'t>> {
        let answered = from.answers?;
        let is_same = |it: &&Publishing| {
            let other = it.answers.map(|other| other.requests);
            other == Some(answered.requests)
        };
        let is_only = self.publishers.values().filter(is_same).count() == 1;
        let hears = self.world.subscriber(answered.hearer);
        let asked = hears
            .stream_of(answered.image)
            .filter(|asked| *asked == answered.requests)?;
        let is_requester = |(_, it): &(&u32, &Publishing)| {
            let publisher = self.world.publisher(it.id);
            publisher.key() == Some(asked) && publisher.is_open() && self.is_live(it.client)
        };
        let (label, _) = self.publishers.iter().find(is_requester)?;
        let to = self.subscribers.get(self.asked.get(label)?)?;
        let is_heard = self.is_live(to.client) && self.world.subscriber(to.id).is_open();
        (is_only && hears.is_open() && is_heard).then_some(Candidate {
            from,
            to,
            is_spied: false,
        })
    }

    /// Where a subscriber hears.
    fn places_of(&self, to: &Subscribing) -> Vec<Place> {
        let sources = self.world.subscriber(to.id).sources().map(str::to_owned);
        let host = self.world.host_of(to.client).number();
        heard_at(&to.channel, &sources.collect::<Vec<_>>(), host)
    }

    /// Whether a subscriber gets no image of a publisher any more, because somebody who said `rejoin=false` has lost one:
    /// the driver keeps the session out of that stream of that socket, also for those who subscribe to it later, until
    /// nobody subscribes to it any more (`DriverConductor.transitionToLinger`, `DataPacketDispatcher`), or it dies.
    fn has_given_up(&self, from: &Publishing, to: &Subscribing) -> bool {
        // Another stream of that session is kept out as well.
        let session = self
            .world
            .publisher(from.id)
            .key()
            .map(|key| key.session_id);
        let (host, places) = (self.world.host_of(to.client), self.places_of(to));
        self.subscribers.values().any(|it| {
            let ended = self.world.subscriber(it.id).ended();
            it.life == self.world.lives(host)
                && parameter(&it.channel, "rejoin") == Some("false")
                && it.stream == to.stream
                && self.world.host_of(it.client) == host
                && self.places_of(it).iter().any(|at| places.contains(at))
                && ended
                    .iter()
                    .any(|image| Some(image.key.session_id) == session)
        })
    }

    /// Whether those who hear a publication are enough for it.
    pub(super) fn is_connected_by(&self, from: &Publishing, candidates: &[Candidate<'_>]) -> bool {
        let (tag, least) = group(&from.channel);
        let in_group = candidates.iter().filter(|it| !it.is_spied);
        let in_group =
            in_group.filter(|it| tag.is_none() || parameter(&it.to.channel, "gtag") == tag);
        let drivers: BTreeSet<_> = in_group
            .map(|it| self.world.host_of(it.to.client))
            .collect();
        let spied = parameter(&from.channel, "ssc") == Some("true")
            && candidates.iter().any(|it| it.is_spied);
        // Whoever has no tag connects a publication too, but is not waited for.
        let heard = candidates.iter().any(|it| !it.is_spied);
        drivers.len() >= least && (heard || spied)
    }
}

/// How many receivers a publication on this channel waits for.
pub(super) fn required(channel: &str) -> usize {
    group(channel).1
}

/// The tag that the flow control of a channel asks for, and how many receivers.
fn group(channel: &str) -> (Option<&str>, usize) {
    let Some(control) = parameter(channel, "fc") else {
        return (None, 0);
    };
    let Some(group) = control.split(',').find_map(|part| part.strip_prefix("g:")) else {
        return (None, 0);
    };
    let (tag, least) = group.split_once('/').unwrap_or((group, "0"));
    (
        Some(tag).filter(|tag| !tag.is_empty()),
        least.parse().unwrap_or(0),
    )
}

fn kind(from: &str, to: &str) -> &'static str {
    if to.starts_with("aeron-spy:") {
        "spy"
    } else if to.contains("control-mode=manual") {
        "many sources"
    } else if from.starts_with("aeron:ipc") {
        "ipc"
    } else if from.contains("control-mode=manual") {
        "many destinations, manual"
    } else if from.contains("control-mode=dynamic") {
        "many destinations, dynamic"
    } else if is_group(from) {
        "multicast"
    } else if from.contains("control-mode=response") {
        "answers"
    } else if from.contains("response-correlation-id") {
        "requests"
    } else {
        "unicast"
    }
}

/// Whether a publication is sent to several receivers.
pub(super) fn has_several(channel: &str) -> bool {
    let modes = ["manual", "dynamic"];
    is_group(channel) || parameter(channel, "control-mode").is_some_and(|it| modes.contains(&it))
}

/// Whether a channel is that of a group of hosts.
fn is_group(channel: &str) -> bool {
    let endpoint = parameter(channel, "endpoint").and_then(|text| text.parse::<SocketAddr>().ok());
    endpoint.is_some_and(|endpoint| endpoint.ip().is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_the_channels() {
        let unicast = "aeron:udp?endpoint=10.0.0.1:1";
        for (from, to, expected) in [
            ("aeron:udp?endpoint=224.20.30.1:1", "", "multicast"),
            ("aeron:udp?mtu=1408|endpoint=[ff02::21]:1", "", "multicast"),
            ("aeron:udp?endpoint=[fd00::1]:1", "", "unicast"),
            (unicast, "aeron-spy:aeron:udp?endpoint=10.0.0.1:1", "spy"),
            (unicast, "aeron:udp?control-mode=manual", "many sources"),
            (
                "aeron:udp?control-mode=response|control=10.0.0.1:1",
                "",
                "answers",
            ),
        ] {
            assert_eq!(kind(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn the_group_is_read_from_the_channel() {
        assert_eq!(group("aeron:udp?endpoint=a:1"), (None, 0));
        assert_eq!(group("aeron:udp?fc=min,g:/2|mtu=1408"), (None, 2));
        assert_eq!(group("aeron:udp?fc=tagged,g:7/3,t:3s"), (Some("7"), 3));
        assert_eq!(group("aeron:udp?fc=tagged,g:7,t:3s"), (Some("7"), 0));
    }
}
