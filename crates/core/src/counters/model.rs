// SPDX-License-Identifier: Apache-2.0
//! The table against a model, and the reader against arbitrary bytes.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::memory::Region;
use crate::sync::Ordering;

const CAPACITY: usize = 8;
const REUSE_DELAY_MS: i64 = 10;

#[derive(Clone, Debug)]
enum Step {
    Allocate {
        type_id: i32,
        registration_id: i64,
        label: String,
    },
    /// With the requested delay.
    Free(i32, i64),
    Append(i32, String),
    /// The wall clock can go backwards.
    Time(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let id = -1..CAPACITY as i32 + 1;
    prop_oneof![
        4 => (0..3, 0..3_i64, ".{0,400}").prop_map(|(type_id, registration_id, label)| {
            Step::Allocate { type_id, registration_id, label }
        }),
        3 => (id.clone(), 0..3 * REUSE_DELAY_MS).prop_map(|(id, at_least)| Step::Free(id, at_least)),
        1 => (id, "[ -~]{0,200}").prop_map(|(id, text)| Step::Append(id, text)),
        2 => (-15..15_i64).prop_map(Step::Time),
    ]
}

/// Expected state of a table: ids in use with type, registration id and label; ids awaiting reuse with the ends of
/// their delays.
struct Model {
    in_use: BTreeMap<i32, (i32, i64, String)>,
    awaiting_reuse: BTreeMap<i32, i64>,
    longest_delay: i64,
}

impl Model {
    fn take_id(&mut self, now: i64) -> Option<i32> {
        let latest = now + self.longest_delay;
        if self.awaiting_reuse.values().all(|at| *at > latest) {
            self.awaiting_reuse.values_mut().for_each(|at| *at = latest);
        }
        let awaiting_reuse = self.awaiting_reuse.iter().map(|(id, at)| (*at, *id)).min();
        let rested = awaiting_reuse.filter(|(at, _)| *at <= now);
        let earliest = rested.map(|(_, id)| id);
        if let Some(id) = earliest {
            self.awaiting_reuse.remove(&id);
            return Some(id);
        }
        let next = self.in_use.len() + self.awaiting_reuse.len();
        (next < CAPACITY).then_some(next as i32)
    }
}

fn cut(text: &str) -> String {
    let ascii = text.chars().map(|character| {
        if (' '..='~').contains(&character) {
            character
        } else {
            '?'
        }
    });
    ascii.take(LABEL_LENGTH).collect()
}

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "properties take hours there")]
    fn table_behaves_like_its_model(steps in prop::collection::vec(step(), 1..60)) {
        let metadata = Region::anonymous(CAPACITY * METADATA_LENGTH).unwrap();
        let values = Region::anonymous(CAPACITY * VALUES_LENGTH).unwrap();
        let rest = Duration::from_millis(REUSE_DELAY_MS as u64);
        let mut table = CounterTable::new(metadata, values, rest);
        let reader = table.reader();
        let mut model = Model {
            in_use: BTreeMap::new(),
            awaiting_reuse: BTreeMap::new(),
            longest_delay: REUSE_DELAY_MS,
        };
        let mut now = 1000;
        for step in steps {
            match step {
                Step::Allocate { type_id, registration_id, label } => {
                    // A zero at the end of a label is the one thing that does not come back.
                    let label = label.replace('\0', "");
                    let spec = CounterSpec {
                        type_id,
                        registration_id,
                        label: &label,
                        ..CounterSpec::default()
                    };
                    let id = table.allocate_with(&spec, now).ok().map(|counter| counter.id());
                    prop_assert_eq!(id, model.take_id(now));
                    if let Some(id) = id {
                        model.in_use.insert(id, (type_id, registration_id, cut(&label)));
                    }
                }
                Step::Free(id, at_least) => {
                    let known = model.in_use.remove(&id).is_some();
                    let rest = REUSE_DELAY_MS.max(at_least);
                    if known {
                        model.awaiting_reuse.insert(id, now + rest);
                        model.longest_delay = model.longest_delay.max(rest);
                    }
                    let at_least = Duration::from_millis(at_least as u64);
                    prop_assert_eq!(table.free_for(id, now, at_least), known);
                }
                Step::Append(id, text) => {
                    let known = model.in_use.get_mut(&id);
                    prop_assert_eq!(table.append_label(id, &text), known.is_some());
                    if let Some((_, _, label)) = known {
                        *label = cut(&format!("{label}{text}"));
                    }
                }
                Step::Time(by) => now += by,
            }
            let mut seen = BTreeMap::new();
            reader.for_each(|meta| {
                let entry = (meta.type_id, meta.registration_id, meta.label.to_string());
                seen.insert(meta.id, entry);
            });
            prop_assert_eq!(&seen, &model.in_use);
            for (type_id, registration_id) in [(0, 0), (1, 2)] {
                let expected = model.in_use.iter().find(|(_, counter)| {
                    (counter.0, counter.1) == (type_id, registration_id)
                });
                let found = reader.find_by_type_and_registration(type_id, registration_id);
                prop_assert_eq!(found, expected.map(|(id, _)| *id));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "properties take hours there")]
    fn reader_survives_any_bytes(
        bytes in prop::collection::vec(any::<u8>(), 2 * METADATA_LENGTH + 300),
        states in prop::array::uniform2(-2..3),
        lengths in (0..1400_usize, 0..400_usize),
        id in any::<i32>(),
    ) {
        let metadata = Region::anonymous(bytes.len()).unwrap();
        metadata.write(0, &bytes);
        for (index, state) in states.into_iter().enumerate() {
            metadata.atomic_i32(index * METADATA_LENGTH).store(state, Ordering::Relaxed);
        }
        let values = Region::anonymous(400).unwrap();
        let metadata = metadata.sub(0, lengths.0.min(metadata.len())).unwrap();
        let reader = CountersReader::new(metadata, values.sub(0, lengths.1).unwrap());
        let mut count = 0;
        reader.for_each(|meta| {
            assert!(meta.label.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            count += 1;
        });
        prop_assert!(count <= 2);
        reader.find_by_type_and_registration(0, 0);
        for id in [id, -1, 0, 1, 2, 3, i32::MIN, i32::MAX] {
            reader.append_label(id, "x");
            let _ = (reader.meta(id), reader.label(id), reader.key(id), reader.value(id));
            let _ = (reader.state(id), reader.owner_id(id), reader.reference_id(id));
        }
    }
}

/// Counters are allocated and freed under a reader; the fields that it reports belong together.
#[test]
fn reader_sees_whole_counters_while_they_change() {
    let metadata = Region::anonymous(4 * METADATA_LENGTH).unwrap();
    let values = Region::anonymous(4 * VALUES_LENGTH).unwrap();
    let mut table = CounterTable::new(metadata, values, Duration::from_millis(1));
    let reader = table.reader();
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            // Miri is a thousand times slower.
            let rounds = if cfg!(miri) { 20 } else { 20_000_i64 };
            for round in 1..rounds {
                let type_id = round as i32;
                let spec = CounterSpec {
                    type_id,
                    registration_id: round,
                    ..CounterSpec::default()
                };
                let id = table.allocate_with(&spec, round).unwrap().id();
                table.free(id, round);
            }
        });
        while !writer.is_finished() {
            reader.for_each(|meta| assert_eq!(i64::from(meta.type_id), meta.registration_id));
        }
    });
}
