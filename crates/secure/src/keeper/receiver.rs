//! Receiver's side: starts handshakes and takes the keys of streams.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use zerocopy::IntoBytes;

use super::allowance::Allowance;
use super::sender::{refusal_text, send_items};
use super::{
    Event, KEY_AGE_MAX, KeeperOptions, LINK_SILENCE, MILLI, Output, Port, Refusal, SECOND, Shared,
};
use crate::derive::{Fingerprint, KeyContext, KeyId, KeyMaterial, PublicKey, Role};
use crate::frame::{
    Announce, Code, Cookie, Grant, Hello, Init, Item, Items, PairFrames, RequestedKey, Resp,
};
use crate::handshake::{Initiation, Offer};
use crate::link::LinkKeys;
use crate::provider::{Provider, Suite};
use crate::seal::{Direction, OpenKey, SealKey};
use crate::secret::Secret;

/// First wait before an INIT or REQUEST is repeated; doubles up to [`REPEAT_MAX`].
const REPEAT_MIN: u64 = 100 * MILLI;
const REPEAT_MAX: u64 = SECOND;
/// A handshake takes a new ephemeral key after this time, and is given up this long after the last ANNOUNCE.
const HANDSHAKE: u64 = 5 * SECOND;
/// Handshakes under way on a transport.
const HANDSHAKES_MAX: usize = 256;
/// Links of a transport.
const LINKS_MAX: usize = 1_024;
/// Streams with keys on a transport.
const STREAMS_MAX: usize = 4_096;
/// Requests without an answer on a link.
const REQUESTS_MAX: usize = 64;
/// A request is given up after so many repetitions; a datagram under an unknown key starts another one.
const REQUEST_ATTEMPTS: u32 = 8;
/// Epochs of a stream that are open at once.
const EPOCHS_MAX: usize = 3;
/// Old epochs are opened this long after the first datagram under a newer one.
const EPOCH_GRACE: u64 = 10 * SECOND;
/// Time between announcements or datagrams of one peer that are acted on.
const NOTICE_INTERVAL: u64 = 100 * MILLI;
/// Time between handshakes that an unproved incarnation starts.
const INCARNATION_INTERVAL: u64 = 10 * SECOND;
/// A link without PAIR for this long is tested, and so often.
const KEEPALIVE: u64 = 2 * SECOND;
const KEEPALIVES_MAX: u32 = 3;
/// An old link goes on this long after its renewal.
const OLD_LINK: u64 = 10 * SECOND;
/// Time between heeded cookies.
const COOKIE_INTERVAL: u64 = 250 * MILLI;
/// Longest random wait before an INIT to a multicast group.
const GROUP_WAIT: u64 = 50 * MILLI;

/// Session id and stream id.
type Stream = (i32, i32);

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

/// Handshake under way.
struct Pending<P: Provider> {
    /// Identity of this driver that it was begun with.
    own: Fingerprint,
    initiation: Initiation<P>,
    peer: PublicKey,
    to: SocketAddr,
    started: u64,
    announced: u64,
    next_at: u64,
    wait: u64,
    cookie_at: Option<u64>,
    /// Stream that was announced, to be requested at once.
    wanted: Option<Stream>,
    /// Link that is renewed.
    renews: Option<u64>,
}

struct Request {
    number: u32,
    key: RequestedKey,
    next_at: u64,
    wait: u64,
    attempts: u32,
}

/// Back key that the sender has not yet confirmed, or the present one.
struct BackKey {
    epoch: u32,
    secret: Secret,
    id: KeyId,
    drawn: u64,
    confirmed: bool,
    next_at: u64,
    wait: u64,
}

struct ReceiveLink<P: Provider> {
    keys: LinkKeys<P>,
    peer: PublicKey,
    fingerprint: Fingerprint,
    /// Identity of this driver in the handshake: back keys of the link are derived with it.
    own: Fingerprint,
    name: String,
    incarnation: u64,
    address: SocketAddr,
    suite: Suite,
    created: u64,
    renew_at: u64,
    last_heard: u64,
    tested: u32,
    next_test: u64,
    back: BackKey,
    requests: Vec<Request>,
    next_request: u32,
    last_notice: Option<u64>,
    challenge: Option<(SocketAddr, [u8; 8], u64)>,
    /// The sender has answered under the keys of the link.
    is_up: bool,
    ends_at: Option<u64>,
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
    subscriptions: BTreeSet<(Option<i32>, i32)>,
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
            subscriptions: BTreeSet::new(),
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

    pub(super) fn close(&mut self, shared: &mut Shared<P>) {
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            self.end_link(shared, id, Some(Code::CLOSED));
        }
        self.close_epochs(shared, |_, _| true);
    }

    pub(super) fn add_subscription(&mut self, session_id: Option<i32>, stream_id: i32) {
        self.subscriptions.insert((session_id, stream_id));
    }

    pub(super) fn remove_subscription(
        &mut self,
        shared: &mut Shared<P>,
        session_id: Option<i32>,
        stream_id: i32,
    ) {
        self.subscriptions.remove(&(session_id, stream_id));
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

    fn refused(&self, peer: &str, why: Refusal) -> Event {
        Event::PeerRefused {
            port: self.port,
            peer: peer.to_owned(),
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
            if let Some(back) =
                draw_back(shared, link.own, link.suite, self.config.receiver_id, now)
            {
                link.back = back;
                link.send_back_key(shared, self.port, now);
            }
        }
    }

    /// Ends all links without sealing anything, and starts handshakes with their peers.
    pub(super) fn redraw(&mut self, shared: &mut Shared<P>, now: u64) {
        self.pending.clear();
        let links = std::mem::take(&mut self.links);
        for (id, link) in &links {
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
                peer.is_none_or(|peer| peer.name() != link.name)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.end_link(shared, id, Some(Code::NOT_ALLOWED));
        }
        // All keys that an untrusted identity drew are closed at once, and those that its patterns no longer cover.
        let trust = std::mem::take(&mut shared.trust);
        let address = self.config.address;
        self.close_epochs(shared, |stream, epoch| {
            let peer = trust.by_fingerprint(&epoch.identity);
            !peer.is_some_and(|peer| peer.may_publish(address, stream.1))
        });
        shared.trust = trust;
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
        let is_allowed = if is_answer {
            peer.publish().matches_channel(address)
        } else {
            peer.may_publish(address, stream.1)
        };
        let (key, name) = (*peer.key(), peer.name().to_owned());
        if !is_allowed || !self.is_peer(&name) {
            let event = self.refused(&name, Refusal::NotAllowed);
            shared.refusal(now, event);
            return;
        }
        let to = self.config.control.unwrap_or(source);
        if let Some(pending) = self.pending.get_mut(&fingerprint) {
            pending.announced = now;
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

    /// Starts a handshake.
    fn start(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        key: &PublicKey,
        to: SocketAddr,
        wanted: Option<Stream>,
        renews: Option<u64>,
    ) {
        if self.pending.len() >= HANDSHAKES_MAX || !self.init.take(now) {
            return;
        }
        let Some(initiation) = self.initiate(shared, key) else {
            return;
        };
        let wait = if self.config.is_group {
            u64::from_le_bytes(shared.random()) % GROUP_WAIT
        } else {
            0
        };
        let fingerprint = key.fingerprint::<P>();
        self.pending.insert(
            fingerprint,
            Pending {
                own: shared.identity.fingerprint(),
                initiation,
                peer: *key,
                to,
                started: now,
                announced: now,
                next_at: now + wait,
                wait: REPEAT_MIN,
                cookie_at: None,
                wanted,
                renews,
            },
        );
        self.repeat_inits(shared, now);
    }

    fn initiate(&self, shared: &mut Shared<P>, key: &PublicKey) -> Option<Initiation<P>> {
        let psk = shared.trust.by_key::<P>(key)?.psk().clone();
        let mut link_id = u64::from_le_bytes(shared.random());
        while link_id == 0 || self.has_link(link_id) {
            link_id = u64::from_le_bytes(shared.random());
        }
        let offer = Offer {
            suites: shared.offered_suites(),
            channel_tag: self.config.tag,
            receiver_id: self.config.receiver_id,
            incarnation: shared.incarnation,
        };
        let entropy = shared.secret();
        Initiation::new(&shared.identity, key, &psk, link_id, &offer, entropy).ok()
    }

    fn has_link(&self, id: u64) -> bool {
        let mut pending = self.pending.values();
        self.links.contains_key(&id)
            || pending.any(|pending| pending.initiation.init().link_id.get() == id)
    }

    /// Sends the INITs that are due.
    fn repeat_inits(&mut self, shared: &mut Shared<P>, now: u64) {
        self.pending
            .retain(|_, pending| now < pending.announced + HANDSHAKE);
        let due: Vec<Fingerprint> = self
            .pending
            .iter()
            .filter(|(_, pending)| now >= pending.next_at)
            .map(|(fingerprint, _)| *fingerprint)
            .collect();
        for fingerprint in due {
            let Some(pending) = self.pending.get(&fingerprint) else {
                continue;
            };
            let is_old = now >= pending.started + HANDSHAKE;
            let peer = pending.peer;
            let fresh = if is_old {
                self.initiate(shared, &peer)
            } else {
                None
            };
            let Some(pending) = self.pending.get_mut(&fingerprint) else {
                continue;
            };
            if let Some(fresh) = fresh {
                pending.initiation = fresh;
                pending.own = shared.identity.fingerprint();
                pending.started = now;
            }
            let bytes = pending.initiation.init().as_bytes().to_vec();
            shared.send(self.port, pending.to, bytes);
            // A quarter more or less, so that receivers of a group do not repeat at the same time.
            let spread = u64::from_le_bytes(shared.random()) % (pending.wait / 2 + 1);
            pending.next_at = now + pending.wait * 3 / 4 + spread;
            pending.wait = (pending.wait * 2).min(REPEAT_MAX);
        }
    }

    pub(super) fn on_cookie(&mut self, shared: &mut Shared<P>, now: u64, cookie: &Cookie) {
        let link_id = cookie.initiator_link_id;
        let Some(pending) = self
            .pending
            .values_mut()
            .find(|pending| pending.initiation.init().link_id == link_id)
        else {
            return;
        };
        let init: &Init = pending.initiation.init();
        let is_early = pending
            .cookie_at
            .is_some_and(|last| now < last + COOKIE_INTERVAL);
        if is_early || !crate::secret::equal(&init.mac1, &cookie.mac1) {
            return;
        }
        pending.cookie_at = Some(now);
        pending.initiation.set_cookie(cookie.cookie);
        pending.next_at = now;
        self.repeat_inits(shared, now);
    }

    pub(super) fn on_resp(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        resp: &Resp,
    ) {
        let found = self
            .pending
            .iter_mut()
            .find(|(_, pending)| pending.initiation.init().link_id == resp.initiator_link_id);
        let Some((fingerprint, pending)) = found else {
            return;
        };
        if now >= pending.started + HANDSHAKE {
            return;
        }
        let Ok((answer, keys)) = pending.initiation.finish(resp) else {
            shared.counts.refused += 1;
            return;
        };
        let fingerprint = *fingerprint;
        let Some(pending) = self.pending.remove(&fingerprint) else {
            return;
        };
        // The trust store in force decides, not the one that the handshake began with.
        let peer = shared.trust.by_key::<P>(&pending.peer);
        let Some(name) = peer.map(|peer| peer.name().to_owned()) else {
            shared.counts.refused += 1;
            return;
        };
        let suite =
            Suite::from_id(answer.suite).filter(|suite| shared.options.suites.contains(suite));
        let Some(suite) = suite else {
            shared.counts.refused += 1;
            return;
        };
        if self.links.len() >= LINKS_MAX {
            let event = self.refused(&name, Refusal::Limit);
            shared.refusal(now, event);
            return;
        }
        let own = pending.own;
        let Some(back) = draw_back(shared, own, suite, self.config.receiver_id, now) else {
            return;
        };
        let id = keys.own_id();
        let link = ReceiveLink {
            keys,
            peer: pending.peer,
            fingerprint,
            own,
            name,
            incarnation: answer.incarnation,
            address: self.config.control.unwrap_or(source),
            suite,
            created: now,
            renew_at: now + shared.options.link_lifetime,
            last_heard: now,
            tested: 0,
            next_test: now + KEEPALIVE,
            back,
            requests: Vec::new(),
            next_request: 1,
            last_notice: Some(now),
            challenge: None,
            is_up: false,
            ends_at: None,
        };
        self.links.insert(id, link);
        // Streams of the link that is renewed are requested anew, so that their keys have a link that lives.
        let mut wanted: BTreeSet<Stream> = pending.wanted.into_iter().collect();
        if let Some(old) = pending.renews.and_then(|old| self.links.get_mut(&old)) {
            old.ends_at.get_or_insert(now + OLD_LINK);
            let name = &old.name;
            let streams = self.streams.iter();
            wanted.extend(
                streams
                    .filter(|(_, state)| state.owner == *name && !state.epochs.is_empty())
                    .map(|(stream, _)| *stream),
            );
        }
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        link.send_back_key(shared, self.port, now);
        for (session_id, stream_id) in wanted {
            let key = RequestedKey::Stream {
                session_id,
                stream_id,
            };
            link.request(shared, self.port, now, key);
        }
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
                .last_notice
                .is_some_and(|last| now < last + NOTICE_INTERVAL);
            if !is_early {
                link.last_notice = Some(now);
                link.request(shared, self.port, now, RequestedKey::Id(id));
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

    pub(super) fn on_setup_request(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        control: SocketAddr,
    ) {
        let is_under_way = self.pending.values().any(|pending| pending.to == control)
            || self.links.values().any(|link| link.address == control);
        if is_under_way || !self.hello.take(now) {
            return;
        }
        let hello = Hello::new(KeyId::NONE, shared.random(), 0, 0);
        shared.send(self.port, control, hello.as_bytes().to_vec());
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
            if !items.clone().all(|item| is_senders(&item)) {
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
                Item::Got(key) if link.back.id == key && !link.back.confirmed => {
                    link.back.confirmed = true;
                    let material = back_material::<P>(
                        &link.back.secret,
                        link.own,
                        link.suite,
                        self.config.receiver_id,
                        link.back.epoch,
                    );
                    shared.output(Output::SealBack {
                        port: self.port,
                        link: id,
                        to: link.address,
                        key: Box::new(SealKey::new(&material, Direction::Back)),
                    });
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
        let why = if !is_allowed || !is_own || !is_peer {
            Some(Refusal::NotAllowed)
        } else if suite.is_none() {
            Some(Refusal::Suite)
        } else if is_owned && !shared.owners.may_take(owned_stream, &name) {
            Some(Refusal::Owned)
        } else if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&stream) {
            Some(Refusal::Limit)
        } else {
            None
        };
        let (None, Some(suite)) = (why, suite) else {
            let event = self.refused(&name, why.unwrap_or(Refusal::Suite));
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
                shared.output(Output::StreamLink {
                    port: self.port,
                    link: id,
                    session_id: stream.0,
                    stream_id: stream.1,
                });
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
            if link.back.confirmed
                && now >= link.back.drawn + interval
                && let Some(back) =
                    draw_back(shared, link.own, link.suite, self.config.receiver_id, now)
            {
                link.back = back;
                link.send_back_key(shared, self.port, now);
            }
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
        let pending = self
            .pending
            .values()
            .map(|pending| pending.next_at.min(pending.announced + HANDSHAKE));
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

/// Returns true if a sender may send this item.
const fn is_senders(item: &Item<'_>) -> bool {
    matches!(
        item,
        Item::Grant(_)
            | Item::Refused { .. }
            | Item::Got(_)
            | Item::Retire(_)
            | Item::Renew
            | Item::Bye(_)
            | Item::Path(_)
            | Item::PathAnswer(_)
    )
}

fn is_subscribed(subscriptions: &BTreeSet<(Option<i32>, i32)>, stream: Stream) -> bool {
    subscriptions.contains(&(None, stream.1)) || subscriptions.contains(&(Some(stream.0), stream.1))
}

fn back_material<P: Provider>(
    secret: &Secret,
    identity: Fingerprint,
    suite: Suite,
    receiver_id: i64,
    epoch: u32,
) -> KeyMaterial {
    let context = KeyContext {
        role: Role::Back { receiver_id },
        suite,
        identity,
        session_id: 0,
        stream_id: 0,
        epoch,
    };
    KeyMaterial::derive::<P>(secret, &context)
}

/// Draws a back key for one link.
fn draw_back<P: Provider>(
    shared: &mut Shared<P>,
    identity: Fingerprint,
    suite: Suite,
    receiver_id: i64,
    now: u64,
) -> Option<BackKey> {
    let epoch = shared.epoch()?;
    let secret = shared.secret();
    let id = back_material::<P>(&secret, identity, suite, receiver_id, epoch).id();
    Some(BackKey {
        epoch,
        secret,
        id,
        drawn: now,
        confirmed: false,
        next_at: now,
        wait: REPEAT_MIN,
    })
}

impl<P: Provider> ReceiveLink<P> {
    fn send(&mut self, shared: &mut Shared<P>, port: Port, items: &[Item<'_>]) {
        send_items(&mut self.keys, shared, port, self.address, items);
    }

    fn send_back_key(&mut self, shared: &mut Shared<P>, port: Port, now: u64) {
        self.back.next_at = now + self.back.wait;
        self.back.wait = (self.back.wait * 2).min(REPEAT_MAX);
        let item = Item::BackKey {
            epoch: self.back.epoch,
            suite: self.suite.id(),
            secret: self.back.secret.clone(),
        };
        self.send(shared, port, &[item]);
    }

    /// Asks for a key, unless that question is open already.
    fn request(&mut self, shared: &mut Shared<P>, port: Port, now: u64, key: RequestedKey) {
        let is_open = self.requests.iter().any(|request| request.key == key);
        if is_open || self.requests.len() >= REQUESTS_MAX {
            return;
        }
        let number = self.next_request;
        self.next_request = self.next_request.checked_add(1).unwrap_or(1);
        self.requests.push(Request {
            number,
            key,
            next_at: now + REPEAT_MIN,
            wait: 2 * REPEAT_MIN,
            attempts: 1,
        });
        let item = Item::Request {
            request: number,
            key,
        };
        self.send(shared, port, &[item]);
    }

    /// Repeats what was not answered.
    fn repeat(&mut self, shared: &mut Shared<P>, port: Port, now: u64) {
        if !self.back.confirmed && now >= self.back.next_at {
            self.send_back_key(shared, port, now);
        }
        self.requests
            .retain(|request| request.attempts < REQUEST_ATTEMPTS || now < request.next_at);
        let mut items = Vec::new();
        for request in &mut self.requests {
            if now >= request.next_at {
                request.next_at = now + request.wait;
                request.wait = (request.wait * 2).min(REPEAT_MAX);
                request.attempts += 1;
                items.push(Item::Request {
                    request: request.number,
                    key: request.key,
                });
            }
        }
        if !items.is_empty() {
            self.send(shared, port, &items);
        }
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
            .is_some_and(|(_, _, at)| now < at + NOTICE_INTERVAL);
        if is_early {
            return;
        }
        let random = shared.random();
        self.challenge = Some((source, random, now));
        let item = [Item::Path(random)];
        send_items(&mut self.keys, shared, port, source, &item);
    }

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
            shared.output(Output::Moved {
                port,
                link: self.keys.own_id(),
                address: source,
            });
        }
    }

    fn next_deadline(&self, options: &KeeperOptions) -> u64 {
        let requests = self.requests.iter().map(|request| request.next_at);
        let back = if self.back.confirmed {
            self.back.drawn + options.rotate_interval
        } else {
            self.back.next_at
        };
        requests
            .chain([
                back,
                self.next_test,
                self.renew_at,
                self.last_heard + LINK_SILENCE,
            ])
            .min()
            .unwrap_or(self.next_test)
    }
}
