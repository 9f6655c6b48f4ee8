// SPDX-License-Identifier: Apache-2.0
//! Messages with random content, encoded in a given version of a schema.

use taran_sbe::model::{Block, ByteOrder, Message, Schema, Slot};

use crate::chance::Chance;

/// Returns a message of a random version that includes it.
pub(super) fn random(schema: &Schema, message: &Message, chance: &mut Chance) -> Vec<u8> {
    let versions = schema.version - message.since + 1;
    let version = message.since + chance.below(versions.into()) as u32;
    let mut writing = Writing {
        bytes: Vec::new(),
        order: schema.byte_order,
        version,
        chance,
    };
    let header = &schema.header;
    let length = writing.length(&message.block);
    writing.frame(
        header.length,
        &[
            (header.block_length, length.into()),
            (header.template_id, message.id),
            (header.schema_id, schema.id),
            (header.version, version.into()),
        ],
    );
    writing.block(&message.block, length);
    writing.bytes
}

struct Writing<'a> {
    bytes: Vec<u8>,
    order: ByteOrder,
    version: u32,
    chance: &'a mut Chance,
}

impl Writing<'_> {
    /// Returns the block length of the version, sometimes increased.
    fn length(&mut self, block: &Block) -> u32 {
        let known = block
            .fields
            .iter()
            .filter(|field| field.since <= self.version);
        let ends = known.map(|field| field.offset + field.encoded_length());
        ends.max().unwrap_or(0) + self.chance.below(3) as u32
    }

    fn random(&mut self, length: u32) {
        for _ in 0..length {
            // Makes the bytes of null values more frequent.
            let byte = if self.chance.one_in(4) {
                *self.chance.pick(&[0, 0xFF, b'A'])
            } else {
                self.chance.bits() as u8
            };
            self.bytes.push(byte);
        }
    }

    fn frame(&mut self, length: u32, slots: &[(Slot, u64)]) {
        let start = self.bytes.len();
        self.bytes.resize(start + length as usize, 0);
        for (slot, value) in slots.iter().filter(|(slot, _)| slot.constant.is_none()) {
            let size = slot.primitive.size() as usize;
            let at = start + slot.offset as usize;
            let field = &mut self.bytes[at..at + size];
            match self.order {
                ByteOrder::Little => field.copy_from_slice(&value.to_le_bytes()[..size]),
                ByteOrder::Big => field.copy_from_slice(&value.to_be_bytes()[8 - size..]),
            }
        }
    }

    fn block(&mut self, block: &Block, length: u32) {
        self.random(length);
        let version = self.version;
        for group in block.groups.iter().filter(|group| group.since <= version) {
            let dimensions = &group.dimensions;
            let length = self.length(&group.block);
            let least = dimensions.min_count;
            let most = dimensions.count.max.min(least + 3);
            let count = least + self.chance.below(most - least + 1);
            let slots = [
                (dimensions.block_length, length.into()),
                (dimensions.count, count),
            ];
            self.frame(dimensions.length, &slots);
            for _ in 0..count {
                self.block(&group.block, length);
            }
        }
        for data in block.data.iter().filter(|data| data.since <= version) {
            let encoding = &data.encoding;
            let length = self.chance.below(encoding.length.max.min(20) + 1);
            self.frame(encoding.start, &[(encoding.length, length)]);
            self.random(length as u32);
        }
    }
}
