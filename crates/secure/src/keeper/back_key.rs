// SPDX-License-Identifier: Apache-2.0
//! Keys of feedback: the end of a link that seals draws them, and the other end opens with them.

use super::{KEY_AGE_MAX, MILLI, Output, Port, SECOND, Shared};
use crate::derive::{Fingerprint, KeyContext, KeyId, KeyMaterial, Role};
use crate::frame::Item;
use crate::provider::{Provider, Suite};
use crate::seal::{Direction, OpenKey, SealKey};
use crate::secret::Secret;

/// First wait before something is repeated; doubles up to [`REPEAT_MAX`].
pub(super) const REPEAT_MIN: u64 = 100 * MILLI;
pub(super) const REPEAT_MAX: u64 = SECOND;
/// An old back key is opened this long after the next one came.
const BACK_GRACE: u64 = 10 * SECOND;
/// Back keys of a link that are open at once.
const OPEN_MAX: usize = 3;

/// Inputs of the derivation of all back keys of one end of a link, besides secret and epoch.
#[derive(Clone, Copy)]
pub(super) struct BackContext {
    /// Identity in the handshake of the end that draws them.
    pub(super) identity: Fingerprint,
    pub(super) suite: Suite,
    pub(super) receiver_id: i64,
}

impl BackContext {
    fn derive<P: Provider>(&self, secret: &Secret, epoch: u32) -> KeyMaterial {
        let context = KeyContext {
            role: Role::Back {
                receiver_id: self.receiver_id,
            },
            suite: self.suite,
            identity: self.identity,
            session_id: 0,
            stream_id: 0,
            epoch,
        };
        KeyMaterial::derive::<P>(secret, &context)
    }
}

/// Back key that this end drew: one that the other end has not yet confirmed, or the present one.
pub(super) struct OwnBackKey {
    context: BackContext,
    epoch: u32,
    secret: Secret,
    id: KeyId,
    drawn: u64,
    confirmed: bool,
    next_at: u64,
    wait: u64,
}

impl OwnBackKey {
    /// Draws a key; none after the last epoch.
    pub(super) fn draw<P: Provider>(
        shared: &mut Shared<P>,
        context: BackContext,
        now: u64,
    ) -> Option<Self> {
        let epoch = shared.epoch()?;
        let secret = shared.secret();
        let id = context.derive::<P>(&secret, epoch).id();
        Some(Self {
            context,
            epoch,
            secret,
            id,
            drawn: now,
            confirmed: false,
            next_at: now,
            wait: REPEAT_MIN,
        })
    }

    /// Draws the key that follows this one.
    pub(super) fn next<P: Provider>(&self, shared: &mut Shared<P>, now: u64) -> Option<Self> {
        Self::draw(shared, self.context, now)
    }

    /// Returns the item that passes the key on, which is to be sent now.
    pub(super) fn item(&mut self, now: u64) -> Item<'static> {
        self.next_at = now + self.wait;
        self.wait = (self.wait * 2).min(REPEAT_MAX);
        Item::BackKey {
            epoch: self.epoch,
            suite: self.context.suite.id(),
            secret: self.secret.clone(),
        }
    }

    /// Returns true if the key is to be sent again.
    pub(super) const fn is_due(&self, now: u64) -> bool {
        !self.confirmed && now >= self.next_at
    }

    /// Returns true if another key is to be drawn.
    pub(super) const fn is_old(&self, now: u64, interval: u64) -> bool {
        self.confirmed && now >= self.drawn + interval
    }

    /// Takes the news that the other end has a key. Returns the key to seal with from now on.
    pub(super) fn confirm<P: Provider>(&mut self, id: KeyId) -> Option<Box<SealKey<P>>> {
        if self.id != id || self.confirmed {
            return None;
        }
        self.confirmed = true;
        let material = self.context.derive::<P>(&self.secret, self.epoch);
        let key = SealKey::new(&material, Direction::Back);
        Some(Box::new(
            key.expiring(self.drawn.saturating_add(KEY_AGE_MAX)),
        ))
    }

    /// Returns the time at which something is due.
    pub(super) const fn deadline(&self, interval: u64) -> u64 {
        if self.confirmed {
            self.drawn + interval
        } else {
            self.next_at
        }
    }
}

/// Back keys that the other end drew.
#[derive(Default)]
pub(super) struct PeerBackKeys {
    open: Vec<(KeyId, Option<u64>)>,
    /// Highest epoch so far: epochs only grow, so that no closed key comes back.
    highest: Option<u32>,
}

/// Key that was taken.
pub(super) struct Taken<P: Provider> {
    pub(super) id: KeyId,
    /// The key, unless it was taken before.
    pub(super) fresh: Option<Box<OpenKey<P>>>,
}

impl PeerBackKeys {
    /// Takes a key; none if it is not newer than all before.
    pub(super) fn take<P: Provider>(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        now: u64,
        context: &BackContext,
        (epoch, suite, secret): (u32, u16, &Secret),
    ) -> Option<Taken<P>> {
        if suite != context.suite.id() {
            shared.counts.out_of_bounds += 1;
            return None;
        }
        let material = context.derive::<P>(secret, epoch);
        let id = material.id();
        if self.open.iter().any(|(open, _)| *open == id) {
            return Some(Taken { id, fresh: None });
        }
        if self.highest.is_some_and(|highest| epoch <= highest) {
            return None;
        }
        self.highest = Some(epoch);
        for (_, expires) in &mut self.open {
            expires.get_or_insert(now + BACK_GRACE);
        }
        self.open.push((id, None));
        while self.open.len() > OPEN_MAX {
            let (id, _) = self.open.remove(0);
            shared.output(Output::Close { port, id });
        }
        let key = OpenKey::new(&material, Direction::Back, 0);
        Some(Taken {
            id,
            fresh: Some(Box::new(key)),
        })
    }

    /// Closes the keys that match.
    pub(super) fn close<P: Provider>(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        is_over: impl Fn(KeyId, Option<u64>) -> bool,
    ) {
        self.open.retain(|(id, expires)| {
            let is_over = is_over(*id, *expires);
            if is_over {
                shared.output(Output::Close { port, id: *id });
            }
            !is_over
        });
    }

    /// Returns the time at which the next key expires.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.open.iter().filter_map(|(_, expires)| *expires).min()
    }
}
