//! What can happen in a story.
//!
//! Clients, publishers and subscribers have labels, not indices, so that events can be left out of a story without the
//! others changing their meaning. An event whose subject is not there, or no longer, means nothing.

use serde::{Deserialize, Serialize};

use super::Weather;
use super::plan::is_zero;

/// An event. Hosts are given by number, from 0; the others by label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields say which, and for how long")]
pub enum Deed {
    /// A client looks for the driver of its host.
    Connect { client: u32, host: usize },
    /// A client is closed with all it has.
    CloseClient { client: u32 },
    /// The process of a client is killed.
    KillClient { client: u32 },
    /// The process of a client is stopped for a time.
    StallClient { client: u32, ms: u64 },
    /// A driver ends in an orderly way.
    StopDriver { host: usize },
    /// The process of a driver is killed.
    KillDriver { host: usize },
    /// A driver is started where there is none; as soon as the one before counts as dead.
    StartDriver { host: usize },
    /// The process of a driver is stopped for a time.
    StallDriver { host: usize, ms: u64 },
    /// All processes of a host are stopped for a time.
    StallHost { host: usize, ms: u64 },
    /// All processes of a host are killed, its files are lost, and a driver is started.
    Reboot { host: usize },
    /// The wall clock of a host is set.
    StepClock { host: usize, ms: i64 },
    /// A publication is asked for.
    Publish(Publish),
    /// A publisher has more to say.
    More { publisher: u32, messages: u64 },
    /// A publisher claims room for a message, and does nothing any more, until it dies.
    Hold { publisher: u32 },
    /// A publication gets one destination more.
    AddDestination { publisher: u32, channel: String },
    /// A publication gets one destination less.
    RemoveDestination { publisher: u32, channel: String },
    /// A publication is closed.
    ClosePublisher { publisher: u32 },
    /// A publication is revoked.
    Revoke { publisher: u32 },
    /// A subscription is asked for.
    Subscribe(Subscribe),
    /// A subscriber does nothing in this part of its turns, per mille.
    Laziness { subscriber: u32, laziness: u64 },
    /// A subscription gets one source more.
    AddSource { subscriber: u32, channel: String },
    /// A subscription gets one source less.
    RemoveSource { subscriber: u32, channel: String },
    /// A subscriber sends its images away.
    Reject { subscriber: u32 },
    /// A subscription is closed.
    CloseSubscriber { subscriber: u32 },
    /// A client subscribes to answers, and publishes requests as soon as it can.
    Ask(Ask),
    /// A publisher answers to one who is heard by a subscriber.
    Answer { to: u32, publish: Publish },
    /// Nothing gets from one host to another any more.
    Cut { from: usize, to: usize },
    /// A link is mended.
    Heal { from: usize, to: usize },
    /// All links are mended.
    HealAll,
    /// Faults of all links that have none of their own.
    Weather(Weather),
    /// Faults of one link, or none of its own.
    Link {
        from: usize,
        to: usize,
        weather: Option<Weather>,
    },
}

/// A publication and what is published on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Publish {
    /// Its label.
    pub publisher: u32,
    /// Whose.
    pub client: u32,
    /// On which channel.
    pub channel: String,
    /// On which stream.
    pub stream: i32,
    /// Whether it is not shared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// How many messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// How long they are.
    #[serde(default, skip_serializing_if = "is_any")]
    pub lengths: crate::Lengths,
    /// Time between bursts on average.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_ms: u64,
    /// Destinations from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
}

/// A subscription and how it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subscribe {
    /// Its label.
    pub subscriber: u32,
    /// Whose.
    pub client: u32,
    /// On which channel.
    pub channel: String,
    /// On which stream.
    pub stream: i32,
    /// In which part of its turns it does nothing, per mille.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub laziness: u64,
    /// Sources from the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// Requests, and a subscription to their answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// The subscription to the answers.
    pub answers: Subscribe,
    /// The requests, whose channel gets the correlation id of the subscription.
    pub requests: Publish,
}

fn is_any(lengths: &crate::Lengths) -> bool {
    *lengths == crate::Lengths::Any
}

impl Deed {
    /// What it is called in a table of what happened.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "connect",
            Self::CloseClient { .. } => "close client",
            Self::KillClient { .. } => "kill client",
            Self::StallClient { .. } => "stall client",
            Self::StopDriver { .. } => "stop driver",
            Self::KillDriver { .. } => "kill driver",
            Self::StartDriver { .. } => "start driver",
            Self::StallDriver { .. } => "stall driver",
            Self::StallHost { .. } => "stall host",
            Self::Reboot { .. } => "reboot",
            Self::StepClock { .. } => "step clock",
            Self::Publish(_) => "publish",
            Self::More { .. } => "more",
            Self::Hold { .. } => "hold",
            Self::AddDestination { .. } => "add destination",
            Self::RemoveDestination { .. } => "remove destination",
            Self::ClosePublisher { .. } => "close publisher",
            Self::Revoke { .. } => "revoke",
            Self::Subscribe(_) => "subscribe",
            Self::Laziness { .. } => "laziness",
            Self::AddSource { .. } => "add source",
            Self::RemoveSource { .. } => "remove source",
            Self::Reject { .. } => "reject",
            Self::CloseSubscriber { .. } => "close subscriber",
            Self::Ask(_) => "ask",
            Self::Answer { .. } => "answer",
            Self::Cut { .. } => "cut",
            Self::Heal { .. } => "heal",
            Self::HealAll => "heal all",
            Self::Weather(_) => "weather",
            Self::Link { .. } => "link",
        }
    }
}
