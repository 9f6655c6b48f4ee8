// SPDX-License-Identifier: Apache-2.0
//! Link of a send endpoint to a receiver.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::back_key::{BackContext, OwnBackKey, PeerBackKeys};
use super::{MILLI, Output, Port, Shared, Stream};
use crate::derive::{Fingerprint, KeyId, PublicKey};
use crate::frame::{Item, ItemWriter};
use crate::link::LinkKeys;
use crate::provider::Provider;
use crate::secret::Secret;

/// Time between two challenges of an address.
const PATH_INTERVAL: u64 = 100 * MILLI;

/// Link to a receiver.
pub(super) struct SendLink<P: Provider> {
    pub(super) keys: LinkKeys<P>,
    pub(super) peer: PublicKey,
    pub(super) name: String,
    pub(super) receiver_id: i64,
    pub(super) incarnation: u64,
    pub(super) suites: u16,
    pub(super) address: SocketAddr,
    /// The address is that of the receiver: what is sent to it has been answered from there.
    pub(super) is_proved: bool,
    /// Group that everything for the receiver goes to; its own address then leads nothing anywhere.
    pub(super) group: Option<SocketAddr>,
    pub(super) granted: BTreeSet<Stream>,
    /// Context of the back keys of the receiver.
    pub(super) back: BackContext,
    pub(super) peer_back: PeerBackKeys,
    /// Identity of this driver in the handshake.
    pub(super) own: Fingerprint,
    /// Back key that this end drew, on the link of a resolver.
    pub(super) own_back: Option<OwnBackKey>,
    /// Permissions of a neighbour of name resolution by the trust store when the link was made.
    pub(super) may_publish: bool,
    pub(super) may_subscribe: bool,
    /// Streams whose next epoch the receiver wishes, while its items are read.
    pub(super) wishes: Vec<Stream>,
    pub(super) last_heard: u64,
    pub(super) challenge: Option<(SocketAddr, [u8; 8], u64)>,
}

impl<P: Provider> SendLink<P> {
    pub(super) fn send(&mut self, shared: &mut Shared<P>, port: Port, items: &[Item<'_>]) {
        self.send_to(shared, port, self.address, items);
    }

    pub(super) fn send_to(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        to: SocketAddr,
        items: &[Item<'_>],
    ) {
        send_items(
            &mut self.keys,
            shared,
            port,
            self.group.unwrap_or(to),
            items,
        );
    }

    /// Returns true if the address of the receiver has to be proved anew.
    pub(super) fn may_have_moved(&self, source: SocketAddr) -> bool {
        self.group.is_none() && (source != self.address || !self.is_proved)
    }

    /// Installs a back key, if its frames `may_be` taken; returns its id if it is the newest.
    pub(super) fn take_back_key(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        now: u64,
        key: (u32, u16, &Secret),
        may_be: bool,
    ) -> Option<KeyId> {
        let taken = self.peer_back.take(shared, port, now, &self.back, key)?;
        if let Some(key) = taken.fresh.filter(|_| may_be) {
            shared.output(Output::OpenBack {
                port,
                link: self.keys.own_id(),
                receiver_id: self.receiver_id,
                address: self.is_proved.then_some(self.address),
                key,
            });
        }
        Some(taken.id)
    }

    /// Sends the back key of this end.
    pub(super) fn send_back_key(&mut self, shared: &mut Shared<P>, port: Port, now: u64) {
        if let Some(own) = &mut self.own_back {
            let item = own.item(now);
            self.send(shared, port, &[item]);
        }
    }

    pub(super) fn challenge_address(
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
    pub(super) fn answer_challenge(
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
