// SPDX-License-Identifier: Apache-2.0
//! Thread that creates and deletes log files and reserves their pages, so that no agent waits for the file system, and
//! prefaults reserved pages while it is idle.

use std::collections::VecDeque;
use std::iter;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use taran_core::memory::{Region, Storage};

use super::page_prefaulter::PagePrefaulter;
use crate::conductor::{
    FileRequest, FileResult, FileWorker, RequestOrigin, ReserveRequest, create_now, delete_now,
    reserve_now,
};
use crate::error::DriverError;

/// Interval of prefault steps. Leaves most of a shared core to other threads.
const PREFAULT_INTERVAL: Duration = Duration::from_micros(250);

#[derive(Debug)]
enum Job {
    Create(u64, FileRequest),
    Reserve(ReserveRequest),
    Delete(PathBuf, Option<Region>),
}

/// Pending jobs of the thread, in order of priority: streams in use come before new ones.
#[derive(Debug, Default)]
struct Jobs {
    reserve_for_clients: VecDeque<Job>,
    for_clients: VecDeque<Job>,
    reserve_for_peers: VecDeque<Job>,
    deletions: VecDeque<Job>,
    for_peers: VecDeque<Job>,
}

impl Jobs {
    fn push(&mut self, job: Job) {
        let jobs = match &job {
            Job::Create(_, request) => match request.origin {
                RequestOrigin::Client => &mut self.for_clients,
                RequestOrigin::Peer => &mut self.for_peers,
            },
            Job::Reserve(request) => match request.origin {
                RequestOrigin::Client => &mut self.reserve_for_clients,
                RequestOrigin::Peer => &mut self.reserve_for_peers,
            },
            Job::Delete(..) => &mut self.deletions,
        };
        jobs.push_back(job);
    }

    fn pop(&mut self) -> Option<Job> {
        self.reserve_for_clients
            .pop_front()
            .or_else(|| self.for_clients.pop_front())
            .or_else(|| self.reserve_for_peers.pop_front())
            .or_else(|| self.deletions.pop_front())
            .or_else(|| self.for_peers.pop_front())
    }

    /// Drops pending creations and reservations; at shutdown they are not needed.
    fn discard_creations(&mut self) {
        self.reserve_for_clients.clear();
        self.reserve_for_peers.clear();
        self.for_clients.clear();
        self.for_peers.clear();
    }
}

/// Creates and deletes files on a thread of its own, one after the other; files for clients come first. Dropping it
/// completes pending deletions and drops pending creations.
#[derive(Debug)]
pub(crate) struct FileThread {
    jobs: Option<Sender<Job>>,
    results: Receiver<FileResult>,
    thread: Option<JoinHandle<()>>,
}

impl FileThread {
    pub(crate) fn start(storage: Arc<dyn Storage>) -> Result<Self, DriverError> {
        let (jobs, queue) = channel();
        let (done, results) = channel();
        let thread = thread::Builder::new()
            .name("log-files".to_owned())
            .spawn(move || work(storage.as_ref(), &queue, &done))
            .map_err(|source| DriverError::Thread {
                agent: "log files",
                source,
            })?;
        Ok(Self {
            jobs: Some(jobs),
            results,
            thread: Some(thread),
        })
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread outlives this sender, so sending does not fail.
            let _ = jobs.send(job);
        }
    }
}

fn work(storage: &dyn Storage, queue: &Receiver<Job>, done: &Sender<FileResult>) {
    let mut jobs = Jobs::default();
    let mut prefaulter = PagePrefaulter::default();
    let mut is_closed = false;
    loop {
        while !is_closed {
            match queue.try_recv() {
                Ok(job) => jobs.push(job),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    is_closed = true;
                    jobs.discard_creations();
                }
            }
        }
        let Some(job) = jobs.pop() else {
            if is_closed {
                return;
            }
            let next = if prefaulter.step() {
                queue.recv_timeout(PREFAULT_INTERVAL).ok()
            } else {
                queue.recv().ok()
            };
            if let Some(job) = next {
                jobs.push(job);
            }
            continue;
        };
        let result = match job {
            Job::Create(ticket, request) => create(storage, ticket, request, &mut prefaulter),
            Job::Reserve(request) => reserve(storage, request, &mut prefaulter),
            Job::Delete(path, region) => {
                prefaulter.remove(&path);
                delete_now(storage, path, region)
            }
        };
        // The receiver is gone at shutdown.
        let _ = done.send(result);
    }
}

/// Creates a file. Pages that are reserved but not mapped are prefaulted later.
fn create(
    storage: &dyn Storage,
    ticket: u64,
    request: FileRequest,
    prefaulter: &mut PagePrefaulter,
) -> FileResult {
    let (options, origin) = (request.options, request.origin);
    let ranges = if options.reserve {
        iter::once(0..request.length).collect()
    } else {
        request.ranges.clone()
    };
    let made = create_now(storage, ticket, request);
    if let FileResult::Created {
        path,
        result: Ok(region),
        ..
    } = &made
        && !options.populate
    {
        prefault(prefaulter, path, region, &ranges, origin);
    }
    made
}

/// Reserves pages of a file, which are prefaulted later.
fn reserve(
    storage: &dyn Storage,
    request: ReserveRequest,
    prefaulter: &mut PagePrefaulter,
) -> FileResult {
    let made = reserve_now(storage, &request);
    if let FileResult::Reserved { result: Ok(()), .. } = &made {
        let ReserveRequest {
            path,
            region,
            ranges,
            origin,
            ..
        } = request;
        prefault(prefaulter, &path, &region, &ranges, origin);
    }
    made
}

fn prefault(
    prefaulter: &mut PagePrefaulter,
    path: &Path,
    region: &Region,
    ranges: &[Range<u64>],
    origin: RequestOrigin,
) {
    for range in ranges {
        // The range is inside the region, whose length is a usize.
        let (offset, length) = (range.start as usize, (range.end - range.start) as usize);
        if let Ok(part) = region.sub(offset, length) {
            prefaulter.add(path, part, origin);
        }
    }
}

impl FileWorker for FileThread {
    fn create(&mut self, ticket: u64, request: FileRequest) {
        self.send(Job::Create(ticket, request));
    }

    fn reserve(&mut self, request: ReserveRequest) {
        self.send(Job::Reserve(request));
    }

    fn delete(&mut self, path: PathBuf, region: Option<Region>) {
        self.send(Job::Delete(path, region));
    }

    fn poll(&mut self) -> Option<FileResult> {
        self.results.try_recv().ok()
    }
}

impl Drop for FileThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // Only the file system's code could panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use taran_core::memory::{CreateOptions, FileStorage, MemoryStorage};

    use super::*;

    fn result(files: &mut FileThread) -> FileResult {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(result) = files.poll() {
                return result;
            }
            assert!(Instant::now() < deadline, "no result");
            thread::yield_now();
        }
    }

    #[test]
    fn file_thread_creates_and_deletes_files() {
        let storage = MemoryStorage::new();
        storage.create_dir_all("/a".as_ref()).unwrap();
        let mut files = FileThread::start(Arc::new(storage.clone())).unwrap();
        let path = PathBuf::from("/a/1.logbuffer");
        let request = || FileRequest {
            path: path.clone(),
            length: 4096,
            options: CreateOptions::RESERVED,
            ranges: Vec::new(),
            origin: RequestOrigin::Client,
        };
        files.create(7, request());
        files.create(8, request());
        let FileResult::Created {
            ticket: 7,
            result: Ok(region),
            ..
        } = result(&mut files)
        else {
            panic!("not created");
        };
        let FileResult::Created {
            ticket: 8,
            result: Err(_),
            ..
        } = result(&mut files)
        else {
            panic!("created twice");
        };
        files.delete(path.clone(), Some(region));
        drop(files);
        assert!(
            !storage.exists(&path),
            "pending deletions are completed on drop"
        );
    }

    /// Returns the bytes of a mapped file that are in the page tables of the process; `None` if it is not mapped.
    fn mapped(file: &std::path::Path) -> Option<u64> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps
            .lines()
            .skip_while(|line| !line.contains(file.to_str().unwrap()));
        lines.next()?;
        let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        let kib = resident.trim().strip_suffix(" kB").unwrap();
        Some(1_024 * kib.parse::<u64>().unwrap())
    }

    /// Waits until `of` returns the expected value.
    fn expect<T: std::fmt::Debug + PartialEq>(of: impl Fn() -> T, wanted: &T) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while of() != *wanted {
            assert!(Instant::now() < deadline, "{:?}", of());
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Temporary folder in shared memory, deleted on drop.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn pages_of_new_files_are_prefaulted_and_unmapped_on_deletion() {
        const LENGTH: u64 = 3 << 20;
        let name = format!("/dev/shm/taran-test-{}-pages", std::process::id());
        let folder = Folder(name.into());
        std::fs::create_dir_all(&folder.0).unwrap();
        let mut files = FileThread::start(Arc::new(FileStorage)).unwrap();
        let mut create = |name: &str, options| {
            let path = folder.0.join(name);
            let request = FileRequest {
                path: path.clone(),
                length: LENGTH,
                options,
                ranges: Vec::new(),
                origin: RequestOrigin::Client,
            };
            files.create(0, request);
            let FileResult::Created {
                result: Ok(region), ..
            } = result(&mut files)
            else {
                panic!("not created");
            };
            (path, region)
        };
        let sparse = CreateOptions {
            reserve: false,
            populate: false,
        };
        let (sparse, hole) = create("sparse", sparse);
        let (path, region) = create("reserved", CreateOptions::RESERVED);
        if let Err(error) = region.sub(0, 4_096).unwrap().fault_in() {
            eprintln!("skipped: this system does not support prefaulting: {error}");
            return;
        }
        expect(|| mapped(&path), &Some(LENGTH));
        assert_eq!(
            mapped(&sparse),
            Some(0),
            "a sparse file must not be touched"
        );
        files.delete(path.clone(), Some(region));
        expect(|| mapped(&path), &None);
        drop((files, hole));
    }

    #[test]
    fn jobs_prefer_clients_and_shutdown_discards_creations() {
        let storage = MemoryStorage::new();
        storage.create_dir_all("/a".as_ref()).unwrap();
        let (sender, queue) = channel();
        let (done, results) = channel();
        let create = |ticket: u64, origin| {
            let request = FileRequest {
                path: PathBuf::from(format!("/a/{ticket}.logbuffer")),
                length: 4096,
                options: CreateOptions::RESERVED,
                ranges: Vec::new(),
                origin,
            };
            Job::Create(ticket, request)
        };
        let mut jobs = Jobs::default();
        for (ticket, origin) in [
            (1, RequestOrigin::Peer),
            (2, RequestOrigin::Peer),
            (3, RequestOrigin::Client),
        ] {
            jobs.push(create(ticket, origin));
        }
        let tickets: Vec<u64> = std::iter::from_fn(|| match jobs.pop()? {
            Job::Create(ticket, _) => Some(ticket),
            Job::Reserve(..) | Job::Delete(..) => None,
        })
        .collect();
        assert_eq!(tickets, [3, 1, 2]);

        let old = PathBuf::from("/a/0.logbuffer");
        create_now(
            &storage,
            0,
            FileRequest {
                path: old.clone(),
                length: 4096,
                options: CreateOptions::RESERVED,
                ranges: Vec::new(),
                origin: RequestOrigin::Client,
            },
        );
        sender.send(create(4, RequestOrigin::Client)).unwrap();
        sender.send(Job::Delete(old.clone(), None)).unwrap();
        drop(sender);
        work(&storage, &queue, &done);
        assert!(!storage.exists(&old));
        assert!(!storage.exists("/a/4.logbuffer".as_ref()));
        assert_eq!(results.try_iter().count(), 1);
    }
}
