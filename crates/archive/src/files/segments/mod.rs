// SPDX-License-Identifier: Apache-2.0
//! Segment files: the frames of recordings (`docs/spec/archive.md` §3.3).

mod create;
mod frames;
mod name;
mod scan;
mod stretch;
#[cfg(test)]
mod tests;

pub use create::SegmentCreator;
pub use frames::{Frame, FrameFault, FrameWalker, SegmentEnd};
pub use name::{SegmentDirectory, SegmentFileName, SegmentName};
pub use scan::{GapReason, RecordingScan, ScanTarget, SegmentGap};
pub(crate) use stretch::FrameChecker;

pub(super) use frames::{check_header, compute as compute_frame_checksum, verify as verify_frame};
