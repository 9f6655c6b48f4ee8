// SPDX-License-Identifier: Apache-2.0
//! Segment files of a writer: opened, made ahead, extended, named and closed.

use taran_storage::{Create, DiskFile, OpenOptions, Request};

use super::{Naming, Op, Segment, SegmentWriter};
use crate::disk_io::DiskIo;
use crate::files::{SegmentName, SyncLevel};

impl SegmentWriter {
    /// Makes a segment that was not made ahead. A crash must not leave frames in it behind a hole in the one before, so it waits
    /// for that.
    pub(super) fn open_next(&mut self, base: i64, io: &mut DiskIo) {
        if !self.ahead.is_working() && self.segments.len() < 2 && self.is_last_complete() {
            self.open_segment(base, io);
        }
    }

    /// Returns true if all frames of the last segment are written and as durable as the sync level asks for.
    fn is_last_complete(&self) -> bool {
        self.segments
            .back()
            .is_none_or(|segment| self.position >= self.start.layout.next_base(segment.base))
    }

    /// Goes on in the file that was made ahead, if it is ready. It gets its name later.
    pub(super) fn take_ahead(&mut self, base: i64) -> bool {
        let name = self.name_of(base);
        // At most one segment waits for another.
        let file = (self.segments.len() < 2)
            .then(|| self.ahead.take(name))
            .flatten();
        let Some(file) = file else {
            return false;
        };
        let sequence = self.next_sequence();
        self.segments.push_back(Segment {
            base,
            sequence,
            file: Some(file),
            is_ready: true,
            naming: Naming::Waiting,
            submitted: base,
            synced: base,
            syncing: None,
        });
        true
    }

    /// Makes the file of the segment behind the one that is written, when half of that is full.
    pub(super) fn prepare_next(&mut self, io: &mut DiskIo) {
        let Some(segment) = self.segments.back() else {
            return;
        };
        let layout = &self.start.layout;
        let half = i64::from(layout.segment_length() / 2);
        let next = self.name_of(layout.next_base(segment.base));
        if self.is_closing
            || !segment.is_ready
            || segment.naming != Naming::Done
            || segment.submitted - segment.base < half
            || self.ahead.is_working()
            || self.ahead.is_for(next)
        {
            return;
        }
        if let Some(request) = self.ahead.begin(next) {
            self.submit(Op::Ahead, 0, request, io);
        }
    }

    /// Names the segment that is first now, and makes its name durable if the sync level asks for that.
    pub(super) fn submit_name(&mut self, io: &mut DiskIo) {
        let Some(segment) = self.segments.front_mut() else {
            return;
        };
        let (base, sequence) = (segment.base, segment.sequence);
        match segment.naming {
            Naming::Waiting => {
                segment.naming = Naming::Renaming;
                let from = self
                    .name_of(base)
                    .map(|name| name.reserved_path(&self.options.directory));
                let rename = Request::Rename {
                    from: from.unwrap_or_default(),
                    to: self.path(base),
                };
                self.submit(Op::Rename, sequence, rename, io);
            }
            Naming::Renamed => {
                segment.naming = Naming::Syncing;
                self.sync_directory(sequence, io);
            }
            Naming::Renaming | Naming::Syncing | Naming::Done => {}
        }
    }

    pub(super) fn name_of(&self, base: i64) -> Option<SegmentName> {
        SegmentName::new(self.start.recording_id, base)
    }

    pub(super) fn close_file(&mut self, segment: Segment, io: &mut DiskIo) {
        if let Some(file) = segment.file {
            self.submit(Op::Other, 0, Request::Close { file }, io);
        }
    }

    pub(super) fn open_segment(&mut self, base: i64, io: &mut DiskIo) {
        let sequence = self.next_sequence();
        let begin = base.max(self.start.position);
        self.segments.push_back(Segment {
            base,
            sequence,
            file: None,
            is_ready: false,
            naming: Naming::Done,
            submitted: begin,
            synced: begin,
            syncing: None,
        });
        self.begin_open(io);
    }

    /// Returns true if the last segment is the one in which an extended recording goes on.
    fn is_continued(&self) -> bool {
        let base = self.segments.back().map(|segment| segment.base);
        self.start.is_extension && base == Some(self.start.layout.base_of(self.start.position))
    }

    pub(super) fn begin_open(&mut self, io: &mut DiskIo) {
        let (layout, position) = (&self.start.layout, self.start.position);
        if !self.is_continued() {
            self.submit_open(Create::New, io);
        } else if layout.offset_of(position) == 0 || position == layout.start_position() {
            // The file has no frame: Aeron leaves an empty file at the start of a segment. A replica without data has no file.
            self.submit_open(Create::IfMissing, io);
        } else if let Some(segment) = self.segments.back() {
            let path = self.path(segment.base);
            self.submit(Op::Examine, 0, Request::Metadata { path }, io);
        }
    }

    pub(super) fn submit_open(&mut self, create: Create, io: &mut DiskIo) {
        if let Some(segment) = self.segments.back() {
            let path = self.path(segment.base);
            let options = OpenOptions::write().with_create(create);
            self.submit(Op::Open, 0, Request::Open { path, options }, io);
        }
    }

    pub(super) fn on_opened(&mut self, file: Box<dyn DiskFile>, io: &mut DiskIo) {
        let file = io.attach(file);
        let is_continued = self.is_continued();
        if let Some(segment) = self.segments.back_mut() {
            segment.file = Some(file.clone());
        }
        if is_continued {
            // Old frames behind the position would be taken for recorded ones at the next recovery: they become zeros.
            let len = self.start.layout.offset_of(self.start.position);
            self.submit(Op::Cut, 0, Request::SetLength { file, len }, io);
        } else {
            self.submit_extend(io);
        }
    }

    pub(super) fn submit_extend(&mut self, io: &mut DiskIo) {
        let file = self
            .segments
            .back()
            .and_then(|segment| segment.file.clone());
        if let Some(file) = file {
            let len = u64::from(self.start.layout.segment_length().unsigned_abs());
            self.submit(Op::Extend, 0, Request::SetLength { file, len }, io);
        }
    }

    pub(super) fn on_extended(&mut self, io: &mut DiskIo) {
        let Some(segment) = self.segments.back_mut() else {
            return;
        };
        if self.options.sync == SyncLevel::None {
            segment.is_ready = true;
        } else {
            let sequence = segment.sequence;
            self.sync_directory(sequence, io);
        }
    }

    fn sync_directory(&mut self, sequence: u32, io: &mut DiskIo) {
        let directory = self.options.directory.clone();
        let sync = Request::SyncDirectory { directory };
        self.submit(Op::SyncDirectory, sequence, sync, io);
    }

    /// Removes the file that was made ahead, if there is one.
    pub(super) fn abandon_ahead(&mut self, io: &mut DiskIo) {
        for request in self.ahead.abandon() {
            self.submit(Op::Other, 0, request, io);
        }
    }
}
