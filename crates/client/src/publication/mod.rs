//! Publications: streams as this client sends them.

mod accessors;
mod exclusive;
mod facts;
mod shared;
mod state;

pub use exclusive::ExclusivePublication;
pub(crate) use facts::PublicationFacts;
pub use shared::Publication;
pub(crate) use shared::PublicationHandle;
pub(crate) use state::PublicationState;
