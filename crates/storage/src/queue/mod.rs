// SPDX-License-Identifier: Apache-2.0
//! Asynchronous disk operations: requests in, completions out, so that no agent waits for a device.

mod engine;
mod inline;
mod request;
mod threads;

pub use inline::{InlineQueue, ServiceTime, ServiceTimes};
pub use request::{Completion, Outcome, QueuedFile, RejectReason, Rejected, Request, WritePart};
pub use threads::{ThreadedQueue, ThreadedQueueOptions};

use std::fmt::Debug;

use crate::DiskFile;

/// A queue of disk operations with one owner.
///
/// Contract: input is [`submit`](Self::submit), output is [`poll`](Self::poll), which the owner calls each duty cycle.
/// Each accepted request has exactly one completion, with its token. The exception is a worker that ends before, which is a
/// defect ([`RejectReason::Stopped`]). Neither call waits or allocates (requests on names hold paths, which their caller allocates).
///
/// A queue has one or more workers, which execute one operation each at a time. Each worker accepts the same number of
/// requests, and has room for the next one when one of its completions was polled. A full worker does not affect the others.
/// [`Request::worker`] returns the worker of a request: all requests on one file have the same one. Requests on names have
/// the first worker, for themselves if there are several.
///
/// Order:
///
/// * Requests on one file are executed in the order of submission, except that syncs are delayed behind requests that
///   arrived together with them, so that one sync serves many (group commit). No sync is delayed behind a later
///   [`Request::PunchHole`], [`Request::ClearFailure`] or [`Request::Close`] of its file: these are barriers.
/// * A sync completes after all requests on that file that were submitted before it, and makes their writes durable.
/// * Requests on names (open, rename, remove, sync of a directory, locks) are executed in the order of submission.
/// * There is no order between files, nor between files and names: wait for the completion.
///
/// Failure of a write, a length or a sync is sticky for its file. From then on writes, lengths, syncs and punched holes
/// complete with [`ErrorKind::FailedBefore`](crate::ErrorKind::FailedBefore) and are not executed, also a sync that was
/// submitted before the failed write but not executed yet. [`Request::ClearFailure`] ends that, after the owner has seen the
/// failure:
///
/// * after a failed write or length, all is as before, except for the range of that write: write it again (after
///   [`is_full`](crate::DiskError::is_full): when there is space);
/// * after a failed sync, all that was written since the last successful sync may be lost, although it can still be read:
///   write it again, or truncate the file.
///
/// Therefore a sync that succeeds covers all writes before it or, if a failure was cleared, all writes after that.
///
/// If a [`Disk`](crate::Disk) or [`DiskFile`] panics, the request completes with
/// [`ErrorKind::Panicked`](crate::ErrorKind::Panicked) and its buffers; for a write, a length or a sync that failure is
/// sticky, too. [`InlineQueue`], which executes on the caller's thread, also passes the panic on to the caller of `poll`; the
/// completion comes at the next call.
pub trait DiskQueue: Debug {
    /// Binds a file to the queue. Allocates.
    fn attach(&mut self, file: Box<dyn DiskFile>) -> QueuedFile;

    /// Accepts a request. `token` is the caller's and comes back with the completion.
    ///
    /// # Errors
    ///
    /// Returns the request, with its buffers, if it is not accepted: see [`RejectReason`].
    fn submit(&mut self, token: u64, request: Request) -> Result<(), Rejected>;

    /// Returns a completion, if any; call until `None`. `now_ns` is the time of the caller's clock.
    fn poll(&mut self, now_ns: i64) -> Option<Completion>;

    /// Returns the number of requests without a polled completion.
    fn in_flight(&self) -> usize;

    /// Returns the time at which `poll` must be called for the next progress; `i64::MAX` if progress does not depend on
    /// calls.
    fn next_deadline_ns(&self) -> i64;
}
