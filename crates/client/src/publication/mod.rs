// SPDX-License-Identifier: Apache-2.0
//! Publications: sending streams.

mod accessors;
mod common;
mod exclusive;
mod shared;
mod state;

pub(crate) use common::PublicationCore;
pub use exclusive::ExclusivePublication;
pub use shared::Publication;
pub(crate) use shared::PublicationHandle;
pub(crate) use state::PublicationState;
