// SPDX-License-Identifier: Apache-2.0
//! Channels of random scenarios with their parameters.

use super::{Publish, Subscribe};

/// Kind of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelKind {
    Ipc,
    Unicast,
    Multicast,
    /// Dynamic destinations (receivers announce themselves).
    Dynamic,
    /// Manual destinations.
    Manual,
    /// Two destinations and two sources of one subscription.
    TwoPaths,
    /// Requests and responses.
    Response,
}

const KINDS: [ChannelKind; 7] = [
    ChannelKind::Ipc,
    ChannelKind::Unicast,
    ChannelKind::Multicast,
    ChannelKind::Dynamic,
    ChannelKind::Manual,
    ChannelKind::TwoPaths,
    ChannelKind::Response,
];

/// A channel with its parameters: all publications on it use the same ones, and so do all subscriptions.
#[derive(Clone, Debug)]
pub(super) struct ChannelSpec {
    pub(super) kind: ChannelKind,
    number: usize,
    /// Host of IPC streams, receiver of unicast streams, or sender with several destinations.
    pub(super) home: usize,
    stream: i32,
    publisher_parameters: Vec<String>,
    subscriber_parameters: Vec<String>,
    /// Publications set a session id.
    sets_session_id: bool,
    /// Some receivers have the tag of the group.
    tagged: bool,
    /// Hosts have IPv6 addresses.
    is_ipv6: bool,
}

impl ChannelSpec {
    pub(super) fn random(
        number: usize,
        hosts: usize,
        is_ipv6: bool,
        random: &mut fastrand::Rng,
    ) -> Self {
        let kind = match KINDS[random.usize(0..KINDS.len())] {
            // The socket of a publication without an address is an IPv4 socket.
            ChannelKind::Manual if is_ipv6 => ChannelKind::Dynamic,
            ChannelKind::TwoPaths if is_ipv6 => ChannelKind::Multicast,
            kind => kind,
        };
        let mut spec = Self {
            kind,
            number,
            home: random.usize(0..hosts),
            stream: if random.u32(0..4) == 0 {
                1_000
            } else {
                1_000 + number as i32
            },
            publisher_parameters: Vec::new(),
            subscriber_parameters: Vec::new(),
            // Publications with manual destinations have a socket each, so drivers do not detect equal session ids.
            sets_session_id: random.u32(0..3) == 0
                && !matches!(
                    kind,
                    ChannelKind::Response | ChannelKind::Manual | ChannelKind::TwoPaths
                ),
            tagged: false,
            is_ipv6,
        };
        spec.choose_publisher_parameters(random);
        spec.choose_subscriber_parameters(random);
        spec
    }

    fn choose_publisher_parameters(&mut self, random: &mut fastrand::Rng) {
        let parameters = &mut self.publisher_parameters;
        let one_of =
            |of: &[&str], random: &mut fastrand::Rng| of[random.usize(0..of.len())].to_owned();
        let mut maybe = |choices: &[&str], random: &mut fastrand::Rng| {
            if random.u32(0..3) == 0 {
                parameters.push(one_of(choices, random));
            }
        };
        // The longest terms have room for long segment runs, which are received directly into the log.
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
        if self.kind == ChannelKind::Ipc {
            return;
        }
        maybe(&["linger=0", "linger=100ms", "linger=8s"], random);
        maybe(&["ssc=true"], random);
        maybe(&["max-resend=3", "max-resend=64"], random);
        if random.u32(0..8) == 0 {
            parameters.push("eos=false".to_owned());
        }
        if matches!(
            self.kind,
            ChannelKind::Multicast
                | ChannelKind::Dynamic
                | ChannelKind::Manual
                | ChannelKind::TwoPaths
        ) {
            match random.u32(0..6) {
                0 => parameters.push("fc=max".to_owned()),
                1 => parameters.push("fc=min".to_owned()),
                2 => parameters.push("fc=min,g:/1,t:2s".to_owned()),
                3 => parameters.push("fc=min,g:/2".to_owned()),
                4 => {
                    parameters.push("fc=tagged,g:7,t:3s".to_owned());
                    self.tagged = true;
                }
                _ => {}
            }
        }
    }

    fn choose_subscriber_parameters(&mut self, random: &mut fastrand::Rng) {
        if self.kind == ChannelKind::Ipc {
            return;
        }
        let parameters = &mut self.subscriber_parameters;
        let mut maybe = |choices: &[&str], random: &mut fastrand::Rng| {
            if random.u32(0..3) == 0 {
                parameters.push(choices[random.usize(0..choices.len())].to_owned());
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
            parameters.push("rejoin=false".to_owned());
        }
    }

    /// Returns true if subscriptions to both share images.
    pub(super) fn shares_images_with(&self, other: &Self) -> bool {
        let shares_sockets = matches!(self.kind, ChannelKind::Unicast | ChannelKind::Multicast);
        shares_sockets && self.stream == other.stream && self.base() == other.base()
    }

    /// Copies the `reliable` parameter of another channel: an image gets that of its first subscription, and
    /// subscriptions with and without a session id may share the image (`NetworkSubscriptionLink.matches`).
    pub(super) fn copy_reliable_from(&mut self, other: &Self) {
        let is_reliable_parameter = |it: &&String| it.starts_with("reliable=");
        self.subscriber_parameters
            .retain(|it| !is_reliable_parameter(&it));
        let parameters = other
            .subscriber_parameters
            .iter()
            .filter(is_reliable_parameter);
        self.subscriber_parameters.extend(parameters.cloned());
    }

    /// Returns true if spies can subscribe to it.
    pub(super) fn allows_spies(&self) -> bool {
        matches!(
            self.kind,
            ChannelKind::Unicast | ChannelKind::Multicast | ChannelKind::Dynamic
        )
    }

    /// Returns the only host that can publish, or `None` if all can.
    pub(super) fn only_publisher_host(&self) -> Option<usize> {
        matches!(
            self.kind,
            ChannelKind::Ipc | ChannelKind::Dynamic | ChannelKind::Manual
        )
        .then_some(self.home)
    }

    /// Returns the only host that can subscribe, or `None` if all can.
    pub(super) fn only_subscriber_host(&self) -> Option<usize> {
        let kinds = [
            ChannelKind::Ipc,
            ChannelKind::Unicast,
            ChannelKind::TwoPaths,
            ChannelKind::Response,
        ];
        kinds.contains(&self.kind).then_some(self.home)
    }

    /// Returns the address of a host at a port that only this channel uses.
    fn own_address(&self, host: usize, base: usize) -> String {
        self.at(host, base + self.number)
    }

    fn at(&self, host: usize, port: usize) -> String {
        if self.is_ipv6 {
            format!("[fd00::{}]:{port}", host + 1)
        } else {
            format!("10.0.0.{}:{port}", host + 1)
        }
    }

    /// Returns the endpoint channel of a host.
    pub(super) fn endpoint(&self, host: usize) -> String {
        format!("aeron:udp?endpoint={}", self.own_address(host, 40_700))
    }

    /// Returns the two endpoint channels of a channel with two paths.
    pub(super) fn paths(&self) -> [String; 2] {
        [40_800, 40_900]
            .map(|base| format!("aeron:udp?endpoint={}", self.own_address(self.home, base)))
    }

    fn base(&self) -> String {
        match self.kind {
            ChannelKind::Ipc => "aeron:ipc".to_owned(),
            // Unicast channels share sockets.
            ChannelKind::Unicast => format!(
                "aeron:udp?endpoint={}",
                self.at(self.home, 40_123 + self.number % 2)
            ),
            ChannelKind::Multicast if self.is_ipv6 => format!(
                "aeron:udp?endpoint=[ff02::2{}]:40300",
                1 + 2 * (self.number % 3)
            ),
            ChannelKind::Multicast => format!(
                "aeron:udp?endpoint=224.20.30.{}:40300",
                1 + 2 * (self.number % 3)
            ),
            ChannelKind::Dynamic => format!(
                "aeron:udp?control={}|control-mode=dynamic",
                self.own_address(self.home, 40_500)
            ),
            ChannelKind::Manual | ChannelKind::TwoPaths => {
                "aeron:udp?control-mode=manual".to_owned()
            }
            ChannelKind::Response => {
                format!("aeron:udp?endpoint={}", self.own_address(self.home, 41_000))
            }
        }
    }

    /// Returns the channel of responses.
    pub(super) fn response_channel(&self) -> String {
        format!(
            "aeron:udp?control-mode=response|control={}",
            self.own_address(self.home, 41_100)
        )
    }

    /// Returns the stream id of responses.
    pub(super) fn response_stream(&self) -> i32 {
        self.stream + 500
    }

    /// Returns a publication on this channel, without labels and traffic.
    pub(super) fn publish(&self, host: usize, hosts: usize, random: &mut fastrand::Rng) -> Publish {
        let mut parameters = self.publisher_parameters.clone();
        if self.sets_session_id {
            parameters.push(format!("session-id={}", self.session(host)));
        }
        let destinations = match self.kind {
            ChannelKind::Manual => (0..hosts)
                .filter(|_| random.u32(0..3) != 0)
                .map(|host| self.endpoint(host))
                .collect(),
            ChannelKind::TwoPaths => self.paths().to_vec(),
            _ => Vec::new(),
        };
        Publish {
            channel: with_parameters(&self.base(), &parameters),
            stream: self.stream,
            // Shared publications would share their destinations too.
            exclusive: !destinations.is_empty()
                || self.kind == ChannelKind::Manual
                || random.bool(),
            destinations,
            ..Publish::default()
        }
    }

    /// Returns a subscription on this channel, without labels.
    pub(super) fn subscribe(
        &self,
        host: usize,
        hosts: usize,
        random: &mut fastrand::Rng,
    ) -> Subscribe {
        let mut parameters = self.subscriber_parameters.clone();
        if random.u32(0..5) == 0 {
            parameters.push("tether=false".to_owned());
        }
        if self.tagged && random.u32(0..3) != 0 {
            parameters.push("gtag=7".to_owned());
        }
        if self.sets_session_id && random.bool() {
            let of = self
                .only_publisher_host()
                .unwrap_or_else(|| random.usize(0..hosts));
            parameters.push(format!("session-id={}", self.session(of)));
        }
        let (base, sources) = match self.kind {
            ChannelKind::Dynamic => {
                let control = self.own_address(self.home, 40_500);
                (
                    format!(
                        "aeron:udp?endpoint={}|control={control}",
                        self.own_address(host, 40_600)
                    ),
                    Vec::new(),
                )
            }
            ChannelKind::Manual => (self.endpoint(host), Vec::new()),
            ChannelKind::TwoPaths => (self.base(), self.paths().to_vec()),
            _ => (self.base(), Vec::new()),
        };
        Subscribe {
            channel: with_parameters(&base, &parameters),
            stream: self.stream,
            sources,
            ..Subscribe::default()
        }
    }

    /// Returns a spy subscription on this channel.
    pub(super) fn spy(&self, random: &mut fastrand::Rng) -> Subscribe {
        let tether: &[String] = if random.u32(0..3) == 0 {
            &["tether=false".to_owned()]
        } else {
            &[]
        };
        Subscribe {
            channel: format!("aeron-spy:{}", with_parameters(&self.base(), tether)),
            stream: self.stream,
            ..Subscribe::default()
        }
    }

    fn session(&self, host: usize) -> i32 {
        (1_000 * (self.number + 1) + host) as i32
    }
}

/// Appends parameters to a channel.
pub(super) fn with_parameters(channel: &str, parameters: &[String]) -> String {
    let mut text = channel.to_owned();
    for parameter in parameters {
        text.push(if text.contains('?') { '|' } else { '?' });
        text.push_str(parameter);
    }
    text
}
