// SPDX-License-Identifier: Apache-2.0
//! Receiver's side: starts handshakes and takes the keys of streams.

mod announcements;
mod grants;
mod handshakes;
mod items;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::allowance::Allowance;
use super::receive_link::ReceiveLink;
use super::{Event, KeeperOptions, LINK_SILENCE, Output, Port, Refusal, SECOND, Shared, Stream};
use crate::derive::{Fingerprint, KeyId};
use crate::frame::{Code, Item};
use crate::provider::Provider;

use handshakes::Pending;

/// A handshake takes a new ephemeral key after this time, and is given up this long after the last ANNOUNCE.
const HANDSHAKE: u64 = 5 * SECOND;
/// A link without PAIR for this long is tested, and so often.
const KEEPALIVE: u64 = 2 * SECOND;
const KEEPALIVES_MAX: u32 = 3;
/// An old link goes on this long after its renewal.
const OLD_LINK: u64 = 10 * SECOND;
/// Configuration of a receive transport.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Address that patterns are matched against: data address, or control address.
    pub address: SocketAddr,
    /// Number of the subscription endpoint: transports of a multi-destination subscription share it, because they feed the
    /// same images and a stream has one owner for all of them.
    pub group: u64,
    /// Channel tag.
    pub tag: [u8; 4],
    /// Receiver id of the transport.
    pub receiver_id: i64,
    /// Address that INIT goes to: control address or group; none for the source of the announcement.
    pub control: Option<SocketAddr>,
    /// Returns true if `control` is a multicast group.
    pub is_group: bool,
    /// Names of the peers that may be at the other end; none for all that are trusted.
    pub peers: Option<Vec<String>>,
}

struct OpenEpoch {
    epoch: u32,
    id: KeyId,
    identity: Fingerprint,
    expires: u64,
    /// The key counts for the owner of the stream.
    is_owned: bool,
}

/// Stream with its owner; it keeps the owner until all its keys are closed.
struct OpenStream {
    owner: String,
    incarnation: u64,
    epochs: Vec<OpenEpoch>,
    highest_closed: Option<u32>,
    /// Epochs up to this one are closed from this time on, granted or not.
    closing: Option<(u32, u64)>,
    /// Time at which no key was open any more, as a tick saw it.
    closed_at: Option<u64>,
}

impl OpenStream {
    /// Closes, for ever, the epochs before the one that is in use, once their grace is over.
    fn on_time(&mut self, now: u64) {
        if let Some((epoch, _)) = self.closing.take_if(|(_, at)| now >= *at) {
            self.highest_closed = self.highest_closed.max(Some(epoch));
        }
    }
}

/// Receive transport.
pub(super) struct ReceiveTransport<P: Provider> {
    port: Port,
    config: ReceiverConfig,
    /// Both ends seal feedback, and there are no streams.
    is_resolver: bool,
    subscriptions: BTreeSet<(Option<i32>, i32)>,
    /// Peers whose answers are awaited: only they may grant keys of these streams.
    responders: BTreeMap<Stream, String>,
    pending: BTreeMap<Fingerprint, Pending<P>>,
    links: BTreeMap<u64, ReceiveLink<P>>,
    streams: BTreeMap<Stream, OpenStream>,
    /// Time of the last handshake that an unproved incarnation started, per fingerprint of a link.
    restarts: BTreeMap<Fingerprint, u64>,
    init: Allowance,
    hello: Allowance,
    last_hello: Option<u64>,
    /// Bytes that came under unknown keys since the last HELLO.
    unknown_bytes: usize,
}

impl<P: Provider> ReceiveTransport<P> {
    pub(super) fn new(port: Port, config: ReceiverConfig) -> Self {
        Self {
            port,
            config,
            is_resolver: port == Port::Resolver,
            subscriptions: BTreeSet::new(),
            responders: BTreeMap::new(),
            pending: BTreeMap::new(),
            links: BTreeMap::new(),
            streams: BTreeMap::new(),
            restarts: BTreeMap::new(),
            init: Allowance::new(64, 64),
            hello: Allowance::new(64, 64),
            last_hello: None,
            unknown_bytes: 0,
        }
    }

    pub(super) fn link_count(&self) -> usize {
        self.links.values().filter(|link| link.is_up).count()
    }

    /// Returns the number of streams that are remembered.
    #[cfg(test)]
    pub(super) fn record_count(&self) -> usize {
        self.streams.len()
    }

    /// Returns the name of the peer of each link that is up.
    pub(super) fn peers(&self) -> impl Iterator<Item = &str> {
        let links = self.links.values().filter(|link| link.is_up);
        links.map(|link| link.name.as_str())
    }

    pub(super) fn close(&mut self, shared: &mut Shared<P>) {
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            self.end_link(shared, id, Some(Code::CLOSED));
        }
        self.close_epochs(shared, |_, _| true);
    }

    pub(super) fn add_subscription(&mut self, session_id: Option<i32>, stream_id: i32) {
        self.subscriptions.insert((session_id, stream_id));
    }

    /// Subscribes to a stream that one peer alone may send. Returns false if another peer sends it already.
    pub(super) fn add_response(
        &mut self,
        shared: &Shared<P>,
        (session_id, stream_id): Stream,
        peer: &str,
    ) -> bool {
        let stream = (session_id, stream_id);
        let is_other = self
            .responders
            .get(&stream)
            .is_some_and(|other| other != peer)
            || !shared.owners.may_take((self.config.group, stream), peer);
        if !is_other {
            self.subscriptions.insert((Some(session_id), stream_id));
            self.responders.insert(stream, peer.to_owned());
        }
        !is_other
    }

    /// Returns the name of the peer whose stream this is.
    pub(super) fn owner_of(&self, group: u64, stream: Stream) -> Option<&str> {
        let of_group = Some(&self.streams).filter(|_| self.config.group == group);
        of_group?.get(&stream).map(|state| state.owner.as_str())
    }

    /// Returns true if a key of a stream is open.
    pub(super) fn has_key_of(&self, group: u64, stream: Stream) -> bool {
        let of_group = Some(&self.streams).filter(|_| self.config.group == group);
        let state = of_group.and_then(|streams| streams.get(&stream));
        state.is_some_and(|state| !state.epochs.is_empty())
    }

    /// Returns the streams that a peer is awaited to send, and no key is open for.
    fn awaited(&self, name: &str) -> impl Iterator<Item = Stream> {
        let awaited = self.responders.iter().filter(move |(stream, peer)| {
            let state = self.streams.get(stream);
            *peer == name && state.is_none_or(|state| state.epochs.is_empty())
        });
        awaited.map(|(stream, _)| *stream)
    }

    pub(super) fn remove_subscription(
        &mut self,
        shared: &mut Shared<P>,
        session_id: Option<i32>,
        stream_id: i32,
    ) {
        self.subscriptions.remove(&(session_id, stream_id));
        if let Some(session_id) = session_id {
            self.responders.remove(&(session_id, stream_id));
        }
        let subscriptions = std::mem::take(&mut self.subscriptions);
        self.close_epochs(shared, |stream, _| !is_subscribed(&subscriptions, stream));
        self.subscriptions = subscriptions;
    }

    /// Closes the keys that match.
    fn close_epochs(
        &mut self,
        shared: &mut Shared<P>,
        mut is_over: impl FnMut(Stream, &OpenEpoch) -> bool,
    ) {
        let key = |stream| (self.config.group, stream);
        for (stream, state) in &mut self.streams {
            let highest = &mut state.highest_closed;
            state.epochs.retain(|epoch| {
                let is_over = is_over(*stream, epoch);
                if is_over {
                    *highest = (*highest).max(Some(epoch.epoch));
                    close(shared, self.port, key(*stream), epoch);
                }
                !is_over
            });
        }
    }

    fn is_peer(&self, name: &str) -> bool {
        let peers = self.config.peers.as_ref();
        peers.is_none_or(|peers| peers.iter().any(|peer| peer == name))
    }

    fn refused(&self, peer: &str, fingerprint: Fingerprint, why: Refusal) -> Event {
        Event::PeerRefused {
            port: self.port,
            peer: peer.to_owned(),
            fingerprint,
            channel: self.config.address,
            why,
        }
    }

    /// Gives up the handshakes under way: they were begun with an identity that is not in force any more. The next
    /// announcement starts others.
    pub(super) fn forget_handshakes(&mut self) {
        self.pending.clear();
    }

    /// Draws another back key for each link.
    pub(super) fn rotate_back_keys(&mut self, shared: &mut Shared<P>, now: u64) {
        for link in self
            .links
            .values_mut()
            .filter(|link| link.ends_at.is_none())
        {
            link.rotate_back_key(shared, self.port, now);
        }
    }

    /// Ends all links without sealing anything, and starts handshakes with their peers.
    pub(super) fn redraw(&mut self, shared: &mut Shared<P>, now: u64) {
        self.pending.clear();
        let mut links = std::mem::take(&mut self.links);
        for (id, link) in &mut links {
            link.peer_back.close(shared, self.port, |_, _| true);
            shared.output(Output::Unlink {
                port: self.port,
                link: *id,
            });
            if link.is_up {
                shared.event(Event::LinkDown {
                    port: self.port,
                    peer: link.name.clone(),
                });
            }
        }
        self.close_epochs(shared, |_, _| true);
        self.streams.clear();
        for link in links.into_values().filter(|link| link.ends_at.is_none()) {
            self.start(shared, now, &link.peer, link.address, None, None);
        }
    }

    pub(super) fn on_trust(&mut self, shared: &mut Shared<P>) {
        self.pending.clear();
        let lost: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, link)| {
                let peer = shared.trust.by_key::<P>(&link.peer);
                // What a neighbour may send and have is decided when its link gets its keys.
                peer.is_none_or(|peer| peer.name() != link.name)
                    || self.is_resolver && peer.map(|peer| self.may(peer)) != Some(link.may)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.end_link(shared, id, Some(Code::NOT_ALLOWED));
        }
        // All keys that an untrusted identity drew are closed at once, and those that its patterns no longer cover.
        let trust = std::sync::Arc::clone(&shared.trust);
        let address = self.config.address;
        self.close_epochs(shared, |stream, epoch| {
            let peer = trust.by_fingerprint(&epoch.identity);
            !peer.is_some_and(|peer| peer.may_publish(address, stream.1))
        });
    }

    /// Returns what a neighbour of name resolution may send, and have.
    fn may(&self, peer: &crate::trust::Peer) -> (bool, bool) {
        let address = self.config.address;
        (peer.may_publish(address, 0), peer.may_subscribe(address, 0))
    }

    /// Ends a link, and closes the keys of its peer if no other link to it lives on this transport.
    fn end_link(&mut self, shared: &mut Shared<P>, id: u64, code: Option<Code>) {
        let Some(mut link) = self.links.remove(&id) else {
            return;
        };
        if let Some(code) = code {
            link.send(shared, self.port, &[Item::Bye(code)]);
        }
        link.peer_back.close(shared, self.port, |_, _| true);
        shared.output(Output::Unlink {
            port: self.port,
            link: id,
        });
        if link.is_up {
            shared.event(Event::LinkDown {
                port: self.port,
                peer: link.name.clone(),
            });
        }
        let mut others = self.links.values();
        let has_other =
            others.any(|other| other.name == link.name && other.incarnation == link.incarnation);
        if has_other {
            return;
        }
        let owned: BTreeSet<Stream> = self
            .streams
            .iter()
            .filter(|(_, state)| state.owner == link.name && state.incarnation == link.incarnation)
            .map(|(stream, _)| *stream)
            .collect();
        self.close_epochs(shared, |stream, _| owned.contains(&stream));
        // With the last link the record of closed epochs goes; grants of a new one are fresh.
        self.streams.retain(|stream, _| !owned.contains(stream));
    }

    pub(super) fn on_tick(&mut self, shared: &mut Shared<P>, now: u64) {
        self.repeat_inits(shared, now);
        self.close_epochs(shared, |_, epoch| now >= epoch.expires);
        for state in self.streams.values_mut() {
            state.on_time(now);
        }
        self.forget_closed(now);
        let ended: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, link)| {
                now >= link.last_heard + LINK_SILENCE
                    || link.ends_at.is_some_and(|ends| now >= ends)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            self.end_link(shared, id, Some(Code::CLOSED));
        }
        let mut renewals = Vec::new();
        let interval = shared.options.rotate_interval;
        for (id, link) in &mut self.links {
            if link.ends_at.is_some() {
                continue;
            }
            link.repeat(shared, self.port, now);
            if link.back.is_old(now, interval) {
                link.rotate_back_key(shared, self.port, now);
            }
            let is_over = |_, expires: Option<u64>| expires.is_some_and(|expires| now >= expires);
            link.peer_back.close(shared, self.port, is_over);
            if now >= link.next_test {
                link.next_test = now + KEEPALIVE;
                link.tested += 1;
                link.send(shared, self.port, &[]);
            }
            if link.keys.wants_renewal() || link.tested > KEEPALIVES_MAX {
                link.renew_at = link.renew_at.min(now);
            }
            if now >= link.renew_at {
                link.renew_at = now + HANDSHAKE;
                renewals.push((*id, link.peer, link.address));
            }
        }
        for (id, peer, to) in renewals {
            if !self.pending.contains_key(&peer.fingerprint::<P>()) {
                self.start(shared, now, &peer, to, None, Some(id));
            }
        }
    }

    pub(super) fn next_deadline(&self, options: &KeeperOptions) -> Option<u64> {
        let pending = self.pending.values().map(|pending| {
            let gives_up = pending.announced + HANDSHAKE;
            // Nothing is repeated while a job is under way.
            let is_ready = pending.initiation.is_some() && pending.next.is_none();
            if is_ready {
                pending.next_at.min(gives_up)
            } else {
                gives_up
            }
        });
        let epochs = self
            .streams
            .values()
            .flat_map(|state| state.epochs.iter().map(|epoch| epoch.expires));
        let links = self.links.values().map(|link| match link.ends_at {
            Some(ends) => ends.min(link.last_heard + LINK_SILENCE),
            None => link.next_deadline(options),
        });
        pending.chain(epochs).chain(links).min()
    }
}

/// Closes a key.
fn close<P: Provider>(
    shared: &mut Shared<P>,
    port: Port,
    stream: (u64, Stream),
    epoch: &OpenEpoch,
) {
    if epoch.is_owned {
        shared.owners.key_closed(stream);
    }
    shared.output(Output::Close { port, id: epoch.id });
}

fn is_subscribed(subscriptions: &BTreeSet<(Option<i32>, i32)>, stream: Stream) -> bool {
    subscriptions.contains(&(None, stream.1)) || subscriptions.contains(&(Some(stream.0), stream.1))
}
