// SPDX-License-Identifier: Apache-2.0
//! Reading counters, from any thread and any process.

use super::layout::{
    ALLOCATED, KEY_LENGTH, METADATA_LENGTH, Metadata, UNUSED, VALUES_LENGTH, Values,
};
use super::{Counter, Label};
use crate::memory::{Region, Shared};
use crate::sync::{Ordering, fence};

/// Number of attempts to read a record that changes meanwhile.
const ATTEMPTS: usize = 3;

/// All counters of a driver, read only. No contents of the regions make a method panic or read
/// outside them. Counters may be allocated and freed concurrently: a result was valid at some moment of the call.
#[derive(Clone, Debug)]
pub struct CountersReader {
    metadata: Region,
    values: Region,
    capacity: usize,
}

/// The state of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterState {
    /// Never used, and neither are the ids above it.
    Unused,
    /// In use.
    Allocated,
    /// Freed; it will be used again.
    Reclaimed,
}

/// A copy of everything that describes a counter.
#[derive(Clone, Debug)]
pub struct CounterMeta {
    /// The counter's id.
    pub id: i32,
    /// The kind of counter (docs/spec/shared-memory.md §5.6, §5.7).
    pub type_id: i32,
    /// The registration id, e.g. of a publication.
    pub registration_id: i64,
    /// The id of the client that owns the counter.
    pub owner_id: i64,
    /// An id whose meaning depends on the type.
    pub reference_id: i64,
    /// The key, laid out by type; bytes behind its used part are zero or arbitrary.
    pub key: [u8; KEY_LENGTH],
    /// The human-readable label.
    pub label: Label,
}

impl CountersReader {
    /// A reader of these sections of `cnc.dat`. The shorter one determines the capacity.
    pub fn new(metadata: Region, values: Region) -> Self {
        let capacity = (metadata.len() / METADATA_LENGTH).min(values.len() / VALUES_LENGTH);
        Self {
            metadata,
            values,
            capacity: capacity.min(i32::MAX as usize),
        }
    }

    /// Returns the highest possible id; −1 if the capacity is 0.
    pub fn max_id(&self) -> i32 {
        // `new` limits the capacity to i32::MAX.
        self.capacity as i32 - 1
    }

    /// The state of an id; unused if it is out of range. Unknown states count as freed.
    pub fn state(&self, id: i32) -> CounterState {
        self.metadata(id)
            .map_or(CounterState::Unused, |record| state(&record))
    }

    /// The type of a counter in use.
    pub fn type_id(&self, id: i32) -> Option<i32> {
        self.allocated(id)
            .map(|record| record.type_id.load(Ordering::Relaxed))
    }

    /// The registration id of a counter in use.
    pub fn registration_id(&self, id: i32) -> Option<i64> {
        self.counter(id).map(|counter| counter.registration_id())
    }

    /// The owner id of a counter in use.
    pub fn owner_id(&self, id: i32) -> Option<i64> {
        self.counter(id).map(|counter| counter.owner_id())
    }

    /// The reference id of a counter in use.
    pub fn reference_id(&self, id: i32) -> Option<i64> {
        self.counter(id).map(|counter| counter.reference_id())
    }

    /// The value of a counter in use.
    pub fn value(&self, id: i32) -> Option<i64> {
        self.counter(id).map(|counter| counter.get())
    }

    /// The key of a counter in use.
    pub fn key(&self, id: i32) -> Option<[u8; KEY_LENGTH]> {
        self.allocated(id).map(|record| key(&record))
    }

    /// The label of a counter in use.
    pub fn label(&self, id: i32) -> Option<Label> {
        self.allocated(id).map(|record| Label::read(&record))
    }

    /// A handle on a counter in use.
    pub fn counter(&self, id: i32) -> Option<Counter> {
        self.allocated(id)?;
        self.values(id).map(|record| Counter::new(record, id))
    }

    /// Everything about a counter in use.
    pub fn meta(&self, id: i32) -> Option<CounterMeta> {
        self.consistent(id, |record, values| CounterMeta {
            id,
            type_id: record.type_id.load(Ordering::Relaxed),
            registration_id: values.registration_id.load(Ordering::Relaxed),
            owner_id: values.owner_id.load(Ordering::Relaxed),
            reference_id: values.reference_id.load(Ordering::Relaxed),
            key: key(record),
            label: Label::read(record),
        })
    }

    /// Returns the result of `read` on the records of a counter in use, without mixing in fields of another counter
    /// with the same id.
    fn consistent<T>(&self, id: i32, read: impl Fn(&Metadata, &Values) -> T) -> Option<T> {
        let (record, values) = (self.metadata(id)?, self.values(id)?);
        for _ in 0..ATTEMPTS {
            // Acquire: partner of the release that allocates.
            if record.state.load(Ordering::Acquire) != ALLOCATED {
                return None;
            }
            // Acquire: partner of the release in `CounterTable::allocate_with`, which stores this id last. A reader
            // that sees the one of a new counter sees all of the new counter, although the state above was the old
            // one's.
            let registration_id = values.registration_id.load(Ordering::Acquire);
            let type_id = record.type_id.load(Ordering::Relaxed);
            let found = read(&record, &values);
            // Checks whether the counter was freed meanwhile, or its id reused: the ids of a new counter may become
            // visible after its state (docs/spec/shared-memory.md §5.3), and a freed one loses its key. The fence is
            // the partner of the one in `CounterTable::free`; the acquire is as above.
            fence(Ordering::Acquire);
            let same = record.state.load(Ordering::Acquire) == ALLOCATED
                && values.registration_id.load(Ordering::Relaxed) == registration_id
                && record.type_id.load(Ordering::Relaxed) == type_id;
            if same {
                return Some(found);
            }
        }
        None
    }

    /// Calls `visit` for each counter in use, in the order of ids.
    pub fn for_each(&self, mut visit: impl FnMut(&CounterMeta)) {
        for id in self.used_ids() {
            if let Some(meta) = self.meta(id) {
                visit(&meta);
            }
        }
    }

    /// The first counter in use for which `wanted` is true.
    pub fn find(&self, mut wanted: impl FnMut(&CounterMeta) -> bool) -> Option<CounterMeta> {
        self.used_ids()
            .filter_map(|id| self.meta(id))
            .find(|meta| wanted(meta))
    }

    /// Returns the counter with this type and registration id. A counter that was just allocated may not be found yet
    /// (docs/spec/shared-memory.md §5.3).
    pub fn find_by_type_and_registration(&self, type_id: i32, registration_id: i64) -> Option<i32> {
        self.used_ids().find(|&id| {
            let ids = self.consistent(id, |record, values| {
                (
                    record.type_id.load(Ordering::Relaxed),
                    values.registration_id.load(Ordering::Relaxed),
                )
            });
            ids == Some((type_id, registration_id))
        })
    }

    /// Returns the first counter with this registration id, of any type.
    pub fn find_by_registration(&self, registration_id: i64) -> Option<i32> {
        self.used_ids()
            .find(|&id| self.registration_id(id) == Some(registration_id))
    }

    /// Appends to the label of a counter in use, for the client that owns the counter (docs/spec/shared-memory.md
    /// §5.10); cut at 380 bytes. False if the counter is not in use.
    pub fn append_label(&self, id: i32, text: &str) -> bool {
        let record = self.allocated(id);
        if let Some(record) = &record {
            Label::append(record, text);
        }
        record.is_some()
    }

    /// Replaces the label of a counter in use, for the client that owns the counter; cut at 380 bytes. False if the
    /// counter is not in use.
    pub fn set_label(&self, id: i32, text: &str) -> bool {
        let record = self.allocated(id);
        if let Some(record) = &record {
            Label::write(record, text);
        }
        record.is_some()
    }

    /// Replaces the key of a counter in use, for the client that owns the counter; cut at 112 bytes, zeros behind a
    /// shorter one. False if the counter is not in use.
    pub fn set_key(&self, id: i32, key: &[u8]) -> bool {
        let record = self.allocated(id);
        if let Some(record) = &record {
            let bytes = key.iter().copied().chain(std::iter::repeat(0));
            for (stored, byte) in record.key.iter().zip(bytes) {
                stored.store(byte, Ordering::Relaxed);
            }
        }
        record.is_some()
    }

    /// Returns the time from which a freed id may be used again, epoch milliseconds; `i64::MAX` for a counter in use. `None` for an id out of
    /// range.
    pub fn reuse_deadline_ms(&self, id: i32) -> Option<i64> {
        self.metadata(id)
            .map(|record| record.reuse_at.load(Ordering::Relaxed))
    }

    /// Returns the ids that have been used.
    fn used_ids(&self) -> impl Iterator<Item = i32> + '_ {
        (0..=self.max_id()).take_while(|&id| self.state(id) != CounterState::Unused)
    }

    fn allocated(&self, id: i32) -> Option<Shared<Metadata>> {
        self.metadata(id)
            .filter(|record| state(record) == CounterState::Allocated)
    }

    pub(super) fn metadata(&self, id: i32) -> Option<Shared<Metadata>> {
        let index = self.index(id)?;
        self.metadata.overlay(index * METADATA_LENGTH).ok()
    }

    pub(super) fn values(&self, id: i32) -> Option<Shared<Values>> {
        let index = self.index(id)?;
        self.values.overlay(index * VALUES_LENGTH).ok()
    }

    fn index(&self, id: i32) -> Option<usize> {
        usize::try_from(id)
            .ok()
            .filter(|&index| index < self.capacity)
    }
}

fn state(record: &Metadata) -> CounterState {
    // Acquire: partner of the releases of `CounterTable`.
    match record.state.load(Ordering::Acquire) {
        UNUSED => CounterState::Unused,
        ALLOCATED => CounterState::Allocated,
        // RECLAIMED, and invalid values.
        _ => CounterState::Reclaimed,
    }
}

fn key(record: &Metadata) -> [u8; KEY_LENGTH] {
    std::array::from_fn(|index| record.key[index].load(Ordering::Relaxed))
}
