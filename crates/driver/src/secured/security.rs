// SPDX-License-Identifier: Apache-2.0
//! Conductor's part of transport security: runs the keeper, and passes keys to the layers of the sockets.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::queue;
use taran_net::AgentRole;
use taran_protocol::counter::SecureCounter;
use taran_secure::derive::channel_tag;
use taran_secure::frame::PLAIN_MAX;
use taran_secure::identity::Identity;
use taran_secure::keeper::{Audience, Counts, Entropy, Keeper, Port, ReceiverConfig, SenderConfig};
use taran_secure::trust::TrustStore;

use super::active::{Active, ToKeeper, nanos};
use super::back::ReceiverPort;
use super::forward::SenderPort;
use super::jobs::JobQueues;
use super::keeper_sender::{ConductorWaker, KeeperSender, PathCounters, lock};
use super::layer::SecuredNetwork;
use super::messages::{P, Stream};
use super::neighbors::ResolverPort;
use super::options::SecurityOptions;
use super::policy::{self, ChannelSecurity, End, Mode, StreamAudience};
use super::registry::{Decision, Registry};
use super::reports::Reports;
use crate::boundary::{EndpointId, TransportId};
use crate::clock_jumps::ClockJumps;
use crate::conductor::{Counters, Failure, ResolvedChannel};
use crate::event_log::EventLog;

/// Messages of an agent that wait for the conductor; more are dropped.
const INPUTS: usize = 256;
/// Label of name resolution in the handshake.
const RESOLVER_LABEL: &str = "resolver";

/// Keys of a driver: its identity, and what it trusts. The files of `taran.secure.keys.dir` unless a program sets them.
#[non_exhaustive]
pub struct DriverKeys {
    /// Identity.
    pub identity: Identity,
    /// Trusted keys.
    pub trust: TrustStore,
    /// Source of random bytes.
    pub entropy: Box<dyn Entropy>,
}

impl DriverKeys {
    /// Keys that do not come from files.
    pub fn new(identity: Identity, trust: TrustStore, entropy: Box<dyn Entropy>) -> Self {
        Self {
            identity,
            trust,
            entropy,
        }
    }
}

impl fmt::Debug for DriverKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DriverKeys")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// Everything that [`Security`] is built from.
pub(crate) struct SecuritySpec {
    pub(crate) options: SecurityOptions,
    pub(crate) keys: DriverKeys,
    /// Origin of the keys, for texts.
    pub(crate) keys_path: String,
    pub(crate) seed: u64,
    /// Commands of the program.
    pub(crate) commands: queue::Receiver<SecurityCommand>,
    pub(crate) jumps: ClockJumps,
    pub(crate) events: EventLog,
    /// Thread for the computations of handshakes; without it the conductor runs them.
    pub(crate) jobs: Option<JobQueues>,
}

/// Command of the program that embeds a driver, or of the watch of its key files.
#[derive(Debug)]
pub(crate) enum SecurityCommand {
    /// Put identity and trusted keys in force.
    Keys(Box<Identity>, TrustStore),
    /// Rotate all keys.
    Rotate,
    /// Report a problem with the key files; what is in force stays.
    Problem(String),
}

/// Decides what is secured, and runs the keeper.
///
/// Contract: `decide` about a channel; `prepare_sender` or `prepare_receiver` before its sockets are opened, then `opened`
/// whether or not that succeeded, then `add_sender` or `add_receiver`. `poll` in each duty cycle; `next_report` after it
/// until there is none.
#[derive(Default)]
pub(crate) struct Security {
    active: Option<Box<Active>>,
}

impl fmt::Debug for Security {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keeper = self.active.as_ref().map(|active| &active.keeper);
        formatter
            .debug_struct("Security")
            .field("keeper", &keeper)
            .finish_non_exhaustive()
    }
}

fn number(id: i64) -> u64 {
    id.cast_unsigned()
}

impl Security {
    /// Returns the security of a driver, and the layer of its sockets. `counter` allocates a counter.
    pub(crate) fn new(
        spec: SecuritySpec,
        mut counter: impl FnMut(SecureCounter) -> Result<Counter, Failure>,
    ) -> Result<(Self, SecuredNetwork), Failure> {
        let SecuritySpec {
            options,
            keys,
            keys_path,
            seed,
            commands,
            jumps,
            events,
            jobs,
        } = spec;
        let counters: Vec<Counter> = SecureCounter::ALL
            .into_iter()
            .map(&mut counter)
            .collect::<Result<_, _>>()?;
        let of = |which: SecureCounter| counters[which as usize].clone();
        let path_counters = PathCounters {
            bytes_sealed: of(SecureCounter::BytesSealed),
            bytes_opened: of(SecureCounter::BytesOpened),
            failed_opens: of(SecureCounter::FailedOpens),
            replayed: of(SecureCounter::Replayed),
            unknown_keys: of(SecureCounter::UnknownKeys),
            plain_refused: of(SecureCounter::PlainRefused),
            out_of_bounds: of(SecureCounter::OutOfBounds),
            refused_sends: of(SecureCounter::RefusedSends),
        };
        let tells_failure = Arc::new(AtomicBool::new(true));
        let waker = jobs.as_ref().map(JobQueues::conductor_waker);
        let waker = ConductorWaker::new(waker.unwrap_or_default());
        let mut inputs = Vec::new();
        let mut to_keeper = |waker: Option<&ConductorWaker>| {
            let queues = [(); 2].map(|()| {
                let (sender, receiver) = queue::spsc(INPUTS);
                inputs.push(receiver);
                sender
            });
            let (counters, jumps) = (path_counters.clone(), jumps.clone());
            let tells_failure = Arc::clone(&tells_failure);
            KeeperSender::new(queues, waker.cloned(), counters, jumps, tells_failure)
        };
        let to_keeper = ToKeeper {
            sender: to_keeper(Some(&waker)),
            receiver: to_keeper(Some(&waker)),
            conductor: to_keeper(None),
        };
        let registry = Arc::<Mutex<Registry>>::default();
        let network = SecuredNetwork {
            registry: Arc::clone(&registry),
        };
        let fingerprint = keys.identity.fingerprint();
        let mut keeper = Keeper::new(keys.identity, keys.trust, options.keeper, keys.entropy);
        if jobs.is_some() {
            keeper.defer_jobs();
        }
        let active = Active {
            mode: options.mode,
            allow_plain: options.allow_plain,
            identity: (fingerprint, keeper.incarnation()),
            keeper,
            registry,
            to_keeper,
            inputs,
            ports: BTreeMap::new(),
            groups: BTreeMap::new(),
            responses: BTreeMap::new(),
            wakers: None,
            waker,
            counters,
            counted: Counts::default(),
            reports: Reports::new(keys_path, events),
            tells_failure,
            jobs,
            freed: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
            commands,
            clock: jumps.watch(),
            redrawn: jumps.count(),
            jumps,
            is_waiting: false,
            has_redrawn: false,
            tick_at: 0,
            is_dirty: true,
        };
        let active = Some(Box::new(active));
        Ok((Self { active }, network))
    }

    /// Sets the wakers of sender and receiver.
    pub(crate) fn set_wakers(&mut self, wakers: [Waker; 2]) {
        if let Some(active) = &mut self.active {
            active.wakers = Some(wakers);
        }
    }

    /// Called on the thread of the conductor before its first duty cycle: from then on agents and the thread of handshakes end
    /// its wait when they have something for it.
    pub(crate) fn on_start(&self) {
        if let Some(active) = &self.active {
            active.waker.register();
        }
    }

    /// Decides about a channel.
    pub(crate) fn decide(
        &self,
        resolved: &ResolvedChannel,
        end: End,
    ) -> Result<ChannelSecurity, Failure> {
        let Some(active) = &self.active else {
            return policy::decide(Mode::Off, resolved, end, |_| false);
        };
        policy::decide(active.mode, resolved, end, |address| {
            active.allow_plain.matches_channel(address)
        })
    }

    /// Checks that a plain channel may lead to an address: that of a destination, or the one that a name has now.
    pub(crate) fn check_plain(&self, address: SocketAddr, channel: &str) -> Result<(), Failure> {
        match &self.active {
            Some(active)
                if active.mode == Mode::All && !active.allow_plain.matches_channel(address) =>
            {
                Err(policy::not_plain(address, channel))
            }
            _ => Ok(()),
        }
    }

    /// Checks the address that a name has got; the text says that the one before remains in use.
    pub(crate) fn check_moved(
        &self,
        is_secured: bool,
        moved: Option<SocketAddr>,
        channel: &str,
    ) -> Result<Option<SocketAddr>, String> {
        match moved.filter(|_| !is_secured) {
            Some(address) => match self.check_plain(address, channel) {
                Ok(()) => Ok(moved),
                Err(failure) => Err(failure.text),
            },
            None => Ok(moved),
        }
    }

    /// Returns the longest plain datagram of a channel, at most `max`.
    pub(crate) fn max_datagram(security: &ChannelSecurity, max: usize) -> usize {
        if security.is_secured {
            max.min(PLAIN_MAX)
        } else {
            max
        }
    }

    /// Prepares the sockets of a send endpoint.
    pub(crate) fn prepare_sender(
        &mut self,
        id: EndpointId,
        security: &ChannelSecurity,
        channel: &str,
    ) {
        let Some(active) = &mut self.active else {
            return;
        };
        let decision = if security.is_secured {
            let updates = active.add_port(Port::Sender(number(id.0)), channel);
            let seed = active.random.u64(..);
            let to_keeper = active.to_keeper.sender.clone();
            let port = SenderPort::new(id.0, updates, to_keeper, active.identity, seed);
            Decision::Sender(Arc::new(Mutex::new(port)))
        } else {
            Decision::Plain
        };
        lock(&active.registry).decide(AgentRole::Sender, id.0, decision);
    }

    /// Prepares the socket of a receive transport.
    pub(crate) fn prepare_receiver(
        &mut self,
        id: TransportId,
        security: &ChannelSecurity,
        channel: &str,
    ) {
        let Some(active) = &mut self.active else {
            return;
        };
        let decision = if security.is_secured {
            let updates = active.add_port(Port::Receiver(number(id.0)), channel);
            let seed = active.random.u64(..);
            let to_keeper = active.to_keeper.receiver.clone();
            let port = ReceiverPort::new(id.0, updates, to_keeper, seed);
            Decision::Receiver(Arc::new(Mutex::new(port)))
        } else {
            Decision::Plain
        };
        lock(&active.registry).decide(AgentRole::Receiver, id.0, decision);
    }

    /// Forgets the preparation of sockets. If they could not be opened, their port goes, too.
    pub(crate) fn opened(&mut self, agent: AgentRole, id: i64, is_open: bool) {
        let Some(active) = &mut self.active else {
            return;
        };
        lock(&active.registry).forget(agent, id);
        if !is_open {
            let port = match agent {
                AgentRole::Sender => Port::Sender(number(id)),
                _ => Port::Receiver(number(id)),
            };
            active.ports.remove(&port);
        }
    }

    /// Adds a send endpoint whose sockets are open.
    pub(crate) fn add_sender(
        &mut self,
        id: EndpointId,
        security: &ChannelSecurity,
        resolved: &ResolvedChannel,
        bound: SocketAddr,
    ) {
        let Some(active) = self.active.as_mut().filter(|_| security.is_secured) else {
            return;
        };
        let tag = channel_tag::<P>(&policy::label(resolved, End::Sender, bound));
        let is_multicast = resolved.roles.multicast && !resolved.has_destinations();
        let config = SenderConfig {
            address: policy::matched_address(resolved, End::Sender),
            tags: vec![tag],
            group: is_multicast.then_some(resolved.roles.remote_data),
            peers: names(security),
        };
        active.keeper.add_sender(number(id.0), config);
        active.count_transports(1);
        active.is_dirty = true;
    }

    /// Takes the labels of the destinations of a send endpoint with manual destinations.
    pub(crate) fn set_destinations(
        &mut self,
        id: EndpointId,
        resolved: &ResolvedChannel,
        destinations: impl Iterator<Item = SocketAddr>,
    ) {
        let Some(active) = &mut self.active else {
            return;
        };
        if resolved.channel.label.is_some() {
            return;
        }
        let tags = destinations.map(|address| {
            let label = if address.ip().is_multicast() {
                address.to_string()
            } else {
                address.port().to_string()
            };
            channel_tag::<P>(&label)
        });
        active.keeper.set_tags(number(id.0), tags.collect());
    }

    /// Removes a send endpoint whose sockets are about to be closed. Returns true if the last frames of its links are left
    /// for them.
    pub(crate) fn remove_sender(&mut self, now: Now, id: EndpointId) -> bool {
        let Some(active) = &mut self.active else {
            return false;
        };
        active.keeper.remove_sender(number(id.0));
        active.take_outputs(nanos(now));
        active.remove_port(Port::Sender(number(id.0)))
    }

    /// Prepares the socket of name resolution at an address, which is opened next with no tag.
    pub(crate) fn prepare_resolver(&mut self, address: SocketAddr, counters: &mut Counters) {
        let Some(active) = &mut self.active else {
            return;
        };
        let updates = active.add_port(Port::Resolver, RESOLVER_LABEL);
        let to_keeper = active.to_keeper.conductor.clone();
        let port = ResolverPort::new(updates, to_keeper, active.random.u64(..));
        let decision = Decision::Resolver(Arc::new(Mutex::new(port)));
        lock(&active.registry).decide(AgentRole::Conductor, 0, decision);
        active.keeper.set_resolver(ReceiverConfig {
            address,
            group: 0,
            tag: channel_tag::<P>(RESOLVER_LABEL),
            receiver_id: 0,
            control: None,
            is_group: false,
            peers: None,
        });
        active.count_transports(1);
        active.publish_links(counters);
    }

    /// Returns the peer whose requests a response publication answers, by the stream of the requests; none if their channel
    /// is not secured.
    pub(crate) fn requester(
        &self,
        id: EndpointId,
        session_id: i32,
        stream_id: i32,
    ) -> Option<String> {
        let keeper = &self.active.as_ref()?.keeper;
        let owner = keeper.owner_of(number(id.0), session_id, stream_id);
        owner.map(str::to_owned)
    }

    /// Returns the peer that named the session of a response to the requests of a publication.
    pub(crate) fn responder(
        &self,
        id: EndpointId,
        requests: (i32, i32),
        session_id: i32,
    ) -> Option<String> {
        let named = self
            .active
            .as_ref()?
            .responses
            .get(&(number(id.0), requests));
        let named = named.filter(|(session, _)| *session == session_id);
        named.map(|(_, peer)| peer.clone())
    }

    /// Subscribes to a response, which its responder alone may send. Returns false if another peer sends the stream.
    pub(crate) fn add_response(
        &mut self,
        id: EndpointId,
        response: (i32, i32),
        responder: &str,
    ) -> bool {
        let Some(active) = &mut self.active else {
            return true;
        };
        let group = active.groups.entry(id.0).or_default();
        let keeper = &mut active.keeper;
        let mut transports = group.transports.iter();
        transports.all(|transport| keeper.add_response(number(*transport), response, responder))
    }

    /// Adds a stream to a send endpoint: its key is on the way to the sender before the publication is. A response is for
    /// the peer that requested it.
    pub(crate) fn add_stream(
        &mut self,
        now: Now,
        id: EndpointId,
        (session_id, stream_id): Stream,
        audience: StreamAudience,
    ) {
        if let Some(active) = &mut self.active {
            let audience = match audience {
                StreamAudience::All => Audience::All,
                StreamAudience::Peer(peer) => Audience::Peer(peer),
                StreamAudience::Empty => Audience::Empty,
            };
            let stream = (session_id, stream_id);
            let now = nanos(now);
            active
                .keeper
                .add_stream_for(now, number(id.0), stream, audience);
            active.take_outputs(now);
            active.is_dirty = true;
        }
    }

    /// Removes a stream from a send endpoint.
    pub(crate) fn remove_stream(&mut self, id: EndpointId, session_id: i32, stream_id: i32) {
        if let Some(active) = &mut self.active {
            active
                .keeper
                .remove_stream(number(id.0), session_id, stream_id);
            let stream = (session_id, stream_id);
            active.responses.remove(&(number(id.0), stream));
            active.is_dirty = true;
        }
    }

    /// Adds a receive transport whose socket is open.
    pub(crate) fn add_receiver(
        &mut self,
        endpoint: EndpointId,
        id: TransportId,
        security: &ChannelSecurity,
        resolved: &ResolvedChannel,
        (bound, receiver_id): (SocketAddr, i64),
    ) {
        let Some(active) = self.active.as_mut().filter(|_| security.is_secured) else {
            return;
        };
        let group = resolved.control_group();
        let config = ReceiverConfig {
            address: policy::matched_address(resolved, End::Receiver),
            group: number(endpoint.0),
            tag: channel_tag::<P>(&policy::label(resolved, End::Receiver, bound)),
            receiver_id,
            control: group.or(resolved.explicit_control()),
            is_group: group.is_some(),
            peers: names(security),
        };
        active.keeper.add_receiver(number(id.0), config);
        let of = active.groups.entry(endpoint.0).or_default();
        of.transports.insert(id.0);
        for (session_id, stream_id) in &of.subscriptions {
            active
                .keeper
                .add_subscription(number(id.0), *session_id, *stream_id);
        }
        active.count_transports(1);
        active.is_dirty = true;
    }

    /// Removes a receive transport whose socket is about to be closed, as [`Self::remove_sender`] does.
    pub(crate) fn remove_receiver(&mut self, now: Now, id: TransportId) -> bool {
        let Some(active) = &mut self.active else {
            return false;
        };
        active.keeper.remove_receiver(number(id.0));
        active.take_outputs(nanos(now));
        for group in active.groups.values_mut() {
            group.transports.remove(&id.0);
        }
        active.remove_port(Port::Receiver(number(id.0)))
    }

    /// Removes a receive endpoint with its transports, as [`Self::remove_sender`] does.
    pub(crate) fn remove_receive_endpoint(&mut self, now: Now, id: EndpointId) -> bool {
        let group = self
            .active
            .as_mut()
            .and_then(|active| active.groups.remove(&id.0));
        let mut is_secured = false;
        for transport in group.into_iter().flat_map(|group| group.transports) {
            is_secured |= self.remove_receiver(now, TransportId(transport));
        }
        if let Some(active) = &mut self.active {
            active.keeper.forget_group(number(id.0));
        }
        is_secured
    }

    /// Adds a subscription to all transports of a receive endpoint.
    pub(crate) fn add_subscription(
        &mut self,
        id: EndpointId,
        session_id: Option<i32>,
        stream_id: i32,
    ) {
        if let Some(active) = &mut self.active {
            let group = active.groups.entry(id.0).or_default();
            group.subscriptions.insert((session_id, stream_id));
            for transport in &group.transports {
                active
                    .keeper
                    .add_subscription(number(*transport), session_id, stream_id);
            }
        }
    }

    /// Removes a subscription from all transports of a receive endpoint.
    pub(crate) fn remove_subscription(
        &mut self,
        id: EndpointId,
        session_id: Option<i32>,
        stream_id: i32,
    ) {
        if let Some(active) = &mut self.active
            && let Some(group) = active.groups.get_mut(&id.0)
        {
            group.subscriptions.remove(&(session_id, stream_id));
            for transport in &group.transports {
                active
                    .keeper
                    .remove_subscription(number(*transport), session_id, stream_id);
            }
            active.is_dirty = true;
        }
    }

    /// Takes the news that an image is about to be made. Returns false if no peer may send its stream any more.
    pub(crate) fn on_image_begun(
        &mut self,
        id: EndpointId,
        session_id: i32,
        stream_id: i32,
    ) -> bool {
        self.active.as_mut().is_none_or(|active| {
            active
                .keeper
                .on_image_begun(number(id.0), session_id, stream_id)
        })
    }

    /// Takes the news that an image is gone.
    pub(crate) fn on_image_gone(&mut self, id: EndpointId, session_id: i32, stream_id: i32) {
        if let Some(active) = &mut self.active {
            active
                .keeper
                .on_image_gone(number(id.0), session_id, stream_id);
            active.is_dirty = true;
        }
    }

    /// Returns true if no message of an agent waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.as_ref().is_none_or(|active| active.is_idle())
    }

    /// Begins a duty cycle, before anything else is done in it.
    pub(crate) fn begin_cycle(&mut self, now: Now) {
        if let Some(active) = &mut self.active {
            active.begin_cycle(now);
        }
    }

    /// Takes the messages of the agents, runs the keeper, passes its keys on. Returns the amount of work done.
    pub(crate) fn poll(&mut self, now: Now, counters: &mut Counters) -> usize {
        match &mut self.active {
            Some(active) => active.poll(nanos(now), counters),
            None => 0,
        }
    }

    /// Returns the next time at which [`poll`](Self::poll) has an effect, if no message comes before.
    pub(crate) fn next_deadline_ns(&self) -> i64 {
        let active = self.active.as_ref();
        active.map_or(i64::MAX, |active| active.next_deadline_ns())
    }

    /// Returns a text for the error log.
    pub(crate) fn next_report(&mut self) -> Option<String> {
        self.active.as_mut()?.reports.next()
    }
}

/// Returns the names of the peers that may be at the other end.
fn names(security: &ChannelSecurity) -> Option<Vec<String>> {
    let names = security.peers.as_ref()?;
    Some(names.iter().map(ToString::to_string).collect())
}
