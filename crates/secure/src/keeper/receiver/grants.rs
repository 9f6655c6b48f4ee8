// SPDX-License-Identifier: Apache-2.0
//! Keys of streams that a receive transport is granted.

use super::{OpenEpoch, OpenStream, ReceiveTransport, close, is_subscribed};
use crate::derive::{KeyContext, KeyId, KeyMaterial, Role};
use crate::frame::{GRANT_CURRENT, Grant, Item};
use crate::keeper::{KEY_AGE_MAX, LinkStream, Output, Refusal, SECOND, Shared};
use crate::provider::{Provider, Suite};
use crate::seal::{Direction, OpenKey};

/// Streams with keys on a transport.
const STREAMS_MAX: usize = 4_096;
/// Epochs of a stream that are open at once.
const EPOCHS_MAX: usize = 3;
/// Old epochs are opened this long after the first datagram under a newer one.
const EPOCH_GRACE: u64 = 10 * SECOND;

impl<P: Provider> ReceiveTransport<P> {
    /// Installs the key of a grant, if its author may grant it.
    pub(super) fn on_grant(&mut self, shared: &mut Shared<P>, now: u64, id: u64, grant: &Grant) {
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
            closed_at: None,
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
            // The key in use was closed with its subscription, which is there again: it does not come back, another one does.
            if grant.flags == GRANT_CURRENT && state.epochs.is_empty() {
                link.send(shared, self.port, &[Item::Wish(key_id)]);
            }
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
        state.closed_at = None;
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

    /// Forgets the streams without keys whose records are not needed any more. They are needed while a link lives that is older
    /// than the close of the key: a grant that was held back can come only over such a link.
    pub(super) fn forget_closed(&mut self, now: u64) {
        let links = &self.links;
        self.streams.retain(|_, state| {
            if !state.epochs.is_empty() {
                return true;
            }
            let closed_at = *state.closed_at.get_or_insert(now);
            links.values().any(|link| {
                let is_owners = link.name == state.owner && link.incarnation == state.incarnation;
                is_owners && link.created <= closed_at
            })
        });
    }

    /// Asks the owner of a key for another epoch of its stream.
    pub(in crate::keeper) fn wish(&mut self, shared: &mut Shared<P>, now: u64, id: KeyId) {
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

    pub(in crate::keeper) fn on_first_open(&mut self, now: u64, id: KeyId) {
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
}
