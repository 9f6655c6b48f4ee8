// SPDX-License-Identifier: Apache-2.0
//! Link of a receive transport to a sender.

use std::net::SocketAddr;

use super::back_key::{OwnBackKey, PeerBackKeys, REPEAT_MAX, REPEAT_MIN};
use super::send_link::send_items;
use super::{KeeperOptions, LINK_SILENCE, MILLI, Output, Port, Shared, Stream};
use crate::derive::{Fingerprint, PublicKey};
use crate::frame::{Item, RequestedKey};
use crate::link::LinkKeys;
use crate::provider::{Provider, Suite};

/// Requests without an answer on a link.
const REQUESTS_MAX: usize = 64;
/// A request is given up after so many repetitions; a datagram under an unknown key starts another one.
const REQUEST_ATTEMPTS: u32 = 8;
/// Time between announcements or datagrams of one peer that are acted on.
pub(super) const NOTICE_INTERVAL: u64 = 100 * MILLI;

/// Question for a key that is not answered yet.
pub(super) struct Request {
    pub(super) number: u32,
    key: RequestedKey,
    next_at: u64,
    wait: u64,
    attempts: u32,
}

/// Link to a sender.
pub(super) struct ReceiveLink<P: Provider> {
    pub(super) keys: LinkKeys<P>,
    pub(super) peer: PublicKey,
    pub(super) fingerprint: Fingerprint,
    pub(super) name: String,
    /// Permission of the trust store of the other end to send and to have when the link was made, on the link of a resolver.
    pub(super) may: (bool, bool),
    pub(super) incarnation: u64,
    pub(super) address: SocketAddr,
    pub(super) suite: Suite,
    pub(super) created: u64,
    pub(super) renew_at: u64,
    pub(super) last_heard: u64,
    pub(super) tested: u32,
    pub(super) next_test: u64,
    /// Back key that this end drew, with the identity that it had in the handshake.
    pub(super) back: OwnBackKey,
    /// Back keys of the other end, on the link of a resolver.
    pub(super) peer_back: PeerBackKeys,
    pub(super) requests: Vec<Request>,
    next_request: u32,
    /// Time of the last announcement that was acted on.
    pub(super) last_notice: Option<u64>,
    /// Time of the last datagram under an unknown key that was acted on. Announcements have a time of their own, so that a
    /// flood of either leaves the other alone.
    pub(super) last_unknown: Option<u64>,
    /// Stream that was asked for last because of a datagram under an unknown key.
    pub(super) last_asked: Option<Stream>,
    challenge: Option<(SocketAddr, [u8; 8], u64)>,
    /// The sender has answered under the keys of the link.
    pub(super) is_up: bool,
    pub(super) ends_at: Option<u64>,
}

/// First state of a link.
pub(super) struct NewLink<P: Provider> {
    pub(super) keys: LinkKeys<P>,
    pub(super) peer: PublicKey,
    pub(super) fingerprint: Fingerprint,
    pub(super) name: String,
    /// Permission of the trust store of the other end to send and to have when the link was made, on the link of a resolver.
    pub(super) may: (bool, bool),
    pub(super) incarnation: u64,
    pub(super) address: SocketAddr,
    pub(super) suite: Suite,
    pub(super) back: OwnBackKey,
    pub(super) renew_at: u64,
    pub(super) next_test: u64,
}

impl<P: Provider> ReceiveLink<P> {
    pub(super) fn new(new: NewLink<P>, now: u64) -> Self {
        Self {
            keys: new.keys,
            peer: new.peer,
            fingerprint: new.fingerprint,
            name: new.name,
            may: new.may,
            incarnation: new.incarnation,
            address: new.address,
            suite: new.suite,
            created: now,
            renew_at: new.renew_at,
            last_heard: now,
            tested: 0,
            next_test: new.next_test,
            back: new.back,
            peer_back: PeerBackKeys::default(),
            requests: Vec::new(),
            next_request: 1,
            last_notice: Some(now),
            last_unknown: Some(now),
            last_asked: None,
            challenge: None,
            is_up: false,
            ends_at: None,
        }
    }

    pub(super) fn send(&mut self, shared: &mut Shared<P>, port: Port, items: &[Item<'_>]) {
        send_items(&mut self.keys, shared, port, self.address, items);
    }

    pub(super) fn send_back_key(&mut self, shared: &mut Shared<P>, port: Port, now: u64) {
        let item = self.back.item(now);
        self.send(shared, port, &[item]);
    }

    /// Draws another back key.
    pub(super) fn rotate_back_key(&mut self, shared: &mut Shared<P>, port: Port, now: u64) {
        if let Some(back) = self.back.next(shared, now) {
            self.back = back;
            self.send_back_key(shared, port, now);
        }
    }

    /// Asks for a key, unless that question is open already.
    pub(super) fn request(
        &mut self,
        shared: &mut Shared<P>,
        port: Port,
        now: u64,
        key: RequestedKey,
    ) {
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
    pub(super) fn repeat(&mut self, shared: &mut Shared<P>, port: Port, now: u64) {
        if self.back.is_due(now) {
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

    pub(super) fn challenge_address(
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
            shared.output(Output::Moved {
                port,
                link: self.keys.own_id(),
                address: source,
            });
        }
    }

    pub(super) fn next_deadline(&self, options: &KeeperOptions) -> u64 {
        let requests = self.requests.iter().map(|request| request.next_at);
        requests
            .chain(self.peer_back.deadline())
            .chain([
                self.back.deadline(options.rotate_interval),
                self.next_test,
                self.renew_at,
                self.last_heard + LINK_SILENCE,
            ])
            .min()
            .unwrap_or(self.next_test)
    }
}
