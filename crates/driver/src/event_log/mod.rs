//! The event log: what the driver does, for people who look for a cause (`aeron.event.log`, docs/spec/uri-and-configuration.md §6).
//!
//! Agents write records of plain bytes into a bounded queue; a thread of its own takes them out, makes lines of them and
//! writes these. An event that is not wanted costs a look at one bit. A full queue loses events and counts them; nobody
//! ever waits for it.

mod frame_text;
mod logged_network;
mod record;
mod text;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use taran_core::memory::Region;
use taran_core::ring::many_to_one::{Consumer, Producer};
use taran_core::ring::{RingError, TRAILER_LENGTH};
use taran_protocol::event::{EventCode, EventSet};

pub(crate) use logged_network::LoggedNetwork;
pub(crate) use writer::{EventWriter, EventWriterSpec};

use record::Record;

/// The end of the event log that agents have. Clones write into the same log.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    enabled: EventSet,
    queue: Option<Arc<Queue>>,
}

/// Where records wait.
#[derive(Debug)]
struct Queue {
    ring: Producer,
    lost: AtomicU64,
    now_ns: fn() -> i64,
}

/// One value of an event. Which values an event has, [`EventSpec`](taran_protocol::event::EventSpec) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A 32-bit number.
    Int(i32),
    /// A 64-bit number.
    Long(i64),
    /// Address and port; `None` where it is not known.
    Address(Option<SocketAddr>),
    /// A text.
    Text(&'a str),
    /// A message of the command protocol: type and bytes.
    Message(i32, &'a [u8]),
    /// A datagram.
    Frame(&'a [u8]),
}

/// The other end of the log, for the thread that writes.
#[derive(Debug)]
pub(crate) struct EventConsumer {
    ring: Consumer,
    queue: Arc<Queue>,
}

impl EventLog {
    /// A log that wants nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// A log of these events in a queue of `capacity` bytes, a power of two; and its other end.
    pub(crate) fn new(
        enabled: EventSet,
        capacity: usize,
        now_ns: fn() -> i64,
    ) -> Result<(Self, EventConsumer), RingError> {
        let region = Region::anonymous(capacity + TRAILER_LENGTH)
            .map_err(|_| RingError::Length { length: capacity })?;
        let queue = Arc::new(Queue {
            ring: Producer::open(&region)?,
            lost: AtomicU64::new(0),
            now_ns,
        });
        let ring = Consumer::open(&region)?;
        let log = Self {
            enabled,
            queue: Some(Arc::clone(&queue)),
        };
        Ok((log, EventConsumer { ring, queue }))
    }

    /// True if the event is wanted. To be asked before values are gathered that cost something.
    #[inline]
    #[must_use]
    pub fn is_enabled(&self, event: EventCode) -> bool {
        self.enabled.contains(event)
    }

    /// The events that are wanted.
    pub(crate) fn enabled(&self) -> EventSet {
        self.enabled
    }

    /// Logs an event, if it is enabled, with the values that its declaration names.
    #[inline]
    pub fn log(&self, event: EventCode, values: &[FieldValue<'_>]) {
        if self.is_enabled(event) {
            self.write(event, values);
        }
    }

    /// Logs a command of a client, as it stood in the ring.
    #[inline]
    pub(crate) fn command(&self, type_id: i32, payload: &[u8]) {
        if !self.enabled.is_empty()
            && let Some(event) = EventCode::of_command(type_id)
        {
            self.log(event, &[FieldValue::Message(type_id, payload)]);
        }
    }

    /// Logs a response to clients, as it goes into the broadcast buffer.
    #[inline]
    pub(crate) fn response(&self, type_id: i32, payload: &[u8]) {
        if !self.enabled.is_empty()
            && let Some(event) = EventCode::of_response(type_id)
        {
            self.log(event, &[FieldValue::Message(type_id, payload)]);
        }
    }

    #[cold]
    fn write(&self, event: EventCode, values: &[FieldValue<'_>]) {
        let Some(queue) = &self.queue else { return };
        let record = Record::new((queue.now_ns)(), values);
        let written = queue.ring.write_with(
            i32::from(event.number()),
            record.length(),
            |target: &mut [u8]| record.write(target),
        );
        if written.is_err() {
            queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl EventConsumer {
    /// Hands up to `limit` records to `handler`; returns how many there were.
    fn read(&mut self, limit: usize, handler: impl FnMut(i32, &[u8])) -> usize {
        // Only this process writes into the queue; were it damaged all the same, it is empty now and goes on.
        self.ring.read(limit, handler).unwrap_or(0)
    }

    /// Events that found no room since this was asked last.
    fn take_lost(&self) -> u64 {
        self.queue.lost.swap(0, Ordering::Relaxed)
    }

    fn is_empty(&self) -> bool {
        self.ring.size() == 0
    }
}

#[cfg(test)]
mod captured;
#[cfg(test)]
mod tests;
