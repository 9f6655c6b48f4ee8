// SPDX-License-Identifier: Apache-2.0
//! The rules of [`DiskQueue`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::{
    Advice, AlignedBuf, Completion, Disk, DiskError, DiskQueue, ErrorKind, OpenOptions, Outcome,
    QueuedFile, RejectReason, Rejected, Request, SyncKind, WritePart,
};

use super::{Failures, must};

/// A queue under test.
pub struct Subject<'a> {
    /// The queue.
    pub queue: &'a mut dyn DiskQueue,
    /// Workers of the queue.
    pub workers: usize,
    /// Requests that each of its workers accepts: at least 8.
    pub depth: usize,
    /// Another queue over the same disk.
    pub other: &'a mut dyn DiskQueue,
    /// Its disk, a [`FailingDisk`](super::FailingDisk).
    pub disk: Arc<dyn Disk>,
    /// The failures of that disk.
    pub failures: Arc<Failures>,
    /// An empty directory.
    pub directory: PathBuf,
    /// True if a panic of the disk reaches the caller of `poll`.
    pub passes_panics: bool,
    /// Lets a short time pass, real or virtual, and returns the time.
    pub now_ns: &'a mut dyn FnMut() -> i64,
}

/// Runs the suite and leaves the directory empty.
pub fn run(subject: &mut Subject<'_>) {
    subject.names();
    subject.locks();
    subject.writes_reads_and_buffers();
    subject.vectored_writes();
    subject.order_within_a_file();
    subject.group_commit();
    subject.punched_ranges();
    subject.failed_write_is_sticky();
    subject.failed_sync_is_sticky();
    subject.failures_of_other_requests_are_not_sticky();
    subject.panics_are_failures();
    subject.refused_requests();
    subject.full_worker_does_not_affect_others();
    subject.barriers();
    subject.invalid_ranges();
    let left = must(subject.disk.list(&subject.directory));
    assert_eq!(left, [], "the suite leaves nothing");
}

fn is_failed_before(result: &Result<Outcome, DiskError>) -> bool {
    matches!(result, Err(error) if matches!(error.kind, ErrorKind::FailedBefore { .. }))
}

impl Subject<'_> {
    fn submit(&mut self, token: u64, request: Request) {
        must(self.queue.submit(token, request));
    }

    /// Polls until nothing is in flight.
    fn drain(&mut self) -> Vec<Completion> {
        self.drain_after_panics(0)
    }

    /// Polls until nothing is in flight. The disk panics this many times.
    fn drain_after_panics(&mut self, expected: usize) -> Vec<Completion> {
        let (mut completions, mut panics) = (Vec::new(), 0);
        while self.queue.in_flight() > 0 {
            let now_ns = (self.now_ns)();
            loop {
                match catch_unwind(AssertUnwindSafe(|| self.queue.poll(now_ns))) {
                    Ok(Some(completion)) => completions.push(completion),
                    Ok(None) => break,
                    Err(payload) => {
                        let message = payload.downcast_ref::<String>();
                        assert!(message.is_some_and(|it| it.contains("on request")));
                        panics += 1;
                    }
                }
            }
        }
        let expected = if self.passes_panics { expected } else { 0 };
        assert_eq!(expected, panics, "panics of `poll`");
        assert!(self.queue.poll(i64::MAX).is_none(), "one completion each");
        completions
    }

    fn one(&mut self, request: Request) -> Completion {
        self.submit(77, request);
        let mut completions = self.drain();
        assert_eq!(1, completions.len(), "one completion per request");
        let completion = completions.remove(0);
        assert_eq!(77, completion.token);
        completion
    }

    fn done(&mut self, request: Request) -> Outcome {
        must(self.one(request).result)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn open(&mut self, name: &str) -> QueuedFile {
        let request = Request::Open {
            path: self.path(name),
            options: OpenOptions::create_new(),
        };
        match self.done(request) {
            Outcome::Opened(file) => self.queue.attach(file),
            other => panic!("an open file, not {other:?}"),
        }
    }

    fn close(&mut self, file: QueuedFile) {
        let path = file.file().path().to_path_buf();
        self.done(Request::Close { file });
        self.done(Request::RemoveFile { path });
    }

    fn names(&mut self) {
        let directory = self.path("directory");
        let (one, two) = (directory.join("one"), directory.join("two"));
        // In flight together: the order of submission counts.
        self.submit(
            1,
            Request::CreateDirectory {
                path: directory.clone(),
            },
        );
        let options = OpenOptions::create_new().with_allocate(10_000);
        self.submit(
            2,
            Request::Open {
                path: one.clone(),
                options,
            },
        );
        self.submit(
            3,
            Request::Rename {
                from: one.clone(),
                to: two.clone(),
            },
        );
        self.submit(
            4,
            Request::SyncDirectory {
                directory: directory.clone(),
            },
        );
        self.submit(5, Request::Metadata { path: two.clone() });
        self.submit(
            6,
            Request::List {
                directory: directory.clone(),
            },
        );
        let completions = self.drain();
        let tokens: Vec<u64> = completions.iter().map(|done| done.token).collect();
        assert_eq!([1, 2, 3, 4, 5, 6], *tokens, "names are served in order");
        for completion in completions {
            match must(completion.result) {
                Outcome::Metadata(metadata) => assert_eq!(10_000, metadata.len),
                Outcome::Entries(entries) => assert_eq!("two", entries[0].name),
                Outcome::Opened(file) => assert_eq!(one, file.path()),
                _ => {}
            }
        }
        let Outcome::Space(space) = self.done(Request::Space { path: two.clone() }) else {
            panic!("the space of a file system");
        };
        assert!(space.free > 0);
        self.done(Request::RemoveFile { path: two.clone() });
        let again = self.one(Request::RemoveFile { path: two.clone() }).result;
        assert!(matches!(again, Err(error) if error.is_not_found() && error.path == two));
        let path = directory;
        self.done(Request::RemoveDirectory { path: path.clone() });
        let again = self
            .one(Request::RemoveDirectory { path: path.clone() })
            .result;
        assert!(matches!(again, Err(error) if error.is_not_found() && error.path == path));
    }

    fn locks(&mut self) {
        let path = self.directory.clone();
        let lock = |subject: &mut Self| subject.one(Request::Lock { path: path.clone() }).result;
        let Outcome::Locked(held) = must(lock(self)) else {
            panic!("the lock");
        };
        let refused = lock(self);
        assert!(matches!(refused, Err(error) if error.is_locked() && error.path == path));
        self.done(Request::Unlock {
            path: path.clone(),
            lock: held,
        });
        // A lock that is dropped without a request is released, too.
        drop(must(lock(self)));
        drop(must(self.disk.try_lock(&path)));
    }

    /// Bytes of a punched range are zero. After a failure that is not cleared they stay.
    fn punched_ranges(&mut self) {
        let file = self.open("file");
        let punch = |file: &QueuedFile| Request::PunchHole {
            file: file.clone(),
            offset: 0,
            len: 8_192,
        };
        let bytes = |file: &QueuedFile| {
            let mut bytes = [0];
            must(file.file().read_exact_at(&mut bytes, 0));
            bytes[0]
        };
        for token in 0..32 {
            self.write(token, &file, token * 512, 7);
            self.drain();
        }
        self.failures.syncs.store(1, Ordering::SeqCst);
        self.sync(0, &file);
        self.drain();
        let refused = self.one(punch(&file)).result;
        assert!(is_failed_before(&refused), "{refused:?}");
        assert_eq!(7, bytes(&file), "not executed after a failure");
        self.clear(1, &file);
        self.drain();
        match self.one(punch(&file)).result {
            Ok(_) => assert_eq!(0, bytes(&file)),
            Err(error) => assert_eq!(ErrorKind::Unsupported, error.kind),
        }
        assert_eq!(32 * 512, must(file.file().len()), "the length is kept");
        let outside = self.one(Request::PunchHole {
            file: file.clone(),
            offset: u64::MAX,
            len: 1,
        });
        assert!(outside.result.is_err(), "{outside:?}");
        self.write(2, &file, 0, 8);
        self.sync(3, &file);
        for completion in self.drain() {
            must(completion.result);
        }
        self.close(file);
    }

    fn writes_reads_and_buffers(&mut self) {
        let file = self.open("file");
        let mut buffer = AlignedBuf::new(1 << 20);
        buffer[10..15].copy_from_slice(b"block");
        let address = buffer.as_ptr();
        let written = self.one(Request::Write {
            file: file.clone(),
            offset: 3,
            buffer,
            range: 10..15,
        });
        assert!(written.service_ns >= 0);
        must(written.result);
        let buffer = written.buffer.unwrap_or_default();
        assert_eq!(address, buffer.as_ptr(), "the same buffer comes back");

        let read = self.one(Request::Read {
            file: file.clone(),
            offset: 0,
            buffer,
            range: 100..200,
        });
        assert!(matches!(read.result, Ok(Outcome::Read(8))), "bytes read");
        let buffer = read.buffer.unwrap_or_default();
        assert_eq!(b"\0\0\0block", &buffer[100..108]);

        self.done(Request::SetLength {
            file: file.clone(),
            len: 5,
        });
        assert_eq!(5, must(file.file().len()));
        self.done(Request::Advise {
            file: file.clone(),
            offset: 0,
            len: 0,
            advice: Advice::WriteBack,
        });
        let allocated = self.one(Request::Allocate {
            file: file.clone(),
            offset: 0,
            len: 9_000,
        });
        match allocated.result {
            Ok(_) => assert_eq!(9_000, must(file.file().len())),
            Err(error) => assert_eq!(ErrorKind::Unsupported, error.kind),
        }
        self.close(file);
    }

    fn vectored_writes(&mut self) {
        let file = self.open("file");
        // More parts than one call of the system takes, and an empty one.
        let mut parts: Vec<WritePart> = (0..1500_u32)
            .map(|number| {
                let mut buffer = AlignedBuf::new(8);
                buffer[2..6].copy_from_slice(&number.to_le_bytes());
                WritePart::new(buffer, 2..6)
            })
            .collect();
        parts[700].range = 2..2;
        let address = parts[0].buffer.as_ptr();
        let written = self.one(Request::WriteVectored {
            file: file.clone(),
            offset: 5,
            parts,
        });
        must(written.result);
        assert!(written.buffer.is_none(), "the buffers are in the parts");
        let mut parts = written.parts;
        assert_eq!((1500, address), (parts.len(), parts[0].buffer.as_ptr()));
        let mut bytes = vec![0; 1499 * 4];
        must(file.file().read_exact_at(&mut bytes, 5));
        let expected = (0..1500_u32).filter(|number| *number != 700);
        assert!(
            expected.flat_map(u32::to_le_bytes).eq(bytes),
            "parts in order"
        );
        assert_eq!(5 + 1499 * 4, must(file.file().len()));

        parts[1400].range = 0..9;
        let refused = self.one(Request::WriteVectored {
            file: file.clone(),
            offset: 0,
            parts,
        });
        assert!(matches!(
            refused.result.map_err(|error| error.kind),
            Err(ErrorKind::InvalidRange { .. })
        ));
        assert_eq!(1500, refused.parts.len(), "the parts of a failed write");
        let mut start = [1; 5];
        must(file.file().read_exact_at(&mut start, 0));
        assert_eq!([0; 5], start, "nothing is written");
        self.close(file);
    }

    /// A panic of the disk completes its request; the queue serves the next ones.
    fn panics_are_failures(&mut self) {
        let panicked = |result: Result<Outcome, DiskError>| match result {
            Err(DiskError {
                kind: ErrorKind::Panicked { message },
                path,
                ..
            }) => {
                assert!(message.contains("on request"), "{message}");
                path
            }
            other => panic!("a panic of the disk, not {other:?}"),
        };
        let (file, path) = (self.open("file"), self.path("file"));
        self.failures.panics.store(1, Ordering::SeqCst);
        self.write(0, &file, 0, 1);
        let failed = self.drain_after_panics(1).remove(0);
        assert!(
            failed.buffer.is_some(),
            "the buffer of a write that panicked"
        );
        assert_eq!(path, panicked(failed.result));
        self.sync(1, &file);
        assert!(
            is_failed_before(&self.drain().remove(0).result),
            "it is sticky"
        );
        self.clear(2, &file);
        self.failures.panics.store(1, Ordering::SeqCst);
        self.sync(3, &file);
        self.sync(4, &file);
        let syncs = self.drain_after_panics(1);
        assert_eq!(3, syncs.len(), "each request has its completion");
        assert!(syncs.iter().skip(1).all(|sync| sync.result.is_err()));
        self.clear(5, &file);
        self.drain();
        self.failures.panics.store(1, Ordering::SeqCst);
        self.submit(8, Request::Metadata { path: path.clone() });
        let metadata = self.drain_after_panics(1).remove(0);
        assert_eq!(path, panicked(metadata.result));
        self.write(6, &file, 0, 2);
        self.sync(7, &file);
        for completion in self.drain() {
            must(completion.result);
        }
        self.close(file);
    }

    fn write(&mut self, token: u64, file: &QueuedFile, offset: u64, byte: u8) {
        let mut buffer = AlignedBuf::new(512);
        buffer.fill(byte);
        self.submit(
            token,
            Request::Write {
                file: file.clone(),
                offset,
                buffer,
                range: 0..512,
            },
        );
    }

    fn sync(&mut self, token: u64, file: &QueuedFile) {
        self.submit(
            token,
            Request::Sync {
                file: file.clone(),
                kind: SyncKind::Data,
            },
        );
    }

    fn clear(&mut self, token: u64, file: &QueuedFile) {
        self.submit(token, Request::ClearFailure { file: file.clone() });
    }

    fn order_within_a_file(&mut self) {
        let (one, two) = (self.open("one"), self.open("two"));
        for round in 0..40 {
            self.write(10, &one, 0, round);
            self.write(11, &one, 0, round + 100);
            self.sync(12, &one);
            self.write(20, &two, 0, round);
            self.sync(22, &two);
            let tokens: Vec<u64> = self
                .drain()
                .into_iter()
                .map(|completion| {
                    must(completion.result);
                    completion.token
                })
                .collect();
            let of = |file: u64| -> Vec<u64> {
                tokens
                    .iter()
                    .copied()
                    .filter(|token| token / 10 == file)
                    .collect()
            };
            assert_eq!([10, 11, 12], *of(1), "a sync completes after its writes");
            assert_eq!([20, 22], *of(2));
            let mut byte = [0];
            must(one.file().read_exact_at(&mut byte, 511));
            assert_eq!(round + 100, byte[0], "the later write is the last one");
        }
        self.close(one);
        self.close(two);
    }

    fn group_commit(&mut self) {
        let file = self.open("file");
        let before = self.failures.syncs_executed.load(Ordering::SeqCst);
        for token in 0..4 {
            self.write(token, &file, token * 512, 1);
            self.sync(10 + token, &file);
        }
        let mut written = 0;
        for completion in self.drain() {
            must(completion.result);
            if completion.token < 10 {
                written += 1;
            } else {
                assert!(written >= completion.token - 9, "writes before their sync");
            }
        }
        let syncs = self.failures.syncs_executed.load(Ordering::SeqCst) - before;
        assert!((1..=4).contains(&syncs), "{syncs} syncs for four requests");
        self.close(file);
    }

    fn failed_write_is_sticky(&mut self) {
        let (file, other) = (self.open("file"), self.open("other"));
        self.failures.writes.store(1, Ordering::SeqCst);
        self.write(0, &file, 0, 1);
        let failed = self.drain().remove(0);
        assert!(matches!(
            failed.result.map_err(|error| error.kind),
            Err(ErrorKind::Io { .. })
        ));
        assert!(failed.buffer.is_some(), "the buffer of a failed write");
        self.write(1, &file, 512, 1);
        self.sync(2, &file);
        self.write(3, &other, 0, 1);
        self.sync(4, &other);
        for completion in self.drain() {
            assert_eq!(
                completion.token < 3,
                is_failed_before(&completion.result),
                "only the file that failed: {completion:?}"
            );
        }
        assert_eq!(0, must(file.file().len()), "later writes are not executed");

        // A sync that is submitted before the clearance fails, one after it succeeds.
        self.sync(5, &file);
        self.clear(6, &file);
        self.write(7, &file, 0, 2);
        self.sync(8, &file);
        for completion in self.drain() {
            let failed = is_failed_before(&completion.result);
            assert_eq!(completion.token == 5, failed, "{completion:?}");
        }
        assert_eq!(512, must(file.file().len()));
        self.close(file);
        self.close(other);
    }

    fn failed_sync_is_sticky(&mut self) {
        let file = self.open("file");
        self.failures.syncs.store(1, Ordering::SeqCst);
        self.write(0, &file, 0, 1);
        self.sync(1, &file);
        for completion in self.drain() {
            assert_eq!(completion.token == 0, completion.result.is_ok());
        }
        // The device works again, but the bytes are lost: no success before the owner has seen it.
        self.sync(2, &file);
        self.write(3, &file, 0, 1);
        self.sync(4, &file);
        for completion in self.drain() {
            assert!(is_failed_before(&completion.result), "{completion:?}");
        }
        self.clear(5, &file);
        self.write(6, &file, 0, 1);
        self.sync(7, &file);
        for completion in self.drain() {
            must(completion.result);
        }
        self.close(file);
    }

    fn failures_of_other_requests_are_not_sticky(&mut self) {
        let file = self.open("file");
        let refused = self.one(Request::Allocate {
            file: file.clone(),
            offset: u64::MAX,
            len: 1,
        });
        assert!(refused.result.is_err());
        self.write(0, &file, 0, 1);
        self.sync(1, &file);
        for completion in self.drain() {
            must(completion.result);
        }
        self.close(file);
    }

    fn refused_requests(&mut self) {
        let file = self.open("file");
        let mut accepted = 0;
        let rejected = loop {
            let mut buffer = AlignedBuf::new(512);
            buffer.fill(7);
            let request = Request::Write {
                file: file.clone(),
                offset: 0,
                buffer,
                range: 0..512,
            };
            match self.queue.submit(accepted, request) {
                Ok(()) => accepted += 1,
                Err(rejected) => break rejected,
            }
            assert!(accepted < 1 << 20, "the queue is bounded");
        };
        assert_eq!(RejectReason::Full, rejected.reason);
        assert_eq!(self.depth as u64, accepted);
        let Request::Write { buffer, .. } = rejected.request else {
            panic!("the request comes back");
        };
        assert!(buffer.iter().all(|byte| *byte == 7), "with its buffer");
        assert_eq!(accepted, self.drain().len() as u64);

        let request = Request::Sync {
            file: file.clone(),
            kind: SyncKind::All,
        };
        let foreign = self.other.submit(0, request);
        assert!(
            matches!(
                foreign,
                Err(Rejected {
                    reason: RejectReason::OtherQueue,
                    ..
                })
            ),
            "a file of another queue"
        );
        self.close(file);
    }

    /// Each worker accepts the same number of requests, and has room again when its completions were polled.
    fn full_worker_does_not_affect_others(&mut self) {
        let files: Vec<_> = (0..self.workers)
            .map(|number| self.open(&format!("file-{number}")))
            .collect();
        let advise = |file: &QueuedFile| Request::Advise {
            file: file.clone(),
            offset: 0,
            len: 0,
            advice: Advice::WriteBack,
        };
        let metadata = Request::Metadata {
            path: self.directory.clone(),
        };
        assert_eq!(0, metadata.worker(), "names have the first worker");
        let mut workers: Vec<_> = files.iter().map(|file| advise(file).worker()).collect();
        for file in &files {
            assert_eq!(advise(file).worker(), advise(&file.clone()).worker());
        }
        workers.push(0);
        workers.sort_unstable();
        workers.dedup();
        let expected: Vec<_> = (0..self.workers).collect();
        assert_eq!(expected, workers, "files are spread over all workers");

        // Without a poll, so that no room comes back.
        for worker in workers {
            for token in 0..=self.depth {
                let file = files.iter().find(|file| advise(file).worker() == worker);
                let request = match file {
                    Some(file) => advise(file),
                    None => Request::Metadata {
                        path: self.directory.clone(),
                    },
                };
                assert_eq!(worker, request.worker());
                let submitted = self.queue.submit(token as u64, request);
                let is_full = matches!(
                    submitted,
                    Err(Rejected {
                        reason: RejectReason::Full,
                        ..
                    })
                );
                assert_eq!(token == self.depth, is_full, "worker {worker}: {token}");
            }
        }
        assert_eq!(self.workers * self.depth, self.queue.in_flight());
        assert_eq!(self.workers * self.depth, self.drain().len());
        for file in files {
            self.close(file);
        }
    }

    /// Syncs that were submitted before a request which removes bytes, clears the failure or closes the file are executed
    /// before it.
    fn barriers(&mut self) {
        let file = self.open("file");
        for token in 0..16 {
            self.write(token, &file, token * 512, 7);
        }
        self.drain();
        self.failures.syncs.store(1, Ordering::SeqCst);
        self.sync(1, &file);
        self.submit(
            2,
            Request::PunchHole {
                file: file.clone(),
                offset: 0,
                len: 8_192,
            },
        );
        let results: Vec<_> = self.drain();
        let tokens: Vec<u64> = results.iter().map(|done| done.token).collect();
        assert_eq!([1, 2], *tokens, "the sync is not delayed");
        assert!(
            is_failed_before(&results[1].result),
            "nothing is removed after the failed sync: {:?}",
            results[1]
        );
        let mut byte = [0];
        must(file.file().read_exact_at(&mut byte, 0));
        assert_eq!([7], byte);
        self.clear(3, &file);
        self.drain();
        self.sync(4, &file);
        let path = file.file().path().to_path_buf();
        self.submit(5, Request::Close { file });
        let tokens: Vec<u64> = self.drain().iter().map(|done| done.token).collect();
        assert_eq!([4, 5], *tokens);
        self.done(Request::RemoveFile { path });
    }

    #[expect(clippy::reversed_empty_ranges, reason = "an invalid range")]
    fn invalid_ranges(&mut self) {
        let file = self.open("file");
        for range in [0..513, 600..700, 10..5] {
            let read = self.one(Request::Read {
                file: file.clone(),
                offset: 0,
                buffer: AlignedBuf::new(512),
                range: range.clone(),
            });
            let invalid = |result: &Result<Outcome, DiskError>| {
                matches!(
                    result,
                    Err(DiskError {
                        kind: ErrorKind::InvalidRange { .. },
                        ..
                    })
                )
            };
            assert!(invalid(&read.result), "{range:?} of 512: {read:?}");
            let written = self.one(Request::Write {
                file: file.clone(),
                offset: 0,
                buffer: AlignedBuf::new(512),
                range: range.clone(),
            });
            assert!(invalid(&written.result), "{range:?} of 512: {written:?}");
            self.done(Request::ClearFailure { file: file.clone() });
        }
        self.close(file);
    }
}
