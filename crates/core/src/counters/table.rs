// SPDX-License-Identifier: Apache-2.0
//! Allocation of counters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use thiserror::Error;

use super::layout::{ALLOCATED, LABEL_LENGTH, Metadata, NOT_FREE, RECLAIMED};
use super::{Counter, CountersReader, Label};
use crate::memory::{Region, Shared};
use crate::sync::{Ordering, fence};

/// The owner of all counters: a single instance, owned by one thread (the driver's conductor).
///
/// Contract: `allocate` takes a freed id whose reuse delay is over, else a new one; `free` starts the reuse delay of an
/// id. Both cost O(log n) in the number of ids that await reuse. The table keeps its own record of the ids in use:
/// writes of other processes to the records do not affect it.
#[doc(alias = "CountersManager")]
#[derive(Debug)]
pub struct CounterTable {
    reader: CountersReader,
    reuse_delay_ms: i64,
    /// The longest reuse delay of any id so far.
    longest_delay_ms: i64,
    /// For each id used so far: whether it is in use now.
    in_use: Vec<bool>,
    /// End of the reuse delay in epoch milliseconds, and id; the earliest first.
    awaiting_reuse: BinaryHeap<Reverse<(i64, i32)>>,
}

/// Description of a new counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterSpec<'a> {
    /// The kind of counter (docs/spec/shared-memory.md §5.6, §5.7).
    pub type_id: i32,
    /// The key, laid out by type; cut at 112 bytes.
    pub key: &'a [u8],
    /// The human-readable label; truncated at 380 bytes, characters other than ASCII become `?`.
    pub label: &'a str,
    /// The registration id, e.g. of a publication.
    pub registration_id: i64,
    /// The id of the client that owns the counter.
    pub owner_id: i64,
    /// An id whose meaning depends on the type.
    pub reference_id: i64,
    /// The initial value.
    pub value: i64,
}

/// No id is left.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "no counter left for `{label}`: {in_use} of {capacity} are in use and {awaiting_reuse} were freed too \
     recently (see aeron.counters.buffer.length, aeron.counters.free.to.reuse.timeout)"
)]
pub struct CountersFull {
    /// The label of the counter that could not be allocated.
    pub label: String,
    /// Counters in use.
    pub in_use: usize,
    /// Counters that were freed and may not be used again yet.
    pub awaiting_reuse: usize,
    /// Capacity in counters.
    pub capacity: usize,
}

impl CounterTable {
    /// A table over zeroed sections of a new `cnc.dat`. The reuse delay is `free_to_reuse`, in
    /// whole milliseconds, at least one unless it is zero (docs/spec/shared-memory.md §5.4).
    pub fn new(metadata: Region, values: Region, free_to_reuse: Duration) -> Self {
        let millis = i64::try_from(free_to_reuse.as_millis()).unwrap_or(i64::MAX);
        let reuse_delay_ms = if free_to_reuse.is_zero() {
            0
        } else {
            millis.max(1)
        };
        Self {
            reader: CountersReader::new(metadata, values),
            reuse_delay_ms,
            longest_delay_ms: reuse_delay_ms,
            in_use: Vec::new(),
            awaiting_reuse: BinaryHeap::new(),
        }
    }

    /// Allocates a counter with key and label, without ids.
    ///
    /// # Errors
    /// No id is left.
    pub fn allocate(
        &mut self,
        type_id: i32,
        key: &[u8],
        label: &str,
        now_epoch_ms: i64,
    ) -> Result<Counter, CountersFull> {
        let spec = CounterSpec {
            type_id,
            key,
            label,
            ..CounterSpec::default()
        };
        self.allocate_with(&spec, now_epoch_ms)
    }

    /// Allocates a counter with all its fields. A reader that sees the counter sees all of it: ids and value are set
    /// before the counter becomes visible.
    ///
    /// # Errors
    /// No id is left.
    pub fn allocate_with(
        &mut self,
        spec: &CounterSpec<'_>,
        now_epoch_ms: i64,
    ) -> Result<Counter, CountersFull> {
        let id = self.take_id(now_epoch_ms);
        let records =
            id.and_then(|id| Some((id, self.reader.metadata(id)?, self.reader.values(id)?)));
        let Some((id, record, values)) = records else {
            return Err(self.full(spec.label));
        };
        let counter = Counter::new(values, id);

        record.type_id.store(spec.type_id, Ordering::Relaxed);
        record.reuse_at.store(NOT_FREE, Ordering::Relaxed);
        store_key(&record, spec.key);
        Label::write(&record, spec.label);

        let values = counter.record();
        values.owner_id.store(spec.owner_id, Ordering::Relaxed);
        values
            .reference_id
            .store(spec.reference_id, Ordering::Relaxed);
        // Release: partners are the acquire loads of clients that read these two alone. The registration id
        // comes last: a reader that sees it sees all of the above (`CountersReader::meta`).
        values.value.store(spec.value, Ordering::Release);
        values
            .registration_id
            .store(spec.registration_id, Ordering::Release);

        // Release: partner of the acquire loads of the state in `CountersReader`.
        record.state.store(ALLOCATED, Ordering::Release);
        Ok(counter)
    }

    /// Frees a counter and starts the reuse delay of its id. Returns false if it was not in use.
    pub fn free(&mut self, id: i32, now_epoch_ms: i64) -> bool {
        self.free_for(id, now_epoch_ms, Duration::ZERO)
    }

    /// As [`free`](Self::free), with a reuse delay of at least `at_least`, for a counter that may still be read for a
    /// while.
    pub fn free_for(&mut self, id: i32, now_epoch_ms: i64, at_least: Duration) -> bool {
        if !self.is_in_use(id) {
            return false;
        }
        let Some(record) = self.reader.metadata(id) else {
            return false;
        };
        let at_least = i64::try_from(at_least.as_millis()).unwrap_or(i64::MAX);
        let reuse_delay_ms = self.reuse_delay_ms.max(at_least);
        self.longest_delay_ms = self.longest_delay_ms.max(reuse_delay_ms);
        let reuse_at = now_epoch_ms.saturating_add(reuse_delay_ms);
        // Release: partner of the acquire loads of the state in `CountersReader`.
        record.state.store(RECLAIMED, Ordering::Release);
        // A reader that sees any of the following writes, or those of the next owner of the id, also sees
        // the changed state. Partner: the acquire fence in `CountersReader::meta`.
        fence(Ordering::Release);
        store_key(&record, &[]);
        record.reuse_at.store(reuse_at, Ordering::Relaxed);
        // `is_in_use` has checked the index.
        self.in_use[id as usize] = false;
        self.awaiting_reuse.push(Reverse((reuse_at, id)));
        true
    }

    /// A handle on a counter in use.
    pub fn counter(&self, id: i32) -> Option<Counter> {
        let values = self.reader.values(id).filter(|_| self.is_in_use(id))?;
        Some(Counter::new(values, id))
    }

    /// Appends to a counter's label, truncated at 380 bytes. Returns false if it is not in use.
    pub fn append_label(&mut self, id: i32, text: &str) -> bool {
        self.with_record(id, |record| Label::append(record, text))
    }

    /// Replaces a counter's label, cut at 380 bytes. False if it is not in use.
    pub fn set_label(&mut self, id: i32, text: &str) -> bool {
        self.with_record(id, |record| Label::write(record, text))
    }

    /// Sets the registration id of a counter; release. False if it is not in use.
    pub fn set_registration_id(&mut self, id: i32, registration_id: i64) -> bool {
        let counter = self.counter(id);
        if let Some(counter) = &counter {
            counter
                .record()
                .registration_id
                .store(registration_id, Ordering::Release);
        }
        counter.is_some()
    }

    /// Sets the owner id of a counter. False if it is not in use.
    pub fn set_owner_id(&mut self, id: i32, owner_id: i64) -> bool {
        let counter = self.counter(id);
        if let Some(counter) = &counter {
            counter.record().owner_id.store(owner_id, Ordering::Relaxed);
        }
        counter.is_some()
    }

    /// Sets the reference id of a counter. False if it is not in use.
    pub fn set_reference_id(&mut self, id: i32, reference_id: i64) -> bool {
        let counter = self.counter(id);
        if let Some(counter) = &counter {
            counter
                .record()
                .reference_id
                .store(reference_id, Ordering::Relaxed);
        }
        counter.is_some()
    }

    /// Returns true if this id is allocated.
    pub fn is_in_use(&self, id: i32) -> bool {
        usize::try_from(id)
            .ok()
            .and_then(|index| self.in_use.get(index))
            == Some(&true)
    }

    /// Returns the capacity in counters.
    pub fn capacity(&self) -> usize {
        self.reader.max_id() as usize + 1
    }

    /// Returns a read-only view.
    pub fn reader(&self) -> CountersReader {
        self.reader.clone()
    }

    fn take_id(&mut self, now_epoch_ms: i64) -> Option<i32> {
        self.restart_delays_after_clock_step(now_epoch_ms);
        let is_due = self
            .awaiting_reuse
            .peek()
            .is_some_and(|Reverse((at, _))| *at <= now_epoch_ms);
        if is_due {
            let Reverse((_, id)) = self.awaiting_reuse.pop()?;
            self.in_use[id as usize] = true;
            return Some(id);
        }
        let id = i32::try_from(self.in_use.len())
            .ok()
            .filter(|&id| id <= self.reader.max_id())?;
        self.in_use.push(true);
        Some(id)
    }

    /// No reuse delay ends later than the longest one from now. If all seem to, the clock was set back meanwhile and
    /// the elapsed part of the delays is unknown, so all start again: an id that is reused too early would be mistaken
    /// for the old counter, and an id kept until the old time might never be reused.
    fn restart_delays_after_clock_step(&mut self, now_epoch_ms: i64) {
        let latest = now_epoch_ms.saturating_add(self.longest_delay_ms);
        let first = self.awaiting_reuse.peek();
        if first.is_none_or(|Reverse((at, _))| *at <= latest) {
            return;
        }
        let ids = self.awaiting_reuse.drain().map(|Reverse((_, id))| id);
        let again = ids.map(|id| {
            if let Some(record) = self.reader.metadata(id) {
                record.reuse_at.store(latest, Ordering::Relaxed);
            }
            Reverse((latest, id))
        });
        self.awaiting_reuse = again.collect();
    }

    fn with_record(&self, id: i32, change: impl FnOnce(&Metadata)) -> bool {
        let record: Option<Shared<Metadata>> =
            self.reader.metadata(id).filter(|_| self.is_in_use(id));
        if let Some(record) = &record {
            change(record);
        }
        record.is_some()
    }

    fn full(&self, label: &str) -> CountersFull {
        CountersFull {
            label: label.chars().take(LABEL_LENGTH).collect(),
            in_use: self.in_use.len() - self.awaiting_reuse.len(),
            awaiting_reuse: self.awaiting_reuse.len(),
            capacity: self.capacity(),
        }
    }
}

/// Stores the key, truncated to its field, and zeros behind it.
fn store_key(record: &Metadata, key: &[u8]) {
    let padded = key.iter().copied().chain(std::iter::repeat(0));
    for (target, byte) in record.key.iter().zip(padded) {
        target.store(byte, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CounterState, KEY_LENGTH};
    use super::*;

    const REST: Duration = Duration::from_millis(1000);

    fn table(count: usize) -> CounterTable {
        let metadata = Region::anonymous(count * 512).unwrap();
        let values = Region::anonymous(count * 128).unwrap();
        CounterTable::new(metadata, values, REST)
    }

    #[test]
    fn allocated_counter_has_all_its_fields() {
        let mut table = table(4);
        let spec = CounterSpec {
            type_id: 4,
            key: b"key",
            label: "sub-pos: 7",
            registration_id: 7,
            owner_id: 8,
            reference_id: 9,
            value: 640,
        };
        table.allocate(1, &[], "first", 0).unwrap();
        let counter = table.allocate_with(&spec, 0).unwrap();
        let meta = table.reader().meta(1).unwrap();
        assert_eq!((counter.id(), meta.id, meta.type_id), (1, 1, 4));
        assert_eq!(
            (meta.registration_id, meta.owner_id, meta.reference_id),
            (7, 8, 9)
        );
        assert_eq!(
            (&meta.key[..4], &*meta.label),
            (&b"key\0"[..], "sub-pos: 7")
        );
        assert_eq!(table.reader().value(1), Some(640));
        assert!(table.reader().set_key(1, &[1, 2]) && table.reader().set_label(1, "other"));
        assert_eq!(&table.reader().key(1).unwrap()[..3], [1, 2, 0]);
        assert_eq!(table.reader().label(1).unwrap(), "other");
        assert_eq!(table.reader().reuse_deadline_ms(1), Some(i64::MAX));
        assert!(!table.reader().set_key(99, &[]) && !table.reader().set_label(99, ""));
        assert_eq!(table.reader().find_by_registration(7), Some(1));
        assert_eq!(table.reader().find_by_registration(8), None);
        assert_eq!(table.reader().find_by_type_and_registration(4, 7), Some(1));
        assert_eq!(table.reader().find_by_type_and_registration(4, 8), None);
    }

    #[test]
    fn reuse_delays_restart_once_after_the_clock_was_set_back() {
        let hour = 3_600_000;
        for back_ms in [1, hour] {
            let mut table = table(2);
            let set = hour - back_ms;
            for id in 0..2 {
                table.allocate(1, &[], "", hour).unwrap();
                assert!(table.free(id, hour));
            }
            let mut taken_at = |now| table.allocate(1, &[], "", now).ok().map(|c| c.id());
            assert_eq!(taken_at(hour), None, "the delays are not over");
            assert_eq!(taken_at(set), None, "the delays start again: {back_ms}");
            assert_eq!(taken_at(set + 999), None, "{back_ms}");
            assert_eq!(taken_at(set + 1_000), Some(0), "{back_ms}");
            assert_eq!(taken_at(set + 1_000), Some(1), "{back_ms}");
        }
    }

    #[test]
    fn reuse_deadline_is_updated_after_the_clock_was_set_back() {
        let mut table = table(1);
        table.allocate(1, &[], "", 9_000).unwrap();
        table.free(0, 9_000);
        assert!(table.allocate(1, &[], "", 500).is_err());
        assert_eq!(table.reader().reuse_deadline_ms(0), Some(1_500));
    }

    #[test]
    fn freed_id_is_reused_clean_after_the_delay() {
        let mut table = table(4);
        let spec = CounterSpec {
            key: &[0xff; 200],
            registration_id: 5,
            owner_id: 6,
            reference_id: 7,
            value: 8,
            ..CounterSpec::default()
        };
        table.allocate_with(&spec, 0).unwrap();
        assert!(table.free(0, 100));
        assert!(!table.free(0, 100));
        assert_eq!(table.reader().state(0), CounterState::Reclaimed);
        assert!(table.counter(0).is_none() && table.reader().counter(0).is_none());
        assert_eq!(table.allocate(0, &[], "", 1099).unwrap().id(), 1);
        let again = table.allocate(0, &[], "", 1100).unwrap();
        assert_eq!((again.id(), again.get()), (0, 0));
        let ids = (
            again.registration_id(),
            again.owner_id(),
            again.reference_id(),
        );
        assert_eq!(ids, (0, 0, 0));
        assert_eq!(table.reader().key(0), Some([0; KEY_LENGTH]));
    }

    #[test]
    fn free_for_delays_reuse_as_requested() {
        let mut table = table(3);
        for (id, at_least_ms, rests_ms) in [(0, 300, 1_000), (1, 1_000, 1_000), (2, 3_000, 3_000)] {
            assert_eq!(table.allocate(0, &[], "", 0).unwrap().id(), id);
            table.free_for(id, 0, Duration::from_millis(at_least_ms));
            let deadline = table.reader().reuse_deadline_ms(id);
            assert_eq!(deadline, Some(rests_ms), "{at_least_ms}");
        }
        assert!(table.allocate(0, &[], "", 999).is_err());
        let mut taken = || table.allocate(0, &[], "", 1_000).unwrap().id();
        assert_eq!([taken(), taken()], [0, 1]);
        for now in [1_000, 1_500, 1_999, 2_000, 2_999] {
            assert!(table.allocate(0, &[], "", now).is_err(), "{now}");
        }
        assert_eq!(table.allocate(0, &[], "", 3_000).unwrap().id(), 2);
    }

    #[test]
    fn requested_delay_may_exceed_the_default() {
        for usual_ms in [0, 500] {
            let metadata = Region::anonymous(512).unwrap();
            let values = Region::anonymous(128).unwrap();
            let usual = Duration::from_millis(usual_ms);
            let mut table = CounterTable::new(metadata, values, usual);
            table.allocate(0, &[], "", 0).unwrap();
            table.free_for(0, 0, REST);
            for now in [0, 499, 500, 999] {
                assert!(table.allocate(0, &[], "", now).is_err(), "{usual_ms} {now}");
            }
            assert_eq!(table.allocate(0, &[], "", 1_000).unwrap().id(), 0);
        }
    }

    #[test]
    fn freed_record_keeps_all_but_the_key() {
        let mut table = table(1);
        table.allocate(3, b"key", "label", 0).unwrap().set(12);
        table.free(0, 50);
        let record = table.reader.metadata(0).unwrap();
        assert_eq!(record.reuse_at.load(Ordering::Relaxed), 1050);
        assert_eq!(record.key[0].load(Ordering::Relaxed), 0);
        assert_eq!(record.type_id.load(Ordering::Relaxed), 3);
        assert_eq!(Label::read(&record), "label");
        assert_eq!(
            table
                .reader
                .values(0)
                .unwrap()
                .value
                .load(Ordering::Relaxed),
            12
        );
    }

    #[test]
    fn full_table_reports_the_numbers() {
        let mut table = table(2);
        table.allocate(0, &[], "a", 0).unwrap();
        table.allocate(0, &[], "b", 0).unwrap();
        table.free(0, 0);
        let error = table.allocate(0, &[], "c", 999).unwrap_err();
        let expected = CountersFull {
            label: "c".into(),
            in_use: 1,
            awaiting_reuse: 1,
            capacity: 2,
        };
        assert_eq!(error, expected);
        assert_eq!(table.allocate(0, &[], "c", 1000).unwrap().id(), 0);
    }

    #[test]
    fn short_delay_is_rounded_up_to_one_millisecond() {
        for (rest, reuse_delay_ms) in [
            (Duration::from_nanos(1), 1),
            (Duration::ZERO, 0),
            (REST, 1000),
        ] {
            let region = Region::anonymous(512).unwrap();
            assert_eq!(
                CounterTable::new(region.clone(), region, rest).reuse_delay_ms,
                reuse_delay_ms
            );
        }
    }

    #[test]
    fn foreign_writes_to_the_records_do_not_affect_the_table() {
        let mut table = table(3);
        table.allocate(0, &[], "a", 0).unwrap();
        let record = table.reader.metadata(0).unwrap();
        record.state.store(RECLAIMED, Ordering::Relaxed);
        record.label_length.store(i32::MAX, Ordering::Relaxed);
        record.reuse_at.store(0, Ordering::Relaxed);
        assert!(table.append_label(0, "b"));
        assert_eq!(table.allocate(0, &[], "c", 9999).unwrap().id(), 1);
        assert!(table.free(0, 9999));
        assert!(!table.free(-1, 0) && !table.free(2, 0) && !table.free(i32::MAX, 0));
    }

    #[test]
    fn ids_and_labels_can_be_set_later() {
        let mut table = table(1);
        let id = table.allocate(0, &[], "rcv-channel: x", 0).unwrap().id();
        assert!(table.append_label(id, " 127.0.0.1:1"));
        assert!(table.set_registration_id(id, 1) && table.set_owner_id(id, 2));
        assert!(table.set_reference_id(id, 3));
        let meta = table.reader().meta(id).unwrap();
        assert_eq!(meta.label, "rcv-channel: x 127.0.0.1:1");
        assert_eq!(
            (meta.registration_id, meta.owner_id, meta.reference_id),
            (1, 2, 3)
        );
        assert!(table.set_label(id, "new"));
        assert_eq!(table.reader().label(id).unwrap(), "new");
        assert!(!table.set_label(1, "") && !table.set_owner_id(1, 0));
    }
}
