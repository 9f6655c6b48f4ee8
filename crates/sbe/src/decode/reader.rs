// SPDX-License-Identifier: Apache-2.0
//! Decoder state: position, path and remaining budget.

use std::fmt::Write;

use super::{DecodeError, Reason, number};
use crate::model::{Primitive, Scalar, Schema, Slot};

/// Position in the input and context of the decoder.
pub(super) struct Reader<'data> {
    pub(super) schema: &'data Schema,
    bytes: &'data [u8],
    pub(super) offset: usize,
    /// Acting version.
    pub(super) version: u64,
    path: String,
    steps: usize,
    limit: usize,
}

/// Contiguous bytes and their offset in the message.
#[derive(Clone, Copy)]
pub(super) struct Part<'data> {
    pub(super) bytes: &'data [u8],
    pub(super) start: usize,
}

impl<'data> Reader<'data> {
    pub(super) const fn new(schema: &'data Schema, bytes: &'data [u8], limit: usize) -> Self {
        Self {
            schema,
            bytes,
            offset: 0,
            version: 0,
            path: String::new(),
            steps: 0,
            limit,
        }
    }

    /// Starts the path with the name of the message.
    pub(super) fn enter(&mut self, name: &str) {
        self.path.push_str(name);
    }

    /// Takes the next `length` bytes of the message.
    pub(super) fn take(
        &mut self,
        length: u64,
        what: &'static str,
    ) -> Result<Part<'data>, DecodeError> {
        let left = &self.bytes[self.offset..];
        let start = self.offset;
        let bytes = usize::try_from(length)
            .ok()
            .and_then(|length| left.get(..length));
        let Some(bytes) = bytes else {
            let reason = Reason::Truncated {
                what,
                needed: length,
                left: left.len(),
            };
            return Err(self.error(start, reason));
        };
        self.offset += bytes.len();
        Ok(Part { bytes, start })
    }

    /// Reads a number of a part, or returns an error if it is beyond the end of the part.
    pub(super) fn scalar(
        &self,
        part: Part<'_>,
        offset: u32,
        primitive: Primitive,
    ) -> Result<Scalar, DecodeError> {
        let from = offset as usize;
        let behind = part.bytes.get(from..).unwrap_or_default();
        let Some(bytes) = behind.get(..primitive.size() as usize) else {
            let reason = Reason::Truncated {
                what: "a number",
                needed: primitive.size().into(),
                left: behind.len(),
            };
            return Err(self.error(part.start.saturating_add(from), reason));
        };
        Ok(number::scalar(bytes, primitive, self.schema.byte_order))
    }

    pub(super) fn slot(&self, part: Part<'_>, slot: Slot) -> Result<u64, DecodeError> {
        if let Some(constant) = slot.constant {
            return Ok(constant);
        }
        let value = self.scalar(part, slot.offset, slot.primitive)?.as_integer();
        // Slots are unsigned; group counts can be signed but are not read here.
        Ok(u64::try_from(value.unwrap_or(0)).unwrap_or(0))
    }

    /// Charges `steps` to the limit: values that were decoded, and elements that were skipped.
    pub(super) fn step(&mut self, steps: usize) -> Result<(), DecodeError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limit {
            return Err(self.error(self.offset, Reason::TooManyValues(self.limit)));
        }
        Ok(())
    }

    pub(super) fn within<Found>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Result<Found, DecodeError>,
    ) -> Result<Found, DecodeError> {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        let found = read(self);
        self.path.truncate(length);
        found
    }

    pub(super) fn within_entry<Found>(
        &mut self,
        index: u64,
        read: impl FnOnce(&mut Self) -> Result<Found, DecodeError>,
    ) -> Result<Found, DecodeError> {
        let length = self.path.len();
        // Writing to a `String` cannot fail.
        let _ = write!(self.path, "[{index}]");
        let found = read(self);
        self.path.truncate(length);
        found
    }

    pub(super) fn error(&self, offset: usize, reason: Reason) -> DecodeError {
        DecodeError {
            offset,
            path: self.path.clone(),
            reason,
        }
    }
}
