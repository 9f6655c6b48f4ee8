// SPDX-License-Identifier: Apache-2.0
//! The catalog of an archive.

use taran_archive::files::{
    Catalog, CatalogContents, CatalogOptions, Checksum, EntryState, NewRecording,
};

use crate::allocation;

/// Reads a catalog, and changes what was read.
pub fn run(bytes: &[u8]) {
    let options = CatalogOptions {
        checksum: Some(Checksum::Crc32c),
        ..CatalogOptions::default()
    };
    let contents = CatalogContents {
        bytes,
        len: bytes.len() as u64,
    };
    let parsed = allocation::within(64 * bytes.len() + 64 * 1024, || {
        Catalog::parse(contents, options, 0)
    });
    let Ok((mut catalog, report)) = parsed else {
        return;
    };
    let ids: Vec<i64> = catalog
        .recordings(i64::MIN)
        .map(|d| d.recording_id)
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(ids.len(), catalog.len());
    assert!(report.unusable.len() + ids.len() <= catalog.entries().len());
    assert!(catalog.used() <= catalog.capacity());
    for id in &ids {
        assert!(*id < catalog.next_recording_id() || *id == i64::MAX);
        let descriptor = catalog.get(*id).expect("it is listed").clone();
        descriptor.validate().expect("it is usable");
        let (stream, session) = (descriptor.stream_id, descriptor.session_id);
        let found =
            catalog.find_last_matching(*id, stream, session, &descriptor.texts.original_channel);
        assert!(found >= Some(*id));
        let _stopped = catalog
            .stop(*id, descriptor.start_position, 1)
            .expect("it can stop at its start");
        let _changed = catalog.set_channels(*id, "aeron:ipc", "aeron:udp?endpoint=a:1");
    }
    let new = NewRecording {
        start_timestamp: 0,
        start_position: 0,
        initial_term_id: 0,
        segment_file_length: 65_536,
        term_buffer_length: 65_536,
        mtu_length: 1408,
        session_id: 1,
        stream_id: 2,
        stripped_channel: "aeron:ipc",
        original_channel: "aeron:ipc",
        source_identity: "aeron:ipc",
    };
    if let Ok((id, _)) = catalog.add(&new) {
        assert!(ids.iter().all(|other| *other < id));
        assert!(catalog.get(id).is_some());
        let _purged = catalog
            .set_state(id, EntryState::Deleted)
            .expect("it was added");
        assert!(catalog.get(id).is_none());
    }
    let before = catalog.len();
    let (removed, _) = catalog.compact();
    assert!(
        removed
            .iter()
            .all(|entry| entry.state() != EntryState::Valid)
    );
    assert_eq!(before, catalog.len());
}
