// SPDX-License-Identifier: Apache-2.0
//! Keeper: links, grants, rotation and limits of one driver (docs/spec/transport-security.md §3).
//!
//! Contract: inputs are `on_datagram`, `on_unknown_key`, `on_first_open`, `on_tick`, `set_trust`, and the local commands that
//! add and remove endpoints, streams, transports and subscriptions, each with `now` where time matters. After each input the
//! caller takes outputs with [`Keeper::next_output`] until there are none, in order. [`Keeper::next_deadline`] tells when
//! `on_tick` has something to do. Times are nanoseconds of a monotonic clock. The keeper performs no I/O and reads no clock;
//! random bytes come from [`Entropy`].

mod allowance;
mod back_key;
mod cookie;
mod gate;
mod job;
mod output;
mod owner;
mod receive_link;
mod receiver;
mod send_link;
mod sender;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use crate::derive::{Fingerprint, KeyId};
use crate::frame::SecureFrame;
use crate::identity::Identity;
use crate::provider::{Provider, Suite};
use crate::secret::Secret;
use crate::trust::TrustStore;

use gate::Gate;
use job::Outcome;
pub use job::{Job, JobResult};
pub use output::{Event, LinkStream, Output, Refusal, Rotation};
use receiver::ReceiveTransport;
pub use receiver::ReceiverConfig;
use sender::SendEndpoint;
pub use sender::{Audience, SenderConfig};

/// Session id and stream id.
type Stream = (i32, i32);

/// One second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// One millisecond in nanoseconds.
pub(crate) const MILLI: u64 = 1_000_000;
/// A link that is silent for this long is over.
const LINK_SILENCE: u64 = 30 * SECOND;
/// Oldest age of a key, whatever its life says.
const KEY_AGE_MAX: u64 = 24 * 3_600 * SECOND;
/// Events of refused peers that are reported in a second; all are counted.
const EVENTS_PER_SECOND: u64 = 1;

/// Source of random bytes.
pub trait Entropy: Send {
    /// Fills a buffer with unpredictable bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// Send endpoint or receive transport, numbered by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    /// Endpoint that sends streams.
    Sender(u64),
    /// Transport that receives streams.
    Receiver(u64),
    /// Socket of name resolution among drivers.
    Resolver,
}

/// Options of the driver.
#[derive(Clone, Debug)]
pub struct KeeperOptions {
    /// Allowed suites in order of preference.
    pub suites: Vec<Suite>,
    /// Nanoseconds after which keys are rotated.
    pub rotate_interval: u64,
    /// Returns true if keys are rotated when a receiver leaves.
    pub rotate_on_leave: bool,
    /// Nanoseconds after which links are renewed.
    pub link_lifetime: u64,
    /// INITs answered in a second.
    pub handshake_rate: u64,
}

impl Default for KeeperOptions {
    fn default() -> Self {
        Self {
            suites: Suite::ALL.to_vec(),
            rotate_interval: 3_600 * SECOND,
            rotate_on_leave: false,
            link_lifetime: 3_600 * SECOND,
            handshake_rate: 100,
        }
    }
}

/// Counts of what the keeper did and refused (docs/spec/transport-security.md §4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that are no valid frame, or of the wrong direction.
    pub invalid: u64,
    /// Frames of links that failed to open, or were replayed.
    pub failed_opens: u64,
    /// Frames of links with items of the wrong role, or invalid ones.
    pub out_of_bounds: u64,
    /// Handshakes that ended with a link.
    pub handshakes: u64,
    /// Handshakes that were refused.
    pub refused: u64,
    /// Cookies sent.
    pub cookies: u64,
    /// Key rotations.
    pub rotations: u64,
}

/// State that both sides share.
pub(crate) struct Shared<P: Provider> {
    pub(crate) identity: Identity,
    pub(crate) trust: Arc<TrustStore>,
    /// Number of the trust store and identity in force: results of jobs that were begun under others are dropped.
    pub(crate) generation: u64,
    pub(crate) options: KeeperOptions,
    pub(crate) entropy: Box<dyn Entropy>,
    /// Random number of this run.
    pub(crate) incarnation: u64,
    /// Last epoch drawn; epochs of a driver only grow.
    epoch: u32,
    pub(crate) counts: Counts,
    pub(crate) owners: owner::Owners,
    pub(crate) known: gate::KnownAddresses,
    outputs: VecDeque<Output<P>>,
    /// Computations to run before an input is dealt with, unless the caller runs them.
    jobs: VecDeque<Job<P>>,
    defers_jobs: bool,
    /// Second of the last event about a refused peer, and their number in it.
    events: (u64, u64),
}

impl<P: Provider> Shared<P> {
    pub(crate) fn send(&mut self, port: Port, to: SocketAddr, bytes: Vec<u8>) {
        self.outputs.push_back(Output::Send { port, to, bytes });
    }

    pub(crate) fn output(&mut self, output: Output<P>) {
        self.outputs.push_back(output);
    }

    pub(crate) fn unlink(&mut self, port: Port, link: u64) {
        self.output(Output::Unlink { port, link });
    }

    pub(crate) fn job(&mut self, job: Job<P>) {
        if self.defers_jobs {
            self.output(Output::Job(job));
        } else {
            self.jobs.push_back(job);
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    /// Reports an event that an unauthenticated source can cause, at a bounded rate.
    pub(crate) fn refusal(&mut self, now: u64, event: Event) {
        self.counts.refused += 1;
        let second = now / SECOND;
        if self.events.0 != second {
            self.events = (second, 0);
        }
        if self.events.1 < EVENTS_PER_SECOND {
            self.events.1 += 1;
            self.event(event);
        }
    }

    pub(crate) fn secret(&mut self) -> Secret {
        let mut secret = Secret::new([0; 32]);
        self.entropy.fill(secret.expose_mut());
        secret
    }

    pub(crate) fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }

    /// Draws the next epoch; none after the last one, which a driver reaches after 2^32 rotations.
    pub(crate) fn epoch(&mut self) -> Option<u32> {
        self.epoch = self.epoch.checked_add(1)?;
        Some(self.epoch)
    }

    pub(crate) fn offered_suites(&self) -> u16 {
        let suites = self.options.suites.iter();
        suites.fold(0, |bits, suite| bits | suite.bit())
    }
}

/// Keeper of a driver.
pub struct Keeper<P: Provider> {
    shared: Shared<P>,
    senders: BTreeMap<u64, SendEndpoint<P>>,
    receivers: BTreeMap<u64, ReceiveTransport<P>>,
    /// Both halves of the socket of name resolution: a neighbour may begin a handshake, or answer one.
    resolver: Option<(SendEndpoint<P>, ReceiveTransport<P>)>,
    gate: Gate<P>,
}

impl<P: Provider> Keeper<P> {
    /// Returns a keeper without endpoints.
    #[must_use]
    pub fn new(
        identity: Identity,
        trust: TrustStore,
        options: KeeperOptions,
        mut entropy: Box<dyn Entropy>,
    ) -> Self {
        let mut incarnation = [0; 8];
        entropy.fill(&mut incarnation);
        let rate = options.handshake_rate;
        let mut shared = Shared {
            identity,
            trust: Arc::new(trust),
            generation: 0,
            options,
            entropy,
            incarnation: u64::from_le_bytes(incarnation),
            epoch: 0,
            counts: Counts::default(),
            owners: owner::Owners::default(),
            known: gate::KnownAddresses::default(),
            outputs: VecDeque::new(),
            jobs: VecDeque::new(),
            defers_jobs: false,
            events: (0, 0),
        };
        let gate = Gate::new(rate, shared.secret());
        Self {
            shared,
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
            resolver: None,
            gate,
        }
    }

    /// Outputs jobs instead of running them within the input that causes them.
    pub const fn defer_jobs(&mut self) {
        self.shared.defers_jobs = true;
    }

    /// Returns the next output.
    pub fn next_output(&mut self) -> Option<Output<P>> {
        self.shared.outputs.pop_front()
    }

    /// Returns the trust store in force.
    #[must_use]
    pub fn trust(&self) -> &TrustStore {
        &self.shared.trust
    }

    /// Returns the counts.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Returns the number of links that are up.
    #[must_use]
    pub fn link_count(&self) -> usize {
        let senders = self.senders.values().map(SendEndpoint::link_count);
        let receivers = self.receivers.values().map(ReceiveTransport::link_count);
        let resolver = self.resolver.iter();
        let resolver =
            resolver.map(|(sender, receiver)| sender.link_count() + receiver.link_count());
        senders.chain(receivers).chain(resolver).sum()
    }

    /// Returns the names of the peers of all links that are up at a port, one per link.
    #[must_use]
    pub fn peers(&self, port: Port) -> Vec<&str> {
        match port {
            Port::Sender(id) => self.senders.get(&id).map(|it| it.peers().collect()),
            Port::Receiver(id) => self.receivers.get(&id).map(|it| it.peers().collect()),
            Port::Resolver => self
                .resolver
                .as_ref()
                .map(|(sender, receiver)| sender.peers().chain(receiver.peers()).collect()),
        }
        .unwrap_or_default()
    }

    /// Returns the name of the peer at the other end of a link.
    #[must_use]
    pub fn peer_of(&self, sender: u64, link: u64) -> Option<&str> {
        self.senders.get(&sender)?.peer_of(link)
    }

    /// Returns the name of the peer that sends a stream to a subscription endpoint.
    #[must_use]
    pub fn owner_of(&self, group: u64, session_id: i32, stream_id: i32) -> Option<&str> {
        let stream = (session_id, stream_id);
        self.shared.owners.of((group, stream)).or_else(|| {
            let mut receivers = self.receivers.values();
            receivers.find_map(|receiver| receiver.owner_of(group, stream))
        })
    }

    /// Returns the fingerprint of the identity in force.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.shared.identity.fingerprint()
    }

    /// Returns the random number of this run, which announcements carry.
    #[must_use]
    pub const fn incarnation(&self) -> u64 {
        self.shared.incarnation
    }

    /// Adds a send endpoint.
    pub fn add_sender(&mut self, id: u64, config: SenderConfig) {
        self.senders
            .insert(id, SendEndpoint::new(Port::Sender(id), config));
    }

    /// Sets the channel tags that a receiver may ask a send endpoint with.
    pub fn set_tags(&mut self, id: u64, tags: Vec<[u8; 4]>) {
        if let Some(endpoint) = self.senders.get_mut(&id) {
            endpoint.set_tags(tags);
        }
    }

    /// Removes a send endpoint; its links end.
    pub fn remove_sender(&mut self, id: u64) {
        if let Some(mut endpoint) = self.senders.remove(&id) {
            endpoint.close(&mut self.shared);
        }
    }

    /// Adds a stream to a send endpoint and draws its first key.
    pub fn add_stream(&mut self, now: u64, sender: u64, session_id: i32, stream_id: i32) {
        self.add_stream_for(now, sender, (session_id, stream_id), Audience::All);
    }

    /// Adds a stream, session id and stream id, for some of the receivers that the trust store allows.
    pub fn add_stream_for(
        &mut self,
        now: u64,
        sender: u64,
        stream: (i32, i32),
        audience: Audience,
    ) {
        if let Some(endpoint) = self.senders.get_mut(&sender) {
            endpoint.add_stream(&mut self.shared, now, stream, audience);
        }
    }

    /// Removes a stream from a send endpoint.
    pub fn remove_stream(&mut self, sender: u64, session_id: i32, stream_id: i32) {
        if let Some(endpoint) = self.senders.get_mut(&sender) {
            endpoint.remove_stream(&mut self.shared, (session_id, stream_id));
        }
    }

    /// Rotates the key of a stream, because its sealing half asks for it or by command.
    pub fn rotate(
        &mut self,
        now: u64,
        sender: u64,
        session_id: i32,
        stream_id: i32,
        why: Rotation,
    ) {
        if let Some(endpoint) = self.senders.get_mut(&sender) {
            endpoint.rotate(&mut self.shared, now, (session_id, stream_id), why);
        }
    }

    /// Adds a receive transport.
    pub fn add_receiver(&mut self, id: u64, config: ReceiverConfig) {
        let port = Port::Receiver(id);
        self.receivers
            .insert(id, ReceiveTransport::new(port, config));
    }

    /// Removes a receive transport; its links end.
    pub fn remove_receiver(&mut self, id: u64) {
        if let Some(mut transport) = self.receivers.remove(&id) {
            transport.close(&mut self.shared);
        }
    }

    /// Adds a subscription to a receive transport: a stream, of one session or of all.
    pub fn add_subscription(&mut self, receiver: u64, session_id: Option<i32>, stream_id: i32) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.add_subscription(session_id, stream_id);
        }
    }

    /// Adds a subscription to a stream that answers requests: the peer that was asked alone may send it. Returns false if
    /// another peer sends or answers it.
    pub fn add_response(&mut self, receiver: u64, stream: (i32, i32), peer: &str) -> bool {
        let transport = self.receivers.get_mut(&receiver);
        transport.is_some_and(|transport| transport.add_response(&self.shared, stream, peer))
    }

    /// Opens the socket of name resolution. Of the configuration of a receiver, `address` and `tag` matter.
    pub fn set_resolver(&mut self, config: ReceiverConfig) {
        let sender = SenderConfig {
            address: config.address,
            tags: vec![config.tag],
            group: None,
            peers: None,
        };
        self.resolver = Some((
            SendEndpoint::new(Port::Resolver, sender),
            ReceiveTransport::new(Port::Resolver, config),
        ));
    }

    /// Removes a subscription from a receive transport.
    pub fn remove_subscription(&mut self, receiver: u64, session_id: Option<i32>, stream_id: i32) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.remove_subscription(&mut self.shared, session_id, stream_id);
        }
    }

    /// Puts another trust store in force.
    pub fn set_trust(&mut self, now: u64, trust: TrustStore) {
        self.shared.trust = Arc::new(trust);
        self.shared.generation += 1;
        self.each(
            |endpoint, shared| endpoint.on_trust(shared, now),
            ReceiveTransport::on_trust,
        );
    }

    /// Puts another identity in force. New handshakes use it, and keys are drawn anew at once; links live on.
    pub fn set_identity(&mut self, now: u64, identity: Identity) {
        if identity.fingerprint() == self.shared.identity.fingerprint() {
            return;
        }
        self.shared.identity = identity;
        self.shared.generation += 1;
        self.each(|_, _| (), |transport, _| transport.forget_handshakes());
        self.rotate_all(now);
    }

    /// Rotates the keys of all streams, and all back keys.
    pub fn rotate_all(&mut self, now: u64) {
        self.each(
            |endpoint, shared| endpoint.rotate_all(shared, now, Rotation::Command),
            |transport, shared| transport.rotate_back_keys(shared, now),
        );
    }

    /// Draws everything anew without sealing anything under keys that are there: another copy of this machine may go on
    /// with them (docs/spec/transport-security.md §2.3). Links end without a word; the number of this run changes, which
    /// makes receivers start handshakes at once.
    pub fn redraw(&mut self, now: u64) {
        self.shared.incarnation = u64::from_le_bytes(self.shared.random());
        self.shared.generation += 1;
        self.each(
            |endpoint, shared| endpoint.redraw(shared, now),
            |transport, shared| transport.redraw(shared, now),
        );
        self.run_jobs(now);
    }

    /// Does something to all send endpoints, and to all receive transports.
    fn each(
        &mut self,
        mut endpoints: impl FnMut(&mut SendEndpoint<P>, &mut Shared<P>),
        mut transports: impl FnMut(&mut ReceiveTransport<P>, &mut Shared<P>),
    ) {
        for endpoint in self.senders.values_mut() {
            endpoints(endpoint, &mut self.shared);
        }
        for transport in self.receivers.values_mut() {
            transports(transport, &mut self.shared);
        }
        if let Some((endpoint, transport)) = &mut self.resolver {
            endpoints(endpoint, &mut self.shared);
            transports(transport, &mut self.shared);
        }
    }

    /// Returns the sending half of a port.
    fn sender_at(&mut self, port: Port) -> Option<(&mut SendEndpoint<P>, &mut Shared<P>)> {
        let endpoint = match port {
            Port::Sender(id) => self.senders.get_mut(&id),
            Port::Receiver(_) => None,
            Port::Resolver => self.resolver.as_mut().map(|(endpoint, _)| endpoint),
        };
        Some((endpoint?, &mut self.shared))
    }

    /// Returns the receiving half of a port.
    fn receiver_at(&mut self, port: Port) -> Option<(&mut ReceiveTransport<P>, &mut Shared<P>)> {
        let transport = match port {
            Port::Sender(_) => None,
            Port::Receiver(id) => self.receivers.get_mut(&id),
            Port::Resolver => self.resolver.as_mut().map(|(_, transport)| transport),
        };
        Some((transport?, &mut self.shared))
    }

    /// Takes a datagram of transport security: HELLO, INIT and PAIR at a sender, ANNOUNCE, RESP, COOKIE and PAIR at a
    /// receiver, all of them at a resolver. An ANNOUNCE comes here unless its SETUP was opened.
    pub fn on_datagram(&mut self, now: u64, port: Port, source: SocketAddr, bytes: &[u8]) {
        self.on_frame(now, port, source, bytes);
        self.run_jobs(now);
    }

    fn on_frame(&mut self, now: u64, port: Port, source: SocketAddr, bytes: &[u8]) {
        let Ok(frame) = SecureFrame::parse(bytes) else {
            self.shared.counts.invalid += 1;
            return;
        };
        if let Port::Sender(id) = port
            && !self.senders.contains_key(&id)
        {
            return;
        }
        if let Port::Receiver(id) = port
            && !self.receivers.contains_key(&id)
        {
            return;
        }
        match frame {
            SecureFrame::Hello(hello) => {
                if let Some((endpoint, shared)) = self.sender_at(port) {
                    return endpoint.on_hello(shared, now, source, hello);
                }
            }
            SecureFrame::Init(init) => {
                let endpoint = match port {
                    Port::Sender(id) => self.senders.get_mut(&id),
                    Port::Receiver(_) => None,
                    Port::Resolver => self.resolver.as_mut().map(|(endpoint, _)| endpoint),
                };
                if let Some(endpoint) = endpoint {
                    let (shared, gate) = (&mut self.shared, &mut self.gate);
                    return endpoint.on_init(shared, gate, now, source, init);
                }
            }
            SecureFrame::Announce(announce) => {
                if let Some((transport, shared)) = self.receiver_at(port) {
                    return transport.on_announce(shared, now, source, announce);
                }
            }
            SecureFrame::Resp(resp) => {
                if let Some((transport, shared)) = self.receiver_at(port) {
                    return transport.on_resp(shared, now, source, resp);
                }
            }
            SecureFrame::Cookie(cookie) => {
                if let Some((transport, shared)) = self.receiver_at(port) {
                    return transport.on_cookie(shared, now, cookie);
                }
            }
            SecureFrame::Pair(frames) => {
                // Each half takes the frames of its own links.
                if let Some((endpoint, shared)) = self.sender_at(port) {
                    endpoint.on_pair(shared, now, source, frames);
                }
                if let Some((transport, shared)) = self.receiver_at(port) {
                    transport.on_pair(shared, now, source, frames);
                }
                return;
            }
            _ => {}
        }
        self.shared.counts.invalid += 1;
    }

    /// Takes the result of a job.
    pub fn on_job_done(&mut self, now: u64, result: JobResult<P>) {
        self.take_result(now, result);
        self.run_jobs(now);
    }

    fn take_result(&mut self, now: u64, result: JobResult<P>) {
        let JobResult {
            port,
            generation,
            outcome,
        } = result;
        let is_current = generation == self.shared.generation;
        match outcome {
            Outcome::Initiated {
                fingerprint,
                link_id,
                initiation,
            } => {
                if let Some((transport, shared)) = self.receiver_at(port).filter(|_| is_current) {
                    transport.on_initiated(shared, now, &fingerprint, link_id, initiation);
                }
            }
            Outcome::Finished {
                fingerprint,
                initiation,
                result,
            } => {
                if let Some((transport, shared)) = self.receiver_at(port).filter(|_| is_current) {
                    transport.on_finished(shared, now, fingerprint, initiation, *result);
                }
            }
            Outcome::Responded { digest, response } => {
                let Some(waiting) = self.gate.end(port, &digest).filter(|_| is_current) else {
                    return;
                };
                let endpoint = match port {
                    Port::Sender(id) => self.senders.get_mut(&id),
                    Port::Receiver(_) => None,
                    Port::Resolver => self.resolver.as_mut().map(|(endpoint, _)| endpoint),
                };
                if let Some(endpoint) = endpoint {
                    let (shared, gate) = (&mut self.shared, &mut self.gate);
                    let source = (waiting.source, waiting.is_copied);
                    endpoint.on_response(shared, gate, now, source, digest, response);
                }
            }
        }
    }

    /// Runs the jobs that no other thread runs.
    fn run_jobs(&mut self, now: u64) {
        while let Some(job) = self.shared.jobs.pop_front() {
            self.take_result(now, job.run());
        }
    }

    /// Takes the news that a SEALED datagram of `length` bytes came under a key that the receiver does not have.
    pub fn on_unknown_key(
        &mut self,
        now: u64,
        receiver: u64,
        source: SocketAddr,
        id: KeyId,
        length: usize,
    ) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.on_unknown_key(&mut self.shared, now, source, id, length);
        }
    }

    /// Takes the news that too many datagrams under a key failed to open: another epoch is wanted.
    pub fn on_failures(&mut self, now: u64, receiver: u64, id: KeyId) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.wish(&mut self.shared, now, id);
        }
    }

    /// Takes the news that the newest authentic feedback of a receiver came from another address than the link has.
    pub fn on_other_address(&mut self, now: u64, port: Port, link: u64, source: SocketAddr) {
        if let Some((endpoint, shared)) = self.sender_at(port) {
            endpoint.on_other_address(shared, now, link, source);
        }
    }

    /// Takes a request to elicit announcements from a control address, or of a neighbour, that no link leads to.
    pub fn on_setup_request(&mut self, now: u64, port: Port, control: SocketAddr) {
        if let Some((transport, shared)) = self.receiver_at(port) {
            transport.on_setup_request(shared, now, control);
        }
        self.run_jobs(now);
    }

    /// Takes the news that the first datagram under a key was opened: older epochs of its stream end soon.
    pub fn on_first_open(&mut self, now: u64, receiver: u64, id: KeyId) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.on_first_open(now, id);
        }
    }

    /// Takes the news that an image of a stream is about to be made: its owner keeps the stream as long as the image is there.
    /// Returns false if no peer may send the stream any more, so that there must be no image. [`Self::on_image_gone`] follows,
    /// also if the image is not made.
    pub fn on_image_begun(&mut self, group: u64, session_id: i32, stream_id: i32) -> bool {
        let stream = (session_id, stream_id);
        let mut receivers = self.receivers.values();
        self.shared.owners.image_begun((group, stream))
            || receivers.any(|receiver| receiver.has_key_of(group, stream))
    }

    /// Takes the news that the image of a stream is gone: another peer may own the stream once all keys are closed.
    pub fn on_image_gone(&mut self, group: u64, session_id: i32, stream_id: i32) {
        self.shared
            .owners
            .image_gone((group, (session_id, stream_id)));
    }

    /// Takes the news that a subscription endpoint is gone, with all its transports and images.
    pub fn forget_group(&mut self, group: u64) {
        self.shared.owners.forget(group);
    }

    /// Performs what is due.
    pub fn on_tick(&mut self, now: u64) {
        self.gate.on_tick(&mut self.shared, now);
        self.shared.owners.on_tick(now);
        self.each(
            |endpoint, shared| endpoint.on_tick(shared, now),
            |transport, shared| transport.on_tick(shared, now),
        );
        self.run_jobs(now);
    }

    /// Returns the time at which [`Self::on_tick`] has something to do; none if it has nothing at all.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let options = &self.shared.options;
        let resolver = self.resolver.as_ref();
        let senders = self.senders.values();
        let senders = senders.chain(resolver.map(|(endpoint, _)| endpoint));
        let receivers = self.receivers.values();
        let receivers = receivers.chain(resolver.map(|(_, transport)| transport));
        senders
            .filter_map(|endpoint| endpoint.next_deadline(options))
            .chain(receivers.filter_map(|transport| transport.next_deadline(options)))
            .chain(self.shared.owners.next_deadline())
            .min()
    }
}

impl<P: Provider> std::fmt::Debug for Keeper<P> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Keeper")
            .field("identity", &self.shared.identity)
            .field("counts", &self.shared.counts)
            .finish_non_exhaustive()
    }
}

/// Returns bytes of a peer as text with everything but printable ASCII escaped.
pub(crate) fn printable(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
