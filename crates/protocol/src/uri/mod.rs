// SPDX-License-Identifier: Apache-2.0
//! Channel URIs: parsing, building, and all validation that needs no driver (docs/spec/uri-and-configuration.md §1).
//!
//! A driver processes a channel in three steps, each of which may fail with a [`UriError`]:
//!
//! 1. [`Channel::for_publication`], [`Channel::for_subscription`] and similar: syntax, addresses, kind.
//! 2. [`PublicationParams::new`] or [`SubscriptionParams::new`]: the other parameters, with defaults.
//! 3. After name resolution: [`UdpChannel::select_local`], [`UdpChannel::roles`], [`UdpChannel::canonical_form`].
//!
//! `docs/differences-from-aeron.md` lists the cases in which the official drivers differ, with the behaviour chosen
//! here.

mod address;
mod builder;
mod channel;
mod combination;
mod derive;
mod error;
mod flow_control;
mod keywords;
mod local;
mod param;
mod parse;
mod publication;
mod resolved;
mod subscription;
mod tags;
#[cfg(test)]
mod tests;
mod untethered;
pub mod value;
#[cfg(any(test, feature = "vectors"))]
pub mod vectors;

pub use address::{Address, Host, Interface};
pub use builder::ChannelUriBuilder;
pub use channel::{Channel, ChannelKind, IpcChannel, UdpChannel};
pub use error::UriError;
pub use flow_control::{FlowControlDefaults, FlowControlParams, FlowControlStrategy};
pub use keywords::{ControlMode, ResponseCorrelation, TimestampOffset};
pub use local::list_interfaces;
pub use param::{
    FRAME_ALIGNMENT, MAX_MTU, MAX_RESEND, MAX_TERM_LENGTH, MIN_TERM_LENGTH, Param, ParamKind,
    ParamSpec, Role,
};
pub use parse::{ChannelUri, MAX_URI_LENGTH, Media, SPY_PREFIX};
pub use publication::{
    InitialPosition, LivePublication, PublicationDefaults, PublicationParams, SessionChoice,
    TaggedPublication,
};
pub use resolved::AddressRoles;
pub use subscription::{CongestionControl, Group, SubscriptionDefaults, SubscriptionParams};
pub use tags::Tags;
pub use untethered::Untethered;
