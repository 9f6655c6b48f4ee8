// SPDX-License-Identifier: Apache-2.0
//! Handshakes that a send endpoint answers.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use zerocopy::IntoBytes;

use super::{HalfOpen, SendEndpoint};
use crate::derive::PublicKey;
use crate::frame::{Code, Cookie, Init, Item};
use crate::handshake::is_addressed_to;
use crate::keeper::back_key::{BackContext, OwnBackKey, PeerBackKeys};
use crate::keeper::gate::{Admission, Gate};
use crate::keeper::job::{Answered, Job, Respond, Response, Work};
use crate::keeper::send_link::SendLink;
use crate::keeper::{Event, Output, Refusal, SECOND, Shared};
use crate::provider::Provider;
use crate::trust::Peer;

/// A half-open link waits this long for its confirmation.
const HALF_OPEN: u64 = 5 * SECOND;
/// Half-open links of an endpoint.
const HALF_OPEN_MAX: usize = 256;
/// Links of an endpoint.
const LINKS_MAX: usize = 1_024;

impl<P: Provider> SendEndpoint<P> {
    pub(in crate::keeper) fn on_init(
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
        let group = self.config.group;
        if let Some(resp) = gate.answer_to(self.port, &digest) {
            // The RESP goes to more than one address: none of them is proved by it.
            let copied = self.half_open.iter_mut().find(|half_open| {
                half_open.link.keys.own_id() == resp.responder_link_id.get()
                    && half_open.link.address != source
            });
            if let Some(copied) = copied {
                copied.link.is_proved = false;
            }
            let resp = resp.as_bytes().to_vec();
            shared.send(self.port, group.unwrap_or(source), resp);
            return;
        }
        if gate.is_waiting(self.port, &digest, source) {
            return;
        }
        match gate.admit(now, source, init, &shared.known) {
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
                    cookie: gate.cookie(now, source, init.link_id.get()),
                };
                shared.counts.cookies += 1;
                let to = group.unwrap_or(source);
                shared.send(self.port, to, cookie.as_bytes().to_vec());
                return;
            }
        }
        let mut link_id = u64::from_le_bytes(shared.random());
        while link_id == 0 || self.has_link(link_id) {
            link_id = u64::from_le_bytes(shared.random());
        }
        gate.begin(self.port, digest, source);
        let entropy = shared.secret();
        shared.job(Job {
            port: self.port,
            generation: shared.generation,
            work: Work::Respond(Box::new(Respond {
                identity: shared.identity.clone(),
                trust: Arc::clone(&shared.trust),
                suites: shared.options.suites.clone(),
                incarnation: shared.incarnation,
                init: *init,
                digest,
                link_id,
                entropy,
            })),
        });
    }

    /// Takes the answer to an INIT, which is sent if its author may have a stream.
    pub(in crate::keeper) fn on_response(
        &mut self,
        shared: &mut Shared<P>,
        gate: &mut Gate<P>,
        now: u64,
        (source, is_copied): (SocketAddr, bool),
        digest: [u8; 32],
        response: Response<P>,
    ) {
        let answered = match response {
            Response::Invalid => {
                shared.counts.refused += 1;
                return;
            }
            Response::Unknown(peer) => {
                self.refuse_unknown(shared, now, source, &peer);
                return;
            }
            Response::NoSuite(peer) => {
                let name = shared.trust.by_key::<P>(&peer).map(Peer::name);
                let event = self.refused(name.unwrap_or_default(), &peer, Refusal::Suite);
                shared.refusal(now, event);
                return;
            }
            Response::Answered(answered) => *answered,
        };
        let Answered {
            peer,
            offer,
            suite,
            resp,
            keys,
        } = answered;
        let Some(name) = self.allowed(shared, now, source, &peer, offer.channel_tag) else {
            return;
        };
        if self.has_link(keys.own_id()) {
            // Drawn by another computation meanwhile: the initiator asks again.
            return;
        }
        if self.half_open.len() >= HALF_OPEN_MAX
            && let Some(oldest) = self.half_open.pop_front()
        {
            shared.unlink(self.port, oldest.link.keys.own_id());
        }
        let trusted = shared.trust.by_key::<P>(&peer);
        let may = |may: fn(&Peer, SocketAddr, i32) -> bool| {
            trusted.is_some_and(|peer| may(peer, self.config.address, 0))
        };
        let link = SendLink {
            peer,
            name,
            receiver_id: offer.receiver_id,
            incarnation: offer.incarnation,
            suites: offer.suites,
            address: source,
            is_proved: !is_copied,
            group: self.config.group,
            granted: BTreeSet::new(),
            back: BackContext {
                identity: peer.fingerprint::<P>(),
                suite,
                receiver_id: offer.receiver_id,
            },
            peer_back: PeerBackKeys::default(),
            own: shared.identity.fingerprint(),
            own_back: None,
            may_publish: may(Peer::may_publish),
            may_subscribe: may(Peer::may_subscribe),
            wishes: Vec::new(),
            last_heard: now,
            challenge: None,
            keys,
        };
        shared.output(Output::Link {
            port: self.port,
            link: link.keys.own_id(),
        });
        self.half_open.push_back(HalfOpen {
            link,
            expires: now + HALF_OPEN,
        });
        gate.remember(self.port, digest, resp);
        let to = self.config.group.unwrap_or(source);
        shared.send(self.port, to, resp.as_bytes().to_vec());
    }

    pub(super) fn forget_half_open(&mut self, shared: &mut Shared<P>) {
        for half_open in self.half_open.drain(..) {
            shared.unlink(self.port, half_open.link.keys.own_id());
        }
    }

    fn has_link(&self, id: u64) -> bool {
        self.links.contains_key(&id)
            || self
                .half_open
                .iter()
                .any(|half_open| half_open.link.keys.own_id() == id)
    }

    fn refuse_unknown(
        &self,
        shared: &mut Shared<P>,
        now: u64,
        address: SocketAddr,
        peer: &PublicKey,
    ) {
        let event = Event::PeerUnknown {
            port: self.port,
            fingerprint: peer.fingerprint::<P>(),
            address,
        };
        shared.refusal(now, event);
    }

    /// Returns the name of an initiator that may have a stream of this endpoint.
    fn allowed(
        &self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        peer: &PublicKey,
        channel_tag: [u8; 4],
    ) -> Option<String> {
        let Some(trusted) = shared.trust.by_key::<P>(peer) else {
            self.refuse_unknown(shared, now, source, peer);
            return None;
        };
        let name = trusted.name().to_owned();
        let address = self.config.address;
        let may_have = if self.is_resolver {
            trusted.may_publish(address, 0) || trusted.may_subscribe(address, 0)
        } else {
            let mut streams = self.streams.iter();
            streams.any(|(stream, state)| {
                state.audience.has(&name) && trusted.may_subscribe(address, stream.1)
            })
        };
        let why = if !may_have {
            Refusal::Subscribe(self.is_resolver.then_some(0))
        } else if !self.is_peer(&name) {
            Refusal::NotNamed
        } else if !self.config.tags.contains(&channel_tag) {
            Refusal::OtherChannel
        } else {
            return Some(name);
        };
        let event = self.refused(&name, peer, why);
        shared.refusal(now, event);
        None
    }

    /// Turns a half-open link into one that is up, if the trust store in force allows it.
    pub(super) fn confirm(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        at: usize,
    ) -> bool {
        let Some(HalfOpen { mut link, expires }) = self.half_open.remove(at) else {
            return false;
        };
        let peer = shared.trust.by_key::<P>(&link.peer);
        let is_trusted = peer.is_some_and(|peer| peer.name() == link.name);
        if now >= expires || !is_trusted || !self.is_peer(&link.name) {
            shared.counts.refused += 1;
            shared.unlink(self.port, link.keys.own_id());
            return false;
        }
        // Frames of name resolution carry no receiver id.
        let claimed = !self.is_resolver
            && self
                .links
                .values()
                .any(|other| other.receiver_id == link.receiver_id && other.name != link.name);
        if claimed || self.links.len() >= LINKS_MAX {
            let (why, code) = if claimed {
                (Refusal::ReceiverId, Code::RECEIVER_ID)
            } else {
                (Refusal::Limit, Code::LIMIT)
            };
            let event = self.refused(&link.name, &link.peer, why);
            shared.refusal(now, event);
            link.send_to(shared, self.port, source, &[Item::Bye(code)]);
            shared.unlink(self.port, link.keys.own_id());
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
        shared.known.remember(now, source.ip());
        shared.counts.handshakes += 1;
        shared.event(Event::LinkUp {
            port: self.port,
            peer: link.name.clone(),
            address: link.address,
            suite: link.back.suite,
        });
        if self.is_resolver {
            let context = BackContext {
                identity: link.own,
                ..link.back
            };
            link.own_back = OwnBackKey::draw(shared, context, now);
            link.send_back_key(shared, self.port, now);
        }
        self.links.insert(link.keys.own_id(), link);
        true
    }
}
