// SPDX-License-Identifier: Apache-2.0
//! Events of the event logs of driver and archive, declared once, and the parsers for event selections
//! (docs/spec/uri-and-configuration.md §6).
//!
//! ```
//! use taran_protocol::event::{EventCode, EventSet};
//!
//! let wanted = EventSet::parse("admin")?.without(EventSet::parse("CMD_IN_KEEPALIVE_CLIENT")?);
//! assert!(wanted.contains(EventCode::CmdOutError) && !wanted.contains(EventCode::FrameIn));
//! # Ok::<(), taran_protocol::event::UnknownEvent>(())
//! ```

mod archive;
mod set;
mod table;

pub use archive::{ArchiveEventCode, ArchiveEventSet};
pub use set::{EventSet, UnknownEvent};
pub use table::{EventCode, EventSpec, Field, FieldKind, Group};
