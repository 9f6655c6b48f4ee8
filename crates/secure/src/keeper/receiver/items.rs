// SPDX-License-Identifier: Apache-2.0
//! Frames of links that a receive transport gets.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::{KEEPALIVE, ReceiveTransport};
use crate::frame::{Item, Items, PairFrames};
use crate::keeper::back_key::BackContext;
use crate::keeper::send_link::send_items;
use crate::keeper::sender::refusal_text;
use crate::keeper::{Event, Output, Shared, Stream};
use crate::provider::Provider;

impl<P: Provider> ReceiveTransport<P> {
    pub(in crate::keeper) fn on_pair(
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
            if !items
                .clone()
                .all(|item| is_senders(&item, self.is_resolver))
            {
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
                    suite: link.suite,
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
                Item::Got(key) => {
                    if let Some(key) = link.back.confirm(key)
                        && (!self.is_resolver || link.may.1)
                    {
                        shared.output(Output::SealBack {
                            port: self.port,
                            link: id,
                            to: link.address,
                            key,
                        });
                    }
                }
                Item::BackKey {
                    epoch,
                    suite,
                    secret,
                } => {
                    let context = BackContext {
                        identity: link.fingerprint,
                        suite: link.suite,
                        receiver_id: self.config.receiver_id,
                    };
                    let key = (epoch, suite, &secret);
                    let taken = link.peer_back.take(shared, self.port, now, &context, key);
                    if let Some(taken) = taken {
                        if let Some(key) = taken.fresh.filter(|_| link.may.0) {
                            shared.output(Output::OpenBack {
                                port: self.port,
                                link: id,
                                receiver_id: self.config.receiver_id,
                                address: Some(link.address),
                                key,
                            });
                        }
                        link.send(shared, self.port, &[Item::Got(taken.id)]);
                    }
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
}

/// Returns true if a sender may send this item; a neighbour of name resolution grants nothing, and seals feedback.
const fn is_senders(item: &Item<'_>, is_resolver: bool) -> bool {
    match item {
        Item::Grant(_) | Item::Refused { .. } => !is_resolver,
        Item::BackKey { .. } => is_resolver,
        Item::Got(_)
        | Item::Retire(_)
        | Item::Renew
        | Item::Bye(_)
        | Item::Path(_)
        | Item::PathAnswer(_) => true,
        _ => false,
    }
}
