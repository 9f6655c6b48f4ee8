// SPDX-License-Identifier: Apache-2.0
//! Requests of an agent to its disk queue.

use std::collections::VecDeque;

use taran_storage::{Completion, DiskFile, DiskQueue, QueuedFile, RejectReason, Request};

/// A disk queue that accepts each request. Those for which a worker of the queue has no room wait, in order, without holding
/// up other workers. Those that the queue refuses for good, because a worker has ended, are failed completions with the kind
/// [`ErrorKind::Rejected`](taran_storage::ErrorKind::Rejected).
///
/// Contract: input is [`submit`](Self::submit); output is [`poll`](Self::poll), called in each duty cycle until it returns
/// `None`.
#[derive(Debug)]
pub(crate) struct DiskIo {
    queue: Box<dyn DiskQueue + Send>,
    /// Requests that wait for room, by worker.
    waiting: Vec<VecDeque<(u64, Request)>>,
    /// Completions of requests that the queue has refused.
    refused: VecDeque<Completion>,
}

impl DiskIo {
    pub(crate) fn new(queue: Box<dyn DiskQueue + Send>) -> Self {
        Self {
            queue,
            waiting: Vec::new(),
            refused: VecDeque::new(),
        }
    }

    pub(crate) fn attach(&mut self, file: Box<dyn DiskFile>) -> QueuedFile {
        self.queue.attach(file)
    }

    pub(crate) fn submit(&mut self, token: u64, request: Request) {
        let worker = request.worker();
        if self.waiting.len() <= worker {
            self.waiting.resize_with(worker + 1, VecDeque::new);
        }
        self.waiting[worker].push_back((token, request));
        self.forward(worker);
    }

    /// Returns the next completion, if any.
    pub(crate) fn poll(&mut self, now_ns: i64) -> Option<Completion> {
        let completion = self.queue.poll(now_ns);
        for worker in 0..self.waiting.len() {
            self.forward(worker);
        }
        completion.or_else(|| self.refused.pop_front())
    }

    /// Returns true if all requests are complete.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
            && self.refused.is_empty()
            && self.queue.in_flight() == 0
    }

    /// Submits waiting requests while the worker has room.
    fn forward(&mut self, worker: usize) {
        while let Some((token, request)) = self.waiting[worker].pop_front() {
            match self.queue.submit(token, request) {
                Ok(()) => {}
                Err(rejected) if rejected.reason == RejectReason::Full => {
                    self.waiting[worker].push_front((token, rejected.request));
                    return;
                }
                Err(rejected) => self.refused.push_back(rejected.into_completion(token)),
            }
        }
    }
}

/// A queue whose workers end.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use taran_storage::Rejected;

    use super::{Completion, DiskFile, DiskQueue, QueuedFile, RejectReason, Request};

    /// Accepts requests until `has_ended` is set.
    #[derive(Debug)]
    pub(crate) struct EndingQueue<Q> {
        pub(crate) inner: Q,
        pub(crate) has_ended: Arc<AtomicBool>,
    }

    impl<Q: DiskQueue> DiskQueue for EndingQueue<Q> {
        fn attach(&mut self, file: Box<dyn DiskFile>) -> QueuedFile {
            self.inner.attach(file)
        }

        fn submit(&mut self, token: u64, request: Request) -> Result<(), Rejected> {
            if self.has_ended.load(Ordering::Relaxed) {
                return Err(Rejected::new(RejectReason::Stopped, request));
            }
            self.inner.submit(token, request)
        }

        fn poll(&mut self, now_ns: i64) -> Option<Completion> {
            self.inner.poll(now_ns)
        }

        fn in_flight(&self) -> usize {
            self.inner.in_flight()
        }

        fn next_deadline_ns(&self) -> i64 {
            self.inner.next_deadline_ns()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use taran_sim::disk::{SimDisk, SimDiskOptions};
    use taran_storage::{
        Advice, AlignedBuf, Disk, ErrorKind, InlineQueue, OpenOptions, Operation, Outcome,
        ServiceTime, ServiceTimes,
    };

    use super::testing::EndingQueue;
    use super::*;

    /// A device on which metadata takes no time and all else takes for ever.
    #[derive(Debug)]
    struct StuckFiles;

    impl ServiceTimes for StuckFiles {
        fn service_time(&mut self, operation: Operation, _: usize, _: i64) -> ServiceTime {
            match operation {
                Operation::Advise => ServiceTime::new(i64::MAX, i64::MAX),
                _ => ServiceTime::default(),
            }
        }
    }

    fn disk() -> Arc<dyn Disk> {
        let disk = SimDisk::new(1, SimDiskOptions::default());
        Arc::new(disk.process())
    }

    fn open(io: &mut DiskIo, disk: &Arc<dyn Disk>, path: &str) -> QueuedFile {
        let file = disk.open(Path::new(path), OpenOptions::create_new());
        io.attach(file.expect("a file"))
    }

    fn advise(file: &QueuedFile) -> Request {
        Request::Advise {
            file: file.clone(),
            offset: 0,
            len: 0,
            advice: Advice::WriteBack,
        }
    }

    #[test]
    fn full_worker_holds_up_its_own_requests_only() {
        let disk = disk();
        let mut io = DiskIo::new(Box::new(InlineQueue::new(&disk, 3, 2, StuckFiles)));
        let (stuck, free) = (
            open(&mut io, &disk, "/stuck"),
            open(&mut io, &disk, "/free"),
        );
        for token in 0..10 {
            io.submit(token, advise(&stuck));
        }
        let write = |file: &QueuedFile, byte: u8| {
            let mut buffer = AlignedBuf::new(512);
            buffer.fill(byte);
            Request::Write {
                file: file.clone(),
                offset: 0,
                buffer,
                range: 0..512,
            }
        };
        for token in 10..20 {
            io.submit(token, write(&free, token as u8));
        }
        io.submit(
            20,
            Request::Metadata {
                path: PathBuf::from("/free"),
            },
        );
        let mut tokens = Vec::new();
        while let Some(completion) = io.poll(0) {
            assert!(completion.result.is_ok(), "{completion:?}");
            tokens.push(completion.token);
        }
        tokens.retain(|token| *token != 20);
        assert_eq!((10..20).collect::<Vec<_>>(), tokens, "in order");
        assert!(!io.is_idle());
    }

    #[test]
    fn ended_queue_fails_each_request_and_returns_its_buffers() {
        let disk = disk();
        let mut io = DiskIo::new(Box::new(EndingQueue {
            inner: InlineQueue::new(&disk, 2, 2, ()),
            has_ended: Arc::new(true.into()),
        }));
        let file = open(&mut io, &disk, "/file");
        io.submit(
            1,
            Request::Read {
                file: file.clone(),
                offset: 0,
                buffer: AlignedBuf::new(512),
                range: 0..512,
            },
        );
        io.submit(2, Request::Close { file });
        assert!(!io.is_idle());
        for token in 1..=2 {
            let failed = io.poll(0).expect("a completion");
            assert_eq!(token, failed.token);
            assert_eq!(token == 1, failed.buffer.is_some(), "the buffer comes back");
            let kind = failed
                .result
                .map(drop as fn(Outcome))
                .map_err(|error| error.kind);
            let reason = RejectReason::Stopped;
            assert_eq!(Err(ErrorKind::Rejected { reason }), kind);
        }
        assert!(io.poll(0).is_none() && io.is_idle());
    }
}
