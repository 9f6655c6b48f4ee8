// SPDX-License-Identifier: Apache-2.0
//! Checks of messages by a dictionary at run time.

use super::{Block, Dictionary, Fault, Kind, Member, RejectReason};
use crate::wire::{Field, FieldFault, Fields, Frame, unsigned};

/// Amount of checks on each message. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Validation {
    /// Nothing beyond the frame.
    None,
    /// Syntax of fields: tags are numbers, values are not empty, data has its length.
    Framing,
    /// Required fields, fields that occur twice, counts of groups.
    Required,
    /// Data types and sets of values, tags that are not defined, order of header, body and trailer.
    #[default]
    Full,
}

/// Treatment of tags that a message should not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tags {
    /// They are accepted.
    Keep,
    /// They are a defect.
    Reject,
}

/// Choice of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// Level.
    pub level: Validation,
    /// User-defined tags (from 5000 on) that the dictionary does not have.
    pub unknown: Tags,
    /// Tags that the dictionary has, but not in this message.
    pub foreign: Tags,
    /// Members of group entries have to be in the order of the dictionary.
    pub group_order: bool,
    /// Fields without a value are a defect.
    pub have_values: bool,
    /// Header, body and trailer have to follow each other.
    pub section_order: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self {
            level: Validation::Full,
            unknown: Tags::Keep,
            foreign: Tags::Reject,
            group_order: true,
            have_values: true,
            section_order: true,
        }
    }
}

/// First tag of the user-defined range.
const USER_DEFINED: u32 = 5000;

/// Checker of messages. It allocates only while its scratch memory grows.
#[derive(Debug, Clone, Default)]
pub struct Validator {
    checks: Checks,
    /// One bit per member of each block that is being read; the innermost is last.
    seen: Vec<u64>,
}

impl Validator {
    /// Returns a checker.
    #[must_use]
    pub const fn new(checks: Checks) -> Self {
        Self {
            checks,
            seen: Vec::new(),
        }
    }

    /// Returns the choice of checks.
    #[must_use]
    pub const fn checks(&self) -> Checks {
        self.checks
    }

    /// Checks a message.
    ///
    /// # Errors
    ///
    /// The first defect.
    pub fn validate(&mut self, dictionary: &Dictionary, frame: &Frame<'_>) -> Result<(), Fault> {
        self.seen.clear();
        if self.checks.level == Validation::None {
            return Ok(());
        }
        let mut walk = Walk {
            checks: self.checks,
            dictionary,
            body: None,
            seen: &mut self.seen,
            fields: frame.fields(),
            pending: None,
        };
        if self.checks.level == Validation::Framing {
            while walk.take()?.is_some() {}
            return Ok(());
        }
        let Some(message) = dictionary.message(frame.msg_type()) else {
            let at = frame.body_start();
            return Err(Fault::new(RejectReason::InvalidMsgType, 35, at));
        };
        walk.message(message.body(), frame.body_end())
    }
}

/// Blocks around a group entry.
struct Scope<'scope, 'dictionary> {
    block: &'dictionary Block,
    parent: Option<&'scope Scope<'scope, 'dictionary>>,
}

impl Scope<'_, '_> {
    fn has(&self, tag: u32) -> bool {
        self.block.position(tag).is_some() || self.parent.is_some_and(|parent| parent.has(tag))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Header,
    Body,
    Trailer,
}

struct Walk<'walk, 'dictionary, 'bytes> {
    checks: Checks,
    dictionary: &'dictionary Dictionary,
    /// Members of the message's body.
    body: Option<&'dictionary Block>,
    seen: &'walk mut Vec<u64>,
    fields: Fields<'bytes>,
    pending: Option<Field<'bytes>>,
}

impl<'dictionary, 'bytes> Walk<'_, 'dictionary, 'bytes> {
    /// Returns the next field.
    fn take(&mut self) -> Result<Option<Field<'bytes>>, Fault> {
        if let Some(field) = self.pending.take() {
            return Ok(Some(field));
        }
        let field = match self.fields.next() {
            None => return Ok(None),
            Some(Ok(field)) => field,
            Some(Err(FieldFault::Empty { tag, at })) if !self.checks.have_values => Field {
                tag,
                value: b"",
                at,
            },
            Some(Err(fault)) => return Err(fault.into()),
        };
        let def = self.dictionary.field(field.tag);
        if let Some(def) = def.filter(|def| def.kind() != Kind::Data)
            && let Some(data) = def.partner()
            && let Some(length) = unsigned(field.value)
            && let Ok(length) = usize::try_from(length)
        {
            self.fields.expect_data(data, length);
        }
        Ok(Some(field))
    }

    fn peek(&mut self) -> Result<Option<Field<'bytes>>, Fault> {
        self.pending = self.take()?;
        Ok(self.pending)
    }

    fn message(&mut self, body: &'dictionary Block, end: usize) -> Result<(), Fault> {
        let dictionary = self.dictionary;
        self.body = Some(body);
        let blocks = [dictionary.header(), body, dictionary.trailer()];
        let starts = blocks.map(|block| self.open(block));
        let is_full = self.checks.level == Validation::Full;
        let mut section = Section::Header;
        while let Some(field) = self.take()? {
            let found = if blocks[0].position(field.tag).is_some() {
                Section::Header
            } else if blocks[2].position(field.tag).is_some() {
                Section::Trailer
            } else {
                Section::Body
            };
            if found < section && is_full && self.checks.section_order {
                return Err(Fault::new(RejectReason::TagOutOfOrder, field.tag, field.at));
            }
            section = section.max(found);
            let block = blocks[found as usize];
            let Some(position) = block.position(field.tag) else {
                self.stray(field)?;
                continue;
            };
            self.mark(starts[found as usize], position, field)?;
            self.value(field)?;
            if let Some(group) = block.members()[position].group() {
                let scope = Scope {
                    block,
                    parent: None,
                };
                self.group(field, group, &scope)?;
            }
        }
        for (block, start) in blocks.into_iter().zip(starts) {
            self.required(block, start, end)?;
        }
        Ok(())
    }

    /// Makes room for the bits of a block and returns where they start.
    fn open(&mut self, block: &Block) -> usize {
        let start = self.seen.len();
        self.seen
            .resize(start + block.members().len().div_ceil(64), 0);
        start
    }

    fn mark(&mut self, start: usize, position: usize, field: Field<'_>) -> Result<(), Fault> {
        let word = &mut self.seen[start + position / 64];
        let bit = 1 << (position % 64);
        if *word & bit != 0 {
            return Err(Fault::new(RejectReason::TagTwice, field.tag, field.at));
        }
        *word |= bit;
        Ok(())
    }

    fn required(&self, block: &Block, start: usize, at: usize) -> Result<(), Fault> {
        let is_seen =
            |position: usize| self.seen[start + position / 64] & (1 << (position % 64)) != 0;
        // Both ends of the frame have been checked with it.
        let is_frame = |member: &Member| matches!(member.tag(), 8 | 9 | 10 | 35);
        let missing = block
            .members()
            .iter()
            .enumerate()
            .find(|(position, member)| {
                member.is_required() && !is_seen(*position) && !is_frame(member)
            });
        match missing {
            Some((_, member)) => Err(Fault::new(
                RejectReason::RequiredTagMissing,
                member.tag(),
                at,
            )),
            None => Ok(()),
        }
    }

    /// Checks a field that the message does not have.
    fn stray(&self, field: Field<'_>) -> Result<(), Fault> {
        if self.checks.level < Validation::Full {
            return Ok(());
        }
        let reason = match self.dictionary.field(field.tag) {
            Some(_) if self.checks.foreign == Tags::Keep => return Ok(()),
            Some(_) => RejectReason::TagNotDefined,
            None if field.tag >= USER_DEFINED && self.checks.unknown == Tags::Keep => return Ok(()),
            None => RejectReason::InvalidTag,
        };
        Err(Fault::new(reason, field.tag, field.at))
    }

    fn value(&self, field: Field<'_>) -> Result<(), Fault> {
        if self.checks.level < Validation::Full || field.value.is_empty() {
            return Ok(());
        }
        let Some(def) = self.dictionary.field(field.tag) else {
            return Ok(());
        };
        if !def.kind().accepts(field.value) {
            return Err(Fault::new(
                RejectReason::IncorrectFormat,
                field.tag,
                field.at,
            ));
        }
        if !def.allows(field.value) {
            return Err(Fault::new(
                RejectReason::ValueOutOfRange,
                field.tag,
                field.at,
            ));
        }
        Ok(())
    }

    /// Reads the entries of a group. Blocks nest at most eight deep.
    fn group(
        &mut self,
        count: Field<'_>,
        block: &'dictionary Block,
        around: &Scope<'_, 'dictionary>,
    ) -> Result<(), Fault> {
        if count.value.is_empty() {
            return Ok(());
        }
        let Some(expected) = unsigned(count.value) else {
            return Err(Fault::new(
                RejectReason::IncorrectFormat,
                count.tag,
                count.at,
            ));
        };
        let wrong_count = Fault::new(RejectReason::GroupCount, count.tag, count.at);
        let mut found = 0;
        while let Some(field) = self.peek()? {
            let Some(position) = block.position(field.tag) else {
                break;
            };
            if position != 0 {
                // Without entries, the member belongs to none.
                let reason = RejectReason::GroupOutOfOrder;
                return if expected == 0 {
                    Err(wrong_count)
                } else {
                    Err(Fault::new(reason, field.tag, field.at))
                };
            }
            found += 1;
            if found > expected {
                return Err(wrong_count);
            }
            self.entry(block, around)?;
        }
        if found == expected {
            Ok(())
        } else {
            Err(wrong_count)
        }
    }

    fn entry(
        &mut self,
        block: &'dictionary Block,
        around: &Scope<'_, 'dictionary>,
    ) -> Result<(), Fault> {
        let start = self.open(block);
        let scope = Scope {
            block,
            parent: Some(around),
        };
        let mut next = 0;
        let mut end = 0;
        while let Some(field) = self.peek()? {
            end = field.at;
            let Some(position) = block.position(field.tag) else {
                let is_outside = around.has(field.tag)
                    || self
                        .body
                        .is_some_and(|body| body.position(field.tag).is_some())
                    || self.dictionary.header().position(field.tag).is_some()
                    || self.dictionary.trailer().position(field.tag).is_some();
                if is_outside {
                    break;
                }
                self.pending = None;
                self.stray(field)?;
                continue;
            };
            if position == 0 && next > 0 {
                break;
            }
            self.pending = None;
            self.mark(start, position, field)?;
            if position < next && self.checks.group_order {
                return Err(Fault::new(
                    RejectReason::GroupOutOfOrder,
                    field.tag,
                    field.at,
                ));
            }
            next = position + 1;
            self.value(field)?;
            if let Some(group) = block.members()[position].group() {
                self.group(field, group, &scope)?;
            }
        }
        self.required(block, start, end)?;
        self.seen.truncate(start);
        Ok(())
    }
}
