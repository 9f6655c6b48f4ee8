// SPDX-License-Identifier: Apache-2.0
//! Sender's side: answers handshakes and hands out the keys of streams.

mod epochs;
mod handshakes;
mod items;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use zerocopy::IntoBytes;

use super::allowance::Allowance;
use super::send_link::SendLink;
use super::{
    Event, KeeperOptions, LINK_SILENCE, LinkStream, Output, Port, Refusal, Rotation, Shared,
    Stream, printable,
};
use crate::derive::{Fingerprint, KeyId, KeyMaterial, PublicKey};
use crate::frame::{Announce, Code, Hello, Item};
use crate::provider::{Provider, Suite};
use crate::secret::Secret;

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

/// Returns the text of a refusal.
pub(super) fn refusal_text(code: Code, text: &[u8]) -> String {
    format!("code {} {}", code.0, printable(text))
}
