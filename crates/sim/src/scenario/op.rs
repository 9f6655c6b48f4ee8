// SPDX-License-Identifier: Apache-2.0
//! Operations of a scenario.
//!
//! Clients, publishers and subscribers have labels instead of indices, so that operations can be removed from a
//! scenario without changing the meaning of others. An operation whose subject does not exist has no effect.

use serde::{Deserialize, Serialize};

use super::LinkProfile;
use super::definition::{CustomOp, is_zero};

/// An operation. Hosts are given by number, from 0; other objects by label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields say which, and for how long")]
pub enum Op {
    /// A client starts to connect to the driver of its host.
    Connect { client: u32, host: usize },
    /// A client and all its resources are closed.
    CloseClient { client: u32 },
    /// The process of a client is killed.
    KillClient { client: u32 },
    /// The process of a client is paused.
    StallClient { client: u32, ms: u64 },
    /// A driver is closed in an orderly way.
    StopDriver { host: usize },
    /// The process of a driver is killed.
    KillDriver { host: usize },
    /// A driver is started on a host without one, as soon as the previous one counts as dead.
    StartDriver { host: usize },
    /// The process of a driver is paused.
    StallDriver { host: usize, ms: u64 },
    /// All processes of a host are paused.
    StallHost { host: usize, ms: u64 },
    /// The power of a host is cut and returns at once, and its driver is started.
    Reboot { host: usize },
    /// The power of a host is cut: all its processes are killed, shared memory and unsynced bytes are lost.
    PowerCut { host: usize },
    /// The power of a host returns, and its processes are started.
    Boot { host: usize },
    /// The wall clock of a host is stepped.
    StepClock { host: usize, ms: i64 },
    /// A publication is added.
    Publish(Publish),
    /// A publisher gets additional messages.
    PublishMore { publisher: u32, messages: u64 },
    /// A publisher claims a message and does nothing more until it dies.
    HoldClaim { publisher: u32 },
    /// A destination is added to a publication.
    AddDestination { publisher: u32, channel: String },
    /// A destination is removed from a publication.
    RemoveDestination { publisher: u32, channel: String },
    /// A publication is closed.
    ClosePublisher { publisher: u32 },
    /// A publication is revoked.
    Revoke { publisher: u32 },
    /// A subscription is added.
    Subscribe(Subscribe),
    /// Sets the share of duty cycles without a poll, per mille.
    SetSkipRate {
        subscriber: u32,
        skip_per_mille: u64,
    },
    /// A source is added to a subscription.
    AddSource { subscriber: u32, channel: String },
    /// A source is removed from a subscription.
    RemoveSource { subscriber: u32, channel: String },
    /// A subscriber rejects all its images.
    Reject { subscriber: u32 },
    /// A subscription is closed.
    CloseSubscriber { subscriber: u32 },
    /// A client subscribes to responses, and publishes requests as soon as the subscription exists.
    Request(RequestResponse),
    /// A response publication is added for the last image of a subscriber to requests.
    Respond { to: u32, publish: Publish },
    /// The link from one host to another is cut.
    Cut { from: usize, to: usize },
    /// A link is restored.
    Heal { from: usize, to: usize },
    /// All links are restored.
    HealAll,
    /// Sets the faults of all links that have none of their own.
    SetFaults(LinkProfile),
    /// Sets the faults of one link, or removes them.
    SetLinkFaults {
        from: usize,
        to: usize,
        profile: Option<LinkProfile>,
    },
    /// An operation that a suite adds.
    Custom(CustomOp),
}

/// A publication and its messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Publish {
    /// Label.
    pub publisher: u32,
    /// Label of the client.
    pub client: u32,
    /// Channel.
    pub channel: String,
    /// Stream id.
    pub stream: i32,
    /// True for an exclusive publication.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// Number of messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages: u64,
    /// Distribution of message lengths.
    #[serde(default, skip_serializing_if = "is_any")]
    pub lengths: crate::Lengths,
    /// Average time between bursts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_ms: u64,
    /// Initial destinations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<String>,
}

/// A subscription and how it is consumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subscribe {
    /// Label.
    pub subscriber: u32,
    /// Label of the client.
    pub client: u32,
    /// Channel.
    pub channel: String,
    /// Stream id.
    pub stream: i32,
    /// Share of duty cycles without a poll, per mille.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip_per_mille: u64,
    /// Initial sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

/// A requester: requests, and a subscription to the responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestResponse {
    /// The subscription to the responses.
    pub responses: Subscribe,
    /// The requests. Their channel gets the registration id of the subscription.
    pub requests: Publish,
}

fn is_any(lengths: &crate::Lengths) -> bool {
    *lengths == crate::Lengths::Any
}

impl Op {
    /// Returns the name of the operation in the coverage table.
    #[must_use]
    pub fn name(&self) -> &str {
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
            Self::PowerCut { .. } => "power cut",
            Self::Boot { .. } => "boot",
            Self::StepClock { .. } => "step clock",
            Self::Publish(_) => "publish",
            Self::PublishMore { .. } => "publish more",
            Self::HoldClaim { .. } => "hold claim",
            Self::AddDestination { .. } => "add destination",
            Self::RemoveDestination { .. } => "remove destination",
            Self::ClosePublisher { .. } => "close publisher",
            Self::Revoke { .. } => "revoke",
            Self::Subscribe(_) => "subscribe",
            Self::SetSkipRate { .. } => "set skip rate",
            Self::AddSource { .. } => "add source",
            Self::RemoveSource { .. } => "remove source",
            Self::Reject { .. } => "reject",
            Self::CloseSubscriber { .. } => "close subscriber",
            Self::Request(_) => "request",
            Self::Respond { .. } => "respond",
            Self::Cut { .. } => "cut",
            Self::Heal { .. } => "heal",
            Self::HealAll => "heal all",
            Self::SetFaults(_) => "set faults",
            Self::SetLinkFaults { .. } => "set link faults",
            Self::Custom(custom) => &custom.kind,
        }
    }
}
