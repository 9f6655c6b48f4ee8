// SPDX-License-Identifier: Apache-2.0
//! Sender's side: answers handshakes and hands out the keys of streams.

mod handshakes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::IntoBytes;

use super::allowance::Allowance;
use super::send_link::SendLink;
use super::{
    Event, KEY_AGE_MAX, KeeperOptions, LINK_SILENCE, LinkStream, Output, Port, Refusal, Rotation,
    SECOND, Shared, Stream, printable,
};
use crate::derive::{Fingerprint, KeyContext, KeyId, KeyMaterial, PublicKey, Role};
use crate::frame::{
    Announce, Code, GRANT_CURRENT, GRANT_NEXT, Grant, Hello, Item, Items, PairFrames, RequestedKey,
};
use crate::provider::{Provider, Suite};
use crate::seal::{Direction, SealKey};
use crate::secret::Secret;

/// Streams granted on a link.
const GRANTS_MAX: usize = 4_096;
/// Longest wait for the receivers at a rotation.
const GRACE: u64 = SECOND;
/// Time between two rotations that receivers wish.
const WISH_INTERVAL: u64 = 10 * SECOND;
/// Time that a key lives beyond its rotation.
const LIFE_MARGIN: u64 = 60 * SECOND;

/// Receivers that may have a stream, of those that the trust store allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// All of them.
    All,
    /// One peer by name: the stream answers its requests.
    Peer(String),
    /// None.
    Empty,
}

impl Audience {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Peer(peer) => peer == name,
            Self::Empty => false,
        }
    }
}

/// Configuration of a send endpoint.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Address that patterns are matched against: data address, or control address.
    pub address: SocketAddr,
    /// Channel tags that a receiver may ask with.
    pub tags: Vec<[u8; 4]>,
    /// Multicast group that answers go to; none if they go to where the question came from.
    pub group: Option<SocketAddr>,
    /// Names of the peers that may be at the other end; none for all that are trusted.
    pub peers: Option<Vec<String>>,
}

/// Epoch of a stream.
struct Epoch {
    epoch: u32,
    suite: Suite,
    secret: Secret,
    /// Identity that drew the secret.
    identity: Fingerprint,
    id: KeyId,
    material: KeyMaterial,
    progress: Arc<AtomicU64>,
    drawn: u64,
}

struct NextEpoch {
    epoch: Epoch,
    switch_at: u64,
    /// Links that have not yet said that they have the key.
    waiting: BTreeSet<u64>,
    why: Rotation,
}

struct SendStream {
    current: Epoch,
    next: Option<NextEpoch>,
    /// Key id of the epoch before, by which a receiver that missed a grant still asks.
    previous: Option<KeyId>,
    last_wish: Option<u64>,
    audience: Audience,
}

struct HalfOpen<P: Provider> {
    link: SendLink<P>,
    expires: u64,
}

/// Send endpoint.
pub(super) struct SendEndpoint<P: Provider> {
    port: Port,
    config: SenderConfig,
    /// Both ends seal feedback, and there are no streams.
    is_resolver: bool,
    streams: BTreeMap<Stream, SendStream>,
    half_open: VecDeque<HalfOpen<P>>,
    links: BTreeMap<u64, SendLink<P>>,
    hello: Allowance,
}

impl<P: Provider> SendEndpoint<P> {
    pub(super) fn new(port: Port, config: SenderConfig) -> Self {
        Self {
            port,
            config,
            is_resolver: port == Port::Resolver,
            streams: BTreeMap::new(),
            half_open: VecDeque::new(),
            links: BTreeMap::new(),
            hello: Allowance::new(100, 64),
        }
    }

    pub(super) fn set_tags(&mut self, tags: Vec<[u8; 4]>) {
        self.config.tags = tags;
    }

    pub(super) fn link_count(&self) -> usize {
        self.links.len()
    }

    /// Returns the name of the peer of each link.
    pub(super) fn peers(&self) -> impl Iterator<Item = &str> {
        self.links.values().map(|link| link.name.as_str())
    }

    /// Returns the name of the peer of a link.
    pub(super) fn peer_of(&self, link: u64) -> Option<&str> {
        self.links.get(&link).map(|link| link.name.as_str())
    }

    pub(super) fn close(&mut self, shared: &mut Shared<P>) {
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            self.end_link(shared, id, Some(Code::CLOSED));
        }
    }

    fn install(&self, shared: &mut Shared<P>, stream: Stream, epoch: &Epoch) {
        let key = SealKey::new(&epoch.material, Direction::Forward);
        let mut key = key.expiring(epoch.drawn.saturating_add(KEY_AGE_MAX));
        key.publish_progress(Arc::clone(&epoch.progress));
        shared.output(Output::SealStream {
            port: self.port,
            session_id: stream.0,
            stream_id: stream.1,
            epoch: epoch.epoch,
            key: Box::new(key),
        });
    }

    pub(super) fn add_stream(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        stream: Stream,
        audience: Audience,
    ) {
        if self.streams.contains_key(&stream) {
            return;
        }
        let Some(current) = draw(shared, now, stream) else {
            return;
        };
        self.install(shared, stream, &current);
        let added = SendStream {
            current,
            next: None,
            previous: None,
            last_wish: None,
            audience,
        };
        self.streams.insert(stream, added);
    }

    pub(super) fn remove_stream(&mut self, shared: &mut Shared<P>, stream: Stream) {
        let Some(removed) = self.streams.remove(&stream) else {
            return;
        };
        shared.output(Output::DropStream {
            port: self.port,
            session_id: stream.0,
            stream_id: stream.1,
        });
        let retired: Vec<KeyId> = std::iter::once(removed.current.id)
            .chain(removed.next.map(|next| next.epoch.id))
            .collect();
        for link in self.links.values_mut() {
            if link.granted.remove(&stream) {
                shared.output(Output::Revoke(LinkStream {
                    port: self.port,
                    link: link.keys.own_id(),
                    session_id: stream.0,
                    stream_id: stream.1,
                }));
                let items: Vec<Item<'_>> = retired.iter().map(|id| Item::Retire(*id)).collect();
                link.send(shared, self.port, &items);
            }
        }
    }

    /// Draws the next epoch of a stream and pushes it to all that hold the present one.
    pub(super) fn rotate(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        stream: Stream,
        why: Rotation,
    ) {
        let is_due = self
            .streams
            .get(&stream)
            .is_some_and(|state| state.next.is_none() || why == Rotation::Trust);
        if !is_due {
            return;
        }
        let Some(epoch) = draw(shared, now, stream) else {
            return;
        };
        let mut waiting = BTreeSet::new();
        let grant = grant(&epoch, stream, 0, GRANT_NEXT, &shared.options, now);
        for (id, link) in &mut self.links {
            if link.granted.contains(&stream) && link.suites & epoch.suite.bit() != 0 {
                link.send(shared, self.port, &[Item::Grant(grant.clone())]);
                waiting.insert(*id);
            }
        }
        shared.counts.rotations += 1;
        if let Some(state) = self.streams.get_mut(&stream) {
            if let Some(abandoned) = state.next.take() {
                // It was granted, perhaps to the peer that is trusted no longer, and is never used.
                for link in self.links.values_mut() {
                    if link.granted.contains(&stream) {
                        link.send(shared, self.port, &[Item::Retire(abandoned.epoch.id)]);
                    }
                }
            }
            state.next = Some(NextEpoch {
                epoch,
                switch_at: if why == Rotation::Trust {
                    now
                } else {
                    now + GRACE
                },
                waiting,
                why,
            });
        }
        self.switch(shared, now, stream);
    }

    pub(super) fn rotate_all(&mut self, shared: &mut Shared<P>, now: u64, why: Rotation) {
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            self.rotate(shared, now, stream, why);
        }
        for link in self.links.values_mut() {
            if let Some(own) = &mut link.own_back
                && let Some(next) = own.next(shared, now)
            {
                *own = next;
                link.send_back_key(shared, self.port, now);
            }
        }
    }

    /// Ends all links without sealing anything, and changes all streams to new keys at once.
    pub(super) fn redraw(&mut self, shared: &mut Shared<P>, now: u64) {
        self.forget_half_open(shared);
        for (id, mut link) in std::mem::take(&mut self.links) {
            // A hint is not sealed: the number of this run in it makes the receiver start a handshake at once.
            let (identity, run) = (shared.identity.fingerprint(), shared.incarnation);
            let hint = Announce::hint(Announce::ANSWER, identity, run, 0, 0);
            let to = link.group.unwrap_or(link.address);
            shared.send(self.port, to, hint.as_bytes().to_vec());
            link.peer_back.close(shared, self.port, |_, _| true);
            shared.output(Output::Unlink {
                port: self.port,
                link: id,
            });
            shared.event(Event::LinkDown {
                port: self.port,
                peer: link.name,
            });
        }
        for state in self.streams.values_mut() {
            state.next = None;
        }
        // Without links there is no receiver to wait for.
        self.rotate_all(shared, now, Rotation::Clock);
    }

    /// Changes to the next epoch once all have it, or the grace is over.
    fn switch(&mut self, shared: &mut Shared<P>, now: u64, stream: Stream) {
        let Some(state) = self.streams.get_mut(&stream) else {
            return;
        };
        let is_due = |next: &mut NextEpoch| next.waiting.is_empty() || now >= next.switch_at;
        let Some(next) = state.next.take_if(is_due) else {
            return;
        };
        let before = std::mem::replace(&mut state.current, next.epoch);
        state.previous = Some(before.id);
        let (epoch, why) = (state.current.epoch, next.why);
        if why == Rotation::Trust {
            // A peer that is trusted no longer may still have the key: the others must not open it either.
            for link in self.links.values_mut() {
                if link.granted.contains(&stream) {
                    link.send(shared, self.port, &[Item::Retire(before.id)]);
                }
            }
        }
        if let Some(state) = self.streams.get(&stream) {
            self.install(shared, stream, &state.current);
        }
        shared.event(Event::KeyRotated {
            port: self.port,
            session_id: stream.0,
            stream_id: stream.1,
            epoch,
            why,
        });
    }

    pub(super) fn on_trust(&mut self, shared: &mut Shared<P>, now: u64) {
        self.forget_half_open(shared);
        let address = self.config.address;
        let mut rotated = BTreeSet::new();
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            let Some(link) = self.links.get_mut(&id) else {
                continue;
            };
            let peer = shared.trust.by_key::<P>(&link.peer);
            let is_named = peer.is_some_and(|peer| peer.name() == link.name);
            // What a neighbour may send and have is decided when its link gets its keys.
            let is_allowed = !self.is_resolver
                || peer.is_some_and(|peer| {
                    (peer.may_publish(address, 0), peer.may_subscribe(address, 0))
                        == (link.may_publish, link.may_subscribe)
                });
            let lost: Vec<Stream> = link
                .granted
                .iter()
                .filter(|stream| {
                    !peer.is_some_and(|peer| peer.may_subscribe(self.config.address, stream.1))
                })
                .copied()
                .collect();
            if is_named && is_allowed {
                for stream in &lost {
                    link.granted.remove(stream);
                    shared.output(Output::Revoke(LinkStream {
                        port: self.port,
                        link: id,
                        session_id: stream.0,
                        stream_id: stream.1,
                    }));
                }
                rotated.extend(lost);
            } else {
                rotated.extend(link.granted.iter().copied());
                self.end_link(shared, id, Some(Code::NOT_ALLOWED));
            }
        }
        for stream in rotated {
            self.rotate(shared, now, stream, Rotation::Trust);
        }
    }

    pub(super) fn on_hello(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        hello: &Hello,
    ) {
        if !self.hello.take(now) {
            return;
        }
        let asked = (hello.session_id.get(), hello.stream_id.get());
        // The session of a response is told to its peer alone.
        let asked_of = self.streams.get(&asked);
        let stream = if asked_of.is_some_and(|state| state.audience == Audience::All) {
            asked
        } else {
            (0, 0)
        };
        // Never with a sealed SETUP: the sealing agent alone takes counters of a key.
        let announce = Announce::hint(
            Announce::ANSWER,
            shared.identity.fingerprint(),
            shared.incarnation,
            stream.0,
            stream.1,
        );
        let to = self.config.group.unwrap_or(source);
        shared.send(self.port, to, announce.as_bytes().to_vec());
    }

    fn refused(&self, peer: &str, key: &PublicKey, why: Refusal) -> Event {
        Event::PeerRefused {
            port: self.port,
            peer: peer.to_owned(),
            fingerprint: key.fingerprint::<P>(),
            channel: self.config.address,
            why,
        }
    }

    fn is_peer(&self, name: &str) -> bool {
        let peers = self.config.peers.as_ref();
        peers.is_none_or(|peers| peers.iter().any(|peer| peer == name))
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
            let half_open = self
                .half_open
                .iter()
                .position(|half_open| half_open.link.keys.own_id() == id);
            let link = match half_open {
                Some(at) => Some(&mut self.half_open[at].link),
                None => self.links.get_mut(&id),
            };
            let Some(link) = link else {
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
                .all(|item| is_receivers(&item, self.is_resolver))
            {
                shared.counts.out_of_bounds += 1;
                continue;
            }
            if let Some(at) = half_open
                && !self.confirm(shared, now, source, at)
            {
                continue;
            }
            self.on_items(shared, now, source, id, is_newest, items);
        }
    }

    fn on_items(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        id: u64,
        is_newest: bool,
        items: Items<'_>,
    ) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        link.last_heard = now;
        if is_newest && link.may_have_moved(source) {
            link.challenge_address(shared, self.port, now, source);
        }
        let mut answers: Vec<Item<'_>> = Vec::new();
        let mut announced = Vec::new();
        let mut is_over = false;
        let mut has_next = false;
        let mut is_empty = true;
        for item in items {
            is_empty = false;
            match item {
                Item::BackKey {
                    epoch,
                    suite,
                    secret,
                } => {
                    let may_be = !self.is_resolver || link.may_publish;
                    let key = (epoch, suite, &secret);
                    if let Some(key) = link.take_back_key(shared, self.port, now, key, may_be) {
                        answers.push(Item::Got(key));
                    }
                }
                Item::Request { request, key } => {
                    match grant_for(&self.streams, &self.config, shared, link, now, request, key) {
                        Ok((stream, grants)) => {
                            if link.granted.insert(stream) {
                                shared.output(Output::Grant(LinkStream {
                                    port: self.port,
                                    link: id,
                                    session_id: stream.0,
                                    stream_id: stream.1,
                                }));
                            }
                            answers.extend(grants.into_iter().map(Item::Grant));
                            announced.push(stream);
                        }
                        Err(refused) => {
                            if let Some(why) = refused.why {
                                let event = Event::PeerRefused {
                                    port: self.port,
                                    peer: link.name.clone(),
                                    fingerprint: link.peer.fingerprint::<P>(),
                                    channel: self.config.address,
                                    why,
                                };
                                shared.refusal(now, event);
                            }
                            answers.push(Item::Refused {
                                request,
                                code: refused.code,
                                text: b"",
                            });
                        }
                    }
                }
                Item::Got(key) => {
                    // Until the address is proved, the key is passed on again, and confirmed again.
                    let own = link.own_back.as_mut().filter(|_| link.is_proved);
                    if let Some(key) = own.and_then(|own| own.confirm(key))
                        && link.may_subscribe
                    {
                        shared.output(Output::SealBack {
                            port: self.port,
                            link: id,
                            to: link.address,
                            key,
                        });
                    }
                    let streams = self.streams.values_mut();
                    for next in streams.filter_map(|state| state.next.as_mut()) {
                        if next.epoch.id == key {
                            has_next |= next.waiting.remove(&id);
                        }
                    }
                }
                Item::Retire(key) => {
                    link.peer_back.close(shared, self.port, |id, _| id == key);
                }
                Item::Wish(key) => {
                    let wished = self
                        .streams
                        .iter_mut()
                        .find(|(_, state)| state.current.id == key);
                    if let Some((stream, state)) = wished
                        && link.granted.contains(stream)
                        && state
                            .last_wish
                            .is_none_or(|last| now >= last + WISH_INTERVAL)
                    {
                        state.last_wish = Some(now);
                        link.wishes.push(*stream);
                    }
                }
                Item::Path(random) => {
                    link.send_to(shared, self.port, source, &[Item::PathAnswer(random)]);
                }
                Item::PathAnswer(random) => {
                    link.answer_challenge(shared, self.port, source, random);
                }
                Item::Bye(_) => is_over = true,
                _ => {}
            }
        }
        if is_empty || !answers.is_empty() {
            link.send(shared, self.port, &answers);
        }
        let wishes = std::mem::take(&mut link.wishes);
        for (session_id, stream_id) in announced {
            shared.output(Output::Announce(LinkStream {
                port: self.port,
                link: id,
                session_id,
                stream_id,
            }));
        }
        for stream in wishes {
            self.rotate(shared, now, stream, Rotation::Wish);
        }
        if has_next {
            for stream in self.streams.keys().copied().collect::<Vec<_>>() {
                self.switch(shared, now, stream);
            }
        }
        if is_over {
            self.leave(shared, now, id, None);
        }
    }

    /// Ends the link of a receiver that left, and rotates its streams if the options say so.
    fn leave(&mut self, shared: &mut Shared<P>, now: u64, id: u64, code: Option<Code>) {
        let granted = self
            .links
            .get(&id)
            .map(|link| link.granted.clone())
            .unwrap_or_default();
        self.end_link(shared, id, code);
        if shared.options.rotate_on_leave {
            for stream in granted {
                self.rotate(shared, now, stream, Rotation::Leave);
            }
        }
    }

    fn end_link(&mut self, shared: &mut Shared<P>, id: u64, code: Option<Code>) {
        let Some(mut link) = self.links.remove(&id) else {
            return;
        };
        if let Some(code) = code {
            link.send(shared, self.port, &[Item::Bye(code)]);
        }
        link.peer_back.close(shared, self.port, |_, _| true);
        for state in self.streams.values_mut() {
            if let Some(next) = &mut state.next {
                next.waiting.remove(&id);
            }
        }
        shared.output(Output::Unlink {
            port: self.port,
            link: id,
        });
        shared.event(Event::LinkDown {
            port: self.port,
            peer: link.name,
        });
    }

    pub(super) fn on_other_address(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        link: u64,
        source: SocketAddr,
    ) {
        if let Some(link) = self.links.get_mut(&link)
            && link.may_have_moved(source)
        {
            link.challenge_address(shared, self.port, now, source);
        }
    }

    pub(super) fn on_tick(&mut self, shared: &mut Shared<P>, now: u64) {
        let port = self.port;
        self.half_open.retain(|half_open| {
            let is_waiting = now < half_open.expires;
            if !is_waiting {
                shared.unlink(port, half_open.link.keys.own_id());
            }
            is_waiting
        });
        let silent: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, link)| now >= link.last_heard + LINK_SILENCE)
            .map(|(id, _)| *id)
            .collect();
        for id in silent {
            self.leave(shared, now, id, None);
        }
        let interval = shared.options.rotate_interval;
        for link in self.links.values_mut() {
            let is_over = |_, expires: Option<u64>| expires.is_some_and(|expires| now >= expires);
            link.peer_back.close(shared, self.port, is_over);
            if let Some(own) = &mut link.own_back {
                if own.is_old(now, interval)
                    && let Some(next) = own.next(shared, now)
                {
                    *own = next;
                }
                if own.is_due(now) {
                    link.send_back_key(shared, self.port, now);
                }
            }
        }
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            let state = &self.streams[&stream];
            if state.next.is_none() && now >= state.current.drawn + interval {
                self.rotate(shared, now, stream, Rotation::Interval);
            }
            self.switch(shared, now, stream);
        }
    }

    pub(super) fn next_deadline(&self, options: &KeeperOptions) -> Option<u64> {
        let half_open = self.half_open.iter().map(|half_open| half_open.expires);
        let links = self.links.values().flat_map(|link| {
            let own = link.own_back.as_ref();
            let own = own.map(|own| own.deadline(options.rotate_interval));
            let back = link.peer_back.deadline().into_iter().chain(own);
            back.chain([link.last_heard + LINK_SILENCE])
        });
        let streams = self.streams.values().map(|state| match &state.next {
            Some(next) => next.switch_at,
            None => state.current.drawn + options.rotate_interval,
        });
        half_open.chain(links).chain(streams).min()
    }
}

/// Draws an epoch of a stream.
fn draw<P: Provider>(shared: &mut Shared<P>, now: u64, stream: Stream) -> Option<Epoch> {
    let suite = *shared.options.suites.first()?;
    let epoch = shared.epoch()?;
    let secret = shared.secret();
    let context = KeyContext {
        role: Role::Stream,
        suite,
        identity: shared.identity.fingerprint(),
        session_id: stream.0,
        stream_id: stream.1,
        epoch,
    };
    let material = KeyMaterial::derive::<P>(&secret, &context);
    Some(Epoch {
        epoch,
        suite,
        secret,
        identity: context.identity,
        id: material.id(),
        material,
        progress: Arc::default(),
        drawn: now,
    })
}

/// Returns true if a receiver may send this item; a neighbour of name resolution has no streams to ask for.
const fn is_receivers(item: &Item<'_>, is_resolver: bool) -> bool {
    match item {
        Item::Request { .. } | Item::Wish(_) => !is_resolver,
        Item::BackKey { .. }
        | Item::Got(_)
        | Item::Retire(_)
        | Item::Path(_)
        | Item::PathAnswer(_)
        | Item::Bye(_) => true,
        _ => false,
    }
}

/// Reason why a request is refused: what its peer is told, and what this end reports.
struct RefusedRequest {
    code: Code,
    why: Option<Refusal>,
}

impl From<Code> for RefusedRequest {
    fn from(code: Code) -> Self {
        Self { code, why: None }
    }
}

/// Returns the grants for a request: the present epoch, and the next one if it is on its way.
fn grant_for<P: Provider>(
    streams: &BTreeMap<Stream, SendStream>,
    config: &SenderConfig,
    shared: &Shared<P>,
    link: &SendLink<P>,
    now: u64,
    request: u32,
    key: RequestedKey,
) -> Result<(Stream, Vec<Grant>), RefusedRequest> {
    let found = match key {
        RequestedKey::Stream {
            session_id,
            stream_id,
        } => streams.get_key_value(&(session_id, stream_id)),
        RequestedKey::Id(id) => streams.iter().find(|(_, state)| {
            state.current.id == id
                || state.previous == Some(id)
                || state.next.as_ref().is_some_and(|next| next.epoch.id == id)
        }),
    };
    // Whether a stream exists is told only to those that may have it.
    let trusted = shared.trust.by_key::<P>(&link.peer);
    let trusted = trusted.filter(|peer| peer.name() == link.name);
    let Some((stream, state)) = found else {
        return Err(Code::UNKNOWN_STREAM.into());
    };
    let may_have = state.audience.has(&link.name)
        && trusted.is_some_and(|peer| peer.may_subscribe(config.address, stream.1));
    if !may_have {
        let is_for_it = state.audience.has(&link.name);
        return Err(RefusedRequest {
            code: Code::UNKNOWN_STREAM,
            why: is_for_it.then_some(Refusal::Subscribe(Some(stream.1))),
        });
    }
    if link.granted.len() >= GRANTS_MAX && !link.granted.contains(stream) {
        return Err(Code::LIMIT.into());
    }
    if link.suites & state.current.suite.bit() == 0 {
        return Err(Code::SUITE.into());
    }
    let current = grant(
        &state.current,
        *stream,
        request,
        GRANT_CURRENT,
        &shared.options,
        now,
    );
    let next = state.next.as_ref().map(|next| {
        grant(
            &next.epoch,
            *stream,
            request,
            GRANT_NEXT,
            &shared.options,
            now,
        )
    });
    Ok((*stream, std::iter::once(current).chain(next).collect()))
}

fn grant(
    epoch: &Epoch,
    stream: Stream,
    request: u32,
    flags: u16,
    options: &KeeperOptions,
    now: u64,
) -> Grant {
    let until_rotation = (epoch.drawn + options.rotate_interval).saturating_sub(now);
    let life = (until_rotation + LIFE_MARGIN).min(KEY_AGE_MAX);
    Grant {
        request,
        session_id: stream.0,
        stream_id: stream.1,
        epoch: epoch.epoch,
        suite: epoch.suite.id(),
        flags,
        // Nothing that was sealed before is to be opened. Of the next epoch nothing was.
        first_counter: epoch.progress.load(Ordering::Relaxed),
        life_seconds: (life / SECOND) as u32,
        identity: epoch.identity,
        secret: epoch.secret.clone(),
    }
}

/// Returns the text of a refusal.
pub(super) fn refusal_text(code: Code, text: &[u8]) -> String {
    format!("code {} {}", code.0, printable(text))
}
