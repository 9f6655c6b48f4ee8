// SPDX-License-Identifier: Apache-2.0
//! The two records of a counter (docs/spec/shared-memory.md §5.1, §5.2).

use crate::memory::Padding;
use crate::overlay;
use crate::sync::{AtomicI32, AtomicI64, AtomicU8};

/// Length of the record that describes a counter.
pub const METADATA_LENGTH: usize = 512;
/// Length of the record with a counter's value.
pub const VALUES_LENGTH: usize = 128;
/// Longest key, in bytes.
pub const KEY_LENGTH: usize = if MODELLED { 2 } else { 112 };
/// Longest label, in bytes.
pub const LABEL_LENGTH: usize = if MODELLED { 2 } else { 380 };

/// Under loom each byte is a tracked object; two bytes of each are sufficient.
const MODELLED: bool = cfg!(loom);

pub(super) const UNUSED: i32 = 0;
pub(super) const ALLOCATED: i32 = 1;
pub(super) const RECLAIMED: i32 = -1;

/// The deadline of a counter that is in use.
pub(super) const NOT_FREE: i64 = i64::MAX;

overlay! {
    /// Metadata of a counter.
    pub(super) struct Metadata: 512 {
        /// `UNUSED`, `ALLOCATED` or `RECLAIMED`; stored with release, which publishes the other fields.
        0 => state: AtomicI32,
        4 => type_id: AtomicI32,
        /// Epoch milliseconds from which a freed id may be used again.
        8 => reuse_at: AtomicI64,
        16 => key: [AtomicU8; KEY_LENGTH],
        /// Stored with release, which publishes the label's bytes.
        128 => label_length: AtomicI32,
        132 => label: [AtomicU8; LABEL_LENGTH],
    }
}

overlay! {
    /// Values of a counter.
    pub(super) struct Values: 128 {
        0 => value: AtomicI64,
        8 => registration_id: AtomicI64,
        16 => owner_id: AtomicI64,
        24 => reference_id: AtomicI64,
        32 => padding_32: Padding<96>,
    }
}
