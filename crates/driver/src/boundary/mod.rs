//! What the conductor and the two network agents say to each other.
//!
//! The conductor opens and closes the road of a message; the sender and the receiver are on it. They meet in three
//! places only, all of them here:
//!
//! * **commands** ([`SenderCommand`], [`ReceiverCommand`]) go down a bounded in-process queue. They move whole halves,
//!   built by the conductor from a spec, into the agent that owns them from then on;
//! * **events** ([`ConductorEvent`]) come back up another queue. A half that was removed travels back in one, so that
//!   sockets are closed and logs unmapped by the conductor and never on the road;
//! * **shared atomics** ([`PublicationShared`], [`ImageShared`]) carry what both sides read all the time. Each field
//!   says who writes it, and only that side can.

mod address;
mod command;
mod counters;
mod event;
mod id;
mod image;
#[cfg(all(test, loom))]
mod models;
mod outbox;
mod publication;
mod spec;

pub use address::{Destination, SendDestination};
pub use command::{ReceiverCommand, SenderCommand};
pub use counters::{ReceiverCounters, SenderCounters};
pub use event::{ConductorEvent, CreateImage, PublicationError};
pub use id::{EndpointId, ImageId, PublicationId, TransportId};
pub use image::{ImageShared, ImageState};
pub(crate) use outbox::{Outbox, take_commands};
pub use publication::PublicationShared;
pub use spec::{
    FlowControlSpec, NakDelaySpec, ReceiveEndpointSpec, ReceiveTransportSpec, ReceiverImageSpec,
    RetransmitSpec, SendEndpointSpec, SenderPublicationSpec, SlowestSpec, SubscriberPosition,
};
