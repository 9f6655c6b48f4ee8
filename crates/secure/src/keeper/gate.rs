// SPDX-License-Identifier: Apache-2.0
//! Admission of handshakes: bounds the work for sources that proved nothing (docs/spec/transport-security.md §3.7).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use super::allowance::Allowance;
use super::cookie::CookieMaker;
use super::{Port, SECOND, Shared};
use crate::frame::{Init, Resp};
use crate::provider::Provider;
use crate::secret::Secret;

/// INITs whose answers are remembered.
const ANSWERED_MAX: usize = 64;
/// Addresses whose rate of proved INITs is bounded.
const ADDRESSES_MAX: usize = 1_024;
/// INITs without a cookie that wait for their computation; twice as many with those that have one.
const WAITING_MAX: usize = 32;
/// Addresses of links that are remembered, and for how long.
const KNOWN_MAX: usize = 1_024;
const DAY: u64 = 24 * 3_600 * SECOND;

/// Bounds the work for sources that proved nothing; one for all endpoints.
pub(super) struct Gate<P: Provider> {
    cookies: CookieMaker,
    /// INITs without a cookie: half of the rate. A quarter is for proved addresses, and a quarter for those of them that have or
    /// had a link, so that sources which know the public key starve no renewal.
    unproved: Allowance,
    proved: Allowance,
    known: Allowance,
    addresses: HashMap<IpAddr, Allowance>,
    /// INITs whose answers are being computed.
    waiting: Vec<Waiting>,
    /// Answers to the last INITs, so that a repeated one costs no computation.
    answered: VecDeque<Answered>,
    provider: std::marker::PhantomData<P>,
}

/// INIT whose answer is being computed.
pub(super) struct Waiting {
    port: Port,
    digest: [u8; 32],
    /// From where it came first.
    pub(super) source: SocketAddr,
    /// It came from another address, too: none of them is proved by the answer.
    pub(super) is_copied: bool,
}

struct Answered {
    port: Port,
    digest: [u8; 32],
    resp: Resp,
}

impl<P: Provider> Gate<P> {
    pub(super) fn new(rate: u64, secret: Secret) -> Self {
        let half = rate.div_ceil(2).max(1);
        let quarter = half.div_ceil(2);
        Self {
            cookies: CookieMaker::new(secret),
            unproved: Allowance::new(half, half.min(32)),
            proved: Allowance::new(quarter, quarter.min(32)),
            known: Allowance::new(quarter, quarter.min(32)),
            addresses: HashMap::new(),
            waiting: Vec::new(),
            answered: VecDeque::new(),
            provider: std::marker::PhantomData,
        }
    }

    pub(super) fn on_tick(&mut self, shared: &mut Shared<P>, now: u64) {
        self.cookies.rotate(now, || shared.secret());
    }

    /// Decides about an INIT whose first authenticator is right.
    pub(super) fn admit(
        &mut self,
        now: u64,
        source: SocketAddr,
        init: &Init,
        known: &KnownAddresses,
    ) -> Admission {
        if init.cookie == [0; 24] {
            return if self.waiting.len() < WAITING_MAX && self.unproved.take(now) {
                Admission::Answer
            } else {
                Admission::Cookie
            };
        }
        let link_id = init.link_id.get();
        if !self
            .cookies
            .is_valid::<P>(now, source, link_id, &init.cookie)
        {
            return Admission::Cookie;
        }
        if self.waiting.len() >= 2 * WAITING_MAX {
            return Admission::Silence;
        }
        if self.addresses.len() >= ADDRESSES_MAX {
            self.addresses.clear();
        }
        let address = self
            .addresses
            .entry(network(source.ip()))
            .or_insert_with(|| Allowance::new(10, 10));
        if !address.take(now) {
            return Admission::Silence;
        }
        if self.proved.take(now) || known.has(now, source.ip()) && self.known.take(now) {
            Admission::Answer
        } else {
            Admission::Silence
        }
    }

    /// Returns a cookie for an INIT.
    pub(super) fn cookie(&self, now: u64, source: SocketAddr, link_id: u64) -> [u8; 24] {
        self.cookies.make::<P>(now, source, link_id)
    }

    /// Takes a token of those without proof.
    #[cfg(test)]
    pub(super) fn exhaust(&mut self, now: u64) {
        self.unproved.take(now);
    }

    /// Returns the answer to an INIT, if it was answered before.
    pub(super) fn answer_to(&self, port: Port, digest: &[u8; 32]) -> Option<&Resp> {
        let mut answered = self.answered.iter();
        answered
            .find(|answered| answered.port == port && answered.digest == *digest)
            .map(|answered| &answered.resp)
    }

    /// Returns true if the answer to an INIT is being computed, and notes the source of this copy.
    pub(super) fn is_waiting(&mut self, port: Port, digest: &[u8; 32], source: SocketAddr) -> bool {
        let mut waiting = self.waiting.iter_mut();
        let Some(waiting) =
            waiting.find(|waiting| waiting.port == port && waiting.digest == *digest)
        else {
            return false;
        };
        waiting.is_copied |= waiting.source != source;
        true
    }

    /// Remembers an INIT until its answer is computed.
    pub(super) fn begin(&mut self, port: Port, digest: [u8; 32], source: SocketAddr) {
        self.waiting.push(Waiting {
            port,
            digest,
            source,
            is_copied: false,
        });
    }

    /// Takes the end of a computation.
    pub(super) fn end(&mut self, port: Port, digest: &[u8; 32]) -> Option<Waiting> {
        let at = self
            .waiting
            .iter()
            .position(|waiting| waiting.port == port && waiting.digest == *digest)?;
        Some(self.waiting.swap_remove(at))
    }

    /// Remembers an answer.
    pub(super) fn remember(&mut self, port: Port, digest: [u8; 32], resp: Resp) {
        if self.answered.len() >= ANSWERED_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(Answered { port, digest, resp });
    }
}

/// Addresses of receivers that have had a link in the last day.
#[derive(Default)]
pub(crate) struct KnownAddresses {
    seen: BTreeMap<IpAddr, u64>,
}

impl KnownAddresses {
    /// Remembers the address of a link.
    pub(crate) fn remember(&mut self, now: u64, ip: IpAddr) {
        self.seen.insert(network(ip), now);
        if self.seen.len() > KNOWN_MAX
            && let Some((oldest, _)) = self.seen.iter().min_by_key(|(_, at)| **at)
        {
            let oldest = *oldest;
            self.seen.remove(&oldest);
        }
    }

    fn has(&self, now: u64, ip: IpAddr) -> bool {
        let last = self.seen.get(&network(ip));
        last.is_some_and(|last| now < last + DAY)
    }
}

/// Decision about an INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Answer,
    Cookie,
    Silence,
}

/// Returns the address, or the /64 network of an IPv6 address.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::from((ip.to_bits() >> 64 << 64).to_be_bytes()),
    }
}
