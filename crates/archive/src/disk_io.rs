//! Requests of an agent to its disk queue.

use std::collections::VecDeque;

use taran_storage::{Completion, DiskFile, DiskQueue, QueuedFile, Rejected, Request};

/// A disk queue that accepts each request: those for which it has no room wait, in order.
///
/// Contract: input is [`submit`](Self::submit); output is [`poll`](Self::poll), called in each duty cycle until it returns
/// `None`.
#[derive(Debug)]
pub(crate) struct DiskIo {
    queue: Box<dyn DiskQueue + Send>,
    waiting: VecDeque<(u64, Request)>,
}

impl DiskIo {
    pub(crate) fn new(queue: Box<dyn DiskQueue + Send>) -> Self {
        Self {
            queue,
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn attach(&mut self, file: Box<dyn DiskFile>) -> QueuedFile {
        self.queue.attach(file)
    }

    pub(crate) fn submit(&mut self, token: u64, request: Request) {
        self.waiting.push_back((token, request));
        self.forward();
    }

    /// Returns the next completion, if any.
    pub(crate) fn poll(&mut self, now_ns: i64) -> Option<Completion> {
        let completion = self.queue.poll(now_ns);
        self.forward();
        completion
    }

    /// Returns true if all requests are complete.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.queue.in_flight() == 0
    }

    fn forward(&mut self) {
        while let Some((token, request)) = self.waiting.pop_front() {
            if let Err(Rejected { request, .. }) = self.queue.submit(token, request) {
                self.waiting.push_front((token, request));
                return;
            }
        }
    }
}
