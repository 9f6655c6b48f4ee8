// SPDX-License-Identifier: Apache-2.0
//! The catalog file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use taran_storage::{Create, Disk, DiskError, DiskFile, ErrorKind, OpenOptions, SyncKind};

use super::super::SyncLevel;
use super::super::rewrite::rewrite;
use super::super::segments::SegmentDirectory;
use super::super::side_file;
use super::change::{Change, Piece, Step};
use super::gap::Gap;
use super::parse::{CatalogContents, ParseReport};
use super::{CATALOG_FILE, CATALOG_LENGTH_MAX, Catalog, CatalogError, CatalogOptions};

/// Name of a new catalog until it is complete.
const TEMPORARY: &str = "archive.catalog.updated";
const CHUNK: usize = 1 << 20;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Findings and repairs of opening a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogReport {
    /// The file was created.
    pub is_new: bool,
    /// Findings in the contents.
    pub contents: ParseReport,
    /// The file that keeps the bytes cut off behind the last entry.
    pub tail_file: Option<PathBuf>,
    /// The files that keep damaged bytes between entries, in the order of those that were not zero only.
    pub gap_files: Vec<PathBuf>,
}

impl CatalogReport {
    /// Returns a sentence for each finding.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let ParseReport {
            next_id,
            impossible_stops,
            unusable,
            wrong_checksums,
            gaps,
            ..
        } = &self.contents;
        let mut findings = Vec::new();
        if let Some(path) = &self.tail_file {
            findings.push(format!(
                "the catalog had bytes behind its last entry, which are in {} now",
                path.display()
            ));
        }
        for gap in gaps {
            let reason = gap.reason.as_ref();
            let reason =
                reason.map_or_else(|| "its length is zero".to_owned(), ToString::to_string);
            findings.push(format!(
                "the catalog was damaged from byte {} to {}, before the entry of recording {} ({reason}): the recordings that were \
                 there are gone from it, and their files stay",
                gap.offset, gap.end, gap.next_id
            ));
        }
        for path in &self.gap_files {
            findings.push(format!(
                "damaged bytes of the catalog are in {} now",
                path.display()
            ));
        }
        if let Some(found) = next_id {
            findings.push(format!(
                "the catalog had the next recording id {}, which was used already: it is {} now",
                found.stored, found.used
            ));
        }
        for (id, stop) in impossible_stops {
            findings.push(format!(
                "recording {id} had the impossible stop position {stop}: its end is found in its files"
            ));
        }
        for (id, reason) in unusable {
            findings.push(format!(
                "recording {id} cannot be used, because its catalog entry is damaged: {reason}"
            ));
        }
        for id in wrong_checksums {
            findings.push(format!(
                "the catalog entry of recording {id} does not have its checksum: verify the recording (taran recordings \
                 verify)"
            ));
        }
        findings
    }
}

/// The catalog of an archive, whose file is as it was found, or does not exist. The caller keeps the lock of the archive.
#[derive(Debug)]
pub struct FoundCatalog {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    options: CatalogOptions,
    found: Option<(Box<dyn DiskFile>, Catalog, ParseReport)>,
}

impl FoundCatalog {
    /// Repairs the file, or creates it: see [`CatalogFile::open`].
    ///
    /// # Errors
    ///
    /// The disk failed.
    pub fn open(self) -> Result<(CatalogFile, Catalog, CatalogReport), CatalogError> {
        let Some((file, catalog, contents)) = self.found else {
            return CatalogFile::create(&self.disk, &self.directory, self.options);
        };
        let mut opened = CatalogFile {
            path: self.directory.join(CATALOG_FILE),
            disk: self.disk,
            directory: self.directory,
            file,
            options: self.options,
            failure: None,
        };
        let (tail_file, gap_files) = opened.repair(&catalog, &contents)?;
        let report = CatalogReport {
            is_new: false,
            contents,
            tail_file,
            gap_files,
        };
        Ok((opened, catalog, report))
    }
}

/// The file of a [`Catalog`], which applies its changes. Calls block for as long as the disk does.
///
/// The caller holds the lock of the archive: see [`MarkFile`](super::super::MarkFile).
#[derive(Debug)]
pub struct CatalogFile {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    options: CatalogOptions,
    failure: Option<Box<DiskError>>,
}

impl CatalogFile {
    /// Opens the catalog of an archive, or creates it. Repairs what a crash can leave: bytes behind the last entry move to
    /// a side file, impossible stop positions become NULL.
    ///
    /// # Errors
    ///
    /// The disk failed, or the file is no catalog or damaged. Nothing was changed then, unless the disk failed.
    pub fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        options: CatalogOptions,
    ) -> Result<(Self, Catalog, CatalogReport), CatalogError> {
        Self::find(disk, directory, options)?.open()
    }

    /// Reads the catalog of an archive that is to be opened, and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn find(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        options: CatalogOptions,
    ) -> Result<FoundCatalog, CatalogError> {
        let found = match disk.open(&directory.join(CATALOG_FILE), OpenOptions::write()) {
            Ok(file) => {
                let (catalog, report, _) = read(&**disk, directory, &*file, options)?;
                Some((file, catalog, report))
            }
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        Ok(FoundCatalog {
            disk: Arc::clone(disk),
            directory: directory.to_path_buf(),
            options,
            found,
        })
    }

    /// Reads the catalog of an archive without changing its file.
    ///
    /// # Errors
    ///
    /// There is none, the disk failed, or the file is no catalog or damaged.
    pub fn read(
        disk: &dyn Disk,
        directory: &Path,
        options: CatalogOptions,
    ) -> Result<(Catalog, ParseReport), CatalogError> {
        let path = directory.join(CATALOG_FILE);
        let file = disk.open(&path, OpenOptions::read()).map_err(|error| {
            if error.is_not_found() {
                CatalogError::Missing {
                    directory: directory.to_path_buf(),
                }
            } else {
                error.into()
            }
        })?;
        let (catalog, report, _) = read(disk, directory, &*file, options)?;
        Ok((catalog, report))
    }

    fn create(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        options: CatalogOptions,
    ) -> Result<(Self, Catalog, CatalogReport), CatalogError> {
        let names = SegmentDirectory::list(&**disk, directory)?;
        let mut catalog = Catalog::create(options);
        catalog.next_id = names.next_recording_id();
        let path = directory.join(CATALOG_FILE);
        let pieces = [Piece::Bytes(catalog.header())];
        let file = write_new(&**disk, directory, None, &pieces, catalog.capacity)?;
        let report = CatalogReport {
            is_new: true,
            ..CatalogReport::default()
        };
        let opened = Self {
            disk: Arc::clone(disk),
            directory: directory.to_path_buf(),
            path,
            file,
            options,
            failure: None,
        };
        Ok((opened, catalog, report))
    }

    /// Brings the file to the state of the catalog that was read from it.
    fn repair(
        &mut self,
        catalog: &Catalog,
        report: &ParseReport,
    ) -> Result<(Option<PathBuf>, Vec<PathBuf>), CatalogError> {
        if catalog.capacity > self.file.len()? {
            grow(&*self.file, catalog.capacity)?;
        }
        let mut tail_file = None;
        if let Some(tail) = &report.tail {
            let range = tail.offset..tail.offset + tail.bytes.len() as u64;
            tail_file = Some(side_file::keep(
                &*self.disk,
                &self.path,
                &*self.file,
                range,
            )?);
            // The first bytes first: without a length, the rest is behind the end again.
            let head = tail.bytes.len().min(4);
            self.file.write_at(&ZEROS[..head], tail.offset)?;
            self.sync()?;
            zero(&*self.file, tail.offset, tail.bytes.len() as u64)?;
        }
        let mut gap_files = Vec::new();
        for gap in &report.gaps {
            gap_files.extend(self.fill(catalog, gap)?);
        }
        let stops = report.impossible_stops.iter().map(|(id, _)| *id);
        for id in stops.chain(report.missing_checksums.iter().copied()) {
            if let Some(entry) = catalog.entry(id) {
                let mut change = Change::default();
                catalog.write_fields(&mut change, &mut entry.clone());
                self.apply(&change)?;
            }
        }
        if report.next_id.is_some() {
            self.file
                .write_at(&catalog.next_id.to_le_bytes(), super::NEXT_ID_AT)?;
        }
        if self.options.sync != SyncLevel::None {
            // What an earlier process has written may be in the page cache only, also after a sync, if that failed.
            rewrite(&*self.file, 0..catalog.end)?;
            self.sync()?;
        }
        Ok((tail_file, gap_files))
    }

    /// Keeps damaged bytes in a side file, unless all are zero, and replaces them by the entry that the catalog has there, or by
    /// zeros at the end of the entry before. A crash in between leaves a gap again.
    fn fill(&self, catalog: &Catalog, gap: &Gap) -> Result<Option<PathBuf>, DiskError> {
        let range = gap.offset..gap.end;
        let side_file = match side_file::last_nonzero(&*self.file, range.clone())? {
            Some(_) => {
                let kept = side_file::keep(&*self.disk, &self.path, &*self.file, range.clone());
                Some(kept?)
            }
            None => None,
        };
        let Some(entry) = catalog.entry(gap.recording_id) else {
            debug_assert!(false, "the catalog has an entry for each gap");
            return Ok(side_file);
        };
        self.file.write_at(&ZEROS[..4], gap.offset)?;
        self.sync()?;
        zero(&*self.file, gap.offset, gap.end - gap.offset)?;
        let bytes = entry.encode();
        let (length, rest) = bytes.split_at(4);
        if entry.offset == gap.offset {
            self.file.write_at(rest, gap.offset + 4)?;
        }
        self.sync()?;
        self.file.write_at(length, entry.offset)?;
        self.sync()?;
        Ok(side_file)
    }

    /// Makes changes durable if the sync level asks for that. Without, a sync that fails would take what is in the page cache.
    fn sync(&self) -> Result<(), DiskError> {
        match self.options.sync.kind() {
            Some(kind) => self.file.sync(kind),
            None => Ok(()),
        }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings a change to the file. Changes are applied in the order in which they were made.
    ///
    /// # Errors
    ///
    /// The disk failed now or before. The change may be in the file in part; the file can be opened in any case. If the disk
    /// [is full](CatalogError::is_full), the same change can be applied again.
    pub fn apply(&mut self, change: &Change) -> Result<(), CatalogError> {
        if let Some(first) = &self.failure {
            return Err(CatalogError::FailedBefore {
                path: self.path.clone(),
                first: first.clone(),
            });
        }
        for step in change.steps() {
            if let Err(error) = self.step(step) {
                let failed = CatalogError::from(error.clone());
                if !failed.is_full() {
                    self.failure = Some(Box::new(error));
                }
                return Err(failed);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), DiskError> {
        match step {
            Step::Grow { len } => grow(&*self.file, *len),
            Step::Write { offset, bytes } => self.file.write_at(bytes, *offset),
            Step::Zero { offset, len } => zero(&*self.file, *offset, *len),
            Step::Sync => self.sync(),
            Step::Rewrite { pieces, len } => {
                let old = Some(&*self.file);
                self.file = write_new(&*self.disk, &self.directory, old, pieces, *len)?;
                Ok(())
            }
        }
    }

    /// Makes all changes durable, whatever the sync level.
    ///
    /// # Errors
    ///
    /// The disk failed now or before.
    pub fn close(self) -> Result<(), CatalogError> {
        if let Some(first) = self.failure {
            return Err(CatalogError::FailedBefore {
                path: self.path,
                first,
            });
        }
        self.file.sync(SyncKind::All)?;
        Ok(())
    }
}

/// Reads and parses the file; lists the segment files, whose recording ids must not be given again.
fn read(
    disk: &dyn Disk,
    directory: &Path,
    file: &dyn DiskFile,
    options: CatalogOptions,
) -> Result<(Catalog, ParseReport, SegmentDirectory), CatalogError> {
    let path = || directory.join(CATALOG_FILE);
    let len = file.len()?;
    if len > CATALOG_LENGTH_MAX {
        return Err(CatalogError::TooLong {
            path: path(),
            len,
            limit: CATALOG_LENGTH_MAX,
        });
    }
    let names = SegmentDirectory::list(disk, directory)?;
    let bytes = read_nonzero(file, len)?;
    let contents = CatalogContents { bytes: &bytes, len };
    let (catalog, report) =
        Catalog::parse(contents, options, names.next_recording_id()).map_err(|reason| {
            CatalogError::Contents {
                path: path(),
                reason,
            }
        })?;
    Ok((catalog, report, names))
}

/// Reads a file without the zeros at its end.
fn read_nonzero(file: &dyn DiskFile, len: u64) -> Result<Vec<u8>, DiskError> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK.min(usize::try_from(len).unwrap_or(CHUNK))];
    let mut offset = 0;
    while offset < len {
        let count = file.read_at(&mut chunk, offset)?;
        if count == 0 {
            break;
        }
        if let Some(last) = chunk[..count].iter().rposition(|byte| *byte != 0) {
            // A catalog has less than 2 GiB.
            bytes.resize(offset as usize, 0);
            bytes.extend_from_slice(&chunk[..=last]);
        }
        offset += count as u64;
    }
    Ok(bytes)
}

/// Writes a new catalog, and gives it its name when it is complete and durable.
fn write_new(
    disk: &dyn Disk,
    directory: &Path,
    old: Option<&dyn DiskFile>,
    pieces: &[Piece],
    len: u64,
) -> Result<Box<dyn DiskFile>, DiskError> {
    let temporary = directory.join(TEMPORARY);
    match disk.remove_file(&temporary) {
        Err(error) if !error.is_not_found() => return Err(error),
        _ => (),
    }
    let written = write_pieces(disk, &temporary, old, pieces, len);
    if written.is_err() {
        // What is left of it needs space, and has no other use; the first error says more than this one.
        let _ = disk.remove_file(&temporary);
    }
    drop(written?);
    let path = directory.join(CATALOG_FILE);
    disk.rename(&temporary, &path)?;
    disk.sync_directory(directory)?;
    disk.open(&path, OpenOptions::write())
}

fn write_pieces(
    disk: &dyn Disk,
    path: &Path,
    old: Option<&dyn DiskFile>,
    pieces: &[Piece],
    len: u64,
) -> Result<Box<dyn DiskFile>, DiskError> {
    let file = disk.open(path, OpenOptions::write().with_create(Create::New))?;
    grow(&*file, len)?;
    let mut at = 0;
    let mut chunk = Vec::new();
    for piece in pieces {
        match (piece, old) {
            (Piece::Bytes(bytes), _) => {
                file.write_at(bytes, at)?;
                at += bytes.len() as u64;
            }
            (Piece::Copy { offset, len }, Some(old)) => {
                let mut done = 0;
                while done < *len {
                    chunk.resize(CHUNK.min(usize::try_from(*len - done).unwrap_or(CHUNK)), 0);
                    old.read_exact_at(&mut chunk, offset + done)?;
                    file.write_at(&chunk, at)?;
                    done += chunk.len() as u64;
                    at += chunk.len() as u64;
                }
            }
            (Piece::Copy { .. }, None) => debug_assert!(false, "a new catalog copies nothing"),
        }
    }
    file.sync(SyncKind::All)?;
    Ok(file)
}

/// Makes a file longer, with reserved blocks where the file system can do that.
fn grow(file: &dyn DiskFile, len: u64) -> Result<(), DiskError> {
    match file.allocate(0, len) {
        Err(error) if error.kind == ErrorKind::Unsupported => file.set_len(len.max(file.len()?)),
        result => result,
    }
}

/// Writes zeros.
fn zero(file: &dyn DiskFile, offset: u64, len: u64) -> Result<(), DiskError> {
    let mut done = 0;
    while done < len {
        let count = (len - done).min(ZEROS.len() as u64);
        file.write_at(&ZEROS[..count as usize], offset + done)?;
        done += count;
    }
    Ok(())
}
