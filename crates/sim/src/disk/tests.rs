// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use taran_storage::conformance::{self, FailingDisk, queue::Subject};
use taran_storage::{Disk, DiskFile, ErrorKind, InlineQueue, OpenOptions, Operation, SyncKind};

use super::*;

const ROOT: &str = "/";

fn new(seed: u64) -> SimDisk {
    SimDisk::new(seed, SimDiskOptions::default())
}

fn create(disk: &ProcessDisk, name: &str) -> Box<dyn DiskFile> {
    disk.open(Path::new(name), OpenOptions::create_new())
        .unwrap()
}

/// Returns the bytes of a file, which must exist.
fn contents(disk: &SimDisk, name: &str) -> Vec<u8> {
    let process = disk.process();
    let file = process.open(Path::new(name), OpenOptions::read()).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn names(disk: &SimDisk) -> Vec<String> {
    let entries = disk.process().list(Path::new(ROOT)).unwrap();
    entries
        .into_iter()
        .map(|entry| entry.name.into_string().unwrap())
        .collect()
}

#[test]
fn sim_disk_conforms() {
    for seed in 0..20 {
        let disk = SimDisk::new(
            seed,
            SimDiskOptions {
                sector_bytes: if seed % 2 == 0 { 512 } else { 4096 },
                ..SimDiskOptions::default()
            },
        );
        conformance::disk::run(&disk.process(), Path::new(ROOT));
        assert_eq!(0, disk.used(), "removed files give their space back");
    }
}

#[test]
fn queue_over_sim_disk_conforms() {
    for seed in 0..20 {
        let disk = new(seed);
        let process = disk.process();
        let failing = FailingDisk::new(Arc::new(process.clone()));
        let failures = failing.failures();
        let failing: Arc<dyn Disk> = Arc::new(failing);
        let start = || InlineQueue::new(&failing, 3, 16, DiskTimes(disk.clone()));
        let mut now_ns = 0;
        conformance::queue::run(&mut Subject {
            queue: &mut start(),
            workers: 3,
            depth: 16,
            other: &mut start(),
            disk: Arc::clone(&failing),
            failures,
            directory: Path::new(ROOT).to_path_buf(),
            passes_panics: true,
            now_ns: &mut || {
                now_ns += 50_000;
                now_ns
            },
        });
    }
}

#[test]
fn synced_bytes_and_names_survive_a_power_cut() {
    for seed in 0..200 {
        let disk = new(seed);
        let process = disk.process();
        let file = create(&process, "/file");
        file.write_at(&[7; 5_000], 0).unwrap();
        file.sync(SyncKind::Data).unwrap();
        process.sync_directory(Path::new(ROOT)).unwrap();
        file.write_at(&[8; 3_000], 5_000).unwrap();
        disk.power_cut();
        let bytes = contents(&disk, "/file");
        assert!(bytes.len() >= 5_000);
        assert!(bytes[..5_000].iter().all(|byte| *byte == 7));
        assert!(bytes[5_000..].iter().all(|byte| [0, 8].contains(byte)));
    }
}

#[test]
fn unsynced_sectors_are_lost_kept_torn_and_reordered() {
    let (mut outcomes, mut torn, mut between) = (BTreeSet::new(), 0, 0);
    for seed in 0..2_000 {
        let disk = new(seed);
        let process = disk.process();
        let file = create(&process, "/file");
        file.write_at(&[1; 2_048], 0).unwrap();
        file.sync(SyncKind::Data).unwrap();
        process.sync_directory(Path::new(ROOT)).unwrap();
        file.write_at(&[2; 2_048], 0).unwrap();
        file.write_at(&[3; 2_048], 0).unwrap();
        disk.power_cut();
        let bytes = contents(&disk, "/file");
        assert_eq!(2_048, bytes.len());
        let mut outcome = Vec::new();
        for sector in bytes.chunks(512) {
            assert!(sector.iter().all(|byte| (1..=3).contains(byte)));
            let is_torn = sector.iter().any(|byte| *byte != sector[0]);
            torn += usize::from(is_torn);
            between += usize::from(sector[0] == 2 && !is_torn);
            outcome.push(sector[0] == 3 && !is_torn);
        }
        outcomes.insert(outcome);
    }
    assert_eq!(16, outcomes.len(), "every subset of four sectors");
    assert!(torn > 10 && between > 10, "{torn} torn, {between} between");
}

#[test]
fn unsynced_names_are_lost_or_kept_and_renames_are_atomic() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let disk = new(seed);
        let process = disk.process();
        create(&process, "/old");
        process.sync_directory(Path::new(ROOT)).unwrap();
        create(&process, "/new").sync(SyncKind::All).unwrap();
        process
            .rename(Path::new("/old"), Path::new("/renamed"))
            .unwrap();
        disk.power_cut();
        let names = names(&disk);
        let has = |name: &str| names.iter().any(|known| known == name);
        assert!(has("old") != has("renamed"), "{names:?}");
        seen.insert(names);
    }
    assert_eq!(4, seen.len(), "each change is lost or kept: {seen:?}");
}

#[test]
fn removed_file_can_come_back_until_its_directory_is_synced() {
    let mut back = 0;
    for seed in 0..100 {
        let disk = new(seed);
        let process = disk.process();
        create(&process, "/file").write_at(b"x", 0).unwrap();
        process.sync_directory(Path::new(ROOT)).unwrap();
        process.remove_file(Path::new("/file")).unwrap();
        assert_eq!(0, disk.used());
        if seed % 2 == 0 {
            process.sync_directory(Path::new(ROOT)).unwrap();
        }
        disk.power_cut();
        let names = names(&disk);
        assert!(seed % 2 == 1 || names.is_empty(), "{names:?}");
        back += names.len();
    }
    assert!((5..50).contains(&back), "{back} of 50 came back");
}

#[test]
fn power_cut_keeps_the_space_of_files_that_come_back() {
    for seed in 0..100 {
        let disk = new(seed);
        let process = disk.process();
        create(&process, "/file").write_at(&[1; 10_000], 0).unwrap();
        let file = process
            .open(Path::new("/file"), OpenOptions::write())
            .unwrap();
        file.sync(SyncKind::Data).unwrap();
        process.sync_directory(Path::new(ROOT)).unwrap();
        file.set_len(100).unwrap();
        assert_eq!(4_096, disk.used());
        disk.power_cut();
        // Pages of zeros may be holes.
        let bytes = contents(&disk, "/file");
        let pages = bytes.chunks(4_096);
        let most = pages.len() as u64;
        let least = pages.filter(|page| page.contains(&1)).count() as u64;
        let used = disk.used() / 4_096;
        assert!((least..=most).contains(&used), "{used} of {least}..={most}");
    }
}

#[test]
fn end_of_a_process_keeps_the_page_cache_and_revokes_its_handles() {
    let disk = new(1);
    let (process, other) = (disk.process(), disk.process());
    let file = create(&process, "/file");
    file.write_at(b"cached", 0).unwrap();
    let _lock = process.try_lock(Path::new("/file")).unwrap();
    let kept = other.open(Path::new("/file"), OpenOptions::read()).unwrap();
    process.revoke_all();

    assert_eq!(ErrorKind::Revoked, file.write_at(b"x", 0).unwrap_err().kind);
    assert_eq!(
        ErrorKind::Revoked,
        file.sync(SyncKind::Data).unwrap_err().kind
    );
    let listed = process.list(Path::new(ROOT));
    assert_eq!(ErrorKind::Revoked, listed.unwrap_err().kind);
    assert_eq!(b"cached", &*contents(&disk, "/file"));
    let mut bytes = [0; 6];
    kept.read_exact_at(&mut bytes, 0).unwrap();
    other.try_lock(Path::new("/file")).unwrap();
}

#[test]
fn pages_of_a_failed_sync_are_gone_and_the_next_sync_succeeds() {
    let (mut lost, mut read_back) = (0, 0);
    for seed in 0..200 {
        let disk = new(seed);
        let process = disk.process();
        let file = create(&process, "/file");
        file.write_at(&[1; 512], 0).unwrap();
        file.sync(SyncKind::Data).unwrap();
        process.sync_directory(Path::new(ROOT)).unwrap();
        file.write_at(&[2; 512], 0).unwrap();
        disk.fail_next(Operation::Sync);
        let failed = file.sync(SyncKind::Data).unwrap_err();
        assert_eq!(ErrorKind::Io { code: 5 }, failed.kind);
        file.sync(SyncKind::Data).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 0).unwrap();
        disk.power_cut();
        let after = contents(&disk, "/file")[0];
        lost += usize::from(after == 1);
        read_back += usize::from(after == 1 && byte[0] == 2);
    }
    assert!((50..150).contains(&lost), "{lost} of 200 lost");
    assert!(read_back > 20, "{read_back} lost pages were still readable");
}

#[test]
fn full_disk_refuses_and_recovers_when_space_is_back() {
    let disk = new(1);
    let process = disk.process();
    let file = create(&process, "/file");
    disk.set_capacity(8_192);
    file.write_at(&[1; 8_192], 0).unwrap();
    let full = file.write_at(&[1; 100], 8_192).unwrap_err();
    assert_eq!(
        ErrorKind::Full {
            needed: 100,
            free: Some(0)
        },
        full.kind
    );
    file.write_at(&[2; 8_192], 0).unwrap();
    let refused = process.open(
        Path::new("/other"),
        OpenOptions::create_new().with_allocate(1),
    );
    assert!(refused.unwrap_err().is_full());
    assert_eq!(["file"], *names(&disk));

    disk.set_capacity(12_288);
    file.write_at(&[1; 100], 8_192).unwrap();
    assert_eq!(12_288, disk.used());
}

#[test]
fn reserved_space_is_not_taken_by_others() {
    let disk = new(1);
    disk.set_capacity(64 * 1024);
    let process = disk.process();
    let options = OpenOptions::create_new().with_allocate(60 * 1024);
    let file = process.open(Path::new("/file"), options).unwrap();
    let other = create(&process, "/other");
    other.write_at(&[1; 4096], 0).unwrap();
    assert!(other.write_at(&[1; 1], 4096).unwrap_err().is_full());
    file.write_at(&vec![1; 60 * 1024], 0).unwrap();
}

#[test]
fn faults_fail_operations_at_their_rate() {
    let disk = new(1);
    let process = disk.process();
    let file = create(&process, "/file");
    disk.set_faults(DiskFaults {
        read_error: 0.5,
        write_error: 0.5,
        directory_sync_error: 0.5,
        ..DiskFaults::default()
    });
    let mut failed = [0; 3];
    for _ in 0..200 {
        let results = [
            file.write_at(&[1; 9], 0),
            file.read_at(&mut [0; 9], 0).map(|_| ()),
            process.sync_directory(Path::new(ROOT)),
        ];
        for (count, result) in failed.iter_mut().zip(results) {
            *count += usize::from(result.is_err());
        }
    }
    assert!(
        failed.iter().all(|count| (70..130).contains(count)),
        "{failed:?}"
    );
}

#[test]
fn rot_flips_one_bit_for_good() {
    let disk = new(3);
    let process = disk.process();
    let file = create(&process, "/file");
    file.write_at(&[0; 1000], 0).unwrap();
    file.sync(SyncKind::Data).unwrap();
    process.sync_directory(Path::new(ROOT)).unwrap();
    assert!(disk.rot());
    disk.power_cut();
    let ones: u32 = contents(&disk, "/file")
        .iter()
        .map(|byte| byte.count_ones())
        .sum();
    assert_eq!(1, ones);
}

#[test]
fn same_seed_gives_the_same_disk() {
    let run = || {
        let disk = new(99);
        for round in 0..50 {
            let process = disk.process();
            let name = format!("/file-{round}");
            let file = create(&process, &name);
            file.write_at(&[round; 3_000], 100).unwrap();
            if round % 3 == 0 {
                file.sync(SyncKind::Data).unwrap();
            }
            if round % 4 == 0 {
                process.sync_directory(Path::new(ROOT)).unwrap();
            }
            disk.power_cut();
        }
        let names = names(&disk);
        let contents: Vec<Vec<u8>> = names
            .iter()
            .map(|name| contents(&disk, &format!("/{name}")))
            .collect();
        (names, contents)
    };
    assert_eq!(run(), run());
}
