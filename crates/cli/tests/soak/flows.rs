//! The streams: what flows from where to where, and how.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::drivers::Drivers;
use crate::ends::{Due, Reading, Writing};
use crate::message::SHORT;
use crate::official;
use crate::responses::{self, Answering, Server};
use crate::tally::Tally;
use crate::traffic;
use crate::waiting::{Starvation, Trouble};

/// One kind of stream, told over and over.
pub(crate) struct Flow {
    name: &'static str,
    stream: i32,
    story: Story,
}

enum Story {
    /// Our clients write and read, on whichever drivers.
    Ours(Writing, Vec<Reading>),
    /// An official client writes, one of ours reads.
    OfficialWrites(Writing, Reading),
    /// One of ours writes, an official client reads.
    OfficialReads(Writing, Reading),
    /// One of ours asks, and reads the answers.
    Asked(Writing, Reading, Answering),
}

impl Flow {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether what the cable loses is lost for somebody.
    pub(crate) fn may_lose(&self) -> bool {
        let Story::Ours(_, reading) = &self.story else {
            return false;
        };
        reading.iter().any(Reading::may_lose)
    }

    /// Rounds, one after the other, until the time is over or something went wrong.
    pub(crate) fn run(self, until: Instant, tally: &Tally, starvation: &Starvation) {
        let mut round = 0;
        while Instant::now() < until && !tally.has_failed() {
            round += 1;
            let starved = starvation.so_far();
            // A program that says or does something else than it should is a panic.
            let told = catch_unwind(AssertUnwindSafe(|| self.tell(tally)))
                .unwrap_or_else(|panic| Err(official::why(&*panic)));
            match told {
                Ok(()) => tally.round(self.name),
                Err(Trouble::Failed(why)) if starvation.so_far() != starved => {
                    tally.starved(self.name, &format!("round {round}: {why}"));
                }
                Err(Trouble::Failed(why) | Trouble::Wrong(why)) => {
                    tally.complain(self.name, &format!("round {round}: {why}"));
                }
            }
        }
    }

    fn tell(&self, tally: &Tally) -> Result<(), Trouble> {
        let (name, stream) = (self.name, self.stream);
        match &self.story {
            Story::Ours(writing, reading) => traffic::round(name, stream, writing, reading, tally),
            Story::OfficialWrites(writing, reading) => {
                official::writes(name, stream, writing, reading, tally)
            }
            Story::OfficialReads(writing, reading) => {
                official::reads(name, stream, writing, reading, tally)
            }
            Story::Asked(requests, answers, answering) => {
                responses::round(name, stream, requests, answers, answering, tally)
            }
        }
    }
}

/// All flows, with those of IPv6 or without.
pub(crate) fn all(drivers: &Drivers, with_ipv6: bool) -> Vec<Flow> {
    let mut stories = one_to_one(drivers);
    stories.extend(to_several(drivers));
    stories.extend(with_official_clients(drivers));
    stories.extend(of_another_kind(drivers));
    if with_ipv6 {
        stories.extend(ipv6(drivers));
    }
    let flow = |((name, story), stream)| Flow {
        name,
        stream,
        story,
    };
    stories.into_iter().zip(1_001..).map(flow).collect()
}

type Stories = Vec<(&'static str, Story)>;

fn write(on: &Path, channel: &str) -> Writing {
    Writing::new(on.to_path_buf(), channel)
}

fn read(on: &Path, channel: &str) -> Reading {
    Reading::new(on.to_path_buf(), channel)
}

/// A channel to the second machine.
fn to(port: u16) -> String {
    format!("aeron:udp?endpoint=10.9.1.2:{port}")
}

/// A channel to the first machine.
fn back(port: u16) -> String {
    format!("aeron:udp?endpoint=10.9.1.1:{port}")
}

fn one_to_one(drivers: &Drivers) -> Stories {
    let [here, there, official] = drivers.directories();
    let spy = format!("aeron-spy:{}", to(24_101));
    vec![
        (
            "unicast and spy, ours to ours",
            Story::Ours(
                write(&here, &to(24_101)),
                vec![read(&there, &to(24_101)), read(&here, &spy)],
            ),
        ),
        (
            "unicast, ours to official",
            Story::Ours(
                write(&here, &to(24_102)),
                vec![read(&official, &to(24_102))],
            ),
        ),
        (
            "unicast, official to ours",
            Story::Ours(
                write(&official, &back(24_103)),
                vec![read(&here, &back(24_103))],
            ),
        ),
        (
            "several sources",
            Story::Ours(
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
            Story::Ours(write(&here, "aeron:ipc"), vec![read(&here, "aeron:ipc")]),
        ),
    ]
}

fn to_several(drivers: &Drivers) -> Stories {
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
            Story::Ours(
                write(&here, &format!("{group}.1|fc=min,g:/2")),
                vec![
                    read(&there, &format!("{group}.2")),
                    read(&official, &format!("{group}.2")),
                ],
            ),
        ),
        (
            "several by announcement",
            Story::Ours(
                write(&here, &dynamic(24_401, "fc=min,g:/2")),
                vec![
                    read(&there, &announced(24_402, 24_401, "")),
                    read(&official, &announced(24_403, 24_401, "")),
                ],
            ),
        ),
        (
            "several by command",
            Story::Ours(
                write(&here, "aeron:udp?control-mode=manual|fc=min,g:/2")
                    .destination(&to(24_501))
                    .destination(&to(24_502)),
                vec![read(&there, &to(24_501)), read(&official, &to(24_502))],
            ),
        ),
        (
            "tagged, two waited for, one not",
            Story::Ours(
                write(&here, &dynamic(24_411, "fc=tagged,g:1001/2")),
                vec![
                    read(&there, &announced(24_412, 24_411, "|gtag=1001")),
                    read(&official, &announced(24_413, 24_411, "|gtag=1001")),
                    read(&there, &announced(24_414, 24_411, "")).due(Due::AFew),
                ],
            ),
        ),
    ]
}

fn with_official_clients(drivers: &Drivers) -> Stories {
    let [here, there, official] = drivers.directories();
    let asked = |by: Server, directory: PathBuf, port: u16| {
        let answers = format!(
            "aeron:udp?control-mode=response|control=10.9.1.2:{}",
            port + 1
        );
        Story::Asked(
            write(&here, &to(port)),
            read(&here, &answers).lengths(SHORT),
            Answering { by, directory },
        )
    };
    vec![
        (
            "ipc, official client writes",
            Story::OfficialWrites(write(&here, "aeron:ipc"), read(&here, "aeron:ipc")),
        ),
        (
            "udp, official client reads",
            Story::OfficialReads(write(&here, &to(24_801)), read(&there, &to(24_801))),
        ),
        (
            "udp, official client writes",
            Story::OfficialWrites(write(&official, &back(24_901)), read(&here, &back(24_901))),
        ),
        (
            "responses, ours answers",
            asked(Server::Ours, there.clone(), 24_701),
        ),
        (
            "responses, official answers",
            asked(Server::Official, official.clone(), 24_711),
        ),
    ]
}

fn of_another_kind(drivers: &Drivers) -> Stories {
    let [here, there, official] = drivers.directories();
    let cubic = |channel: String| format!("{channel}|cc=cubic");
    let unreliable = |channel: String| format!("{channel}|reliable=false");
    vec![
        (
            "cubic, ours to ours",
            Story::Ours(
                write(&here, &to(24_201)),
                vec![read(&there, &cubic(to(24_201)))],
            ),
        ),
        (
            "cubic, official to ours",
            Story::Ours(
                write(&official, &back(24_202)),
                vec![read(&here, &cubic(back(24_202)))],
            ),
        ),
        (
            "cubic, ours to official",
            Story::Ours(
                write(&here, &to(24_203)),
                vec![read(&official, &cubic(to(24_203)))],
            ),
        ),
        (
            "unreliable, ours to ours",
            Story::Ours(
                write(&here, &to(24_211)),
                vec![read(&there, &unreliable(to(24_211))).due(Due::WhatArrives)],
            ),
        ),
        (
            "unreliable, official to ours",
            Story::Ours(
                write(&official, &back(24_212)),
                vec![read(&here, &unreliable(back(24_212))).due(Due::WhatArrives)],
            ),
        ),
    ]
}

fn ipv6(drivers: &Drivers) -> Stories {
    let [here, there, official] = drivers.directories();
    let group = "aeron:udp?endpoint=[ff05::2030:45]:24303|interface";
    let back = "aeron:udp?endpoint=[fd09::1]:24911";
    vec![
        (
            "IPv6, official client writes",
            Story::OfficialWrites(write(&official, back), read(&here, back)),
        ),
        (
            "IPv6 multicast, ours to both",
            Story::Ours(
                write(&here, &format!("{group}=[fd09::1]|fc=min,g:/2")),
                vec![
                    read(&there, &format!("{group}=[fd09::2]")),
                    read(&official, &format!("{group}=[fd09::2]")),
                ],
            ),
        ),
    ]
}
