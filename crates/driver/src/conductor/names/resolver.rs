//! The outermost resolver, which is handed in: the system's, or that of a simulated network.

use std::fmt::Debug;
use std::net::IpAddr;

/// What a look-up found: at least one address, or why there is none.
pub(crate) type Found = Result<Vec<IpAddr>, String>;

/// Looks up host names without ever making its caller wait.
pub trait NameResolver: Send + Debug {
    /// Begins to look up `host`. Its answer comes out of [`poll`](Self::poll) under the same ticket.
    fn start(&mut self, ticket: u64, host: &str);

    /// Nobody waits for this answer any more. It may come all the same.
    fn cancel(&mut self, _ticket: u64) {}

    /// An answer that has come in; asked for in each turn as long as one is awaited. At least one address, or why there is none.
    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)>;
}
