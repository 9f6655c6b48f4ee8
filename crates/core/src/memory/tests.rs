// SPDX-License-Identifier: Apache-2.0
//! Tests of all storages and of regions.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use super::*;
use crate::{
    overlay,
    sync::{AtomicI32, AtomicI64},
};

overlay! {
    struct Header: 64 {
        0 => version: AtomicI32,
        4 => padding_4: Padding<4>,
        8 => tails: [AtomicI64; 3],
        32 => padding_32: Padding<32>,
    }
}

/// A temporary directory per test, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    fn within(directory: &std::path::Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("taran-core-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a test with each storage and an existing directory.
fn on_each_storage(test: impl Fn(&dyn Storage, &std::path::Path)) {
    let scratch = Scratch::new();
    test(&FileStorage, &scratch.0);
    let memory = MemoryStorage::new();
    memory.create_dir_all(&scratch.0).unwrap();
    test(&memory, &scratch.0);
}

#[test]
fn created_file_is_zero_and_shared_with_later_opens() {
    on_each_storage(|storage, directory| {
        for options in [
            CreateOptions::SPARSE,
            CreateOptions {
                reserve: true,
                populate: true,
            },
        ] {
            let path = directory.join("file");
            let ours = storage.create(&path, 10_001, options).unwrap();
            assert_eq!(10_001, ours.len());
            assert!(ours.bytes(0, 10_001).iter().all(|byte| *byte == 0));

            let theirs = storage.open(&path).unwrap();
            assert_eq!(10_001, theirs.len());
            ours.atomic_i64(9_992).store(-7, Ordering::Release);
            assert_eq!(-7, theirs.atomic_i64(9_992).load(Ordering::Acquire));

            storage.remove(&path).unwrap();
            assert!(!storage.exists(&path));
            theirs.write(0, b"still mapped");
            assert_eq!(b"still mapped", ours.bytes(0, 12));
        }
    });
}

#[test]
fn creation_is_exclusive() {
    on_each_storage(|storage, directory| {
        let path = directory.join("file");
        storage
            .create(&path, 64, CreateOptions::RESERVED)
            .unwrap()
            .write(0, b"first");
        let error = storage
            .create(&path, 64, CreateOptions::RESERVED)
            .unwrap_err();
        assert!(
            matches!(error, MemoryError::AlreadyExists { .. }),
            "{error}"
        );
        assert_eq!(b"first", storage.open(&path).unwrap().bytes(0, 5));
    });
}

#[test]
fn open_distinguishes_missing_empty_and_short_files() {
    on_each_storage(|storage, directory| {
        let path = directory.join("file");
        let error = storage.open(&path).unwrap_err();
        assert!(
            matches!(error, MemoryError::NotFound { .. }) && error.is_not_ready(),
            "{error}"
        );

        storage.write_file(&path, b"").unwrap();
        let error = storage.open(&path).unwrap_err();
        assert!(
            matches!(error, MemoryError::Empty { .. }) && error.is_not_ready(),
            "{error}"
        );

        storage.write_file(&path, b"1234567").unwrap();
        assert_eq!(
            b"1234567",
            storage.open_at_least(&path, 7).unwrap().bytes(0, 7)
        );
        let error = storage.open_at_least(&path, 8).unwrap_err();
        assert!(
            matches!(
                error,
                MemoryError::Truncated {
                    len: 7,
                    expected: 8,
                    ..
                }
            ),
            "{error}"
        );

        let error = storage.open(directory).unwrap_err();
        assert!(matches!(error, MemoryError::NotAFile { .. }), "{error}");

        let error = storage
            .create(&directory.join("none/file"), 64, CreateOptions::SPARSE)
            .unwrap_err();
        assert!(matches!(error, MemoryError::NotFound { .. }), "{error}");
        for len in [0, u64::MAX] {
            let error = storage
                .create(&directory.join("other"), len, CreateOptions::SPARSE)
                .unwrap_err();
            assert!(
                matches!(error, MemoryError::InvalidLength { .. }),
                "{error}"
            );
        }
        assert!(!storage.exists(&directory.join("other")));
    });
}

#[test]
fn directories_are_created_and_removed_with_their_contents() {
    on_each_storage(|storage, directory| {
        let deep = directory.join("a/b");
        storage.create_dir_all(&deep).unwrap();
        storage.create_dir_all(&deep).unwrap();
        storage
            .create(&deep.join("file"), 64, CreateOptions::SPARSE)
            .unwrap();
        assert!(storage.exists(&deep.join("file")));
        assert!(storage.available(&deep).unwrap() > 64);

        let full = storage.remove_dir(&directory.join("a")).unwrap_err();
        assert_eq!(io::ErrorKind::DirectoryNotEmpty, full.kind());
        storage.create_dir_all(&directory.join("empty")).unwrap();
        storage.remove_dir(&directory.join("empty")).unwrap();
        assert!(!storage.exists(&directory.join("empty")));
        storage.remove_dir_all(&directory.join("a")).unwrap();
        assert!(!storage.exists(&deep));
        assert!(!storage.exists(&deep.join("file")));
        assert_eq!(
            io::ErrorKind::NotFound,
            storage.remove_dir_all(&deep).unwrap_err().kind()
        );
        assert_eq!(
            io::ErrorKind::NotFound,
            storage.remove(&deep.join("file")).unwrap_err().kind()
        );
        assert!(storage.available(&deep).is_err());
    });
}

#[test]
fn create_on_a_full_file_system_reports_the_required_size() {
    let scratch = Scratch::new();
    let path = scratch.0.join("huge");
    let requested = 1 << 42; // sparse, any file system takes it; reserved, none does
    let error = FileStorage
        .create(&path, requested, CreateOptions::RESERVED)
        .unwrap_err();
    let MemoryError::StorageFull { shortage, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(requested, shortage.requested);
    assert!(
        shortage.available > 0 && shortage.available < requested,
        "{error}"
    );
    assert!(shortage.capacity.unwrap() >= shortage.available, "{error}");
    for part in [
        "needed=4398046511104",
        "huge",
        "available=",
        "--shm-size=",
        "aeron.dir",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(!path.exists());
}

#[test]
fn memory_storage_enforces_its_capacity() {
    let storage = MemoryStorage::with_capacity(1000);
    let file = |name: &str| PathBuf::from("/").join(name);
    storage
        .create(&file("one"), 600, CreateOptions::RESERVED)
        .unwrap();
    let error = storage
        .create(&file("two"), 401, CreateOptions::RESERVED)
        .unwrap_err();
    assert!(
        matches!(
            error,
            MemoryError::StorageFull {
                shortage: InsufficientSpace {
                    requested: 401,
                    available: 400,
                    capacity: Some(1000),
                },
                ..
            }
        ),
        "{error}"
    );
    storage
        .create(&file("sparse"), 401, CreateOptions::SPARSE)
        .unwrap();
    storage.remove(&file("one")).unwrap();
    storage
        .create(&file("two"), 401, CreateOptions::RESERVED)
        .unwrap();
    assert_eq!(599, storage.available(&PathBuf::from("/")).unwrap());
}

#[test]
fn reserve_keeps_contents_and_refuses_ranges_outside() {
    on_each_storage(|storage, directory| {
        let path = directory.join("log");
        let region = storage
            .create(&path, 5 * 4096, CreateOptions::SPARSE)
            .unwrap();
        storage.reserve(&path, &region, 4096, 2 * 4096).unwrap();
        region.write(8190, b"across");
        storage.reserve(&path, &region, 0, 5 * 4096).unwrap();
        storage.reserve(&path, &region, 4096, 0).unwrap();
        assert_eq!(b"across", region.bytes(8190, 6));

        let error = storage.reserve(&path, &region, 4 * 4096, 4097).unwrap_err();
        let expected = 5 * 4096 + 1;
        assert!(
            matches!(&error, MemoryError::Truncated { len: 20_480, expected: found, .. } if *found == expected),
            "{error}"
        );
        assert_eq!(5 * 4096, storage.open(&path).unwrap().len());
        storage.remove(&path).unwrap();
        let error = storage.reserve(&path, &region, 0, 4096).unwrap_err();
        assert!(matches!(error, MemoryError::NotFound { .. }), "{error}");
    });
}

#[test]
fn reserve_of_replaced_file_fails_and_reserves_nothing() {
    on_each_storage(|storage, directory| {
        let path = directory.join("log");
        let create = || {
            storage
                .create(&path, 2 << 20, CreateOptions::SPARSE)
                .unwrap()
        };
        let first = create();
        storage.remove(&path).unwrap();
        let second = create();
        let error = storage.reserve(&path, &first, 0, 4096).unwrap_err();
        assert!(matches!(error, MemoryError::Replaced { .. }), "{error}");
        storage.reserve(&path, &second, 0, 4096).unwrap();
        storage.remove(&path).unwrap();
        let error = storage.reserve(&path, &second, 0, 4096).unwrap_err();
        assert!(matches!(error, MemoryError::NotFound { .. }), "{error}");
    });
}

#[test]
fn reserve_allocates_pages_of_the_range_only() {
    use std::os::unix::fs::MetadataExt;

    let scratch = Scratch::new();
    let path = scratch.0.join("log");
    let region = FileStorage
        .create(&path, 1 << 20, CreateOptions::SPARSE)
        .unwrap();
    let allocated = || 512 * fs::metadata(&path).unwrap().blocks();
    let before = allocated();
    FileStorage
        .reserve(&path, &region, 65_536, 131_072)
        .unwrap();
    assert_eq!(131_072, allocated() - before);
    FileStorage
        .reserve(&path, &region, 65_536, 131_072)
        .unwrap();
    assert_eq!(131_072, allocated() - before, "pages are reserved once");
}

#[test]
fn memory_storage_counts_reserved_ranges_once() {
    let storage = MemoryStorage::with_capacity(1000);
    let path = PathBuf::from("/log");
    let region = storage.create(&path, 2000, CreateOptions::SPARSE).unwrap();
    storage.reserve(&path, &region, 100, 200).unwrap();
    storage.reserve(&path, &region, 500, 100).unwrap();
    storage.reserve(&path, &region, 200, 350).unwrap();
    assert_eq!(500, storage.reserved());
    let error = storage.reserve(&path, &region, 50, 1001).unwrap_err();
    let MemoryError::StorageFull { shortage, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((501, 500), (shortage.requested, shortage.available));
    storage.reserve(&path, &region, 600, 500).unwrap();
    assert_eq!(0, storage.available(&PathBuf::from("/")).unwrap());
    region.write(100, &[1; 1000]);
    assert!(storage.unreserved_writes().is_empty());
    region.write(1100, &[1]);
    assert_eq!(vec![(path.clone(), 1100)], storage.unreserved_writes());
    region.write(99, &[1]);
    assert_eq!(vec![(path, 99)], storage.unreserved_writes());
}

/// Runs this test again in a process of its own, which must be killed by an access beyond the reserved pages.
#[cfg(not(miri))]
#[test]
fn memory_storage_access_to_unreserved_page_kills_the_process() {
    use std::os::unix::process::ExitStatusExt;

    const OFFSET: &str = "TARAN_TEST_UNRESERVED_OFFSET";
    const RESERVED: u64 = 1 << 20;
    if let Ok(offset) = std::env::var(OFFSET) {
        let storage = MemoryStorage::new();
        let path = PathBuf::from("/log");
        let region = storage
            .create(&path, 4 << 20, CreateOptions::SPARSE)
            .unwrap();
        storage.reserve(&path, &region, RESERVED, RESERVED).unwrap();
        let read = region.bytes(offset.parse().unwrap(), 1)[0];
        assert_eq!(read, 0);
        return;
    }
    for (offset, is_reserved) in [
        (RESERVED, true),
        (2 * RESERVED - 1, true),
        (RESERVED - 1, false),
        (2 * RESERVED, false),
        (0, false),
    ] {
        let name = "memory::tests::memory_storage_access_to_unreserved_page_kills_the_process";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(OFFSET, offset.to_string())
            // Sanitizers would end the process with an exit status instead of the signal.
            .env("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0")
            .env("TSAN_OPTIONS", "handle_segv=0:handle_sigbus=0")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.success(), is_reserved, "{offset}: {status}");
        assert_eq!(
            status.signal().is_some(),
            !is_reserved,
            "{offset}: {status}"
        );
    }
}

#[test]
fn try_lock_of_a_locked_directory_would_block() {
    let scratch = Scratch::new();
    let lock = FileStorage.try_lock(&scratch.0).unwrap();
    let refused = FileStorage.try_lock(&scratch.0).unwrap_err();
    assert_eq!(io::ErrorKind::WouldBlock, refused.kind());
    drop(lock);
    FileStorage.try_lock(&scratch.0).unwrap();
    let missing = FileStorage.try_lock(&scratch.0.join("none")).unwrap_err();
    assert_eq!(io::ErrorKind::NotFound, missing.kind());
}

#[test]
fn lock_file_is_held_until_its_owner_drops_it() {
    on_each_storage(|storage, directory| {
        let path = directory.join("driver.lock");
        assert!(storage.find_lock(&path).is_none());
        let lock = storage.create_locked(&path, b"first").unwrap();
        let early = storage.find_lock(&path).unwrap();
        assert_eq!(b"first", early.contents());
        assert!(early.is_held() && early.is_held());
        // Observers do not disturb each other.
        assert!(storage.find_lock(&path).unwrap().is_held());
        let exists = storage.create_locked(&path, b"second").unwrap_err();
        assert_eq!(io::ErrorKind::AlreadyExists, exists.kind());
        drop(lock);
        assert!(!early.is_held());
        let late = storage.find_lock(&path).unwrap();
        assert!(!late.is_held() && !early.is_held());
        assert_eq!(b"first", late.contents());
    });
}

#[test]
fn lock_of_removed_file_is_that_of_its_owner_not_of_its_name() {
    on_each_storage(|storage, directory| {
        let path = directory.join("driver.lock");
        let first = storage.create_locked(&path, b"first").unwrap();
        let of_first = storage.find_lock(&path).unwrap();
        storage.remove(&path).unwrap();
        assert!(storage.find_lock(&path).is_none());
        assert!(of_first.is_held());
        let second = storage.create_locked(&path, b"second").unwrap();
        let of_second = storage.find_lock(&path).unwrap();
        assert_eq!(b"second", of_second.contents());
        drop(first);
        assert!(!of_first.is_held() && of_second.is_held());
        drop(second);
        assert!(!of_second.is_held());
    });
}

#[test]
fn lock_file_of_another_program_is_not_held() {
    on_each_storage(|storage, directory| {
        let path = directory.join("driver.lock");
        storage.write_file(&path, b"").unwrap();
        let probe = storage.find_lock(&path).unwrap();
        assert!(probe.contents().is_empty() && !probe.is_held());
    });
}

#[test]
fn lock_of_another_machine_is_not_observed() {
    let scratch = Scratch::new();
    let path = scratch.0.join("driver.lock");
    let text = b"pid 1\n9b4e5c1c-0000-4000-8000-000000000000\n";
    fs::write(&path, text).unwrap();
    assert!(FileStorage.find_lock(&path).is_none());
    let long = vec![b'x'; 1 << 20];
    fs::write(&path, long).unwrap();
    assert!(FileStorage.find_lock(&path).is_none());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(FileStorage.find_lock(&path).is_none());
}

#[test]
fn lock_file_is_not_held_by_programs_that_its_owner_started() {
    let scratch = Scratch::new();
    let path = scratch.0.join("driver.lock");
    let lock = FileStorage.create_locked(&path, b"pid 7\n").unwrap();
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(lock);
    assert!(!FileStorage.find_lock(&path).unwrap().is_held());
    // It waits for the end of its input.
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn lock_file_is_readable_text() {
    let scratch = Scratch::new();
    let path = scratch.0.join("driver.lock");
    let _lock = FileStorage.create_locked(&path, b"pid 7\n").unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(format!("pid 7\n{boot}"), text);
}

#[test]
fn created_files_have_mode_0666_minus_the_umask() {
    let scratch = Scratch::new();
    let (ours, plain) = (scratch.0.join("ours"), scratch.0.join("plain"));
    FileStorage
        .create(&ours, 64, CreateOptions::RESERVED)
        .unwrap();
    fs::write(&plain, b"mode 0666 less the umask").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&plain), mode(&ours));
}

#[test]
fn accesses_outside_a_region_panic() {
    let region = Region::anonymous(100).unwrap();
    for (offset, len) in [
        (0, 101),
        (8, 93),
        (104, 0),
        (usize::MAX - 7, 16),
        (4, 8),
        (8, usize::MAX),
    ] {
        assert!(region.sub(offset, len).is_err(), "{offset} {len}");
    }
    assert!(region.overlay::<Header>(40).is_err());
    assert!(region.overlay::<Header>(4).is_err());
    let part = region.sub(96, 4).unwrap();
    part.atomic_i32(0).store(1, Ordering::Relaxed);
    assert_eq!(1, region.atomic_i32(96).load(Ordering::Relaxed));

    let panics: [&dyn Fn(); 11] = [
        &|| {
            let _ = region.atomic_i32(98).load(Ordering::Relaxed);
        },
        &|| {
            let _ = region.atomic_i32(100).load(Ordering::Relaxed);
        },
        &|| {
            let _ = region.atomic_i32(2).load(Ordering::Relaxed);
        },
        &|| {
            let _ = region.atomic_i64(96).load(Ordering::Relaxed);
        },
        &|| {
            let _ = region.atomic_i64(4).load(Ordering::Relaxed);
        },
        &|| {
            let _ = region.bytes(usize::MAX, 2).len();
        },
        &|| region.write(97, b"four"),
        &|| region.zero(0, 101),
        &|| {
            let _ = region.claim(99, 2);
        },
        &|| region.copy_racing_out(96, &mut [0; 5]),
        &|| region.copy_racing_in(4, &[0; 5]),
    ];
    for (index, access) in panics.iter().enumerate() {
        let access = std::panic::AssertUnwindSafe(access);
        assert!(std::panic::catch_unwind(access).is_err(), "access {index}");
    }
}

#[test]
fn views_keep_the_mapping_alive() {
    for len in [4096, 4 << 20] {
        let region = Region::anonymous(len).unwrap();
        let header = region.overlay::<Header>(64).unwrap();
        let end = region.sub(len - 8, 8).unwrap();
        drop(region);
        header.tails[2].store(9, Ordering::Relaxed);
        assert_eq!(9, header.clone().tails[2].load(Ordering::Relaxed));
        end.write(4, b"last");
        assert_eq!(b"last", end.bytes(4, 4));
    }
}

#[test]
fn claim_is_a_slice_of_the_region() {
    let region = Region::anonymous(64).unwrap();
    {
        let mut claim = region.claim(60, 4);
        claim.copy_from_slice(b"last");
        assert_eq!(b"last", &*claim);
    }
    assert_eq!(b"last", region.bytes(60, 4));
}

#[test]
fn racing_copies_carry_every_length() {
    let region = Region::anonymous(64).unwrap();
    for len in 0..=40_u8 {
        let source: Vec<u8> = (1..=len).collect();
        let mut target = vec![0; source.len()];
        region.copy_racing_in(24, &source);
        region.copy_racing_out(24, &mut target);
        assert_eq!(source, target);
        assert_eq!(source, region.bytes(24, source.len()));
    }
}

#[test]
fn any_part_of_a_mapping_can_be_populated_and_flushed() {
    let scratch = Scratch::new();
    let region = FileStorage
        .create(&scratch.0.join("file"), 20_000, CreateOptions::SPARSE)
        .unwrap();
    let part = region.sub(8, 12_000).unwrap();
    part.flush().unwrap();
    if let Err(error) = part.populate() {
        assert_eq!(
            io::ErrorKind::InvalidInput,
            error.kind(),
            "only an old kernel refuses"
        );
    }
    Region::anonymous(64).unwrap().populate().unwrap();
}

/// In memory, because there a mapping allocates pages that are only read.
#[cfg(not(miri))]
#[test]
fn copy_of_sparse_file_allocates_no_pages() {
    use std::os::unix::fs::MetadataExt;

    let scratch = Scratch::within(std::path::Path::new("/dev/shm"));
    let path = scratch.0.join("sparse");
    let created = FileStorage.create(&path, 64 << 20, CreateOptions::SPARSE);
    let region = created.unwrap();
    region.write((48 << 20) + 7, b"contents");
    let before = std::fs::metadata(&path).unwrap().blocks();
    let copy = FileStorage.copy(&path).unwrap();
    assert_eq!(copy.len(), 64 << 20);
    assert_eq!(copy.bytes((48 << 20) + 7, 8), b"contents");
    assert!(copy.bytes(0, 1 << 20).iter().all(|&byte| byte == 0));
    assert_eq!(std::fs::metadata(&path).unwrap().blocks(), before);
}

#[cfg(not(miri))]
#[test]
fn copy_of_unsuitable_file_fails_as_open() {
    let scratch = Scratch::new();
    let path = scratch.0.join("file");
    let kind = |error: MemoryError| std::mem::discriminant(&error);
    let check = |path: &std::path::Path| {
        let copied = kind(FileStorage.copy(path).unwrap_err());
        assert_eq!(copied, kind(FileStorage.open(path).unwrap_err()));
    };
    check(&path);
    check(&scratch.0);
    std::fs::write(&path, b"").unwrap();
    check(&path);
}
