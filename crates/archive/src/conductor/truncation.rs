// SPDX-License-Identifier: Apache-2.0
//! Requests of the conductor to its disk queue, and the truncation of recordings.

use taran_archive_client::protocol::ErrorCode;
use taran_storage::{
    AlignedBuf, Completion, DiskError, OpenOptions, Outcome, QueuedFile, Request as DiskRequest,
};

use super::ConductorCore;
use super::attachment::Attachment;
use super::deletion::{CutFile, Selection};
use super::migration::Migration;
use super::recordings::WantedRecording;
use super::request::{Refusal, Requester};
use super::time_index::IndexOperation;
use crate::recorder::segment_path;
use crate::replayer::Conversion;

/// Length of the header of a frame in bytes.
const HEADER: usize = 32;

/// Continuation of a request to the disk queue.
#[derive(Debug)]
pub(super) enum PendingFileOperation {
    /// A recording starts if there is space.
    Space {
        wanted: WantedRecording,
        to: Requester,
    },
    /// Files of a recording are deleted.
    List { recording_id: i64 },
    /// The next file of a recording is deleted.
    Remove { recording_id: i64 },
    /// The names of deleted files are gone for good.
    SyncRemoved { recording_id: i64 },
    /// The segment in which a recording is to end was opened.
    OpenToTruncate(Truncation),
    /// The header at the new end was read.
    CheckToTruncate(Truncation, QueuedFile),
    /// Files of a recording are moved to another one, if all are there.
    ListToMigrate(Migration),
    /// The next file is moved.
    Migrate(Migration),
    /// The length of a file to attach is read.
    ExamineToAttach(Attachment),
    /// A file to attach was opened.
    OpenToAttach(Attachment),
    /// Bytes of a file to attach were read.
    ReadToAttach(Attachment, QueuedFile),
    /// A time index is written or searched.
    TimeIndex(IndexOperation),
    /// Failures are logged.
    Unused,
}

/// A recording to truncate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truncation {
    recording_id: i64,
    position: i64,
    to: Requester,
}

impl ConductorCore {
    pub(super) fn submit(&mut self, request: DiskRequest, then: PendingFileOperation) {
        self.next_token += 1;
        self.file_operations.insert(self.next_token, then);
        self.io.submit(self.next_token, request);
    }

    pub(super) fn poll_disk(&mut self) -> usize {
        let mut work = 0;
        while let Some(completion) = self.io.poll(self.now.nanos) {
            work += 1;
            if let Some(operation) = self.file_operations.remove(&completion.token) {
                self.on_completion(operation, completion);
            }
        }
        work
    }

    fn on_completion(&mut self, operation: PendingFileOperation, completion: Completion) {
        match (operation, completion.result) {
            (PendingFileOperation::TimeIndex(operation), done) => {
                self.on_index_operation(operation, done, completion.buffer.as_deref());
            }
            (PendingFileOperation::Space { wanted, to }, Ok(Outcome::Space(space))) => {
                self.subscribe(wanted, to, Ok(space.free));
            }
            (PendingFileOperation::Space { wanted, to }, Err(error)) => {
                self.subscribe(wanted, to, Err(error));
            }
            (PendingFileOperation::List { recording_id }, Ok(Outcome::Entries(entries))) => {
                self.on_listed(recording_id, Ok(entries));
            }
            (PendingFileOperation::List { recording_id }, Err(error)) => {
                self.on_listed(recording_id, Err(error));
            }
            (PendingFileOperation::Remove { recording_id }, result) => {
                self.on_removed(recording_id, result.err());
            }
            (PendingFileOperation::SyncRemoved { recording_id }, result) => {
                self.on_removal_synced(recording_id, result.err());
            }
            (PendingFileOperation::OpenToTruncate(truncation), Ok(Outcome::Opened(file))) => {
                let file = self.io.attach(file);
                self.read_header(truncation, file);
            }
            (
                PendingFileOperation::CheckToTruncate(truncation, file),
                Ok(Outcome::Read(length)),
            ) => {
                let bytes = completion
                    .buffer
                    .as_deref()
                    .and_then(|buffer| buffer.get(..length));
                self.check_and_truncate(truncation, file, bytes.unwrap_or_default());
            }
            (PendingFileOperation::ListToMigrate(migration), Ok(Outcome::Entries(entries))) => {
                self.on_listed_to_migrate(migration, &entries);
            }
            (PendingFileOperation::Migrate(migration), result) => {
                self.on_moved(migration, result.err());
            }
            (
                PendingFileOperation::ExamineToAttach(attachment),
                Ok(Outcome::Metadata(metadata)),
            ) => {
                self.on_examined(attachment, Ok(metadata));
            }
            (PendingFileOperation::ExamineToAttach(attachment), Err(error)) => {
                self.on_examined(attachment, Err(error));
            }
            (PendingFileOperation::OpenToAttach(attachment), Ok(Outcome::Opened(file))) => {
                let file = self.io.attach(file);
                self.read_to_attach(attachment, file);
            }
            (PendingFileOperation::ReadToAttach(attachment, file), Ok(Outcome::Read(length))) => {
                let bytes = completion
                    .buffer
                    .as_deref()
                    .and_then(|buffer| buffer.get(..length));
                self.on_read_to_attach(attachment, file, bytes.unwrap_or_default());
            }
            (
                PendingFileOperation::OpenToAttach(attachment)
                | PendingFileOperation::ReadToAttach(attachment, _),
                Err(error),
            ) => self.fail_attachment(&attachment, error.to_string()),
            (PendingFileOperation::ListToMigrate(migration), Err(error)) => {
                self.on_moved(migration, Some(error));
            }
            (
                PendingFileOperation::OpenToTruncate(Truncation { to, .. })
                | PendingFileOperation::CheckToTruncate(Truncation { to, .. }, _),
                Err(error),
            ) => self.refuse(to, &Refusal::logged(error)),
            (_, Err(error)) => self.log_disk_error(&error),
            (_, Ok(_)) => {}
        }
    }

    fn log_disk_error(&self, error: &DiskError) {
        self.log(ErrorCode::Generic, &error.to_string());
    }

    pub(super) fn truncate_recording(
        &mut self,
        recording_id: i64,
        position: i64,
        to: Requester,
    ) -> Result<(), Refusal> {
        let found = self.known(recording_id)?;
        let (start, stop) = (found.start_position, found.stop_position);
        let layout = found.layout().map_err(Refusal::logged)?;
        self.check_unused(recording_id)?;
        if position < start || position > stop || position % 32 != 0 {
            return Err(Refusal::new(
                ErrorCode::InvalidPosition,
                format!(
                    "the position {position} is not a multiple of 32 from {start} to {stop}, where the recording \
                     {recording_id} can end"
                ),
            ));
        }
        self.check_no_deletion(recording_id)?;
        let truncation = Truncation {
            recording_id,
            position,
            to,
        };
        if position == start || position == stop || layout.is_base(position) {
            return self.truncate(truncation, None);
        }
        let path = segment_path(&self.directory(), recording_id, layout.base_of(position));
        let options = OpenOptions::write();
        let operation = PendingFileOperation::OpenToTruncate(truncation);
        self.submit(DiskRequest::Open { path, options }, operation);
        Ok(())
    }

    fn read_header(&mut self, truncation: Truncation, file: QueuedFile) {
        let layout = self
            .known(truncation.recording_id)
            .ok()
            .and_then(|found| found.layout().ok());
        let Some(layout) = layout else { return };
        let request = DiskRequest::Read {
            file: file.clone(),
            offset: layout.offset_of(truncation.position),
            buffer: AlignedBuf::new(HEADER),
            range: 0..HEADER,
        };
        self.submit(
            request,
            PendingFileOperation::CheckToTruncate(truncation, file),
        );
    }

    fn check_and_truncate(&mut self, truncation: Truncation, file: QueuedFile, header: &[u8]) {
        let result = self.check_header(truncation, header).and_then(|()| {
            // The recording may have been started or replayed meanwhile.
            self.check_unused(truncation.recording_id)?;
            self.check_no_deletion(truncation.recording_id)?;
            self.truncate(truncation, Some(file))
        });
        if let Err(refusal) = result {
            self.refuse(truncation.to, &refusal);
        }
    }

    fn check_header(&self, truncation: Truncation, header: &[u8]) -> Result<(), Refusal> {
        let found = self.known(truncation.recording_id)?;
        let layout = found.layout().map_err(Refusal::logged)?;
        let conversion = Conversion {
            terms: layout.terms(),
            recorded_stream_id: found.stream_id,
            session_id: 0,
            stream_id: 0,
            checksum: None,
        };
        let checked = conversion.check_header(header, truncation.position);
        checked
            .map(drop)
            .map_err(|error| Refusal::new(ErrorCode::Generic, error.to_string()))
    }

    fn truncate(
        &mut self,
        truncation: Truncation,
        file: Option<QueuedFile>,
    ) -> Result<(), Refusal> {
        let Truncation {
            recording_id,
            position,
            to,
        } = truncation;
        let found = self.known(recording_id)?;
        let layout = found.layout().map_err(Refusal::logged)?;
        let start = found.start_position;
        let change = self
            .catalog
            .set_stop_position(recording_id, position)
            .map_err(Refusal::logged)?;
        let ticket = self.store.submit(change);
        let base = layout.base_of(position);
        let selection = if position == start {
            Selection::All
        } else if base == position {
            Selection::From(base)
        } else {
            Selection::From(layout.next_base(base))
        };
        let cut = file.map(|file| CutFile {
            file,
            kept: layout.offset_of(position),
            len: u64::from(layout.segment_length().unsigned_abs()),
        });
        self.delete_files(recording_id, to, selection, ticket, cut);
        Ok(())
    }

    /// Checks that a recording is neither replayed nor active.
    pub(super) fn check_unused(&self, recording_id: i64) -> Result<(), Refusal> {
        if self.lowest_replay_position(recording_id).is_some() {
            return Err(Refusal::new(
                ErrorCode::ActiveRecording,
                format!("the recording {recording_id} is being replayed: stop its replays first"),
            ));
        }
        if self.is_active(recording_id) {
            return Err(Refusal::new(
                ErrorCode::ActiveRecording,
                format!("the recording {recording_id} is active: stop it first"),
            ));
        }
        Ok(())
    }
}
