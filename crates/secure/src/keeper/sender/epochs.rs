// SPDX-License-Identifier: Apache-2.0
//! Streams of a send endpoint, and the rotation of their keys.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Audience, Epoch, NextEpoch, SendEndpoint, SendStream};
use crate::derive::{KeyContext, KeyId, KeyMaterial, Role};
use crate::frame::{GRANT_NEXT, Grant, Item};
use crate::keeper::{
    Event, KEY_AGE_MAX, KeeperOptions, LinkStream, Output, Rotation, SECOND, Shared, Stream,
};
use crate::provider::Provider;
use crate::seal::{Direction, SealKey};

/// Longest wait for the receivers at a rotation.
const GRACE: u64 = SECOND;
/// Time that a key lives beyond its rotation.
const LIFE_MARGIN: u64 = 60 * SECOND;

impl<P: Provider> SendEndpoint<P> {
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

    pub(in crate::keeper) fn add_stream(
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

    pub(in crate::keeper) fn remove_stream(&mut self, shared: &mut Shared<P>, stream: Stream) {
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
    pub(in crate::keeper) fn rotate(
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

    pub(in crate::keeper) fn rotate_all(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        why: Rotation,
    ) {
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

    /// Changes to the next epoch once all have it, or the grace is over.
    pub(super) fn switch(&mut self, shared: &mut Shared<P>, now: u64, stream: Stream) {
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

pub(super) fn grant(
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
