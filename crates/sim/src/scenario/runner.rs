// SPDX-License-Identifier: Apache-2.0
//! Runs a scenario: applies its operations at their times and maps labels to objects of the world.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taran_driver::DriverError;
use taran_protocol::counter::SystemCounter;

use super::commands::EXPECTED_ERRORS;
use super::losses::LossTracker;
use super::{
    Coverage, HostConfig, Op, Publish, RequestResponse, Scenario, Subscribe, Suite, TimedOp,
};
use crate::disk::SimDiskOptions;
use crate::network::{HostId, LinkFaults};
use crate::traffic::StreamKey;
use crate::{ClientId, ClientState, HostIndex, HostSpec, PublisherId, SubscriberId, World};

/// Interval at which pending starts and requests, command responses and losses are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Time until the resources of a killed client are freed: its liveness timeout (10 s) and timer intervals.
const CLEANUP_TIME: Duration = Duration::from_secs(12);

/// The world of a scenario and the objects that its labels stand for.
pub(super) struct Runner<'s> {
    pub(super) suite: &'s Suite,
    pub(super) world: World,
    pub(super) clients: BTreeMap<u32, ClientId>,
    pub(super) publishers: BTreeMap<u32, KnownPublisher>,
    pub(super) subscribers: BTreeMap<u32, KnownSubscriber>,
    /// Hosts whose driver is to be started as soon as possible.
    pub(super) pending_starts: BTreeSet<usize>,
    pub(super) corrupts: bool,
    /// Revoked streams. They are over for all their publishers.
    pub(super) revoked: BTreeSet<StreamKey>,
    pub(super) coverage: Coverage,
    /// Times since when hosts and clients are undisturbed; absent if they were never disturbed.
    pub(super) hosts_stable_since: BTreeMap<usize, Duration>,
    pub(super) clients_stable_since: BTreeMap<ClientId, Duration>,
    /// The same for links between hosts.
    pub(super) links_stable_since: BTreeMap<(usize, usize), Duration>,
    /// State of the checks for lost clients, connections and images.
    pub(super) loss_tracker: LossTracker,
    /// Labels of subscribers to responses, by label of the requester.
    pub(super) response_subscribers: BTreeMap<u32, u32>,
    /// Unfinished claims by host and driver generation.
    held_claims: BTreeMap<(HostIndex, u64), i64>,
    /// Properties of the hosts.
    hosts: Vec<HostConfig>,
    /// Requesters that wait for their subscription to responses.
    pending_requests: Vec<RequestResponse>,
}

/// A publisher and its channel.
pub(super) struct KnownPublisher {
    pub(super) id: PublisherId,
    pub(super) client: ClientId,
    pub(super) channel: String,
    pub(super) stream: i32,
    pub(super) destinations: Vec<String>,
    /// Time of the request.
    pub(super) requested_at: Duration,
    /// Time of the last change of destinations.
    pub(super) routes_stable_since: Duration,
    /// The request stream that it responds to.
    pub(super) responds_to: Option<RequestSource>,
}

/// A request stream as seen by a subscriber to requests.
#[derive(Clone, Copy)]
pub(super) struct RequestSource {
    pub(super) subscriber: SubscriberId,
    pub(super) image: i64,
    pub(super) requests: StreamKey,
}

/// A subscriber and its channel.
pub(super) struct KnownSubscriber {
    pub(super) id: SubscriberId,
    pub(super) client: ClientId,
    pub(super) channel: String,
    pub(super) stream: i32,
    /// Time of the request.
    pub(super) requested_at: Duration,
    /// Time of the last change of sources.
    pub(super) routes_stable_since: Duration,
    /// Time since when it polls quickly.
    pub(super) fast_since: Duration,
    /// Generation of the driver that it was requested from.
    pub(super) driver_generation: u64,
}

impl<'s> Runner<'s> {
    /// Creates the world with the hosts of a scenario and starts their drivers.
    pub(super) fn new(suite: &'s Suite, scenario: &Scenario) -> Self {
        let mut world = World::new(scenario.seed);
        world.set_time_steps(
            Duration::from_millis(scenario.idle_ms),
            scenario.fine_per_mille,
        );
        if scenario.corrupts {
            world.disable_content_checks();
        }
        for host in &scenario.hosts {
            let mut spec =
                HostSpec::new().clocks_ahead(Duration::from_millis(host.clock_offset_ms));
            if host.ipv6 {
                spec = spec.ipv6();
            }
            if host.large_sectors {
                spec = spec.disk(SimDiskOptions {
                    sector_bytes: 4_096,
                    ..SimDiskOptions::default()
                });
            }
            let options = host.options.iter();
            let spec = options.fold(spec, |spec, (name, value)| spec.option(name, value));
            if host.no_driver {
                world.add_host_without_driver(spec);
            } else {
                world.add_host(spec);
            }
        }
        suite.set_up_world(&mut world);
        Self {
            suite,
            world,
            clients: BTreeMap::new(),
            publishers: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            pending_starts: BTreeSet::new(),
            corrupts: scenario.corrupts,
            revoked: BTreeSet::new(),
            coverage: Coverage::default(),
            hosts_stable_since: BTreeMap::new(),
            clients_stable_since: BTreeMap::new(),
            links_stable_since: BTreeMap::new(),
            loss_tracker: LossTracker::default(),
            response_subscribers: BTreeMap::new(),
            held_claims: BTreeMap::new(),
            hosts: scenario.hosts.clone(),
            pending_requests: Vec::new(),
        }
    }

    /// Applies operations in order and calls `observer` after each.
    pub(super) fn apply_all(&mut self, ops: &[TimedOp], observer: &mut dyn FnMut(&World)) {
        for TimedOp { at_ms, op } in ops {
            self.run_until(Duration::from_millis(*at_ms));
            let name = op.name();
            let done = self.apply(op).is_some();
            self.coverage.count(if done {
                format!("operation: {name}")
            } else {
                format!("operation without subject: {name}")
            });
            observer(&self.world);
        }
    }

    /// Lets time pass until `time`, with periodic checks.
    pub(super) fn run_until(&mut self, time: Duration) {
        if !self.suite.has_streams() {
            self.world
                .run_for(time.saturating_sub(self.world.elapsed()));
            return;
        }
        while self.world.elapsed() < time {
            let left = time - self.world.elapsed();
            self.world.run_for(left.min(CHECK_INTERVAL));
            self.check_periodically();
        }
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, time: Duration) {
        self.run_until(self.world.elapsed() + time);
    }

    fn check_periodically(&mut self) {
        for host in std::mem::take(&mut self.pending_starts) {
            self.start_driver(host);
        }
        for start_requests in std::mem::take(&mut self.pending_requests) {
            self.start_requests(&start_requests);
        }
        if let Err(violation) = self
            .check_command_outcomes()
            .and_then(|()| self.check_losses())
        {
            panic!("{violation}\n{}", self.world.describe());
        }
    }

    /// Starts a driver, or remembers to start it later.
    fn start_driver(&mut self, host: usize) {
        self.disturb_host(host, self.world.elapsed());
        match self.world.try_start_driver(HostIndex::at(host)) {
            Ok(()) => {
                self.coverage.count("drivers restarted");
                self.disturb_clients_of(host);
            }
            Err(DriverError::ActiveDriver { .. }) => {
                self.pending_starts.insert(host);
            }
            Err(error) => panic!("the driver of host {host} does not start: {error}"),
        }
    }

    /// Marks the clients of a host as disturbed for good: a client connected to the previous driver gets no responses,
    /// and detects that when the driver heartbeat times out.
    fn disturb_clients_of(&mut self, host: usize) {
        let clients: Vec<ClientId> = self.clients.values().copied().collect();
        for client in clients {
            if self.world.host_of(client).number() == host {
                self.disturb_client(client, Duration::MAX);
            }
        }
    }

    /// Applies one operation. Returns `None` if its subject does not exist.
    #[expect(clippy::too_many_lines, reason = "a few lines for each kind of event")]
    fn apply(&mut self, op: &Op) -> Option<()> {
        match op {
            Op::Connect { client, host } => {
                let host = self.powered_host(*host)?;
                let id = self.world.begin_connect(host);
                self.track_client(id);
                self.clients.insert(*client, id);
            }
            Op::CloseClient { client } => {
                let client = self.live_client(*client)?;
                self.world.close_client(client);
            }
            Op::KillClient { client } => {
                let client = *self.clients.get(client)?;
                let state = self.world.client_state(client);
                matches!(
                    state,
                    ClientState::Connected(_) | ClientState::Connecting(_)
                )
                .then_some(())?;
                self.world.kill_client(client);
                self.disturb_client(client, self.world.elapsed() + CLEANUP_TIME);
            }
            Op::StallClient { client, ms } => {
                let client = self.live_client(*client)?;
                let pause = Duration::from_millis(*ms);
                self.world.stall_client(client, pause);
                self.disturb_client(client, self.world.elapsed() + pause);
            }
            Op::StopDriver { host } => {
                let host = self.host_with_driver(*host)?;
                self.record_driver_end(host);
                self.world.stop_driver(host);
            }
            Op::KillDriver { host } => {
                let host = self.host_with_driver(*host)?;
                self.record_driver_end(host);
                self.world.kill_driver(host);
            }
            Op::StartDriver { host } => {
                let index = self.powered_host(*host)?;
                (!self.world.has_driver(index)).then_some(())?;
                self.start_driver(*host);
            }
            Op::StallDriver { host, ms } => {
                let (index, pause) = (self.host_with_driver(*host)?, Duration::from_millis(*ms));
                self.world.stall_driver(index, pause);
                self.disturb_host(*host, self.world.elapsed() + pause);
            }
            Op::StallHost { host, ms } => {
                let (index, pause) = (self.host(*host)?, Duration::from_millis(*ms));
                self.world.stall_host(index, pause);
                self.disturb_host(*host, self.world.elapsed() + pause);
            }
            Op::Reboot { host } => {
                self.power_cut(*host)?;
                self.boot(*host)?;
            }
            Op::PowerCut { host } => self.power_cut(*host)?,
            Op::Boot { host } => self.boot(*host)?,
            Op::StepClock { host, ms } => {
                let host = self.host(*host)?;
                self.world.step_clock(host, *ms);
            }
            Op::Publish(publish) => self.publish(publish, &publish.channel)?,
            Op::PublishMore {
                publisher,
                messages,
            } => {
                let id = self.open_publisher(*publisher)?;
                self.world.publisher_mut(id).publish_more(*messages);
            }
            Op::HoldClaim { publisher } => self.hold_claim(*publisher)?,
            Op::AddDestination { publisher, channel } => {
                self.request_destination(*publisher, channel, true)?;
            }
            Op::RemoveDestination { publisher, channel } => {
                self.request_destination(*publisher, channel, false)?;
            }
            Op::ClosePublisher { publisher } => {
                let id = self.open_publisher(*publisher)?;
                self.world.publisher_mut(id).close();
            }
            Op::Revoke { publisher } => {
                let id = self.open_publisher(*publisher)?;
                // This ends the stream for all publishers that share it.
                self.revoked.extend(self.world.publisher(id).key());
                self.world.publisher_mut(id).revoke();
            }
            Op::Subscribe(subscribe) => self.subscribe(subscribe)?,
            Op::SetSkipRate {
                subscriber,
                skip_per_mille,
            } => {
                let id = self.open_subscriber(*subscriber)?;
                self.world
                    .subscriber_mut(id)
                    .set_skip_rate(*skip_per_mille as f64 / 1_000.0);
                let fast_since = self.fast_since(*skip_per_mille);
                self.subscribers.get_mut(subscriber)?.fast_since = fast_since;
            }
            Op::AddSource {
                subscriber,
                channel,
            } => self.request_source(*subscriber, channel, true)?,
            Op::RemoveSource {
                subscriber,
                channel,
            } => self.request_source(*subscriber, channel, false)?,
            Op::Reject { subscriber } => {
                let id = self.open_subscriber(*subscriber)?;
                self.world
                    .subscriber_mut(id)
                    .reject("by request")
                    .then_some(())?;
                self.track_rejection(id);
            }
            Op::CloseSubscriber { subscriber } => {
                let id = self.open_subscriber(*subscriber)?;
                self.world.subscriber_mut(id).close();
            }
            Op::Request(request) => {
                self.subscribe(&request.responses)?;
                self.pending_requests.push(request.clone());
            }
            Op::Respond { to, publish } => {
                let subscriber = self.open_subscriber(*to)?;
                let image = self.world.subscriber(subscriber).image_ids().max()?;
                let channel = format!("{}|response-correlation-id={image}", publish.channel);
                self.publish(publish, &channel)?;
                self.publishers.get_mut(&publish.publisher)?.responds_to = Some(RequestSource {
                    subscriber,
                    image,
                    requests: self.world.subscriber(subscriber).stream_of(image)?,
                });
            }
            Op::Cut { from, to } => {
                self.links_stable_since.insert((*from, *to), Duration::MAX);
                let [from, to] = self.link(*from, *to)?;
                self.world.network().cut(from, to);
            }
            Op::Heal { from, to } => {
                self.mark_link_restored(*from, *to);
                let [from, to] = self.link(*from, *to)?;
                self.world.network().heal(from, to);
            }
            Op::HealAll => self.heal_all(),
            Op::SetFaults(profile) => self.world.set_faults((*profile).into()),
            Op::SetLinkFaults { from, to, profile } => {
                let [from, to] = self.link(*from, *to)?;
                let faults = profile.map(LinkFaults::from);
                self.world.network().set_link_faults(from, to, faults);
            }
            Op::Custom(custom) => {
                let applied = self.suite.apply(custom, &mut self.world);
                let has_subject = applied.unwrap_or_else(|error| panic!("{error}"));
                has_subject.then_some(())?;
            }
        }
        Some(())
    }

    /// Cuts the power of a host.
    fn power_cut(&mut self, host: usize) -> Option<()> {
        let index = self.powered_host(host)?;
        self.record_driver_end(index);
        self.pending_starts.remove(&host);
        self.world.power_cut(index);
        Some(())
    }

    /// Returns the power to a host, and starts the driver that belongs to it.
    fn boot(&mut self, host: usize) -> Option<()> {
        let index = self.host(host)?;
        self.world.boot(index).then_some(())?;
        if !self.hosts[host].no_driver {
            self.start_driver(host);
        }
        Some(())
    }

    /// Ends the faults of disks, and returns the power to all hosts.
    pub(super) fn repair_hosts(&mut self) {
        self.world.end_disk_faults();
        for host in 0..self.hosts.len() {
            // A host with power needs nothing.
            let _ = self.boot(host);
        }
    }

    /// Returns the network ids of two hosts.
    fn link(&self, from: usize, to: usize) -> Option<[HostId; 2]> {
        Some([self.host(from)?, self.host(to)?].map(|host| self.world.network_id(host)))
    }

    fn hold_claim(&mut self, publisher: u32) -> Option<()> {
        let id = self.open_publisher(publisher)?;
        self.world.hold_claim(id).then_some(())?;
        let host = self.world.host_of(self.publishers.get(&publisher)?.client);
        let driver_generation = self.world.driver_generation(host);
        *self
            .held_claims
            .entry((host, driver_generation))
            .or_default() += 1;
        Some(())
    }

    /// Requests a destination that does not exist, or the removal of one that does.
    fn request_destination(&mut self, publisher: u32, channel: &str, add: bool) -> Option<()> {
        let id = self.open_publisher(publisher)?;
        let known = self.publishers.get_mut(&publisher)?;
        (known.destinations.iter().any(|it| it == channel) != add).then_some(())?;
        self.world
            .publisher_mut(id)
            .request_destination(channel, add)
            .then_some(())?;
        known.routes_stable_since = self.world.elapsed();
        if add {
            known.destinations.push(channel.to_owned());
        } else {
            known.destinations.retain(|it| it != channel);
        }
        Some(())
    }

    fn request_source(&mut self, subscriber: u32, channel: &str, add: bool) -> Option<()> {
        let id = self.open_subscriber(subscriber)?;
        self.world
            .subscriber_mut(id)
            .request_source(channel, add)
            .then_some(())?;
        self.subscribers.get_mut(&subscriber)?.routes_stable_since = self.world.elapsed();
        Some(())
    }

    fn publish(&mut self, publish: &Publish, channel: &str) -> Option<()> {
        let client = self.live_client(publish.client)?;
        let spec = crate::PublisherSpec::new(channel, publish.stream)
            .exclusive(publish.exclusive)
            .messages(publish.messages)
            .lengths(publish.lengths)
            .pause(Duration::from_millis(publish.pause_ms));
        let destinations = publish.destinations.iter();
        let spec = destinations.fold(spec, crate::PublisherSpec::destination);
        let known = KnownPublisher {
            id: self.world.publish(client, spec),
            client,
            channel: channel.to_owned(),
            stream: publish.stream,
            destinations: publish.destinations.clone(),
            requested_at: self.world.elapsed(),
            routes_stable_since: self.world.elapsed(),
            responds_to: None,
        };
        self.publishers.insert(publish.publisher, known);
        Some(())
    }

    fn subscribe(&mut self, subscribe: &Subscribe) -> Option<()> {
        let client = self.live_client(subscribe.client)?;
        let spec = crate::SubscriberSpec::new(&subscribe.channel, subscribe.stream)
            .skip_rate(subscribe.skip_per_mille as f64 / 1_000.0);
        let sources = subscribe.sources.iter();
        let mut spec = sources.fold(spec, crate::SubscriberSpec::source);
        if subscribe.channel.contains("reliable=false") {
            spec = spec.lossy();
        }
        let known = KnownSubscriber {
            id: self.world.subscribe(client, spec),
            client,
            channel: subscribe.channel.clone(),
            stream: subscribe.stream,
            requested_at: self.world.elapsed(),
            routes_stable_since: self.world.elapsed(),
            fast_since: self.fast_since(subscribe.skip_per_mille),
            driver_generation: self.world.driver_generation(self.world.host_of(client)),
        };
        self.subscribers.insert(subscribe.subscriber, known);
        Some(())
    }

    /// Starts the requests if the subscription to the responses exists; otherwise keeps waiting if it may still open.
    fn start_requests(&mut self, request: &RequestResponse) {
        let Some(responses) = self.subscribers.get(&request.responses.subscriber) else {
            return;
        };
        let subscriber = self.world.subscriber(responses.id);
        if let Some(id) = subscriber.registration_id() {
            let channel = super::channel::with_parameters(
                &request.requests.channel,
                &[format!("response-correlation-id={id}")],
            );
            let started = self.publish(&request.requests, &channel);
            self.response_subscribers
                .insert(request.requests.publisher, request.responses.subscriber);
            self.coverage
                .add("requests started", u64::from(started.is_some()));
        } else if !subscriber.is_over() {
            self.pending_requests.push(request.clone());
        }
    }

    // --- lookup ---

    fn host(&self, number: usize) -> Option<HostIndex> {
        (number < self.hosts.len()).then(|| HostIndex::at(number))
    }

    fn powered_host(&self, number: usize) -> Option<HostIndex> {
        self.host(number).filter(|host| self.world.is_on(*host))
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = HostIndex> + use<> {
        (0..self.hosts.len()).map(HostIndex::at)
    }

    fn host_with_driver(&self, number: usize) -> Option<HostIndex> {
        self.host(number)
            .filter(|host| self.world.has_driver(*host))
    }

    /// Returns true if a client is connected and has not lost its driver.
    pub(super) fn is_live(&self, client: ClientId) -> bool {
        matches!(self.world.client_state(client), ClientState::Connected(_))
            && self.world.client_end(client).is_none()
    }

    fn live_client(&self, label: u32) -> Option<ClientId> {
        self.clients
            .get(&label)
            .copied()
            .filter(|client| self.is_live(*client))
    }

    fn open_publisher(&self, label: u32) -> Option<PublisherId> {
        let known = self.publishers.get(&label)?;
        let is_open = self.is_live(known.client) && self.world.publisher(known.id).is_open();
        is_open.then_some(known.id)
    }

    fn open_subscriber(&self, label: u32) -> Option<SubscriberId> {
        let known = self.subscribers.get(&label)?;
        let is_open = self.is_live(known.client) && self.world.subscriber(known.id).is_open();
        is_open.then_some(known.id)
    }

    /// Records the counters of a driver before it ends and checks its errors.
    pub(super) fn record_driver_end(&mut self, host: HostIndex) {
        if !self.world.has_driver(host) {
            return;
        }
        self.disturb_host(host.number(), self.world.elapsed());
        self.world.expect_errors_counted(host);
        if !self.corrupts {
            self.world.expect_no_errors_of(host, EXPECTED_ERRORS);
        }
        let unblocked = self
            .world
            .system(host, SystemCounter::UnblockedPublications);
        let held_claims = self
            .held_claims
            .get(&(host, self.world.driver_generation(host)));
        let held_claims = held_claims.copied().unwrap_or_default();
        assert!(
            unblocked <= held_claims,
            "host {}: {unblocked} publications unblocked, {held_claims} claims held",
            host.number()
        );
        for counter in COUNTED {
            let value = self.world.system(host, counter);
            self.coverage
                .add(format!("drivers: {counter:?}"), value.unsigned_abs());
        }
    }
}

/// System counters that are added to the coverage table.
const COUNTED: [SystemCounter; 19] = [
    SystemCounter::NaksSent,
    SystemCounter::NaksReceived,
    SystemCounter::StatusMessagesReceived,
    SystemCounter::StatusMessagesRejected,
    SystemCounter::HeartbeatsReceived,
    SystemCounter::RetransmitsSent,
    SystemCounter::FlowControlUnderRuns,
    SystemCounter::FlowControlOverRuns,
    SystemCounter::InvalidPackets,
    SystemCounter::Errors,
    SystemCounter::ShortSends,
    SystemCounter::SenderFlowControlLimits,
    SystemCounter::UnblockedPublications,
    SystemCounter::LossGapFills,
    SystemCounter::ClientTimeouts,
    SystemCounter::PublicationsRevoked,
    SystemCounter::PublicationImagesRevoked,
    SystemCounter::ImagesRejected,
    SystemCounter::RetransmitOverflow,
];
