// SPDX-License-Identifier: Apache-2.0
//! Adding, finding and removing counters; reading the counters of the driver.

use std::io;

use taran_core::counters::CountersReader;
use taran_protocol::command::Command;

use super::Client;
use crate::counter::Counter;
use crate::error::CommandError;
use crate::pending::Pending;
use crate::registry::Request;
use crate::removal::ResourceKind;

/// Maximum length of a counter's key, in bytes.
const KEY_LENGTH_MAX: usize = 112;
/// Maximum length of a counter's label, in bytes.
const LABEL_LENGTH_MAX: usize = 380;

impl Client {
    /// Allocates a counter and waits for the driver. Type ids from 1000 are for applications. `key` (at most 112 bytes)
    /// and `label` (at most 380 bytes) are shown by tools.
    ///
    /// # Errors
    /// The driver has no free counter or does not answer; the client is closed; the key or label is too long.
    pub fn add_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<Counter, CommandError> {
        self.async_add_counter(type_id, key, label)?.wait()
    }

    /// Like [`add_counter`](Self::add_counter), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<Pending<Counter>, CommandError> {
        check_counter(key, label)?;
        let (client_id, counter_type_id) = (self.client_id(), type_id);
        self.core().request(
            |completer| Request::Counter { completer },
            |correlation_id| Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id,
                key,
                label,
            },
        )
    }

    /// Allocates a counter that outlives this client, or finds the one with this type and registration id. Waits for
    /// the driver.
    ///
    /// # Errors
    /// As for [`add_counter`](Self::add_counter); also if the counter with these ids belongs to a client.
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Counter, CommandError> {
        self.async_add_static_counter(type_id, key, label, registration_id)?
            .wait()
    }

    /// Like [`add_static_counter`](Self::add_static_counter), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Pending<Counter>, CommandError> {
        check_counter(key, label)?;
        let (client_id, counter_type_id) = (self.client_id(), type_id);
        self.core().request(
            |completer| Request::StaticCounter {
                registration_id,
                completer,
            },
            |correlation_id| Command::AddStaticCounter {
                client_id,
                correlation_id,
                registration_id,
                counter_type_id,
                key,
                label,
            },
        )
    }

    /// Returns the open counter of this client with a registration id.
    #[must_use]
    pub fn find_counter(&self, registration_id: i64) -> Option<Counter> {
        let handle = self
            .core()
            .registry()
            .counters
            .get(&registration_id)?
            .handle
            .clone();
        let counter = Counter::from_handle(handle.upgrade()?);
        (!counter.is_closed()).then_some(counter)
    }

    /// Returns the counters of the driver, including those of other clients.
    #[must_use]
    pub fn counters(&self) -> &CountersReader {
        self.core().counters()
    }

    /// Writes one line per allocated counter: id, value and label.
    ///
    /// # Errors
    /// An error of writing to `out`.
    pub fn print_counters(&self, out: &mut impl io::Write) -> io::Result<()> {
        let mut written = Ok(());
        self.counters().for_each(|meta| {
            if written.is_ok() {
                let value = self.counters().value(meta.id).unwrap_or_default();
                written = writeln!(out, "{:3}: {value:20} - {}", meta.id, meta.label.as_str());
            }
        });
        written
    }

    /// Closes the counter of this client with a registration id. The result is available when the driver has freed the
    /// counter. A counter that is still being added is withdrawn: its [`Pending`] fails with [`CommandError::Withdrawn`].
    /// Static counters are not found.
    ///
    /// # Errors
    /// [`CommandError::UnknownRegistration`] if this client has no such counter; the client is closed.
    pub fn async_remove_counter(&self, registration_id: i64) -> Result<Pending<()>, CommandError> {
        self.core().remove(ResourceKind::Counter, registration_id)
    }
}

fn check_counter(key: &[u8], label: &str) -> Result<(), CommandError> {
    for (item, length, max) in [
        ("key", key.len(), KEY_LENGTH_MAX),
        ("label", label.len(), LABEL_LENGTH_MAX),
    ] {
        if length > max {
            return Err(CommandError::TooLong { item, length, max });
        }
    }
    Ok(())
}
