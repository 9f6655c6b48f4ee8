//! Sender's side: answers handshakes and hands out the keys of streams.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::IntoBytes;

use super::allowance::Allowance;
use super::cookie::CookieMaker;
use super::{
    Event, KEY_AGE_MAX, KeeperOptions, LINK_SILENCE, MILLI, Output, Port, Refusal, Rotation,
    SECOND, Shared, printable,
};
use crate::derive::{Fingerprint, KeyContext, KeyId, KeyMaterial, PublicKey, Role};
use crate::frame::{
    Announce, Code, Cookie, GRANT_CURRENT, GRANT_NEXT, Grant, Hello, Init, Item, ItemWriter, Items,
    PairFrames, RequestedKey, Resp,
};
use crate::handshake::{Answer, Received, is_addressed_to};
use crate::link::LinkKeys;
use crate::provider::{Provider, Suite};
use crate::seal::{Direction, OpenKey, SealKey};
use crate::secret::Secret;

/// A half-open link waits this long for its confirmation.
const HALF_OPEN: u64 = 5 * SECOND;
/// Half-open links of an endpoint.
const HALF_OPEN_MAX: usize = 256;
/// Links of an endpoint.
const LINKS_MAX: usize = 1_024;
/// Streams granted on a link.
const GRANTS_MAX: usize = 4_096;
/// INITs whose answers are remembered.
const ANSWERED_MAX: usize = 64;
/// Addresses whose rate of proved INITs is bounded.
const ADDRESSES_MAX: usize = 1_024;
/// Longest wait for the receivers at a rotation.
const GRACE: u64 = SECOND;
/// Time between two rotations that receivers wish.
const WISH_INTERVAL: u64 = 10 * SECOND;
/// An old back key is opened this long after the next one came.
const BACK_GRACE: u64 = 10 * SECOND;
/// Time that a key lives beyond its rotation.
const LIFE_MARGIN: u64 = 60 * SECOND;
/// Time between two challenges of an address.
const PATH_INTERVAL: u64 = 100 * MILLI;

/// Session id and stream id.
type Stream = (i32, i32);

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

/// Bounds the work for sources that proved nothing; one for all endpoints.
pub(super) struct Gate<P: Provider> {
    cookies: CookieMaker,
    /// INITs without a cookie. Half of the rate is kept for proved addresses.
    unproved: Allowance,
    proved: Allowance,
    addresses: HashMap<IpAddr, Allowance>,
    /// Answers to the last INITs, so that a repeated one costs no computation.
    answered: VecDeque<Answered>,
    provider: std::marker::PhantomData<P>,
}

struct Answered {
    port: Port,
    init: [u8; 32],
    resp: Resp,
}

impl<P: Provider> Gate<P> {
    pub(super) fn new(rate: u64, secret: Secret) -> Self {
        let half = rate.div_ceil(2).max(1);
        Self {
            cookies: CookieMaker::new(secret),
            unproved: Allowance::new(half, half.min(32)),
            proved: Allowance::new(half, half.min(32)),
            addresses: HashMap::new(),
            answered: VecDeque::new(),
            provider: std::marker::PhantomData,
        }
    }

    pub(super) fn on_tick(&mut self, shared: &mut Shared<P>, now: u64) {
        self.cookies.rotate(now, || shared.secret());
    }

    /// Decides about an INIT whose first authenticator is right.
    fn admit(&mut self, now: u64, source: SocketAddr, init: &Init) -> Admission {
        if init.cookie == [0; 24] {
            return if self.unproved.take(now) {
                Admission::Answer
            } else {
                Admission::Cookie
            };
        }
        let link_id = init.link_id.get();
        if !self
            .cookies
            .is_valid::<P>(now, source, link_id, &init.cookie)
        {
            return Admission::Cookie;
        }
        if self.addresses.len() >= ADDRESSES_MAX {
            self.addresses.clear();
        }
        let address = self
            .addresses
            .entry(network(source.ip()))
            .or_insert_with(|| Allowance::new(10, 10));
        if address.take(now) && self.proved.take(now) {
            Admission::Answer
        } else {
            Admission::Silence
        }
    }

    /// Takes a token of those without proof.
    #[cfg(test)]
    pub(super) fn exhaust(&mut self, now: u64) {
        self.unproved.take(now);
    }

    fn remember(&mut self, answered: Answered) {
        if self.answered.len() >= ANSWERED_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(answered);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    Answer,
    Cookie,
    Silence,
}

/// Returns the address, or the /64 network of an IPv6 address.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::from((ip.to_bits() >> 64 << 64).to_be_bytes()),
    }
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
}

struct HalfOpen<P: Provider> {
    link: SendLink<P>,
    expires: u64,
}

struct SendLink<P: Provider> {
    keys: LinkKeys<P>,
    peer: PublicKey,
    name: String,
    receiver_id: i64,
    incarnation: u64,
    suites: u16,
    back_suite: Suite,
    address: SocketAddr,
    /// The address is that of the receiver: what is sent to it has been answered from there.
    is_proved: bool,
    /// Group that everything for the receiver goes to; its own address then leads nothing anywhere.
    group: Option<SocketAddr>,
    granted: BTreeSet<Stream>,
    back: Vec<BackKey>,
    /// Highest epoch of a back key so far.
    highest_back: Option<u32>,
    /// Streams whose next epoch the receiver wishes, while its items are read.
    wishes: Vec<Stream>,
    last_heard: u64,
    challenge: Option<(SocketAddr, [u8; 8], u64)>,
}

struct BackKey {
    id: KeyId,
    expires: Option<u64>,
}

/// Send endpoint.
pub(super) struct SendEndpoint<P: Provider> {
    port: Port,
    config: SenderConfig,
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

    pub(super) fn close(&mut self, shared: &mut Shared<P>) {
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            self.end_link(shared, id, Some(Code::CLOSED));
        }
    }

    fn install(&self, shared: &mut Shared<P>, stream: Stream, epoch: &Epoch) {
        let mut key = SealKey::new(&epoch.material, Direction::Forward);
        key.publish_progress(Arc::clone(&epoch.progress));
        shared.output(Output::SealStream {
            port: self.port,
            session_id: stream.0,
            stream_id: stream.1,
            epoch: epoch.epoch,
            key: Box::new(key),
        });
    }

    pub(super) fn add_stream(&mut self, shared: &mut Shared<P>, now: u64, stream: Stream) {
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
                shared.output(Output::Revoke {
                    port: self.port,
                    link: link.keys.own_id(),
                    session_id: stream.0,
                    stream_id: stream.1,
                });
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
    }

    /// Ends all links without sealing anything, and changes all streams to new keys at once.
    pub(super) fn redraw(&mut self, shared: &mut Shared<P>, now: u64) {
        self.half_open.clear();
        for (id, mut link) in std::mem::take(&mut self.links) {
            // A hint is not sealed: the number of this run in it makes the receiver start a handshake at once.
            let (identity, run) = (shared.identity.fingerprint(), shared.incarnation);
            let hint = Announce::hint(Announce::ANSWER, identity, run, 0, 0);
            let to = link.group.unwrap_or(link.address);
            shared.send(self.port, to, hint.as_bytes().to_vec());
            link.close_back_keys(shared, self.port, |_| true);
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
        self.half_open.clear();
        let mut rotated = BTreeSet::new();
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            let Some(link) = self.links.get_mut(&id) else {
                continue;
            };
            let peer = shared.trust.by_key::<P>(&link.peer);
            let is_named = peer.is_some_and(|peer| peer.name() == link.name);
            let lost: Vec<Stream> = link
                .granted
                .iter()
                .filter(|stream| {
                    !peer.is_some_and(|peer| peer.may_subscribe(self.config.address, stream.1))
                })
                .copied()
                .collect();
            if is_named {
                for stream in &lost {
                    link.granted.remove(stream);
                    shared.output(Output::Revoke {
                        port: self.port,
                        link: id,
                        session_id: stream.0,
                        stream_id: stream.1,
                    });
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
        let stream = if self.streams.contains_key(&asked) {
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

    pub(super) fn on_init(
        &mut self,
        shared: &mut Shared<P>,
        gate: &mut Gate<P>,
        now: u64,
        source: SocketAddr,
        init: &Init,
    ) {
        if !is_addressed_to::<P>(init, shared.identity.public()) {
            shared.counts.refused += 1;
            return;
        }
        let digest = P::sha256(&[&init.as_bytes()[..Init::COOKIE_AT]]);
        let known = gate
            .answered
            .iter()
            .find(|answered| answered.port == self.port && answered.init == digest);
        let group = self.config.group;
        if let Some(known) = known {
            // The RESP goes to more than one address: none of them is proved by it.
            let copied = self.half_open.iter_mut().find(|half_open| {
                half_open.link.keys.own_id() == known.resp.responder_link_id.get()
                    && half_open.link.address != source
            });
            if let Some(copied) = copied {
                copied.link.is_proved = false;
            }
            let resp = known.resp.as_bytes().to_vec();
            shared.send(self.port, group.unwrap_or(source), resp);
            return;
        }
        match gate.admit(now, source, init) {
            Admission::Answer => {}
            Admission::Silence => return,
            Admission::Cookie => {
                let cookie = Cookie {
                    header: taran_protocol::frame::FrameHeader::new(
                        size_of::<Cookie>() as i32,
                        0,
                        crate::frame::COOKIE,
                    ),
                    initiator_link_id: init.link_id,
                    mac1: init.mac1,
                    cookie: gate.cookies.make::<P>(now, source, init.link_id.get()),
                };
                shared.counts.cookies += 1;
                let to = group.unwrap_or(source);
                shared.send(self.port, to, cookie.as_bytes().to_vec());
                return;
            }
        }
        let entropy = shared.secret();
        let Ok(received) = Received::<P>::new(&shared.identity, init, entropy) else {
            shared.counts.refused += 1;
            return;
        };
        let Some((name, psk)) = self.allowed(shared, now, source, &received) else {
            return;
        };
        let offered = received.offer().suites;
        let suites = &shared.options.suites;
        let Some(back_suite) = suites.iter().find(|suite| offered & suite.bit() != 0) else {
            let why = Refusal::Suite;
            let event = self.refused(name, why);
            shared.refusal(now, event);
            return;
        };
        let (back_suite, offer, peer) = (*back_suite, *received.offer(), *received.peer());
        let mut link_id = u64::from_le_bytes(shared.random());
        while link_id == 0 || self.has_link(link_id) {
            link_id = u64::from_le_bytes(shared.random());
        }
        let answer = Answer {
            suite: back_suite.id(),
            incarnation: shared.incarnation,
        };
        let Ok((resp, keys)) = received.answer(&psk, link_id, &answer) else {
            shared.counts.refused += 1;
            return;
        };
        if self.half_open.len() >= HALF_OPEN_MAX {
            self.half_open.pop_front();
        }
        self.half_open.push_back(HalfOpen {
            link: SendLink {
                keys,
                peer,
                name,
                receiver_id: offer.receiver_id,
                incarnation: offer.incarnation,
                suites: offer.suites,
                back_suite,
                address: source,
                is_proved: true,
                group: self.config.group,
                granted: BTreeSet::new(),
                back: Vec::new(),
                highest_back: None,
                wishes: Vec::new(),
                last_heard: now,
                challenge: None,
            },
            expires: now + HALF_OPEN,
        });
        gate.remember(Answered {
            port: self.port,
            init: digest,
            resp,
        });
        shared.send(self.port, group.unwrap_or(source), resp.as_bytes().to_vec());
    }

    fn has_link(&self, id: u64) -> bool {
        self.links.contains_key(&id)
            || self
                .half_open
                .iter()
                .any(|half_open| half_open.link.keys.own_id() == id)
    }

    fn refused(&self, peer: String, why: Refusal) -> Event {
        Event::PeerRefused {
            port: self.port,
            peer,
            why,
        }
    }

    /// Returns name and pre-shared key of an initiator that may have a stream of this endpoint.
    fn allowed(
        &self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        received: &Received<P>,
    ) -> Option<(String, Secret)> {
        let Some(peer) = shared.trust.by_key::<P>(received.peer()) else {
            let event = Event::PeerUnknown {
                port: self.port,
                fingerprint: received.peer().fingerprint::<P>(),
                address: source,
            };
            shared.refusal(now, event);
            return None;
        };
        let name = peer.name().to_owned();
        let psk = peer.psk().clone();
        let mut streams = self.streams.keys();
        let is_allowed = self.is_peer(&name)
            && streams.any(|stream| peer.may_subscribe(self.config.address, stream.1));
        let why = if !is_allowed {
            Refusal::NotAllowed
        } else if !self.config.tags.contains(&received.offer().channel_tag) {
            Refusal::OtherChannel
        } else {
            return Some((name, psk));
        };
        let event = self.refused(name, why);
        shared.refusal(now, event);
        None
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
            if !items.clone().all(|item| is_receivers(&item)) {
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

    /// Turns a half-open link into one that is up, if the trust store in force allows it.
    fn confirm(&mut self, shared: &mut Shared<P>, now: u64, source: SocketAddr, at: usize) -> bool {
        let Some(HalfOpen { mut link, expires }) = self.half_open.remove(at) else {
            return false;
        };
        let peer = shared.trust.by_key::<P>(&link.peer);
        let is_trusted = peer.is_some_and(|peer| peer.name() == link.name);
        if now >= expires || !is_trusted || !self.is_peer(&link.name) {
            shared.counts.refused += 1;
            return false;
        }
        let claimed = self
            .links
            .values()
            .any(|other| other.receiver_id == link.receiver_id && other.name != link.name);
        if claimed || self.links.len() >= LINKS_MAX {
            let (why, code) = if claimed {
                (Refusal::ReceiverId, Code::RECEIVER_ID)
            } else {
                (Refusal::Limit, Code::LIMIT)
            };
            let event = self.refused(link.name.clone(), why);
            shared.refusal(now, event);
            link.send_to(shared, self.port, source, &[Item::Bye(code)]);
            return false;
        }
        let replaced: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, other)| {
                other.name == link.name
                    && other.receiver_id == link.receiver_id
                    && other.incarnation == link.incarnation
                    && other.address == source
            })
            .map(|(id, _)| *id)
            .collect();
        for id in replaced {
            self.end_link(shared, id, None);
        }
        if link.group.is_some() {
            link.is_proved = true;
        } else if link.address != source || !link.is_proved {
            // The RESP went elsewhere, too: the address of the confirmation is challenged before anything is led to it.
            link.is_proved = false;
            link.challenge_address(shared, self.port, now, source);
        }
        shared.counts.handshakes += 1;
        shared.event(Event::LinkUp {
            port: self.port,
            peer: link.name.clone(),
            address: link.address,
        });
        self.links.insert(link.keys.own_id(), link);
        true
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
                    if let Some(key) =
                        link.add_back_key(shared, self.port, now, epoch, suite, &secret)
                    {
                        answers.push(Item::Got(key));
                    }
                }
                Item::Request { request, key } => {
                    match grant_for(&self.streams, &self.config, shared, link, now, request, key) {
                        Ok((stream, grants)) => {
                            if link.granted.insert(stream) {
                                shared.output(Output::Grant {
                                    port: self.port,
                                    link: id,
                                    session_id: stream.0,
                                    stream_id: stream.1,
                                });
                            }
                            answers.extend(grants.into_iter().map(Item::Grant));
                            announced.push(stream);
                        }
                        Err(code) => answers.push(Item::Refused {
                            request,
                            code,
                            text: b"",
                        }),
                    }
                }
                Item::Got(key) => {
                    let streams = self.streams.values_mut();
                    for next in streams.filter_map(|state| state.next.as_mut()) {
                        if next.epoch.id == key {
                            has_next |= next.waiting.remove(&id);
                        }
                    }
                }
                Item::Retire(key) => link.close_back_keys(shared, self.port, |back| back.id == key),
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
            shared.output(Output::Announce {
                port: self.port,
                link: id,
                session_id,
                stream_id,
            });
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
        link.close_back_keys(shared, self.port, |_| true);
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
        self.half_open.retain(|half_open| now < half_open.expires);
        let silent: Vec<u64> = self
            .links
            .iter()
            .filter(|(_, link)| now >= link.last_heard + LINK_SILENCE)
            .map(|(id, _)| *id)
            .collect();
        for id in silent {
            self.leave(shared, now, id, None);
        }
        for link in self.links.values_mut() {
            let is_over = |back: &BackKey| back.expires.is_some_and(|expires| now >= expires);
            link.close_back_keys(shared, self.port, is_over);
        }
        let interval = shared.options.rotate_interval;
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
            let back = link.back.iter().filter_map(|back| back.expires);
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

/// Returns true if a receiver may send this item.
const fn is_receivers(item: &Item<'_>) -> bool {
    matches!(
        item,
        Item::Request { .. }
            | Item::BackKey { .. }
            | Item::Got(_)
            | Item::Retire(_)
            | Item::Wish(_)
            | Item::Path(_)
            | Item::PathAnswer(_)
            | Item::Bye(_)
    )
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
) -> Result<(Stream, Vec<Grant>), Code> {
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
        return Err(Code::UNKNOWN_STREAM);
    };
    if !trusted.is_some_and(|peer| peer.may_subscribe(config.address, stream.1)) {
        return Err(Code::UNKNOWN_STREAM);
    }
    if link.granted.len() >= GRANTS_MAX && !link.granted.contains(stream) {
        return Err(Code::LIMIT);
    }
    if link.suites & state.current.suite.bit() == 0 {
        return Err(Code::SUITE);
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

impl<P: Provider> SendLink<P> {
    fn send(&mut self, shared: &mut Shared<P>, port: Port, items: &[Item<'_>]) {
        self.send_to(shared, port, self.address, items);
    }

    fn send_to(&mut self, shared: &mut Shared<P>, port: Port, to: SocketAddr, items: &[Item<'_>]) {
        send_items(
            &mut self.keys,
            shared,
            port,
            self.group.unwrap_or(to),
            items,
        );
    }

    /// Returns true if the address of the receiver has to be proved anew.
    fn may_have_moved(&self, source: SocketAddr) -> bool {
        self.group.is_none() && (source != self.address || !self.is_proved)
    }

    /// Installs a back key; returns its id if it is the newest.
    fn add_back_key(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        now: u64,
        epoch: u32,
        suite: u16,
        secret: &Secret,
    ) -> Option<KeyId> {
        let context = KeyContext {
            role: Role::Back {
                receiver_id: self.receiver_id,
            },
            suite: self.back_suite,
            identity: self.peer.fingerprint::<P>(),
            session_id: 0,
            stream_id: 0,
            epoch,
        };
        if suite != self.back_suite.id() {
            shared.counts.out_of_bounds += 1;
            return None;
        }
        let material = KeyMaterial::derive::<P>(secret, &context);
        let id = material.id();
        if self.back.iter().any(|back| back.id == id) {
            return Some(id);
        }
        // Epochs only grow, so that no closed key comes back.
        if self.highest_back.is_some_and(|highest| epoch <= highest) {
            return None;
        }
        self.highest_back = Some(epoch);
        for back in &mut self.back {
            back.expires.get_or_insert(now + BACK_GRACE);
        }
        self.back.push(BackKey { id, expires: None });
        while self.back.len() > 3 {
            let id = self.back.remove(0).id;
            shared.output(Output::Close { port, id });
        }
        shared.output(Output::OpenBack {
            port,
            link: self.keys.own_id(),
            receiver_id: self.receiver_id,
            address: self.is_proved.then_some(self.address),
            key: Box::new(OpenKey::new(&material, Direction::Back, 0)),
        });
        Some(id)
    }

    fn close_back_keys(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        is_over: impl Fn(&BackKey) -> bool,
    ) {
        self.back.retain(|back| {
            let is_over = is_over(back);
            if is_over {
                shared.output(Output::Close { port, id: back.id });
            }
            !is_over
        });
    }

    fn challenge_address(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        now: u64,
        source: SocketAddr,
    ) {
        let is_early = self
            .challenge
            .is_some_and(|(_, _, at)| now < at + PATH_INTERVAL);
        if is_early {
            return;
        }
        let random = shared.random();
        self.challenge = Some((source, random, now));
        self.send_to(shared, port, source, &[Item::Path(random)]);
    }

    /// Moves the link to an address that proved to be reachable.
    fn answer_challenge(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        source: SocketAddr,
        random: [u8; 8],
    ) {
        let proves = |(address, expected, _): &mut (SocketAddr, [u8; 8], u64)| {
            *address == source && crate::secret::equal(expected, &random)
        };
        if self.challenge.take_if(proves).is_some() {
            self.address = source;
            self.is_proved = true;
            shared.output(Output::Moved {
                port,
                link: self.keys.own_id(),
                address: source,
            });
        }
    }
}

/// Sends items in as many PAIR frames as they need; at least one.
pub(super) fn send_items<P: Provider>(
    keys: &mut LinkKeys<P>,
    shared: &mut Shared<P>,
    port: Port,
    to: SocketAddr,
    items: &[Item<'_>],
) {
    let mut writer = ItemWriter::new();
    for item in items {
        if !writer.push(item) {
            if let Ok(frame) = keys.seal(writer.bytes()) {
                shared.send(port, to, frame);
            }
            writer.clear();
            writer.push(item);
        }
    }
    if let Ok(frame) = keys.seal(writer.bytes()) {
        shared.send(port, to, frame);
    }
}

/// Returns the text of a refusal.
pub(super) fn refusal_text(code: Code, text: &[u8]) -> String {
    format!("code {} {}", code.0, printable(text))
}
