// SPDX-License-Identifier: Apache-2.0
//! Mark files of members: read by tools, and claimed by the next member.

use std::path::Path;

use taran_cluster::files::{Mark, MarkComponent, MarkFile};
use taran_core::memory::{CreateOptions, MemoryStorage, Storage};

/// Reads a mark file, then lets a member claim it, also one with the header of the current version.
pub fn run(bytes: &[u8]) {
    take(bytes);
    let mut current = vec![128, 0, 200, 0, 110, 0, 1, 0];
    current.extend_from_slice(bytes);
    current.resize(current.len().max(8192 + 4096), 0);
    take(&current);
}

fn own() -> Mark {
    Mark {
        component: MarkComponent::ConsensusModule,
        activity_timestamp: 0,
        start_timestamp: 5,
        pid: 7,
        archive_stream_id: 10,
        service_stream_id: 104,
        consensus_module_stream_id: 105,
        ingress_stream_id: 101,
        member_id: 1,
        service_id: -1,
        cluster_id: 0,
        aeron_directory: "/dev/shm/aeron".to_owned(),
        control_channel: "aeron:ipc".to_owned(),
        ingress_channel: "aeron:udp".to_owned(),
        service_name: String::new(),
        authenticator: String::new(),
        services_directory: String::new(),
        error_log_length: 4096,
    }
}

fn take(bytes: &[u8]) {
    if let Ok(mark) = Mark::parse(bytes) {
        assert!(mark.error_log_length <= bytes.len());
        assert!(Mark::errors(bytes).is_ok());
    }
    let path = Path::new("/cluster/cluster-mark.dat");
    let storage = MemoryStorage::new();
    storage
        .create_dir_all(Path::new("/cluster"))
        .expect("it is in memory");
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len().next_multiple_of(4096) as u64;
    let region = storage
        .create(path, length, CreateOptions::RESERVED)
        .expect("there is memory");
    region.write(0, bytes);
    drop(region);
    match MarkFile::claim(&storage, path, &own()) {
        Ok(claimed) => {
            claimed.set_ready(1_000);
            claimed.heartbeat(2_000);
            assert!(claimed.error_log().record(2_000, 0, "text").is_ok());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
