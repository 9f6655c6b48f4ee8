// SPDX-License-Identifier: Apache-2.0
//! The loss report as tools read it.

use taran_core::loss_report::{self, LossReport};

use crate::{allocation, memory};

/// Length of an entry without texts: header and two lengths, on a cache line.
const ENTRY_LENGTH_MIN: usize = 64;

/// Reads a report, then the rest of it behind what a driver has just written.
pub fn run(bytes: &[u8]) {
    let Some(region) = memory::region(bytes) else {
        return;
    };
    let visited = allocation::within(2 * bytes.len() + 64, || {
        loss_report::read(&region, |loss| {
            assert!(loss.count > 0);
            assert!(loss.channel.is_ascii() && loss.source.is_ascii());
            assert!(loss.channel.len() + loss.source.len() <= bytes.len());
        })
    });
    assert!(visited <= bytes.len().div_ceil(ENTRY_LENGTH_MIN));

    let mut report = LossReport::open(region.clone());
    let Some(entry) = report.create_entry(32, 5, 1, 2, "aeron:udp?endpoint=a:1", "b:2") else {
        return;
    };
    entry.record(64, 6);
    let mut first = None;
    loss_report::read(&region, |loss| {
        first.get_or_insert_with(|| loss.clone());
    });
    let first = first.expect("the created entry is read");
    assert_eq!((first.count, first.bytes_lost, first.last_ms), (2, 96, 6));
    assert_eq!(
        (&*first.channel, &*first.source),
        ("aeron:udp?endpoint=a:1", "b:2")
    );
}
