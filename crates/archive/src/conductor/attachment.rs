// SPDX-License-Identifier: Apache-2.0
//! Attaching segment files before the start of a recording (`docs/spec/archive.md` §2.7).

use taran_archive_client::protocol::ErrorCode;
use taran_storage::{
    AlignedBuf, DiskError, Metadata, OpenOptions, QueuedFile, Request as DiskRequest,
};

use super::request::{Refusal, Requester};
use super::truncation::PendingFileOperation;
use super::{ConductorCore, Deferred};
use crate::files::RecordingLayout;
use crate::recorder::segment_path;
use crate::replayer::Conversion;

/// Bytes read at a time to find the first frame of a file.
const CHUNK: usize = 64 * 1024;
/// Length of the header of a frame in bytes, and alignment of frames.
const HEADER: usize = 32;

/// Segment files that are being attached, from high to low positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attachment {
    recording_id: i64,
    to: Requester,
    layout: RecordingLayout,
    stream_id: i32,
    /// Start position that the recording gets.
    start: i64,
    /// Base position of the file being looked at.
    base: i64,
    /// Offset in that file of the bytes being read.
    offset: u64,
    attached: i64,
}

impl ConductorCore {
    pub(super) fn attach_segments(
        &mut self,
        recording_id: i64,
        to: Requester,
    ) -> Result<(), Refusal> {
        let found = self.known(recording_id)?;
        let layout = found.layout().map_err(Refusal::logged)?;
        let attachment = Attachment {
            recording_id,
            to,
            layout,
            stream_id: found.stream_id,
            start: found.start_position,
            base: layout.first_base(),
            offset: 0,
            attached: 0,
        };
        self.examine_next(attachment);
        Ok(())
    }

    /// Looks at the file before the last one.
    fn examine_next(&mut self, mut attachment: Attachment) {
        attachment.base -= i64::from(attachment.layout.segment_length());
        attachment.offset = 0;
        if attachment.base < 0 {
            self.finish_attachment(&attachment);
            return;
        }
        let path = segment_path(&self.directory(), attachment.recording_id, attachment.base);
        let operation = PendingFileOperation::ExamineToAttach(attachment);
        self.submit(DiskRequest::Metadata { path }, operation);
    }

    pub(super) fn on_examined(
        &mut self,
        attachment: Attachment,
        examined: Result<Metadata, DiskError>,
    ) {
        match examined {
            Ok(metadata) if metadata.len == attachment.layout.segment_length() as u64 => {
                let path =
                    segment_path(&self.directory(), attachment.recording_id, attachment.base);
                let options = OpenOptions::read();
                let operation = PendingFileOperation::OpenToAttach(attachment);
                self.submit(DiskRequest::Open { path, options }, operation);
            }
            Ok(metadata) => {
                let text = format!(
                    "the segment file at position {} has {} bytes instead of {}",
                    attachment.base,
                    metadata.len,
                    attachment.layout.segment_length()
                );
                self.fail_attachment(&attachment, text);
            }
            Err(error) if error.is_not_found() => self.finish_attachment(&attachment),
            Err(error) => self.fail_attachment(&attachment, error.to_string()),
        }
    }

    pub(super) fn read_to_attach(&mut self, attachment: Attachment, file: QueuedFile) {
        let request = DiskRequest::Read {
            file: file.clone(),
            offset: attachment.offset,
            buffer: AlignedBuf::new(CHUNK),
            range: 0..CHUNK,
        };
        self.submit(
            request,
            PendingFileOperation::ReadToAttach(attachment, file),
        );
    }

    pub(super) fn on_read_to_attach(
        &mut self,
        mut attachment: Attachment,
        file: QueuedFile,
        bytes: &[u8],
    ) {
        let frame = bytes
            .chunks(HEADER)
            .position(|header| header.get(..4).is_some_and(|length| length != [0; 4]));
        let Some(index) = frame else {
            attachment.offset += CHUNK as u64;
            if attachment.offset < attachment.layout.terms().term_length() as u64 {
                self.read_to_attach(attachment, file);
            } else {
                let text = format!(
                    "the segment file at position {} has no frame in its first term",
                    attachment.base
                );
                self.fail_attachment(&attachment, text);
            }
            return;
        };
        // An offset in a term.
        let offset = (attachment.offset as usize + index * HEADER) as i64;
        let position = attachment.base + offset;
        let conversion = Conversion {
            terms: attachment.layout.terms(),
            recorded_stream_id: attachment.stream_id,
            session_id: 0,
            stream_id: 0,
            checksum: None,
        };
        if let Err(error) = conversion.check_header(&bytes[index * HEADER..], position) {
            self.fail_attachment(&attachment, error.to_string());
            return;
        }
        attachment.start = position;
        attachment.attached += 1;
        if offset == 0 {
            self.examine_next(attachment);
        } else {
            self.finish_attachment(&attachment);
        }
    }

    pub(super) fn fail_attachment(&mut self, attachment: &Attachment, text: String) {
        // What was found good stays attached, as in the official archive.
        self.set_attached_start(attachment);
        self.refuse(attachment.to, &Refusal::new(ErrorCode::Generic, text));
    }

    fn finish_attachment(&mut self, attachment: &Attachment) {
        let ticket = self.set_attached_start(attachment);
        let message = Deferred::Ok(attachment.to, attachment.attached);
        self.deferred.push_back((ticket, message));
    }

    /// Stores the new start; returns the change to wait for.
    fn set_attached_start(&mut self, attachment: &Attachment) -> super::Ticket {
        if attachment.attached == 0 {
            return 0;
        }
        match self
            .catalog
            .set_start_position(attachment.recording_id, attachment.start)
        {
            Ok(change) => self.store.submit(change),
            Err(error) => {
                self.log(ErrorCode::Generic, &error.to_string());
                0
            }
        }
    }
}
