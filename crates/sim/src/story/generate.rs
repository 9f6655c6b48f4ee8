//! Stories from seeds.
//!
//! Each has its own temper: of the kinds of disturbances only some occur in it, so that there are stories of nothing but
//! clock steps as well as stories of everything at once.

use std::collections::BTreeMap;

use super::plan::{HostPlan, Plan, Timed};
use super::road::{Kind, Road};
use super::{Ask, Deed, Publish, Weather};
use crate::Lengths;

/// Who writes a story, and what it believes of how things stand.
struct Author {
    random: fastrand::Rng,
    hosts: usize,
    corrupts: bool,
    roads: Vec<Road>,
    temper: Temper,
    now_ms: u64,
    events: Vec<Timed>,
    labels: u32,
    clients: Vec<Client>,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    dead: Vec<usize>,
}

/// Which disturbances occur.
struct Temper {
    weather: bool,
    cuts: bool,
    client_deaths: bool,
    driver_deaths: bool,
    stalls: bool,
    clock_steps: bool,
}

#[derive(Clone, Copy)]
struct Client {
    label: u32,
    host: usize,
}

#[derive(Clone, Copy)]
struct Publisher {
    label: u32,
    client: u32,
    road: usize,
}

#[derive(Clone, Copy)]
struct Subscriber {
    label: u32,
    client: u32,
    road: usize,
}

impl Plan {
    /// The story of a seed.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        // Few hosts oftener than many: more happens between any two of them then.
        let hosts = [2, 2, 3, 3, 4, 5, 6, 8][random.usize(0..8)];
        let corrupts = random.u32(0..12) == 0;
        let is_ipv6 = random.u32(0..6) == 0;
        let roads = random.usize(1..=hosts + 2);
        let mut roads: Vec<Road> = (0..roads)
            .map(|number| Road::random(number, hosts, is_ipv6, &mut random))
            .collect();
        agree_on_repair(&mut roads);
        let mut author = Author {
            temper: Temper::random(&mut random),
            hosts,
            corrupts,
            roads,
            now_ms: 0,
            events: Vec::new(),
            labels: 0,
            clients: Vec::new(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            dead: Vec::new(),
            random: random.fork(),
        };
        author.begin();
        for _ in 0..random.usize(20..90) {
            author.act();
        }
        Self {
            seed: random.u64(..),
            idle_ms: [20, 50, 80][random.usize(0..3)],
            fine: [0, 20, 50, 200][random.usize(0..4)],
            corrupts,
            hosts: (0..hosts)
                .map(|_| HostPlan::random(is_ipv6, &mut random))
                .collect(),
            events: author.events,
        }
    }
}

/// Those who share images want the same, as which of them comes first is not known.
fn agree_on_repair(roads: &mut [Road]) {
    for number in 1..roads.len() {
        let (before, rest) = roads.split_at_mut(number);
        let road = &mut rest[0];
        if let Some(first) = before.iter().find(|it| it.shares_images_with(road)) {
            road.want_repair_as(first);
        }
    }
}

impl HostPlan {
    fn random(is_ipv6: bool, random: &mut fastrand::Rng) -> Self {
        let mut options = BTreeMap::new();
        let mut set = |name: &str, value: &str| options.insert(name.to_owned(), value.to_owned());
        let lengths = ["64k", "64k", "128k"];
        set("aeron.term.buffer.length", lengths[random.usize(0..3)]);
        set("aeron.ipc.term.buffer.length", lengths[random.usize(0..3)]);
        if random.u32(0..4) == 0 {
            set("aeron.mtu.length", ["1024", "4096"][random.usize(0..2)]);
        }
        if random.u32(0..6) == 0 {
            set("aeron.socket.so_rcvbuf", "64k");
            set("aeron.rcv.initial.window.length", "16k");
        }
        let ahead_ms = if random.u32(0..4) == 0 {
            random.u64(0..100_000_000)
        } else {
            0
        };
        Self {
            ipv6: is_ipv6,
            ahead_ms,
            options,
        }
    }
}

impl Temper {
    fn random(random: &mut fastrand::Rng) -> Self {
        let mut often = |of: u32| random.u32(0..of) != 0;
        Self {
            weather: often(5),
            cuts: !often(2),
            client_deaths: often(2),
            driver_deaths: !often(2),
            stalls: !often(2),
            clock_steps: !often(3),
        }
    }
}

impl Author {
    // --- helpers ---

    fn write(&mut self, deed: Deed) {
        self.events.push(Timed {
            at_ms: self.now_ms,
            deed,
        });
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.random.usize(0..from.len())])
    }

    fn any_host(&mut self) -> usize {
        self.random.usize(0..self.hosts)
    }

    /// Mostly short.
    fn pause(&mut self) -> u64 {
        let most = [1, 2, 100, 100, 1_000, 1_000, 5_000, 20_000][self.random.usize(0..8)];
        self.random.u64(0..most)
    }

    /// A client, on this host if one is given.
    fn client_on(&mut self, host: Option<usize>) -> Option<Client> {
        let here = |client: &&Client| host.is_none_or(|host| client.host == host);
        let clients: Vec<_> = self.clients.iter().filter(here).copied().collect();
        self.pick(&clients)
    }

    fn host_of(&self, client: u32) -> Option<usize> {
        let found = self.clients.iter().find(|it| it.label == client);
        found.map(|it| it.host)
    }

    fn forget(&mut self, client: u32) {
        self.clients.retain(|it| it.label != client);
        self.publishers.retain(|it| it.client != client);
        self.subscribers.retain(|it| it.client != client);
    }

    // --- the story ---

    fn begin(&mut self) {
        if self.temper.weather {
            self.change_weather();
        }
        for host in 0..self.hosts {
            for _ in 0..self.random.usize(1..4) {
                self.connect(host);
            }
        }
        self.now_ms = 300;
        for road in 0..self.roads.len() {
            for _ in 0..self.random.usize(1..4) {
                self.subscribe(road);
            }
            for _ in 0..self.random.usize(1..3) {
                self.publish(road);
            }
        }
        self.now_ms = 500;
    }

    fn act(&mut self) {
        self.now_ms += self.pause();
        let road = self.random.usize(0..self.roads.len());
        match self.random.u32(0..100) {
            0..12 => self.publish(road),
            12..24 => self.subscribe(road),
            24..34 => self.more(),
            34..39 => self.end_publisher(),
            39..43 => self.end_subscriber(),
            43..48 => self.change_laziness(),
            48..54 => self.change_addresses(),
            54..57 => self.reject(),
            57..63 => {
                let host = self.any_host();
                self.connect(host);
            }
            63..66 => self.end_client(),
            66 => self.hold(),
            67..71 => self.end_driver(),
            71..77 => self.start_driver(),
            77..82 => self.stall(),
            82..85 => self.step_clock(),
            85..91 => self.cut(),
            91..95 => self.heal(),
            _ if self.temper.weather => self.change_weather(),
            _ => self.more(),
        }
    }

    fn connect(&mut self, host: usize) {
        let label = self.label();
        self.write(Deed::Connect {
            client: label,
            host,
        });
        self.clients.push(Client { label, host });
    }

    fn publish(&mut self, road: usize) {
        let way = self.roads[road].clone();
        let Some(client) = self.client_on(way.publishes_from()) else {
            return;
        };
        let publish = way.publish(client.host, self.hosts, &mut self.random);
        let publish = self.traffic(publish, client.label);
        self.publishers.push(Publisher {
            label: publish.publisher,
            client: client.label,
            road,
        });
        if way.kind != Kind::Response {
            self.write(Deed::Publish(publish));
            return;
        }
        let label = self.label();
        let answers = super::Subscribe {
            subscriber: label,
            client: client.label,
            channel: way.answers(),
            stream: way.answer_stream(),
            ..super::Subscribe::default()
        };
        self.subscribers.push(Subscriber {
            label,
            client: client.label,
            road,
        });
        self.write(Deed::Ask(Ask {
            answers,
            requests: publish,
        }));
        self.now_ms += self.pause();
        self.answer(road);
    }

    /// Somebody who hears requests answers.
    fn answer(&mut self, road: usize) {
        let way = self.roads[road].clone();
        let hearing: Vec<_> = self
            .subscribers
            .iter()
            .filter(|it| it.road == road)
            .copied()
            .collect();
        let at_home = |it: &Subscriber| self.host_of(it.client) == Some(way.home);
        let hearing: Vec<_> = hearing.into_iter().filter(at_home).collect();
        let Some(hearer) = self.pick(&hearing) else {
            return;
        };
        let publish = Publish {
            channel: way.answers(),
            stream: way.answer_stream(),
            exclusive: self.random.bool(),
            ..Publish::default()
        };
        let publish = self.traffic(publish, hearer.client);
        self.publishers.push(Publisher {
            label: publish.publisher,
            client: hearer.client,
            road,
        });
        self.write(Deed::Answer {
            to: hearer.label,
            publish,
        });
    }

    /// Who publishes, and how much.
    fn traffic(&mut self, publish: Publish, client: u32) -> Publish {
        let lengths = [Lengths::Any, Lengths::Small, Lengths::Framed];
        Publish {
            publisher: self.label(),
            client,
            messages: self.random.u64(0..150),
            pause_ms: [0, 1, 10, 100][self.random.usize(0..4)],
            lengths: lengths[self.random.usize(0..3)],
            ..publish
        }
    }

    fn subscribe(&mut self, road: usize) {
        let way = self.roads[road].clone();
        // Two on one host would want the same sockets.
        let alone = way.kind == Kind::TwoPaths;
        if alone && self.subscribers.iter().any(|it| it.road == road) && self.random.u32(0..8) != 0
        {
            return;
        }
        let spies = way.can_be_spied_on() && self.random.u32(0..5) == 0;
        let host = if spies {
            way.publishes_from()
        } else {
            way.is_heard_on()
        };
        let Some(client) = self.client_on(host) else {
            return;
        };
        let mut subscribe = if spies {
            way.spy(&mut self.random)
        } else {
            way.subscribe(client.host, self.hosts, &mut self.random)
        };
        let label = self.label();
        (subscribe.subscriber, subscribe.client) = (label, client.label);
        subscribe.laziness = [0, 100, 500, 950][self.random.usize(0..4)];
        self.subscribers.push(Subscriber {
            label,
            client: client.label,
            road,
        });
        self.write(Deed::Subscribe(subscribe));
    }

    fn more(&mut self) {
        if let Some(publisher) = self.pick(&self.publishers.clone()) {
            let messages = self.random.u64(1..100);
            self.write(Deed::More {
                publisher: publisher.label,
                messages,
            });
        }
    }

    fn end_publisher(&mut self) {
        if let Some(Publisher {
            label: publisher, ..
        }) = self.pick(&self.publishers.clone())
        {
            self.publishers.retain(|it| it.label != publisher);
            let revokes = self.random.u32(0..3) == 0;
            self.write(if revokes {
                Deed::Revoke { publisher }
            } else {
                Deed::ClosePublisher { publisher }
            });
        }
    }

    fn end_subscriber(&mut self) {
        if let Some(Subscriber {
            label: subscriber, ..
        }) = self.pick(&self.subscribers.clone())
        {
            self.subscribers.retain(|it| it.label != subscriber);
            self.write(Deed::CloseSubscriber { subscriber });
        }
    }

    /// Slow, stalled, and quick again.
    fn change_laziness(&mut self) {
        if let Some(Subscriber {
            label: subscriber, ..
        }) = self.pick(&self.subscribers.clone())
        {
            let laziness = [0, 100, 900, 1_000, 1_000][self.random.usize(0..5)];
            self.write(Deed::Laziness {
                subscriber,
                laziness,
            });
        }
    }

    /// A destination or a source comes or goes.
    fn change_addresses(&mut self) {
        let of = |kind: Kind, roads: &[Road], road: usize| roads[road].kind == kind;
        let mut publishers = self.publishers.clone();
        publishers.retain(|it| of(Kind::Manual, &self.roads, it.road));
        let mut subscribers = self.subscribers.clone();
        subscribers.retain(|it| of(Kind::TwoPaths, &self.roads, it.road));
        let adds = self.random.bool();
        if self.random.bool() {
            let Some(Publisher {
                label: publisher,
                road,
                ..
            }) = self.pick(&publishers)
            else {
                return;
            };
            let host = self.any_host();
            let channel = self.roads[road].end(host);
            self.write(if adds {
                Deed::AddDestination { publisher, channel }
            } else {
                Deed::RemoveDestination { publisher, channel }
            });
        } else {
            let Some(Subscriber {
                label: subscriber,
                road,
                ..
            }) = self.pick(&subscribers)
            else {
                return;
            };
            let [first, second] = self.roads[road].paths();
            let sources = [first, second, "aeron:ipc".to_owned()];
            let channel = sources[self.random.usize(0..3)].clone();
            self.write(if adds {
                Deed::AddSource {
                    subscriber,
                    channel,
                }
            } else {
                Deed::RemoveSource {
                    subscriber,
                    channel,
                }
            });
        }
    }

    fn reject(&mut self) {
        if let Some(Subscriber {
            label: subscriber, ..
        }) = self.pick(&self.subscribers.clone())
        {
            self.write(Deed::Reject { subscriber });
        }
    }

    fn end_client(&mut self) {
        if !self.temper.client_deaths {
            return;
        }
        if let Some(Client { label: client, .. }) = self.client_on(None) {
            self.forget(client);
            let closes = self.random.u32(0..3) == 0;
            self.write(if closes {
                Deed::CloseClient { client }
            } else {
                Deed::KillClient { client }
            });
        }
    }

    /// A client claims room for a message, and is killed some time later.
    fn hold(&mut self) {
        if !self.temper.client_deaths {
            return;
        }
        if let Some(Publisher {
            label: publisher,
            client,
            ..
        }) = self.pick(&self.publishers.clone())
        {
            self.write(Deed::Hold { publisher });
            self.now_ms += self.pause();
            self.write(Deed::KillClient { client });
            self.forget(client);
        }
    }

    fn end_driver(&mut self) {
        let host = self.any_host();
        if !self.temper.driver_deaths || self.dead.contains(&host) {
            return;
        }
        match self.random.u32(0..4) {
            0 => {
                self.write(Deed::Reboot { host });
                self.desert(host);
                self.settle(host);
                return;
            }
            1 => self.write(Deed::StopDriver { host }),
            _ => self.write(Deed::KillDriver { host }),
        }
        self.dead.push(host);
    }

    /// The clients of a host have lost their driver.
    fn desert(&mut self, host: usize) {
        let lost: Vec<_> = self
            .clients
            .iter()
            .filter(|it| it.host == host)
            .copied()
            .collect();
        for client in lost {
            self.forget(client.label);
        }
    }

    /// A new driver has new clients.
    fn settle(&mut self, host: usize) {
        for _ in 0..self.random.usize(1..3) {
            self.connect(host);
        }
        self.now_ms += 300 + self.pause();
        for _ in 0..4 {
            let road = self.random.usize(0..self.roads.len());
            self.subscribe(road);
            self.publish(road);
        }
    }

    fn start_driver(&mut self) {
        let Some(host) = self.pick(&self.dead.clone()) else {
            return;
        };
        self.dead.retain(|it| *it != host);
        // Sometimes it has to wait until the one before counts as dead.
        self.now_ms += self.random.u64(0..15_000);
        self.write(Deed::StartDriver { host });
        self.desert(host);
        self.now_ms += self.random.u64(0..15_000);
        self.settle(host);
    }

    fn stall(&mut self) {
        if !self.temper.stalls {
            return;
        }
        let most = [100, 2_000, 14_000][self.random.usize(0..3)];
        let ms = self.random.u64(0..most);
        match self.random.u32(0..3) {
            0 => {
                let host = self.any_host();
                self.write(Deed::StallHost { host, ms });
            }
            1 => {
                let host = self.any_host();
                self.write(Deed::StallDriver { host, ms });
            }
            _ => {
                if let Some(Client { label: client, .. }) = self.client_on(None) {
                    self.write(Deed::StallClient { client, ms });
                }
            }
        }
    }

    fn step_clock(&mut self) {
        if self.temper.clock_steps {
            let host = self.any_host();
            let most = [100, 3_000, 30_000][self.random.usize(0..3)];
            let ms = self.random.i64(-most..=most);
            self.write(Deed::StepClock { host, ms });
        }
    }

    fn cut(&mut self) {
        let (from, to) = (self.any_host(), self.any_host());
        if self.temper.cuts && from != to {
            self.write(Deed::Cut { from, to });
            if self.random.bool() {
                self.write(Deed::Cut { from: to, to: from });
            }
        }
    }

    fn heal(&mut self) {
        if self.temper.cuts {
            if self.random.bool() {
                self.write(Deed::HealAll);
            } else {
                let (from, to) = (self.any_host(), self.any_host());
                self.write(Deed::Heal { from, to });
            }
        }
    }

    fn change_weather(&mut self) {
        let weather = Weather::random(&mut self.random, self.corrupts);
        match self.random.u32(0..6) {
            0 => self.write(Deed::Weather(Weather::default())),
            1..4 => self.write(Deed::Weather(weather)),
            _ => {
                let (from, to) = (self.any_host(), self.any_host());
                let weather = self.random.bool().then_some(weather);
                self.write(Deed::Link { from, to, weather });
            }
        }
    }
}
