// SPDX-License-Identifier: Apache-2.0
//! Frames of links that a send endpoint gets.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::epochs::grant;
use super::{SendEndpoint, SendStream, SenderConfig};
use crate::frame::{Code, GRANT_CURRENT, GRANT_NEXT, Grant, Item, Items, PairFrames, RequestedKey};
use crate::keeper::send_link::SendLink;
use crate::keeper::{Event, LinkStream, Output, Refusal, Rotation, SECOND, Shared, Stream};
use crate::provider::Provider;

/// Streams granted on a link.
const GRANTS_MAX: usize = 4_096;
/// Time between two rotations that receivers wish.
const WISH_INTERVAL: u64 = 10 * SECOND;

impl<P: Provider> SendEndpoint<P> {
    pub(in crate::keeper) fn on_pair(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        frames: PairFrames<'_>,
    ) {
        for frame in frames {
            let id = frame.link_id();
            let half_open = self
                .half_open
                .iter()
                .position(|half_open| half_open.link.keys.own_id() == id);
            let link = match half_open {
                Some(at) => Some(&mut self.half_open[at].link),
                None => self.links.get_mut(&id),
            };
            let Some(link) = link else {
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
                .all(|item| is_receivers(&item, self.is_resolver))
            {
                shared.counts.out_of_bounds += 1;
                continue;
            }
            if let Some(at) = half_open
                && !self.confirm(shared, now, source, at)
            {
                continue;
            }
            self.on_items(shared, now, source, id, is_newest, items);
        }
    }

    fn on_items(
        &mut self,
        shared: &mut Shared<P>,
        now: u64,
        source: SocketAddr,
        id: u64,
        is_newest: bool,
        items: Items<'_>,
    ) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        link.last_heard = now;
        if is_newest && link.may_have_moved(source) {
            link.challenge_address(shared, self.port, now, source);
        }
        let mut answers: Vec<Item<'_>> = Vec::new();
        let mut announced = Vec::new();
        let mut is_over = false;
        let mut has_next = false;
        let mut is_empty = true;
        for item in items {
            is_empty = false;
            match item {
                Item::BackKey {
                    epoch,
                    suite,
                    secret,
                } => {
                    let may_be = !self.is_resolver || link.may_publish;
                    let key = (epoch, suite, &secret);
                    if let Some(key) = link.take_back_key(shared, self.port, now, key, may_be) {
                        answers.push(Item::Got(key));
                    }
                }
                Item::Request { request, key } => {
                    match grant_for(&self.streams, &self.config, shared, link, now, request, key) {
                        Ok((stream, grants)) => {
                            if link.granted.insert(stream) {
                                shared.output(Output::Grant(LinkStream {
                                    port: self.port,
                                    link: id,
                                    session_id: stream.0,
                                    stream_id: stream.1,
                                }));
                            }
                            answers.extend(grants.into_iter().map(Item::Grant));
                            announced.push(stream);
                        }
                        Err(refused) => {
                            if let Some(why) = refused.why {
                                let event = Event::PeerRefused {
                                    port: self.port,
                                    peer: link.name.clone(),
                                    fingerprint: link.peer.fingerprint::<P>(),
                                    channel: self.config.address,
                                    why,
                                };
                                shared.refusal(now, event);
                            }
                            answers.push(Item::Refused {
                                request,
                                code: refused.code,
                                text: b"",
                            });
                        }
                    }
                }
                Item::Got(key) => {
                    // Until the address is proved, the key is passed on again, and confirmed again.
                    let own = link.own_back.as_mut().filter(|_| link.is_proved);
                    if let Some(key) = own.and_then(|own| own.confirm(key))
                        && link.may_subscribe
                    {
                        shared.output(Output::SealBack {
                            port: self.port,
                            link: id,
                            to: link.address,
                            key,
                        });
                    }
                    let streams = self.streams.values_mut();
                    for next in streams.filter_map(|state| state.next.as_mut()) {
                        if next.epoch.id == key {
                            has_next |= next.waiting.remove(&id);
                        }
                    }
                }
                Item::Retire(key) => {
                    link.peer_back.close(shared, self.port, |id, _| id == key);
                }
                Item::Wish(key) => {
                    let wished = self
                        .streams
                        .iter_mut()
                        .find(|(_, state)| state.current.id == key);
                    if let Some((stream, state)) = wished
                        && link.granted.contains(stream)
                        && state
                            .last_wish
                            .is_none_or(|last| now >= last + WISH_INTERVAL)
                    {
                        state.last_wish = Some(now);
                        link.wishes.push(*stream);
                    }
                }
                Item::Path(random) => {
                    link.send_to(shared, self.port, source, &[Item::PathAnswer(random)]);
                }
                Item::PathAnswer(random) => {
                    link.answer_challenge(shared, self.port, source, random);
                }
                Item::Bye(_) => is_over = true,
                _ => {}
            }
        }
        if is_empty || !answers.is_empty() {
            link.send(shared, self.port, &answers);
        }
        let wishes = std::mem::take(&mut link.wishes);
        for (session_id, stream_id) in announced {
            shared.output(Output::Announce(LinkStream {
                port: self.port,
                link: id,
                session_id,
                stream_id,
            }));
        }
        for stream in wishes {
            self.rotate(shared, now, stream, Rotation::Wish);
        }
        if has_next {
            for stream in self.streams.keys().copied().collect::<Vec<_>>() {
                self.switch(shared, now, stream);
            }
        }
        if is_over {
            self.leave(shared, now, id, None);
        }
    }
}

/// Returns true if a receiver may send this item; a neighbour of name resolution has no streams to ask for.
const fn is_receivers(item: &Item<'_>, is_resolver: bool) -> bool {
    match item {
        Item::Request { .. } | Item::Wish(_) => !is_resolver,
        Item::BackKey { .. }
        | Item::Got(_)
        | Item::Retire(_)
        | Item::Path(_)
        | Item::PathAnswer(_)
        | Item::Bye(_) => true,
        _ => false,
    }
}

/// Reason why a request is refused: what its peer is told, and what this end reports.
struct RefusedRequest {
    code: Code,
    why: Option<Refusal>,
}

impl From<Code> for RefusedRequest {
    fn from(code: Code) -> Self {
        Self { code, why: None }
    }
}

/// Returns the grants for a request: the present epoch, and the next one if it is on its way.
fn grant_for<P: Provider>(
    streams: &BTreeMap<Stream, SendStream>,
    config: &SenderConfig,
    shared: &Shared<P>,
    link: &SendLink<P>,
    now: u64,
    request: u32,
    key: RequestedKey,
) -> Result<(Stream, Vec<Grant>), RefusedRequest> {
    let found = match key {
        RequestedKey::Stream {
            session_id,
            stream_id,
        } => streams.get_key_value(&(session_id, stream_id)),
        RequestedKey::Id(id) => streams.iter().find(|(_, state)| {
            state.current.id == id
                || state.previous == Some(id)
                || state.next.as_ref().is_some_and(|next| next.epoch.id == id)
        }),
    };
    // Whether a stream exists is told only to those that may have it.
    let trusted = shared.trust.by_key::<P>(&link.peer);
    let trusted = trusted.filter(|peer| peer.name() == link.name);
    let Some((stream, state)) = found else {
        return Err(Code::UNKNOWN_STREAM.into());
    };
    let may_have = state.audience.has(&link.name)
        && trusted.is_some_and(|peer| peer.may_subscribe(config.address, stream.1));
    if !may_have {
        let is_for_it = state.audience.has(&link.name);
        return Err(RefusedRequest {
            code: Code::UNKNOWN_STREAM,
            why: is_for_it.then_some(Refusal::Subscribe(Some(stream.1))),
        });
    }
    if link.granted.len() >= GRANTS_MAX && !link.granted.contains(stream) {
        return Err(Code::LIMIT.into());
    }
    if link.suites & state.current.suite.bit() == 0 {
        return Err(Code::SUITE.into());
    }
    let current = grant(
        &state.current,
        *stream,
        request,
        GRANT_CURRENT,
        &shared.options,
        now,
    );
    let next = state.next.as_ref().map(|next| {
        grant(
            &next.epoch,
            *stream,
            request,
            GRANT_NEXT,
            &shared.options,
            now,
        )
    });
    Ok((*stream, std::iter::once(current).chain(next).collect()))
}
