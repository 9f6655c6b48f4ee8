// SPDX-License-Identifier: Apache-2.0
//! State with which a member starts.

use thiserror::Error;

use super::Terms;
use super::membership::MembershipEntry;

/// State of a member that survives its process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Term of the node state file; [`NULL_TERM`](super::NULL_TERM) if there was none.
    pub candidate_term: i64,
    /// TERM entries of the recording log.
    pub terms: Terms,
    /// Length of the log, all of which is flushed.
    pub append_position: i64,
    /// Position of the snapshot that was loaded, which a quorum has committed.
    pub commit_position: i64,
    /// Memberships of the log, in ascending order: first the one at the snapshot, or an earlier one, then those of the changes that
    /// are known behind it. Without any, the log starts with the members of the configuration.
    pub memberships: Vec<MembershipEntry>,
    /// Position up to which the membership changes in the log are known.
    pub examined_position: i64,
}

/// Reason why a member cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RecoveryError {
    /// The log is shorter than its list of terms says.
    #[error(
        "the log ends at {append_position}, but the recording log has a TERM entry {term} at {base}: entries that this member \
         acknowledged are gone; replace the member, or restore its archive"
    )]
    LogTooShort {
        /// Term of the entry.
        term: i64,
        /// Position of the entry.
        base: i64,
        /// Length of the log.
        append_position: i64,
    },
    /// The snapshot is newer than the log.
    #[error(
        "the snapshot is at {commit_position}, but the log ends at {append_position}; restore the archive, or replace the member"
    )]
    SnapshotBeyondLog {
        /// Position of the snapshot.
        commit_position: i64,
        /// Length of the log.
        append_position: i64,
    },
    /// The memberships are out of order.
    #[error(
        "the memberships in the node state file are out of order: restore the file, or replace the member"
    )]
    InvalidMemberships,
    /// The log has entries, and no TERM entry covers them.
    #[error(
        "the log ends at {append_position}, but the recording log has no TERM entry; restore the recording log, or replace the \
         member"
    )]
    LogWithoutTerms {
        /// Length of the log.
        append_position: i64,
    },
}
