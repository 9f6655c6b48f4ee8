//! A thread that makes and deletes log files, so that nobody else waits for the file system.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use taran_core::memory::{Region, Storage};

use crate::conductor::{FileRequest, FileResult, FileWorker, create_now, delete_now};
use crate::error::DriverError;

#[derive(Debug)]
enum Job {
    Create(u64, FileRequest),
    Delete(PathBuf, Option<Region>),
}

/// Files made and deleted on a thread of their own, one after the other. What was begun is finished when it is dropped.
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
            // The thread ends only after its last job, which this one would be.
            let _ = jobs.send(job);
        }
    }
}

fn work(storage: &dyn Storage, queue: &Receiver<Job>, done: &Sender<FileResult>) {
    while let Ok(job) = queue.recv() {
        let result = match job {
            Job::Create(ticket, request) => create_now(storage, ticket, request),
            Job::Delete(path, region) => delete_now(storage, path, region),
        };
        // At the end nobody listens any more.
        let _ = done.send(result);
    }
}

impl FileWorker for FileThread {
    fn create(&mut self, ticket: u64, request: FileRequest) {
        self.send(Job::Create(ticket, request));
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
            // It has nothing that could panic but the file system's own code.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use taran_core::memory::{CreateOptions, MemoryStorage};

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
    fn files_come_and_go() {
        let storage = MemoryStorage::new();
        storage.create_dir_all("/a".as_ref()).unwrap();
        let mut files = FileThread::start(Arc::new(storage.clone())).unwrap();
        let path = PathBuf::from("/a/1.logbuffer");
        let request = || FileRequest {
            path: path.clone(),
            length: 4096,
            options: CreateOptions::RESERVED,
        };
        files.create(7, request());
        files.create(8, request());
        let FileResult::Created {
            ticket: 7,
            result: Ok(region),
            ..
        } = result(&mut files)
        else {
            panic!("it can be made");
        };
        let FileResult::Created {
            ticket: 8,
            result: Err(_),
            ..
        } = result(&mut files)
        else {
            panic!("it is there already");
        };
        files.delete(path.clone(), Some(region));
        drop(files);
        assert!(
            !storage.exists(&path),
            "what was begun is finished at the end"
        );
    }
}
