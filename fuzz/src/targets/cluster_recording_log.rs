// SPDX-License-Identifier: Apache-2.0
//! The recording log of a member.

use taran_cluster::files::{EntryKind, RecordingLog};

use crate::allocation;
use crate::script::Script;

/// Reads a recording log as a member does at its start, then changes it. The changes arrive in the file: its bytes are read as the
/// log that was changed.
pub fn run(bytes: &[u8]) {
    let limit = 64 * bytes.len() + 64 * 1024;
    let Ok(mut log) = allocation::within(limit, || RecordingLog::decode(bytes)) else {
        return;
    };
    let count = log.entries().count();
    assert!(count <= bytes.len() / 64 + 1, "{count} entries");
    for services in 1..4 {
        if let Some((module, of_services)) = log.latest_snapshot(services) {
            assert_eq!(module.kind, EntryKind::Snapshot);
            assert!(module.is_valid);
            assert_eq!(of_services.len(), services);
            assert!(log.seeded(services).is_some());
        }
    }
    let sorted = log.sorted();
    assert_eq!(sorted.entries().count(), count);
    assert_eq!(
        RecordingLog::decode(&sorted.to_bytes()).map(|it| it.entries().count()),
        Ok(count)
    );
    let is_consistent = log.terms().is_ok();

    let mut file = bytes.to_vec();
    let mut script = Script::new(bytes);
    for _ in 0..4 {
        let position = script.near(&[0, 96, 1024]);
        let term = script.near(&[0, 1, 2, 3]);
        let patches = match script.u8() % 4 {
            0 => log.append_term(1, term, position, 5),
            1 => log.truncate(position, term),
            2 => log.invalidate_latest_snapshot(),
            _ => log.end_term(term, position).into_iter().collect(),
        };
        for patch in patches {
            let end = patch.offset + patch.bytes.len();
            file.resize(file.len().max(end), 0);
            file[patch.offset..end].copy_from_slice(&patch.bytes);
        }
    }
    let written = RecordingLog::decode(&file).expect("a member wrote it");
    assert!(
        written.entries().eq(log.entries()),
        "the file is another log"
    );
    if is_consistent {
        assert_eq!(written.terms().is_ok(), log.terms().is_ok());
    }
}
