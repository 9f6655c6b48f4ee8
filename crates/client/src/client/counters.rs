//! Adding, finding and removing counters, and reading everybody's.

use std::io;

use taran_core::counters::CountersReader;
use taran_protocol::command::Command;

use super::Client;
use crate::counter::Counter;
use crate::error::AddError;
use crate::pending::Pending;
use crate::registry::Wish;
use crate::removal::Kind;

/// Longest key of a counter, in bytes.
const KEY_LENGTH_MAX: usize = 112;
/// Longest label of a counter, in bytes.
const LABEL_LENGTH_MAX: usize = 380;

impl Client {
    /// Allocates a counter. Type ids from 1000 on are the applications'; key and label are shown by tools.
    ///
    /// # Errors
    /// The driver has no counter left or does not answer; the client has ended; the key has more than 112 bytes or the
    /// label more than 380.
    pub fn add_counter(&self, type_id: i32, key: &[u8], label: &str) -> Result<Counter, AddError> {
        self.async_add_counter(type_id, key, label)?.wait()
    }

    /// As [`add_counter`](Self::add_counter), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
    ) -> Result<Pending<Counter>, AddError> {
        check_counter(key, label)?;
        let (client_id, counter_type_id) = (self.client_id(), type_id);
        self.link().ask(
            |promise| Wish::Counter { promise },
            |correlation_id| Command::AddCounter {
                client_id,
                correlation_id,
                counter_type_id,
                key,
                label,
            },
        )
    }

    /// Allocates a counter that outlives this client, or finds the one with this type and registration id.
    ///
    /// # Errors
    /// As [`add_counter`](Self::add_counter); also if a counter with these ids belongs to a client.
    pub fn add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Counter, AddError> {
        self.async_add_static_counter(type_id, key, label, registration_id)?
            .wait()
    }

    /// As [`add_static_counter`](Self::add_static_counter), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_static_counter(
        &self,
        type_id: i32,
        key: &[u8],
        label: &str,
        registration_id: i64,
    ) -> Result<Pending<Counter>, AddError> {
        check_counter(key, label)?;
        let (client_id, counter_type_id) = (self.client_id(), type_id);
        self.link().ask(
            |promise| Wish::StaticCounter {
                registration_id,
                promise,
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

    /// The counter of this client with that registration id, if it is still open.
    #[must_use]
    pub fn find_counter(&self, registration_id: i64) -> Option<Counter> {
        let handle = self
            .link()
            .registry()
            .counters
            .get(&registration_id)?
            .handle
            .clone();
        let counter = Counter::from_handle(handle.upgrade()?);
        (!counter.is_closed()).then_some(counter)
    }

    /// All counters of the driver, of every client.
    #[must_use]
    pub fn counters(&self) -> &CountersReader {
        self.link().counters()
    }

    /// Writes one line for each counter in use: id, value and label.
    ///
    /// # Errors
    /// As `out`.
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

    /// Frees the counter of this client with that registration id, and answers when the driver has done so. One that is
    /// still being added is withdrawn: its [`Pending`] fails with [`AddError::Withdrawn`]. Static counters stay.
    ///
    /// # Errors
    /// [`AddError::UnknownRegistration`] if this client has no such counter; the client has ended.
    pub fn async_remove_counter(&self, registration_id: i64) -> Result<Pending<()>, AddError> {
        self.link().remove(Kind::Counter, registration_id)
    }
}

fn check_counter(key: &[u8], label: &str) -> Result<(), AddError> {
    for (what, length, max) in [
        ("key", key.len(), KEY_LENGTH_MAX),
        ("label", label.len(), LABEL_LENGTH_MAX),
    ] {
        if length > max {
            return Err(AddError::TooLong { what, length, max });
        }
    }
    Ok(())
}
