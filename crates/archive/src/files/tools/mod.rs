// SPDX-License-Identifier: Apache-2.0
//! Tools for the files of an archive (`docs/spec/archive.md` §10).
//!
//! Reading needs nothing: [`CatalogFile::read`](super::CatalogFile::read), [`MarkFileInfo::read`](super::MarkFileInfo::read)
//! and [`dump`]. What changes files needs a [`StoppedArchive`], which excludes running archives.

mod dump;
mod error;
mod maintenance;
mod purge;
mod stopped;
#[cfg(test)]
mod tests;
mod transfer;
mod verify;

pub use dump::{DumpError, dump, dump_range};
pub use error::ToolError;
pub use maintenance::{Compacted, Orphan, OrphanReason, Stamped};
pub use purge::{InvalidStart, PurgePlan};
pub use stopped::StoppedArchive;
pub use transfer::{ExportError, ExportWriter, Exported, ImportError, Imported, export};
pub use verify::{Problem, Segments, Verification, VerifyOptions};
