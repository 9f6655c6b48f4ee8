// SPDX-License-Identifier: Apache-2.0
//! Models of the threaded queue: submissions, completions and parks under every interleaving within the bounds
//! (`cargo xtask loom taran-storage`).

#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "a failure ends the model")]

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use taran_core::agent::AgentWaker;
use taran_storage::{
    Advice, AlignedBuf, DirEntry, Disk, DiskError, DiskFile, DiskLock, DiskQueue, ErrorKind,
    Metadata, OpenOptions, Operation, QueuedFile, Request, Space, SyncKind, ThreadedQueue,
    ThreadedQueueOptions,
};

/// Numbers of executed writes and syncs. Not loom's atomics: they are no part of what is modelled.
#[derive(Debug, Default)]
struct Counts {
    writes: AtomicU64,
    syncs: AtomicU64,
}

/// A disk with one file that counts.
#[derive(Debug)]
struct Counting(Arc<Counts>);

fn unsupported<T>(operation: Operation) -> Result<T, DiskError> {
    Err(DiskError::new(
        operation,
        Path::new("/"),
        ErrorKind::Unsupported,
    ))
}

impl Disk for Counting {
    fn open(&self, _: &Path, _: OpenOptions) -> Result<Box<dyn DiskFile>, DiskError> {
        unsupported(Operation::Open)
    }
    fn list(&self, _: &Path) -> Result<Vec<DirEntry>, DiskError> {
        unsupported(Operation::List)
    }
    fn metadata(&self, _: &Path) -> Result<Metadata, DiskError> {
        unsupported(Operation::Metadata)
    }
    fn rename(&self, _: &Path, _: &Path) -> Result<(), DiskError> {
        unsupported(Operation::Rename)
    }
    fn remove_file(&self, _: &Path) -> Result<(), DiskError> {
        unsupported(Operation::Remove)
    }
    fn create_directory(&self, _: &Path) -> Result<(), DiskError> {
        unsupported(Operation::CreateDirectory)
    }
    fn remove_directory(&self, _: &Path) -> Result<(), DiskError> {
        unsupported(Operation::Remove)
    }
    fn sync_directory(&self, _: &Path) -> Result<(), DiskError> {
        unsupported(Operation::SyncDirectory)
    }
    fn space(&self, _: &Path) -> Result<Space, DiskError> {
        unsupported(Operation::Space)
    }
    fn try_lock(&self, _: &Path) -> Result<DiskLock, DiskError> {
        unsupported(Operation::Lock)
    }
}

impl DiskFile for Counting {
    fn path(&self) -> &Path {
        Path::new("/file")
    }
    fn read_at(&self, _: &mut [u8], _: u64) -> Result<usize, DiskError> {
        Ok(0)
    }
    fn read_cached_at(&self, _: &mut [u8], _: u64) -> Result<Option<usize>, DiskError> {
        Ok(None)
    }
    fn write_at(&self, _: &[u8], _: u64) -> Result<(), DiskError> {
        self.0.writes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn write_vectored_at(&self, _: &mut [IoSlice<'_>], _: u64) -> Result<(), DiskError> {
        unsupported(Operation::Write)
    }
    fn len(&self) -> Result<u64, DiskError> {
        Ok(0)
    }
    fn set_len(&self, _: u64) -> Result<(), DiskError> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<(), DiskError> {
        Ok(())
    }
    fn punch_hole(&self, _: u64, _: u64) -> Result<(), DiskError> {
        Ok(())
    }
    fn sync(&self, _: SyncKind) -> Result<(), DiskError> {
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn advise(&self, _: u64, _: u64, _: Advice) -> Result<(), DiskError> {
        Ok(())
    }
}

fn start(waker: Option<AgentWaker>, depth: usize) -> (Arc<Counts>, ThreadedQueue, QueuedFile) {
    let counts = Arc::new(Counts::default());
    let disk: Arc<dyn Disk> = Arc::new(Counting(Arc::clone(&counts)));
    let mut options = ThreadedQueueOptions::default();
    options.workers = 1;
    options.depth = depth;
    options.waker = waker;
    let mut queue = ThreadedQueue::start(&disk, &options).unwrap();
    let file = queue.attach(Box::new(Counting(Arc::clone(&counts))));
    (counts, queue, file)
}

fn write(file: &QueuedFile) -> Request {
    Request::Write {
        file: file.clone(),
        offset: 0,
        buffer: AlignedBuf::new(8),
        range: 0..8,
    }
}

fn sync(file: &QueuedFile) -> Request {
    Request::Sync {
        file: file.clone(),
        kind: SyncKind::Data,
    }
}

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn parked_worker_serves_each_submission() {
    explore(3, || {
        let (counts, mut queue, file) = start(None, 2);
        let mut polled = Vec::new();
        for token in 0..2 {
            queue.submit(token, write(&file)).unwrap();
        }
        while polled.len() < 2 {
            match queue.poll(0) {
                Some(completion) => polled.push(completion.token),
                None => loom::thread::yield_now(),
            }
        }
        assert_eq!([0, 1], *polled);
        assert_eq!(2, counts.writes.load(Ordering::SeqCst));
    });
}

#[test]
fn sync_completes_after_its_write() {
    explore(3, || {
        let (counts, mut queue, file) = start(None, 4);
        queue.submit(0, write(&file)).unwrap();
        queue.submit(1, sync(&file)).unwrap();
        let mut polled = Vec::new();
        while polled.len() < 2 {
            match queue.poll(0) {
                Some(completion) => {
                    if completion.token == 1 {
                        assert_eq!(1, counts.writes.load(Ordering::SeqCst));
                    }
                    polled.push(completion.token);
                }
                None => loom::thread::yield_now(),
            }
        }
        assert_eq!([0, 1], *polled);
    });
}

#[test]
fn parked_owner_is_woken_by_the_completion() {
    explore(3, || {
        let waker = AgentWaker::default();
        waker.register();
        let (_, mut queue, file) = start(Some(waker), 1);
        queue.submit(0, write(&file)).unwrap();
        while queue.poll(0).is_none() {
            loom::thread::park();
        }
    });
}

#[test]
fn drop_serves_accepted_requests_and_ends_the_thread() {
    explore(3, || {
        let (counts, mut queue, file) = start(None, 2);
        queue.submit(0, write(&file)).unwrap();
        queue.submit(1, sync(&file)).unwrap();
        drop(queue);
        assert_eq!(1, counts.writes.load(Ordering::SeqCst));
        assert_eq!(1, counts.syncs.load(Ordering::SeqCst));
    });
}
