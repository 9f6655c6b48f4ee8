// SPDX-License-Identifier: Apache-2.0
//! Random scenarios from seeds.
//!
//! Each scenario has a random fault profile: only some kinds of faults occur in it, so that some scenarios have nothing
//! but clock steps and others all faults at once.

use std::collections::BTreeMap;

use super::channel::{ChannelKind, ChannelSpec};
use super::definition::{HostConfig, STREAMS, Scenario, TimedOp};
use super::{LinkProfile, Op, Publish, RequestResponse};
use crate::Lengths;

/// Generator of one scenario, with the state that the operations so far lead to.
struct Generator {
    random: fastrand::Rng,
    hosts: usize,
    corrupts: bool,
    channels: Vec<ChannelSpec>,
    fault_profile: FaultProfile,
    now_ms: u64,
    ops: Vec<TimedOp>,
    labels: u32,
    clients: Vec<Client>,
    publishers: Vec<Publisher>,
    subscribers: Vec<Subscriber>,
    dead: Vec<usize>,
}

/// Kinds of faults that occur in a scenario.
struct FaultProfile {
    link_faults: bool,
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
    channel: usize,
}

#[derive(Clone, Copy)]
struct Subscriber {
    label: u32,
    client: u32,
    channel: usize,
}

impl Scenario {
    /// Generates the scenario of a seed.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        // Few hosts are more likely than many: more happens between any two of them then.
        let hosts = [2, 2, 3, 3, 4, 5, 6, 8][random.usize(0..8)];
        let corrupts = random.u32(0..12) == 0;
        let is_ipv6 = random.u32(0..6) == 0;
        let channels = random.usize(1..=hosts + 2);
        let mut channels: Vec<ChannelSpec> = (0..channels)
            .map(|number| ChannelSpec::random(number, hosts, is_ipv6, &mut random))
            .collect();
        align_reliable_parameters(&mut channels);
        let mut generator = Generator {
            fault_profile: FaultProfile::random(&mut random),
            hosts,
            corrupts,
            channels,
            now_ms: 0,
            ops: Vec::new(),
            labels: 0,
            clients: Vec::new(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            dead: Vec::new(),
            random: random.fork(),
        };
        generator.add_initial_ops();
        for _ in 0..random.usize(20..90) {
            generator.add_op();
        }
        Self {
            seed: random.u64(..),
            suite: STREAMS.to_owned(),
            idle_ms: [20, 50, 80][random.usize(0..3)],
            fine_per_mille: [0, 20, 50, 200][random.usize(0..4)],
            corrupts,
            hosts: (0..hosts)
                .map(|_| HostConfig::random(is_ipv6, &mut random))
                .collect(),
            ops: generator.ops,
        }
    }
}

/// Channels that share images get the same `reliable` parameter, because it is not known which of them creates an
/// image.
fn align_reliable_parameters(channels: &mut [ChannelSpec]) {
    for number in 1..channels.len() {
        let (before, rest) = channels.split_at_mut(number);
        let channel = &mut rest[0];
        if let Some(first) = before.iter().find(|it| it.shares_images_with(channel)) {
            channel.copy_reliable_from(first);
        }
    }
}

impl HostConfig {
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
        let clock_offset_ms = if random.u32(0..4) == 0 {
            random.u64(0..100_000_000)
        } else {
            0
        };
        Self {
            ipv6: is_ipv6,
            no_driver: false,
            large_sectors: false,
            clock_offset_ms,
            options,
        }
    }
}

impl FaultProfile {
    fn random(random: &mut fastrand::Rng) -> Self {
        let mut often = |of: u32| random.u32(0..of) != 0;
        Self {
            link_faults: often(5),
            cuts: !often(2),
            client_deaths: often(2),
            driver_deaths: !often(2),
            stalls: !often(2),
            clock_steps: !often(3),
        }
    }
}

impl Generator {
    // --- helpers ---

    fn push_op(&mut self, op: Op) {
        self.ops.push(TimedOp {
            at_ms: self.now_ms,
            op,
        });
    }

    fn next_label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.random.usize(0..from.len())])
    }

    fn any_host(&mut self) -> usize {
        self.random.usize(0..self.hosts)
    }

    /// Returns a random pause; most are short.
    fn pause(&mut self) -> u64 {
        let most = [1, 2, 100, 100, 1_000, 1_000, 5_000, 20_000][self.random.usize(0..8)];
        self.random.u64(0..most)
    }

    /// Returns a random client, on this host if one is given.
    fn client_on(&mut self, host: Option<usize>) -> Option<Client> {
        let here = |client: &&Client| host.is_none_or(|host| client.host == host);
        let clients: Vec<_> = self.clients.iter().filter(here).copied().collect();
        self.choose(&clients)
    }

    fn host_of(&self, client: u32) -> Option<usize> {
        let found = self.clients.iter().find(|it| it.label == client);
        found.map(|it| it.host)
    }

    fn forget_client(&mut self, client: u32) {
        self.clients.retain(|it| it.label != client);
        self.publishers.retain(|it| it.client != client);
        self.subscribers.retain(|it| it.client != client);
    }

    // --- operations ---

    fn add_initial_ops(&mut self) {
        if self.fault_profile.link_faults {
            self.change_link_faults();
        }
        for host in 0..self.hosts {
            for _ in 0..self.random.usize(1..4) {
                self.connect(host);
            }
        }
        self.now_ms = 300;
        for channel in 0..self.channels.len() {
            for _ in 0..self.random.usize(1..4) {
                self.subscribe(channel);
            }
            for _ in 0..self.random.usize(1..3) {
                self.publish(channel);
            }
        }
        self.now_ms = 500;
    }

    fn add_op(&mut self) {
        self.now_ms += self.pause();
        let channel = self.random.usize(0..self.channels.len());
        match self.random.u32(0..100) {
            0..12 => self.publish(channel),
            12..24 => self.subscribe(channel),
            24..34 => self.publish_more(),
            34..39 => self.end_publisher(),
            39..43 => self.end_subscriber(),
            43..48 => self.change_skip_rate(),
            48..54 => self.change_destinations(),
            54..57 => self.reject(),
            57..63 => {
                let host = self.any_host();
                self.connect(host);
            }
            63..66 => self.end_client(),
            66 => self.hold_claim(),
            67..71 => self.end_driver(),
            71..77 => self.start_driver(),
            77..82 => self.stall(),
            82..85 => self.step_clock(),
            85..91 => self.cut(),
            91..95 => self.heal(),
            _ if self.fault_profile.link_faults => self.change_link_faults(),
            _ => self.publish_more(),
        }
    }

    fn connect(&mut self, host: usize) {
        let label = self.next_label();
        self.push_op(Op::Connect {
            client: label,
            host,
        });
        self.clients.push(Client { label, host });
    }

    fn publish(&mut self, channel: usize) {
        let spec = self.channels[channel].clone();
        let Some(client) = self.client_on(spec.only_publisher_host()) else {
            return;
        };
        let publish = spec.publish(client.host, self.hosts, &mut self.random);
        let publish = self.traffic(publish, client.label);
        self.publishers.push(Publisher {
            label: publish.publisher,
            client: client.label,
            channel,
        });
        if spec.kind != ChannelKind::Response {
            self.push_op(Op::Publish(publish));
            return;
        }
        let label = self.next_label();
        let responses = super::Subscribe {
            subscriber: label,
            client: client.label,
            channel: spec.response_channel(),
            stream: spec.response_stream(),
            ..super::Subscribe::default()
        };
        self.subscribers.push(Subscriber {
            label,
            client: client.label,
            channel,
        });
        self.push_op(Op::Request(RequestResponse {
            responses,
            requests: publish,
        }));
        self.now_ms += self.pause();
        self.respond(channel);
    }

    /// Adds a response publication to a random subscriber to requests.
    fn respond(&mut self, channel: usize) {
        let spec = self.channels[channel].clone();
        let listeners: Vec<_> = self
            .subscribers
            .iter()
            .filter(|it| it.channel == channel)
            .copied()
            .collect();
        let at_home = |it: &Subscriber| self.host_of(it.client) == Some(spec.home);
        let listeners: Vec<_> = listeners.into_iter().filter(at_home).collect();
        let Some(listener) = self.choose(&listeners) else {
            return;
        };
        let publish = Publish {
            channel: spec.response_channel(),
            stream: spec.response_stream(),
            exclusive: self.random.bool(),
            ..Publish::default()
        };
        let publish = self.traffic(publish, listener.client);
        self.publishers.push(Publisher {
            label: publish.publisher,
            client: listener.client,
            channel,
        });
        self.push_op(Op::Respond {
            to: listener.label,
            publish,
        });
    }

    /// Completes a publication with its label and random traffic.
    fn traffic(&mut self, publish: Publish, client: u32) -> Publish {
        let lengths = [Lengths::Any, Lengths::Small, Lengths::Framed];
        Publish {
            publisher: self.next_label(),
            client,
            messages: self.random.u64(0..150),
            pause_ms: [0, 1, 10, 100][self.random.usize(0..4)],
            lengths: lengths[self.random.usize(0..3)],
            ..publish
        }
    }

    fn subscribe(&mut self, channel: usize) {
        let spec = self.channels[channel].clone();
        // Two subscriptions on one host would need the same sockets.
        let alone = spec.kind == ChannelKind::TwoPaths;
        if alone
            && self.subscribers.iter().any(|it| it.channel == channel)
            && self.random.u32(0..8) != 0
        {
            return;
        }
        let spies = spec.allows_spies() && self.random.u32(0..5) == 0;
        let host = if spies {
            spec.only_publisher_host()
        } else {
            spec.only_subscriber_host()
        };
        let Some(client) = self.client_on(host) else {
            return;
        };
        let mut subscribe = if spies {
            spec.spy(&mut self.random)
        } else {
            spec.subscribe(client.host, self.hosts, &mut self.random)
        };
        let label = self.next_label();
        (subscribe.subscriber, subscribe.client) = (label, client.label);
        subscribe.skip_per_mille = [0, 100, 500, 950][self.random.usize(0..4)];
        self.subscribers.push(Subscriber {
            label,
            client: client.label,
            channel,
        });
        self.push_op(Op::Subscribe(subscribe));
    }

    fn publish_more(&mut self) {
        if let Some(publisher) = self.choose(&self.publishers.clone()) {
            let messages = self.random.u64(1..100);
            self.push_op(Op::PublishMore {
                publisher: publisher.label,
                messages,
            });
        }
    }

    fn end_publisher(&mut self) {
        if let Some(Publisher {
            label: publisher, ..
        }) = self.choose(&self.publishers.clone())
        {
            self.publishers.retain(|it| it.label != publisher);
            let revokes = self.random.u32(0..3) == 0;
            self.push_op(if revokes {
                Op::Revoke { publisher }
            } else {
                Op::ClosePublisher { publisher }
            });
        }
    }

    fn end_subscriber(&mut self) {
        if let Some(Subscriber {
            label: subscriber, ..
        }) = self.choose(&self.subscribers.clone())
        {
            self.subscribers.retain(|it| it.label != subscriber);
            self.push_op(Op::CloseSubscriber { subscriber });
        }
    }

    /// Makes a subscriber slow, stalled, or fast again.
    fn change_skip_rate(&mut self) {
        if let Some(Subscriber {
            label: subscriber, ..
        }) = self.choose(&self.subscribers.clone())
        {
            let skip_per_mille = [0, 100, 900, 1_000, 1_000][self.random.usize(0..5)];
            self.push_op(Op::SetSkipRate {
                subscriber,
                skip_per_mille,
            });
        }
    }

    /// Adds or removes a destination or a source.
    fn change_destinations(&mut self) {
        let of = |kind: ChannelKind, channels: &[ChannelSpec], channel: usize| {
            channels[channel].kind == kind
        };
        let mut publishers = self.publishers.clone();
        publishers.retain(|it| of(ChannelKind::Manual, &self.channels, it.channel));
        let mut subscribers = self.subscribers.clone();
        subscribers.retain(|it| of(ChannelKind::TwoPaths, &self.channels, it.channel));
        let adds = self.random.bool();
        if self.random.bool() {
            let Some(Publisher {
                label: publisher,
                channel,
                ..
            }) = self.choose(&publishers)
            else {
                return;
            };
            let host = self.any_host();
            let channel = self.channels[channel].endpoint(host);
            self.push_op(if adds {
                Op::AddDestination { publisher, channel }
            } else {
                Op::RemoveDestination { publisher, channel }
            });
        } else {
            let Some(Subscriber {
                label: subscriber,
                channel,
                ..
            }) = self.choose(&subscribers)
            else {
                return;
            };
            let [first, second] = self.channels[channel].paths();
            let sources = [first, second, "aeron:ipc".to_owned()];
            let channel = sources[self.random.usize(0..3)].clone();
            self.push_op(if adds {
                Op::AddSource {
                    subscriber,
                    channel,
                }
            } else {
                Op::RemoveSource {
                    subscriber,
                    channel,
                }
            });
        }
    }

    fn reject(&mut self) {
        if let Some(Subscriber {
            label: subscriber, ..
        }) = self.choose(&self.subscribers.clone())
        {
            self.push_op(Op::Reject { subscriber });
        }
    }

    fn end_client(&mut self) {
        if !self.fault_profile.client_deaths {
            return;
        }
        if let Some(Client { label: client, .. }) = self.client_on(None) {
            self.forget_client(client);
            let closes = self.random.u32(0..3) == 0;
            self.push_op(if closes {
                Op::CloseClient { client }
            } else {
                Op::KillClient { client }
            });
        }
    }

    /// A client claims a message and is killed some time later.
    fn hold_claim(&mut self) {
        if !self.fault_profile.client_deaths {
            return;
        }
        if let Some(Publisher {
            label: publisher,
            client,
            ..
        }) = self.choose(&self.publishers.clone())
        {
            self.push_op(Op::HoldClaim { publisher });
            self.now_ms += self.pause();
            self.push_op(Op::KillClient { client });
            self.forget_client(client);
        }
    }

    fn end_driver(&mut self) {
        let host = self.any_host();
        if !self.fault_profile.driver_deaths || self.dead.contains(&host) {
            return;
        }
        match self.random.u32(0..4) {
            0 => {
                self.push_op(Op::Reboot { host });
                self.forget_clients_of(host);
                self.add_clients(host);
                return;
            }
            1 => self.push_op(Op::StopDriver { host }),
            _ => self.push_op(Op::KillDriver { host }),
        }
        self.dead.push(host);
    }

    /// Removes the clients of a host whose driver is gone.
    fn forget_clients_of(&mut self, host: usize) {
        let lost: Vec<_> = self
            .clients
            .iter()
            .filter(|it| it.host == host)
            .copied()
            .collect();
        for client in lost {
            self.forget_client(client.label);
        }
    }

    /// Adds clients to a new driver.
    fn add_clients(&mut self, host: usize) {
        for _ in 0..self.random.usize(1..3) {
            self.connect(host);
        }
        self.now_ms += 300 + self.pause();
        for _ in 0..4 {
            let channel = self.random.usize(0..self.channels.len());
            self.subscribe(channel);
            self.publish(channel);
        }
    }

    fn start_driver(&mut self) {
        let Some(host) = self.choose(&self.dead.clone()) else {
            return;
        };
        self.dead.retain(|it| *it != host);
        // The start may have to wait until the previous driver counts as dead.
        self.now_ms += self.random.u64(0..15_000);
        self.push_op(Op::StartDriver { host });
        self.forget_clients_of(host);
        self.now_ms += self.random.u64(0..15_000);
        self.add_clients(host);
    }

    fn stall(&mut self) {
        if !self.fault_profile.stalls {
            return;
        }
        let most = [100, 2_000, 14_000][self.random.usize(0..3)];
        let ms = self.random.u64(0..most);
        match self.random.u32(0..3) {
            0 => {
                let host = self.any_host();
                self.push_op(Op::StallHost { host, ms });
            }
            1 => {
                let host = self.any_host();
                self.push_op(Op::StallDriver { host, ms });
            }
            _ => {
                if let Some(Client { label: client, .. }) = self.client_on(None) {
                    self.push_op(Op::StallClient { client, ms });
                }
            }
        }
    }

    fn step_clock(&mut self) {
        if self.fault_profile.clock_steps {
            let host = self.any_host();
            let most = [100, 3_000, 30_000][self.random.usize(0..3)];
            let ms = self.random.i64(-most..=most);
            self.push_op(Op::StepClock { host, ms });
        }
    }

    fn cut(&mut self) {
        let (from, to) = (self.any_host(), self.any_host());
        if self.fault_profile.cuts && from != to {
            self.push_op(Op::Cut { from, to });
            if self.random.bool() {
                self.push_op(Op::Cut { from: to, to: from });
            }
        }
    }

    fn heal(&mut self) {
        if self.fault_profile.cuts {
            if self.random.bool() {
                self.push_op(Op::HealAll);
            } else {
                let (from, to) = (self.any_host(), self.any_host());
                self.push_op(Op::Heal { from, to });
            }
        }
    }

    fn change_link_faults(&mut self) {
        let profile = LinkProfile::random(&mut self.random, self.corrupts);
        match self.random.u32(0..6) {
            0 => self.push_op(Op::SetFaults(LinkProfile::default())),
            1..4 => self.push_op(Op::SetFaults(profile)),
            _ => {
                let (from, to) = (self.any_host(), self.any_host());
                let profile = self.random.bool().then_some(profile);
                self.push_op(Op::SetLinkFaults { from, to, profile });
            }
        }
    }
}
