// SPDX-License-Identifier: Apache-2.0
//! Counters that are allocated, freed and reused under a reader.

use std::time::Duration;

use loom::thread;
use taran_core::{
    counters::{CounterSpec, CounterTable, CountersReader, METADATA_LENGTH, VALUES_LENGTH},
    memory::Region,
};

use super::explore;

/// A table for one counter, without reuse delay.
fn table() -> (CounterTable, CountersReader) {
    let metadata = Region::anonymous(METADATA_LENGTH).unwrap();
    let values = Region::anonymous(VALUES_LENGTH).unwrap();
    let table = CounterTable::new(metadata, values, Duration::ZERO);
    let reader = table.reader();
    // Creates the loom objects of the records.
    let _ = (reader.meta(0), reader.value(0), reader.counter(0));
    (table, reader)
}

/// Allocates a counter whose fields all have the value `number`.
fn allocate(table: &mut CounterTable, number: u8) {
    let text = char::from(number).to_string();
    let spec = CounterSpec {
        type_id: i32::from(number),
        key: &[number],
        label: &text,
        registration_id: i64::from(number),
        owner_id: i64::from(number),
        reference_id: i64::from(number),
        value: i64::from(number),
    };
    assert_eq!(0, table.allocate_with(&spec, 0).unwrap().id());
}

/// Asserts that all fields belong to one counter; returns its number.
fn whole(reader: &CountersReader) -> Option<u8> {
    let meta = reader.meta(0)?;
    let number = meta.key[0];
    assert_eq!(char::from(number).to_string(), meta.label.as_str());
    assert_eq!(
        (
            i32::from(number),
            i64::from(number),
            i64::from(number),
            i64::from(number)
        ),
        (
            meta.type_id,
            meta.registration_id,
            meta.owner_id,
            meta.reference_id
        )
    );
    Some(number)
}

/// Guards the release of the state in `allocate_with` and the acquire in `meta`.
#[test]
fn allocated_counter_appears_with_all_fields() {
    explore(3, || {
        let (mut table, reader) = table();
        let allocating = thread::spawn(move || allocate(&mut table, b'a'));
        if let Some(number) = whole(&reader) {
            assert_eq!((b'a', Some(i64::from(b'a'))), (number, reader.value(0)));
        }
        allocating.join().unwrap();
        assert_eq!(Some(b'a'), whole(&reader));
    });
}

/// Guards the fences of `free` and `meta`: a reused id does not show fields of the old counter.
#[test]
fn reused_counter_never_shows_fields_of_the_old_one() {
    explore(2, || {
        let (mut table, reader) = table();
        allocate(&mut table, b'a');
        let reusing = thread::spawn(move || {
            assert!(table.free(0, 0));
            allocate(&mut table, b'b');
        });
        whole(&reader);
        reusing.join().unwrap();
        assert_eq!(Some(b'b'), whole(&reader));
    });
}
