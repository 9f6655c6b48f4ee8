// SPDX-License-Identifier: Apache-2.0
//! The rules of [`Disk`] and [`DiskFile`](crate::DiskFile).

use std::ffi::OsStr;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use crate::{
    Advice, Create, Disk, DiskError, DiskFile, ErrorKind, FileKind, OpenOptions, Operation,
    SyncKind,
};

use super::must;

/// Runs the suite in `directory`, which exists and is empty, and leaves it empty.
pub fn run(disk: &dyn Disk, directory: &Path) {
    let suite = Suite { disk, directory };
    suite.creation();
    suite.positional_transfers();
    suite.end_of_file();
    suite.vectored_writes();
    suite.lengths();
    suite.reserved_space();
    suite.holes();
    suite.syncs_and_advice();
    suite.cached_reads();
    suite.invalid_ranges();
    suite.handles_for_reading();
    suite.directories();
    suite.renames();
    suite.removal();
    suite.locks();
    suite.space();
    assert_eq!(suite.names(), [""; 0], "the suite leaves nothing");
}

struct Suite<'a> {
    disk: &'a dyn Disk,
    directory: &'a Path,
}

/// Asserts that an operation fails with a kind of error that names the operation and the path.
fn fails<T>(result: Result<T, DiskError>, operation: Operation, path: &Path, kind: &ErrorKind) {
    match result {
        Ok(_) => panic!("{operation} must fail with {kind:?}"),
        Err(error) => assert_eq!(
            (operation, path, kind),
            (error.operation, &*error.path, &error.kind),
            "operation, path and kind of the error"
        ),
    }
}

impl Suite<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn create(&self, name: &str) -> Box<dyn DiskFile> {
        must(self.disk.open(&self.path(name), OpenOptions::create_new()))
    }

    fn remove(&self, name: &str) {
        must(self.disk.remove_file(&self.path(name)));
    }

    fn names(&self) -> Vec<String> {
        let entries = must(self.disk.list(self.directory));
        let name = |name: &OsStr| name.to_string_lossy().into_owned();
        entries.iter().map(|entry| name(&entry.name)).collect()
    }

    fn creation(&self) {
        let path = self.path("file");
        for options in [OpenOptions::read(), OpenOptions::write()] {
            let missing = self.disk.open(&path, options);
            fails(missing, Operation::Open, &path, &ErrorKind::NotFound);
        }
        let file = self.create("file");
        assert_eq!(0, must(file.len()), "a new file is empty");
        assert_eq!(path, file.path());
        must(file.write_at(b"kept", 0));
        let again = self.disk.open(&path, OpenOptions::create_new());
        fails(again, Operation::Open, &path, &ErrorKind::AlreadyExists);

        let if_missing = OpenOptions::write().with_create(Create::IfMissing);
        let same = must(self.disk.open(&path, if_missing));
        assert_eq!(4, must(same.len()), "an existing file keeps its bytes");
        must(self.disk.open(&self.path("other"), if_missing));
        assert_eq!(self.names(), ["file", "other"], "names are sorted");

        let below = path.join("below");
        let below_file = self.disk.open(&below, if_missing);
        fails(
            below_file,
            Operation::Open,
            &below,
            &ErrorKind::NotADirectory,
        );
        let orphan = self.path("missing").join("file");
        let orphaned = self.disk.open(&orphan, if_missing);
        fails(orphaned, Operation::Open, &orphan, &ErrorKind::NotFound);
        self.remove("file");
        self.remove("other");
    }

    fn positional_transfers(&self) {
        let file = self.create("file");
        let other = must(self.disk.open(&self.path("file"), OpenOptions::write()));
        must(file.write_at(b"world", 10_000));
        must(other.write_at(b"hello", 1));
        must(file.write_at(b"", 50_000));
        assert_eq!(10_005, must(file.len()), "an empty write does not extend");
        let mut bytes = [1; 8];
        must(file.read_exact_at(&mut bytes, 0));
        assert_eq!(b"\0hello\0\0", &bytes, "a hole reads as zeros");
        must(other.read_exact_at(&mut bytes[..5], 10_000));
        assert_eq!(b"world", &bytes[..5], "handles see each other's writes");
        must(file.write_at(b"HE", 1));
        must(other.read_exact_at(&mut bytes, 0));
        assert_eq!(b"\0HEllo\0\0", &bytes, "an overwrite keeps the rest");
        let large: Vec<u8> = (0..2 << 20)
            .map(|index: u32| ((index * 31) >> 3) as u8)
            .collect();
        must(file.write_at(&large, 777));
        let mut back = vec![0; large.len()];
        must(file.read_exact_at(&mut back, 777));
        assert!(large == back, "a large block comes back");
        self.remove("file");
    }

    fn end_of_file(&self) {
        let file = self.create("file");
        must(file.write_at(b"12345", 0));
        let mut bytes = [9; 8];
        assert_eq!(5, must(file.read_at(&mut bytes, 0)), "a short read");
        assert_eq!(b"12345\x09\x09\x09", &bytes);
        assert_eq!(2, must(file.read_at(&mut bytes, 3)));
        assert_eq!(0, must(file.read_at(&mut bytes, 5)));
        assert_eq!(0, must(file.read_at(&mut bytes, 1 << 40)));
        let kind = ErrorKind::UnexpectedEnd {
            offset: 3,
            needed: 8,
            len: 2,
        };
        let read = file.read_exact_at(&mut bytes, 3);
        fails(read, Operation::Read, file.path(), &kind);
        self.remove("file");
    }

    fn vectored_writes(&self) {
        let file = self.create("file");
        let slices = [b"ab".as_slice(), b"", b"cde", b""];
        must(file.write_vectored_at(&mut slices.map(IoSlice::new), 1));
        let mut bytes = [9; 7];
        assert_eq!(6, must(file.read_at(&mut bytes, 0)));
        assert_eq!(b"\0abcde", &bytes[..6]);
        must(file.write_vectored_at(&mut [], 100));
        must(file.write_vectored_at(&mut [IoSlice::new(b"")], 100));
        assert_eq!(6, must(file.len()));
        let block = [7; 100];
        let mut many: Vec<IoSlice<'_>> = (0..3_000).map(|_| IoSlice::new(&block)).collect();
        must(file.write_vectored_at(&mut many, 0));
        assert_eq!(
            300_000,
            must(file.len()),
            "more buffers than one call takes"
        );
        self.remove("file");
    }

    fn lengths(&self) {
        let file = self.create("file");
        must(file.write_at(&[7; 9_000], 0));
        must(file.set_len(5_000));
        assert_eq!(5_000, must(file.len()));
        must(file.set_len(9_000));
        let mut bytes = [1; 9_000];
        must(file.read_exact_at(&mut bytes, 0));
        assert!(bytes[..5_000].iter().all(|byte| *byte == 7));
        assert!(
            bytes[5_000..].iter().all(|byte| *byte == 0),
            "bytes that were cut off are zero when the file grows"
        );
        must(file.set_len(1 << 30));
        let metadata = must(self.disk.metadata(file.path()));
        assert_eq!((FileKind::File, 1 << 30), (metadata.kind, metadata.len));
        must(file.set_len(0));
        self.remove("file");
    }

    fn reserved_space(&self) {
        let path = self.path("file");
        let options = OpenOptions::create_new().with_allocate(100_000);
        let file = must(self.disk.open(&path, options));
        assert_eq!(100_000, must(file.len()), "a file opened with its space");
        let mut bytes = vec![1; 100_000];
        must(file.read_exact_at(&mut bytes, 0));
        assert!(bytes.iter().all(|byte| *byte == 0));
        must(file.write_at(b"kept", 70_000));
        match file.allocate(0, 200_000) {
            Ok(()) => assert_eq!(200_000, must(file.len()), "reserving extends the file"),
            Err(error) => assert_eq!(ErrorKind::Unsupported, error.kind),
        }
        must(file.allocate(0, 0));
        must(file.read_exact_at(&mut bytes[..4], 70_000));
        assert_eq!(b"kept", &bytes[..4], "reserving keeps the contents");

        let space = must(self.disk.space(self.directory));
        if space.free < 1 << 60 {
            let huge = self.path("huge");
            let options = OpenOptions::create_new().with_allocate(1 << 60);
            let refused = self.disk.open(&huge, options).map(|_| ());
            assert!(refused.is_err(), "more space than there is");
            let left = self.disk.metadata(&huge);
            fails(left, Operation::Metadata, &huge, &ErrorKind::NotFound);
        }
        self.remove("file");
    }

    fn holes(&self) {
        let file = self.create("file");
        must(file.write_at(&[7; 20_000], 0));
        match file.punch_hole(1_000, 15_000) {
            Ok(()) => {
                let mut bytes = [1; 20_000];
                must(file.read_exact_at(&mut bytes, 0));
                assert!(bytes[..1_000].iter().all(|byte| *byte == 7));
                assert!(bytes[1_000..16_000].iter().all(|byte| *byte == 0));
                assert!(bytes[16_000..].iter().all(|byte| *byte == 7));
                must(file.punch_hole(19_000, 100_000));
                assert_eq!(20_000, must(file.len()), "a hole keeps the length");
            }
            Err(error) => assert_eq!(ErrorKind::Unsupported, error.kind),
        }
        self.remove("file");
    }

    fn syncs_and_advice(&self) {
        let file = self.create("file");
        must(file.write_at(&[7; 10_000], 0));
        for advice in [
            Advice::Normal,
            Advice::Sequential,
            Advice::Random,
            Advice::WillNeed,
            Advice::WriteBack,
            Advice::DontNeed,
        ] {
            must(file.advise(0, 0, advice));
            must(file.advise(4_096, 100_000, advice));
        }
        must(file.sync(SyncKind::Data));
        must(file.sync(SyncKind::All));
        must(file.advise(0, 0, Advice::DontNeed));
        must(self.disk.sync_directory(self.directory));
        let mut bytes = [1; 10_000];
        must(file.read_exact_at(&mut bytes, 0));
        assert!(bytes.iter().all(|byte| *byte == 7), "advice keeps contents");
        let path = self.path("file");
        let synced = self.disk.sync_directory(&path);
        let kind = ErrorKind::NotADirectory;
        fails(synced, Operation::SyncDirectory, &path, &kind);
        self.remove("file");
    }

    fn cached_reads(&self) {
        let file = self.create("file");
        let bytes: Vec<u8> = (0..9_000).map(|index| index as u8).collect();
        must(file.write_at(&bytes, 0));
        let mut back = vec![0; 9_000];
        if let Some(len) = must(file.read_cached_at(&mut back, 100)) {
            assert!(len <= 8_900);
            assert_eq!(bytes[100..100 + len], back[..len], "bytes from memory");
        }
        self.remove("file");
    }

    fn invalid_ranges(&self) {
        let file = self.create("file");
        let offset = u64::MAX - 1;
        let mut byte = [0; 4];
        let len = byte.len() as u64;
        let limit = i64::MAX.cast_unsigned();
        let kind = ErrorKind::InvalidRange { offset, len, limit };
        let path = file.path();
        fails(
            file.read_at(&mut byte, offset),
            Operation::Read,
            path,
            &kind,
        );
        fails(
            file.read_cached_at(&mut byte, offset),
            Operation::Read,
            path,
            &kind,
        );
        fails(file.write_at(&byte, offset), Operation::Write, path, &kind);
        let vectored = file.write_vectored_at(&mut [IoSlice::new(&byte)], offset);
        fails(vectored, Operation::Write, path, &kind);
        fails(file.allocate(offset, len), Operation::Allocate, path, &kind);
        fails(
            file.punch_hole(offset, len),
            Operation::PunchHole,
            path,
            &kind,
        );
        fails(
            file.advise(offset, len, Advice::Normal),
            Operation::Advise,
            path,
            &kind,
        );
        let kind = ErrorKind::InvalidRange {
            offset,
            len: 0,
            limit,
        };
        fails(file.set_len(offset), Operation::SetLength, path, &kind);
        self.remove("file");
    }

    fn handles_for_reading(&self) {
        must(self.create("file").write_at(b"kept", 0));
        let path = self.path("file");
        let file = must(self.disk.open(&path, OpenOptions::read()));
        let kind = ErrorKind::NotWritable;
        fails(file.write_at(b"no", 0), Operation::Write, &path, &kind);
        let vectored = file.write_vectored_at(&mut [IoSlice::new(b"no")], 0);
        fails(vectored, Operation::Write, &path, &kind);
        fails(file.set_len(0), Operation::SetLength, &path, &kind);
        fails(file.allocate(0, 10), Operation::Allocate, &path, &kind);
        let mut bytes = [0; 4];
        must(file.read_exact_at(&mut bytes, 0));
        assert_eq!(b"kept", &bytes);
        must(file.sync(SyncKind::Data));
        self.remove("file");
    }

    fn directories(&self) {
        let path = self.path("directory");
        let missing = self.disk.list(&path);
        fails(missing, Operation::List, &path, &ErrorKind::NotFound);
        must(self.disk.create_directory(&path));
        let again = self.disk.create_directory(&path);
        let kind = ErrorKind::AlreadyExists;
        fails(again, Operation::CreateDirectory, &path, &kind);
        assert_eq!(
            FileKind::Directory,
            must(self.disk.metadata(&path)).kind,
            "kind of a directory"
        );
        assert_eq!(
            FileKind::Directory,
            must(self.disk.list(self.directory))[0].kind
        );
        let opened = self.disk.open(&path, OpenOptions::read());
        fails(opened, Operation::Open, &path, &ErrorKind::NotAFile);
        let opened = self.disk.open(&path, OpenOptions::write());
        fails(opened, Operation::Open, &path, &ErrorKind::NotAFile);

        let inner = path.join("inner");
        must(self.disk.open(&inner, OpenOptions::create_new()));
        must(self.disk.sync_directory(&path));
        let full = self.disk.remove_directory(&path);
        fails(
            full,
            Operation::Remove,
            &path,
            &ErrorKind::DirectoryNotEmpty,
        );
        must(self.disk.remove_file(&inner));
        must(self.disk.remove_directory(&path));
        let gone = self.disk.remove_directory(&path);
        fails(gone, Operation::Remove, &path, &ErrorKind::NotFound);
        let orphan = path.join("orphan");
        let orphaned = self.disk.create_directory(&orphan);
        let kind = ErrorKind::NotFound;
        fails(orphaned, Operation::CreateDirectory, &orphan, &kind);
    }

    fn renames(&self) {
        let first = self.create("first");
        must(first.write_at(b"first", 0));
        let second = self.create("second");
        must(second.write_at(b"second", 0));
        must(self.disk.rename(&self.path("first"), &self.path("second")));
        assert_eq!(self.names(), ["second"], "the target is replaced");
        let named = must(self.disk.open(&self.path("second"), OpenOptions::read()));
        let mut bytes = [0; 5];
        must(named.read_exact_at(&mut bytes, 0));
        assert_eq!(b"first", &bytes);
        must(second.read_exact_at(&mut bytes, 0));
        assert_eq!(b"secon", &bytes, "a replaced file lives while it is open");
        let gone = self.path("first");
        let again = self.disk.rename(&gone, &self.path("third"));
        fails(again, Operation::Rename, &gone, &ErrorKind::NotFound);

        let directory = self.path("directory");
        must(self.disk.create_directory(&directory));
        must(
            self.disk
                .rename(&self.path("second"), &directory.join("moved")),
        );
        assert_eq!(self.names(), ["directory"]);
        must(self.disk.remove_file(&directory.join("moved")));
        must(self.disk.remove_directory(&directory));
    }

    fn removal(&self) {
        let path = self.path("file");
        let file = self.create("file");
        must(file.write_at(b"alive", 0));
        self.remove("file");
        let gone = self.disk.remove_file(&path);
        fails(gone, Operation::Remove, &path, &ErrorKind::NotFound);
        let gone = self.disk.metadata(&path);
        fails(gone, Operation::Metadata, &path, &ErrorKind::NotFound);
        let mut bytes = [0; 5];
        must(file.read_exact_at(&mut bytes, 0));
        assert_eq!(b"alive", &bytes, "a removed file lives while it is open");
        must(file.write_at(b"still", 0));
        must(file.sync(SyncKind::Data));
        let new = self.create("file");
        assert_eq!(0, must(new.len()), "a new file of the same name");
        self.remove("file");
    }

    fn locks(&self) {
        drop(self.create("file"));
        for path in [self.path("file"), self.directory.to_path_buf()] {
            let lock = must(self.disk.try_lock(&path));
            let second = self.disk.try_lock(&path);
            fails(second, Operation::Lock, &path, &ErrorKind::Locked);
            drop(lock);
            drop(must(self.disk.try_lock(&path)));
        }
        let lock = must(self.disk.try_lock(self.directory));
        drop(must(self.disk.try_lock(&self.path("file"))));
        drop(lock);
        let missing = self.path("missing");
        let locked = self.disk.try_lock(&missing);
        fails(locked, Operation::Lock, &missing, &ErrorKind::NotFound);
        self.remove("file");
    }

    fn space(&self) {
        let space = must(self.disk.space(self.directory));
        assert!(space.total > 0 && space.free <= space.total, "{space:?}");
        let missing = self.path("missing");
        let unknown = self.disk.space(&missing);
        fails(unknown, Operation::Space, &missing, &ErrorKind::NotFound);
    }
}
