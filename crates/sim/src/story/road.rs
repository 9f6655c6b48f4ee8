//! The kinds of ways on which messages can go in a random story, each with its channels and parameters.

use super::{Publish, Subscribe};

/// How messages get from one to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ipc,
    Unicast,
    Multicast,
    /// Receivers announce themselves.
    Dynamic,
    /// Destinations by command.
    Manual,
    /// Two paths to one subscription.
    TwoPaths,
    /// Requests and answers.
    Response,
}

const KINDS: [Kind; 7] = [
    Kind::Ipc,
    Kind::Unicast,
    Kind::Multicast,
    Kind::Dynamic,
    Kind::Manual,
    Kind::TwoPaths,
    Kind::Response,
];

/// A road: all who publish on it say the same parameters, and so do all who subscribe.
#[derive(Clone, Debug)]
pub(super) struct Road {
    pub(super) kind: Kind,
    number: usize,
    /// Where messages within a host are; where those of unicast go; where a sender with many destinations is.
    pub(super) home: usize,
    stream: i32,
    publishing: Vec<String>,
    subscribing: Vec<String>,
    /// Publishers say their session.
    sessions: bool,
    /// Some receivers wear the tag of the group.
    tagged: bool,
    /// Hosts have addresses of IPv6.
    is_ipv6: bool,
}

impl Road {
    pub(super) fn random(
        number: usize,
        hosts: usize,
        is_ipv6: bool,
        random: &mut fastrand::Rng,
    ) -> Self {
        let kind = match KINDS[random.usize(0..KINDS.len())] {
            // The socket of a publication that says no address at all is one of IPv4.
            Kind::Manual if is_ipv6 => Kind::Dynamic,
            Kind::TwoPaths if is_ipv6 => Kind::Multicast,
            kind => kind,
        };
        let mut road = Self {
            kind,
            number,
            home: random.usize(0..hosts),
            stream: if random.u32(0..4) == 0 {
                1_000
            } else {
                1_000 + number as i32
            },
            publishing: Vec::new(),
            subscribing: Vec::new(),
            // Each publication with destinations has a socket of its own, so no driver would notice two that say the same.
            sessions: random.u32(0..3) == 0
                && !matches!(kind, Kind::Response | Kind::Manual | Kind::TwoPaths),
            tagged: false,
            is_ipv6,
        };
        road.choose_publishing(random);
        road.choose_subscribing(random);
        road
    }

    fn choose_publishing(&mut self, random: &mut fastrand::Rng) {
        let said = &mut self.publishing;
        let one_of =
            |of: &[&str], random: &mut fastrand::Rng| of[random.usize(0..of.len())].to_owned();
        let mut maybe = |choices: &[&str], random: &mut fastrand::Rng| {
            if random.u32(0..3) == 0 {
                said.push(one_of(choices, random));
            }
        };
        // In the longest there is room for long trains, which are received straight into the log.
        maybe(
            &[
                "term-length=64k",
                "term-length=128k",
                "term-length=256k",
                "term-length=1m",
            ],
            random,
        );
        maybe(&["mtu=576", "mtu=1408", "mtu=4096", "mtu=8192"], random);
        maybe(&["pub-wnd=8k", "pub-wnd=32k"], random);
        maybe(&["sparse=true"], random);
        if self.kind == Kind::Ipc {
            return;
        }
        maybe(&["linger=0", "linger=100ms", "linger=8s"], random);
        maybe(&["ssc=true"], random);
        maybe(&["max-resend=3", "max-resend=64"], random);
        if random.u32(0..8) == 0 {
            said.push("eos=false".to_owned());
        }
        if matches!(
            self.kind,
            Kind::Multicast | Kind::Dynamic | Kind::Manual | Kind::TwoPaths
        ) {
            match random.u32(0..6) {
                0 => said.push("fc=max".to_owned()),
                1 => said.push("fc=min".to_owned()),
                2 => said.push("fc=min,g:/1,t:2s".to_owned()),
                3 => said.push("fc=min,g:/2".to_owned()),
                4 => {
                    said.push("fc=tagged,g:7,t:3s".to_owned());
                    self.tagged = true;
                }
                _ => {}
            }
        }
    }

    fn choose_subscribing(&mut self, random: &mut fastrand::Rng) {
        if self.kind == Kind::Ipc {
            return;
        }
        let said = &mut self.subscribing;
        let mut maybe = |choices: &[&str], random: &mut fastrand::Rng| {
            if random.u32(0..3) == 0 {
                said.push(choices[random.usize(0..choices.len())].to_owned());
            }
        };
        maybe(&["cc=cubic", "cc=static"], random);
        maybe(&["reliable=false", "reliable=true"], random);
        maybe(&["rcv-wnd=16k", "rcv-wnd=32k", "rcv-wnd=64k"], random);
        maybe(
            &["nak-delay=100us", "nak-delay=2ms", "nak-delay=50ms"],
            random,
        );
        maybe(&["group=true", "group=false"], random);
        if random.u32(0..12) == 0 {
            said.push("rejoin=false".to_owned());
        }
    }

    /// True if subscriptions to both are told of the same images.
    pub(super) fn shares_images_with(&self, other: &Self) -> bool {
        let shares_sockets = matches!(self.kind, Kind::Unicast | Kind::Multicast);
        shares_sockets && self.stream == other.stream && self.base() == other.base()
    }

    /// Repair or none, as another one says: an image is as its first subscription wants it, and subscriptions with and
    /// without a session may share it and want different things (`NetworkSubscriptionLink.matches`).
    pub(super) fn want_repair_as(&mut self, other: &Self) {
        let is_about_repair = |it: &&String| it.starts_with("reliable=");
        self.subscribing.retain(|it| !is_about_repair(&it));
        let said = other.subscribing.iter().filter(is_about_repair);
        self.subscribing.extend(said.cloned());
    }

    /// True if there is anything of it that can be spied on.
    pub(super) fn can_be_spied_on(&self) -> bool {
        matches!(self.kind, Kind::Unicast | Kind::Multicast | Kind::Dynamic)
    }

    /// Hosts on which one can publish; none for all.
    pub(super) fn publishes_from(&self) -> Option<usize> {
        matches!(self.kind, Kind::Ipc | Kind::Dynamic | Kind::Manual).then_some(self.home)
    }

    /// Hosts on which one can subscribe; none for all.
    pub(super) fn is_heard_on(&self) -> Option<usize> {
        let one = [Kind::Ipc, Kind::Unicast, Kind::TwoPaths, Kind::Response];
        one.contains(&self.kind).then_some(self.home)
    }

    /// The address of a host, at a port that is the road's own.
    fn own(&self, host: usize, base: usize) -> String {
        self.at(host, base + self.number)
    }

    fn at(&self, host: usize, port: usize) -> String {
        if self.is_ipv6 {
            format!("[fd00::{}]:{port}", host + 1)
        } else {
            format!("10.0.0.{}:{port}", host + 1)
        }
    }

    /// Where the road ends at a host.
    pub(super) fn end(&self, host: usize) -> String {
        format!("aeron:udp?endpoint={}", self.own(host, 40_700))
    }

    /// The two paths of a road that has them.
    pub(super) fn paths(&self) -> [String; 2] {
        [40_800, 40_900].map(|base| format!("aeron:udp?endpoint={}", self.own(self.home, base)))
    }

    fn base(&self) -> String {
        match self.kind {
            Kind::Ipc => "aeron:ipc".to_owned(),
            // Roads share sockets.
            Kind::Unicast => format!(
                "aeron:udp?endpoint={}",
                self.at(self.home, 40_123 + self.number % 2)
            ),
            Kind::Multicast if self.is_ipv6 => format!(
                "aeron:udp?endpoint=[ff02::2{}]:40300",
                1 + 2 * (self.number % 3)
            ),
            Kind::Multicast => format!(
                "aeron:udp?endpoint=224.20.30.{}:40300",
                1 + 2 * (self.number % 3)
            ),
            Kind::Dynamic => format!(
                "aeron:udp?control={}|control-mode=dynamic",
                self.own(self.home, 40_500)
            ),
            Kind::Manual | Kind::TwoPaths => "aeron:udp?control-mode=manual".to_owned(),
            Kind::Response => format!("aeron:udp?endpoint={}", self.own(self.home, 41_000)),
        }
    }

    /// The channel on which answers come.
    pub(super) fn answers(&self) -> String {
        format!(
            "aeron:udp?control-mode=response|control={}",
            self.own(self.home, 41_100)
        )
    }

    /// The stream of answers.
    pub(super) fn answer_stream(&self) -> i32 {
        self.stream + 500
    }

    /// A publication on this road, without its labels and what is published.
    pub(super) fn publish(&self, host: usize, hosts: usize, random: &mut fastrand::Rng) -> Publish {
        let mut said = self.publishing.clone();
        if self.sessions {
            said.push(format!("session-id={}", self.session(host)));
        }
        let destinations = match self.kind {
            Kind::Manual => (0..hosts)
                .filter(|_| random.u32(0..3) != 0)
                .map(|host| self.end(host))
                .collect(),
            Kind::TwoPaths => self.paths().to_vec(),
            _ => Vec::new(),
        };
        Publish {
            channel: with(&self.base(), &said),
            stream: self.stream,
            // Shared publications would share their destinations too.
            exclusive: !destinations.is_empty() || self.kind == Kind::Manual || random.bool(),
            destinations,
            ..Publish::default()
        }
    }

    /// A subscription on this road, without its labels.
    pub(super) fn subscribe(
        &self,
        host: usize,
        hosts: usize,
        random: &mut fastrand::Rng,
    ) -> Subscribe {
        let mut said = self.subscribing.clone();
        if random.u32(0..5) == 0 {
            said.push("tether=false".to_owned());
        }
        if self.tagged && random.u32(0..3) != 0 {
            said.push("gtag=7".to_owned());
        }
        if self.sessions && random.bool() {
            let of = self
                .publishes_from()
                .unwrap_or_else(|| random.usize(0..hosts));
            said.push(format!("session-id={}", self.session(of)));
        }
        let (base, sources) = match self.kind {
            Kind::Dynamic => {
                let control = self.own(self.home, 40_500);
                (
                    format!(
                        "aeron:udp?endpoint={}|control={control}",
                        self.own(host, 40_600)
                    ),
                    Vec::new(),
                )
            }
            Kind::Manual => (self.end(host), Vec::new()),
            Kind::TwoPaths => (self.base(), self.paths().to_vec()),
            _ => (self.base(), Vec::new()),
        };
        Subscribe {
            channel: with(&base, &said),
            stream: self.stream,
            sources,
            ..Subscribe::default()
        }
    }

    /// A spy on what is sent on this road.
    pub(super) fn spy(&self, random: &mut fastrand::Rng) -> Subscribe {
        let tether: &[String] = if random.u32(0..3) == 0 {
            &["tether=false".to_owned()]
        } else {
            &[]
        };
        Subscribe {
            channel: format!("aeron-spy:{}", with(&self.base(), tether)),
            stream: self.stream,
            ..Subscribe::default()
        }
    }

    fn session(&self, host: usize) -> i32 {
        (1_000 * (self.number + 1) + host) as i32
    }
}

/// A channel with parameters.
pub(super) fn with(channel: &str, parameters: &[String]) -> String {
    let mut text = channel.to_owned();
    for parameter in parameters {
        text.push(if text.contains('?') { '|' } else { '?' });
        text.push_str(parameter);
    }
    text
}
