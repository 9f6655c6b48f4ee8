// SPDX-License-Identifier: Apache-2.0
//! Interface between the conductor and the two network agents.
//!
//! The conductor creates and removes endpoints, publications and images; the sender and the receiver move the data.
//! They communicate in three ways:
//!
//! * **commands** ([`SenderCommand`], [`ReceiverCommand`]) pass through a bounded queue to the agent. A command can
//!   carry a whole half of a publication or image, built by the conductor from a spec; the agent then owns it;
//! * **events** ([`ConductorEvent`]) pass through another queue to the conductor. A removed half is returned in an
//!   event, so that the conductor closes sockets and unmaps logs, never an agent on the data path;
//! * **shared atomics** ([`PublicationShared`], [`ImageShared`]) hold what both sides read continuously. Each field has
//!   one writer, named in its documentation.

mod command;
mod counters;
mod destination;
mod event;
mod event_sender;
mod id;
mod image;
#[cfg(all(test, loom))]
mod models;
mod publication;
mod spec;

pub(crate) use command::{ReceiverCommand, SenderCommand};
pub(crate) use counters::{ReceiverCounters, SenderCounters};
pub(crate) use destination::{Destination, SendDestination};
pub(crate) use event::{ConductorEvent, CreateImage, PublicationError};
pub(crate) use event_sender::{EventSender, poll_commands};
pub(crate) use id::{EndpointId, ImageId, PublicationId, TransportId};
pub(crate) use image::{ImageShared, ImageState};
pub(crate) use publication::PublicationShared;
pub(crate) use spec::{
    MinFlowControlSpec, NakDelaySpec, ReceiveEndpointSpec, ReceiveTransportSpec, ReceiverImageSpec,
    RetransmitSpec, SendEndpointSpec, SenderFlowControlSpec, SenderPublicationSpec,
    SubscriberPosition,
};
