// SPDX-License-Identifier: Apache-2.0
//! Messages in logs, for people and programs: found in text, with names of fields and values.

use super::{Block, Dictionary, Fault, Validator};
use crate::wire::{Fields, Frame, Framed, Framer, Resync, SOH, checksum};

/// Delimiter of fields in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delimiter {
    Soh,
    Bar,
    Caret,
}

impl Delimiter {
    const fn bytes(self) -> &'static [u8] {
        match self {
            Self::Soh => &[SOH],
            Self::Bar => b"|",
            Self::Caret => b"^A",
        }
    }
}

/// Message found in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Offset in the log.
    pub offset: usize,
    /// Bytes with SOH as the delimiter.
    pub bytes: Vec<u8>,
}

/// Iterator over the messages in a log: bytes as received, or text with `|` or `^A` in place of SOH, with anything
/// between messages.
#[derive(Debug, Clone)]
pub struct Log<'log> {
    bytes: &'log [u8],
    at: usize,
}

impl<'log> Log<'log> {
    /// Returns the messages in these bytes.
    #[must_use]
    pub const fn new(bytes: &'log [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

/// Returns the offset of a part in bytes.
fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

impl Iterator for Log<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let offset = self.at + find(&self.bytes[self.at..], b"8=FIX")?;
            let rest = &self.bytes[offset..];
            let Some(delimiter) = delimiter(rest) else {
                self.at = offset + 5;
                continue;
            };
            let length = message_length(rest, delimiter);
            self.at = offset + length.max(5);
            let text = &rest[..length];
            let bytes = match delimiter {
                Delimiter::Soh => text.to_vec(),
                other => replaced(text, other.bytes()),
            };
            return Some(Found { offset, bytes });
        }
    }
}

/// Returns the delimiter behind BeginString.
fn delimiter(message: &[u8]) -> Option<Delimiter> {
    let head = &message[..message.len().min(16)];
    [Delimiter::Soh, Delimiter::Bar, Delimiter::Caret]
        .into_iter()
        .filter_map(|delimiter| {
            let at = find(head, delimiter.bytes())?;
            let is_version = head[5..at]
                .iter()
                .all(|byte| matches!(byte, b'T' | b'.' | b'0'..=b'9'));
            is_version.then_some((at, delimiter))
        })
        .min_by_key(|(at, _)| *at)
        .map(|(_, delimiter)| delimiter)
}

/// Returns the length up to CheckSum, or the end of the line or text.
fn message_length(message: &[u8], delimiter: Delimiter) -> usize {
    if delimiter == Delimiter::Soh
        && let Framed::Message(frame) = Framer::new(1 << 30, Resync::Length).next(message)
    {
        return frame.bytes().len();
    }
    let mark = [delimiter.bytes(), b"10="].concat();
    let next = find(&message[5..], b"8=FIX").map_or(message.len(), |at| at + 5);
    let text = &message[..next];
    let line = text.iter().position(|byte| *byte == b'\n');
    let line = line.unwrap_or(text.len());
    match find(&text[..line], &mark) {
        Some(at) => {
            let value = at + mark.len();
            let digits = text[value..line]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            let end = value + digits;
            let has_delimiter = text[end..line].starts_with(delimiter.bytes());
            end + if has_delimiter {
                delimiter.bytes().len()
            } else {
                0
            }
        }
        None => line,
    }
}

fn replaced(text: &[u8], delimiter: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix(delimiter) {
            bytes.push(SOH);
            rest = behind;
        } else {
            bytes.push(rest[0]);
            rest = &rest[1..];
        }
    }
    if bytes.last() != Some(&SOH) {
        bytes.push(SOH);
    }
    bytes
}

/// One field of a decoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Number of groups around the field.
    pub depth: usize,
    /// Number of the group entry that begins with this field, from 1.
    pub entry: Option<usize>,
    /// Tag.
    pub tag: u32,
    /// Name of the field, if the dictionary has it.
    pub name: Option<String>,
    /// Value; bytes that are not UTF-8 are replaced.
    pub value: String,
    /// Name of the value, if the dictionary has it.
    pub meaning: Option<String>,
}

/// Decoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Value of MsgType; empty if there is none.
    pub msg_type: String,
    /// Name of the message, if the dictionary has it.
    pub name: Option<String>,
    /// Fields in order.
    pub lines: Vec<Line>,
    /// Defects, as texts.
    pub problems: Vec<String>,
}

/// Decodes a message with SOH as the delimiter, as far as it can be read. `mask` are tags whose values are replaced by
/// asterisks.
#[must_use]
pub fn decode(
    bytes: &[u8],
    dictionary: Option<&Dictionary>,
    validator: &mut Validator,
    mask: &[u32],
) -> Decoded {
    let mut problems = Vec::new();
    match Framer::new(1 << 30, Resync::Length).next(bytes) {
        Framed::Message(frame) => {
            let checked = dictionary.map(|dictionary| validator.validate(dictionary, &frame));
            if let Some(Err(fault)) = checked {
                problems.push(fault_text(&fault, dictionary));
            }
        }
        Framed::Garbled { reason, .. } => {
            let computed = find(bytes, b"\x0110=").map(|at| checksum(&bytes[..=at]));
            let hint =
                computed.map_or_else(String::new, |sum| format!(" (bytes sum up to {sum:03})"));
            problems.push(format!("garbled: {reason}{hint}"));
        }
        Framed::Incomplete => problems.push("garbled: the message is cut off".to_owned()),
    }
    let mut show = Show {
        dictionary,
        mask,
        lines: Vec::new(),
        msg_type: String::new(),
        stack: Vec::new(),
    };
    show.all(bytes, &mut problems);
    let name = dictionary.and_then(|dictionary| {
        let message = dictionary.message(show.msg_type.as_bytes())?;
        Some(message.name().to_owned())
    });
    Decoded {
        msg_type: show.msg_type,
        name,
        lines: show.lines,
        problems,
    }
}

fn fault_text(fault: &Fault, dictionary: Option<&Dictionary>) -> String {
    let field = fault
        .tag
        .and_then(|tag| u32::try_from(tag).ok())
        .and_then(|tag| dictionary?.field(tag));
    match field {
        Some(field) => format!("{fault} ({})", field.name()),
        None => fault.to_string(),
    }
}

/// Group that is being shown.
struct Open<'dictionary> {
    block: &'dictionary Block,
    entries: usize,
}

struct Show<'dictionary> {
    dictionary: Option<&'dictionary Dictionary>,
    mask: &'dictionary [u32],
    lines: Vec<Line>,
    msg_type: String,
    stack: Vec<Open<'dictionary>>,
}

impl Show<'_> {
    fn all(&mut self, bytes: &[u8], problems: &mut Vec<String>) {
        let mut fields = Fields::new(bytes, 0, bytes.len());
        while let Some(field) = fields.next() {
            let field = match field {
                Ok(field) => field,
                Err(fault) => {
                    // A defect of the body is in the list already.
                    let text = fault.to_string();
                    if problems.is_empty() {
                        problems.push(text);
                    }
                    continue;
                }
            };
            let def = self
                .dictionary
                .and_then(|dictionary| dictionary.field(field.tag));
            if let Some(data) = def.and_then(super::FieldDef::partner)
                && def.is_some_and(|def| def.kind() != super::Kind::Data)
                && let Ok(Ok(length)) = std::str::from_utf8(field.value).map(str::parse)
            {
                fields.expect_data(data, length);
            }
            if field.tag == 35 && self.msg_type.is_empty() {
                self.msg_type = String::from_utf8_lossy(field.value).into_owned();
            }
            let entry = self.place(field.tag);
            let depth = self.stack.len();
            let is_masked = self.mask.contains(&field.tag);
            let value = if is_masked {
                "*".repeat(field.value.len())
            } else {
                String::from_utf8_lossy(field.value).into_owned()
            };
            let meaning = def
                .and_then(|def| def.value_name(field.value))
                .filter(|_| !is_masked);
            self.lines.push(Line {
                depth,
                entry,
                tag: field.tag,
                name: def.map(|def| def.name().to_owned()),
                value,
                meaning: meaning.map(str::to_owned),
            });
            self.open_group(field.tag);
        }
    }

    /// Closes the groups that the field does not belong to; returns the number of the entry that it begins.
    fn place(&mut self, tag: u32) -> Option<usize> {
        while let Some(open) = self.stack.last_mut() {
            match open.block.position(tag) {
                Some(0) => {
                    open.entries += 1;
                    return Some(open.entries);
                }
                Some(_) if open.entries > 0 => return None,
                _ => {
                    self.stack.pop();
                }
            }
        }
        None
    }

    fn open_group(&mut self, tag: u32) {
        let Some(dictionary) = self.dictionary else {
            return;
        };
        let group = match self.stack.last() {
            Some(open) => open.block.get(tag),
            None => dictionary
                .message(self.msg_type.as_bytes())
                .and_then(|message| message.body().get(tag))
                .or_else(|| dictionary.header().get(tag)),
        };
        if let Some(block) = group.and_then(super::Member::group) {
            self.stack.push(Open { block, entries: 0 });
        }
    }
}

/// Returns the frame of a message found in a log, if it is whole.
#[must_use]
pub fn frame(found: &Found) -> Option<Frame<'_>> {
    match Framer::new(1 << 30, Resync::Length).next(&found.bytes) {
        Framed::Message(frame) => Some(frame),
        _ => None,
    }
}
