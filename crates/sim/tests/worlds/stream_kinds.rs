// SPDX-License-Identifier: Apache-2.0
//! Kinds of streams: their channels, publishers and readers, and what must hold for each.

use std::time::Duration;

use taran_core::counters::CounterMeta;
use taran_protocol::counter::{SystemCounter, type_id};
use taran_sim::traffic::Stream;
use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World,
    link_profiles,
};

use super::common::{LONG, STREAM, await_all, await_offered, between, channel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unicast,
    /// Groups with `fc=min`: multicast, manual destinations, dynamic destinations.
    Multicast,
    Manual,
    Dynamic,
    /// Groups with `fc=tagged` and `fc=max`, beside a stalled bystander.
    Tagged,
    Max,
    /// One stream over two paths to subscriptions with two sources each.
    Sources,
    /// Readers on the publisher's host, and one on another host.
    Spies,
    Cubic,
    /// The first reader is untethered and stops reading before the fault; the others are tethered.
    Untethered,
    Unreliable,
    /// A chosen session, beside another one of the same stream.
    Session,
    /// A stream that starts where another one ended.
    Resumed,
    /// Timestamps of sending and receiving.
    Timestamps,
    Ipv6,
    Ipv6Group,
}

/// The chosen session.
const SESSION: i32 = -77;
/// The first term of a stream that existed before.
const INITIAL_TERM: i32 = i32::MAX - 1;

const GROUP: &str = "aeron:udp?endpoint=224.20.30.39:40123";
const IPV6_GROUP: &str = "aeron:udp?endpoint=[ff02::39]:40123";
const CONTROL: &str = "control=10.0.0.1:40200";
const MANUAL: &str = "aeron:udp?control-mode=manual";

impl Kind {
    /// Returns true if every reader is on a host of its own.
    pub(crate) fn is_group(self) -> bool {
        matches!(
            self,
            Self::Multicast
                | Self::Manual
                | Self::Dynamic
                | Self::Tagged
                | Self::Max
                | Self::Sources
                | Self::Ipv6Group
        )
    }

    /// Returns true if the group has a receiver that flow control does not wait for.
    fn has_bystander(self) -> bool {
        matches!(self, Self::Tagged | Self::Max)
    }

    fn host(self) -> HostSpec {
        match self {
            Self::Ipv6 | Self::Ipv6Group => HostSpec::new().ipv6(),
            Self::Cubic => {
                HostSpec::new().option("aeron.CubicCongestionControl.measureRtt", "true")
            }
            _ => HostSpec::new(),
        }
    }

    /// Returns the subscription of a reader on this host. `chance` selects among equivalent ones.
    fn subscription(self, host: usize, is_untethered: bool, chance: u64) -> SubscriberSpec {
        let own = channel(host);
        let text = match self {
            Self::Multicast | Self::Max => GROUP.to_owned(),
            Self::Dynamic => format!("{own}|{CONTROL}"),
            Self::Tagged => format!("{GROUP}|gtag=7"),
            Self::Spies if host == 0 => format!("aeron-spy:{}", channel(1)),
            Self::Unicast | Self::Resumed | Self::Manual | Self::Spies => own,
            Self::Sources => {
                let sources = SubscriberSpec::new(MANUAL, STREAM);
                return sources.source(own).source(second_path(host));
            }
            Self::Cubic => format!("{own}|cc=cubic"),
            Self::Untethered => format!("{own}|tether={}", !is_untethered),
            Self::Unreliable => {
                return SubscriberSpec::new(format!("{own}|reliable=false"), STREAM).lossy();
            }
            Self::Session => format!("{own}|session-id={SESSION}"),
            Self::Timestamps => match chance % 3 {
                0 => own,
                1 => format!("{own}|media-rcv-ts-offset=reserved"),
                _ => format!("{own}|channel-rcv-ts-offset=reserved"),
            },
            Self::Ipv6 => ipv6(host),
            Self::Ipv6Group => IPV6_GROUP.to_owned(),
        };
        SubscriberSpec::new(text, STREAM)
    }

    /// Returns the publication for this number of readers. `from` is the start position of its stream.
    fn publication(self, readers: usize, chance: u64, from: i64) -> PublisherSpec {
        let hosts = 1..=readers;
        // One reader may die.
        let required = readers - 1;
        let min = format!("fc=min,g:/{required},t:20s");
        let text = match self {
            Self::Multicast => format!("{GROUP}|{min}"),
            Self::Ipv6Group => format!("{IPV6_GROUP}|{min}"),
            Self::Tagged => format!("{GROUP}|fc=tagged,g:7/{required},t:20s"),
            Self::Max => format!("{GROUP}|fc=max"),
            Self::Dynamic => format!("aeron:udp?{CONTROL}|control-mode=dynamic|{min}"),
            Self::Manual => {
                let publication = PublisherSpec::new(format!("{MANUAL}|{min}"), STREAM);
                return hosts.fold(publication, |it, host| it.destination(channel(host)));
            }
            Self::Sources => {
                let publication = PublisherSpec::new(format!("{MANUAL}|{min}"), STREAM);
                return hosts.fold(publication, |it, host| {
                    it.destination(channel(host)).destination(second_path(host))
                });
            }
            Self::Spies => format!("{}|ssc=true", channel(1)),
            Self::Session => format!("{}|session-id={SESSION}", channel(1)),
            Self::Resumed => format!("{}|{}", channel(1), beginning(from)),
            Self::Timestamps if chance.is_multiple_of(3) => {
                format!("{}|channel-snd-ts-offset=reserved", channel(1))
            }
            Self::Unicast
            | Self::Cubic
            | Self::Untethered
            | Self::Unreliable
            | Self::Timestamps => channel(1),
            Self::Ipv6 => ipv6(1),
        };
        PublisherSpec::new(text, STREAM)
    }
}

fn ipv6(host: usize) -> String {
    format!("aeron:udp?endpoint=[fd00::{}]:40123", host + 1)
}

fn second_path(host: usize) -> String {
    format!("aeron:udp?endpoint=10.0.0.{}:40124", host + 1)
}

/// Returns a position as channel parameters.
fn beginning(position: i64) -> String {
    let (term, offset) = (position / 65_536, position % 65_536);
    let term_id = INITIAL_TERM.wrapping_add(term as i32);
    format!(
        "session-id={SESSION}|init-term-id={INITIAL_TERM}|term-id={term_id}|term-offset={offset}"
    )
}

/// A reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) host: usize,
    pub(crate) client: ClientId,
    pub(crate) subscriber: SubscriberId,
    /// Untethered, on a stream that other readers consume.
    pub(crate) is_untethered: bool,
}

/// A stream of some kind, its publisher on the first host, and its readers.
pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) kind: Kind,
    pub(crate) hosts: Vec<HostIndex>,
    pub(crate) writer: ClientId,
    pub(crate) publisher: PublisherId,
    pub(crate) readers: Vec<Reader>,
    chance: u64,
    began_ns: i64,
}

impl Scene {
    /// Creates the stream on a network that only delays, or on one with all faults.
    pub(crate) fn new(seed: u64, kind: Kind, readers: usize, messages: u64) -> Self {
        let mut world = World::new(seed);
        let random = world.random();
        let faults = if random.bool() {
            link_profiles::clean(random)
        } else {
            link_profiles::faulty(random)
        };
        world.set_faults(faults);
        Self::within(world, kind, readers, messages)
    }

    /// Creates the stream in a world without hosts.
    pub(crate) fn within(mut world: World, kind: Kind, readers: usize, messages: u64) -> Self {
        let hosts = 1 + if kind.is_group() { readers } else { 1 };
        let hosts = hosts + usize::from(kind.has_bystander());
        let hosts: Vec<_> = (0..hosts).map(|_| world.add_host(kind.host())).collect();
        let chance = world.random().u64(..);
        let began_ns = world.epoch_nanos();
        let writer = world.connect(hosts[0]);
        let places = (0..readers).map(|index| match kind {
            _ if kind.is_group() => index + 1,
            // The last one is on another host.
            Kind::Spies if index + 1 < readers => 0,
            _ => 1,
        });
        let places: Vec<_> = places.collect();
        let readers: Vec<_> = places
            .iter()
            .enumerate()
            .map(|(index, host)| {
                let is_untethered = kind == Kind::Untethered && index == 0;
                read(&mut world, kind, chance, &hosts, *host, is_untethered)
            })
            .collect();
        if kind.has_bystander() {
            let bystander = world.connect(hosts[hosts.len() - 1]);
            world.subscribe(bystander, SubscriberSpec::new(GROUP, STREAM).skip_rate(1.0));
        }
        // With `fc=max` the publisher does not wait for receivers: those that are not open yet miss what is sent.
        world.run_until("all subscribe", LONG, |world| {
            let mut all = readers.iter();
            all.all(|reader| world.subscriber(reader.subscriber).is_open())
        });
        let publisher = publish(&mut world, kind, chance, readers.len(), writer, 0);
        let mut scene = Self {
            world,
            kind,
            hosts,
            writer,
            publisher,
            readers,
            chance,
            began_ns,
        };
        scene.publish_to_all(messages);
        scene
    }

    /// Publishes when all readers have images and were registered: a late reader misses what is not waited for, and
    /// falls behind what can be retransmitted while spies let their publisher run.
    pub(crate) fn publish_to_all(&mut self, messages: u64) {
        self.wake();
        self.await_images();
        self.world.run_for(Duration::from_secs(2));
        self.publish_more(messages);
    }

    /// Runs until this many messages were published and all readers receive them; a loose reader stalls and has lost
    /// its image.
    pub(crate) fn under_way(&mut self, messages: u64) {
        await_offered(&mut self.world, self.publisher, messages);
        self.await_images();
        self.lag();
    }

    /// Stalls loose readers until they lose their image, and for a random time afterwards.
    pub(crate) fn lag(&mut self) {
        let untethered: Vec<_> = self
            .readers
            .iter()
            .copied()
            .filter(|it| it.is_untethered)
            .collect();
        let [untethered] = untethered[..] else { return };
        let untethered = untethered.subscriber;
        self.world.subscriber_mut(untethered).set_skip_rate(1.0);
        self.publish_more(100);
        self.world
            .run_until("the untethered reader has lost its image", LONG, |world| {
                world.subscriber(untethered).ended().len() == 1
            });
        let pause = between(&mut self.world, Duration::ZERO, Duration::from_secs(8));
        self.world.run_for(pause);
    }

    /// Lets loose readers read again.
    pub(crate) fn wake(&mut self) {
        for untethered in self.readers.iter().filter(|it| it.is_untethered) {
            self.world
                .subscriber_mut(untethered.subscriber)
                .set_skip_rate(0.1);
        }
    }

    /// Adds a reader in place of another one.
    pub(crate) fn read_instead(&mut self, of: Reader) {
        let (world, kind, chance) = (&mut self.world, self.kind, self.chance);
        let reader = read(world, kind, chance, &self.hosts, of.host, of.is_untethered);
        self.readers.push(reader);
    }

    /// Checks that no image ended, except one of each loose reader.
    pub(crate) fn expect_first_images(&self) {
        for reader in &self.readers {
            let ended = self.world.subscriber(reader.subscriber).ended();
            let expected = usize::from(reader.is_untethered);
            assert_eq!(ended.len(), expected, "an image ended: {ended:?}");
        }
    }

    /// Starts the publisher again with a new client; where its last stream ended if the kind is resumed.
    pub(crate) fn publish_again(&mut self, messages: u64) {
        let key = self.world.publisher(self.publisher).key();
        let stream = key.and_then(|key| self.world.ledger().stream(&key));
        let from = stream.and_then(Stream::end).unwrap_or(0);
        self.writer = self.world.connect(self.hosts[0]);
        let (kind, readers) = (self.kind, self.readers.len());
        let (writer, chance) = (self.writer, self.chance);
        self.publisher = publish(&mut self.world, kind, chance, readers, writer, from);
        self.publish_to_all(messages);
    }

    pub(crate) fn publish_more(&mut self, messages: u64) {
        self.world
            .publisher_mut(self.publisher)
            .publish_more(messages);
    }

    /// Waits until all readers have an image.
    pub(crate) fn await_images(&mut self) {
        let readers = self.readers.clone();
        self.world.run_until("all have an image", LONG, |world| {
            let mut all = readers.iter();
            all.all(|it| world.subscriber(it.subscriber).images().next().is_some())
        });
    }

    /// Waits until all readers have everything from their join position, and checks the guarantees of the kind.
    pub(crate) fn await_all(&mut self) {
        self.wake();
        let readers = self.readers.iter();
        let flows: Vec<_> = readers.map(|it| (it.subscriber, self.publisher)).collect();
        await_all(&mut self.world, &flows);
        if self.kind == Kind::Tagged {
            self.await_receivers();
        }
        for reader in &self.readers {
            self.holds(reader);
        }
    }

    /// Waits until flow control counts exactly the readers: not the bystander, and dead readers only for a while.
    fn await_receivers(&mut self) {
        let (host, readers) = (self.hosts[0], self.readers.len() as i64);
        let key = self.world.publisher(self.publisher).key().unwrap();
        let name = format!(" {} {} ", key.session_id, key.stream_id);
        self.world
            .run_until("the tagged ones are counted", LONG, |world| {
                let counters = world.counters(host);
                let counter = counters.find(|meta| {
                    meta.type_id == type_id::FLOW_CONTROL_RECEIVERS && meta.label.contains(&name)
                });
                counter.and_then(|meta| counters.value(meta.id)) == Some(readers)
            });
    }

    /// Checks the guarantee of this kind for a reader.
    fn holds(&self, reader: &Reader) {
        let world = &self.world;
        let subscriber = world.subscriber(reader.subscriber);
        match self.kind {
            Kind::Session => {
                let sessions: Vec<_> = subscriber.images().map(|it| it.key().session_id).collect();
                assert_eq!(sessions, [SESSION], "another session was received");
            }
            Kind::Resumed => {
                let key = world.publisher(self.publisher).key().unwrap();
                assert_eq!(key.initial_term_id, INITIAL_TERM);
            }
            Kind::Timestamps => {
                let reserved_values = subscriber.reserved_values();
                let Some((least, most)) = reserved_values.range else {
                    panic!("no message has a time");
                };
                assert_eq!(reserved_values.missing, 0, "messages without a time");
                // The network's clock has a resolution of milliseconds.
                let began_ns = self.began_ns - 1_000_000;
                assert!(began_ns <= least && most <= world.epoch_nanos());
            }
            Kind::Cubic => {
                let counters = world.counters(self.hosts[reader.host]);
                let indicator = |name: &str| {
                    let named = |meta: &CounterMeta| {
                        meta.type_id == type_id::PER_IMAGE && meta.label.starts_with(name)
                    };
                    counters
                        .find(named)
                        .and_then(|meta| counters.value(meta.id))
                };
                let window = indicator("rcv-cc-cubic-wnd").expect("a window");
                // Whole datagrams, at most as many as fit into half a term.
                assert!(
                    (1_408..=32_768).contains(&window) && window % 1_408 == 0,
                    "{window}"
                );
                let round_trip_ns = indicator("rcv-cc-cubic-rtt").expect("a round trip");
                assert!(round_trip_ns > 0, "the round trip was never measured");
            }
            Kind::Unreliable => {
                let naks = world.system(self.hosts[reader.host], SystemCounter::NaksSent);
                assert_eq!(naks, 0, "something was asked for again");
            }
            _ => {}
        }
    }

    /// Ends the scenario: closes everything and checks that nothing is left.
    pub(crate) fn end(self) {
        super::common::end(self.world);
    }
}

fn read(
    world: &mut World,
    kind: Kind,
    chance: u64,
    hosts: &[HostIndex],
    host: usize,
    is_untethered: bool,
) -> Reader {
    let client = world.connect(hosts[host]);
    let subscriber = world.subscribe(client, kind.subscription(host, is_untethered, chance));
    Reader {
        host,
        client,
        subscriber,
        is_untethered,
    }
}

fn publish(
    world: &mut World,
    kind: Kind,
    chance: u64,
    readers: usize,
    client: ClientId,
    from: i64,
) -> PublisherId {
    if kind == Kind::Session {
        // A session without subscribers.
        let other = PublisherSpec::new(format!("{}|session-id=12", channel(1)), STREAM);
        world.publish(client, other.exclusive(true).messages(10));
    }
    // Only an exclusive publication may start in the middle of a stream.
    let exclusive = kind == Kind::Resumed || world.random().bool();
    let publication = kind.publication(readers, chance, from).exclusive(exclusive);
    let publication = if kind == Kind::Max {
        // Slow enough for lost messages to be retransmittable when the NAK arrives.
        publication.burst(2).pause(Duration::from_millis(10))
    } else {
        publication
    };
    world.publish(client, publication)
}
