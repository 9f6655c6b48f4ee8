// SPDX-License-Identifier: Apache-2.0
//! Handshakes that a receive transport begins.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use zerocopy::IntoBytes;

use super::{HANDSHAKE, KEEPALIVE, OLD_LINK, ReceiveTransport};
use crate::derive::{Fingerprint, PublicKey};
use crate::frame::{Cookie, RequestedKey, Resp};
use crate::handshake::{Answer, HandshakeError, Initiation, Offer, answers};
use crate::keeper::back_key::{BackContext, OwnBackKey, REPEAT_MAX, REPEAT_MIN};
use crate::keeper::job::{Initiate, Job, Work};
use crate::keeper::receive_link::{NewLink, ReceiveLink};
use crate::keeper::{MILLI, Output, Refusal, Shared, Stream};
use crate::link::LinkKeys;
use crate::provider::{Provider, Suite};

/// Handshakes under way on a transport.
const HANDSHAKES_MAX: usize = 256;
/// Time between heeded cookies.
const COOKIE_INTERVAL: u64 = 250 * MILLI;
/// Longest random wait before an INIT to a multicast group.
const GROUP_WAIT: u64 = 50 * MILLI;
/// RESPs that wait for a computation of their handshake.
const RESPS_MAX: usize = 4;
/// Links of a transport.
const LINKS_MAX: usize = 1_024;

/// Handshake under way.
pub(super) struct Pending<P: Provider> {
    /// Identity of this driver that it was begun with.
    pub(super) own: Fingerprint,
    /// The INIT, unless a job makes or uses it.
    pub(super) initiation: Option<Box<Initiation<P>>>,
    /// Link id of the INIT.
    pub(super) link_id: u64,
    /// Link id of the INIT that a job makes.
    pub(super) next: Option<u64>,
    /// Answers that wait until a job is done with the one before.
    pub(super) resps: VecDeque<(Box<Resp>, SocketAddr)>,
    /// Source of the RESP that a job reads.
    pub(super) reads: Option<SocketAddr>,
    pub(super) peer: PublicKey,
    /// Control address, or sources of the last announcements, the newest last: any of them may be forged, so that INITs go to
    /// all of them in turn.
    pub(super) to: Vec<SocketAddr>,
    /// INITs sent so far.
    pub(super) sent: usize,
    pub(super) started: u64,
    pub(super) announced: u64,
    pub(super) next_at: u64,
    pub(super) wait: u64,
    pub(super) cookie_at: Option<u64>,
    /// Stream that was announced, to be requested at once.
    pub(super) wanted: Option<Stream>,
    /// Link that is renewed.
    pub(super) renews: Option<u64>,
}

impl<P: Provider> ReceiveTransport<P> {
    /// Starts a handshake.
    pub(super) fn start(
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
        let wait = if self.config.is_group {
            u64::from_le_bytes(shared.random()) % GROUP_WAIT
        } else {
            0
        };
        let Some(link_id) = self.initiate(shared, key) else {
            return;
        };
        self.pending.insert(
            key.fingerprint::<P>(),
            Pending {
                own: shared.identity.fingerprint(),
                initiation: None,
                link_id: 0,
                next: Some(link_id),
                resps: VecDeque::new(),
                reads: None,
                peer: *key,
                to: vec![to],
                sent: 0,
                started: now,
                announced: now,
                next_at: now + wait,
                wait: REPEAT_MIN,
                cookie_at: None,
                wanted,
                renews,
            },
        );
    }

    /// Lets a job make an INIT. Returns its link id.
    fn initiate(&self, shared: &mut Shared<P>, key: &PublicKey) -> Option<u64> {
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
        let initiate = Initiate {
            identity: shared.identity.clone(),
            peer: *key,
            fingerprint: key.fingerprint::<P>(),
            psk,
            link_id,
            offer,
            entropy,
        };
        let (port, generation) = (self.port, shared.generation);
        shared.job(Job {
            port,
            generation,
            work: Work::Initiate(Box::new(initiate)),
        });
        Some(link_id)
    }

    /// Takes an INIT, and sends it unless it has to wait.
    pub(in crate::keeper) fn on_initiated(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        fingerprint: &Fingerprint,
        link_id: u64,
        initiation: Option<Box<Initiation<P>>>,
    ) {
        let is_awaited = |pending: &&mut Pending<P>| pending.next == Some(link_id);
        let Some(pending) = self.pending.get_mut(fingerprint).filter(is_awaited) else {
            return;
        };
        let Some(initiation) = initiation else {
            // The key is of small order: nothing can be agreed with it.
            self.pending.remove(fingerprint);
            shared.counts.refused += 1;
            return;
        };
        pending.next = None;
        pending.initiation = Some(initiation);
        pending.link_id = link_id;
        pending.own = shared.identity.fingerprint();
        pending.started = now;
        pending.resps.clear();
        pending.reads = None;
        self.repeat_inits(shared, now);
    }

    fn has_link(&self, id: u64) -> bool {
        let mut pending = self.pending.values();
        self.links.contains_key(&id)
            || pending.any(|pending| pending.link_id == id || pending.next == Some(id))
    }

    /// Sends the INITs that are due.
    pub(super) fn repeat_inits(&mut self, shared: &mut Shared<P>, now: u64) {
        self.pending
            .retain(|_, pending| now < pending.announced + HANDSHAKE);
        let due: Vec<Fingerprint> = self
            .pending
            .iter()
            .filter(|(_, pending)| now >= pending.next_at && pending.initiation.is_some())
            .map(|(fingerprint, _)| *fingerprint)
            .collect();
        for fingerprint in due {
            let Some(pending) = self.pending.get(&fingerprint) else {
                continue;
            };
            if pending.next.is_none() && now >= pending.started + HANDSHAKE {
                let peer = pending.peer;
                let next = self.initiate(shared, &peer);
                if let Some(pending) = self.pending.get_mut(&fingerprint) {
                    pending.next = next;
                }
                continue;
            }
            let Some(pending) = self.pending.get_mut(&fingerprint) else {
                continue;
            };
            let Some(initiation) = &pending.initiation else {
                continue;
            };
            let bytes = initiation.init().as_bytes().to_vec();
            let to = pending.to[pending.sent % pending.to.len()];
            pending.sent += 1;
            shared.send(self.port, to, bytes);
            // A quarter more or less, so that receivers of a group do not repeat at the same time.
            let spread = u64::from_le_bytes(shared.random()) % (pending.wait / 2 + 1);
            pending.next_at = now + pending.wait * 3 / 4 + spread;
            pending.wait = (pending.wait * 2).min(REPEAT_MAX);
        }
    }

    pub(in crate::keeper) fn on_cookie(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        cookie: &Cookie,
    ) {
        let link_id = cookie.initiator_link_id.get();
        let mut pending = self.pending.values_mut();
        let Some(pending) = pending.find(|pending| pending.link_id == link_id) else {
            return;
        };
        let Some(initiation) = &mut pending.initiation else {
            return;
        };
        let is_early = pending
            .cookie_at
            .is_some_and(|last| now < last + COOKIE_INTERVAL);
        if is_early || !crate::secret::equal(&initiation.init().mac1, &cookie.mac1) {
            return;
        }
        pending.cookie_at = Some(now);
        initiation.set_cookie(cookie.cookie);
        pending.next_at = now;
        self.repeat_inits(shared, now);
    }

    pub(in crate::keeper) fn on_resp(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        resp: &Resp,
    ) {
        let link_id = resp.initiator_link_id.get();
        let mut pending = self.pending.iter_mut();
        let Some((fingerprint, pending)) = pending.find(|(_, pending)| pending.link_id == link_id)
        else {
            return;
        };
        if now >= pending.started + HANDSHAKE {
            return;
        }
        if !answers::<P>(resp, shared.identity.public()) {
            shared.counts.refused += 1;
            return;
        }
        if pending.resps.len() < RESPS_MAX {
            pending.resps.push_back((Box::new(*resp), source));
        }
        let fingerprint = *fingerprint;
        self.read_resp(shared, &fingerprint);
    }

    /// Lets a job read the next RESP, if there is one and no job reads another.
    fn read_resp(&mut self, shared: &mut Shared<P>, fingerprint: &Fingerprint) {
        let Some(pending) = self.pending.get_mut(fingerprint) else {
            return;
        };
        let Some(initiation) = pending.initiation.take_if(|_| !pending.resps.is_empty()) else {
            return;
        };
        let Some((resp, source)) = pending.resps.pop_front() else {
            return;
        };
        pending.reads = Some(source);
        let (port, generation) = (self.port, shared.generation);
        shared.job(Job {
            port,
            generation,
            work: Work::Finish {
                fingerprint: *fingerprint,
                initiation,
                resp,
            },
        });
    }

    /// Takes the result of reading a RESP: the keys of a link, or the handshake goes on waiting.
    pub(in crate::keeper) fn on_finished(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        fingerprint: Fingerprint,
        initiation: Box<Initiation<P>>,
        result: Result<(Answer, LinkKeys<P>), HandshakeError>,
    ) {
        let link_id = initiation.init().link_id.get();
        let is_read =
            |pending: &&mut Pending<P>| pending.link_id == link_id && pending.initiation.is_none();
        let Some(pending) = self.pending.get_mut(&fingerprint).filter(is_read) else {
            return;
        };
        let Some(source) = pending.reads.take() else {
            return;
        };
        let Ok((answer, keys)) = result else {
            shared.counts.refused += 1;
            pending.initiation = Some(initiation);
            self.read_resp(shared, &fingerprint);
            return;
        };
        let Some(pending) = self.pending.remove(&fingerprint) else {
            return;
        };
        // The trust store in force decides, not the one that the handshake began with.
        let peer = shared.trust.by_key::<P>(&pending.peer);
        let Some((name, may)) = peer.map(|peer| (peer.name().to_owned(), self.may(peer))) else {
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
            let event = self.refused(&name, fingerprint, Refusal::Limit);
            shared.refusal(now, event);
            return;
        }
        let context = BackContext {
            identity: pending.own,
            suite,
            receiver_id: self.config.receiver_id,
        };
        let Some(back) = OwnBackKey::draw(shared, context, now) else {
            return;
        };
        let id = keys.own_id();
        let link = ReceiveLink::new(
            NewLink {
                keys,
                peer: pending.peer,
                fingerprint,
                name,
                may,
                incarnation: answer.incarnation,
                address: self.config.control.unwrap_or(source),
                suite,
                back,
                renew_at: now + shared.options.link_lifetime,
                next_test: now + KEEPALIVE,
            },
            now,
        );
        shared.output(Output::Link {
            port: self.port,
            link: id,
        });
        self.links.insert(id, link);
        // Streams of the link that is renewed are requested anew, so that their keys have a link that lives.
        let mut wanted: BTreeSet<Stream> = pending.wanted.into_iter().collect();
        if let Some(link) = self.links.get(&id) {
            wanted.extend(self.awaited(&link.name));
        }
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

    /// Returns the key that the sender must have, if there is only one.
    pub(super) fn expected(&self, shared: &Shared<P>) -> Option<PublicKey> {
        let mut names: BTreeSet<&String> = self.responders.values().collect();
        if names.is_empty() {
            names.extend(self.config.peers.iter().flatten());
        }
        let mut keys = shared.trust.peers().iter().filter(|peer| {
            let mut names = names.iter();
            names.any(|name| *name == peer.name())
        });
        let key = keys.next().map(|peer| *peer.key());
        key.filter(|_| keys.next().is_none())
    }

    /// Requests the streams that the peer of a link is awaited to send.
    pub(super) fn request_awaited(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        id: u64,
        name: &str,
    ) {
        let awaited: Vec<Stream> = self.awaited(name).collect();
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        for (session_id, stream_id) in awaited {
            let key = RequestedKey::Stream {
                session_id,
                stream_id,
            };
            link.request(shared, self.port, now, key);
        }
    }
}
