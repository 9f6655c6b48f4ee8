// SPDX-License-Identifier: Apache-2.0
//! Support for generated codecs: one pass over a message, slots for its fields, groups as iterators.
//!
//! Generated decoders hold where each field is, not its value; values are parsed on access. Nothing is allocated.

use std::marker::PhantomData;

pub use crate::dict::{Fault, Kind, RejectReason, Validation};
pub use crate::wire::{
    Decimal, Fields, Frame, Precision, Timestamp, WriteError, Writer, int, unsigned,
};

/// Place of a value in a message; empty if the field is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    start: u32,
    length: u32,
}

impl Slot {
    /// Returns the bytes, or nothing if the field is absent.
    #[must_use]
    pub fn get(self, bytes: &[u8]) -> Option<&[u8]> {
        let start = self.start as usize;
        let end = start + self.length as usize;
        if self.length == 0 {
            None
        } else {
            bytes.get(start..end)
        }
    }

    /// Returns true if the field is present.
    #[must_use]
    pub const fn is_present(self) -> bool {
        self.length > 0
    }

    /// Returns the range in the message.
    #[must_use]
    pub const fn range(self) -> (usize, usize) {
        let start = self.start as usize;
        (start, start + self.length as usize)
    }
}

/// Treatment of a tag by a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Field with its slot.
    Field(u16),
    /// Count of a group: its slot, which that of the entries follows, and the number of the group.
    Group(u16, u16),
    /// Field of another part of the message: header or trailer for a body.
    Elsewhere,
    /// Not in the dictionary for this message.
    Unknown,
}

/// Table of a message, header or group entry; generated.
pub trait Layout {
    /// First tag of each entry of a group; 0 for messages.
    const FIRST: u32;
    /// Slots and tags of required fields.
    const REQUIRED: &'static [(u16, u32)];
    /// Returns the treatment of a tag.
    fn entry(tag: u32) -> Entry;
    /// Returns true if entries of the group, or of groups in it, have the tag.
    fn has(group: u16, tag: u32) -> bool;
    /// Returns the first tag of each entry of the group.
    fn first(group: u16) -> u32;
    /// Returns the data field behind this length field.
    fn data(tag: u32) -> Option<u32>;
    /// Returns true if a value has the form of its type, and true if it is in its set.
    fn check(tag: u32, value: &[u8]) -> (bool, bool);
}

/// Reads the fields of `bytes[start..end]` into slots, and returns the offset of the next entry or the end.
///
/// # Errors
///
/// The first defect that the level looks for.
pub fn scan<L: Layout, const N: usize>(
    bytes: &[u8],
    start: usize,
    end: usize,
    slots: &mut [Slot; N],
    level: Validation,
) -> Result<usize, Fault> {
    let mut fields = Fields::new(bytes, start, end);
    let mut is_first = true;
    while let Some(field) = fields.next() {
        let field = match field {
            Ok(field) => field,
            Err(_) if level == Validation::None => continue,
            Err(fault) => return Err(fault.into()),
        };
        if L::FIRST != 0 && field.tag == L::FIRST && !is_first {
            return Ok(field.at);
        }
        is_first = false;
        if let Some(data) = L::data(field.tag)
            && let Some(length) =
                unsigned(field.value).and_then(|length| usize::try_from(length).ok())
        {
            fields.expect_data(data, length);
        }
        let (slot, group) = match L::entry(field.tag) {
            Entry::Field(slot) => (usize::from(slot), None),
            Entry::Group(slot, group) => (usize::from(slot), Some(group)),
            Entry::Elsewhere | Entry::Unknown => continue,
        };
        let value = field.at + (tag_length(field.tag) + 1);
        if slots[slot].is_present() {
            if level >= Validation::Required {
                return Err(Fault::new(RejectReason::TagTwice, field.tag, field.at));
            }
            continue;
        }
        slots[slot] = place(value, field.value.len());
        if level == Validation::Full {
            let (has_form, is_allowed) = L::check(field.tag, field.value);
            if !has_form {
                return Err(Fault::new(
                    RejectReason::IncorrectFormat,
                    field.tag,
                    field.at,
                ));
            }
            if !is_allowed {
                return Err(Fault::new(
                    RejectReason::ValueOutOfRange,
                    field.tag,
                    field.at,
                ));
            }
        }
        if let Some(group) = group {
            let start = fields.position();
            let (stop, found, fault) = extent::<L>(bytes, start, end, group);
            if let Some(fault) = fault.filter(|_| level > Validation::None) {
                return Err(fault);
            }
            slots[slot + 1] = place(start, stop - start);
            if level >= Validation::Required {
                check_count::<L>(field.tag, field.value, field.at, group, found, bytes, start)?;
            }
            if stop > start {
                fields = Fields::new(bytes, stop, end);
            }
        }
    }
    if level >= Validation::Required {
        let missing = L::REQUIRED
            .iter()
            .find(|(slot, _)| !slots[usize::from(*slot)].is_present());
        if let Some((_, tag)) = missing {
            return Err(Fault::new(RejectReason::RequiredTagMissing, *tag, end));
        }
    }
    Ok(end)
}

fn check_count<L: Layout>(
    tag: u32,
    value: &[u8],
    at: usize,
    group: u16,
    found: u64,
    bytes: &[u8],
    start: usize,
) -> Result<(), Fault> {
    let Some(count) = unsigned(value) else {
        return Err(Fault::new(RejectReason::IncorrectFormat, tag, at));
    };
    if count > 0 && found == 0 {
        // Entries that do not begin with their first field.
        let first = Fields::new(bytes, start, bytes.len()).next();
        if let Some(Ok(field)) = first
            && L::has(group, field.tag)
        {
            return Err(Fault::new(
                RejectReason::GroupOutOfOrder,
                field.tag,
                field.at,
            ));
        }
    }
    if count == found {
        Ok(())
    } else {
        Err(Fault::new(RejectReason::GroupCount, tag, at))
    }
}

/// Returns a place; messages are far smaller than 4 GiB, and one beyond has no fields.
fn place(start: usize, length: usize) -> Slot {
    match (u32::try_from(start), u32::try_from(length)) {
        (Ok(start), Ok(length)) => Slot { start, length },
        _ => Slot::default(),
    }
}

const fn tag_length(tag: u32) -> usize {
    match tag.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

/// Returns the end of a group's entries, their number, and the first defect of their syntax. Tags of no part of the
/// message do not end it.
fn extent<L: Layout>(
    bytes: &[u8],
    start: usize,
    end: usize,
    group: u16,
) -> (usize, u64, Option<Fault>) {
    let mut fields = Fields::new(bytes, start, end);
    let first = L::first(group);
    let (mut stop, mut count) = (start, 0);
    let mut fault: Option<Fault> = None;
    while let Some(field) = fields.next() {
        let field = match field {
            Ok(field) => field,
            Err(found) => {
                fault.get_or_insert(found.into());
                continue;
            }
        };
        if field.tag == first {
            count += 1;
        } else if count == 0 || !L::has(group, field.tag) {
            let is_outside = count == 0 || L::entry(field.tag) != Entry::Unknown;
            if is_outside {
                break;
            }
            continue;
        }
        if let Some(data) = L::data(field.tag)
            && let Some(length) =
                unsigned(field.value).and_then(|length| usize::try_from(length).ok())
        {
            fields.expect_data(data, length);
        }
        stop = fields.position();
    }
    let stop = stop.min(end);
    (stop, count, fault.filter(|fault| fault.at < stop))
}

/// Entry of a group; generated.
pub trait GroupEntry<'bytes>: Sized {
    /// Decodes the entry at `start`, and returns it with the offset of the next one.
    ///
    /// # Errors
    ///
    /// The first defect that the level looks for.
    fn decode_entry(
        bytes: &'bytes [u8],
        start: usize,
        end: usize,
        level: Validation,
    ) -> Result<(Self, usize), Fault>;
}

/// Entries of a group.
#[derive(Debug, Clone, Copy)]
pub struct Group<'bytes, E> {
    bytes: &'bytes [u8],
    start: usize,
    end: usize,
    count: u64,
    entry: PhantomData<E>,
}

impl<'bytes, E: GroupEntry<'bytes>> Group<'bytes, E> {
    /// Returns the group with this count and these entries.
    #[must_use]
    pub fn new(bytes: &'bytes [u8], count: Slot, entries: Slot) -> Self {
        let (start, end) = entries.range();
        Self {
            bytes,
            start,
            end,
            count: count.get(bytes).and_then(unsigned).unwrap_or(0),
            entry: PhantomData,
        }
    }

    /// Returns the value of the count. Decoding with [`Validation::Required`] has compared it with the entries.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns true if the count is zero or absent.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns an iterator over the entries.
    #[must_use]
    pub const fn iter(&self) -> Entries<'bytes, E> {
        Entries {
            bytes: self.bytes,
            at: self.start,
            end: self.end,
            entry: PhantomData,
        }
    }

    /// Checks all entries.
    ///
    /// # Errors
    ///
    /// The first defect that the level looks for.
    pub fn check(&self, level: Validation) -> Result<(), Fault> {
        let mut at = self.start;
        while at < self.end {
            let (_, next) = E::decode_entry(self.bytes, at, self.end, level)?;
            at = next.max(at + 1);
        }
        Ok(())
    }
}

impl<'bytes, E: GroupEntry<'bytes>> IntoIterator for Group<'bytes, E> {
    type Item = E;
    type IntoIter = Entries<'bytes, E>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the entries of a group.
#[derive(Debug, Clone)]
pub struct Entries<'bytes, E> {
    bytes: &'bytes [u8],
    at: usize,
    end: usize,
    entry: PhantomData<E>,
}

impl<'bytes, E: GroupEntry<'bytes>> Iterator for Entries<'bytes, E> {
    type Item = E;

    fn next(&mut self) -> Option<E> {
        if self.at >= self.end {
            return None;
        }
        let (entry, next) =
            E::decode_entry(self.bytes, self.at, self.end, Validation::None).ok()?;
        self.at = next.max(self.at + 1);
        Some(entry)
    }
}

/// Iterator over the fields that a message or entry has beyond its dictionary.
#[derive(Debug, Clone)]
pub struct Unknown<'bytes, L> {
    bytes: &'bytes [u8],
    fields: Fields<'bytes>,
    end: usize,
    layout: PhantomData<L>,
}

impl<'bytes, L: Layout> Unknown<'bytes, L> {
    /// Returns the unknown fields of `bytes[start..end]`.
    #[must_use]
    pub fn new(bytes: &'bytes [u8], start: usize, end: usize) -> Self {
        Self {
            bytes,
            fields: Fields::new(bytes, start, end),
            end,
            layout: PhantomData,
        }
    }
}

impl<'bytes, L: Layout> Iterator for Unknown<'bytes, L> {
    type Item = (u32, &'bytes [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Ok(field) = self.fields.next()? else {
                continue;
            };
            match L::entry(field.tag) {
                Entry::Unknown => return Some((field.tag, field.value)),
                Entry::Group(_, group) => {
                    let start = self.fields.position();
                    let (stop, _, _) = extent::<L>(self.bytes, start, self.end, group);
                    if stop > start {
                        self.fields = Fields::new(self.bytes, stop, self.end);
                    }
                }
                _ => {}
            }
            if let Some(data) = L::data(field.tag)
                && let Some(length) =
                    unsigned(field.value).and_then(|length| usize::try_from(length).ok())
            {
                self.fields.expect_data(data, length);
            }
        }
    }
}

/// Returns `Y` and `N` as true and false.
#[must_use]
pub const fn boolean(value: &[u8]) -> Option<bool> {
    match value {
        [b'Y'] => Some(true),
        [b'N'] => Some(false),
        _ => None,
    }
}

/// Returns a value of one byte.
#[must_use]
pub const fn char(value: &[u8]) -> Option<u8> {
    match value {
        [byte] => Some(*byte),
        _ => None,
    }
}

/// Returns true if all words of a list are in the set.
#[must_use]
pub fn words_in(value: &[u8], set: &[&[u8]]) -> bool {
    value
        .split(|byte| *byte == b' ')
        .all(|word| set.contains(&word))
}

/// Fields that an encoder has written; generated encoders use it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Default for Seen<WORDS> {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

impl<const WORDS: usize> Seen<WORDS> {
    /// Marks a field; a second time is an error of the writer.
    pub fn mark(&mut self, index: usize, tag: u32, writer: &mut Writer<'_>) {
        let bit = 1 << (index % 64);
        if self.0[index / 64] & bit != 0 {
            writer.fail(WriteError::Twice { tag });
        }
        self.0[index / 64] |= bit;
    }

    /// Returns true if nothing is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Makes the first missing field an error of the writer.
    pub fn require(&self, required: &[(usize, u32)], writer: &mut Writer<'_>) {
        let is_missing = |index: usize| self.0[index / 64] & (1 << (index % 64)) == 0;
        if let Some((_, tag)) = required.iter().find(|(index, _)| is_missing(*index)) {
            writer.fail(WriteError::Missing { tag: *tag });
        }
    }
}
