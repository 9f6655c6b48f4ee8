// SPDX-License-Identifier: Apache-2.0
//! Moving segment files from one recording to another (`docs/spec/archive.md` §2.7).

use std::collections::VecDeque;

use taran_archive_client::protocol::{ErrorCode, NULL_VALUE, RecordingSignal};
use taran_storage::{DirEntry, DiskError, Request as DiskRequest};

use super::request::{Refusal, Requester};
use super::truncation::PendingFileOperation;
use super::{ConductorCore, Deferred};
use crate::files::{Descriptor, RecordingLayout, SegmentName};
use crate::session::Signal;

/// The end of the destination at which the source continues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    Before,
    Behind,
}

/// Segment files that are being moved.
#[derive(Clone, Debug)]
pub(super) struct Migration {
    source: i64,
    destination: i64,
    to: Requester,
    join: Join,
    start: i64,
    stop: i64,
    /// Base positions of files to move.
    bases: VecDeque<i64>,
    /// Base positions of files that were moved.
    moved: Vec<i64>,
    /// Base position of the empty file behind the source.
    empty: Option<i64>,
}

impl ConductorCore {
    pub(super) fn migrate_segments(
        &mut self,
        source: i64,
        destination: i64,
        to: Requester,
    ) -> Result<(), Refusal> {
        let (from, into) = (self.known(source)?, self.known(destination)?);
        let refused = |text: String| Refusal::new(ErrorCode::Generic, text);
        if self.is_active(source) {
            return Err(refused(format!(
                "the recording {source} is active: stop it first"
            )));
        }
        check_equal(from, into)?;
        let layouts = from.layout().and_then(|from| Ok((from, into.layout()?)));
        let (of_source, of_destination) = layouts.map_err(Refusal::logged)?;
        let join = if from.stop_position == into.start_position {
            Join::Before
        } else if from.start_position == into.stop_position {
            Join::Behind
        } else {
            return Err(refused(format!(
                "the recordings are not adjacent: {source} is from {} to {}, {destination} from {} to {}",
                from.start_position, from.stop_position, into.start_position, into.stop_position
            )));
        };
        let position = match join {
            Join::Before => from.stop_position,
            Join::Behind => from.start_position,
        };
        if !of_source.is_base(position) || !of_destination.is_base(position) {
            return Err(refused(format!(
                "the recordings join at position {position}, which is not the base position of a segment of both"
            )));
        }
        self.check_no_deletion(source)?;
        self.check_no_deletion(destination)?;
        let migration = Migration {
            source,
            destination,
            to,
            join,
            start: from.start_position,
            stop: from.stop_position,
            bases: bases(&of_source, from.stop_position).collect(),
            moved: Vec::new(),
            empty: None,
        };
        let directory = self.directory();
        let operation = PendingFileOperation::ListToMigrate(migration);
        self.submit(DiskRequest::List { directory }, operation);
        Ok(())
    }

    pub(super) fn on_listed_to_migrate(&mut self, mut migration: Migration, entries: &[DirEntry]) {
        let exists = |recording_id, base| {
            let name = SegmentName::new(recording_id, base).map(SegmentName::file_name);
            name.is_some_and(|name| entries.iter().any(|entry| entry.name == *name))
        };
        for base in &migration.bases {
            let problem = if !exists(migration.source, *base) {
                "is missing"
            } else if exists(migration.destination, *base) {
                "exists in the destination"
            } else {
                continue;
            };
            let text = format!("the segment file at position {base} {problem}: nothing was moved");
            self.refuse(migration.to, &Refusal::logged(text));
            return;
        }
        let has_empty = !migration.bases.contains(&migration.stop);
        migration.empty =
            (has_empty && exists(migration.source, migration.stop)).then_some(migration.stop);
        self.move_next(migration);
    }

    fn move_next(&mut self, mut migration: Migration) {
        let Some(base) = migration.bases.pop_front() else {
            self.finish_migration(&migration);
            return;
        };
        migration.moved.push(base);
        let directory = self.directory();
        let names = SegmentName::new(migration.source, base)
            .zip(SegmentName::new(migration.destination, base));
        if let Some((from, to)) = names {
            let request = DiskRequest::Rename {
                from: from.path(&directory),
                to: to.path(&directory),
            };
            self.submit(request, PendingFileOperation::Migrate(migration));
        }
    }

    pub(super) fn on_moved(&mut self, mut migration: Migration, failure: Option<DiskError>) {
        let Some(error) = failure else {
            self.move_next(migration);
            return;
        };
        migration.moved.pop();
        let directory = self.directory();
        for base in &migration.moved {
            let names = SegmentName::new(migration.source, *base)
                .zip(SegmentName::new(migration.destination, *base));
            if let Some((to, from)) = names {
                let request = DiskRequest::Rename {
                    from: from.path(&directory),
                    to: to.path(&directory),
                };
                self.submit(request, PendingFileOperation::Unused);
            }
        }
        self.refuse(migration.to, &Refusal::logged(error));
    }

    fn finish_migration(&mut self, migration: &Migration) {
        let &Migration {
            source,
            destination,
            to,
            ..
        } = migration;
        let into = match migration.join {
            Join::Before => self
                .catalog
                .set_start_position(destination, migration.start),
            Join::Behind => self.catalog.set_stop_position(destination, migration.stop),
        };
        let from = into.and_then(|change| {
            self.store.submit(change);
            self.catalog.set_stop_position(source, migration.start)
        });
        let change = match from {
            Ok(change) => change,
            Err(error) => {
                self.refuse(to, &Refusal::logged(error));
                return;
            }
        };
        if let Some(name) = migration
            .empty
            .and_then(|base| SegmentName::new(source, base))
        {
            let path = name.path(&self.directory());
            self.submit(
                DiskRequest::RemoveFile { path },
                PendingFileOperation::Unused,
            );
        }
        // A recording has fewer files than 2^63.
        let count = migration.moved.len() as i64;
        let ticket = self.store.submit(change);
        let signal = Signal {
            correlation_id: to.correlation_id,
            recording_id: source,
            subscription_id: NULL_VALUE,
            position: NULL_VALUE,
            signal: RecordingSignal::DELETE,
        };
        self.deferred.push_back((ticket, Deferred::Ok(to, count)));
        self.deferred
            .push_back((ticket, Deferred::Signal(to.session_id, signal)));
    }
}

/// Returns the base positions of the files with frames of a recording.
fn bases(layout: &RecordingLayout, stop: i64) -> impl Iterator<Item = i64> {
    let layout = *layout;
    let first = (layout.start_position() < stop).then(|| layout.first_base());
    std::iter::successors(first, move |base| {
        Some(layout.next_base(*base)).filter(|next| *next < stop)
    })
}

fn check_equal(from: &Descriptor, into: &Descriptor) -> Result<(), Refusal> {
    for (name, of_source, of_destination) in [
        (
            "segment file length",
            from.segment_file_length,
            into.segment_file_length,
        ),
        (
            "term length",
            from.term_buffer_length,
            into.term_buffer_length,
        ),
        (
            "initial term id",
            from.initial_term_id,
            into.initial_term_id,
        ),
        ("stream id", from.stream_id, into.stream_id),
        ("MTU", from.mtu_length, into.mtu_length),
    ] {
        if of_source != of_destination {
            return Err(Refusal::new(
                ErrorCode::Generic,
                format!(
                    "the {name} of the recordings differs: {of_source} of the source, {of_destination} of the destination"
                ),
            ));
        }
    }
    Ok(())
}
