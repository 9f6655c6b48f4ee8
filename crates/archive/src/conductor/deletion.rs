// SPDX-License-Identifier: Apache-2.0
//! Deleting segment files, one at a time (`docs/spec/archive.md` §2.7).

use std::collections::VecDeque;

use taran_archive_client::protocol::{ErrorCode, NULL_VALUE, RecordingSignal};
use taran_storage::{DirEntry, DiskError, QueuedFile, Request as DiskRequest};

use super::ConductorCore;
use super::catalog_store::Ticket;
use super::request::{Refusal, Requester};
use super::truncation::PendingFileOperation;
use crate::files::{SegmentFileName, SyncLevel};
use crate::session::Signal;

/// Files of a recording to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// All, with those that an old version was about to delete.
    All,
    /// Those with a lower base position.
    Below(i64),
    /// Those with at least this base position.
    From(i64),
}

/// A file to cut before others are deleted: zeros follow the first bytes.
#[derive(Clone, Debug)]
pub(super) struct CutFile {
    pub(super) file: QueuedFile,
    /// Bytes that are kept.
    pub(super) kept: u64,
    /// Length of the file in bytes.
    pub(super) len: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The catalog says first that the files are not needed.
    Waiting(Ticket),
    Listing,
    Removing,
    Done,
}

/// A deletion of segment files.
#[derive(Debug)]
pub(super) struct Deletion {
    recording_id: i64,
    to: Requester,
    selection: Selection,
    cut: Option<CutFile>,
    state: State,
    names: VecDeque<String>,
}

impl Selection {
    fn contains(self, name: &SegmentFileName, recording_id: i64) -> bool {
        match name {
            SegmentFileName::Segment(name) if name.recording_id() == recording_id => match self {
                Self::All => true,
                Self::Below(base) => name.base() < base,
                Self::From(base) => name.base() >= base,
            },
            SegmentFileName::Deleted { recording_id: id } => {
                self == Self::All && *id == recording_id
            }
            _ => false,
        }
    }
}

impl ConductorCore {
    /// Returns an error if files of a recording are being deleted.
    pub(super) fn check_no_deletion(&self, recording_id: i64) -> Result<(), Refusal> {
        if self
            .deletions
            .iter()
            .any(|deletion| deletion.recording_id == recording_id)
        {
            return Err(Refusal::new(
                ErrorCode::Generic,
                format!(
                    "segment files of the recording {recording_id} are being deleted: wait for the DELETE signal"
                ),
            ));
        }
        Ok(())
    }

    /// Deletes files when a change of the catalog is applied.
    pub(super) fn delete_files(
        &mut self,
        recording_id: i64,
        to: Requester,
        selection: Selection,
        ticket: Ticket,
        cut: Option<CutFile>,
    ) {
        self.deletions.push(Deletion {
            recording_id,
            to,
            selection,
            cut,
            state: State::Waiting(ticket),
            names: VecDeque::new(),
        });
    }

    pub(super) fn poll_deletions(&mut self) -> usize {
        let applied = self.store.applied();
        let mut work = 0;
        let mut at = 0;
        while at < self.deletions.len() {
            let deletion = &mut self.deletions[at];
            let recording_id = deletion.recording_id;
            match deletion.state {
                State::Waiting(ticket) if ticket <= applied => {
                    deletion.state = State::Listing;
                    let cut = deletion.cut.take();
                    work += 1;
                    if let Some(CutFile { file, kept, len }) = cut {
                        let cut = DiskRequest::SetLength {
                            file: file.clone(),
                            len: kept,
                        };
                        self.submit(cut, PendingFileOperation::Unused);
                        let extend = DiskRequest::SetLength {
                            file: file.clone(),
                            len,
                        };
                        self.submit(extend, PendingFileOperation::Unused);
                        self.submit(DiskRequest::Close { file }, PendingFileOperation::Unused);
                    }
                    let directory = self.directory();
                    let operation = PendingFileOperation::List { recording_id };
                    self.submit(DiskRequest::List { directory }, operation);
                }
                State::Done => {
                    let done = self.deletions.swap_remove(at);
                    let signal = Signal {
                        correlation_id: done.to.correlation_id,
                        recording_id,
                        subscription_id: NULL_VALUE,
                        position: NULL_VALUE,
                        signal: RecordingSignal::DELETE,
                    };
                    self.signal(done.to.session_id, &signal);
                    work += 1;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        work
    }

    fn deletion_mut(&mut self, recording_id: i64) -> Option<&mut Deletion> {
        self.deletions
            .iter_mut()
            .find(|deletion| deletion.recording_id == recording_id)
    }

    pub(super) fn on_listed(
        &mut self,
        recording_id: i64,
        entries: Result<Vec<DirEntry>, DiskError>,
    ) {
        let Some(deletion) = self.deletion_mut(recording_id) else {
            return;
        };
        let to = deletion.to;
        match entries {
            Ok(entries) => {
                let selection = deletion.selection;
                deletion.names = entries
                    .iter()
                    .filter(|entry| {
                        let name = SegmentFileName::parse(&entry.name);
                        name.is_some_and(|name| selection.contains(&name, recording_id))
                    })
                    .filter_map(|entry| Some(entry.name.to_str()?.to_owned()))
                    .collect();
                deletion.state = State::Removing;
                // A directory has fewer files than 2^63.
                let count = deletion.names.len() as i64;
                self.respond(to, Ok(count));
                self.remove_next(recording_id);
            }
            Err(error) => {
                deletion.state = State::Done;
                self.refuse(to, &Refusal::logged(error));
            }
        }
    }

    fn remove_next(&mut self, recording_id: i64) {
        let directory = self.directory();
        let is_synced = self.config.file_sync_level != SyncLevel::None;
        let Some(deletion) = self.deletion_mut(recording_id) else {
            return;
        };
        match deletion.names.pop_front() {
            Some(name) => {
                let path = directory.join(name);
                let operation = PendingFileOperation::Remove { recording_id };
                self.submit(DiskRequest::RemoveFile { path }, operation);
            }
            // Names that a power cut brings back would never be removed.
            None if is_synced => {
                let operation = PendingFileOperation::SyncRemoved { recording_id };
                self.submit(DiskRequest::SyncDirectory { directory }, operation);
            }
            None => deletion.state = State::Done,
        }
    }

    pub(super) fn on_removal_synced(&mut self, recording_id: i64, failure: Option<DiskError>) {
        if let Some(error) = failure {
            self.log(ErrorCode::Generic, &error.to_string());
        }
        if let Some(deletion) = self.deletion_mut(recording_id) {
            deletion.state = State::Done;
        }
    }

    pub(super) fn on_removed(&mut self, recording_id: i64, failure: Option<DiskError>) {
        let to = self.deletion_mut(recording_id).map(|deletion| deletion.to);
        if let (Some(error), Some(to)) = (failure, to)
            && !error.is_not_found()
        {
            self.refuse(to, &Refusal::logged(error));
        }
        self.remove_next(recording_id);
    }
}
