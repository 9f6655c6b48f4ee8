// SPDX-License-Identifier: Apache-2.0
//! Counters overwritten by another process: readers, and a driver that continues to allocate counters.

use std::time::Duration;

use taran_core::counters::{CounterState, CounterTable, CountersReader};
use taran_protocol::counter::{ChannelKey, StreamKey};

use crate::script::Script;
use crate::{allocation, memory};

/// Counters in the region, and the bytes of each.
const COUNTERS: usize = 8;
const METADATA_LENGTH: usize = 512;
const VALUES_LENGTH: usize = 128;

/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 64;

/// Overwrites counters between the steps of their owner.
pub fn run(bytes: &[u8]) {
    let zeros = [0; COUNTERS * (METADATA_LENGTH + VALUES_LENGTH)];
    let Some(region) = memory::region(&zeros) else {
        return;
    };
    let cut = |offset, length| region.sub(offset, length).expect("inside");
    let metadata = cut(0, COUNTERS * METADATA_LENGTH);
    let values = cut(COUNTERS * METADATA_LENGTH, COUNTERS * VALUES_LENGTH);
    let mut table = CounterTable::new(metadata, values, Duration::from_millis(2));
    let mut script = Script::new(bytes);
    // State of the owner, which no write to the shared memory may change.
    let mut mine: Vec<i32> = Vec::new();
    let mut now_ms = 1000;
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        match script.u8() % 6 {
            0 => {
                let label = String::from_utf8_lossy(script.take(8));
                let allocated = table.allocate(script.i32(), b"key", &label, now_ms);
                match allocated {
                    Ok(counter) => {
                        assert!(!mine.contains(&counter.id()), "allocated twice");
                        assert_eq!(counter.get(), 0);
                        mine.push(counter.id());
                    }
                    Err(full) => {
                        assert_eq!(full.in_use, mine.len());
                        assert_eq!(full.in_use + full.awaiting_reuse, COUNTERS);
                    }
                }
            }
            1 if !mine.is_empty() => {
                let id = mine.swap_remove(script.below(mine.len()));
                assert!(table.free(id, now_ms));
                assert!(!table.free(id, now_ms));
            }
            2 => now_ms += i64::from(script.u8() % 4),
            3 => read_all(&table.reader()),
            // Any process may write any value; the owner must accept it.
            4 => {
                let at = script.below(COUNTERS) * VALUES_LENGTH;
                let offset = COUNTERS * METADATA_LENGTH + at;
                region.write(offset, script.take(32));
            }
            _ => {
                let at = script.below(COUNTERS) * METADATA_LENGTH;
                let field = [0, 4, 8, 16, 124, 128, 132, 136][script.below(8)];
                region.write(at + field, script.take(8));
            }
        }
        for id in &mine {
            assert!(table.is_in_use(*id));
        }
    }
    read_all(&table.reader());
}

/// Reads all that readers can.
fn read_all(reader: &CountersReader) {
    assert_eq!(reader.max_id(), COUNTERS as i32 - 1);
    let mut seen = 0;
    allocation::within(0, || {
        reader.for_each(|meta| {
            seen += 1;
            assert!(meta.label.is_ascii() && meta.label.len() <= 380);
        });
    });
    assert!(seen <= COUNTERS);
    for id in [-1, 0, 3, 7, 8, i32::MAX, i32::MIN] {
        let state = reader.state(id);
        assert!(state == CounterState::Unused || (0..8).contains(&id));
        let _ = (reader.value(id), reader.owner_id(id), reader.label(id));
        let _ = (reader.reuse_deadline_ms(id), reader.registration_id(id));
    }
    reader.for_each(|meta| {
        if let Some(key) = StreamKey::decode(&meta.key) {
            assert!(StreamKey::decode(&key.encode()).is_some());
        }
        if let Some(key) = ChannelKey::decode(&meta.key) {
            assert!(ChannelKey::decode(&key.encode()).is_some());
        }
    });
    let _ = reader.find_by_registration(0);
    let _ = reader.find_by_type_and_registration(0, 0);
}
