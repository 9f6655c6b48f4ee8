// SPDX-License-Identifier: Apache-2.0
//! Files of an archive (`docs/spec/archive.md` §3), byte-compatible with Aeron's.
//!
//! All access goes through [`Disk`](taran_storage::Disk), so that it can be simulated. Calls block for as long as the disk
//! does: agents run them where blocking is allowed.
//!
//! * [`Catalog`] has the descriptors of all recordings, [`CatalogFile`] its file.
//! * [`MarkFile`] claims the directory for one archive.
//! * [`recover`] finds the ends of recordings that were active when an archive ended.
//! * [`RecordingLayout`] maps positions to segment files, whose names are [`SegmentName`]s.
//! * [`Checksum`] computes the checksums of frames and catalog entries.

mod catalog;
mod checksum;
#[cfg(test)]
mod crashing_disk;
mod descriptor;
mod directory;
mod layout;
mod mark;
mod recovery;
mod rewrite;
mod segments;
mod side_file;
mod sync_level;
#[cfg(test)]
mod test_streams;
mod time_index;
pub mod tools;

pub use catalog::{
    AddError, CATALOG_CAPACITY_DEFAULT, CATALOG_FILE, CATALOG_LENGTH_MAX, Catalog, CatalogContents,
    CatalogError, CatalogFile, CatalogOptions, CatalogReport, Change, Entry, EntryState,
    FILES_VERSION, FoundCatalog, Gap, MalformedEntry, ParseError, ParseReport, Piece, Step,
    UpdateError,
};
pub use checksum::{Checksum, ChecksumDigest, UnknownChecksum};
pub use descriptor::{Descriptor, InvalidDescriptor, NULL_VALUE, NewRecording, RecordingTexts};
pub use directory::create_directory;
pub use layout::{InvalidLayout, RecordingLayout, SEGMENT_LENGTH_MAX};
pub use mark::{
    ClaimError, ERROR_LOG_LENGTH_MIN, HEADER_LENGTH as MARK_HEADER_LENGTH, LINK_FILE,
    LIVENESS_TIMEOUT_MS, MARK_FILE, MarkFile, MarkFileError, MarkFileInfo, MarkSettings,
    UnsavedErrors,
};
pub use recovery::{RecoveredRecording, RecoveryError, RecoveryReport, recover};
pub(crate) use segments::FrameChecker;
pub use segments::{
    Frame, FrameFault, FrameWalker, GapReason, RecordingScan, ScanTarget, SegmentCreator,
    SegmentDirectory, SegmentEnd, SegmentFileName, SegmentGap, SegmentName,
};
pub use sync_level::{InvalidSyncLevel, SyncLevel};
pub(crate) use time_index::{Bound, ENTRY_LENGTH, IndexSearch, TimeEntry, time_index_path};
