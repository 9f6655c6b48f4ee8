// SPDX-License-Identifier: Apache-2.0
//! Causes of handshakes and requests of a receive transport: announcements, datagrams under unknown keys, and requests of
//! its agent.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Bound;

use zerocopy::IntoBytes;

use super::{OpenStream, ReceiveTransport, is_subscribed};
use crate::derive::{Fingerprint, KeyId};
use crate::frame::{Announce, Hello, QUESTION_LENGTH, RequestedKey};
use crate::keeper::receive_link::{NOTICE_INTERVAL, ReceiveLink};
use crate::keeper::{Event, Refusal, SECOND, Shared, Stream};
use crate::provider::Provider;

/// Time between handshakes that an unproved incarnation starts.
const INCARNATION_INTERVAL: u64 = 10 * SECOND;
/// Streams that are asked for because of one datagram under an unknown key.
const ASKED_AT_ONCE: usize = 8;
/// Addresses that a handshake is tried with.
const SOURCES_MAX: usize = 4;

impl<P: Provider> ReceiveTransport<P> {
    pub(in crate::keeper) fn on_announce(
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

    pub(in crate::keeper) fn on_unknown_key(
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
        if is_early || self.unknown_bytes < QUESTION_LENGTH || !self.hello.take(now) {
            return;
        }
        self.last_hello = Some(now);
        self.unknown_bytes = 0;
        let hello = Hello::new(id, shared.random(), 0, 0);
        let to = self.config.control.unwrap_or(source);
        shared.send(self.port, to, hello.as_bytes().to_vec());
    }

    pub(in crate::keeper) fn on_setup_request(
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
