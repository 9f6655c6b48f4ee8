// SPDX-License-Identifier: Apache-2.0
//! A connection that is made again when the archive is lost.
//!
//! Contract: [`ReconnectingArchive::do_work`] is called often, with the current time. It connects, polls the connection,
//! and starts another attempt when an attempt has failed or the archive is lost. [`ReconnectingArchive::connection`] is the
//! connection after the last call.

use taran::Client;

use super::{ArchiveConnecting, ArchiveConnection, ArchiveContext, ConnectError};

/// Delay after a failed attempt and after a loss, in nanoseconds.
const RETRY_NS: i64 = 100_000_000;

/// A connection to an archive that is made again, for ever, when the archive dies and comes back.
///
/// Requests under way fail with [`RequestError::Disconnected`](crate::session::RequestError::Disconnected) when the archive
/// is lost. What was recorded goes on or ends with the archive, and only the application knows what has to be started again:
/// [`generation`](Self::generation) tells whether the connection is a new one.
///
/// ```no_run
/// use taran::{Clock, SystemClock};
/// use taran_archive_client::{ArchiveContext, ReconnectingArchive};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = taran::Client::builder().connect()?;
/// let context = ArchiveContext::new().control_channel("aeron:ipc").response_channel("aeron:ipc");
/// let mut archive = ReconnectingArchive::new(context, client)?;
/// let mut clock = SystemClock::new();
/// loop {
///     archive.do_work(clock.now().nanos);
///     if let Some(connection) = archive.connection() {
///         let _call = connection.recording_position(0);
///     }
/// #   break;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ReconnectingArchive {
    context: ArchiveContext,
    client: Client,
    link: Link,
    generation: u64,
    failure: Option<ConnectError>,
}

#[derive(Debug)]
enum Link {
    Down { next_attempt_ns: i64 },
    Connecting(Box<ArchiveConnecting>),
    Up(Box<ArchiveConnection>),
}

impl ReconnectingArchive {
    /// Creates a client that is not connected yet.
    ///
    /// # Errors
    /// An option of the context is invalid.
    pub fn new(context: ArchiveContext, client: Client) -> Result<Self, ConnectError> {
        context.check()?;
        Ok(Self {
            context,
            client,
            link: Link::Down {
                next_attempt_ns: i64::MIN,
            },
            generation: 0,
            failure: None,
        })
    }

    /// Connects, polls the connection, or notices its loss. Returns the amount of work done.
    pub fn do_work(&mut self, now_ns: i64) -> usize {
        match &mut self.link {
            Link::Down { next_attempt_ns } if now_ns < *next_attempt_ns => 0,
            Link::Down { .. } => match self.context.connecting(&self.client, now_ns) {
                Ok(connecting) => {
                    self.link = Link::Connecting(Box::new(connecting));
                    1
                }
                Err(error) => self.on_failure(error, now_ns),
            },
            Link::Connecting(connecting) => match connecting.poll(now_ns) {
                Ok(None) => 0,
                Ok(Some(connection)) => {
                    self.link = Link::Up(Box::new(connection));
                    self.generation += 1;
                    self.failure = None;
                    1
                }
                Err(error) => self.on_failure(error, now_ns),
            },
            Link::Up(connection) => {
                let work = connection.poll(now_ns);
                if connection.is_connected() {
                    return work;
                }
                self.retry_later(now_ns);
                work + 1
            }
        }
    }

    /// Returns the connection; `None` while there is none.
    pub fn connection(&mut self) -> Option<&mut ArchiveConnection> {
        match &mut self.link {
            Link::Up(connection) => Some(connection),
            Link::Down { .. } | Link::Connecting(_) => None,
        }
    }

    /// Returns true while there is a connection.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        matches!(self.link, Link::Up(_))
    }

    /// Returns the number of connections that were made so far.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns why the last attempt failed; `None` if none has failed since the last connection.
    #[must_use]
    pub fn failure(&self) -> Option<&ConnectError> {
        self.failure.as_ref()
    }

    /// Drops the connection and connects again, for example after a request that was not answered.
    pub fn reconnect(&mut self, now_ns: i64) {
        self.retry_later(now_ns);
    }

    fn on_failure(&mut self, error: ConnectError, now_ns: i64) -> usize {
        self.failure = Some(error);
        self.retry_later(now_ns);
        1
    }

    fn retry_later(&mut self, now_ns: i64) {
        self.link = Link::Down {
            next_attempt_ns: now_ns.saturating_add(RETRY_NS),
        };
    }
}
