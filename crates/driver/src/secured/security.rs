//! Conductor's part of transport security: runs the keeper, and passes keys to the layers of the sockets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use taran_core::clock::Now;
use taran_core::counters::Counter;
use taran_core::queue;
use taran_net::AgentRole;
use taran_protocol::counter::SecureCounter;
use taran_secure::derive::channel_tag;
use taran_secure::frame::{Code, PLAIN_MAX};
use taran_secure::identity::Identity;
use taran_secure::keeper::{
    Counts, Entropy, Event, Keeper, Output, Port, ReceiverConfig, Refusal, Rotation, SenderConfig,
};
use taran_secure::pattern::Patterns;
use taran_secure::trust::TrustStore;

use super::back::ReceiverPort;
use super::desk::{Desk, DeskCounters, lock};
use super::forward::SenderPort;
use super::layer::SecuredNetwork;
use super::messages::{Input, KeyUpdate, P, PortInput};
use super::options::SecurityOptions;
use super::policy::{self, ChannelSecurity, Mode};
use super::registry::{Decision, Registry};
use crate::boundary::{EndpointId, TransportId};
use crate::clock_jumps::{ClockJumps, ClockWatch};
use crate::conductor::{Failure, ResolvedChannel};

/// Messages of an agent that wait for the conductor; more are dropped.
const INPUTS: usize = 256;
/// Messages of an agent taken in a duty cycle.
const INPUTS_PER_CYCLE: usize = 64;
/// Messages to a port that wait in its queue; more wait with the conductor.
const UPDATES: usize = 64;
/// Longest time between two ticks of the keeper in nanoseconds.
const TICK_NS: u64 = 1_000_000_000;
/// Reports in an hour that sources without proof can cause.
const REPORTS_PER_HOUR: u32 = 64;
const HOUR_NS: u64 = 3_600_000_000_000;
/// Sources of plain frames that are remembered as reported.
const PLAIN_SOURCES_MAX: usize = 256;

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

struct Active {
    mode: Mode,
    allow_plain: Patterns,
    keeper: Keeper<P>,
    identity: (taran_secure::derive::Fingerprint, u64),
    keys_path: String,
    registry: Arc<Mutex<Registry>>,
    inputs: [queue::Receiver<PortInput>; 2],
    ports: BTreeMap<Port, PortQueue>,
    groups: BTreeMap<i64, ReceiveGroup>,
    wakers: Option<[Waker; 2]>,
    counters: Vec<Counter>,
    counted: Counts,
    reports: VecDeque<String>,
    reports_left: (u64, u32),
    plain_sources: BTreeSet<(Port, SocketAddr)>,
    random: fastrand::Rng,
    commands: queue::Receiver<SecurityCommand>,
    jumps: ClockJumps,
    clock: ClockWatch,
    /// Jumps of the wall clock that were answered with other keys.
    redrawn: u64,
    /// Messages wait for room in the queue of their port.
    is_waiting: bool,
    /// Time of the next tick of the keeper.
    tick_at: u64,
    /// The keeper got an input since the last tick was planned.
    is_dirty: bool,
}

/// Way to the layer of a port.
struct PortQueue {
    queue: queue::Sender<KeyUpdate>,
    waiting: VecDeque<KeyUpdate>,
    channel: String,
}

/// Transports and subscriptions of a receive endpoint.
#[derive(Default)]
struct ReceiveGroup {
    transports: BTreeSet<i64>,
    subscriptions: BTreeSet<(Option<i32>, i32)>,
}

/// Returns a time as the keeper counts it.
fn nanos(now: Now) -> u64 {
    now.nanos.max(0).cast_unsigned()
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
        } = spec;
        let counters: Vec<Counter> = SecureCounter::ALL
            .into_iter()
            .map(&mut counter)
            .collect::<Result<_, _>>()?;
        let of = |which: SecureCounter| counters[which as usize].clone();
        let desk_counters = DeskCounters {
            bytes_sealed: of(SecureCounter::BytesSealed),
            bytes_opened: of(SecureCounter::BytesOpened),
            failed_opens: of(SecureCounter::FailedOpens),
            replayed: of(SecureCounter::Replayed),
            unknown_keys: of(SecureCounter::UnknownKeys),
            plain_refused: of(SecureCounter::PlainRefused),
            out_of_bounds: of(SecureCounter::OutOfBounds),
            refused_sends: of(SecureCounter::RefusedSends),
        };
        let (from_sender, sender_inputs) = queue::spsc(INPUTS);
        let (from_receiver, receiver_inputs) = queue::spsc(INPUTS);
        let desk = |queue| {
            Arc::new(Mutex::new(Desk::new(
                queue,
                desk_counters.clone(),
                jumps.clone(),
            )))
        };
        let registry = Arc::<Mutex<Registry>>::default();
        let network = SecuredNetwork {
            registry: Arc::clone(&registry),
            sender: desk(from_sender),
            receiver: desk(from_receiver),
        };
        let fingerprint = keys.identity.fingerprint();
        let keeper = Keeper::new(keys.identity, keys.trust, options.keeper, keys.entropy);
        let active = Active {
            mode: options.mode,
            allow_plain: options.allow_plain,
            identity: (fingerprint, keeper.incarnation()),
            keeper,
            keys_path,
            registry,
            inputs: [sender_inputs, receiver_inputs],
            ports: BTreeMap::new(),
            groups: BTreeMap::new(),
            wakers: None,
            counters,
            counted: Counts::default(),
            reports: VecDeque::new(),
            reports_left: (0, REPORTS_PER_HOUR),
            plain_sources: BTreeSet::new(),
            random: fastrand::Rng::with_seed(seed),
            commands,
            clock: jumps.watch(),
            redrawn: jumps.count(),
            jumps,
            is_waiting: false,
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

    /// Decides about a channel.
    pub(crate) fn decide(&self, resolved: &ResolvedChannel) -> Result<ChannelSecurity, Failure> {
        let Some(active) = &self.active else {
            return policy::decide(Mode::Off, resolved, |_| false);
        };
        policy::decide(active.mode, resolved, |address| {
            active.allow_plain.matches_channel(address)
        })
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
            let port = SenderPort::new(id.0, updates, active.identity, seed);
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
            let port = ReceiverPort::new(id.0, updates, seed);
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
        let tag = channel_tag::<P>(&policy::label(resolved, bound));
        let is_multicast = resolved.roles.multicast && !resolved.has_destinations();
        let config = SenderConfig {
            address: policy::matched_address(resolved),
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

    /// Removes a send endpoint.
    pub(crate) fn remove_sender(&mut self, id: EndpointId) {
        if let Some(active) = &mut self.active {
            active.keeper.remove_sender(number(id.0));
            active.remove_port(Port::Sender(number(id.0)));
        }
    }

    /// Adds a stream to a send endpoint: its key is on the way to the sender before the publication is.
    pub(crate) fn add_stream(&mut self, now: Now, id: EndpointId, session_id: i32, stream_id: i32) {
        if let Some(active) = &mut self.active {
            active
                .keeper
                .add_stream(nanos(now), number(id.0), session_id, stream_id);
            active.take_outputs(nanos(now));
            active.is_dirty = true;
        }
    }

    /// Removes a stream from a send endpoint.
    pub(crate) fn remove_stream(&mut self, id: EndpointId, session_id: i32, stream_id: i32) {
        if let Some(active) = &mut self.active {
            active
                .keeper
                .remove_stream(number(id.0), session_id, stream_id);
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
            address: policy::matched_address(resolved),
            group: number(endpoint.0),
            tag: channel_tag::<P>(&policy::label(resolved, bound)),
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

    /// Removes a receive transport.
    pub(crate) fn remove_receiver(&mut self, id: TransportId) {
        if let Some(active) = &mut self.active {
            active.keeper.remove_receiver(number(id.0));
            for group in active.groups.values_mut() {
                group.transports.remove(&id.0);
            }
            active.remove_port(Port::Receiver(number(id.0)));
        }
    }

    /// Removes a receive endpoint with its transports.
    pub(crate) fn remove_receive_endpoint(&mut self, id: EndpointId) {
        let group = self
            .active
            .as_mut()
            .and_then(|active| active.groups.remove(&id.0));
        for transport in group.into_iter().flat_map(|group| group.transports) {
            self.remove_receiver(TransportId(transport));
        }
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

    /// Takes the news that an image is gone.
    pub(crate) fn on_image_gone(&mut self, id: EndpointId, session_id: i32, stream_id: i32) {
        if let Some(active) = &mut self.active {
            active
                .keeper
                .on_image_gone(number(id.0), session_id, stream_id);
        }
    }

    /// Returns true if no message of an agent waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.as_ref().is_none_or(|active| {
            active.inputs.iter().all(queue::Receiver::is_empty) && active.commands.is_empty()
        })
    }

    /// Begins a duty cycle, before anything else is done in it.
    pub(crate) fn begin_cycle(&mut self, now: Now) {
        if let Some(active) = &mut self.active {
            active.begin_cycle(now);
        }
    }

    /// Takes the messages of the agents, runs the keeper, passes its keys on. Returns the amount of work done.
    pub(crate) fn poll(&mut self, now: Now) -> usize {
        match &mut self.active {
            Some(active) => active.poll(nanos(now)),
            None => 0,
        }
    }

    /// Returns a text for the error log.
    pub(crate) fn next_report(&mut self) -> Option<String> {
        self.active.as_mut()?.reports.pop_front()
    }
}

/// Returns the names of the peers that may be at the other end.
fn names(security: &ChannelSecurity) -> Option<Vec<String>> {
    let names = security.peers.as_ref()?;
    Some(names.iter().map(ToString::to_string).collect())
}

impl Active {
    fn add_port(&mut self, port: Port, channel: &str) -> queue::Receiver<KeyUpdate> {
        let (sender, receiver) = queue::spsc(UPDATES);
        let queue = PortQueue {
            queue: sender,
            waiting: VecDeque::new(),
            channel: channel.to_owned(),
        };
        self.ports.insert(port, queue);
        receiver
    }

    fn remove_port(&mut self, port: Port) {
        // The last frames of its links leave while its sockets still have an owner, if at all.
        if self.ports.remove(&port).is_some() {
            self.count_transports(-1);
        }
        self.plain_sources.retain(|(of, _)| *of != port);
        self.is_dirty = true;
    }

    fn counter(&self, which: SecureCounter) -> &Counter {
        &self.counters[which as usize]
    }

    fn count_transports(&self, change: i64) {
        self.counter(SecureCounter::Transports).add(change);
    }

    fn poll(&mut self, now: u64) -> usize {
        let mut work = self.take_commands(now);
        for index in 0..self.inputs.len() {
            for _ in 0..INPUTS_PER_CYCLE {
                let Some(PortInput { port, input }) = self.inputs[index].try_recv() else {
                    break;
                };
                self.on_input(now, port, input);
                work += 1;
            }
        }
        if work > 0 || self.is_dirty || now >= self.tick_at {
            self.keeper.on_tick(now);
            work += self.take_outputs(now);
            let deadline = self.keeper.next_deadline().unwrap_or(u64::MAX);
            self.tick_at = deadline.min(now + TICK_NS).max(now + 1);
            self.is_dirty = false;
            self.publish_counts();
        }
        work + self.flush()
    }

    /// Draws everything anew if the wall clock has jumped: what was drawn before seals nothing any more.
    fn begin_cycle(&mut self, now: Now) {
        self.clock.observe(now);
        let jumps = self.jumps.count();
        if jumps == self.redrawn {
            return;
        }
        let now = nanos(now);
        self.take_outputs(now);
        self.redrawn = jumps;
        self.keeper.redraw(now);
        self.announce_identity();
        self.take_outputs(now);
        self.is_dirty = true;
        self.report(
            now,
            "the wall clock was set by more than a second: all keys are drawn anew, in case another copy of this \
             machine goes on with them"
                .to_owned(),
        );
    }

    fn take_commands(&mut self, now: u64) -> usize {
        let mut work = 0;
        while let Some(command) = self.commands.try_recv() {
            work += 1;
            match command {
                SecurityCommand::Keys(identity, trust) => {
                    self.keeper.set_trust(now, trust);
                    self.keeper.set_identity(now, *identity);
                    self.announce_identity();
                }
                SecurityCommand::Rotate => self.keeper.rotate_all(now),
                SecurityCommand::Problem(text) => self.report(now, text),
            }
        }
        work
    }

    /// Passes identity and number of this run to all send endpoints.
    fn announce_identity(&mut self) {
        let identity = (self.keeper.fingerprint(), self.keeper.incarnation());
        if self.identity == identity {
            return;
        }
        self.identity = identity;
        for (port, queue) in &mut self.ports {
            if matches!(port, Port::Sender(_)) {
                let update = KeyUpdate::Identity(identity.0, identity.1);
                queue.waiting.push_back(update);
                self.is_waiting = true;
            }
        }
    }

    fn on_input(&mut self, now: u64, port: Port, input: Input) {
        let keeper = &mut self.keeper;
        let (Port::Sender(id) | Port::Receiver(id)) = port;
        match input {
            Input::Datagram { source, bytes } => keeper.on_datagram(now, port, source, &bytes),
            Input::UnknownKey {
                source,
                id: key,
                length,
            } => keeper.on_unknown_key(now, id, source, key, length),
            Input::FirstOpen(key) => keeper.on_first_open(now, id, key),
            Input::OtherAddress { link, source } => keeper.on_other_address(now, id, link, source),
            Input::SetupRequest { control } => keeper.on_setup_request(now, id, control),
            Input::WantsRotation((session_id, stream_id)) => {
                keeper.rotate(now, id, session_id, stream_id, Rotation::Limit);
            }
            Input::Plain { source, frame_type } => self.on_plain(now, port, source, frame_type),
        }
    }

    fn on_plain(&mut self, now: u64, port: Port, source: SocketAddr, frame_type: u16) {
        if self.plain_sources.len() >= PLAIN_SOURCES_MAX
            || !self.plain_sources.insert((port, source))
        {
            return;
        }
        let Some(channel) = self.ports.get(&port).map(|queue| queue.channel.clone()) else {
            return;
        };
        self.report(
            now,
            format!(
                "{channel} is secured, and {source} sends plain Aeron frames (type {frame_type:#06x}): it is an \
                 official driver, or its taran.secure.mode is off. Nothing of it is taken"
            ),
        );
    }

    /// Adds a line for the error log, if the hour has one left.
    fn report(&mut self, now: u64, text: String) {
        let hour = now / HOUR_NS;
        if self.reports_left.0 != hour {
            self.reports_left = (hour, REPORTS_PER_HOUR);
        }
        if self.reports_left.1 > 0 {
            self.reports_left.1 -= 1;
            self.reports.push_back(text);
        }
    }

    /// Passes the outputs of the keeper on. Returns their number.
    fn take_outputs(&mut self, now: u64) -> usize {
        let mut count = 0;
        while let Some(output) = self.keeper.next_output() {
            count += 1;
            let (port, update) = match output {
                Output::Event(event) => {
                    self.on_event(now, &event);
                    continue;
                }
                Output::Send { port, to, bytes } => (port, KeyUpdate::Send { to, bytes }),
                Output::SealStream {
                    port,
                    session_id,
                    stream_id,
                    epoch,
                    key,
                } => {
                    let stream = (session_id, stream_id);
                    let jumps = self.redrawn;
                    (
                        port,
                        KeyUpdate::SealStream {
                            stream,
                            epoch,
                            jumps,
                            key,
                        },
                    )
                }
                Output::DropStream {
                    port,
                    session_id,
                    stream_id,
                } => (port, KeyUpdate::DropStream((session_id, stream_id))),
                Output::SealBack {
                    port,
                    link,
                    to,
                    key,
                } => {
                    let jumps = self.redrawn;
                    (
                        port,
                        KeyUpdate::SealBack {
                            link,
                            to,
                            jumps,
                            key,
                        },
                    )
                }
                Output::OpenStream {
                    port,
                    link,
                    session_id,
                    stream_id,
                    key,
                    ..
                } => {
                    let stream = (session_id, stream_id);
                    (port, KeyUpdate::OpenStream { link, stream, key })
                }
                Output::OpenBack {
                    port,
                    link,
                    receiver_id,
                    address,
                    key,
                } => (
                    port,
                    KeyUpdate::OpenBack {
                        link,
                        receiver_id,
                        address,
                        key,
                    },
                ),
                Output::Grant {
                    port,
                    link,
                    session_id,
                    stream_id,
                } => {
                    let stream = (session_id, stream_id);
                    (port, KeyUpdate::Grant { link, stream })
                }
                Output::Revoke {
                    port,
                    link,
                    session_id,
                    stream_id,
                } => {
                    let stream = (session_id, stream_id);
                    (port, KeyUpdate::Revoke { link, stream })
                }
                Output::StreamLink {
                    port,
                    link,
                    session_id,
                    stream_id,
                } => {
                    let stream = (session_id, stream_id);
                    (port, KeyUpdate::StreamLink { link, stream })
                }
                Output::Announce {
                    port,
                    link,
                    session_id,
                    stream_id,
                } => {
                    let stream = (session_id, stream_id);
                    (port, KeyUpdate::Announce { link, stream })
                }
                Output::Moved {
                    port,
                    link,
                    address,
                } => (port, KeyUpdate::Moved { link, address }),
                Output::Unlink { port, link } => (port, KeyUpdate::Unlink(link)),
                Output::Close { port, id } => (port, KeyUpdate::Close(id)),
            };
            if let Some(queue) = self.ports.get_mut(&port) {
                queue.waiting.push_back(update);
                self.is_waiting = true;
            }
        }
        if count > 0 {
            self.flush();
        }
        count
    }

    /// Moves messages to the queues of their ports, and wakes the agents. Returns the number of messages.
    fn flush(&mut self) -> usize {
        if !self.is_waiting {
            return 0;
        }
        self.is_waiting = false;
        let mut moved = [0, 0];
        for (port, queue) in &mut self.ports {
            while let Some(update) = queue.waiting.pop_front() {
                if let Err(update) = queue.queue.try_send(update) {
                    queue.waiting.push_front(update);
                    self.is_waiting = true;
                    break;
                }
                moved[usize::from(matches!(port, Port::Receiver(_)))] += 1;
            }
        }
        if let Some(wakers) = &self.wakers {
            for (waker, moved) in wakers.iter().zip(moved) {
                if moved > 0 {
                    waker.wake_by_ref();
                }
            }
        }
        moved.iter().sum()
    }

    fn channel(&self, port: Port) -> &str {
        self.ports.get(&port).map_or("", |queue| &queue.channel)
    }

    fn on_event(&mut self, now: u64, event: &Event) {
        let file = &self.keys_path;
        let text = match event {
            Event::PeerUnknown {
                fingerprint,
                address,
                ..
            } => format!(
                "no key with fingerprint {fingerprint} (from {address}) in {file}: add it with 'taran keys trust' after \
                 comparing fingerprints"
            ),
            Event::PeerRefused { port, peer, why } => {
                let channel = self.channel(*port);
                match why {
                    Refusal::NotAllowed => format!(
                        "{peer} may not have what it asks of {channel}: its publish= or subscribe= in {file}, or \
                         taran.peers of the channel, does not allow it"
                    ),
                    Refusal::OtherChannel => format!(
                        "{peer} asked {channel} with another channel label: are ports translated on the way? Set the \
                         same taran.label at both ends"
                    ),
                    Refusal::Suite => format!(
                        "{peer} and this driver have no common suite for {channel}: see taran.secure.suites at both ends"
                    ),
                    Refusal::ReceiverId => format!(
                        "{peer} claims the receiver id of another peer on {channel}, and is refused"
                    ),
                    Refusal::Owned => format!(
                        "{peer} grants a stream of {channel} that belongs to another peer, and is refused"
                    ),
                    Refusal::Limit => format!("{peer} is refused on {channel}: a limit is reached"),
                }
            }
            // A stream that is not known has ended meanwhile.
            Event::RequestRefused {
                port,
                peer,
                text,
                code,
            } if *code != Code::UNKNOWN_STREAM => {
                format!("{peer} refuses a key for {}: {text}", self.channel(*port))
            }
            Event::RequestRefused { .. }
            | Event::LinkUp { .. }
            | Event::LinkDown { .. }
            | Event::KeyRotated { .. } => return,
        };
        self.report(now, text);
    }

    /// Adds what the keeper has counted to the counters.
    fn publish_counts(&mut self) {
        let counts = *self.keeper.counts();
        let before = std::mem::replace(&mut self.counted, counts);
        for (which, now, then) in [
            (
                SecureCounter::FailedOpens,
                counts.failed_opens + counts.invalid,
                before.failed_opens + before.invalid,
            ),
            (
                SecureCounter::OutOfBounds,
                counts.out_of_bounds,
                before.out_of_bounds,
            ),
            (
                SecureCounter::Handshakes,
                counts.handshakes,
                before.handshakes,
            ),
            (
                SecureCounter::HandshakesRefused,
                counts.refused,
                before.refused,
            ),
            (SecureCounter::CookiesSent, counts.cookies, before.cookies),
            (SecureCounter::Rotations, counts.rotations, before.rotations),
        ] {
            let change = now.wrapping_sub(then);
            if change > 0 {
                self.counter(which).add(change.cast_signed());
            }
        }
        let links = i64::try_from(self.keeper.link_count()).unwrap_or(i64::MAX);
        self.counter(SecureCounter::Links).set(links);
    }
}
