//! Kinds of streams: what each asks for, who publishes and reads it, and what holds of it whatever happens.

use std::time::Duration;

use taran_protocol::counter::type_id;
use taran_sim::traffic::Stream;
use taran_sim::{
    ClientId, HostIndex, HostSpec, PublisherId, Publishing, SubscriberId, Subscribing, World,
    weather,
};

use super::common::{LONG, STREAM, await_all, channel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unicast,
    /// Groups under `min`: the group is multicast, or destinations by command, or by announcement.
    Multicast,
    Manual,
    Dynamic,
    /// Groups under `tagged` and `max`.
    Tagged,
    Max,
    /// One stream over two paths to subscriptions with two sources each.
    Sources,
    /// Readers on the publisher's host, and one elsewhere.
    Spies,
    Cubic,
    Untethered,
    Unreliable,
    /// A chosen session, beside another one of the same stream.
    Session,
    /// A stream that begins where another one ended.
    Resumed,
    /// Times of sending, of arrival and of receipt.
    Timestamps,
    Ipv6,
    Ipv6Group,
}

/// The session that is chosen.
const SESSION: i32 = -77;
/// The first term of a stream that was there before.
const INITIAL_TERM: i32 = i32::MAX - 1;

const GROUP: &str = "aeron:udp?endpoint=224.20.30.39:40123";
const IPV6_GROUP: &str = "aeron:udp?endpoint=[ff02::39]:40123";
const CONTROL: &str = "control=10.0.0.1:40200";
const MANUAL: &str = "aeron:udp?control-mode=manual";

impl Kind {
    /// Every reader is on a host of its own.
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

    fn host(self) -> HostSpec {
        match self {
            Self::Ipv6 | Self::Ipv6Group => HostSpec::new().ipv6(),
            Self::Cubic => {
                HostSpec::new().option("aeron.CubicCongestionControl.measureRtt", "true")
            }
            _ => HostSpec::new(),
        }
    }

    /// What a reader on this host asks for. `chance` chooses among what comes to the same.
    fn subscribing(self, host: usize, chance: u64) -> Subscribing {
        let own = channel(host);
        let text = match self {
            Self::Multicast | Self::Max => GROUP.to_owned(),
            Self::Dynamic => format!("{own}|{CONTROL}"),
            Self::Tagged => format!("{GROUP}|gtag=7"),
            Self::Spies if host == 0 => format!("aeron-spy:{}", channel(1)),
            Self::Unicast | Self::Resumed | Self::Manual | Self::Spies => own,
            Self::Sources => {
                let sources = Subscribing::new(MANUAL, STREAM);
                return sources.source(own).source(second_path(host));
            }
            Self::Cubic => format!("{own}|cc=cubic"),
            Self::Untethered => format!("{own}|tether=false"),
            Self::Unreliable => {
                return Subscribing::new(format!("{own}|reliable=false"), STREAM).lossy();
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
        Subscribing::new(text, STREAM)
    }

    /// What the publisher asks for, whose readers are so many. `from` is where its stream begins.
    fn publishing(self, readers: usize, chance: u64, from: i64) -> Publishing {
        let hosts = 1..=readers;
        // One may die.
        let required = readers - 1;
        let min = format!("fc=min,g:/{required},t:20s");
        let text = match self {
            Self::Multicast => format!("{GROUP}|{min}"),
            Self::Ipv6Group => format!("{IPV6_GROUP}|{min}"),
            Self::Tagged => format!("{GROUP}|fc=tagged,g:7/{required},t:20s"),
            Self::Max => format!("{GROUP}|fc=max"),
            Self::Dynamic => format!("aeron:udp?{CONTROL}|control-mode=dynamic|{min}"),
            Self::Manual => {
                let publishing = Publishing::new(format!("{MANUAL}|{min}"), STREAM);
                return hosts.fold(publishing, |it, host| it.destination(channel(host)));
            }
            Self::Sources => {
                let publishing = Publishing::new(format!("{MANUAL}|{min}"), STREAM);
                return hosts.fold(publishing, |it, host| {
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
        Publishing::new(text, STREAM)
    }
}

fn ipv6(host: usize) -> String {
    format!("aeron:udp?endpoint=[fd00::{}]:40123", host + 1)
}

fn second_path(host: usize) -> String {
    format!("aeron:udp?endpoint=10.0.0.{}:40124", host + 1)
}

/// A position as parameters of a channel.
fn beginning(position: i64) -> String {
    let (term, offset) = (position / 65_536, position % 65_536);
    let term_id = INITIAL_TERM.wrapping_add(term as i32);
    format!(
        "session-id={SESSION}|init-term-id={INITIAL_TERM}|term-id={term_id}|term-offset={offset}"
    )
}

/// Who reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) host: usize,
    pub(crate) client: ClientId,
    pub(crate) subscriber: SubscriberId,
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
    /// In weather that is foul, or only fair.
    pub(crate) fn new(seed: u64, kind: Kind, readers: usize, messages: u64) -> Self {
        let mut world = World::new(seed);
        let random = world.random();
        let faults = if random.bool() {
            weather::fair(random)
        } else {
            weather::foul(random)
        };
        world.set_faults(faults);
        Self::within(world, kind, readers, messages)
    }

    /// In a world that has no hosts yet.
    pub(crate) fn within(mut world: World, kind: Kind, readers: usize, messages: u64) -> Self {
        let hosts = 1 + if kind.is_group() { readers } else { 1 };
        let hosts: Vec<_> = (0..hosts).map(|_| world.add_host(kind.host())).collect();
        let chance = world.random().u64(..);
        let began_ns = world.epoch_nanos();
        let writer = world.connect(hosts[0]);
        let places = (0..readers).map(|index| match kind {
            _ if kind.is_group() => index + 1,
            // The last one is elsewhere.
            Kind::Spies if index + 1 < readers => 0,
            _ => 1,
        });
        let places: Vec<_> = places.collect();
        let readers: Vec<_> = places
            .iter()
            .map(|host| read(&mut world, kind, chance, &hosts, *host))
            .collect();
        // Under `max` nobody is waited for, and nobody waits: those who are not there miss what is sent.
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

    /// Publishes when everybody is there and was heard: who comes late misses what is not waited for, and falls out of what
    /// can be repaired while spies let their publisher run.
    pub(crate) fn publish_to_all(&mut self, messages: u64) {
        self.await_images();
        self.world.run_for(Duration::from_secs(2));
        self.more(messages);
    }

    /// One more reader.
    pub(crate) fn read(&mut self, host: usize) -> Reader {
        let reader = read(&mut self.world, self.kind, self.chance, &self.hosts, host);
        self.readers.push(reader);
        reader
    }

    /// The publisher begins anew, on a client of its own; where its last stream ended, if the kind is about that.
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

    pub(crate) fn more(&mut self, messages: u64) {
        self.world.publisher_mut(self.publisher).more(messages);
    }

    /// All readers have an image.
    pub(crate) fn await_images(&mut self) {
        let readers = self.readers.clone();
        self.world.run_until("all have an image", LONG, |world| {
            let mut all = readers.iter();
            all.all(|it| world.subscriber(it.subscriber).images().next().is_some())
        });
    }

    /// All readers have everything from where they joined, and what the kind is about is true.
    pub(crate) fn await_all(&mut self) {
        let readers = self.readers.iter();
        let flows: Vec<_> = readers.map(|it| (it.subscriber, self.publisher)).collect();
        await_all(&mut self.world, &flows);
        for reader in &self.readers {
            self.holds(reader);
        }
    }

    /// What this kind is about.
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
                let stamps = subscriber.stamps();
                let Some((least, most)) = stamps.range else {
                    panic!("no message has a time");
                };
                assert_eq!(stamps.missing, 0, "messages without a time");
                // The network's clock shows milliseconds.
                let began_ns = self.began_ns - 1_000_000;
                assert!(began_ns <= least && most <= world.epoch_nanos());
            }
            Kind::Cubic => {
                let counters = world.counters(self.hosts[reader.host]);
                let window = counters.find(|meta| {
                    meta.type_id == type_id::PER_IMAGE && meta.label.starts_with("rcv-cc-cubic-wnd")
                });
                let window = window.and_then(|meta| counters.value(meta.id));
                assert!(window.is_some_and(|window| window > 0), "{window:?}");
            }
            _ => {}
        }
    }

    /// Ends the story: closes all and looks for what is left.
    pub(crate) fn end(self) {
        super::common::end(self.world);
    }
}

fn read(world: &mut World, kind: Kind, chance: u64, hosts: &[HostIndex], host: usize) -> Reader {
    let client = world.connect(hosts[host]);
    let subscriber = world.subscribe(client, kind.subscribing(host, chance));
    Reader {
        host,
        client,
        subscriber,
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
        // Nobody wants this one.
        let other = Publishing::new(format!("{}|session-id=12", channel(1)), STREAM);
        world.publish(client, other.exclusive(true).messages(10));
    }
    // Only an exclusive publication may begin in the middle of a stream.
    let exclusive = kind == Kind::Resumed || world.random().bool();
    let publishing = kind.publishing(readers, chance, from).exclusive(exclusive);
    let publishing = if kind == Kind::Max {
        // Slowly enough for what is lost to be still there when it is asked for again.
        publishing.burst(2).pause(Duration::from_millis(10))
    } else {
        publishing
    };
    world.publish(client, publishing)
}
