// SPDX-License-Identifier: Apache-2.0
//! Thread that computes the Diffie-Hellman results of handshakes, so that a flood of them delays no command
//! (docs/spec/transport-security.md §5.1).

use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use crate::error::DriverError;
use crate::secured::{JobQueues, JobRequest};

/// Thread for handshakes; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct HandshakeThread {
    requests: Sender<JobRequest>,
    thread: Option<JoinHandle<()>>,
}

impl HandshakeThread {
    /// Starts the thread, and returns the queues to it.
    pub(super) fn start() -> Result<(Self, JobQueues), DriverError> {
        let (queues, runner, requests) = JobQueues::new();
        let thread = thread::Builder::new()
            .name("handshakes".to_owned())
            .spawn(move || runner.run())
            .map_err(|source| DriverError::Thread {
                agent: "handshakes",
                source,
            })?;
        let thread = Some(thread);
        Ok((Self { requests, thread }, queues))
    }
}

impl Drop for HandshakeThread {
    fn drop(&mut self) {
        // The thread is gone if that fails.
        let _ = self.requests.send(JobRequest::Close);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}
