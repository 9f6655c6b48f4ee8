// SPDX-License-Identifier: Apache-2.0
//! An archive, its driver and its client on one thread: recordings and replays allocate nothing, neither per message nor per
//! block of messages. Files are written by other threads, whose allocations `crates/storage/tests/allocation.rs` counts.

use taran_archive_client::ReplayParams;

use super::invoked::Invoked;
use super::{accept, allocations};

const LENGTH: usize = 300;
/// Bytes recorded and replayed before the measurement, and in it. All fit into one segment file.
const WARM_UP: i64 = 1 << 20;
const MEASURED: i64 = 4 << 20;

fn record_and_replay(name: &str, properties: &[(&str, &str)]) {
    let mut archive = Invoked::new(name, properties);
    let (mut publication, recording_id) = archive.record(1);
    let recorded = archive.recorded_position(recording_id);
    let mut replayed = archive.replay(recording_id, 2, &ReplayParams::new());
    let message = [7; LENGTH];
    let mut until = |archive: &mut Invoked, end: i64| {
        archive.run_until(|_| {
            for _ in 0..4 {
                accept(publication.offer(&message));
            }
            let polled = replayed.poll(|message, _| assert_eq!(message.len(), LENGTH), 10);
            polled.expect("the client lives");
            let image = replayed.images().first();
            let position = image.map(|image| image.view().position());
            (recorded.get() >= end && position >= Some(end)).then_some(())
        });
    };
    until(&mut archive, WARM_UP);
    let counted = allocations(|| until(&mut archive, WARM_UP + MEASURED));
    assert_eq!(counted, 0, "allocations of {name}");
}

#[test]
fn recording_and_replay_allocate_nothing() {
    record_and_replay("recorded", &[]);
}

#[test]
fn recording_with_sync_and_checksums_allocates_nothing() {
    let properties = [
        ("aeron.archive.file.sync.level", "1"),
        ("aeron.archive.catalog.file.sync.level", "1"),
        (
            "aeron.archive.record.checksum",
            "io.aeron.archive.checksum.Crc32c",
        ),
        (
            "aeron.archive.replay.checksum",
            "io.aeron.archive.checksum.Crc32c",
        ),
    ];
    record_and_replay("recorded-durably", &properties);
}
