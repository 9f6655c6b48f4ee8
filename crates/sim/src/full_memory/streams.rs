// SPDX-License-Identifier: Apache-2.0
//! Streams that proceed through several terms, as operations and as a record of the world.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use crate::check::delivery::ImageCheck;
use crate::check::{Violation, violation};
use crate::network::LinkFaults;
use crate::scenario::{Operation, Setting};
use crate::{
    ClientId, HostIndex, Lengths, PublisherId, PublisherSpec, SubscriberId, SubscriberSpec, World,
};

/// Highest number of streams in a scenario.
const STREAMS: u32 = 6;
/// Highest number of other operations in a scenario.
const OTHERS: usize = 12;
/// First stream id.
const FIRST_STREAM_ID: i32 = 1_000;
/// Port of the subscriptions.
const PORT: u16 = 41_000;
/// Highest loss rate per mille: streams make progress in spite of it.
const LOSS_MAX: u32 = 50;

/// An operation on a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields say which, and how much")]
pub enum LongStream {
    /// A publication and a subscription are added: over IPC on one host, over UDP between two.
    Open {
        stream: u32,
        from: usize,
        to: usize,
        /// Parameters of the publication's channel.
        parameters: String,
        exclusive: bool,
        messages: u64,
        length: usize,
    },
    /// More messages are published.
    Publish { stream: u32, messages: u64 },
    /// Publication and subscription are closed, which returns their pages.
    Close { stream: u32 },
    /// Datagrams are lost at this rate.
    Lose { per_mille: u32 },
}

/// Counts over all streams of a world, for coverage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Publications that the driver refused for want of space. Each was added again.
    pub refused: u64,
    /// Streams that an offer was refused on because of back-pressure.
    pub back_pressured: u64,
    /// Streams that waited for space for so long that the error of it was looked for.
    pub waited: u64,
    /// Streams that published more than a log holds.
    pub wrapped: u64,
}

/// The streams and clients of a world.
#[derive(Debug, Default)]
pub(super) struct LongStreams {
    clients: BTreeMap<usize, ClientId>,
    streams: BTreeMap<u32, Known>,
    refused: u64,
}

/// A stream.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) hosts: [HostIndex; 2],
    pub(super) publisher: PublisherId,
    pub(super) subscriber: SubscriberId,
    client: ClientId,
    spec: PublisherSpec,
    /// Length of the three terms in bytes.
    log_length: i64,
}

impl LongStreams {
    pub(super) fn add_client(&mut self, host: HostIndex, client: ClientId) {
        self.clients.insert(host.number(), client);
    }

    /// Returns the open streams with their labels.
    pub(super) fn open(&self) -> impl Iterator<Item = (u32, &Known)> {
        self.streams.iter().map(|(label, known)| (*label, known))
    }
}

/// Returns the position up to which a stream is published, and that up to which it is consumed.
pub(super) fn progress(world: &World, known: &Known) -> (i64, i64) {
    let publisher = world.publisher(known.publisher);
    let subscriber = world.subscriber(known.subscriber);
    let image = publisher.key().and_then(|key| subscriber.image(&key));
    (publisher.position(), image.map_or(-1, ImageCheck::position))
}

fn streams(world: &World) -> Vec<(u32, Known)> {
    let streams = world.shared::<LongStreams>();
    let open = streams.into_iter().flat_map(LongStreams::open);
    open.map(|(label, known)| (label, known.clone())).collect()
}

/// Returns the counts of a world, without the streams that were closed by the scenario.
#[must_use]
pub fn totals(world: &World) -> Totals {
    let mut totals = Totals {
        refused: world.shared::<LongStreams>().map_or(0, |it| it.refused),
        waited: world
            .shared::<super::invariants::Waited>()
            .map_or(0, |it| it.0.get()),
        ..Totals::default()
    };
    for (_, known) in streams(world) {
        let publisher = world.publisher(known.publisher);
        totals.back_pressured += u64::from(publisher.was_back_pressured());
        totals.wrapped += u64::from(publisher.position() > known.log_length);
    }
    totals
}

/// Adds publications again that were refused for want of space.
///
/// # Errors
/// One was refused for another reason, or with an error that does not name the file system.
pub(super) fn retry_refused(world: &mut World) -> Result<(), Violation> {
    for (label, known) in streams(world) {
        let Some(failure) = world.publisher(known.publisher).failure() else {
            continue;
        };
        let text = failure.to_string();
        let directory = world.directory(known.hosts[0]).display().to_string();
        if !text.contains("insufficient usable storage") || !text.contains(&directory) {
            violation!("stream {label}: its publication was refused with the error: {text}");
        }
        let publisher = world.publish(known.client, known.spec.clone());
        let streams = world.shared_mut::<LongStreams>();
        streams.refused += 1;
        if let Some(known) = streams.streams.get_mut(&label) {
            known.publisher = publisher;
        }
    }
    Ok(())
}

/// Publishes on all streams, so that each must make progress.
pub(super) fn publish_more_on_all(world: &mut World) {
    for (_, known) in streams(world) {
        world.publisher_mut(known.publisher).publish_more(3);
    }
}

/// Describes the streams of which not everything has arrived.
pub(super) fn incomplete(world: &World) -> Vec<String> {
    let mut streams = streams(world);
    streams.retain(|(_, known)| !world.has_all(known.subscriber, known.publisher));
    let describe = |(label, known): &(u32, Known)| {
        let (published, consumed) = progress(world, known);
        format!("stream {label}: published to {published}, consumed to {consumed}")
    };
    streams.iter().map(describe).collect()
}

impl LongStream {
    fn open(&self, world: &mut World) -> Option<()> {
        let Self::Open {
            stream,
            from,
            to,
            parameters,
            exclusive,
            messages,
            length,
        } = self
        else {
            return None;
        };
        let streams = world.shared_mut::<LongStreams>();
        if streams.streams.contains_key(stream) {
            return None;
        }
        let client = *streams.clients.get(from)?;
        let listener = *streams.clients.get(to)?;
        let hosts = [*from, *to].map(HostIndex::at);
        let channel = if from == to {
            "aeron:ipc".to_owned()
        } else {
            format!("aeron:udp?endpoint={}:{PORT}", world.address(hosts[1]))
        };
        let stream_id = FIRST_STREAM_ID + *stream as i32;
        let subscriber = world.subscribe(listener, SubscriberSpec::new(&channel, stream_id));
        let separator = if from == to { '?' } else { '|' };
        let channel = format!("{channel}{separator}{parameters}");
        let spec = PublisherSpec::new(channel, stream_id)
            .exclusive(*exclusive)
            .messages(*messages)
            .lengths(Lengths::Fixed(*length));
        let known = Known {
            hosts,
            publisher: world.publish(client, spec.clone()),
            subscriber,
            client,
            spec,
            log_length: 3 * term_length(parameters),
        };
        let streams = world.shared_mut::<LongStreams>();
        streams.streams.insert(*stream, known);
        Some(())
    }
}

/// Returns the parameters of a publication. Logs of terms up to 256k are reserved when they are created, longer ones term by
/// term.
fn parameters(random: &mut Rng) -> String {
    let terms = ["64k", "256k", "512k", "512k", "512k", "1m"];
    let mut parameters = format!("term-length={}", terms[random.usize(0..terms.len())]);
    for (of, parameter) in [(3, "|sparse=true"), (2, "|mtu=8k")] {
        if random.u32(0..of) == 0 {
            parameters.push_str(parameter);
        }
    }
    // It would contradict the other value.
    if !parameters.contains("sparse") && random.u32(0..8) == 0 {
        parameters.push_str("|sparse=false");
    }
    if random.u32(0..4) == 0 {
        parameters.push_str("|linger=0");
    }
    parameters
}

/// Returns the term length in bytes that [`parameters`] has chosen.
fn term_length(parameters: &str) -> i64 {
    let value = parameters.strip_prefix("term-length=").unwrap_or_default();
    let value = value.split('|').next().unwrap_or_default();
    match value
        .strip_suffix('k')
        .and_then(|it| it.parse::<i64>().ok())
    {
        Some(kibibytes) => kibibytes << 10,
        None => 1 << 20,
    }
}

impl Operation for LongStream {
    const NAME: &'static str = "long stream";

    fn generate(random: &mut Rng, setting: &Setting) -> Vec<(u64, Self)> {
        let streams = random.u32(1..=STREAMS);
        let mut operations = Vec::new();
        for stream in 0..streams {
            let open = Self::Open {
                stream,
                from: random.usize(0..setting.hosts),
                to: random.usize(0..setting.hosts),
                parameters: parameters(random),
                exclusive: random.bool(),
                messages: random.u64(0..300),
                length: [1_000, 8_000, 8_000][random.usize(0..3)],
            };
            operations.push((random.u64(0..=setting.duration_ms / 2), open));
        }
        for _ in 0..random.usize(0..=OTHERS) {
            let stream = random.u32(0..streams);
            let operation = match random.u32(0..6) {
                0 => Self::Close { stream },
                1 => Self::Lose {
                    per_mille: random.u32(0..=LOSS_MAX),
                },
                _ => Self::Publish {
                    stream,
                    messages: random.u64(1..200),
                },
            };
            operations.push((random.u64(0..=setting.duration_ms), operation));
        }
        operations
    }

    fn apply(&self, world: &mut World) -> bool {
        if let Err(violation) = retry_refused(world) {
            panic!("{violation}");
        }
        let known = |world: &World, stream| {
            let streams = world.shared::<LongStreams>()?;
            streams.streams.get(&stream).cloned()
        };
        match *self {
            Self::Open { .. } => self.open(world).is_some(),
            Self::Publish { stream, messages } => {
                let known = known(world, stream);
                if let Some(known) = &known {
                    let publisher = world.publisher_mut(known.publisher);
                    publisher.publish_more(messages);
                }
                known.is_some()
            }
            Self::Close { stream } => {
                let streams = world.shared_mut::<LongStreams>();
                let known = streams.streams.remove(&stream);
                if let Some(known) = &known {
                    world.publisher_mut(known.publisher).close();
                    world.subscriber_mut(known.subscriber).close();
                }
                known.is_some()
            }
            Self::Lose { per_mille } => {
                world.set_faults(LinkFaults::loss(f64::from(per_mille) / 1_000.0));
                true
            }
        }
    }

    fn simpler(&self) -> Vec<Self> {
        let mut simpler = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut changed = self.clone();
            change(&mut changed);
            if changed != *self {
                simpler.push(changed);
            }
        };
        with(&|it| match it {
            Self::Open { messages, .. } | Self::Publish { messages, .. } => *messages /= 2,
            Self::Lose { per_mille } => *per_mille /= 2,
            Self::Close { .. } => {}
        });
        with(&|it| {
            if let Self::Open { exclusive, .. } = it {
                *exclusive = false;
            }
        });
        with(&|it| {
            if let Self::Open { parameters, .. } = it {
                let term = parameters.split('|').next().unwrap_or_default();
                *parameters = term.to_owned();
            }
        });
        simpler
    }
}
