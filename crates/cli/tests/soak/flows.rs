//! The streams: what flows from where to where, and how.

use std::path::PathBuf;
use std::time::Instant;

use crate::drivers::Drivers;
use crate::official;
use crate::tally::Tally;
use crate::traffic::{self, Reading, Writing};

/// One kind of stream, told over and over.
pub(crate) struct Flow {
    name: &'static str,
    stream: i32,
    story: Story,
}

enum Story {
    /// Our clients write and read, on whichever drivers.
    Ours {
        writing: Writing,
        reading: Vec<Reading>,
    },
    /// An official client writes, one of ours reads.
    OfficialWrites { writing: Writing, reading: Reading },
    /// One of ours writes, an official client reads.
    OfficialReads { writing: Writing, reading: Reading },
}

impl Flow {
    /// Rounds, one after the other, until the time is over or something went wrong.
    pub(crate) fn run(self, until: Instant, tally: &Tally) {
        let mut round = 0;
        while Instant::now() < until && !tally.has_failed() {
            round += 1;
            let starved = traffic::starved_clients();
            let told = match &self.story {
                Story::Ours { writing, reading } => {
                    traffic::round(self.name, self.stream, writing, reading, tally)
                }
                Story::OfficialWrites { writing, reading } => {
                    official::writes(self.name, self.stream, writing, reading, tally)
                }
                Story::OfficialReads { writing, reading } => {
                    official::reads(self.name, self.stream, writing, reading, tally)
                }
            };
            match told {
                Ok(()) => tally.round(self.name),
                Err(why) if traffic::starved_clients() > starved => {
                    tally.starved(self.name, &format!("round {round}: {why}"));
                }
                Err(why) => tally.complain(self.name, &format!("round {round}: {why}")),
            }
        }
    }
}

pub(crate) const NAMES: [&str; 11] = [
    "unicast and spy, ours to ours",
    "unicast, ours to official",
    "unicast, official to ours",
    "multicast, ours to both",
    "several by announcement",
    "several by command",
    "several sources",
    "ipc",
    "ipc, official client writes",
    "udp, official client reads",
    "udp, official client writes",
];

/// All flows.
pub(crate) fn all(drivers: &Drivers) -> Vec<Flow> {
    let [here, there, official] = drivers.directories();
    let write = |on: &PathBuf, channel: &str| Writing::new(on.clone(), channel);
    let read = |on: &PathBuf, channel: &str| Reading::new(on.clone(), channel);
    let ours = |writing, reading| Story::Ours { writing, reading };
    let to = |port: u16| format!("aeron:udp?endpoint=10.9.1.2:{port}");
    let back = |port: u16| format!("aeron:udp?endpoint=10.9.1.1:{port}");
    let group = "aeron:udp?endpoint=224.20.30.39:24301|interface=10.9.1";
    let stories = [
        ours(
            write(&here, &to(24_101)),
            vec![
                read(&there, &to(24_101)),
                read(&here, &format!("aeron-spy:{}", to(24_101))),
            ],
        ),
        ours(
            write(&here, &to(24_102)),
            vec![read(&official, &to(24_102))],
        ),
        ours(
            write(&official, &back(24_103)),
            vec![read(&here, &back(24_103))],
        ),
        ours(
            write(&here, &format!("{group}.1|fc=min,g:/2")),
            vec![
                read(&there, &format!("{group}.2")),
                read(&official, &format!("{group}.2")),
            ],
        ),
        ours(
            write(
                &here,
                "aeron:udp?control=10.9.1.1:24401|control-mode=dynamic|fc=min,g:/2",
            ),
            vec![
                read(
                    &there,
                    "aeron:udp?endpoint=10.9.1.2:24402|control=10.9.1.1:24401",
                ),
                read(
                    &official,
                    "aeron:udp?endpoint=10.9.1.2:24403|control=10.9.1.1:24401",
                ),
            ],
        ),
        ours(
            write(&here, "aeron:udp?control-mode=manual|fc=min,g:/2")
                .destination(&to(24_501))
                .destination(&to(24_502)),
            vec![read(&there, &to(24_501)), read(&official, &to(24_502))],
        ),
        ours(
            write(&there, "aeron:udp?control-mode=manual|fc=max")
                .destination(&back(24_601))
                .destination(&back(24_602)),
            vec![
                read(&here, "aeron:udp?control-mode=manual")
                    .source(&back(24_601))
                    .source(&back(24_602)),
            ],
        ),
        ours(write(&here, "aeron:ipc"), vec![read(&here, "aeron:ipc")]),
        Story::OfficialWrites {
            writing: write(&here, "aeron:ipc"),
            reading: read(&here, "aeron:ipc"),
        },
        Story::OfficialReads {
            writing: write(&here, &to(24_801)),
            reading: read(&there, &to(24_801)),
        },
        Story::OfficialWrites {
            writing: write(&official, &back(24_901)),
            reading: read(&here, &back(24_901)),
        },
    ];
    NAMES
        .into_iter()
        .zip(stories)
        .zip(1_001..)
        .map(|((name, story), stream)| Flow {
            name,
            stream,
            story,
        })
        .collect()
}
