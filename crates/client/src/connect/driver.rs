// SPDX-License-Identifier: Apache-2.0
//! Inspection of a driver without connecting to it (`docs/spec/shared-memory.md §1.4`, `§2`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::CountersReader;
use taran_core::error_log::{self, ErrorObservation};
use taran_core::memory::LockProbe;
use taran_core::ring::many_to_one::Producer;
use taran_protocol::cnc::Cnc;
use taran_protocol::command::Command;

use super::file::{self, CncUnavailable, OpenedCnc, has_driver_died};
use super::{NO_HEARTBEAT, SHUT_DOWN, heartbeat_age};
use crate::builder::ClientBuilder;
use crate::error::{CommandError, ConnectError};

/// A view of a driver through its `cnc.dat`, without being its client. The driver may have ended. Created by
/// [`ClientBuilder::inspect_driver`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = taran_driver::MediaDriver::launch_embedded(
/// #     taran_driver::DriverContext::new().ipc_term_buffer_length(65_536),
/// # )?;
/// # let directory = driver.aeron_dir();
/// let driver = taran::Client::builder().aeron_dir(directory).inspect_driver()?;
/// assert!(driver.is_active());
/// println!("process {}, {} counters", driver.pid(), {
///     let mut count = 0;
///     driver.counters().for_each(|_| count += 1);
///     count
/// });
/// driver.for_each_error(0, |error| println!("{} times: {}", error.count, error.text));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[doc(alias = "CommonContext")]
pub struct DriverView {
    directory: PathBuf,
    timeout: Duration,
    cnc: Cnc,
    to_driver: Producer,
    lock: Option<LockProbe>,
}

impl DriverView {
    pub(crate) fn open(builder: &ClientBuilder) -> Result<Self, ConnectError> {
        builder.check()?;
        let found = file::open(builder);
        let OpenedCnc {
            cnc,
            producer,
            lock,
            ..
        } = found.map_err(|CncUnavailable { error, .. }| error)?;
        Ok(Self {
            directory: builder.directory(),
            timeout: builder.timeout(),
            cnc,
            to_driver: producer,
            lock,
        })
    }

    /// Returns the Aeron directory of the driver.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        &self.directory
    }

    /// Returns the process id of the driver.
    #[must_use]
    pub fn pid(&self) -> i64 {
        self.cnc.spec().driver_pid
    }

    /// Returns the time at which the driver started, in milliseconds since the epoch.
    #[must_use]
    pub fn start_timestamp_ms(&self) -> i64 {
        self.cnc.spec().start_timestamp_ms
    }

    /// Returns the file page size in bytes; the lengths of the driver's files are multiples of it.
    #[must_use]
    pub fn file_page_size(&self) -> usize {
        // Checked when the file was opened: a power of two.
        self.cnc.spec().page_size.unsigned_abs() as usize
    }

    /// Returns the time without a heartbeat after which the driver removes a client.
    #[must_use]
    pub fn client_liveness_timeout(&self) -> Duration {
        self.cnc.client_liveness_timeout()
    }

    /// Returns the time since the driver's last heartbeat; `None` if the driver is still starting or has shut down in
    /// an orderly way.
    #[must_use]
    pub fn heartbeat_age(&self) -> Option<Duration> {
        match self.to_driver.consumer_heartbeat_ms() {
            NO_HEARTBEAT | SHUT_DOWN => None,
            heartbeat => Some(heartbeat_age(heartbeat, SystemClock::new().now())),
        }
    }

    /// Returns true if the driver's last heartbeat is within the driver timeout, and its process has not ended. The end of
    /// an official driver is known only from its heartbeat.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.heartbeat_age().is_some_and(|age| age <= self.timeout)
            && !has_driver_died(self.lock.as_ref(), &self.to_driver)
    }

    /// Returns a number that is unique among all clients of this driver.
    #[must_use]
    pub fn next_correlation_id(&self) -> i64 {
        self.to_driver.next_correlation_id()
    }

    /// Returns the counters of the driver, including those of its clients.
    #[must_use]
    pub fn counters(&self) -> CountersReader {
        CountersReader::new(
            self.cnc.counters_metadata.clone(),
            self.cnc.counters_values.clone(),
        )
    }

    /// Calls `visit` for each distinct error that the driver has recorded at `since_ms` (milliseconds since the epoch)
    /// or later. Returns the number of errors.
    pub fn for_each_error(&self, since_ms: i64, visit: impl FnMut(&ErrorObservation)) -> usize {
        error_log::read(&self.cnc.error_log, since_ms, visit)
    }

    /// Requests the driver to terminate. The driver's termination validator decides on the token; by default it rejects
    /// all. There is no response: poll [`is_active`](Self::is_active).
    ///
    /// # Errors
    /// The driver's command buffer is full, or the token is too long for it.
    pub fn request_termination(&self, token: &[u8]) -> Result<(), CommandError> {
        let (client_id, correlation_id) = (self.next_correlation_id(), self.next_correlation_id());
        let mut bytes = Vec::new();
        let command = Command::TerminateDriver {
            client_id,
            correlation_id,
            token,
        };
        let type_id = command.encode(&mut bytes);
        let (length, max) = (bytes.len(), self.to_driver.max_message_length());
        if length > max {
            let item = "command";
            return Err(CommandError::TooLong { item, length, max });
        }
        let written = self.to_driver.write(type_id, &bytes);
        written.map_err(|_| CommandError::DriverBufferFull { length })
    }
}
