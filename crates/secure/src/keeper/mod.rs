//! Keeper: links, grants, rotation and limits of one driver (docs/spec/transport-security.md §3).
//!
//! Contract: inputs are `on_datagram`, `on_unknown_key`, `on_first_open`, `on_tick`, `set_trust`, and the local commands that
//! add and remove endpoints, streams, transports and subscriptions, each with `now` where time matters. After each input the
//! caller takes outputs with [`Keeper::next_output`] until there are none, in order. [`Keeper::next_deadline`] tells when
//! `on_tick` has something to do. Times are nanoseconds of a monotonic clock. The keeper performs no I/O and reads no clock;
//! random bytes come from [`Entropy`].

mod allowance;
mod cookie;
mod owner;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use crate::derive::{Fingerprint, KeyId};
use crate::frame::{Code, SecureFrame};
use crate::identity::Identity;
use crate::provider::{Provider, Suite};
use crate::seal::{OpenKey, SealKey};
use crate::secret::Secret;
use crate::trust::TrustStore;

use receiver::ReceiveTransport;
pub use receiver::ReceiverConfig;
use sender::SendEndpoint;
pub use sender::SenderConfig;

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

/// Reason why keys were rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The interval has passed.
    Interval,
    /// A soft limit is reached.
    Limit,
    /// A receiver asked for it.
    Wish,
    /// A receiver left.
    Leave,
    /// A peer is trusted no longer, or for less.
    Trust,
    /// Local command, or another identity of this driver.
    Command,
    /// The wall clock jumped: another copy of this machine may have the same keys.
    Clock,
}

/// Reason why a peer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its patterns, or the channel's list of peers, do not allow it.
    NotAllowed,
    /// It asked with another channel tag.
    OtherChannel,
    /// It takes none of the allowed suites, or grants another.
    Suite,
    /// It claims the receiver id of another peer.
    ReceiverId,
    /// The stream belongs to another peer.
    Owned,
    /// A limit is reached.
    Limit,
}

/// Event for the log of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A link is up.
    LinkUp {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
        /// Its address.
        address: SocketAddr,
    },
    /// A link is over.
    LinkDown {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
    },
    /// Keys of a stream were rotated.
    KeyRotated {
        /// Where.
        port: Port,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// New epoch.
        epoch: u32,
        /// Reason.
        why: Rotation,
    },
    /// A peer with an unknown key.
    PeerUnknown {
        /// Where.
        port: Port,
        /// Its fingerprint, unproved in an announcement.
        fingerprint: Fingerprint,
        /// Its address.
        address: SocketAddr,
    },
    /// A trusted peer is refused.
    PeerRefused {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
        /// Reason.
        why: Refusal,
    },
    /// A peer refused a request.
    RequestRefused {
        /// Where.
        port: Port,
        /// Name of the peer.
        peer: String,
        /// Code.
        code: Code,
        /// Code and text, everything but printable ASCII escaped.
        text: String,
    },
}

/// Output of the keeper.
#[derive(Debug)]
pub enum Output<P: Provider> {
    /// Send a datagram.
    Send {
        /// From where.
        port: Port,
        /// To where.
        to: SocketAddr,
        /// Datagram.
        bytes: Vec<u8>,
    },
    /// Seal a stream with this key from now on; the key before is to be dropped.
    SealStream {
        /// Send endpoint.
        port: Port,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// Epoch.
        epoch: u32,
        /// Key.
        key: Box<SealKey<P>>,
    },
    /// Seal feedback to a sender with this key from now on.
    SealBack {
        /// Receive transport.
        port: Port,
        /// Link.
        link: u64,
        /// Address of the sender.
        to: SocketAddr,
        /// Key.
        key: Box<SealKey<P>>,
    },
    /// Open a stream with this key.
    OpenStream {
        /// Receive transport.
        port: Port,
        /// Link to the sender.
        link: u64,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
        /// Epoch.
        epoch: u32,
        /// Key.
        key: Box<OpenKey<P>>,
    },
    /// Open feedback of a receiver with this key.
    OpenBack {
        /// Send endpoint.
        port: Port,
        /// Link to the receiver.
        link: u64,
        /// Receiver id that its frames have to carry.
        receiver_id: i64,
        /// Address of the receiver; none until it is proved, so that nothing is led to it.
        address: Option<SocketAddr>,
        /// Key.
        key: Box<OpenKey<P>>,
    },
    /// Take feedback for a stream from a receiver, which has been granted its key.
    Grant {
        /// Send endpoint.
        port: Port,
        /// Link to the receiver.
        link: u64,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
    },
    /// Take no more feedback for a stream from a receiver.
    Revoke {
        /// Send endpoint.
        port: Port,
        /// Link to the receiver.
        link: u64,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
    },
    /// Send feedback for a stream over this link, too: the sender granted an installed key over it.
    StreamLink {
        /// Receive transport.
        port: Port,
        /// Link to the sender.
        link: u64,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
    },
    /// Take the proved address of the other end of a link.
    Moved {
        /// Where.
        port: Port,
        /// Link.
        link: u64,
        /// Proved address.
        address: SocketAddr,
    },
    /// Forget a link: it is over.
    Unlink {
        /// Where.
        port: Port,
        /// Link.
        link: u64,
    },
    /// Seal nothing more for a stream: it is over.
    DropStream {
        /// Send endpoint.
        port: Port,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
    },
    /// Open nothing more with a key.
    Close {
        /// Where.
        port: Port,
        /// Key.
        id: KeyId,
    },
    /// Let the sender agent send an ANNOUNCE with a sealed SETUP of a stream.
    Announce {
        /// Send endpoint.
        port: Port,
        /// Link to the receiver that has the key of the stream now.
        link: u64,
        /// Session id.
        session_id: i32,
        /// Stream id.
        stream_id: i32,
    },
    /// Report an event.
    Event(Event),
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
    pub(crate) trust: TrustStore,
    pub(crate) options: KeeperOptions,
    pub(crate) entropy: Box<dyn Entropy>,
    /// Random number of this run.
    pub(crate) incarnation: u64,
    /// Last epoch drawn; epochs of a driver only grow.
    epoch: u32,
    pub(crate) counts: Counts,
    pub(crate) owners: owner::Owners,
    outputs: VecDeque<Output<P>>,
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
    gate: sender::Gate<P>,
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
            trust,
            options,
            entropy,
            incarnation: u64::from_le_bytes(incarnation),
            epoch: 0,
            counts: Counts::default(),
            owners: owner::Owners::default(),
            outputs: VecDeque::new(),
            events: (0, 0),
        };
        let gate = sender::Gate::new(rate, shared.secret());
        Self {
            shared,
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
            gate,
        }
    }

    /// Returns the next output.
    pub fn next_output(&mut self) -> Option<Output<P>> {
        self.shared.outputs.pop_front()
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
        senders.chain(receivers).sum()
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
        if let Some(endpoint) = self.senders.get_mut(&sender) {
            endpoint.add_stream(&mut self.shared, now, (session_id, stream_id));
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

    /// Removes a subscription from a receive transport.
    pub fn remove_subscription(&mut self, receiver: u64, session_id: Option<i32>, stream_id: i32) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.remove_subscription(&mut self.shared, session_id, stream_id);
        }
    }

    /// Puts another trust store in force.
    pub fn set_trust(&mut self, now: u64, trust: TrustStore) {
        self.shared.trust = trust;
        for endpoint in self.senders.values_mut() {
            endpoint.on_trust(&mut self.shared, now);
        }
        for transport in self.receivers.values_mut() {
            transport.on_trust(&mut self.shared);
        }
    }

    /// Puts another identity in force. New handshakes use it, and keys are drawn anew at once; links live on.
    pub fn set_identity(&mut self, now: u64, identity: Identity) {
        if identity.fingerprint() == self.shared.identity.fingerprint() {
            return;
        }
        self.shared.identity = identity;
        for transport in self.receivers.values_mut() {
            transport.forget_handshakes();
        }
        self.rotate_all(now);
    }

    /// Rotates the keys of all streams, and all back keys.
    pub fn rotate_all(&mut self, now: u64) {
        for endpoint in self.senders.values_mut() {
            endpoint.rotate_all(&mut self.shared, now, Rotation::Command);
        }
        for transport in self.receivers.values_mut() {
            transport.rotate_back_keys(&mut self.shared, now);
        }
    }

    /// Draws everything anew without sealing anything under keys that are there: another copy of this machine may go on
    /// with them (docs/spec/transport-security.md §2.3). Links end without a word; the number of this run changes, which
    /// makes receivers start handshakes at once.
    pub fn redraw(&mut self, now: u64) {
        self.shared.incarnation = u64::from_le_bytes(self.shared.random());
        for endpoint in self.senders.values_mut() {
            endpoint.redraw(&mut self.shared, now);
        }
        for transport in self.receivers.values_mut() {
            transport.redraw(&mut self.shared, now);
        }
    }

    /// Takes a datagram of transport security: HELLO, INIT and PAIR at a sender, ANNOUNCE, RESP, COOKIE and PAIR at a
    /// receiver. An ANNOUNCE comes here unless its SETUP was opened.
    pub fn on_datagram(&mut self, now: u64, port: Port, source: SocketAddr, bytes: &[u8]) {
        let shared = &mut self.shared;
        let Ok(frame) = SecureFrame::parse(bytes) else {
            shared.counts.invalid += 1;
            return;
        };
        match port {
            Port::Sender(id) => {
                let Some(endpoint) = self.senders.get_mut(&id) else {
                    return;
                };
                match frame {
                    SecureFrame::Hello(hello) => endpoint.on_hello(shared, now, source, hello),
                    SecureFrame::Init(init) => {
                        endpoint.on_init(shared, &mut self.gate, now, source, init);
                    }
                    SecureFrame::Pair(frames) => endpoint.on_pair(shared, now, source, frames),
                    _ => shared.counts.invalid += 1,
                }
            }
            Port::Receiver(id) => {
                let Some(transport) = self.receivers.get_mut(&id) else {
                    return;
                };
                match frame {
                    SecureFrame::Announce(announce) => {
                        transport.on_announce(shared, now, source, announce);
                    }
                    SecureFrame::Resp(resp) => transport.on_resp(shared, now, source, resp),
                    SecureFrame::Cookie(cookie) => {
                        transport.on_cookie(shared, now, cookie);
                    }
                    SecureFrame::Pair(frames) => transport.on_pair(shared, now, source, frames),
                    _ => shared.counts.invalid += 1,
                }
            }
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

    /// Takes the news that the newest authentic feedback of a receiver came from another address than the link has.
    pub fn on_other_address(&mut self, now: u64, sender: u64, link: u64, source: SocketAddr) {
        if let Some(endpoint) = self.senders.get_mut(&sender) {
            endpoint.on_other_address(&mut self.shared, now, link, source);
        }
    }

    /// Takes a request to elicit announcements from a control address that no link leads to.
    pub fn on_setup_request(&mut self, now: u64, receiver: u64, control: SocketAddr) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.on_setup_request(&mut self.shared, now, control);
        }
    }

    /// Takes the news that the first datagram under a key was opened: older epochs of its stream end soon.
    pub fn on_first_open(&mut self, now: u64, receiver: u64, id: KeyId) {
        if let Some(transport) = self.receivers.get_mut(&receiver) {
            transport.on_first_open(now, id);
        }
    }

    /// Takes the news that the image of a stream is gone: another peer may own the stream once all keys are closed.
    pub fn on_image_gone(&mut self, group: u64, session_id: i32, stream_id: i32) {
        self.shared
            .owners
            .image_gone((group, (session_id, stream_id)));
    }

    /// Performs what is due.
    pub fn on_tick(&mut self, now: u64) {
        self.gate.on_tick(&mut self.shared, now);
        for endpoint in self.senders.values_mut() {
            endpoint.on_tick(&mut self.shared, now);
        }
        for transport in self.receivers.values_mut() {
            transport.on_tick(&mut self.shared, now);
        }
    }

    /// Returns the time at which [`Self::on_tick`] has something to do; none if it has nothing at all.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let options = &self.shared.options;
        let senders = self
            .senders
            .values()
            .filter_map(|endpoint| endpoint.next_deadline(options));
        let receivers = self
            .receivers
            .values()
            .filter_map(|transport| transport.next_deadline(options));
        senders.chain(receivers).min()
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
