//! Plays a story: carries out its events at their times, and keeps in mind who is who.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use taran_driver::DriverError;
use taran_protocol::counter::SystemCounter;

use super::answers::EXPECTED;
use super::watch::Watch;
use super::{Ask, Coverage, Deed, Plan, Publish, Subscribe, Timed};
use crate::network::{HostId, LinkFaults};
use crate::traffic::StreamKey;
use crate::{ClientId, ClientState, HostIndex, HostSpec, PublisherId, SubscriberId, World};

/// How often what waits is looked after.
const BEAT: Duration = Duration::from_millis(200);

/// A client that is dead keeps what it has for so long: its liveness timeout (10 s), and turns of timers.
const UNNOTICED: Duration = Duration::from_secs(12);

/// The world of a story, and what its labels stand for.
pub(super) struct Teller {
    pub(super) world: World,
    pub(super) clients: BTreeMap<u32, ClientId>,
    pub(super) publishers: BTreeMap<u32, Publishing>,
    pub(super) subscribers: BTreeMap<u32, Subscribing>,
    /// Hosts whose driver is to be started as soon as that can be.
    pub(super) awaited: BTreeSet<usize>,
    pub(super) corrupts: bool,
    /// Streams that are over, whoever else publishes on them.
    pub(super) revoked: BTreeSet<StreamKey>,
    pub(super) coverage: Coverage,
    /// Since when nothing keeps a host or a client from working; those that were never disturbed are not in it.
    pub(super) calm_hosts: BTreeMap<usize, Duration>,
    pub(super) calm_clients: BTreeMap<ClientId, Duration>,
    /// The same of links between hosts.
    pub(super) calm_links: BTreeMap<(usize, usize), Duration>,
    /// What was looked at of clients, connections and images.
    pub(super) watch: Watch,
    /// Who asked, and who hears the answers, by label.
    pub(super) asked: BTreeMap<u32, u32>,
    /// Claims that were never filled in, by host and life of its driver.
    held: BTreeMap<(HostIndex, u64), i64>,
    hosts: usize,
    /// Who waits to ask until the subscription to the answers is there.
    asking: Vec<Ask>,
}

/// A publisher, and what its channel says.
pub(super) struct Publishing {
    pub(super) id: PublisherId,
    pub(super) client: ClientId,
    pub(super) channel: String,
    pub(super) stream: i32,
    pub(super) destinations: Vec<String>,
    /// When it was asked for.
    pub(super) at: Duration,
    /// Since when its destinations are what they are.
    pub(super) settled: Duration,
    /// Whom it answers.
    pub(super) answers: Option<Answered>,
}

/// Somebody who is answered: by one who hears his stream, under this image.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    pub(super) hearer: SubscriberId,
    pub(super) image: i64,
    pub(super) requests: StreamKey,
}

/// A subscriber, and what its channel says.
pub(super) struct Subscribing {
    pub(super) id: SubscriberId,
    pub(super) client: ClientId,
    pub(super) channel: String,
    pub(super) stream: i32,
    /// When it was asked for.
    pub(super) at: Duration,
    /// Since when its sources are what they are.
    pub(super) settled: Duration,
    /// Since when it reads quickly.
    pub(super) attentive: Duration,
    /// Which driver of its host it was asked of.
    pub(super) life: u64,
}

impl Teller {
    /// A world with the hosts of a plan, whose drivers run.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut world = World::new(plan.seed);
        world.set_pace(Duration::from_millis(plan.idle_ms), plan.fine);
        if plan.corrupts {
            world.distrust_content();
        }
        for host in &plan.hosts {
            let mut spec = HostSpec::new().clocks_ahead(Duration::from_millis(host.ahead_ms));
            if host.ipv6 {
                spec = spec.ipv6();
            }
            let options = host.options.iter();
            world.add_host(options.fold(spec, |spec, (name, value)| spec.option(name, value)));
        }
        Self {
            world,
            clients: BTreeMap::new(),
            publishers: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            awaited: BTreeSet::new(),
            corrupts: plan.corrupts,
            revoked: BTreeSet::new(),
            coverage: Coverage::default(),
            calm_hosts: BTreeMap::new(),
            calm_clients: BTreeMap::new(),
            calm_links: BTreeMap::new(),
            watch: Watch::default(),
            asked: BTreeMap::new(),
            held: BTreeMap::new(),
            hosts: plan.hosts.len(),
            asking: Vec::new(),
        }
    }

    /// Carries out the events one after the other; `look` is asked after each whether all is well.
    pub(super) fn play(&mut self, events: &[Timed], look: &mut dyn FnMut(&World)) {
        for Timed { at_ms, deed } in events {
            self.run_until(Duration::from_millis(*at_ms));
            let name = deed.name();
            let done = self.carry_out(deed).is_some();
            self.coverage.count(if done {
                format!("event: {name}")
            } else {
                format!("event without subject: {name}")
            });
            look(&self.world);
        }
    }

    /// Lets time pass, and looks after what waits.
    pub(super) fn run_until(&mut self, time: Duration) {
        while self.world.elapsed() < time {
            let left = time - self.world.elapsed();
            self.world.run_for(left.min(BEAT));
            self.look_after();
        }
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, time: Duration) {
        self.run_until(self.world.elapsed() + time);
    }

    fn look_after(&mut self) {
        for host in std::mem::take(&mut self.awaited) {
            self.start_driver(host);
        }
        for ask in std::mem::take(&mut self.asking) {
            self.ask(&ask);
        }
        if let Err(violation) = self.look_at_answers().and_then(|()| self.look_for_lost()) {
            panic!("{violation}\n{}", self.world.describe());
        }
    }

    /// Starts a driver, or keeps in mind that it is to be started.
    fn start_driver(&mut self, host: usize) {
        self.disturb_host(host, self.world.elapsed());
        match self.world.try_start_driver(HostIndex::at(host)) {
            Ok(()) => {
                self.coverage.count("drivers that returned");
                self.strand_clients(host);
            }
            Err(DriverError::ActiveDriver { .. }) => {
                self.awaited.insert(host);
            }
            Err(error) => panic!("the driver of host {host} does not start: {error}"),
        }
    }

    /// Who has connected to the driver before this one, perhaps after its death, is answered by nobody, and finds that out
    /// when the driver has not shown itself for long enough.
    fn strand_clients(&mut self, host: usize) {
        let clients: Vec<ClientId> = self.clients.values().copied().collect();
        for client in clients {
            if self.world.host_of(client).number() == host {
                self.disturb_client(client, Duration::MAX);
            }
        }
    }

    /// Carries out one event; none if its subject is not there.
    #[expect(clippy::too_many_lines, reason = "a few lines for each kind of event")]
    fn carry_out(&mut self, deed: &Deed) -> Option<()> {
        match deed {
            Deed::Connect { client, host } => {
                let host = self.host(*host)?;
                let id = self.world.begin_connect(host);
                self.watch_client(id);
                self.clients.insert(*client, id);
            }
            Deed::CloseClient { client } => {
                let client = self.live_client(*client)?;
                self.world.close_client(client);
            }
            Deed::KillClient { client } => {
                let client = *self.clients.get(client)?;
                let state = self.world.client_state(client);
                matches!(
                    state,
                    ClientState::Connected(_) | ClientState::Connecting(_)
                )
                .then_some(())?;
                self.world.kill_client(client);
                self.disturb_client(client, self.world.elapsed() + UNNOTICED);
            }
            Deed::StallClient { client, ms } => {
                let client = self.live_client(*client)?;
                let pause = Duration::from_millis(*ms);
                self.world.stall_client(client, pause);
                self.disturb_client(client, self.world.elapsed() + pause);
            }
            Deed::StopDriver { host } => {
                let host = self.driven_host(*host)?;
                self.take_leave(host);
                self.world.stop_driver(host);
            }
            Deed::KillDriver { host } => {
                let host = self.driven_host(*host)?;
                self.take_leave(host);
                self.world.kill_driver(host);
            }
            Deed::StartDriver { host } => {
                let index = self.host(*host)?;
                (!self.world.has_driver(index)).then_some(())?;
                self.start_driver(*host);
            }
            Deed::StallDriver { host, ms } => {
                let (index, pause) = (self.driven_host(*host)?, Duration::from_millis(*ms));
                self.world.stall_driver(index, pause);
                self.disturb_host(*host, self.world.elapsed() + pause);
            }
            Deed::StallHost { host, ms } => {
                let (index, pause) = (self.host(*host)?, Duration::from_millis(*ms));
                self.world.stall_host(index, pause);
                self.disturb_host(*host, self.world.elapsed() + pause);
            }
            Deed::Reboot { host } => self.reboot(*host)?,
            Deed::StepClock { host, ms } => {
                let host = self.host(*host)?;
                self.world.step_clock(host, *ms);
            }
            Deed::Publish(publish) => self.publish(publish, &publish.channel)?,
            Deed::More {
                publisher,
                messages,
            } => {
                let id = self.open_publisher(*publisher)?;
                self.world.publisher_mut(id).more(*messages);
            }
            Deed::Hold { publisher } => self.hold(*publisher)?,
            Deed::AddDestination { publisher, channel } => {
                self.ask_destination(*publisher, channel, true)?;
            }
            Deed::RemoveDestination { publisher, channel } => {
                self.ask_destination(*publisher, channel, false)?;
            }
            Deed::ClosePublisher { publisher } => {
                let id = self.open_publisher(*publisher)?;
                self.world.publisher_mut(id).close();
            }
            Deed::Revoke { publisher } => {
                let id = self.open_publisher(*publisher)?;
                // For all who share it.
                self.revoked.extend(self.world.publisher(id).key());
                self.world.publisher_mut(id).revoke();
            }
            Deed::Subscribe(subscribe) => self.subscribe(subscribe)?,
            Deed::Laziness {
                subscriber,
                laziness,
            } => {
                let id = self.open_subscriber(*subscriber)?;
                self.world
                    .subscriber_mut(id)
                    .set_laziness(*laziness as f64 / 1_000.0);
                let attentive = self.attentive(*laziness);
                self.subscribers.get_mut(subscriber)?.attentive = attentive;
            }
            Deed::AddSource {
                subscriber,
                channel,
            } => self.ask_source(*subscriber, channel, true)?,
            Deed::RemoveSource {
                subscriber,
                channel,
            } => self.ask_source(*subscriber, channel, false)?,
            Deed::Reject { subscriber } => {
                let id = self.open_subscriber(*subscriber)?;
                self.world
                    .subscriber_mut(id)
                    .reject("told to")
                    .then_some(())?;
                self.watch_rejection(id);
            }
            Deed::CloseSubscriber { subscriber } => {
                let id = self.open_subscriber(*subscriber)?;
                self.world.subscriber_mut(id).close();
            }
            Deed::Ask(ask) => {
                self.subscribe(&ask.answers)?;
                self.asking.push(ask.clone());
            }
            Deed::Answer { to, publish } => {
                let hearer = self.open_subscriber(*to)?;
                let image = self.world.subscriber(hearer).image_ids().max()?;
                let channel = format!("{}|response-correlation-id={image}", publish.channel);
                self.publish(publish, &channel)?;
                self.publishers.get_mut(&publish.publisher)?.answers = Some(Answered {
                    hearer,
                    image,
                    requests: self.world.subscriber(hearer).stream_of(image)?,
                });
            }
            Deed::Cut { from, to } => {
                self.calm_links.insert((*from, *to), Duration::MAX);
                let [from, to] = self.link(*from, *to)?;
                self.world.network().cut(from, to);
            }
            Deed::Heal { from, to } => {
                self.calm_link(*from, *to);
                let [from, to] = self.link(*from, *to)?;
                self.world.network().heal(from, to);
            }
            Deed::HealAll => self.heal_all(),
            Deed::Weather(weather) => self.world.set_faults((*weather).into()),
            Deed::Link { from, to, weather } => {
                let [from, to] = self.link(*from, *to)?;
                let faults = weather.map(LinkFaults::from);
                self.world.network().set_link_faults(from, to, faults);
            }
        }
        Some(())
    }

    /// Its driver and all its clients die, and with them what was in its memory; then its driver starts.
    fn reboot(&mut self, host: usize) -> Option<()> {
        let index = self.host(host)?;
        self.take_leave(index);
        self.world.kill_driver(index);
        for client in self.clients.values() {
            if self.world.host_of(*client) == index {
                self.world.kill_client(*client);
            }
        }
        self.world.forget_files(index);
        self.awaited.remove(&host);
        self.start_driver(host);
        Some(())
    }

    /// The way from a host to another.
    fn link(&self, from: usize, to: usize) -> Option<[HostId; 2]> {
        Some([self.host(from)?, self.host(to)?].map(|host| self.world.network_id(host)))
    }

    fn hold(&mut self, publisher: u32) -> Option<()> {
        let id = self.open_publisher(publisher)?;
        self.world.hold(id).then_some(())?;
        let host = self.world.host_of(self.publishers.get(&publisher)?.client);
        let life = self.world.lives(host);
        *self.held.entry((host, life)).or_default() += 1;
        Some(())
    }

    /// Asks for a destination that is not there, or for the end of one that is.
    fn ask_destination(&mut self, publisher: u32, channel: &str, add: bool) -> Option<()> {
        let id = self.open_publisher(publisher)?;
        let known = self.publishers.get_mut(&publisher)?;
        (known.destinations.iter().any(|it| it == channel) != add).then_some(())?;
        self.world
            .publisher_mut(id)
            .ask_destination(channel, add)
            .then_some(())?;
        known.settled = self.world.elapsed();
        if add {
            known.destinations.push(channel.to_owned());
        } else {
            known.destinations.retain(|it| it != channel);
        }
        Some(())
    }

    fn ask_source(&mut self, subscriber: u32, channel: &str, add: bool) -> Option<()> {
        let id = self.open_subscriber(subscriber)?;
        self.world
            .subscriber_mut(id)
            .ask_source(channel, add)
            .then_some(())?;
        self.subscribers.get_mut(&subscriber)?.settled = self.world.elapsed();
        Some(())
    }

    fn publish(&mut self, publish: &Publish, channel: &str) -> Option<()> {
        let client = self.live_client(publish.client)?;
        let spec = crate::Publishing::new(channel, publish.stream)
            .exclusive(publish.exclusive)
            .messages(publish.messages)
            .lengths(publish.lengths)
            .pause(Duration::from_millis(publish.pause_ms));
        let destinations = publish.destinations.iter();
        let spec = destinations.fold(spec, crate::Publishing::destination);
        let publishing = Publishing {
            id: self.world.publish(client, spec),
            client,
            channel: channel.to_owned(),
            stream: publish.stream,
            destinations: publish.destinations.clone(),
            at: self.world.elapsed(),
            settled: self.world.elapsed(),
            answers: None,
        };
        self.publishers.insert(publish.publisher, publishing);
        Some(())
    }

    fn subscribe(&mut self, subscribe: &Subscribe) -> Option<()> {
        let client = self.live_client(subscribe.client)?;
        let spec = crate::Subscribing::new(&subscribe.channel, subscribe.stream)
            .laziness(subscribe.laziness as f64 / 1_000.0);
        let sources = subscribe.sources.iter();
        let mut spec = sources.fold(spec, crate::Subscribing::source);
        if subscribe.channel.contains("reliable=false") {
            spec = spec.lossy();
        }
        let subscribing = Subscribing {
            id: self.world.subscribe(client, spec),
            client,
            channel: subscribe.channel.clone(),
            stream: subscribe.stream,
            at: self.world.elapsed(),
            settled: self.world.elapsed(),
            attentive: self.attentive(subscribe.laziness),
            life: self.world.lives(self.world.host_of(client)),
        };
        self.subscribers.insert(subscribe.subscriber, subscribing);
        Some(())
    }

    /// Asks, if the subscription to the answers is there; waits on if it may still come.
    fn ask(&mut self, ask: &Ask) {
        let Some(answers) = self.subscribers.get(&ask.answers.subscriber) else {
            return;
        };
        let subscriber = self.world.subscriber(answers.id);
        if let Some(id) = subscriber.registration_id() {
            let channel = super::road::with(
                &ask.requests.channel,
                &[format!("response-correlation-id={id}")],
            );
            let asked = self.publish(&ask.requests, &channel);
            self.asked
                .insert(ask.requests.publisher, ask.answers.subscriber);
            self.coverage
                .add("requesters that asked", u64::from(asked.is_some()));
        } else if !subscriber.is_over() {
            self.asking.push(ask.clone());
        }
    }

    // --- who is who ---

    fn host(&self, number: usize) -> Option<HostIndex> {
        (number < self.hosts).then(|| HostIndex::at(number))
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = HostIndex> + use<> {
        (0..self.hosts).map(HostIndex::at)
    }

    fn driven_host(&self, number: usize) -> Option<HostIndex> {
        self.host(number)
            .filter(|host| self.world.has_driver(*host))
    }

    /// A client that is connected and has not given up its driver.
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

    /// Adds what a driver has counted before it goes, and looks at what it has recorded.
    pub(super) fn take_leave(&mut self, host: HostIndex) {
        if !self.world.has_driver(host) {
            return;
        }
        self.disturb_host(host.number(), self.world.elapsed());
        self.world.expect_errors_counted(host);
        if !self.corrupts {
            self.world.expect_no_errors_of(host, EXPECTED);
        }
        let unblocked = self
            .world
            .system(host, SystemCounter::UnblockedPublications);
        let held = self.held.get(&(host, self.world.lives(host)));
        let held = held.copied().unwrap_or_default();
        assert!(
            unblocked <= held,
            "host {}: {unblocked} publications unblocked, {held} claims held",
            host.number()
        );
        for counter in COUNTED {
            let value = self.world.system(host, counter);
            self.coverage
                .add(format!("drivers: {counter:?}"), value.unsigned_abs());
        }
    }
}

/// System counters that say what happened in a driver.
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
