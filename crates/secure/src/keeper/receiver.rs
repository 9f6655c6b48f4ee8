// SPDX-License-Identifier: Apache-2.0
//! Receiver's side: starts handshakes and takes the keys of streams.

mod handshakes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Bound;

use zerocopy::IntoBytes;

use super::allowance::Allowance;
use super::back_key::BackContext;
use super::receive_link::{NOTICE_INTERVAL, ReceiveLink};
use super::send_link::send_items;
use super::sender::refusal_text;
use super::{
    Event, KEY_AGE_MAX, KeeperOptions, LINK_SILENCE, LinkStream, Output, Port, Refusal, SECOND,
    Shared, Stream,
};
use crate::derive::{Fingerprint, KeyContext, KeyId, KeyMaterial, Role};
use crate::frame::{Announce, Code, Grant, Hello, Item, Items, PairFrames, RequestedKey};
use crate::provider::{Provider, Suite};
use crate::seal::{Direction, OpenKey};

use handshakes::Pending;

/// A handshake takes a new ephemeral key after this time, and is given up this long after the last ANNOUNCE.
const HANDSHAKE: u64 = 5 * SECOND;
/// Streams with keys on a transport.
const STREAMS_MAX: usize = 4_096;
/// Epochs of a stream that are open at once.
const EPOCHS_MAX: usize = 3;
/// Old epochs are opened this long after the first datagram under a newer one.
const EPOCH_GRACE: u64 = 10 * SECOND;
/// Time between handshakes that an unproved incarnation starts.
const INCARNATION_INTERVAL: u64 = 10 * SECOND;
/// A link without PAIR for this long is tested, and so often.
const KEEPALIVE: u64 = 2 * SECOND;
const KEEPALIVES_MAX: u32 = 3;
/// An old link goes on this long after its renewal.
const OLD_LINK: u64 = 10 * SECOND;
/// Streams that are asked for because of one datagram under an unknown key.
const ASKED_AT_ONCE: usize = 8;
/// Addresses that a handshake is tried with.
const SOURCES_MAX: usize = 4;

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

    pub(super) fn on_announce(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        announce: &Announce,
    ) {
        let fingerprint = Fingerprint(announce.fingerprint);
        let stream = (announce.session_id.get(), announce.stream_id.get());
        let Some(peer) = shared.trust.by_fingerprint(&fingerprint) else {
            let event = Event::PeerUnknown {
                port: self.port,
                fingerprint,
                address: source,
            };
            shared.refusal(now, event);
            return;
        };
        let is_answer = stream == (0, 0);
        if !is_answer && !is_subscribed(&self.subscriptions, stream) {
            return;
        }
        let address = self.config.address;
        let is_allowed = if self.is_resolver {
            self.may(peer) != (false, false)
        } else if is_answer {
            peer.publish().matches_channel(address)
        } else {
            let responder = self.responders.get(&stream);
            peer.may_publish(address, stream.1)
                && responder.is_none_or(|responder| responder == peer.name())
        };
        let (key, name) = (*peer.key(), peer.name().to_owned());
        if !is_allowed || !self.is_peer(&name) {
            let why = if is_allowed {
                Refusal::NotNamed
            } else if self.responders.get(&stream).is_some_and(|of| *of != name) {
                Refusal::Owned
            } else {
                let stream_id = if self.is_resolver { 0 } else { stream.1 };
                Refusal::Publish((!is_answer || self.is_resolver).then_some(stream_id))
            };
            let event = self.refused(&name, fingerprint, why);
            shared.refusal(now, event);
            return;
        }
        let to = self.config.control.unwrap_or(source);
        if self.is_resolver && shared.identity.fingerprint().0 > fingerprint.0 {
            // The neighbour with the smaller fingerprint begins. This is as long as what it answers.
            if !self.hello.take(now) {
                return;
            }
            let (identity, run) = (shared.identity.fingerprint(), shared.incarnation);
            let hint = Announce::hint(Announce::ANSWER, identity, run, 0, 0);
            shared.send(self.port, to, hint.as_bytes().to_vec());
            return;
        }
        if let Some(pending) = self.pending.get_mut(&fingerprint) {
            pending.announced = now;
            if !pending.to.contains(&to) {
                if pending.to.len() >= SOURCES_MAX {
                    pending.to.remove(0);
                }
                pending.to.push(to);
            }
            if !is_answer {
                pending.wanted = Some(stream);
            }
            return;
        }
        let incarnation = announce.incarnation.get();
        let link = self
            .links
            .iter_mut()
            .filter(|(_, link)| link.fingerprint == fingerprint && link.ends_at.is_none())
            .max_by_key(|(_, link)| link.created);
        let mut renews = None;
        if let Some((id, link)) = link {
            if link.incarnation == incarnation {
                let is_early = link
                    .last_notice
                    .is_some_and(|last| now < last + NOTICE_INTERVAL);
                // Of an announcement under a sealed SETUP, the key id tells whether a grant was missed.
                let id = announce.has_setup().then_some(KeyId(announce.key_id));
                let has_key = self.streams.get(&stream).is_some_and(|state| {
                    let mut epochs = state.epochs.iter();
                    epochs.any(|epoch| id.is_none_or(|id| epoch.id == id))
                });
                if !is_answer && !has_key && !is_early {
                    link.last_notice = Some(now);
                    let key = RequestedKey::Stream {
                        session_id: stream.0,
                        stream_id: stream.1,
                    };
                    link.request(shared, self.port, now, key);
                }
                return;
            }
            // The field is unproved: the old link stays, and this costs a handshake only now and then.
            let last = self.restarts.get(&fingerprint);
            if last.is_some_and(|last| now < last + INCARNATION_INTERVAL) {
                return;
            }
            self.restarts.insert(fingerprint, now);
            renews = Some(*id);
        }
        let wanted = (!is_answer).then_some(stream);
        self.start(shared, now, &key, to, wanted, renews);
    }

    pub(super) fn on_unknown_key(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        id: KeyId,
        length: usize,
    ) {
        let known = self
            .links
            .values_mut()
            .filter(|link| link.address == source && link.ends_at.is_none())
            .max_by_key(|link| link.created);
        if let Some(link) = known {
            let is_early = link
                .last_unknown
                .is_some_and(|last| now < last + NOTICE_INTERVAL);
            if !is_early {
                link.last_unknown = Some(now);
                link.request(shared, self.port, now, RequestedKey::Id(id));
                // The id is unproved: a flood of others would keep the one out whose grant was missed. The streams of the
                // sender need no id.
                for stream in next_streams(&self.streams, link) {
                    link.last_asked = Some(stream);
                    let key = RequestedKey::Stream {
                        session_id: stream.0,
                        stream_id: stream.1,
                    };
                    link.request(shared, self.port, now, key);
                }
            }
            return;
        }
        self.unknown_bytes = self.unknown_bytes.saturating_add(length);
        let is_early = self
            .last_hello
            .is_some_and(|last| now < last + NOTICE_INTERVAL);
        // No answer is longer than what it answers.
        if is_early || self.unknown_bytes < crate::frame::QUESTION_LENGTH || !self.hello.take(now) {
            return;
        }
        self.last_hello = Some(now);
        self.unknown_bytes = 0;
        let hello = Hello::new(id, shared.random(), 0, 0);
        let to = self.config.control.unwrap_or(source);
        shared.send(self.port, to, hello.as_bytes().to_vec());
    }

    /// Asks the owner of a key for another epoch of its stream.
    pub(super) fn wish(&mut self, shared: &mut Shared<P>, now: u64, id: KeyId) {
        let mut streams = self.streams.values();
        let Some(state) = streams.find(|state| state.epochs.iter().any(|epoch| epoch.id == id))
        else {
            return;
        };
        let mut links = self.links.values_mut();
        let link = links.find(|link| {
            link.name == state.owner && link.is_up && link.ends_at.is_none_or(|ends| now < ends)
        });
        if let Some(link) = link {
            link.send(shared, self.port, &[Item::Wish(id)]);
        }
    }

    pub(super) fn on_setup_request(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        control: SocketAddr,
    ) {
        let is_wanted = self.is_resolver || !self.subscriptions.is_empty();
        if !is_wanted
            || self
                .pending
                .values()
                .any(|pending| pending.to.contains(&control))
        {
            return;
        }
        let link = self
            .links
            .values()
            .filter(|link| link.address == control && link.ends_at.is_none())
            .max_by_key(|link| link.created);
        if let Some(link) = link {
            let (id, name) = (link.keys.own_id(), link.name.clone());
            self.request_awaited(shared, now, id, &name);
            return;
        }
        if let Some(key) = self.expected(shared) {
            // No question is needed, so that a flood of questions to the sender keeps this receiver out no longer.
            self.start(shared, now, &key, control, None, None);
            return;
        }
        if !self.hello.take(now) {
            return;
        }
        let hello = Hello::new(KeyId::NONE, shared.random(), 0, 0);
        shared.send(self.port, control, hello.as_bytes().to_vec());
    }

    /// Returns what a neighbour of name resolution may send, and have.
    fn may(&self, peer: &crate::trust::Peer) -> (bool, bool) {
        let address = self.config.address;
        (peer.may_publish(address, 0), peer.may_subscribe(address, 0))
    }

    pub(super) fn on_first_open(&mut self, now: u64, id: KeyId) {
        for state in self.streams.values_mut() {
            let Some(epoch) = state.epochs.iter().find(|epoch| epoch.id == id) else {
                continue;
            };
            let newest = epoch.epoch;
            let before = newest.saturating_sub(1);
            if state.closing.is_none_or(|(closing, _)| closing < before) {
                state.closing = Some((before, now + EPOCH_GRACE));
            }
            for older in state.epochs.iter_mut().filter(|older| older.epoch < newest) {
                older.expires = older.expires.min(now + EPOCH_GRACE);
            }
        }
    }

    pub(super) fn on_pair(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        frames: PairFrames<'_>,
    ) {
        for frame in frames {
            let id = frame.link_id();
            let Some(link) = self.links.get_mut(&id) else {
                continue;
            };
            let Ok((content, is_newest)) = link.keys.open(&frame) else {
                shared.counts.failed_opens += 1;
                continue;
            };
            let Ok(items) = Items::parse(&content) else {
                shared.counts.out_of_bounds += 1;
                continue;
            };
            if !items
                .clone()
                .all(|item| is_senders(&item, self.is_resolver))
            {
                shared.counts.out_of_bounds += 1;
                continue;
            }
            link.last_heard = now;
            link.tested = 0;
            link.next_test = now + KEEPALIVE;
            if !link.is_up {
                link.is_up = true;
                shared.counts.handshakes += 1;
                shared.event(Event::LinkUp {
                    port: self.port,
                    peer: link.name.clone(),
                    address: link.address,
                    suite: link.suite,
                });
                self.on_incarnation(shared, id);
            }
            if let Some(link) = self.links.get_mut(&id)
                && is_newest
                && source != link.address
                && self.config.control.is_none()
            {
                link.challenge_address(shared, self.port, now, source);
            }
            self.on_items(shared, now, source, id, items);
        }
    }

    /// Ends the links of an earlier run of the same peer: nothing is taken over them any more.
    fn on_incarnation(&mut self, shared: &mut Shared<P>, id: u64) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (name, incarnation) = (link.name.clone(), link.incarnation);
        let earlier: Vec<u64> = self
            .links
            .iter()
            .filter(|(other, link)| {
                **other != id && link.name == name && link.incarnation != incarnation
            })
            .map(|(id, _)| *id)
            .collect();
        for id in earlier {
            self.end_link(shared, id, None);
        }
    }

    fn on_items(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        id: u64,
        items: Items<'_>,
    ) {
        for item in items {
            let Some(link) = self.links.get_mut(&id) else {
                return;
            };
            match item {
                Item::Grant(grant) => self.on_grant(shared, now, id, &grant),
                Item::Refused {
                    request,
                    code,
                    text,
                } => {
                    let before = link.requests.len();
                    link.requests.retain(|other| other.number != request);
                    if link.requests.len() != before {
                        let event = Event::RequestRefused {
                            port: self.port,
                            peer: link.name.clone(),
                            code,
                            text: refusal_text(code, text),
                        };
                        shared.refusal(now, event);
                    }
                }
                Item::Got(key) => {
                    if let Some(key) = link.back.confirm(key)
                        && (!self.is_resolver || link.may.1)
                    {
                        shared.output(Output::SealBack {
                            port: self.port,
                            link: id,
                            to: link.address,
                            key,
                        });
                    }
                }
                Item::BackKey {
                    epoch,
                    suite,
                    secret,
                } => {
                    let context = BackContext {
                        identity: link.fingerprint,
                        suite: link.suite,
                        receiver_id: self.config.receiver_id,
                    };
                    let key = (epoch, suite, &secret);
                    let taken = link.peer_back.take(shared, self.port, now, &context, key);
                    if let Some(taken) = taken {
                        if let Some(key) = taken.fresh.filter(|_| link.may.0) {
                            shared.output(Output::OpenBack {
                                port: self.port,
                                link: id,
                                receiver_id: self.config.receiver_id,
                                address: Some(link.address),
                                key,
                            });
                        }
                        link.send(shared, self.port, &[Item::Got(taken.id)]);
                    }
                }
                Item::Retire(key) => {
                    // Only keys of the peer at the other end: those of another owner stay.
                    let name = link.name.clone();
                    let owned: BTreeSet<Stream> = self
                        .streams
                        .iter()
                        .filter(|(_, state)| state.owner == name)
                        .map(|(stream, _)| *stream)
                        .collect();
                    self.close_epochs(shared, |stream, epoch| {
                        epoch.id == key && owned.contains(&stream)
                    });
                }
                Item::Renew => {
                    let (peer, to) = (link.peer, link.address);
                    if !self.pending.contains_key(&peer.fingerprint::<P>()) {
                        self.start(shared, now, &peer, to, None, Some(id));
                    }
                }
                Item::Path(random) => {
                    let answer = [Item::PathAnswer(random)];
                    send_items(&mut link.keys, shared, self.port, source, &answer);
                }
                Item::PathAnswer(random) => {
                    link.answer_challenge(shared, self.port, source, random);
                }
                Item::Bye(_) => self.end_link(shared, id, None),
                _ => {}
            }
        }
    }

    /// Installs the key of a grant, if its author may grant it.
    fn on_grant(&mut self, shared: &mut Shared<P>, now: u64, id: u64, grant: &Grant) {
        let name = self.links.get(&id).map(|link| link.name.clone());
        let is_peer = name.as_ref().is_some_and(|name| self.is_peer(name));
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let stream = (grant.session_id, grant.stream_id);
        link.requests
            .retain(|request| request.number != grant.request);
        if !is_subscribed(&self.subscriptions, stream) {
            return;
        }
        let name = link.name.clone();
        let incarnation = link.incarnation;
        let trusted = shared.trust.by_key::<P>(&link.peer);
        let is_allowed = trusted.is_some_and(|peer| {
            peer.name() == name && peer.may_publish(self.config.address, stream.1)
        });
        // The identity that drew the key is the link's own, or another key of the same driver.
        let is_own = shared
            .trust
            .by_fingerprint(&grant.identity)
            .is_some_and(|peer| peer.name() == name);
        let suite =
            Suite::from_id(grant.suite).filter(|suite| shared.options.suites.contains(suite));
        // A destination that names its peers may bring a stream of another owner: the configuration says so.
        let is_owned = self.config.peers.is_none();
        let owned_stream = (self.config.group, stream);
        let fingerprint = link.fingerprint;
        let why = if !is_allowed || !is_own {
            Some(Refusal::Publish(Some(stream.1)))
        } else if !is_peer {
            Some(Refusal::NotNamed)
        } else if suite.is_none() {
            Some(Refusal::Suite)
        } else if is_owned && !shared.owners.may_take(owned_stream, &name)
            || self
                .responders
                .get(&stream)
                .is_some_and(|responder| *responder != name)
        {
            Some(Refusal::Owned)
        } else if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&stream) {
            Some(Refusal::Limit)
        } else {
            None
        };
        let (None, Some(suite)) = (why, suite) else {
            let event = self.refused(&name, fingerprint, why.unwrap_or(Refusal::Suite));
            shared.refusal(now, event);
            return;
        };
        let context = KeyContext {
            role: Role::Stream,
            suite,
            identity: grant.identity,
            session_id: stream.0,
            stream_id: stream.1,
            epoch: grant.epoch,
        };
        let material = KeyMaterial::derive::<P>(&grant.secret, &context);
        let key_id = material.id();
        let holder = self.streams.iter().find_map(|(stream, state)| {
            let mut epochs = state.epochs.iter();
            epochs.any(|epoch| epoch.id == key_id).then_some(*stream)
        });
        if let Some(holder) = holder {
            // The grant of an installed key changes nothing, least of all its window.
            let item = if holder == stream {
                Item::Got(key_id)
            } else {
                Item::Wish(key_id)
            };
            link.send(shared, self.port, &[item]);
            if holder == stream {
                shared.output(Output::StreamLink(LinkStream {
                    port: self.port,
                    link: id,
                    session_id: stream.0,
                    stream_id: stream.1,
                }));
            }
            return;
        }
        let state = self.streams.entry(stream).or_insert_with(|| OpenStream {
            owner: name.clone(),
            incarnation,
            epochs: Vec::new(),
            highest_closed: None,
            closing: None,
        });
        state.on_time(now);
        if state.owner != name || state.incarnation != incarnation {
            // Another run of the owner, or another owner after the last key was closed: its epochs start anew.
            for epoch in state.epochs.drain(..) {
                close(shared, self.port, owned_stream, &epoch);
            }
            state.owner.clone_from(&name);
            state.incarnation = incarnation;
            state.highest_closed = None;
            state.closing = None;
        }
        let is_closed = state
            .highest_closed
            .is_some_and(|highest| grant.epoch <= highest);
        if is_closed {
            return;
        }
        while state.epochs.len() >= EPOCHS_MAX {
            let oldest = state
                .epochs
                .iter()
                .enumerate()
                .min_by_key(|(_, epoch)| epoch.epoch)
                .map_or(0, |(index, _)| index);
            let oldest = state.epochs.remove(oldest);
            state.highest_closed = state.highest_closed.max(Some(oldest.epoch));
            close(shared, self.port, owned_stream, &oldest);
        }
        if state
            .highest_closed
            .is_some_and(|highest| grant.epoch <= highest)
        {
            return;
        }
        if is_owned {
            shared.owners.key_opened(owned_stream, &name);
        }
        let life = (u64::from(grant.life_seconds) * SECOND).min(KEY_AGE_MAX);
        state.epochs.push(OpenEpoch {
            epoch: grant.epoch,
            id: key_id,
            identity: grant.identity,
            expires: now + life,
            is_owned,
        });
        shared.output(Output::OpenStream {
            port: self.port,
            link: id,
            session_id: stream.0,
            stream_id: stream.1,
            epoch: grant.epoch,
            key: Box::new(OpenKey::new(
                &material,
                Direction::Forward,
                grant.first_counter,
            )),
        });
        link.send(shared, self.port, &[Item::Got(key_id)]);
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

/// Returns the streams of the sender of a link that are to be asked for next: a few, each in its turn.
fn next_streams<P: Provider>(
    streams: &BTreeMap<Stream, OpenStream>,
    link: &ReceiveLink<P>,
) -> Vec<Stream> {
    let is_own = |(_, state): &(&Stream, &OpenStream)| {
        let is_senders = state.owner == link.name && state.incarnation == link.incarnation;
        is_senders && !state.epochs.is_empty()
    };
    let later = match link.last_asked {
        Some(last) => streams.range((Bound::Excluded(last), Bound::Unbounded)),
        None => streams.range(..),
    };
    let from_start = streams.range(..);
    let mut chosen: Vec<Stream> = Vec::new();
    for (stream, _) in later.chain(from_start).filter(is_own) {
        if chosen.len() == ASKED_AT_ONCE || chosen.contains(stream) {
            break;
        }
        chosen.push(*stream);
    }
    chosen
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

/// Returns true if a sender may send this item; a neighbour of name resolution grants nothing, and seals feedback.
const fn is_senders(item: &Item<'_>, is_resolver: bool) -> bool {
    match item {
        Item::Grant(_) | Item::Refused { .. } => !is_resolver,
        Item::BackKey { .. } => is_resolver,
        Item::Got(_)
        | Item::Retire(_)
        | Item::Renew
        | Item::Bye(_)
        | Item::Path(_)
        | Item::PathAnswer(_) => true,
        _ => false,
    }
}

fn is_subscribed(subscriptions: &BTreeSet<(Option<i32>, i32)>, stream: Stream) -> bool {
    subscriptions.contains(&(None, stream.1)) || subscriptions.contains(&(Some(stream.0), stream.1))
}
