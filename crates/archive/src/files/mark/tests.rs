// SPDX-License-Identifier: Apache-2.0
use std::sync::Arc;

use taran_core::memory::MemoryStorage;

use super::super::crashing_disk::{CrashingDisk, DIRECTORY};
use super::*;

const NOW: i64 = 1_700_000_000_000;

fn settings() -> MarkSettings {
    MarkSettings {
        archive_id: 7,
        pid: 4711,
        control_stream_id: 10,
        local_control_stream_id: 11,
        events_stream_id: 30,
        control_channel: "aeron:udp?endpoint=localhost:8010".to_owned(),
        local_control_channel: "aeron:ipc?term-length=64k".to_owned(),
        events_channel: String::new(),
        aeron_directory: "/dev/shm/aeron-test".to_owned(),
        error_log_length: ERROR_LOG_LENGTH_MIN,
        page_size: 4096,
    }
}

struct Host {
    disk: Arc<dyn Disk>,
    storage: MemoryStorage,
}

impl Host {
    fn new() -> Self {
        let disk = CrashingDisk::new(1, true).disk();
        let storage = MemoryStorage::new();
        storage.create_dir_all(Path::new(DIRECTORY)).unwrap();
        Self { disk, storage }
    }

    fn claim_in(&self, mark_directory: &Path, now_ms: i64) -> Result<MarkFile, ClaimError> {
        let directory = Path::new(DIRECTORY);
        MarkFile::claim(
            MarkFile::lock(&*self.disk, directory)?,
            &self.storage,
            directory,
            mark_directory,
            &settings(),
            now_ms,
        )
    }

    fn claim(&self, now_ms: i64) -> Result<MarkFile, ClaimError> {
        self.claim_in(Path::new(DIRECTORY), now_ms)
    }

    fn region(&self) -> Region {
        self.storage
            .open(&Path::new(DIRECTORY).join(MARK_FILE))
            .unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let region = self.region();
        let mut bytes = vec![0; region.len()];
        region.read(0, &mut bytes);
        bytes
    }

    /// Writes a mark file as an official archive has it.
    fn official(&self, activity: i64) {
        let mark = self.claim(NOW).unwrap();
        mark.set_ready(NOW).unwrap();
        drop(mark);
        let region = self.region();
        region
            .atomic_i64(at::OWNER_START)
            .store(0, Ordering::Release);
        region.atomic_i64(at::OWNER_PID).store(0, Ordering::Release);
        region
            .atomic_i64(at::ACTIVITY)
            .store(activity, Ordering::Release);
    }
}

#[test]
fn bytes_of_a_claimed_mark_file_are_as_specified() {
    let host = Host::new();
    let mark = host.claim(NOW).unwrap();
    let value = |at| host.region().atomic_i64(at).load(Ordering::Acquire);
    assert_eq!((0, i64::MAX), (value(8) & 0xffff_ffff, value(16)));
    mark.set_ready(NOW + 5).unwrap();
    let bytes = host.bytes();
    assert_eq!([128, 0, 200, 0, 100, 0, 2, 0], bytes[..8]);
    let int = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(196_864, int(8));
    assert_eq!(
        (NOW + 5, NOW, 4711, 7),
        (value(16), value(24), value(32), value(64))
    );
    assert_eq!(
        [10, 11, 30, 8192, 1 << 20],
        [int(40), int(44), int(48), int(52), int(56)]
    );
    assert_eq!(33, int(136));
    assert_eq!(b"aeron:udp?endpoint=localhost:8010", &bytes[140..173]);
    assert_eq!(8192 + (1 << 20), bytes.len());
    let info = MarkFileInfo::parse(&bytes).unwrap();
    assert_eq!(
        ("aeron:ipc?term-length=64k", ""),
        (&*info.local_control_channel, &*info.events_channel)
    );
    assert_eq!(
        (Some(7), 4711, 196_864),
        (info.archive_id, info.pid, info.version)
    );
    drop(mark);
    assert_eq!(-1, value(16));
}

#[test]
fn second_claim_is_refused_while_the_lock_is_held_whatever_the_timestamp() {
    let host = Host::new();
    let mark = host.claim(NOW).unwrap();
    mark.set_ready(NOW).unwrap();
    let before = host.bytes();
    let error = host.claim(NOW + 1_000_000).unwrap_err();
    assert!(matches!(error, ClaimError::Locked { .. }), "{error}");
    assert_eq!(before, host.bytes());
    drop(mark);
    host.claim(NOW).unwrap();
}

#[test]
fn crashed_owner_with_a_lock_is_replaced_at_once() {
    let host = Host::new();
    for is_ready in [true, false] {
        let mark = host.claim(NOW).unwrap();
        if is_ready {
            mark.set_ready(NOW).unwrap();
        }
        let value = host
            .region()
            .atomic_i64(at::ACTIVITY)
            .load(Ordering::Acquire);
        drop(mark);
        // As a kill leaves it: the lock is free, the heartbeat is young.
        host.region()
            .atomic_i64(at::ACTIVITY)
            .store(value, Ordering::Release);
        drop(host.claim(NOW + 1).unwrap());
    }
}

#[test]
fn heartbeat_of_an_official_archive_is_respected() {
    let host = Host::new();
    for (activity, age) in [(NOW, 0), (NOW - 9_999, 9_999), (NOW + 60_000, -60_000)] {
        host.official(activity);
        let before = host.bytes();
        let error = host.claim(NOW).unwrap_err();
        let ClaimError::Active { pid, age_ms, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((4711, age), (pid, age_ms));
        assert_eq!(before, host.bytes());
        host.region()
            .atomic_i64(at::ACTIVITY)
            .store(RELEASED, Ordering::Release);
    }
    host.official(CLAIMED);
    let error = host.claim(NOW).unwrap_err();
    assert!(
        matches!(error, ClaimError::ClaimedForever { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("remove the file"), "{error}");
    host.region()
        .atomic_i64(at::ACTIVITY)
        .store(NOW - 10_000, Ordering::Release);
    host.claim(NOW).unwrap();
}

#[test]
fn failed_claim_leaves_no_claim() {
    let host = Host::new();
    host.official(RELEASED);
    // The link file cannot be written: its directory does not exist in this storage.
    let storage = &host.storage;
    let elsewhere = Path::new("/mark");
    storage.create_dir_all(elsewhere).unwrap();
    let directory = Path::new("/not-in-storage");
    host.disk.create_directory(directory).unwrap();
    let lock = MarkFile::lock(&*host.disk, directory).unwrap();
    let error = MarkFile::claim(lock, storage, directory, elsewhere, &settings(), NOW);
    assert!(matches!(error, Err(ClaimError::Io { .. })), "{error:?}");
    let region = storage.open(&elsewhere.join(MARK_FILE)).unwrap();
    assert_eq!(
        RELEASED,
        region.atomic_i64(at::ACTIVITY).load(Ordering::Acquire)
    );
    // The lock is free again.
    host.disk.try_lock(directory).unwrap();

    for (version, is_refused) in [(0x0002_0000, true), (0x0004_0000, true), (0, false)] {
        host.region()
            .atomic_i32(at::VERSION)
            .store(version, Ordering::Release);
        let result = host.claim(NOW);
        assert_eq!(
            is_refused,
            matches!(result, Err(ClaimError::Version { .. })),
            "{result:?}"
        );
    }
    let mut long = settings();
    long.control_channel = "x".repeat(HEADER_LENGTH);
    let directory = Path::new(DIRECTORY);
    let lock = MarkFile::lock(&*host.disk, directory).unwrap();
    let error = MarkFile::claim(lock, storage, directory, directory, &long, NOW).unwrap_err();
    assert!(matches!(error, ClaimError::TooLong { .. }), "{error}");
    host.region().zero(0, 8);
    host.region().write(100, &[0xff; 200]);
    let error = host.claim(NOW).unwrap_err();
    assert!(
        matches!(
            error,
            ClaimError::Contents { .. } | ClaimError::Version { .. }
        ),
        "{error}"
    );
}

/// Returns the names and contents of files with saved errors.
fn saved_errors(host: &Host) -> Vec<(String, String)> {
    let directory = Path::new(DIRECTORY);
    let names = host.storage.list(directory).unwrap();
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    names
        .filter(|name| name.ends_with("-error.log"))
        .map(|name| {
            let bytes = host.storage.plain_file(&directory.join(&name)).unwrap();
            (name, String::from_utf8(bytes).unwrap())
        })
        .collect()
}

#[test]
fn errors_of_the_archive_before_are_saved_once() {
    let host = Host::new();
    let mark = host.claim(NOW).unwrap();
    mark.error_log().record(NOW, 3, "the disk is full").unwrap();
    drop(mark);
    assert_eq!(saved_errors(&host), []);
    let mark = host.claim(NOW + 1).unwrap();
    assert!(mark.unsaved_errors().is_none());
    assert_eq!(
        MarkFileInfo::parse(&host.bytes())
            .unwrap()
            .errors(&host.bytes()),
        []
    );
    drop(mark);
    let saved = saved_errors(&host);
    let [(name, text)] = &saved[..] else {
        panic!("{saved:?}")
    };
    assert!(
        text.contains("1 observations from 1700000000000 ") && text.contains("the disk is full"),
        "{text}"
    );
    let shape: String = name
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(
        shape.replace('+', "-"),
        "archive-0000-00-00-00-00-00-000-0000-error.log"
    );
    drop(host.claim(NOW + 2).unwrap());
    assert_eq!(saved_errors(&host), saved);
}

#[test]
fn errors_of_the_archive_before_that_cannot_be_saved_are_told() {
    let host = Host::new();
    let mark = host.claim(NOW).unwrap();
    mark.error_log().record(NOW, 3, "the disk is full").unwrap();
    drop(mark);
    let errors = {
        let info = MarkFileInfo::parse(&host.bytes()).unwrap();
        info.errors(&host.bytes())
    };
    let missing = Path::new("/no/such/directory").join(MARK_FILE);
    let unsaved = save(&host.storage, &missing, &errors, NOW).unwrap_err();
    let text = unsaved.to_string();
    assert!(
        text.contains("/no/such/directory/archive-") && text.contains("the disk is full"),
        "{text}"
    );
}

#[test]
fn link_file_leads_to_a_mark_file_elsewhere_and_goes_with_it() {
    let host = Host::new();
    let elsewhere = Path::new("/mark");
    host.storage.create_dir_all(elsewhere).unwrap();
    drop(host.claim_in(elsewhere, NOW).unwrap());
    let link = Path::new(DIRECTORY).join(LINK_FILE);
    assert!(host.storage.exists(&link));
    assert!(host.storage.exists(&elsewhere.join(MARK_FILE)));
    drop(host.claim(NOW).unwrap());
    assert!(!host.storage.exists(&link));
}

#[test]
fn old_layout_is_read_and_replaced() {
    let host = Host::new();
    drop(host.claim(NOW).unwrap());
    let bytes = host.bytes();
    let mut old = bytes[8..].to_vec();
    old[0..4].copy_from_slice(&FILES_VERSION.to_le_bytes());
    old.extend([0; 8]);
    let info = MarkFileInfo::parse(&old).unwrap();
    assert_eq!(
        (4711, "aeron:ipc?term-length=64k"),
        (info.pid, &*info.local_control_channel)
    );
    host.region().write(0, &old);
    let mark = host.claim(NOW).unwrap();
    mark.set_ready(NOW).unwrap();
    assert_eq!([128, 0, 200, 0], host.bytes()[..4]);
}

proptest::proptest! {
    #[test]
    fn parse_of_any_bytes_ends(
        bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
        has_header in proptest::prelude::any::<bool>(),
    ) {
        let mut bytes = bytes;
        if has_header && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&[128, 0, 200, 0, 100, 0, 2, 0]);
        }
        if let Ok(info) = MarkFileInfo::parse(&bytes) {
            let _ = info.errors(&bytes);
        }
    }
}
