// SPDX-License-Identifier: Apache-2.0
//! The flows: endpoints and parameters of every stream.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::drivers::Drivers;
use crate::endpoints::{Expected, PublicationSpec, SubscriptionSpec};
use crate::message::SHORT;
use crate::official;
use crate::responses::{self, Server, ServerSpec};
use crate::tally::Tally;
use crate::traffic;
use crate::waiting::{RoundError, Starvation};

/// One kind of stream, run in repeated rounds.
pub(crate) struct Flow {
    name: &'static str,
    stream: i32,
    kind: FlowKind,
}

enum FlowKind {
    /// Published and received by Taran clients, on any drivers.
    Ours(PublicationSpec, Vec<SubscriptionSpec>),
    /// Published by an official client, received by a Taran client.
    OfficialPublishes(PublicationSpec, SubscriptionSpec),
    /// Published by a Taran client, received by an official client.
    OfficialSubscribes(PublicationSpec, SubscriptionSpec),
    /// Requests of a Taran client, with responses.
    RequestResponse(PublicationSpec, SubscriptionSpec, ServerSpec),
}

impl Flow {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns true if messages lost by the link are missing for a subscriber.
    pub(crate) fn may_lose(&self) -> bool {
        let FlowKind::Ours(_, subscription_spec) = &self.kind else {
            return false;
        };
        subscription_spec.iter().any(SubscriptionSpec::may_lose)
    }

    /// Runs rounds until the end time or the first error.
    pub(crate) fn run(self, until: Instant, tally: &Tally, starvation: &Starvation) {
        let mut round = 0;
        while Instant::now() < until && !tally.has_failed() {
            round += 1;
            let starved = starvation.so_far();
            // Unexpected output of an external program is a panic.
            let outcome = catch_unwind(AssertUnwindSafe(|| self.run_round(tally)))
                .unwrap_or_else(|panic| Err(official::why(&*panic)));
            match outcome {
                Ok(()) => tally.round(self.name),
                Err(RoundError::Failed(why)) if starvation.so_far() != starved => {
                    tally.starved(self.name, &format!("round {round}: {why}"));
                }
                Err(RoundError::Failed(why) | RoundError::Wrong(why)) => {
                    tally.record_error(self.name, &format!("round {round}: {why}"));
                }
            }
        }
    }

    fn run_round(&self, tally: &Tally) -> Result<(), RoundError> {
        let (name, stream) = (self.name, self.stream);
        match &self.kind {
            FlowKind::Ours(publication_spec, subscription_spec) => {
                traffic::round(name, stream, publication_spec, subscription_spec, tally)
            }
            FlowKind::OfficialPublishes(publication_spec, subscription_spec) => {
                official::writes(name, stream, publication_spec, subscription_spec, tally)
            }
            FlowKind::OfficialSubscribes(publication_spec, subscription_spec) => {
                official::reads(name, stream, publication_spec, subscription_spec, tally)
            }
            FlowKind::RequestResponse(requests, answers, server_spec) => {
                responses::round(name, stream, requests, answers, server_spec, tally)
            }
        }
    }
}

/// Returns all flows, with or without those over IPv6.
pub(crate) fn all(drivers: &Drivers, with_ipv6: bool) -> Vec<Flow> {
    let mut kinds = one_to_one(drivers);
    kinds.extend(to_several(drivers));
    kinds.extend(with_official_clients(drivers));
    kinds.extend(with_other_parameters(drivers));
    if with_ipv6 {
        kinds.extend(ipv6(drivers));
    }
    let flow = |((name, kind), stream)| Flow { name, stream, kind };
    kinds.into_iter().zip(1_001..).map(flow).collect()
}

type FlowKinds = Vec<(&'static str, FlowKind)>;

fn write(on: &Path, channel: &str) -> PublicationSpec {
    PublicationSpec::new(on.to_path_buf(), channel)
}

fn read(on: &Path, channel: &str) -> SubscriptionSpec {
    SubscriptionSpec::new(on.to_path_buf(), channel)
}

/// Returns a channel to the second machine.
fn to(port: u16) -> String {
    format!("aeron:udp?endpoint=10.9.1.2:{port}")
}

/// Returns a channel to the first machine.
fn back(port: u16) -> String {
    format!("aeron:udp?endpoint=10.9.1.1:{port}")
}

fn one_to_one(drivers: &Drivers) -> FlowKinds {
    let [here, there, official] = drivers.directories();
    let spy = format!("aeron-spy:{}", to(24_101));
    vec![
        (
            "unicast and spy, ours to ours",
            FlowKind::Ours(
                write(&here, &to(24_101)),
                vec![read(&there, &to(24_101)), read(&here, &spy)],
            ),
        ),
        (
            "unicast, ours to official",
            FlowKind::Ours(
                write(&here, &to(24_102)),
                vec![read(&official, &to(24_102))],
            ),
        ),
        (
            "unicast, official to ours",
            FlowKind::Ours(
                write(&official, &back(24_103)),
                vec![read(&here, &back(24_103))],
            ),
        ),
        (
            "several sources",
            FlowKind::Ours(
                write(&there, "aeron:udp?control-mode=manual|fc=max")
                    .destination(&back(24_601))
                    .destination(&back(24_602)),
                vec![
                    read(&here, "aeron:udp?control-mode=manual")
                        .source(&back(24_601))
                        .source(&back(24_602)),
                ],
            ),
        ),
        (
            "ipc",
            FlowKind::Ours(write(&here, "aeron:ipc"), vec![read(&here, "aeron:ipc")]),
        ),
    ]
}

fn to_several(drivers: &Drivers) -> FlowKinds {
    let [here, there, official] = drivers.directories();
    let group = "aeron:udp?endpoint=224.20.30.39:24301|interface=10.9.1";
    let dynamic = |control: u16, more: &str| {
        format!("aeron:udp?control=10.9.1.1:{control}|control-mode=dynamic|{more}")
    };
    let announced = |port: u16, control: u16, more: &str| {
        format!("{}|control=10.9.1.1:{control}{more}", to(port))
    };
    vec![
        (
            "multicast, ours to both",
            FlowKind::Ours(
                write(&here, &format!("{group}.1|fc=min,g:/2")),
                vec![
                    read(&there, &format!("{group}.2")),
                    read(&official, &format!("{group}.2")),
                ],
            ),
        ),
        (
            "several by announcement",
            FlowKind::Ours(
                write(&here, &dynamic(24_401, "fc=min,g:/2")),
                vec![
                    read(&there, &announced(24_402, 24_401, "")),
                    read(&official, &announced(24_403, 24_401, "")),
                ],
            ),
        ),
        (
            "several by command",
            FlowKind::Ours(
                write(&here, "aeron:udp?control-mode=manual|fc=min,g:/2")
                    .destination(&to(24_501))
                    .destination(&to(24_502)),
                vec![read(&there, &to(24_501)), read(&official, &to(24_502))],
            ),
        ),
        (
            "tagged, two waited for, one not",
            FlowKind::Ours(
                write(&here, &dynamic(24_411, "fc=tagged,g:1001/2")),
                vec![
                    read(&there, &announced(24_412, 24_411, "|gtag=1001")),
                    read(&official, &announced(24_413, 24_411, "|gtag=1001")),
                    read(&there, &announced(24_414, 24_411, "")).expected(Expected::First),
                ],
            ),
        ),
    ]
}

fn with_official_clients(drivers: &Drivers) -> FlowKinds {
    let [here, there, official] = drivers.directories();
    let request_response = |by: Server, directory: PathBuf, port: u16| {
        let answers = format!(
            "aeron:udp?control-mode=response|control=10.9.1.2:{}",
            port + 1
        );
        FlowKind::RequestResponse(
            write(&here, &to(port)),
            read(&here, &answers).lengths(SHORT),
            ServerSpec { by, directory },
        )
    };
    vec![
        (
            "ipc, official client writes",
            FlowKind::OfficialPublishes(write(&here, "aeron:ipc"), read(&here, "aeron:ipc")),
        ),
        (
            "udp, official client reads",
            FlowKind::OfficialSubscribes(write(&here, &to(24_801)), read(&there, &to(24_801))),
        ),
        (
            "udp, official client writes",
            FlowKind::OfficialPublishes(
                write(&official, &back(24_901)),
                read(&here, &back(24_901)),
            ),
        ),
        (
            "responses, ours answers",
            request_response(Server::Ours, there.clone(), 24_701),
        ),
        (
            "responses, official answers",
            request_response(Server::Official, official.clone(), 24_711),
        ),
    ]
}

fn with_other_parameters(drivers: &Drivers) -> FlowKinds {
    let [here, there, official] = drivers.directories();
    let cubic = |channel: String| format!("{channel}|cc=cubic");
    let unreliable = |channel: String| format!("{channel}|reliable=false");
    vec![
        (
            "cubic, ours to ours",
            FlowKind::Ours(
                write(&here, &to(24_201)),
                vec![read(&there, &cubic(to(24_201)))],
            ),
        ),
        (
            "cubic, official to ours",
            FlowKind::Ours(
                write(&official, &back(24_202)),
                vec![read(&here, &cubic(back(24_202)))],
            ),
        ),
        (
            "cubic, ours to official",
            FlowKind::Ours(
                write(&here, &to(24_203)),
                vec![read(&official, &cubic(to(24_203)))],
            ),
        ),
        (
            "unreliable, ours to ours",
            FlowKind::Ours(
                write(&here, &to(24_211)),
                vec![read(&there, &unreliable(to(24_211))).expected(Expected::Lossy)],
            ),
        ),
        (
            "unreliable, official to ours",
            FlowKind::Ours(
                write(&official, &back(24_212)),
                vec![read(&here, &unreliable(back(24_212))).expected(Expected::Lossy)],
            ),
        ),
    ]
}

fn ipv6(drivers: &Drivers) -> FlowKinds {
    let [here, there, official] = drivers.directories();
    let group = "aeron:udp?endpoint=[ff05::2030:45]:24303|interface";
    let back = "aeron:udp?endpoint=[fd09::1]:24911";
    vec![
        (
            "IPv6, official client writes",
            FlowKind::OfficialPublishes(write(&official, back), read(&here, back)),
        ),
        (
            "IPv6 multicast, ours to both",
            FlowKind::Ours(
                write(&here, &format!("{group}=[fd09::1]|fc=min,g:/2")),
                vec![
                    read(&there, &format!("{group}=[fd09::2]")),
                    read(&official, &format!("{group}=[fd09::2]")),
                ],
            ),
        ),
    ]
}
