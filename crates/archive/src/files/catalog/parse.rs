// SPDX-License-Identifier: Apache-2.0
//! Reading a catalog from the bytes of its file.

use std::sync::Arc;

use taran_archive_client::codecs::control;
use taran_archive_client::codecs::control::catalog_header::CatalogHeaderDecoder;
use thiserror::Error;

use super::super::descriptor::{InvalidDescriptor, NULL_VALUE};
use super::entry::{self, Entry, EntryState, MalformedEntry};
use super::gap::{self, Gap};
use super::{Catalog, CatalogOptions, FILES_VERSION, HEADER, aligned_capacity, is_usable};

/// Highest alignment of entries that is taken for one.
const ALIGNMENT_MAX: i32 = 1 << 20;
/// Bytes that the search for an entry behind damage may decode, per byte of the file: entries of real catalogs do not overlap.
const SEARCH_FACTOR: u64 = 4;
/// Bytes that the search may decode in any case.
const SEARCH_MIN: u64 = 64 * 1024;

/// The bytes of a catalog file, without zeros at the end.
#[derive(Clone, Copy, Debug)]
pub struct CatalogContents<'a> {
    /// Bytes from the start of the file; all that follow are zero.
    pub bytes: &'a [u8],
    /// Length of the file in bytes.
    pub len: u64,
}

/// The bytes are no catalog that can be used.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The file has no complete header.
    #[error(
        "it has {len} bytes, and the header of a catalog has 32: it is no catalog, or was cut; restore it from a backup"
    )]
    Short {
        /// Length in bytes.
        len: u64,
    },
    /// All bytes are zero: no archive has written its header.
    #[error(
        "all of its bytes are zero: the archive was never started completely, or the file was damaged; if it has no recordings, remove the file"
    )]
    Zero,
    /// The header is none.
    #[error(
        "its header is damaged (length={length} alignment={alignment}); restore it from a backup"
    )]
    Header {
        /// Length field.
        length: i32,
        /// Alignment field.
        alignment: i32,
    },
    /// The major version is not 3.
    #[error("its version is {}.{}.{}, and this archive uses version 3: {}", version >> 16, version >> 8 & 0xff, version & 0xff, remedy(*version))]
    Version {
        /// The version.
        version: i32,
    },
    /// Damaged bytes are followed by entries, and no entry can take their place.
    #[error(
        "bytes {offset} to {next} are damaged, and no entry can take their place before that of recording {next_id}; restore the \
         catalog from a backup"
    )]
    Gap {
        /// Offset of the first damaged byte.
        offset: u64,
        /// Id of the next entry.
        next_id: i64,
        /// Offset of the next entry.
        next: u64,
    },
    /// The entries end at damage, and the search for others behind it was given up.
    #[error(
        "its entries end at byte {offset}, and what follows resembles entries so often that the search for recordings was \
         given up: this is no file of an archive, or a damaged one; restore the catalog from a backup"
    )]
    Unclear {
        /// Offset of the end.
        offset: u64,
    },
}

taran_core::debug_is_display!(ParseError);

fn remedy(version: i32) -> &'static str {
    match version.cmp(&(4 << 16)) {
        std::cmp::Ordering::Less if version >= 0 => {
            "migrate the archive (ArchiveTool migrate of Aeron)"
        }
        _ => "use the archive that wrote it",
    }
}

/// Findings in a catalog that can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseReport {
    /// Bytes behind the last entry that are not zero: of an entry that was being added, or of purged recordings.
    pub tail: Option<Tail>,
    /// Damaged bytes before an entry, in the order of the file.
    pub gaps: Vec<Gap>,
    /// The next recording id of the header was lower than that of an entry.
    pub next_id: Option<NextIdTooLow>,
    /// Recordings whose stop position was impossible; they are active now, and recovery finds their ends.
    pub impossible_stops: Vec<(i64, i64)>,
    /// VALID entries that cannot be used.
    pub unusable: Vec<(i64, InvalidDescriptor)>,
    /// Stopped recordings whose checksum does not fit their entry. Empty without a configured checksum.
    pub wrong_checksums: Vec<i64>,
    /// Recordings without a checksum, which get one. Empty without a configured checksum.
    pub missing_checksums: Vec<i64>,
}

/// Bytes behind the last entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tail {
    /// Offset of the first byte.
    pub offset: u64,
    /// The bytes, without zeros at the end.
    pub bytes: Vec<u8>,
    /// The reason why they are no entry; `None` if the length is zero.
    pub reason: Option<MalformedEntry>,
}

/// A next recording id that was used already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NextIdTooLow {
    /// The id in the header.
    pub stored: i64,
    /// The id that is used instead.
    pub used: i64,
}

impl Catalog {
    /// Reads a catalog. New recordings get an id of at least `least_next_id`, because there are files of lower ones.
    ///
    /// # Errors
    ///
    /// The bytes are no catalog, or damage leaves its entries unclear. Damaged bytes between entries are reported as gaps.
    pub fn parse(
        contents: CatalogContents<'_>,
        options: CatalogOptions,
        least_next_id: i64,
    ) -> Result<(Self, ParseReport), ParseError> {
        let CatalogContents { bytes, len } = contents;
        if len < HEADER {
            return Err(ParseError::Short { len });
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(ParseError::Zero);
        }
        let (next_id, alignment) = parse_header(bytes)?;
        let mut catalog = Self::create(options);
        catalog.alignment = alignment;
        let mut report = ParseReport::default();

        let mut budget = (bytes.len() as u64 * SEARCH_FACTOR).max(SEARCH_MIN);
        let mut offset = HEADER;
        // Ids of the entry before, and of the one before that.
        let (mut previous, mut second_previous) = (None, None);
        // Examined when it is known what follows it.
        let mut last: Option<Entry> = None;
        let reason = loop {
            let texts = &mut catalog.texts;
            let shared = |text: &str| texts.shared(text);
            let reason = match read_entry((bytes, len), offset, alignment, previous, shared) {
                Ok(Some(entry)) => {
                    offset += entry.length;
                    second_previous = previous.replace(entry.descriptor.recording_id);
                    if let Some(done) = last.replace(entry) {
                        catalog.take_parsed(done, &mut report);
                    }
                    continue;
                }
                Ok(None) => None,
                Err(malformed) => {
                    let next =
                        behind_wrong_id((bytes, len), offset, alignment, last.as_ref(), next_id);
                    if let Some(next) = next
                        && let Some(wrong) = &mut last
                        && let Some(deleted) = gap::entry_in(
                            &bytes[wrong.offset as usize..offset as usize],
                            wrong.offset,
                            (second_previous, next),
                        )
                    {
                        report.gaps.push(Gap {
                            offset: wrong.offset,
                            end: offset,
                            recording_id: deleted.descriptor.recording_id,
                            next_id: next,
                            reason: Some(MalformedEntry::IdTooHigh {
                                id: wrong.descriptor.recording_id,
                                next,
                            }),
                        });
                        previous = Some(deleted.descriptor.recording_id);
                        *wrong = deleted;
                        continue;
                    }
                    Some(malformed)
                }
            };
            match find_entry((bytes, len), offset, alignment, previous, &mut budget) {
                Following::Nothing => break reason,
                Following::Unclear => return Err(ParseError::Unclear { offset }),
                Following::Entry { next, next_id } => {
                    let damaged = bytes.get(offset as usize..next as usize);
                    let damaged = damaged.unwrap_or_default();
                    if let Some(entry) = gap::entry_in(damaged, offset, (previous, next_id)) {
                        second_previous = previous.replace(entry.descriptor.recording_id);
                        if let Some(done) = last.replace(entry) {
                            catalog.take_parsed(done, &mut report);
                        }
                    } else if let Some(entry) = &mut last {
                        entry.length += next - offset;
                    } else {
                        return Err(ParseError::Gap {
                            offset,
                            next_id,
                            next,
                        });
                    }
                    report.gaps.push(Gap {
                        offset,
                        end: next,
                        // An entry was there, or was put there.
                        recording_id: previous.unwrap_or(NULL_VALUE),
                        next_id,
                        reason,
                    });
                    offset = next;
                }
            }
        };
        if let Some(done) = last {
            catalog.take_parsed(done, &mut report);
        }
        if let Some(last) = rposition_nonzero(bytes, offset) {
            report.tail = Some(Tail {
                offset,
                bytes: bytes[offset as usize..=last].to_vec(),
                reason,
            });
        }
        let last_id = previous.unwrap_or(NULL_VALUE);
        let used = next_id.max(last_id.saturating_add(1)).max(least_next_id);
        // Zero stands for "not known".
        if used != next_id && next_id != 0 {
            report.next_id = Some(NextIdTooLow {
                stored: next_id,
                used,
            });
        }
        catalog.next_id = used;
        catalog.capacity = aligned_capacity(options.capacity.max(len), alignment).max(
            // An unaligned file of Aeron's may end in the middle of an alignment unit.
            len,
        );
        Ok((catalog, report))
    }

    fn take_parsed(&mut self, mut entry: Entry, report: &mut ParseReport) {
        examine(&mut entry, self.options, report);
        self.push_parsed(entry);
    }
}

/// Returns the next recording id and the alignment.
fn parse_header(bytes: &[u8]) -> Result<(i64, u64), ParseError> {
    let mut head = [0; HEADER as usize];
    let count = bytes.len().min(head.len());
    head[..count].copy_from_slice(&bytes[..count]);
    let damaged = |length, alignment| ParseError::Header { length, alignment };
    let header = CatalogHeaderDecoder::wrap(
        &head,
        CatalogHeaderDecoder::BLOCK_LENGTH,
        control::SCHEMA_VERSION,
    )
    .map_err(|_| damaged(0, 0))?;
    let version = header.version();
    if version >> 16 != FILES_VERSION >> 16 {
        return Err(ParseError::Version { version });
    }
    let (length, alignment) = (header.length(), header.alignment());
    let is_alignment = (32..=ALIGNMENT_MAX).contains(&alignment) && alignment.count_ones() == 1;
    let next_id = header.next_recording_id();
    if length != HEADER as i32 || !is_alignment || next_id < 0 {
        return Err(damaged(length, alignment));
    }
    Ok((next_id, u64::from(alignment.unsigned_abs())))
}

/// Reads the entry at an offset; `None` if the entries end there. `shared` returns the stored copy of a text.
fn read_entry(
    (bytes, len): (&[u8], u64),
    offset: u64,
    alignment: u64,
    previous: Option<i64>,
    shared: impl FnMut(&str) -> Arc<str>,
) -> Result<Option<Entry>, MalformedEntry> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = bytes.get(start..).unwrap_or_default();
    let Some(length) = entry::entry_length(&head(rest), offset, alignment, len)? else {
        return Ok(None);
    };
    let length = length as usize;
    let entry = if let Some(bytes) = rest.get(..length) {
        entry::decode(bytes, offset, previous, shared)?
    } else {
        // The zeros at the end of the file were left out. At most 2 GiB, as the file.
        let mut padded = rest.to_vec();
        padded.resize(length, 0);
        entry::decode(&padded, offset, previous, shared)?
    };
    Ok(Some(entry))
}

/// Returns the id of the entry at an offset if it is that of the entry before, `last`, that is wrong: too high. Either is
/// possible where ids do not ascend. It is taken for wrong if the header does not know it yet, or if two entries behind it have
/// lower ids.
fn behind_wrong_id(
    contents: (&[u8], u64),
    offset: u64,
    alignment: u64,
    last: Option<&Entry>,
    header_next_id: i64,
) -> Option<i64> {
    let last_id = last?.descriptor.recording_id;
    let none: Arc<str> = "".into();
    let entry_at = |offset, previous| {
        let entry = read_entry(contents, offset, alignment, previous, |_| Arc::clone(&none));
        entry.ok().flatten()
    };
    let next = entry_at(offset, None)?;
    let next_id = next.descriptor.recording_id;
    let is_unknown = header_next_id != 0 && last_id >= header_next_id;
    let is_below = |entry: Entry| entry.descriptor.recording_id <= last_id;
    let is_wrong = next_id <= last_id
        && (is_unknown || entry_at(next.offset + next.length, Some(next_id)).is_some_and(is_below));
    is_wrong.then_some(next_id)
}

/// Returns the first four bytes; zeros follow the end.
fn head(bytes: &[u8]) -> [u8; 4] {
    let mut head = [0; 4];
    let count = bytes.len().min(head.len());
    head[..count].copy_from_slice(&bytes[..count]);
    head
}

/// Bytes behind the end of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Following {
    Nothing,
    /// The first complete entry of a recording.
    Entry {
        next: u64,
        next_id: i64,
    },
    /// More candidates than the search may decode.
    Unclear,
}

/// Looks for the first complete entry of a recording behind an offset that has none. `budget` is the number of bytes that it may
/// still decode.
fn find_entry(
    (bytes, len): (&[u8], u64),
    from: u64,
    alignment: u64,
    previous: Option<i64>,
    budget: &mut u64,
) -> Following {
    let none: Arc<str> = "".into();
    let mut offset = from + alignment;
    while offset < bytes.len() as u64 {
        // Less than the length of the bytes.
        let rest = &bytes[offset as usize..];
        if let Ok(Some(length)) = entry::entry_length(&head(rest), offset, alignment, len) {
            let Some(left) = budget.checked_sub(length) else {
                return Following::Unclear;
            };
            *budget = left;
            if let Ok(Some(entry)) = read_entry((bytes, len), offset, alignment, previous, |_| {
                Arc::clone(&none)
            }) && entry.state != EntryState::Deleted
            {
                return Following::Entry {
                    next: offset,
                    next_id: entry.descriptor.recording_id,
                };
            }
        }
        offset += alignment;
    }
    Following::Nothing
}

/// Repairs what a crash can leave in an entry, and reports what makes it unusable.
fn examine(entry: &mut Entry, options: CatalogOptions, report: &mut ParseReport) {
    if entry.state != EntryState::Valid {
        return;
    }
    let id = entry.descriptor.recording_id;
    if let Some(checksum) = options.checksum
        && entry.checksum == 0
        && entry.descriptor.validate().is_ok()
    {
        entry.checksum = entry.compute_checksum(checksum);
        report.missing_checksums.push(id);
    }
    if let Some(checksum) = options.checksum
        && !entry.has_plausible_checksum(checksum)
        && !entry.descriptor.is_active()
    {
        report.wrong_checksums.push(id);
    }
    match entry.descriptor.validate() {
        Ok(_) => (),
        Err(
            InvalidDescriptor::StopBeforeStart { stop, .. }
            | InvalidDescriptor::UnalignedStop(stop),
        ) => {
            entry.descriptor.stop_position = NULL_VALUE;
            report.impossible_stops.push((id, stop));
        }
        Err(reason) => report.unusable.push((id, reason)),
    }
    debug_assert!(is_usable(entry) || !report.unusable.is_empty());
}

fn rposition_nonzero(bytes: &[u8], from: u64) -> Option<usize> {
    let from = usize::try_from(from).ok()?;
    let at = bytes.get(from..)?.iter().rposition(|byte| *byte != 0)?;
    Some(from + at)
}
