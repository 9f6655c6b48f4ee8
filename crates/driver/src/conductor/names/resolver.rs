// SPDX-License-Identifier: Apache-2.0
//! The last resolver of the chain, supplied by the environment: that of the system, or of a simulated network.

use std::fmt::Debug;
use std::net::IpAddr;

/// Outcome of a lookup: at least one address, or the reason of the failure.
pub(crate) type Resolution = Result<Vec<IpAddr>, String>;

/// Looks up host names without blocking the caller.
pub trait NameResolver: Send + Debug {
    /// Starts to look up `host`. [`poll`](Self::poll) returns the result under the same ticket.
    fn start(&mut self, ticket: u64, host: &str);

    /// Cancels a lookup. Its result may still be returned.
    fn cancel(&mut self, _ticket: u64) {}

    /// Returns the next result: at least one address, or the reason of the failure. Called in each duty cycle while a
    /// lookup is in progress.
    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)>;
}
